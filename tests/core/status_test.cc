#include "gradflow/core/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gradflow/core/call_safely.h"

namespace gradflow {
namespace {

using ::testing::EndsWith;

TEST(Printable, EscapesControlSequences) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"", ""},
      {"plain ~ text", "plain ~ text"},
      {"\x1b[31m\n\t\x7f", "\\x1b[31m\\x0a\\x09\\x7f"},
      // Letters of two, three and four bytes.
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      // The control sequence introducer, which is a C1 control character, and the last C1 control
      // character.
      {"\xc2\x9b\xc2\x9f\xc2\xa0", "\\xc2\\x9b\\xc2\\x9f\xc2\xa0"},
      // Invalid UTF-8: a single byte, a truncated letter, an overlong '/', a surrogate, beyond
      // Unicode.
      {"\xff\x80", "\\xff\\x80"},
      {"\xe2\x82", "\\xe2\\x82"},
      {"\xe2\x82z", "\\xe2\\x82z"},
      {"\xc0\xaf", "\\xc0\\xaf"},
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      // A character that reverses the direction of text, and a line separator.
      {"\xe2\x80\xae", "\\xe2\\x80\\xae"},
      {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
      {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
  };
  for (const auto& c : cases) EXPECT_EQ(errors::Printable(c.text), c.expected);
}

TEST(Prefix, EscapesTheMessageButNotItsLines) {
  const absl::Status status = errors::InvalidArgument("mode is '\x1b[2J\xf0'\n\tat line 1");
  const absl::Status prefixed = errors::Prefix("node 'n': ", status);
  EXPECT_EQ(prefixed.message(), "node 'n': mode is '\\x1b[2J\\xf0'\n\tat line 1");
  EXPECT_EQ(errors::Prefix("x: ", prefixed).message(),
            "x: node 'n': mode is '\\x1b[2J\\xf0'\n\tat line 1");
  EXPECT_TRUE(errors::Prefix("x: ", absl::OkStatus()).ok());
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(errors::Printable("12345", 5), "12345");
  EXPECT_EQ(errors::Printable("123456", 5), "12345...");
  EXPECT_EQ(errors::Printable(std::string(1 << 20, 'x')), std::string(200, 'x') + "...");
  // The cut is not inside a letter or an escape.
  EXPECT_EQ(errors::Printable("12\xe2\x82\xac", 4), "12...");
  EXPECT_EQ(errors::Printable("12\x1b", 5), "12...");
  EXPECT_EQ(errors::Printable("12\x1b", 6), "12\\x1b");
}

TEST(CallSafely, EscapesAndCutsTheTextOfAnException) {
  const absl::Status status = CallSafely(
      []() -> absl::Status { throw std::runtime_error("\x1b[31m" + std::string(1 << 20, 'x')); });
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(::testing::StartsWith("an exception was thrown: \\x1b[31mxxx"),
                               EndsWith("xxx...")));
  EXPECT_LT(status.message().size(), 300u);
}

}  // namespace
}  // namespace gradflow
