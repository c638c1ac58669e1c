#include "tools/terminal.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "gradflow/core/status.h"

namespace gradflow::tools {
namespace {

// Collects a line and writes it at its end or at a flush, so that characters of several bytes are
// not split.
class EscapingBuffer final : public std::streambuf {
 public:
  explicit EscapingBuffer(std::ostream* out) : out_(out) {}

 private:
  // The maximum number of bytes of a line that are kept.
  static constexpr size_t kMaxLine = size_t{1} << 16;

  int_type overflow(int_type c) override {
    if (c == traits_type::eof()) return traits_type::not_eof(c);
    line_.push_back(static_cast<char>(c));
    if (c == '\n' || line_.size() >= kMaxLine) Write();
    return *out_ ? c : traits_type::eof();
  }
  int sync() override {
    Write();
    out_->flush();
    return *out_ ? 0 : -1;
  }
  void Write() { *out_ << errors::PrintableLines(std::exchange(line_, "")); }

  std::ostream* const out_;
  std::string line_;
};

}  // namespace

TerminalOutput::TerminalOutput(std::ostream* out, int fd) : stream_(out) {
  if (isatty(fd) != 1) return;
  buffer_ = std::make_unique<EscapingBuffer>(out);
  own_ = std::make_unique<std::ostream>(buffer_.get());
  stream_ = own_.get();
}

TerminalOutput::~TerminalOutput() { stream_->flush(); }

}  // namespace gradflow::tools
