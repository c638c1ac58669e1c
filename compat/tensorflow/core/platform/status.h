// Status: absl::Status, as in current TensorFlow.
//
// TensorFlow 1.x programs, which use Status::OK() and error_message(), link
// gradflow::tensorflow_compat_v1, which defines GRADFLOW_TENSORFLOW_V1. Status is then a class that
// holds an absl::Status, adds these names, and converts to and from absl::Status. Compiled
// functions of the library only use absl::Status, so both kinds of programs link the same library.
// Expressions that programs return (errors::X(), OkStatus(), Status::OK(), TF_RETURN_IF_ERROR) have
// type absl::Status in both, so that lambdas may mix them without a return type.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/base/config.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

// Codes compare with numbers, like TensorFlow's codes.
namespace absl {
ABSL_NAMESPACE_BEGIN

inline bool operator==(StatusCode a, int b) { return static_cast<int>(a) == b; }
inline bool operator==(int a, StatusCode b) { return b == a; }
inline bool operator!=(StatusCode a, int b) { return !(a == b); }
inline bool operator!=(int a, StatusCode b) { return !(a == b); }

ABSL_NAMESPACE_END
}  // namespace absl

namespace tensorflow {

// The codes, with the names of error_codes.proto: error::INTERNAL and error::Code::INTERNAL. Their
// type is Abseil's, so that both forms compare.
namespace error {

class Code {
 public:
  constexpr Code(absl::StatusCode code) : code_(code) {}  // NOLINT: both are one
  constexpr explicit Code(int code) : code_(static_cast<absl::StatusCode>(code)) {}
  constexpr operator absl::StatusCode() const { return code_; }  // NOLINT: the same
  constexpr explicit operator int() const { return static_cast<int>(code_); }
  friend std::ostream& operator<<(std::ostream& os, Code code) { return os << code.code_; }

  static constexpr absl::StatusCode OK = absl::StatusCode::kOk;
  static constexpr absl::StatusCode CANCELLED = absl::StatusCode::kCancelled;
  static constexpr absl::StatusCode UNKNOWN = absl::StatusCode::kUnknown;
  static constexpr absl::StatusCode INVALID_ARGUMENT = absl::StatusCode::kInvalidArgument;
  static constexpr absl::StatusCode DEADLINE_EXCEEDED = absl::StatusCode::kDeadlineExceeded;
  static constexpr absl::StatusCode NOT_FOUND = absl::StatusCode::kNotFound;
  static constexpr absl::StatusCode ALREADY_EXISTS = absl::StatusCode::kAlreadyExists;
  static constexpr absl::StatusCode PERMISSION_DENIED = absl::StatusCode::kPermissionDenied;
  static constexpr absl::StatusCode UNAUTHENTICATED = absl::StatusCode::kUnauthenticated;
  static constexpr absl::StatusCode RESOURCE_EXHAUSTED = absl::StatusCode::kResourceExhausted;
  static constexpr absl::StatusCode FAILED_PRECONDITION = absl::StatusCode::kFailedPrecondition;
  static constexpr absl::StatusCode ABORTED = absl::StatusCode::kAborted;
  static constexpr absl::StatusCode OUT_OF_RANGE = absl::StatusCode::kOutOfRange;
  static constexpr absl::StatusCode UNIMPLEMENTED = absl::StatusCode::kUnimplemented;
  static constexpr absl::StatusCode INTERNAL = absl::StatusCode::kInternal;
  static constexpr absl::StatusCode UNAVAILABLE = absl::StatusCode::kUnavailable;
  static constexpr absl::StatusCode DATA_LOSS = absl::StatusCode::kDataLoss;

 private:
  absl::StatusCode code_;
};

inline constexpr absl::StatusCode OK = Code::OK;
inline constexpr absl::StatusCode CANCELLED = Code::CANCELLED;
inline constexpr absl::StatusCode UNKNOWN = Code::UNKNOWN;
inline constexpr absl::StatusCode INVALID_ARGUMENT = Code::INVALID_ARGUMENT;
inline constexpr absl::StatusCode DEADLINE_EXCEEDED = Code::DEADLINE_EXCEEDED;
inline constexpr absl::StatusCode NOT_FOUND = Code::NOT_FOUND;
inline constexpr absl::StatusCode ALREADY_EXISTS = Code::ALREADY_EXISTS;
inline constexpr absl::StatusCode PERMISSION_DENIED = Code::PERMISSION_DENIED;
inline constexpr absl::StatusCode UNAUTHENTICATED = Code::UNAUTHENTICATED;
inline constexpr absl::StatusCode RESOURCE_EXHAUSTED = Code::RESOURCE_EXHAUSTED;
inline constexpr absl::StatusCode FAILED_PRECONDITION = Code::FAILED_PRECONDITION;
inline constexpr absl::StatusCode ABORTED = Code::ABORTED;
inline constexpr absl::StatusCode OUT_OF_RANGE = Code::OUT_OF_RANGE;
inline constexpr absl::StatusCode UNIMPLEMENTED = Code::UNIMPLEMENTED;
inline constexpr absl::StatusCode INTERNAL = Code::INTERNAL;
inline constexpr absl::StatusCode UNAVAILABLE = Code::UNAVAILABLE;
inline constexpr absl::StatusCode DATA_LOSS = Code::DATA_LOSS;

}  // namespace error

#ifdef GRADFLOW_TENSORFLOW_V1
// Holds an absl::Status, because that class is final.
class Status {
 public:
  Status() = default;
  Status(absl::Status status) : status_(std::move(status)) {}  // NOLINT: both are one
  Status(absl::StatusCode code, absl::string_view message) : status_(code, message) {}
  operator absl::Status() const { return status_; }  // NOLINT: the same

  static absl::Status OK() { return absl::OkStatus(); }
  bool ok() const { return status_.ok(); }
  absl::StatusCode code() const { return status_.code(); }
  int raw_code() const { return status_.raw_code(); }
  absl::string_view message() const { return status_.message(); }
  // The message, under its TensorFlow 1.15 name.
  std::string error_message() const { return std::string(status_.message()); }
  std::string ToString() const { return status_.ToString(); }
  // Keeps the first error.
  void Update(const absl::Status& status) { status_.Update(status); }
  void IgnoreError() const {}

  friend bool operator==(const Status& a, const Status& b) { return a.status_ == b.status_; }
  friend bool operator==(const Status& a, const absl::Status& b) { return a.status_ == b; }
  friend bool operator==(const absl::Status& a, const Status& b) { return a == b.status_; }
  friend bool operator!=(const Status& a, const Status& b) { return a.status_ != b.status_; }
  friend bool operator!=(const Status& a, const absl::Status& b) { return a.status_ != b; }
  friend bool operator!=(const absl::Status& a, const Status& b) { return a != b.status_; }
  friend std::ostream& operator<<(std::ostream& os, const Status& s) { return os << s.status_; }

 private:
  absl::Status status_;
};
#else
using absl::Status;
#endif

inline absl::Status OkStatus() { return absl::OkStatus(); }

template <typename T>
using StatusOr = absl::StatusOr<T>;

// "INVALID_ARGUMENT"
inline std::string error_name(absl::StatusCode code) { return absl::StatusCodeToString(code); }

}  // namespace tensorflow

// Uses a loop, because an `if` could capture an `else` after the macro. The copy keeps a status
// that is part of a temporary object alive.
#define GRADFLOW_COMPAT_CHECK_OK(value, severity)                                               \
  for (const ::absl::Status& gradflow_checked = ::absl::Status(value); !gradflow_checked.ok();) \
  LOG(severity) << "Non-OK-status: " #value " status: " << gradflow_checked << " "

// Ends the program unless the status is OK.
#define TF_CHECK_OK(value) GRADFLOW_COMPAT_CHECK_OK(value, FATAL)
#define TF_QCHECK_OK(value) GRADFLOW_COMPAT_CHECK_OK(value, FATAL)
#ifdef NDEBUG
#define TF_DCHECK_OK(value) \
  while (false) TF_CHECK_OK(value)
#else
#define TF_DCHECK_OK(value) TF_CHECK_OK(value)
#endif

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_H_
