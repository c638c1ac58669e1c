// Tests of the server of `gradflow edit`: access, limits for strangers, and shutdown.
#include "tools/edit/edit_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/http_client.h"
#include "tests/tools/command_line_fixture.h"
#include "tools/edit/edit_api.h"
#include "tools/edit/http_head.h"
#include "tools/json.h"

namespace gradflow {
namespace testing {
namespace {

using ::gradflow::tools::EditApi;
using ::gradflow::tools::EditOptions;
using ::gradflow::tools::EditServer;
using ::gradflow::tools::EditServerCounts;
using ::gradflow::tools::EditServerOptions;
using ::gradflow::tools::JsonText;
using ::gradflow::tools::kMaxHeadBytes;
using ::gradflow::tools::kMaxHeadLineBytes;
using ::gradflow::tools::kMaxHeadLines;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kKeyHeader[] = "X-Gradflow-Key";
constexpr char kEmptyGraph[] = "{\"base\":0,\"nodes\":[]}";

// Returns the key that a page contains.
std::string KeyOf(const std::string& page) {
  const std::string place = ">server:";
  const size_t begin = page.find(place);
  EXPECT_NE(begin, std::string::npos);
  if (begin == std::string::npos) return "";
  return page.substr(begin + place.size(), page.find('<', begin) - begin - place.size());
}

template <typename Folder>
size_t CountFiles(const Folder& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

class EditServerTest : public CommandLineFixture {
 protected:
  // A time that no test waits for.
  static constexpr double kLong = 100'000;

  EditServerTest() {
    options_.max_body_bytes = 10'000;
    options_.head_timeout_seconds = kLong;
    options_.body_timeout_seconds = kLong;
    options_.answer_timeout_seconds = kLong;
    options_.linger_seconds = kLong;
  }
  void TearDown() override { Stop(); }

  // Starts the server with options_.
  void Start() {
    absl::StatusOr<std::unique_ptr<EditApi>> api = EditApi::Make(EditOptions());
    GRADFLOW_ASSERT_OK(api.status());
    api_ = *std::move(api);
    absl::StatusOr<std::unique_ptr<EditServer>> server = EditServer::Make(api_.get(), options_);
    GRADFLOW_ASSERT_OK(server.status());
    server_ = *std::move(server);
    thread_ = std::thread([this] { served_ = server_->Serve(); });
    host_ = absl::StrCat("127.0.0.1:", server_->port());
    from_ = absl::StrCat("http://", host_);
    token_ = server_->Url().substr(server_->Url().find('?'));
  }
  // Starts the server and opens the page.
  void StartAndEnter() {
    Start();
    Enter();
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Stop();
    thread_.join();
    EXPECT_THAT(served_, IsOk());
    server_ = nullptr;
  }

  HttpAnswer Get(const std::string& target, const HttpFields& fields = {}) const {
    return FetchHttp(server_->port(), "GET", target, fields);
  }
  HttpAnswer Fetch(const char* method, const char* target, const HttpFields& fields,
                   const std::string& body = kEmptyGraph) const {
    return FetchHttp(server_->port(), method, target, fields, body);
  }
  // Makes a call and returns its status.
  int Post(HttpFields fields, const std::string& body = kEmptyGraph,
           const char* type = "application/json", const char* target = "/api/check") const {
    fields.emplace_back("Content-Type", type);
    return Fetch("POST", target, fields, body).status;
  }
  // Returns the header fields of the page's calls.
  HttpFields Own() const { return {{"Origin", from_}, {"Cookie", cookie_}, {kKeyHeader, key_}}; }
  HttpFields OwnJson() const {
    HttpFields fields = Own();
    fields.emplace_back("Content-Type", "application/json");
    return fields;
  }
  // Returns the bytes of a call from the page.
  std::string CallText(const std::string& body = kEmptyGraph, const HttpFields& more = {},
                       const char* target = "/api/check") const {
    HttpFields fields = OwnJson();
    fields.insert(fields.end(), more.begin(), more.end());
    return HttpRequestText(server_->port(), "POST", target, fields, body);
  }
  // Sends the bytes on a new connection and returns everything that the server sends.
  std::string Exchange(const std::string& bytes, bool is_end = false) const {
    const HttpConnection connection(server_->port());
    (void)connection.Send(bytes);
    if (is_end) connection.EndSending();
    return connection.ReceiveAll();
  }
  int StatusOf(const std::string& bytes, bool is_end = false) const {
    return ParseHttpAnswer(Exchange(bytes, is_end)).status;
  }
  // Opens the page with the token. Stores the cookie and the key.
  void Enter() {
    const HttpAnswer page = Get("/" + token_);
    EXPECT_EQ(page.status, 200);
    key_ = KeyOf(page.body);
    EXPECT_THAT(key_, SizeIs(64));
    const std::string cookie = page.Field("Set-Cookie");
    EXPECT_THAT(cookie, AllOf(HasSubstr("HttpOnly"), HasSubstr("SameSite=Strict")));
    cookie_ = cookie.substr(0, cookie.find(';'));
  }
  // Starts a call without sending its body. Returns when the server has accepted the call.
  std::unique_ptr<HttpConnection> BeginCall(const std::string& body, const char* target) const {
    auto call = std::make_unique<HttpConnection>(server_->port());
    const std::string text = CallText(body, {{"Expect", "100-continue"}}, target);
    EXPECT_TRUE(call->Send(text.substr(0, text.size() - body.size())));
    const std::string proceed = "HTTP/1.1 100 Continue\r\n\r\n";
    EXPECT_EQ(call->Receive(proceed.size()), proceed);
    return call;
  }

  EditServerOptions options_;
  std::unique_ptr<EditApi> api_;
  std::unique_ptr<EditServer> server_;
  std::thread thread_;
  absl::Status served_ = absl::InternalError("not served");
  std::string host_;
  std::string from_;
  std::string token_;
  std::string cookie_;
  std::string key_;
};

// ---- Access ----

TEST_F(EditServerTest, ServesThePageOnce) {
  Start();
  EXPECT_EQ(Get("/").status, 403);
  EXPECT_EQ(Get("/?token=").status, 403);
  EXPECT_EQ(Get("/?token=" + std::string(64, '0')).status, 403);
  EXPECT_EQ(Get("/" + token_.substr(0, token_.size() - 1)).status, 403);
  EXPECT_EQ(Get("/" + token_ + "&token=").status, 403);
  EXPECT_EQ(Get("/" + token_ + "&" + token_.substr(1)).status, 403);
  Enter();
  // The token has already been used.
  const HttpAnswer again = Get("/" + token_);
  EXPECT_EQ(again.status, 403);
  EXPECT_THAT(again.body, HasSubstr("works once"));
  EXPECT_EQ(again.Field("Set-Cookie"), "");
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer page = Get("/", {{"Cookie", cookie_}});
    EXPECT_EQ(page.status, 200);
    // With only the cookie, the page contains neither the graph nor the key.
    EXPECT_EQ(KeyOf(page.body), "");
    EXPECT_THAT(page.body,
                HasSubstr("content=\"default-src 'none'; connect-src 'self'; script-src"));
    EXPECT_EQ(page.Field("Content-Security-Policy"), "frame-ancestors 'none'");
    EXPECT_EQ(page.Field("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page.Field("Cache-Control"), "no-store");
    EXPECT_EQ(page.Field("Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(page.Field("Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(page.Field("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(page.Field("Connection"), "close");
    EXPECT_EQ(page.Field("Content-Length"), absl::StrCat(page.body.size()));
    EXPECT_EQ(page.Field("Access-Control-Allow-Origin"), "");
  }
  EXPECT_EQ(Get("/", {{"Cookie", cookie_ + "0"}}).status, 403);
  EXPECT_EQ(Get("/", {{"Cookie", "a=b; " + cookie_ + "; c=d"}}).status, 200);
  const HttpAnswer again_with_cookie = Get("/" + token_, {{"Cookie", cookie_}});
  EXPECT_EQ(again_with_cookie.status, 200);
  EXPECT_EQ(KeyOf(again_with_cookie.body), "");
  const HttpAnswer data = Fetch("POST", "/api/page", OwnJson(), "{}");
  EXPECT_EQ(data.status, 200);
  EXPECT_THAT(data.body, HasSubstr("\"edit\":{\"server\":true,\"base\":0,\"page\":1,"));
}

TEST_F(EditServerTest, RefusesOtherCallers) {
  StartAndEnter();
  EXPECT_EQ(Post(Own()), 200);
  // Calls with a cookie but without a key, or with a wrong key. Servers on other ports also receive
  // the cookie.
  EXPECT_EQ(Post({{"Origin", from_}, {"Cookie", cookie_}}), 403);
  for (const std::string& key :
       {std::string(), token_.substr(7), key_ + "0", "!" + key_.substr(1)}) {
    EXPECT_EQ(Post({{"Origin", from_}, {"Cookie", cookie_}, {kKeyHeader, key}}), 403) << key;
  }
  // Calls without a cookie, with a wrong cookie, and with the token as cookie.
  for (const std::string& cookie : {std::string(), cookie_.substr(0, cookie_.size() - 1) + "!",
                                    cookie_.substr(0, cookie_.find('=') + 1) + token_.substr(7)}) {
    EXPECT_EQ(Post({{"Origin", from_}, {"Cookie", cookie}, {kKeyHeader, key_}}), 403) << cookie;
  }
  // Pages of other sites, including sites on this machine.
  for (const std::string& origin :
       {std::string("http://example.com"), std::string("null"), "https://" + host_,
        std::string("http://127.0.0.1"), absl::StrCat("http://localhost:", server_->port()),
        absl::StrCat(from_, ".example.com")}) {
    EXPECT_EQ(Post({{"Origin", origin}, {"Cookie", cookie_}, {kKeyHeader, key_}}), 403) << origin;
    EXPECT_EQ(Get("/", {{"Origin", origin}, {"Cookie", cookie_}}).status, 403) << origin;
  }
  EXPECT_EQ(Post({{"Cookie", cookie_}, {kKeyHeader, key_}}), 403);
  EXPECT_EQ(Get("/", {{"Origin", from_}, {"Cookie", cookie_}}).status, 200);
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(Get("/", {{"Sec-Fetch-Site", site}, {"Cookie", cookie_}}).status, 403);
  }
  // The host name belongs to another site but resolves to this server.
  for (const std::string& host :
       {std::string("example.com"), absl::StrCat("localhost:", server_->port()),
        absl::StrCat("example.com:", server_->port()), std::string("127.0.0.1")}) {
    HttpFields fields = Own();
    fields.emplace_back("Host", host);
    EXPECT_EQ(Post(fields), 421) << host;
    EXPECT_EQ(Get("/", {{"Host", host}, {"Cookie", cookie_}}).status, 421) << host;
  }
  // Content types that a form on another page could send.
  EXPECT_EQ(Post(Own(), "{}", "text/plain"), 415);
  EXPECT_EQ(Post(Own(), "{}", "application/x-www-form-urlencoded"), 415);
  EXPECT_EQ(Post(Own(), "{}", "multipart/form-data; boundary=x"), 415);
  for (const char* target : {"/api/none", "/api/../etc", "/api/", "/api/check/", "/", "/x"}) {
    EXPECT_EQ(Post(Own(), "{}", "application/json", target), 404) << target;
  }
  EXPECT_EQ(Get("/api/check", {{"Cookie", cookie_}}).status, 404);
  EXPECT_EQ(Fetch("DELETE", "/api/check", Own()).status, 405);
  EXPECT_EQ(Fetch("OPTIONS", "/api/check", Own()).status, 405);
}

TEST_F(EditServerTest, NamesItsCookieAfterItsPort) {
  StartAndEnter();
  EXPECT_THAT(cookie_, StartsWith(absl::StrCat("gradflow_", server_->port(), "=")));
  EXPECT_EQ(cookie_.size() - cookie_.find('='), 65u);
  EXPECT_EQ(server_->Origin(), from_);
  EXPECT_EQ(server_->Url(), absl::StrCat(from_, "/", token_));
  EXPECT_THAT(token_, AllOf(StartsWith("?token="), SizeIs(7 + 64)));
  // The token, the cookie and the key differ.
  EXPECT_NE(cookie_.substr(cookie_.find('=') + 1), key_);
  EXPECT_NE(token_.substr(7), key_);
  EXPECT_NE(token_.substr(7), cookie_.substr(cookie_.find('=') + 1));
}

TEST_F(EditServerTest, AnswersErrorsAsJson) {
  Start();
  EXPECT_EQ(Get("/").body, R"({"error":"expected the address that `gradflow edit` printed"})");
  Enter();
  const auto get = [&](const HttpFields& fields) { return Get("/", fields); };
  EXPECT_EQ(get({{"Cookie", cookie_}, {"Host", "none"}}).body,
            R"({"error":"expected another host"})");
  EXPECT_EQ(Get("/" + token_).body,
            R"({"error":"the address works once; start `gradflow edit` again"})");
  EXPECT_EQ(Get("/x").body, R"({"error":"expected the address of the page"})");
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(get({{"Sec-Fetch-Site", site}, {"Cookie", cookie_}}).status, 200) << site;
  }
  EXPECT_EQ(get({{"Sec-Fetch-Site", "cross-site"}, {"Cookie", cookie_}}).body,
            R"({"error":"expected no other site"})");
  const auto post = [&](const std::string& body, const char* target = "/api/check") {
    const HttpAnswer answer = Fetch("POST", target, OwnJson(), body);
    EXPECT_EQ(answer.Field("Content-Type"), "application/json");
    EXPECT_EQ(answer.Field("X-Content-Type-Options"), "nosniff");
    return absl::StrCat(answer.status, " ", answer.body);
  };
  EXPECT_EQ(post("{}", "/api/none"), R"(404 {"error":"NOT_FOUND: there is no call 'none'"})");
  EXPECT_EQ(post("{}", "/API/check"), R"(404 {"error":"expected the address of a call"})");
  EXPECT_EQ(post("[]"), R"(400 {"error":"INVALID_ARGUMENT: expected a JSON object"})");
  EXPECT_EQ(post("{"), R"(400 {"error":"INVALID_ARGUMENT: expected a JSON object"})");
  EXPECT_EQ(post(std::string(9'000, '[')).substr(0, 4), "400 ");
  EXPECT_EQ(post("{\"nodes\":[],\"base\":1}").substr(0, 33),
            R"(400 {"error":"FAILED_PRECONDITION)");
  EXPECT_EQ(post(std::string(10'001, ' ')),
            R"(413 {"error":"the body has 10001 bytes, but at most 10000 are allowed"})");
  EXPECT_EQ(post(kEmptyGraph), R"(200 {"types":[],"problems":[],"notes":[]})");
  EXPECT_EQ(get({{"Cookie", cookie_}}).Field("Content-Type"), "text/html; charset=utf-8");
}

TEST_F(EditServerTest, RefusesAmbiguousHeaders) {
  StartAndEnter();
  const std::string host = absl::StrCat("Host: ", host_, "\r\n");
  const std::string own = absl::StrCat("Origin: ", from_, "\r\nCookie: ", cookie_,
                                       "\r\nContent-Type: application/json\r\n");
  const std::string key = absl::StrCat("X-Gradflow-Key: ", key_, "\r\n");
  const std::string body = kEmptyGraph;
  const std::string length = absl::StrCat("Content-Length: ", body.size(), "\r\n");
  const std::string post = "POST /api/check HTTP/1.1\r\n";
  EXPECT_EQ(StatusOf(post + host + own + key + length + "\r\n" + body), 200);
  EXPECT_EQ(StatusOf(post + own + key + length + "\r\n" + body), 421);
  EXPECT_EQ(StatusOf(post + host + host + own + key + length + "\r\n" + body), 421);
  EXPECT_EQ(StatusOf(post + host + own + length + "\r\n" + body), 403);
  EXPECT_EQ(StatusOf(post + host + own + key + key + length + "\r\n" + body), 403);
  EXPECT_EQ(StatusOf(post + host + own + key + "\r\n"), 411);
  EXPECT_EQ(StatusOf(post + host + own + key + length + length + "\r\n" + body), 411);
  EXPECT_EQ(StatusOf(post + host + own + key + "Content-Length: x\r\n\r\n" + body), 411);
  EXPECT_EQ(StatusOf(post + host + own + key + "Content-Length: -1\r\n\r\n" + body), 411);
  EXPECT_EQ(
      StatusOf(post + host + own + key + length + "Transfer-Encoding: identity\r\n\r\n" + body),
      400);
  EXPECT_EQ(StatusOf(post + host + own + key + length + "Content-Encoding: gzip\r\n\r\n" + body),
            400);
  const std::string get = "GET / HTTP/1.1\r\n" + host + "Cookie: " + cookie_ + "\r\n";
  EXPECT_EQ(StatusOf(get + "\r\n"), 200);
  EXPECT_EQ(StatusOf(get + "Content-Length: 0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf(get + "Content-Length: 1\r\n\r\nx"), 400);
  EXPECT_EQ(StatusOf(get + "Content-Length: x\r\n\r\nx"), 411);
  EXPECT_EQ(StatusOf("PUT" + get.substr(3) + "\r\n"), 405);
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 400);
  // The head ends too early.
  EXPECT_EQ(StatusOf("GET / HT", /*is_end=*/true), 400);
}

TEST_F(EditServerTest, RefusesChunkedBodies) {
  StartAndEnter();
  HttpFields fields = OwnJson();
  fields.emplace_back("Transfer-Encoding", "chunked");
  std::string head = "POST /api/check HTTP/1.1\r\nHost: " + host_ + "\r\n";
  for (const auto& [name, value] : fields) absl::StrAppend(&head, name, ": ", value, "\r\n");
  const HttpAnswer answer = ParseHttpAnswer(Exchange(head + "\r\n2\r\n{}\r\n0\r\n\r\n"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, R"({"error":"expected a body without encoding"})");
  EXPECT_EQ(server_->Counts().most_bodies_bytes, 0u);
}

// ---- Limits for strangers ----

TEST_F(EditServerTest, RefusesEndlessHeaderLines) {
  Start();
  std::string lines = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 14'000; ++i) lines += "a:b\r\n";
  std::vector<std::string> answers(4);
  std::vector<std::thread> strangers;
  for (std::string& answer : answers) {
    strangers.emplace_back([&] { answer = Exchange(lines); });
  }
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_THAT(answers,
              Each(AllOf(StartsWith("HTTP/1.1 431 "),
                         EndsWith("{\"error\":\"expected a head of at most 65536 bytes and 100 "
                                  "lines, each of at most 16384 bytes\"}"))));
  EXPECT_EQ(server_->Counts().refused, 4u);
  // Sends header lines without end.
  const HttpConnection endless(server_->port());
  constexpr size_t kMost = size_t{64} << 20;
  size_t sent = 0;
  while (sent <= kMost && endless.Send(lines)) sent += lines.size();
  EXPECT_LE(sent, kMost);
  const EditServerCounts counts = server_->Counts();
  EXPECT_EQ(counts.refused, 5u);
  // The first part already has too many lines. The server keeps no other part.
  EXPECT_GT(counts.most_head_bytes, 0u);
  EXPECT_LE(counts.most_head_bytes, 8192u);
  EXPECT_LE(counts.most_heads_bytes, 4 * 8192u);
  EXPECT_EQ(counts.heads_bytes, 0u);
  EXPECT_EQ(counts.most_bodies_bytes, 0u);
}

TEST_F(EditServerTest, LimitsTheMemoryOfHeads) {
  Start();
  const std::string line = "GET / HTTP/1.1\r\na: " + std::string(kMaxHeadLineBytes, 'b');
  EXPECT_EQ(StatusOf(line + "\r\n\r\n"), 431);
  std::string head = "GET / HTTP/1.1\r\n";
  while (head.size() <= kMaxHeadBytes) {
    absl::StrAppend(&head, "a: ", std::string(kMaxHeadLineBytes - 5, 'b'), "\r\n");
  }
  EXPECT_EQ(StatusOf(head + "\r\n"), 431);
  // The capacity of a string may be twice its size.
  EXPECT_GE(server_->Counts().most_head_bytes, kMaxHeadBytes);
  EXPECT_LE(server_->Counts().most_head_bytes, 2 * (kMaxHeadBytes + 4096));
  EXPECT_EQ(server_->Counts().heads_bytes, 0u);
}

TEST_F(EditServerTest, ReadsNoHeadWithoutEnd) {
  Start();
  const HttpConnection connection(server_->port());
  const std::string part(1 << 16, 'x');
  // The server reads and drops the first part. The rest fills the buffers of the system.
  constexpr size_t kMost = size_t{64} << 20;
  size_t sent = 0;
  while (sent <= kMost && connection.Send(part)) sent += part.size();
  EXPECT_LE(sent, kMost);
  EXPECT_LE(server_->Counts().most_head_bytes, 2 * (kMaxHeadLineBytes + 4096));
}

TEST_F(EditServerTest, DecidesBeforeTheBody) {
  StartAndEnter();
  // The bodies never arrive.
  const auto status_of_head = [&](const HttpFields& fields) {
    return StatusOf(HttpRequestText(server_->port(), "POST", "/api/check", fields));
  };
  const auto with_length = [](HttpFields fields, const char* length) {
    fields.emplace_back("Content-Length", length);
    return fields;
  };
  HttpFields stranger = {{"Origin", from_}, {"Content-Type", "application/json"}};
  EXPECT_EQ(status_of_head(with_length(stranger, "9000")), 403);
  EXPECT_EQ(status_of_head(with_length(stranger, "10001")), 413);
  stranger.emplace_back("Cookie", cookie_);
  EXPECT_EQ(status_of_head(with_length(stranger, "9000")), 403);
  EXPECT_EQ(status_of_head(with_length(OwnJson(), "10001")), 413);
  EXPECT_EQ(status_of_head(with_length(OwnJson(), "18446744073709551615")), 413);
  EXPECT_EQ(server_->Counts().most_bodies_bytes, 0u);
  // The server reads and drops a refused body, so that the client receives the answer.
  stranger.emplace_back("Content-Length", "9000");
  EXPECT_EQ(Fetch("POST", "/api/check", stranger, std::string(9000, ' ')).status, 403);
  EXPECT_EQ(server_->Counts().most_bodies_bytes, 0u);
  // An accepted body takes memory.
  EXPECT_EQ(Post(Own(), kEmptyGraph + std::string(9000, ' ')), 200);
  EXPECT_GE(server_->Counts().most_bodies_bytes, 9000u);
  EXPECT_LE(server_->Counts().most_bodies_bytes, 20'000u);
  EXPECT_EQ(server_->Counts().bodies_bytes, 0u);
}

TEST_F(EditServerTest, LimitsBodies) {
  StartAndEnter();
  const auto body = [](size_t size) {
    const std::string text = kEmptyGraph;
    return text + std::string(size - text.size(), ' ');
  };
  EXPECT_EQ(Post(Own(), body(10'000)), 200);
  EXPECT_EQ(Post(Own(), body(10'001)), 413);
  EXPECT_EQ(Post(Own()), 200);
}

TEST_F(EditServerTest, IdleConnectionsDoNotBlockOthers) {
  options_.max_waiting = 50;
  Start();
  const size_t threads = CountFiles("/proc/self/task");
  const size_t files = CountFiles("/proc/self/fd");
  // More connections than may wait. Some send a part of a head.
  constexpr size_t kStrangers = 200;
  std::vector<std::unique_ptr<HttpConnection>> strangers;
  for (size_t i = 0; i < kStrangers; ++i) {
    strangers.push_back(std::make_unique<HttpConnection>(server_->port()));
    if (i % 2 == 0) {
      EXPECT_TRUE(strangers.back()->Send("POST /api/check HTTP/1.1\r\n"));
    }
  }
  // The server accepts connections in order, so it has accepted these before the page.
  Enter();
  EXPECT_EQ(Post(Own()), 200);
  EditServerCounts counts = server_->Counts();
  EXPECT_EQ(counts.most_waiting, 50u);
  EXPECT_GE(counts.displaced, kStrangers - 50);
  EXPECT_LE(counts.displaced, kStrangers - 50 + 2);
  EXPECT_EQ(counts.timed_out, 0u);
  // The waiting connections take no threads.
  EXPECT_EQ(CountFiles("/proc/self/task"), threads);
  EXPECT_LE(CountFiles("/proc/self/fd"), files + kStrangers + 52);
  // The oldest connections were closed. The latest can still be used.
  EXPECT_EQ(strangers.front()->ReceiveAll(), "");
  EXPECT_EQ(strangers[kStrangers - 60]->ReceiveAll(), "");
  EXPECT_TRUE(strangers.back()->Send("GET / HTTP/1.1\r\nHost: " + host_ + "\r\n\r\n"));
  EXPECT_EQ(ParseHttpAnswer(strangers.back()->ReceiveAll()).status, 403);
}

// Connections from strangers do not end an accepted call.
TEST_F(EditServerTest, StrangersDisplaceNoCall) {
  options_.max_waiting = 2;
  StartAndEnter();
  const std::unique_ptr<HttpConnection> call = BeginCall(kEmptyGraph, "/api/check");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Get("/").status, 403);
  const HttpConnection idle[] = {HttpConnection(server_->port()), HttpConnection(server_->port()),
                                 HttpConnection(server_->port())};
  EXPECT_EQ(Get("/").status, 403);
  EXPECT_TRUE(call->Send(kEmptyGraph));
  EXPECT_EQ(ParseHttpAnswer(call->ReceiveAll()).status, 200);
}

TEST_F(EditServerTest, EndsSlowHeads) {
  options_.head_timeout_seconds = 0;
  Start();
  size_t count = 0;
  for (const char* part : {"", "GET / HTTP/1.1\r\n"}) {
    const HttpConnection slow(server_->port());
    (void)slow.Send(part);
    EXPECT_EQ(slow.ReceiveAll(), "");
    EXPECT_EQ(server_->Counts().timed_out, ++count);
  }
  EXPECT_EQ(server_->Counts().displaced, 0u);
}

TEST_F(EditServerTest, EndsSlowBodies) {
  options_.body_timeout_seconds = 0;
  StartAndEnter();
  const HttpConnection slow(server_->port());
  const std::string text = CallText();
  EXPECT_TRUE(slow.Send(text.substr(0, text.size() - 1)));
  EXPECT_EQ(slow.ReceiveAll(), "");
  EXPECT_EQ(server_->Counts().timed_out, 1u);
}

TEST_F(EditServerTest, ClosesConnections) {
  StartAndEnter();
  const size_t before = CountFiles("/proc/self/fd");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Post(Own()), 200);
  // The last connections may still be open for a moment.
  EXPECT_LE(CountFiles("/proc/self/fd"), before + 5);
}

// If the process has no free file descriptor, the server closes a stranger's connection.
TEST_F(EditServerTest, ServesWithoutFreeFiles) {
  StartAndEnter();
  const HttpConnection stranger(server_->port());
  EXPECT_EQ(Post(Own()), 200);
  // Waits until the server has noticed that the other connections are closed.
  while (server_->Counts().waiting > 1) std::this_thread::yield();
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  std::vector<int> files;
  for (int file = dup(0); file >= 0; file = dup(0)) files.push_back(file);
  ASSERT_FALSE(files.empty());
  // Frees a descriptor for the client.
  close(files.back());
  files.pop_back();
  EXPECT_EQ(Post(Own()), 200);
  EXPECT_GE(server_->Counts().accept_failures, 1u);
  EXPECT_EQ(server_->Counts().displaced, 1u);
  EXPECT_EQ(stranger.ReceiveAll(), "");
  for (const int file : files) close(file);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
}

// ---- Requests ----

TEST_F(EditServerTest, ServesOneRequestOfAConnection) {
  StartAndEnter();
  const std::string call = CallText();
  for (const std::string& second : {call, std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const std::string answers = Exchange(call + second);
    EXPECT_THAT(answers, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_EQ(answers.find("HTTP/1.1", 1), std::string::npos) << answers;
    EXPECT_EQ(ParseHttpAnswer(answers).Field("Connection"), "close");
  }
  // A second request after a page, and after a refused request.
  for (const char* target : {"/", "/x"}) {
    const std::string page = HttpRequestText(server_->port(), "GET", target, {{"Cookie", cookie_}});
    const std::string answers = Exchange(page + call);
    EXPECT_EQ(ParseHttpAnswer(answers).Field("Content-Length"),
              absl::StrCat(ParseHttpAnswer(answers).body.size()));
  }
}

TEST_F(EditServerTest, AsksForABodyThatWaits) {
  StartAndEnter();
  // BeginCall() expects "100 Continue" before the body.
  const std::unique_ptr<HttpConnection> call = BeginCall(kEmptyGraph, "/api/check");
  EXPECT_TRUE(call->Send(kEmptyGraph));
  EXPECT_EQ(ParseHttpAnswer(call->ReceiveAll()).status, 200);
  // A client that sends its body at once only gets the answer.
  EXPECT_EQ(StatusOf(CallText(kEmptyGraph, {{"Expect", "100-Continue"}})), 200);
  EXPECT_EQ(StatusOf(CallText(kEmptyGraph, {{"Expect", "200-ok"}})), 417);
  // A stranger is refused before its body is read.
  EXPECT_EQ(Fetch("POST", "/api/check",
                  {{"Origin", from_},
                   {"Content-Type", "application/json"},
                   {"Content-Length", "9"},
                   {"Expect", "100-continue"}},
                  "")
                .status,
            403);
}

TEST_F(EditServerTest, LimitsCallsInProgress) {
  options_.max_calls = 1;
  StartAndEnter();
  const std::unique_ptr<HttpConnection> call = BeginCall(kEmptyGraph, "/api/check");
  const HttpAnswer refused = Fetch("POST", "/api/check", OwnJson());
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, R"({"error":"too many calls are in progress"})");
  // There is room for some additional cancel calls.
  std::vector<std::unique_ptr<HttpConnection>> cancels;
  for (int i = 0; i < 8; ++i) cancels.push_back(BeginCall("{}", "/api/cancel"));
  EXPECT_EQ(Post(Own(), "{}", "application/json", "/api/cancel"), 503);
  EXPECT_EQ(Get("/", {{"Cookie", cookie_}}).status, 200);
  for (const auto& cancel : cancels) {
    EXPECT_TRUE(cancel->Send("{}"));
    EXPECT_EQ(ParseHttpAnswer(cancel->ReceiveAll()).body, "{}");
  }
  EXPECT_TRUE(call->Send(kEmptyGraph));
  EXPECT_EQ(ParseHttpAnswer(call->ReceiveAll()).status, 200);
  EXPECT_EQ(Post(Own()), 200);
}

// Returns a call whose run would not end in a reasonable time.
std::string EndlessRun() {
  std::vector<std::string> nodes = {
      R"(name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
         value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 100000 } } })",
      R"(name: "v" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value"
         value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } })",
      R"(name: "n0" op: "Fill" input: "dims" input: "v" attr { key: "T" value { type: DT_FLOAT } })"};
  for (int i = 0; i < 1000; ++i) {
    nodes.push_back(absl::StrCat("name: \"n", i + 1, "\" op: \"Igamma\" input: \"v\" input: \"n", i,
                                 "\" attr { key: \"T\" value { type: DT_FLOAT } }"));
  }
  return absl::StrCat("{\"base\":0,\"nodes\":[",
                      absl::StrJoin(nodes, ",",
                                    [](std::string* out, const std::string& node) {
                                      absl::StrAppend(out, "{\"t\":", JsonText(node), "}");
                                    }),
                      "]}");
}

// Starts more runs than the server has threads.
TEST_F(EditServerTest, CancelsRunsWhileAllThreadsWork) {
  options_.max_body_bytes = 1 << 20;
  StartAndEnter();
  const std::string body = EndlessRun();
  constexpr int kRuns = 12;
  std::atomic<int> done{0};
  std::vector<HttpAnswer> answers(kRuns);
  std::vector<std::thread> runs;
  for (HttpAnswer& answer : answers) {
    runs.emplace_back([&] {
      answer = Fetch("POST", "/api/run", OwnJson(), body);
      ++done;
    });
  }
  // Each call cancels the run in progress, if there is a run.
  while (done < kRuns) {
    EXPECT_EQ(Post(Own(), "{}", "application/json", "/api/cancel"), 200);
  }
  for (std::thread& run : runs) run.join();
  for (const HttpAnswer& answer : answers) {
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, StartsWith("{\"error\":\"CANCELLED: "));
  }
}

// ---- Shutdown ----

TEST_F(EditServerTest, StopEndsConnectionsWithoutARequest) {
  options_.linger_seconds = 0;
  StartAndEnter();
  const HttpConnection idle(server_->port());
  const HttpConnection partial(server_->port());
  EXPECT_TRUE(partial.Send("GET / HTTP/1.1\r\n"));
  const std::unique_ptr<HttpConnection> call = BeginCall(kEmptyGraph, "/api/check");
  Stop();
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_EQ(partial.ReceiveAll(), "");
  EXPECT_EQ(call->ReceiveAll(), "");
}

TEST_F(EditServerTest, StopAnswersCallsInProgress) {
  options_.max_body_bytes = 1 << 20;
  StartAndEnter();
  const std::string body = EndlessRun();
  std::unique_ptr<HttpConnection> call = BeginCall(body, "/api/run");
  EXPECT_TRUE(call->Send(body));
  std::string answer;
  std::thread reader([&] {
    answer = call->ReceiveAll();
    call = nullptr;
  });
  Stop();
  reader.join();
  EXPECT_EQ(ParseHttpAnswer(answer).status, 400);
  EXPECT_THAT(ParseHttpAnswer(answer).body, HasSubstr("\"error\":\"CANCELLED: "));
}

TEST_F(EditServerTest, StopWaitsForNoReader) {
  // The answer is several times as large as the body, so the buffers of the system do not hold it.
  constexpr size_t kBytes = size_t{2} << 20;
  options_.max_body_bytes = 2 * kBytes;
  options_.linger_seconds = 0;
  StartAndEnter();
  const std::string node = absl::StrCat(
      R"(name: "c" op: "Const" attr { key: "dtype" value { type: DT_STRING } } attr { key: "value"
         value { tensor { dtype: DT_STRING tensor_shape { } string_val: ")",
      std::string(kBytes, 'a'), "\" } } }");
  const HttpConnection reader(server_->port(), /*receive_buffer_bytes=*/4096);
  EXPECT_TRUE(reader.Send(CallText(
      absl::StrCat("{\"base\":0,\"nodes\":[{\"t\":", JsonText(node), "}]}"), {}, "/api/cpp")));
  const std::string begin = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(reader.Receive(begin.size()), begin);
  Stop();
  EXPECT_LT(reader.ReceiveAll().size(), 4 * kBytes);
}

TEST_F(EditServerTest, StopsBeforeItServes) {
  Start();
  absl::StatusOr<std::unique_ptr<EditServer>> server =
      EditServer::Make(api_.get(), EditServerOptions());
  GRADFLOW_ASSERT_OK(server.status());
  // Two servers have different ports, and a port cannot have two servers.
  EXPECT_NE((*server)->port(), server_->port());
  EditServerOptions options;
  options.port = server_->port();
  EXPECT_THAT(EditServer::Make(api_.get(), options).status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr(absl::StrCat("cannot listen on ", host_, ": "))));
  (*server)->Stop();
  EXPECT_THAT((*server)->Serve(), IsOk());
}

// Runs `gradflow edit` until it is interrupted.
TEST_F(EditServerTest, EndsAtASignal) {
  WriteFile(File("g.pbtxt"), "node { name: 'mine' op: 'NoOp' }");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    int out[2];
    ASSERT_EQ(pipe(out), 0);
    const std::string file = File("g.pbtxt");
    const pid_t child = fork();
    if (child == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      close(out[1]);
      execl(GRADFLOW_PROGRAM_gradflow_cli, GRADFLOW_PROGRAM_gradflow_cli, "edit", file.c_str(),
            "--threads", "1", static_cast<char*>(nullptr));
      _exit(127);
    }
    close(out[1]);
    std::string text;
    char c = 0;
    while (std::count(text.begin(), text.end(), '\n') < 2 && read(out[0], &c, 1) == 1) text += c;
    EXPECT_THAT(
        text, AllOf(StartsWith("Open http://127.0.0.1:"), EndsWith("\nCtrl-C ends the editor.\n")));
    const std::string origin = text.substr(5, text.find("/?token=") - 5);
    const std::string target = text.substr(5 + origin.size(), 1 + 7 + 64);
    int port = 0;
    ASSERT_TRUE(absl::SimpleAtoi(origin.substr(origin.rfind(':') + 1), &port)) << text;
    // The page edits this file, and no other process edits it.
    const HttpAnswer page = FetchHttp(port, "GET", target);
    EXPECT_EQ(page.status, 200);
    const std::string cookie = page.Field("Set-Cookie");
    const HttpAnswer data = FetchHttp(port, "POST", "/api/page",
                                      {{"Origin", origin},
                                       {"Cookie", cookie.substr(0, cookie.find(';'))},
                                       {kKeyHeader, KeyOf(page.body)},
                                       {"Content-Type", "application/json"}},
                                      "{}");
    EXPECT_THAT(data.body, AllOf(HasSubstr("\"file\":\"g.pbtxt\""), HasSubstr("\"mine\"")));
    ExpectFailure(Gradflow({"edit", file}), "FAILED_PRECONDITION",
                  HasSubstr(absl::StrCat("is being edited at ", origin, " (process ", child, ")")));
    EXPECT_EQ(kill(child, signal), 0);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    close(out[0]);
  }
  EXPECT_EQ(Gradflow({"edit", File("g.pbtxt"), "-o", File("g.html")}).exit_code, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
