#include "tests/testing/http_fuzz_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/edit/edit_access.h"
#include "tools/edit/http_head.h"

namespace gradflow::testing {
namespace {

using ::gradflow::tools::EditAccess;
using ::gradflow::tools::EditRequest;
using ::gradflow::tools::EditSecrets;
using ::gradflow::tools::HeadBuffer;
using ::gradflow::tools::kMaxHeadBytes;

constexpr int kPort = 8080;
constexpr size_t kMaxBodyBytes = 1000;

// Adds the bytes in parts of this size until the state is decided.
HeadBuffer::State AddParts(absl::string_view bytes, size_t size, HeadBuffer* buffer) {
  HeadBuffer::State state = HeadBuffer::State::kIncomplete;
  for (; !bytes.empty() && state == HeadBuffer::State::kIncomplete;
       bytes.remove_prefix(std::min(size, bytes.size()))) {
    state = buffer->Add(bytes.substr(0, size));
    EXPECT_LE(buffer->capacity(), 2 * (kMaxHeadBytes + size));
  }
  return state;
}

bool IsLowerCase(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), absl::ascii_islower);
}

}  // namespace

void RunHttpHead(absl::string_view bytes) {
  HeadBuffer whole;
  const HeadBuffer::State state = AddParts(bytes, 4096, &whole);
  for (const size_t size : {size_t{1}, size_t{5}}) {
    HeadBuffer buffer;
    ASSERT_EQ(AddParts(bytes, size, &buffer), state);
    if (state == HeadBuffer::State::kComplete) {
      EXPECT_EQ(buffer.head(), whole.head());
    }
  }
  if (state != HeadBuffer::State::kComplete) return;
  const absl::string_view head = whole.head();
  EXPECT_TRUE(absl::StartsWith(bytes, head) && absl::EndsWith(head, "\r\n"));

  const EditSecrets secrets = {std::string(64, '1'), std::string(64, '2'), std::string(64, '3')};
  EditAccess access(secrets, kPort, kMaxBodyBytes);
  const EditRequest request = access.Check(head);
  const bool is_host = absl::StrContains(head, absl::StrCat("127.0.0.1:", kPort));
  switch (request.kind) {
    case EditRequest::Kind::kRefused:
      EXPECT_GE(request.refusal.code, 400);
      EXPECT_LT(request.refusal.code, 500);
      EXPECT_FALSE(request.refusal.reason.empty());
      EXPECT_LE(request.refusal.reason.size(), 100u);
      return;
    case EditRequest::Kind::kFirstPage:
      EXPECT_TRUE(is_host && absl::StrContains(head, secrets.token));
      // The token works once.
      EXPECT_NE(access.Check(head).kind, EditRequest::Kind::kFirstPage);
      return;
    case EditRequest::Kind::kPage:
      EXPECT_TRUE(is_host && absl::StrContains(head, secrets.cookie));
      return;
    case EditRequest::Kind::kCall:
      EXPECT_TRUE(is_host && absl::StrContains(head, secrets.cookie) &&
                  absl::StrContains(head, secrets.key));
      EXPECT_TRUE(absl::StrContains(head, access.origin()));
      EXPECT_LE(request.body_bytes, kMaxBodyBytes);
      EXPECT_FALSE(request.call.empty());
      EXPECT_TRUE(IsLowerCase(request.call)) << request.call;
      return;
  }
}

// The vocabulary of heads. In most of them, a space is a separate word.
constexpr absl::string_view kHttpWords =
    "GET POST HEAD PUT HTTP/1.1 HTTP/1.0 HTTP/2 / /api/ /api/check /?token= token= ? & = ; : , "
    "\r\n "
    "\r \n \t \r\n\r\n \r\n\t Host: Origin: Cookie: gradflow_8080= Content-Length: Content-Type: "
    "Content-Encoding: Transfer-Encoding: X-Gradflow-Key: Sec-Fetch-Site: Expect: Connection: "
    "Upgrade: "
    "http://127.0.0.1:8080 127.0.0.1:8080 localhost application/json 100-continue chunked gzip "
    "close "
    "same-origin none cross-site 0 1000 1001 \x80 \xff "
    "1111111111111111111111111111111111111111111111111111111111111111 "
    "2222222222222222222222222222222222222222222222222222222222222222 "
    "3333333333333333333333333333333333333333333333333333333333333333";

bool MutateHttpHead(MutationRandom* random, std::string* bytes) {
  for (int64_t i = random->Below(3); i >= 0; --i) MutateWords(random, kHttpWords, bytes);
  return true;
}

}  // namespace gradflow::testing
