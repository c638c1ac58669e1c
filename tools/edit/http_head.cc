#include "tools/edit/http_head.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/version.hpp>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gradflow::tools {
namespace {

namespace http = ::boost::beast::http;

std::string ToString(::boost::beast::string_view text) {
  return std::string(text.data(), text.size());
}

}  // namespace

HeadBuffer::State HeadBuffer::Add(absl::string_view bytes) {
  bytes_.append(bytes.data(), bytes.size());
  for (;;) {
    const size_t found = bytes_.find('\n', searched_);
    const size_t line_end = found == std::string::npos ? bytes_.size() : found + 1;
    if (line_end > kMaxHeadBytes || line_end - line_begin_ > kMaxHeadLineBytes) {
      return State::kTooLarge;
    }
    searched_ = line_end;
    if (found == std::string::npos) return State::kIncomplete;
    const absl::string_view line(bytes_.data() + line_begin_, line_end - line_begin_);
    line_begin_ = line_end;
    if (line == "\r\n") return State::kComplete;
    if (++lines_ > kMaxHeadLines) return State::kTooLarge;
  }
}

void HeadBuffer::Clear() {
  // Assigning an empty string would keep the memory.
  std::string().swap(bytes_);
  *this = HeadBuffer();
}

size_t HttpHead::Count(absl::string_view name) const {
  size_t count = 0;
  for (const auto& field : fields) count += absl::EqualsIgnoreCase(field.first, name) ? 1 : 0;
  return count;
}

absl::string_view HttpHead::Get(absl::string_view name) const {
  for (const auto& field : fields) {
    if (absl::EqualsIgnoreCase(field.first, name)) return field.second;
  }
  return "";
}

HttpRefusal HeadTooLarge() {
  return {431,
          absl::StrCat("expected a head of at most ", kMaxHeadBytes, " bytes and ", kMaxHeadLines,
                       " lines, each of at most ", kMaxHeadLineBytes, " bytes")};
}

std::optional<HttpRefusal> ParseHttpHead(absl::string_view bytes, HttpHead* head) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(kMaxHeadBytes));
  // The caller checks the length of the body when it knows the sender.
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  ::boost::beast::error_code error;
  const size_t parsed = parser.put(::boost::asio::buffer(bytes.data(), bytes.size()), error);
  bool is_bad_length = error == http::error::bad_content_length;
#if BOOST_BEAST_VERSION >= 347
  // Earlier versions also report this as a bad length.
  is_bad_length = is_bad_length || error == http::error::multiple_content_length;
#endif
  if (is_bad_length) {
    return HttpRefusal{411, "expected the length of the body"};
  }
  if (error == http::error::bad_transfer_encoding) {
    return HttpRefusal{400, "expected a body without encoding"};
  }
  if (error == http::error::header_limit) return HeadTooLarge();
  if (error || !parser.is_header_done() || parsed != bytes.size()) {
    return HttpRefusal{400, "expected a request of HTTP/1.1"};
  }
  head->method = ToString(parser.get().method_string());
  head->target = ToString(parser.get().target());
  for (const auto& field : parser.get()) {
    head->fields.emplace_back(ToString(field.name_string()), ToString(field.value()));
  }
  return std::nullopt;
}

std::string HttpResponseHead(int code,
                             const std::vector<std::pair<absl::string_view, std::string>>& fields) {
  std::string text =
      absl::StrCat("HTTP/1.1 ", code, " ",
                   ToString(http::obsolete_reason(static_cast<http::status>(code))), "\r\n");
  for (const auto& [name, value] : fields) absl::StrAppend(&text, name, ": ", value, "\r\n");
  absl::StrAppend(&text, "Connection: close\r\n\r\n");
  return text;
}

}  // namespace gradflow::tools
