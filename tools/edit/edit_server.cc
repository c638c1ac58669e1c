#include "tools/edit/edit_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "tools/json.h"
#include "tools/view/page.h"

namespace gradflow::tools {
namespace {

using ::httplib::Request;
using ::httplib::Response;
using ::httplib::Server;

constexpr char kHost[] = "127.0.0.1";
constexpr char kKeyHeader[] = "X-Gradflow-Key";
// Threads for requests. Many, so that connections that are idle or slow stop no other.
constexpr size_t kThreads = 32;
// How long a request or a reader may stand still.
constexpr int kTimeoutSeconds = 60;

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

// The bytes of one connection, of which there are at most `max_bytes`, for at most `head_seconds`
// in all until Accept() is called. The library's own stream waits that long for each byte, and
// reads a line of any length.
class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, size_t max_bytes, int head_seconds)
      : socket_(socket),
        left_(max_bytes),
        deadline_(Clock::now() + std::chrono::seconds(head_seconds)) {}

  // Allows kTimeoutSeconds more.
  void Accept() { deadline_ = Clock::now() + std::chrono::seconds(kTimeoutSeconds); }

  bool is_readable() const override { return begin_ < end_ || Wait(POLLIN, deadline_); }
  bool is_writable() const override { return Wait(POLLOUT, deadline_); }
  ssize_t read(char* data, size_t size) override {
    if (begin_ == end_ && !Fill(deadline_)) return eof_ ? 0 : -1;
    const size_t n = std::min(size, end_ - begin_);
    std::copy_n(buffer_ + begin_, n, data);
    begin_ += n;
    return static_cast<ssize_t>(n);
  }
  // The time of a request does not count for its answer.
  ssize_t write(const char* data, size_t size) override {
    return Wait(POLLOUT, Clock::now() + std::chrono::seconds(kTimeoutSeconds))
               ? send(socket_, data, size, MSG_NOSIGNAL)
               : -1;
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

  // Reads what is left of a refused request: if it were not read, the system would tell the client
  // of a broken connection instead of the answer.
  void Drain() {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(2);
    while (Fill(std::min(end, deadline_))) begin_ = end_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool Wait(short events, Clock::time_point until) const {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd poll_fd = {socket_, events, 0};
    return left > 0 && poll(&poll_fd, 1, static_cast<int>(left)) > 0;
  }
  bool Fill(Clock::time_point until) {
    if (left_ == 0 || !Wait(POLLIN, until)) return false;
    const ssize_t n = recv(socket_, buffer_, std::min(left_, sizeof(buffer_)), 0);
    eof_ = n == 0;
    if (n <= 0) return false;
    left_ -= static_cast<size_t>(n);
    begin_ = 0;
    end_ = static_cast<size_t>(n);
    return true;
  }

  const socket_t socket_;
  size_t left_;
  Clock::time_point deadline_;
  bool eof_ = false;
  size_t begin_ = 0;
  size_t end_ = 0;
  char buffer_[4096];
};

// A server whose connections are bounded, and are for one request each.
class BoundedServer final : public Server {
 public:
  void set_head_seconds(int seconds) { head_seconds_ = seconds; }

  // Gives the request that this thread handles more time, after its head.
  static void AcceptRequest() { Current()->Accept(); }

 private:
  // The connection of this thread.
  static BoundedStream*& Current() {
    static thread_local BoundedStream* stream = nullptr;
    return stream;
  }
  bool process_and_close_socket(socket_t socket) override {
    constexpr size_t kMaxHead = 64 << 10;
    BoundedStream stream(socket, payload_max_length_ + kMaxHead, head_seconds_);
    bool closed = false;
    Current() = &stream;
    const bool ok = process_request(stream, /*close_connection=*/true, closed, nullptr);
    Current() = nullptr;
    shutdown(socket, SHUT_WR);
    stream.Drain();
    close(socket);
    return ok;
  }

  int head_seconds_ = kTimeoutSeconds;
};

int HttpCode(const absl::Status& status) {
  if (absl::IsNotFound(status)) return 404;
  return absl::IsInternal(status) ? 500 : 400;
}

}  // namespace

struct EditServer::Impl {
  EditApi* api = nullptr;
  BoundedServer server;
  int port = 0;
  size_t max_body_bytes = 0;
  std::string token;
  std::string cookie;
  std::string key;
  std::string origin;
  std::string cookie_name;
  std::string policy;
  std::atomic<bool> is_token_used{false};
  std::atomic<bool> is_stopped{false};
  enum class State { kIdle, kServing, kDone };
  std::atomic<State> state{State::kIdle};

  static void Refuse(Response* response, int code, absl::string_view reason) {
    response->status = code;
    response->set_content(absl::StrCat("{\"error\":", Quoted(reason), "}"), "application/json");
  }

  bool HasCookie(const Request& request) const {
    for (const absl::string_view part :
         absl::StrSplit(request.get_header_value("Cookie"), absl::ByAnyChar("; "))) {
      const std::pair<absl::string_view, absl::string_view> pair =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      if (pair.first == absl::string_view(cookie_name)) return IsSecret(pair.second, cookie);
    }
    return false;
  }

  // Refuses what does not come from the page, before a body is read.
  bool IsRefused(const Request& request, Response* response) const {
    const auto refuse = [&](int code, absl::string_view reason) {
      Refuse(response, code, reason);
      return true;
    };
    // A page of another site may have a name that leads here.
    if (request.get_header_value_count("Host") != 1 ||
        absl::StrCat("http://", request.get_header_value("Host")) != origin) {
      return refuse(421, "expected another host");
    }
    const bool is_post = request.method == "POST";
    if (!is_post && request.method != "GET") return refuse(405, "expected GET or POST");
    const std::string from = request.get_header_value("Origin");
    if ((is_post || request.has_header("Origin")) && from != origin) {
      return refuse(403, "expected another origin");
    }
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    if (!site.empty() && site != "same-origin" && site != "none") {
      return refuse(403, "expected no other site");
    }
    // A request of GET has no body. Encoded ones could be larger than they state.
    if (request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding")) {
      return refuse(400, "expected a body without encoding");
    }
    uint64_t length = 0;
    const std::string stated = request.get_header_value("Content-Length");
    if ((is_post || !stated.empty()) && (request.get_header_value_count("Content-Length") != 1 ||
                                         !absl::SimpleAtoi(stated, &length))) {
      return refuse(411, "expected the length of the body");
    }
    if (!is_post) return length > 0 ? refuse(400, "expected no body") : false;
    if (length > max_body_bytes) {
      return refuse(413, absl::StrCat("the body has ", length, " bytes, but at most ",
                                      max_body_bytes, " are allowed"));
    }
    if (request.get_header_value("Content-Type") != "application/json") {
      return refuse(415, "expected application/json");
    }
    if (!HasCookie(request) || request.get_header_value_count(kKeyHeader) != 1 ||
        !IsSecret(request.get_header_value(kKeyHeader), key)) {
      return refuse(403, "expected the page's own request; start `gradflow edit` again");
    }
    BoundedServer::AcceptRequest();
    return false;
  }

  // Serves the page without data, which it asks for with its key.
  void ServePage(const Request& request, Response* response) {
    // The token works once; the page gets the secrets for it.
    const bool is_right = request.get_param_value_count("token") == 1 &&
                          IsSecret(request.get_param_value("token"), token);
    const bool is_first = is_right && !is_token_used.exchange(true);
    if (is_first) {
      response->set_header("Set-Cookie", absl::StrCat(cookie_name, "=", cookie,
                                                      "; Path=/; HttpOnly; SameSite=Strict"));
    } else if (!HasCookie(request)) {
      Refuse(response, 403,
             is_right ? "the address works once; start `gradflow edit` again"
                      : "expected the address that `gradflow edit` printed");
      return;
    }
    const absl::StatusOr<std::string> page = ServedPage(is_first ? key : "");
    if (!page.ok()) {
      Refuse(response, 500, page.status().message());
      return;
    }
    response->set_header("Content-Security-Policy", "frame-ancestors 'none'");
    // The page may call this server. The first occurrence is in its policy.
    std::string text = *page;
    const size_t place = text.find(kNoConnection);
    if (place == std::string::npos) {
      Refuse(response, 500, "the page has no policy");
      return;
    }
    text.replace(place, sizeof(kNoConnection) - 1, kOwnConnection);
    response->set_content(text, "text/html; charset=utf-8");
  }

  void ServeCall(const Request& request, Response* response) {
    const std::string name = request.matches[1];
    absl::StatusOr<std::string> result = absl::InternalError("not called");
    const absl::Status status = CallSafely([&] {
      result = api->Call(name, request.body);
      return absl::OkStatus();
    });
    if (!status.ok()) result = status;
    if (!result.ok()) {
      Refuse(response, HttpCode(result.status()),
             absl::StrCat(absl::StatusCodeToString(result.status().code()), ": ",
                          errors::Printable(result.status().message(), 16384)));
      return;
    }
    response->set_content(*std::move(result), "application/json");
  }

  // The beginning of the policy of the page, and of that of the page that may call this server.
  static constexpr char kNoConnection[] = "default-src 'none';";
  static constexpr char kOwnConnection[] = "default-src 'none'; connect-src 'self';";
};

EditServer::EditServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EditServer::~EditServer() = default;

absl::StatusOr<std::unique_ptr<EditServer>> EditServer::Make(EditApi* api,
                                                             const EditServerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->api = api;
  impl->max_body_bytes = options.max_body_bytes;
  GRADFLOW_ASSIGN_OR_RETURN(impl->token, Secret());
  GRADFLOW_ASSIGN_OR_RETURN(impl->cookie, Secret());
  GRADFLOW_ASSIGN_OR_RETURN(impl->key, Secret());
  Server& server = impl->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(options.max_body_bytes);
  impl->server.set_head_seconds(options.head_timeout_seconds);
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  // No other process shares the port, as it may by the library's default.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  if (options.port == 0) {
    impl->port = server.bind_to_any_port(kHost);
  } else {
    impl->port = server.bind_to_port(kHost, options.port) ? options.port : -1;
  }
  if (impl->port < 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", kHost, ":", options.port));
  }
  impl->origin = absl::StrCat("http://", kHost, ":", impl->port);
  // Cookies of all ports of a host are one.
  impl->cookie_name = absl::StrCat("gradflow_", impl->port);
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"Cross-Origin-Opener-Policy", "same-origin"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Referrer-Policy", "no-referrer"},
                              {"X-Content-Type-Options", "nosniff"}});
  Impl* const self = impl.get();
  server.set_pre_routing_handler([self](const Request& request, Response& response) {
    return self->IsRefused(request, &response) ? Server::HandlerResponse::Handled
                                               : Server::HandlerResponse::Unhandled;
  });
  server.Get("/", [self](const Request& request, Response& response) {
    self->ServePage(request, &response);
  });
  server.Post(R"(/api/([a-z]+))", [self](const Request& request, Response& response) {
    self->ServeCall(request, &response);
  });
  return std::unique_ptr<EditServer>(new EditServer(std::move(impl)));
}

std::string EditServer::Url() const {
  return absl::StrCat(impl_->origin, "/?token=", impl_->token);
}

const std::string& EditServer::Origin() const { return impl_->origin; }

int EditServer::port() const { return impl_->port; }

absl::Status EditServer::Serve() {
  impl_->state = Impl::State::kServing;
  const bool served = impl_->is_stopped || impl_->server.listen_after_bind();
  impl_->state = Impl::State::kDone;
  if (served || impl_->is_stopped) return absl::OkStatus();
  return absl::UnavailableError("the server has failed");
}

void EditServer::Stop() {
  impl_->is_stopped = true;
  impl_->api->Stop();
  // The library forgets a stop before it listens.
  while (impl_->state == Impl::State::kServing && !impl_->server.is_running()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  impl_->server.stop();
}

}  // namespace gradflow::tools
