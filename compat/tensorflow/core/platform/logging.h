// LOG, VLOG, CHECK and DCHECK, as in TensorFlow. They print to standard error. LOG(FATAL) and a
// failed CHECK abort the program.
//
// The environment variables TF_CPP_MIN_LOG_LEVEL (0 to 3, for INFO to FATAL) and
// TF_CPP_MAX_VLOG_LEVEL select the messages to print. They are read at the first message.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_LOGGING_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_LOGGING_H_

#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

inline constexpr int INFO = 0;
inline constexpr int WARNING = 1;
inline constexpr int ERROR = 2;
inline constexpr int FATAL = 3;
inline constexpr int NUM_SEVERITIES = 4;

namespace compat_internal {

// Collects a message. The destructor prints it.
class LogMessage : public std::ostringstream {
 public:
  LogMessage(const char* file, int line, int severity);
  ~LogMessage() override;

 protected:
  void Print() const;

 private:
  const char* const file_;
  const int line_;
  const int severity_;
};

class LogMessageFatal : public LogMessage {
 public:
  LogMessageFatal(const char* file, int line);
  [[noreturn]] ~LogMessageFatal() override;
};

bool VlogIsOn(int level);

template <typename T, typename = void>
struct IsStreamable : std::false_type {};
template <typename T>
struct IsStreamable<
    T, std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

template <typename T>
void PrintOperand(std::ostream& os, const T& value) {
  if constexpr (std::is_null_pointer_v<T>) {
    os << "nullptr";
  } else if constexpr (IsStreamable<T>::value) {
    os << value;
  } else if constexpr (std::is_enum_v<T>) {
    os << static_cast<std::underlying_type_t<T>>(value);
  } else {
    os << sizeof(T) << " bytes";
  }
}

// Returns null if op(a, b), otherwise the failure message.
template <typename A, typename B, typename Op>
std::unique_ptr<std::string> CheckOp(const A& a, const B& b, Op op, const char* text) {
  if (__builtin_expect(static_cast<bool>(op(a, b)), 1)) return nullptr;
  std::ostringstream os;
  os << "Check failed: " << text << " (";
  PrintOperand(os, a);
  os << " vs. ";
  PrintOperand(os, b);
  os << ") ";
  return std::make_unique<std::string>(os.str());
}

// Suppresses warnings about operands of different signedness in the caller's code.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
struct CheckEq {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};
struct CheckNe {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a != b;
  }
};
struct CheckLt {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a < b;
  }
};
struct CheckLe {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a <= b;
  }
};
struct CheckGt {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a > b;
  }
};
struct CheckGe {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return a >= b;
  }
};
#pragma GCC diagnostic pop

template <typename T>
T&& CheckNotNull(const char* file, int line, const char* text, T&& pointer) {
  if (pointer == nullptr) LogMessageFatal(file, line) << text;
  return std::forward<T>(pointer);
}

}  // namespace compat_internal
}  // namespace tensorflow

#define GRADFLOW_COMPAT_LOG_INFO \
  ::tensorflow::compat_internal::LogMessage(__FILE__, __LINE__, ::tensorflow::INFO)
#define GRADFLOW_COMPAT_LOG_WARNING \
  ::tensorflow::compat_internal::LogMessage(__FILE__, __LINE__, ::tensorflow::WARNING)
#define GRADFLOW_COMPAT_LOG_ERROR \
  ::tensorflow::compat_internal::LogMessage(__FILE__, __LINE__, ::tensorflow::ERROR)
#define GRADFLOW_COMPAT_LOG_FATAL ::tensorflow::compat_internal::LogMessageFatal(__FILE__, __LINE__)
#ifdef NDEBUG
#define GRADFLOW_COMPAT_LOG_DFATAL GRADFLOW_COMPAT_LOG_ERROR
#else
#define GRADFLOW_COMPAT_LOG_DFATAL GRADFLOW_COMPAT_LOG_FATAL
#endif
#define GRADFLOW_COMPAT_LOG_QFATAL GRADFLOW_COMPAT_LOG_FATAL

#define LOG(severity) GRADFLOW_COMPAT_LOG_##severity
#define VLOG_IS_ON(level) (::tensorflow::compat_internal::VlogIsOn(level))
// Uses a loop, because an `if` could capture an `else` after the macro.
#define VLOG(level)                                                                  \
  for (bool gradflow_vlog = VLOG_IS_ON(level); gradflow_vlog; gradflow_vlog = false) \
  GRADFLOW_COMPAT_LOG_INFO

#define CHECK(condition) \
  while (__builtin_expect(!(condition), 0)) LOG(FATAL) << "Check failed: " #condition " "

#define GRADFLOW_COMPAT_CHECK_OP(function, op, a, b)                              \
  while (auto gradflow_check_failure = ::tensorflow::compat_internal::CheckOp(    \
             a, b, ::tensorflow::compat_internal::function(), #a " " #op " " #b)) \
  LOG(FATAL) << *gradflow_check_failure
#define CHECK_EQ(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckEq, ==, a, b)
#define CHECK_NE(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckNe, !=, a, b)
#define CHECK_LT(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckLt, <, a, b)
#define CHECK_LE(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckLe, <=, a, b)
#define CHECK_GT(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckGt, >, a, b)
#define CHECK_GE(a, b) GRADFLOW_COMPAT_CHECK_OP(CheckGe, >=, a, b)
#define CHECK_NOTNULL(pointer)                                                              \
  ::tensorflow::compat_internal::CheckNotNull(__FILE__, __LINE__, "'" #pointer "' is null", \
                                              (pointer))
#define QCHECK(condition) CHECK(condition)
#define QCHECK_EQ(a, b) CHECK_EQ(a, b)
#define QCHECK_NE(a, b) CHECK_NE(a, b)
#define QCHECK_LT(a, b) CHECK_LT(a, b)
#define QCHECK_LE(a, b) CHECK_LE(a, b)
#define QCHECK_GT(a, b) CHECK_GT(a, b)
#define QCHECK_GE(a, b) CHECK_GE(a, b)

// Compiled but not evaluated if NDEBUG is defined.
#ifdef NDEBUG
#define GRADFLOW_COMPAT_DEBUG_ONLY while (false)
#else
#define GRADFLOW_COMPAT_DEBUG_ONLY
#endif
#define DCHECK(condition) GRADFLOW_COMPAT_DEBUG_ONLY CHECK(condition)
#define DCHECK_EQ(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_EQ(a, b)
#define DCHECK_NE(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_NE(a, b)
#define DCHECK_LT(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_LT(a, b)
#define DCHECK_LE(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_LE(a, b)
#define DCHECK_GT(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_GT(a, b)
#define DCHECK_GE(a, b) GRADFLOW_COMPAT_DEBUG_ONLY CHECK_GE(a, b)

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_LOGGING_H_
