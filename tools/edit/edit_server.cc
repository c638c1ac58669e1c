#include "tools/edit/edit_server.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "tools/edit/edit_access.h"
#include "tools/edit/http_head.h"
#include "tools/view/page.h"

namespace gradflow::tools {
namespace {

namespace asio = ::boost::asio;
using ::boost::asio::ip::tcp;
using Error = ::boost::system::error_code;
using Seconds = std::chrono::duration<double>;

// Threads for calls. Only one run executes at a time, so more threads would mostly wait.
constexpr size_t kCallThreads = 8;
// Calls that cancel have a separate thread, because they end work that keeps the other threads
// busy.
constexpr char kCancel[] = "cancel";
// The number of calls that cancel that may be in progress in addition to `max_calls`.
constexpr size_t kMoreCancels = 8;
// The number of pages that may be sent at a time. A further page closes the oldest connection that
// receives a page.
constexpr size_t kMaxPages = 16;
// Bytes that are read from a connection at a time. Connections take turns.
constexpr size_t kReadBytes = 4096;
// The pause after a failure to accept a connection.
constexpr std::chrono::milliseconds kAcceptPause(100);

constexpr char kJson[] = "application/json";

int HttpCode(const absl::Status& status) {
  if (absl::IsNotFound(status)) return 404;
  return absl::IsInternal(status) ? 500 : 400;
}

// Returns the page. Its policy allows calls of this server.
absl::StatusOr<std::string> CallingPage(absl::string_view key) {
  constexpr absl::string_view kNoConnection = "default-src 'none';";
  constexpr absl::string_view kOwnConnection = "default-src 'none'; connect-src 'self';";
  GRADFLOW_ASSIGN_OR_RETURN(std::string page, ServedPage(key));
  // The first occurrence of the text is in the policy of the page.
  const size_t place = page.find(kNoConnection.data(), 0, kNoConnection.size());
  if (place == std::string::npos) return errors::Internal("the page has no policy");
  page.replace(place, kNoConnection.size(), kOwnConnection.data(), kOwnConnection.size());
  return page;
}

// Returns the memory of a string of this capacity outside of the object.
size_t HeapBytes(size_t capacity) { return capacity > std::string().capacity() ? capacity : 0; }

struct Connection;
using ConnectionPtr = std::shared_ptr<Connection>;

// Connections of one kind, the oldest first.
struct Group {
  explicit Group(size_t max_size) : limit(max_size) {}
  const size_t limit;
  std::list<ConnectionPtr> connections;
};

struct Connection {
  Connection(tcp::socket accepted, asio::io_context* io)
      : socket(std::move(accepted)), timer(*io) {}

  tcp::socket socket;
  asio::steady_timer timer;
  bool is_open = true;
  // The group of the connection, and its place there.
  Group* group = nullptr;
  std::list<ConnectionPtr>::iterator place;

  HeadBuffer head;
  EditRequest request;
  std::string body;
  // The number of bytes of the body that have arrived with the head.
  size_t body_begin = 0;
  // A worker has the call. Only the worker uses `body` and `result` until it is done.
  bool is_working = false;
  absl::StatusOr<std::string> result = absl::InternalError("not called");
  std::string answer_head;
  std::shared_ptr<const std::string> answer;
  // Bytes that may still be read after the answer.
  size_t drain_bytes = 0;
  // The memory of `head` and `body` that is included in the counts.
  size_t counted_head = 0;
  size_t counted_body = 0;
};

}  // namespace

// The thread of Serve() runs all functions of connections. Each handler of an event keeps its
// connection alive. A connection is in exactly one group until it is closed:
//
//   waiting_  no request has been accepted, or the answer has been sent
//   pages_    the page is being sent
//   calls_    a call is being read, worked on or answered
class EditServer::Impl {
 public:
  static absl::StatusOr<std::unique_ptr<Impl>> Make(EditApi* api, const EditServerOptions& options);

  const EditAccess& access() const { return *access_; }
  int port() const { return port_; }

  absl::Status Serve();
  void Stop();
  EditServerCounts Counts() const {
    const std::lock_guard<std::mutex> lock(counts_mutex_);
    return counts_;
  }

 private:
  Impl(EditApi* api, const EditServerOptions& options)
      : api_(api),
        options_(options),
        acceptor_(io_),
        accept_timer_(io_),
        waiting_(options.max_waiting),
        pages_(kMaxPages),
        calls_(options.max_calls),
        workers_(kCallThreads),
        canceler_(1) {}

  absl::Status Listen();

  // Waits for a connection.
  void Accept();
  void Add(tcp::socket socket);
  // Puts a connection into a group. If the group is full, closes its oldest connection.
  void Move(const ConnectionPtr& connection, Group* group);
  void Close(const ConnectionPtr& connection);
  // Closes the connection after the time, unless the timer is set again or cleared before.
  void SetTimer(const ConnectionPtr& connection, Seconds time);
  void ClearTimer(const ConnectionPtr& connection);

  void ReadHead(const ConnectionPtr& connection);
  void HandleHead(const ConnectionPtr& connection);
  void AcceptCall(const ConnectionPtr& connection);
  void ReadBody(const ConnectionPtr& connection);
  void StartCall(const ConnectionPtr& connection);
  void AnswerCall(const ConnectionPtr& connection);
  void SendPage(const ConnectionPtr& connection);
  void Refuse(const ConnectionPtr& connection, const HttpRefusal& refusal);
  void Answer(const ConnectionPtr& connection, int code, const char* type,
              std::shared_ptr<const std::string> body,
              std::vector<std::pair<absl::string_view, std::string>> fields, Seconds time);
  // Reads the rest of a request. Otherwise the system would report a broken connection to the
  // client instead of the answer.
  void Drain(const ConnectionPtr& connection);

  // Reads available bytes into `buffer`. Returns no bytes if the connection is closed or has no
  // bytes.
  absl::string_view ReadSome(const ConnectionPtr& connection, char (&buffer)[kReadBytes],
                             Error* error);

  // Returns a handler that calls `handle` with an Error while the connection is open, and closes
  // the connection if memory runs out.
  template <typename Handle>
  auto Guard(const ConnectionPtr& connection, Handle handle) {
    return [this, connection, handle](Error error, size_t = 0) {
      if (!connection->is_open) return;
      const absl::Status status = CallSafely([&] {
        handle(error);
        return absl::OkStatus();
      });
      if (!status.ok()) Close(connection);
    };
  }

  template <typename Change>
  void Count(Change change) {
    const std::lock_guard<std::mutex> lock(counts_mutex_);
    change(&counts_);
  }
  // Corrects the counts after a change of waiting_.
  void CountWaiting();
  // Corrects the counts after a change of `head` or `body`.
  void CountMemory(const ConnectionPtr& connection);

  EditApi* const api_;
  const EditServerOptions options_;
  std::unique_ptr<EditAccess> access_;
  int port_ = 0;

  mutable std::mutex counts_mutex_;
  EditServerCounts counts_;

  // Connections use this object, so it is destroyed after them.
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
  // The thread of Serve() uses this member and all following members alone, except the thread
  // pools.
  bool is_stopping_ = false;
  Group waiting_;
  Group pages_;
  Group calls_;
  size_t heads_bytes_ = 0;
  size_t bodies_bytes_ = 0;
  // The page without a key; null until a client first requests it.
  std::shared_ptr<const std::string> page_;

  // Destroyed first, because their work uses all other members.
  asio::thread_pool workers_;
  asio::thread_pool canceler_;
};

absl::StatusOr<std::unique_ptr<EditServer::Impl>> EditServer::Impl::Make(
    EditApi* api, const EditServerOptions& options) {
  std::unique_ptr<Impl> impl;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    impl.reset(new Impl(api, options));
    GRADFLOW_RETURN_IF_ERROR(impl->Listen());
    GRADFLOW_ASSIGN_OR_RETURN(EditSecrets secrets, EditSecrets::Make());
    impl->access_ =
        std::make_unique<EditAccess>(std::move(secrets), impl->port_, options.max_body_bytes);
    return absl::OkStatus();
  }));
  return impl;
}

absl::Status EditServer::Impl::Listen() {
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(),
                               static_cast<uint16_t>(options_.port));
  Error error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  // The port can be used again immediately. No other process can share it.
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor_.non_blocking(true, error);
  if (!error) port_ = acceptor_.local_endpoint(error).port();
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on 127.0.0.1:", options_.port, ": ", error.message()));
}

absl::Status EditServer::Impl::Serve() {
  const absl::Status status = CallSafely([&] {
    Accept();
    io_.run();
    return absl::OkStatus();
  });
  if (!status.ok()) api_->Stop();
  workers_.join();
  canceler_.join();
  if (status.ok()) return status;
  return absl::UnavailableError(absl::StrCat("the server has failed: ", status.message()));
}

void EditServer::Impl::Stop() {
  api_->Stop();
  asio::post(io_, [this] {
    is_stopping_ = true;
    Error ignored;
    acceptor_.close(ignored);
    accept_timer_.cancel();
    while (!waiting_.connections.empty()) Close(waiting_.connections.front());
    // Clients may receive answers that are being sent, and the answers of calls that still run.
    for (Group* const group : {&pages_, &calls_}) {
      for (const ConnectionPtr& connection : std::list<ConnectionPtr>(group->connections)) {
        if (!connection->is_working) SetTimer(connection, Seconds(options_.linger_seconds));
      }
    }
  });
}

void EditServer::Impl::Accept() {
  // Waits first, because accept() fails without a free file descriptor even if there is no
  // connection.
  acceptor_.async_wait(tcp::acceptor::wait_read, [this](Error error) {
    if (is_stopping_) return;
    tcp::socket socket(io_);
    if (!error) acceptor_.accept(socket, error);
    if (!error) {
      // If memory runs out, the connection is closed.
      CallSafely([&] {
        Add(std::move(socket));
        return absl::OkStatus();
      }).IgnoreError();
    } else if (error != asio::error::would_block) {
      // Closes the oldest connection without an accepted request to make room.
      Count([](EditServerCounts* counts) { ++counts->accept_failures; });
      if (!waiting_.connections.empty()) {
        Count([](EditServerCounts* counts) { ++counts->displaced; });
        Close(waiting_.connections.front());
      }
      accept_timer_.expires_after(kAcceptPause);
      accept_timer_.async_wait([this](Error) {
        if (!is_stopping_) Accept();
      });
      return;
    }
    Accept();
  });
}

void EditServer::Impl::Add(tcp::socket socket) {
  Count([](EditServerCounts* counts) { ++counts->connections; });
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  Error error;
  socket.non_blocking(true, error);
  if (error) return;
  const auto connection = std::make_shared<Connection>(std::move(socket), &io_);
  Move(connection, &waiting_);
  SetTimer(connection, Seconds(options_.head_timeout_seconds));
  ReadHead(connection);
}

void EditServer::Impl::Move(const ConnectionPtr& connection, Group* group) {
  if (connection->group == nullptr) {
    connection->place = group->connections.insert(group->connections.end(), connection);
  } else {
    group->connections.splice(group->connections.end(), connection->group->connections,
                              connection->place);
  }
  connection->group = group;
  while (group->connections.size() > group->limit && group != &calls_) {
    Count([](EditServerCounts* counts) { ++counts->displaced; });
    Close(group->connections.front());
  }
  CountWaiting();
}

void EditServer::Impl::Close(const ConnectionPtr& connection) {
  // The group may hold the last other reference.
  const ConnectionPtr kept = connection;  // NOLINT(performance-unnecessary-copy-initialization)
  if (!kept->is_open) return;
  kept->is_open = false;
  Error ignored;
  kept->socket.close(ignored);
  kept->timer.cancel();
  kept->head.Clear();
  if (!kept->is_working) std::string().swap(kept->body);
  CountMemory(kept);
  kept->group->connections.erase(kept->place);
  CountWaiting();
}

void EditServer::Impl::SetTimer(const ConnectionPtr& connection, Seconds time) {
  using Clock = asio::steady_timer::clock_type;
  connection->timer.expires_after(std::chrono::duration_cast<Clock::duration>(time));
  connection->timer.async_wait(Guard(connection, [this, connection](Error) {
    // A later call has set the timer again.
    if (connection->timer.expiry() > Clock::now()) return;
    Count([](EditServerCounts* counts) { ++counts->timed_out; });
    Close(connection);
  }));
}

void EditServer::Impl::ClearTimer(const ConnectionPtr& connection) {
  connection->timer.expires_at(asio::steady_timer::time_point::max());
}

void EditServer::Impl::CountWaiting() {
  Count([this](EditServerCounts* counts) {
    counts->waiting = waiting_.connections.size();
    counts->most_waiting = std::max(counts->most_waiting, counts->waiting);
  });
}

void EditServer::Impl::CountMemory(const ConnectionPtr& connection) {
  const size_t head = HeapBytes(connection->head.capacity());
  const size_t body = HeapBytes(connection->body.capacity());
  heads_bytes_ += head - connection->counted_head;
  bodies_bytes_ += body - connection->counted_body;
  connection->counted_head = head;
  connection->counted_body = body;
  Count([&](EditServerCounts* counts) {
    counts->heads_bytes = heads_bytes_;
    counts->bodies_bytes = bodies_bytes_;
    counts->most_head_bytes = std::max(counts->most_head_bytes, head);
    counts->most_heads_bytes = std::max(counts->most_heads_bytes, heads_bytes_);
    counts->most_bodies_bytes = std::max(counts->most_bodies_bytes, bodies_bytes_);
  });
}

absl::string_view EditServer::Impl::ReadSome(const ConnectionPtr& connection,
                                             char (&buffer)[kReadBytes], Error* error) {
  const size_t size = connection->socket.read_some(asio::buffer(buffer), *error);
  if (*error == asio::error::would_block) *error = Error();
  return absl::string_view(buffer, size);
}

void EditServer::Impl::ReadHead(const ConnectionPtr& connection) {
  // Waits without a buffer, so that an idle connection does not hold one.
  connection->socket.async_wait(tcp::socket::wait_read,
                                Guard(connection, [this, connection](Error error) {
                                  char buffer[kReadBytes];
                                  absl::string_view bytes;
                                  if (!error) bytes = ReadSome(connection, buffer, &error);
                                  if (error == asio::error::eof && !connection->head.empty()) {
                                    Refuse(connection, {400, "expected a whole request"});
                                  } else if (error) {
                                    Close(connection);
                                  } else {
                                    const HeadBuffer::State state = connection->head.Add(bytes);
                                    CountMemory(connection);
                                    if (state == HeadBuffer::State::kTooLarge) {
                                      Refuse(connection, HeadTooLarge());
                                    } else if (state == HeadBuffer::State::kComplete) {
                                      HandleHead(connection);
                                    } else {
                                      ReadHead(connection);
                                    }
                                  }
                                }));
}

void EditServer::Impl::HandleHead(const ConnectionPtr& connection) {
  connection->request = access_->Check(connection->head.head());
  switch (connection->request.kind) {
    case EditRequest::Kind::kRefused:
      Refuse(connection, connection->request.refusal);
      break;
    case EditRequest::Kind::kPage:
    case EditRequest::Kind::kFirstPage:
      SendPage(connection);
      break;
    case EditRequest::Kind::kCall:
      AcceptCall(connection);
      break;
  }
}

void EditServer::Impl::SendPage(const ConnectionPtr& connection) {
  const bool is_first = connection->request.kind == EditRequest::Kind::kFirstPage;
  std::shared_ptr<const std::string> page = is_first ? nullptr : page_;
  if (page == nullptr) {
    absl::StatusOr<std::string> made = CallingPage(is_first ? access_->key() : "");
    if (!made.ok()) {
      Refuse(connection, {500, std::string(made.status().message())});
      return;
    }
    page = std::make_shared<const std::string>(*std::move(made));
    if (!is_first) page_ = page;
  }
  std::vector<std::pair<absl::string_view, std::string>> fields = {
      {"Content-Security-Policy", "frame-ancestors 'none'"}};
  if (is_first) fields.emplace_back("Set-Cookie", access_->SetCookie());
  Move(connection, &pages_);
  Answer(connection, 200, "text/html; charset=utf-8", std::move(page), std::move(fields),
         Seconds(options_.answer_timeout_seconds));
}

void EditServer::Impl::AcceptCall(const ConnectionPtr& connection) {
  const EditRequest& request = connection->request;
  const size_t limit = calls_.limit + (request.call == kCancel ? kMoreCancels : 0);
  if (calls_.connections.size() >= limit) {
    Refuse(connection, {503, "too many calls are in progress"});
    return;
  }
  Move(connection, &calls_);
  SetTimer(connection, Seconds(options_.body_timeout_seconds));
  // A second request after the body is not served.
  const absl::string_view begin = connection->head.rest().substr(0, request.body_bytes);
  connection->body.assign(begin.data(), begin.size());
  connection->body.resize(request.body_bytes);
  connection->body_begin = begin.size();
  connection->head.Clear();
  CountMemory(connection);
  if (!request.expects_continue || connection->body_begin == request.body_bytes) {
    ReadBody(connection);
    return;
  }
  static constexpr absl::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(connection->socket, asio::buffer(kContinue.data(), kContinue.size()),
                    Guard(connection, [this, connection](Error error) {
                      if (error) return Close(connection);
                      ReadBody(connection);
                    }));
}

void EditServer::Impl::ReadBody(const ConnectionPtr& connection) {
  const size_t begin = connection->body_begin;
  asio::async_read(connection->socket,
                   asio::buffer(connection->body.data() + begin, connection->body.size() - begin),
                   Guard(connection, [this, connection](Error error) {
                     // A body that ends too early gets no answer.
                     if (error) return Close(connection);
                     StartCall(connection);
                   }));
}

void EditServer::Impl::StartCall(const ConnectionPtr& connection) {
  ClearTimer(connection);
  connection->is_working = true;
  asio::thread_pool& pool = connection->request.call == kCancel ? canceler_ : workers_;
  asio::post(pool, [this, connection, work = asio::make_work_guard(io_)] {
    const absl::Status status = CallSafely([&] {
      connection->result = api_->Call(connection->request.call, connection->body);
      return absl::OkStatus();
    });
    if (!status.ok()) connection->result = status;
    // If memory runs out, the connection stays open without an answer.
    CallSafely([&] {
      asio::post(io_, [this, connection] {
        connection->is_working = false;
        Guard(connection, [this, connection](Error) { AnswerCall(connection); })(Error());
      });
      return absl::OkStatus();
    }).IgnoreError();
  });
}

void EditServer::Impl::AnswerCall(const ConnectionPtr& connection) {
  const absl::StatusOr<std::string>& result = connection->result;
  int code = 200;
  std::shared_ptr<const std::string> answer;
  if (result.ok()) {
    answer = std::make_shared<const std::string>(*std::move(connection->result));
  } else {
    code = HttpCode(result.status());
    answer = std::make_shared<const std::string>(
        ErrorJson(absl::StrCat(absl::StatusCodeToString(result.status().code()), ": ",
                               errors::Printable(result.status().message(), 16384))));
  }
  Answer(connection, code, kJson, std::move(answer), {}, Seconds(options_.answer_timeout_seconds));
}

void EditServer::Impl::Refuse(const ConnectionPtr& connection, const HttpRefusal& refusal) {
  Count([](EditServerCounts* counts) { ++counts->refused; });
  Answer(connection, refusal.code, kJson,
         std::make_shared<const std::string>(ErrorJson(refusal.reason)), {},
         Seconds(options_.linger_seconds));
}

void EditServer::Impl::Answer(const ConnectionPtr& connection, int code, const char* type,
                              std::shared_ptr<const std::string> body,
                              std::vector<std::pair<absl::string_view, std::string>> fields,
                              Seconds time) {
  connection->head.Clear();
  std::string().swap(connection->body);
  CountMemory(connection);
  fields.insert(fields.end(), {{"Cache-Control", "no-store"},
                               {"Cross-Origin-Opener-Policy", "same-origin"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Referrer-Policy", "no-referrer"},
                               {"X-Content-Type-Options", "nosniff"},
                               {"Content-Type", type},
                               {"Content-Length", absl::StrCat(body->size())}});
  connection->answer_head = HttpResponseHead(code, fields);
  connection->answer = std::move(body);
  connection->drain_bytes = options_.max_body_bytes + kMaxHeadBytes;
  SetTimer(connection, is_stopping_ ? Seconds(options_.linger_seconds) : time);
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(connection->answer_head),
                                                   asio::buffer(*connection->answer)};
  asio::async_write(connection->socket, parts, Guard(connection, [this, connection](Error error) {
                      if (error) return Close(connection);
                      connection->answer = nullptr;
                      connection->socket.shutdown(tcp::socket::shutdown_send, error);
                      if (connection->group != &waiting_) Move(connection, &waiting_);
                      SetTimer(connection, Seconds(options_.linger_seconds));
                      Drain(connection);
                    }));
}

void EditServer::Impl::Drain(const ConnectionPtr& connection) {
  connection->socket.async_wait(tcp::socket::wait_read,
                                Guard(connection, [this, connection](Error error) {
                                  char buffer[kReadBytes];
                                  size_t size = 0;
                                  if (!error) size = ReadSome(connection, buffer, &error).size();
                                  if (error || size > connection->drain_bytes)
                                    return Close(connection);
                                  connection->drain_bytes -= size;
                                  Drain(connection);
                                }));
}

EditServer::EditServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EditServer::~EditServer() = default;

absl::StatusOr<std::unique_ptr<EditServer>> EditServer::Make(EditApi* api,
                                                             const EditServerOptions& options) {
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Make(api, options));
  return std::unique_ptr<EditServer>(new EditServer(std::move(impl)));
}

std::string EditServer::Url() const { return impl_->access().Url(); }
const std::string& EditServer::Origin() const { return impl_->access().origin(); }
int EditServer::port() const { return impl_->port(); }

absl::Status EditServer::Serve() { return impl_->Serve(); }
void EditServer::Stop() { impl_->Stop(); }
EditServerCounts EditServer::Counts() const { return impl_->Counts(); }

}  // namespace gradflow::tools
