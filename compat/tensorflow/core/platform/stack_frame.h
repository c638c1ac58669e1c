// StackFrame: a line of a stack trace.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_STACK_FRAME_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_STACK_FRAME_H_

#include <string>
#include <utility>

namespace tensorflow {

struct StackFrame {
  StackFrame() = default;
  StackFrame(std::string file, int line, std::string function)
      : file_name(std::move(file)), line_number(line), function_name(std::move(function)) {}

  friend bool operator==(const StackFrame& a, const StackFrame& b) {
    return a.file_name == b.file_name && a.line_number == b.line_number &&
           a.function_name == b.function_name;
  }
  friend bool operator!=(const StackFrame& a, const StackFrame& b) { return !(a == b); }
  template <typename H>
  friend H AbslHashValue(H h, const StackFrame& f) {
    return H::combine(std::move(h), f.file_name, f.line_number, f.function_name);
  }

  std::string file_name;
  int line_number = 0;
  std::string function_name;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_STACK_FRAME_H_
