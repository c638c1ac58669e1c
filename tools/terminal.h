// TerminalOutput: a stream whose text no terminal acts on.
#ifndef GRADFLOW_TOOLS_TERMINAL_H_
#define GRADFLOW_TOOLS_TERMINAL_H_

#include <memory>
#include <ostream>
#include <streambuf>

namespace gradflow::tools {

// Names, attributes, documentation and paths come from files that anybody may have made. On a
// terminal, their control characters are escaped. Line breaks and tabs are kept. Elsewhere, the
// text is unchanged.
class TerminalOutput {
 public:
  // Writes to `out`, whose descriptor is `fd`. Both are borrowed.
  TerminalOutput(std::ostream* out, int fd);
  // Writes the rest.
  ~TerminalOutput();

  std::ostream& stream() { return *stream_; }

 private:
  // Null if `fd` is no terminal.
  std::unique_ptr<std::streambuf> buffer_;
  std::unique_ptr<std::ostream> own_;
  std::ostream* stream_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TERMINAL_H_
