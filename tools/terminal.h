// TerminalOutput: a stream that escapes control characters on a terminal.
#ifndef GRADFLOW_TOOLS_TERMINAL_H_
#define GRADFLOW_TOOLS_TERMINAL_H_

#include <memory>
#include <ostream>
#include <streambuf>

namespace gradflow::tools {

// Names, attributes, documentation and paths come from untrusted files. On a terminal, their
// control characters are escaped, except line breaks and tabs. Elsewhere, the text is unchanged.
class TerminalOutput {
 public:
  // Writes to `out`, which has the descriptor `fd`. Both are borrowed.
  TerminalOutput(std::ostream* out, int fd);
  // Writes the rest of the text.
  ~TerminalOutput();

  std::ostream& stream() { return *stream_; }

 private:
  // Null if `fd` is not a terminal.
  std::unique_ptr<std::streambuf> buffer_;
  std::unique_ptr<std::ostream> own_;
  std::ostream* stream_;
};

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_TERMINAL_H_
