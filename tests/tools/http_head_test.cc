// Tests of the limits for request heads, and of their parser.
#include "tools/edit/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace gradflow {
namespace testing {
namespace {

using ::gradflow::tools::HeadBuffer;
using ::gradflow::tools::HttpHead;
using ::gradflow::tools::HttpRefusal;
using ::gradflow::tools::HttpResponseHead;
using ::gradflow::tools::kMaxHeadBytes;
using ::gradflow::tools::kMaxHeadLineBytes;
using ::gradflow::tools::kMaxHeadLines;
using ::gradflow::tools::ParseHttpHead;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using State = ::gradflow::tools::HeadBuffer::State;

constexpr char kFirstLine[] = "GET / HTTP/1.1\r\n";

// Returns the state after all bytes, or after the bytes that decide it. Expects the same state if
// the bytes arrive at once, one by one, or in parts.
State StateOf(const std::string& bytes) {
  HeadBuffer whole;
  const State state = whole.Add(bytes);
  for (const size_t part : {size_t{1}, size_t{7}, size_t{4096}}) {
    HeadBuffer buffer;
    State last = State::kIncomplete;
    for (size_t i = 0; i < bytes.size() && last == State::kIncomplete; i += part) {
      last = buffer.Add(absl::string_view(bytes).substr(i, part));
    }
    EXPECT_EQ(last, state) << "in parts of " << part;
    if (state == State::kComplete && last == state) {
      EXPECT_EQ(buffer.head(), whole.head());
    }
  }
  return state;
}

// Returns a head with lines of the given sizes after the first line.
std::string HeadOfLines(const std::vector<size_t>& sizes) {
  std::string head = kFirstLine;
  for (const size_t size : sizes) absl::StrAppend(&head, "a:", std::string(size - 4, 'b'), "\r\n");
  return head + "\r\n";
}

TEST(HttpHeadTest, EndsAtTheEmptyLine) {
  HeadBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.Add("GET / HTTP/1.1\r\nHost: h\r\n\r"), State::kIncomplete);
  EXPECT_FALSE(buffer.empty());
  EXPECT_EQ(buffer.Add("\n{}\r\n\r\n"), State::kComplete);
  EXPECT_EQ(buffer.head(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(buffer.rest(), "{}\r\n\r\n");
  EXPECT_EQ(StateOf(""), State::kIncomplete);
  // Lines must end with CR and LF.
  EXPECT_EQ(StateOf("GET / HTTP/1.1\nHost: h\n\n"), State::kIncomplete);
}

TEST(HttpHeadTest, LimitsTheNumberOfLines) {
  EXPECT_EQ(StateOf(HeadOfLines(std::vector<size_t>(kMaxHeadLines - 1, 5))), State::kComplete);
  EXPECT_EQ(StateOf(HeadOfLines(std::vector<size_t>(kMaxHeadLines, 5))), State::kTooLarge);
  EXPECT_EQ(StateOf(std::string(kMaxHeadLines, '\n')), State::kIncomplete);
  EXPECT_EQ(StateOf(std::string(kMaxHeadLines + 1, '\n')), State::kTooLarge);
}

TEST(HttpHeadTest, LimitsTheLengthOfLines) {
  EXPECT_EQ(StateOf(HeadOfLines({kMaxHeadLineBytes})), State::kComplete);
  EXPECT_EQ(StateOf(HeadOfLines({kMaxHeadLineBytes + 1})), State::kTooLarge);
  // The limit also applies to a line without an end.
  EXPECT_EQ(StateOf(std::string(kMaxHeadLineBytes, 'x')), State::kIncomplete);
  EXPECT_EQ(StateOf(std::string(kMaxHeadLineBytes + 1, 'x')), State::kTooLarge);
}

TEST(HttpHeadTest, LimitsAllBytes) {
  const size_t first = sizeof(kFirstLine) - 1;
  const size_t half = kMaxHeadLineBytes / 2;
  std::vector<size_t> sizes(7, half);
  sizes.push_back(half - first - 2);
  const std::string head = HeadOfLines(sizes);
  EXPECT_EQ(head.size(), kMaxHeadBytes);
  EXPECT_EQ(StateOf(head), State::kComplete);
  // The body does not count.
  EXPECT_EQ(StateOf(head + std::string(kMaxHeadBytes, 'x')), State::kComplete);
  ++sizes.back();
  EXPECT_EQ(StateOf(HeadOfLines(sizes)), State::kTooLarge);
  // The parser accepts what the buffer accepts.
  HttpHead parsed;
  EXPECT_FALSE(ParseHttpHead(head, &parsed).has_value());
  EXPECT_EQ(parsed.fields.size(), 8u);
}

TEST(HttpHeadTest, ParsesFields) {
  HttpHead head;
  const std::optional<HttpRefusal> refusal = ParseHttpHead(
      "POST /api/check?a=b HTTP/1.1\r\nHost: h:1\r\nX-Two:  1 \r\nx-two: 2\r\nEmpty:\r\n\r\n",
      &head);
  ASSERT_FALSE(refusal.has_value()) << refusal->reason;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/api/check?a=b");
  EXPECT_THAT(head.fields, ElementsAre(Pair("Host", "h:1"), Pair("X-Two", "1"), Pair("x-two", "2"),
                                       Pair("Empty", "")));
  EXPECT_EQ(head.Count("X-TWO"), 2u);
  EXPECT_EQ(head.Get("X-TWO"), "1");
  EXPECT_EQ(head.Count("empty"), 1u);
  EXPECT_EQ(head.Count("none"), 0u);
  EXPECT_EQ(head.Get("none"), "");
}

TEST(HttpHeadTest, RefusesMalformedHeads) {
  const auto refusal = [](const std::string& text) {
    HttpHead head;
    const std::optional<HttpRefusal> found = ParseHttpHead(text, &head);
    return found.has_value() ? absl::StrCat(found->code, " ", found->reason) : "";
  };
  const std::string first = kFirstLine;
  EXPECT_EQ(refusal(first + "a: b\r\n\r\n"), "");
  EXPECT_EQ(refusal("GET / HTTP/1.0\r\n\r\n"), "");
  const std::string malformed = "400 expected a request of HTTP/1.1";
  for (const std::string& text :
       {std::string(), std::string("\r\n\r\n"), std::string("GET / HTTP/2.0\r\n\r\n"),
        std::string("GET /\r\n\r\n"), std::string("G(T / HTTP/1.1\r\n\r\n"),
        std::string("GET  / HTTP/1.1\r\n\r\n"), first, first + "a: b\r\n", first + "a b\r\n\r\n",
        first + "a : b\r\n\r\n", first + ": b\r\n\r\n", first + "a: b\nc: d\r\n\r\n",
        first + std::string("a: \0\r\n\r\n", 9), first + "a: b\r\n\r\nmore"}) {
    EXPECT_EQ(refusal(text), malformed) << text;
  }
  // The length of the body is ambiguous.
  const std::string no_length = "411 expected the length of the body";
  EXPECT_EQ(refusal(first + "Content-Length: x\r\n\r\n"), no_length);
  EXPECT_EQ(refusal(first + "Content-Length: -1\r\n\r\n"), no_length);
  EXPECT_EQ(refusal(first + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), no_length);
  EXPECT_EQ(refusal(first + "Content-Length: 99999999999999999999\r\n\r\n"), no_length);
  EXPECT_EQ(refusal(first + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), no_length);
  // The caller must check these.
  EXPECT_EQ(refusal(first + "Content-Length: 18446744073709551615\r\n\r\n"), "");
  EXPECT_EQ(refusal(first + "Transfer-Encoding: chunked\r\n\r\n"), "");
}

TEST(HttpHeadTest, FormatsHeadsOfAnswers) {
  EXPECT_EQ(HttpResponseHead(431, {{"A", "b"}}),
            "HTTP/1.1 431 Request Header Fields Too Large\r\nA: b\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(HttpResponseHead(200, {}), HasSubstr("HTTP/1.1 200 OK\r\n"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
