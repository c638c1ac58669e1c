#include "tests/testing/http_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gradflow {
namespace testing {
namespace {

bool HasField(const HttpFields& fields, absl::string_view name) {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return absl::EqualsIgnoreCase(field.first, name); });
}

}  // namespace

std::string HttpAnswer::Field(absl::string_view name) const {
  for (const auto& field : fields) {
    if (absl::EqualsIgnoreCase(field.first, name)) return field.second;
  }
  return "";
}

HttpConnection::HttpConnection(int port, int receive_buffer_bytes)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  EXPECT_GE(socket_, 0);
  if (receive_buffer_bytes > 0) {
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                         sizeof(receive_buffer_bytes)),
              0);
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
}

HttpConnection::~HttpConnection() { close(socket_); }

bool HttpConnection::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

void HttpConnection::EndSending() const { shutdown(socket_, SHUT_WR); }

std::string HttpConnection::Receive(size_t size) const {
  std::string text;
  char buffer[4096];
  while (text.size() < size) {
    const ssize_t received = recv(socket_, buffer, std::min(sizeof(buffer), size - text.size()), 0);
    if (received <= 0) break;
    text.append(buffer, static_cast<size_t>(received));
  }
  return text;
}

std::string HttpConnection::ReceiveAll() const {
  return Receive(std::numeric_limits<size_t>::max());
}

std::string HttpRequestText(int port, absl::string_view method, absl::string_view target,
                            const HttpFields& fields, absl::string_view body) {
  std::string text = absl::StrCat(method, " ", target, " HTTP/1.1\r\n");
  if (!HasField(fields, "Host")) absl::StrAppend(&text, "Host: 127.0.0.1:", port, "\r\n");
  for (const auto& [name, value] : fields) absl::StrAppend(&text, name, ": ", value, "\r\n");
  if (method != "GET" && !HasField(fields, "Content-Length")) {
    absl::StrAppend(&text, "Content-Length: ", body.size(), "\r\n");
  }
  return absl::StrCat(text, "\r\n", body);
}

HttpAnswer ParseHttpAnswer(absl::string_view text) {
  HttpAnswer answer;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits("\r\n\r\n", 1));
  answer.body = std::string(parts.second);
  for (const absl::string_view line : absl::StrSplit(parts.first, "\r\n")) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (answer.status == 0) {
      if (!absl::StartsWith(line, "HTTP/1.1 ") ||
          !absl::SimpleAtoi(line.substr(9, 3), &answer.status)) {
        break;
      }
    } else {
      answer.fields.push_back(field);
    }
  }
  return answer;
}

HttpAnswer FetchHttp(int port, absl::string_view method, absl::string_view target,
                     const HttpFields& fields, absl::string_view body) {
  const HttpConnection connection(port);
  // The server may answer before it has read everything.
  (void)connection.Send(HttpRequestText(port, method, target, fields, body));
  return ParseHttpAnswer(connection.ReceiveAll());
}

}  // namespace testing
}  // namespace gradflow
