// Status: absl::Status, as in TensorFlow today.
//
// Programs of TensorFlow 1.x, which say Status::OK() and error_message(), link
// gradflow::tensorflow_compat_v1. It defines GRADFLOW_TENSORFLOW_V1, and Status is a class that
// holds an absl::Status, has the additional names, and converts to and from it. What the library
// compiles has no Status of its own in its interface, so both kinds of program link it. Expressions
// that programs return (errors::X(), OkStatus(), Status::OK(), TF_RETURN_IF_ERROR) have type
// absl::Status in both, so that lambdas may mix them without a return type.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STATUS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// The codes with the names of error_codes.proto. Their type is Abseil's, so that both compare.
namespace error {

using Code = absl::StatusCode;

inline constexpr Code OK = Code::kOk;
inline constexpr Code CANCELLED = Code::kCancelled;
inline constexpr Code UNKNOWN = Code::kUnknown;
inline constexpr Code INVALID_ARGUMENT = Code::kInvalidArgument;
inline constexpr Code DEADLINE_EXCEEDED = Code::kDeadlineExceeded;
inline constexpr Code NOT_FOUND = Code::kNotFound;
inline constexpr Code ALREADY_EXISTS = Code::kAlreadyExists;
inline constexpr Code PERMISSION_DENIED = Code::kPermissionDenied;
inline constexpr Code UNAUTHENTICATED = Code::kUnauthenticated;
inline constexpr Code RESOURCE_EXHAUSTED = Code::kResourceExhausted;
inline constexpr Code FAILED_PRECONDITION = Code::kFailedPrecondition;
inline constexpr Code ABORTED = Code::kAborted;
inline constexpr Code OUT_OF_RANGE = Code::kOutOfRange;
inline constexpr Code UNIMPLEMENTED = Code::kUnimplemented;
inline constexpr Code INTERNAL = Code::kInternal;
inline constexpr Code UNAVAILABLE = Code::kUnavailable;
inline constexpr Code DATA_LOSS = Code::kDataLoss;

}  // namespace error

#ifdef GRADFLOW_TENSORFLOW_V1
// Holds an absl::Status, which is final.
class Status {
 public:
  Status() = default;
  Status(absl::Status status) : status_(std::move(status)) {}  // NOLINT: both are one
  Status(error::Code code, StringPiece message) : status_(code, message) {}
  operator absl::Status() const { return status_; }  // NOLINT: the same

  static absl::Status OK() { return absl::OkStatus(); }
  bool ok() const { return status_.ok(); }
  error::Code code() const { return status_.code(); }
  int raw_code() const { return status_.raw_code(); }
  StringPiece message() const { return status_.message(); }
  // The message, by its name in TensorFlow 1.15.
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
inline std::string error_name(error::Code code) { return absl::StatusCodeToString(code); }

}  // namespace tensorflow

// A loop: an `if` could capture an `else` after the macro.
#define GRADFLOW_COMPAT_CHECK_OK(value, severity)                                \
  for (const ::absl::Status gradflow_checked = (value); !gradflow_checked.ok();) \
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
