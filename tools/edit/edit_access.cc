#include "tools/edit/edit_access.h"

#include <sys/random.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gradflow::tools {
namespace {

constexpr char kKeyHeader[] = "X-Gradflow-Key";
constexpr char kCallPath[] = "/api/";

absl::StatusOr<std::string> Secret() {
  std::string bytes(32, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("no random numbers for the token");
  }
  return absl::BytesToHexString(bytes);
}

// Takes the same time for all texts of the right length.
bool IsSecret(absl::string_view text, absl::string_view secret) {
  if (text.size() != secret.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    difference = difference | static_cast<unsigned char>(text[i] ^ secret[i]);
  }
  return difference == 0;
}

EditRequest Refused(HttpRefusal refusal) {
  EditRequest request;
  request.refusal = std::move(refusal);
  return request;
}

// Returns the value of the query parameter "token"; "" unless there is exactly one.
absl::string_view Token(absl::string_view query) {
  std::optional<absl::string_view> token;
  for (const absl::string_view parameter : absl::StrSplit(query, '&')) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    if (pair.first != "token") continue;
    if (token.has_value()) return "";
    token = pair.second;
  }
  return token.value_or("");
}

}  // namespace

absl::StatusOr<EditSecrets> EditSecrets::Make() {
  EditSecrets secrets;
  for (std::string* const secret : {&secrets.token, &secrets.cookie, &secrets.key}) {
    absl::StatusOr<std::string> made = Secret();
    if (!made.ok()) return made.status();
    *secret = *std::move(made);
  }
  return secrets;
}

EditAccess::EditAccess(EditSecrets secrets, int port, size_t max_body_bytes)
    : secrets_(std::move(secrets)),
      max_body_bytes_(max_body_bytes),
      origin_(absl::StrCat("http://127.0.0.1:", port)),
      // All ports of a host share its cookies.
      cookie_name_(absl::StrCat("gradflow_", port)) {}

std::string EditAccess::Url() const { return absl::StrCat(origin_, "/?token=", secrets_.token); }

std::string EditAccess::SetCookie() const {
  return absl::StrCat(cookie_name_, "=", secrets_.cookie, "; Path=/; HttpOnly; SameSite=Strict");
}

EditRequest EditAccess::Check(absl::string_view bytes) {
  HttpHead head;
  std::optional<HttpRefusal> malformed = ParseHttpHead(bytes, &head);
  if (malformed.has_value()) return Refused(*std::move(malformed));
  size_t body_bytes = 0;
  HttpRefusal refusal = CheckSender(head, &body_bytes);
  if (refusal.code != 0) return Refused(std::move(refusal));
  return head.method == "GET" ? CheckPage(head) : CheckCall(head, body_bytes);
}

bool EditAccess::HasCookie(const HttpHead& head) const {
  for (const absl::string_view part : absl::StrSplit(head.Get("Cookie"), absl::ByAnyChar("; "))) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == absl::string_view(cookie_name_)) {
      return IsSecret(pair.second, secrets_.cookie);
    }
  }
  return false;
}

HttpRefusal EditAccess::CheckSender(const HttpHead& head, size_t* body_bytes) const {
  // The host name of another site's page may resolve to this server.
  if (head.Count("Host") != 1 || absl::StrCat("http://", head.Get("Host")) != origin_) {
    return {421, "expected another host"};
  }
  const bool is_post = head.method == "POST";
  if (!is_post && head.method != "GET") return {405, "expected GET or POST"};
  if ((is_post || head.Count("Origin") > 0) && head.Get("Origin") != origin_) {
    return {403, "expected another origin"};
  }
  const absl::string_view site = head.Get("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return {403, "expected no other site"};
  }
  // A GET request has no body. An encoded body could be larger than its stated length.
  if (head.Count("Transfer-Encoding") > 0 || head.Count("Content-Encoding") > 0) {
    return {400, "expected a body without encoding"};
  }
  const absl::string_view stated = head.Get("Content-Length");
  uint64_t length = 0;
  if ((is_post || !stated.empty()) &&
      (head.Count("Content-Length") != 1 || !absl::SimpleAtoi(stated, &length))) {
    return {411, "expected the length of the body"};
  }
  if (!is_post) return length > 0 ? HttpRefusal{400, "expected no body"} : HttpRefusal();
  if (length > max_body_bytes_) {
    return {413, absl::StrCat("the body has ", length, " bytes, but at most ", max_body_bytes_,
                              " are allowed")};
  }
  *body_bytes = static_cast<size_t>(length);
  if (head.Get("Content-Type") != "application/json") return {415, "expected application/json"};
  if (!HasCookie(head) || head.Count(kKeyHeader) != 1 ||
      !IsSecret(head.Get(kKeyHeader), secrets_.key)) {
    return {403, "expected the page's own request; start `gradflow edit` again"};
  }
  return {};
}

EditRequest EditAccess::CheckPage(const HttpHead& head) {
  const std::pair<absl::string_view, absl::string_view> target =
      absl::StrSplit(head.target, absl::MaxSplits('?', 1));
  if (target.first != "/") return Refused({404, "expected the address of the page"});
  const bool is_right = IsSecret(Token(target.second), secrets_.token);
  EditRequest request;
  if (is_right && !is_token_used_) {
    is_token_used_ = true;
    request.kind = EditRequest::Kind::kFirstPage;
    return request;
  }
  if (!HasCookie(head)) {
    return Refused({403, is_right ? "the address works once; start `gradflow edit` again"
                                  : "expected the address that `gradflow edit` printed"});
  }
  request.kind = EditRequest::Kind::kPage;
  return request;
}

EditRequest EditAccess::CheckCall(const HttpHead& head, size_t body_bytes) const {
  absl::string_view name = head.target;
  if (!absl::ConsumePrefix(&name, kCallPath) || name.empty() ||
      !std::all_of(name.begin(), name.end(), absl::ascii_islower)) {
    return Refused({404, "expected the address of a call"});
  }
  EditRequest request;
  const absl::string_view expected = head.Get("Expect");
  if (!expected.empty() && !absl::EqualsIgnoreCase(expected, "100-continue")) {
    return Refused({417, "expected no condition but 100-continue"});
  }
  request.expects_continue = !expected.empty();
  request.kind = EditRequest::Kind::kCall;
  request.call = std::string(name);
  request.body_bytes = body_bytes;
  return request;
}

}  // namespace gradflow::tools
