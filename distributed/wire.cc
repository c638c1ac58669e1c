#include "gradflow/distributed/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow::distributed {
namespace {

constexpr uint32_t kMagic = 0x31434647;  // "GFC1"

struct FrameHead {
  uint32_t magic;
  MessageKind kind;
  uint32_t length;
};

using Clock = std::chrono::steady_clock;

// The addresses of a name; freed at the end of the scope.
class Addresses {
 public:
  Addresses() = default;
  ~Addresses() {
    if (list_ != nullptr) freeaddrinfo(list_);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;

  absl::Status Find(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    const int code = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list_);
    if (code == 0) return absl::OkStatus();
    list_ = nullptr;
    return absl::UnavailableError(
        absl::StrCat("address of '", errors::Printable(host), "': ", gai_strerror(code)));
  }
  const addrinfo* list() const { return list_; }

 private:
  addrinfo* list_ = nullptr;
};

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

// Connects to one address.
absl::StatusOr<Fd> ConnectOnce(const addrinfo& address, Clock::time_point deadline) {
  Fd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return SocketError("socket");
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return SocketError("connect");
  pollfd entry = {fd.get(), POLLOUT, 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, MillisecondsUntil(deadline));
  } while (ready < 0 && errno == EINTR);
  int error = ready > 0 ? 0 : ETIMEDOUT;
  socklen_t size = sizeof(error);
  if (ready > 0) getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return fd;
  errno = error;
  return SocketError("connect");
}

}  // namespace

// ---- Messages ----

std::string MeshKeyPrefix(uint64_t context) { return absl::StrCat("mesh/", context, "/"); }

MessageWriter::MessageWriter(MessageKind kind) { Add(FrameHead{kMagic, kind, 0}); }

std::string MessageWriter::Finish() {
  const auto length = static_cast<uint32_t>(frame_.size() - sizeof(FrameHead));
  std::memcpy(&frame_[offsetof(FrameHead, length)], &length, sizeof(length));
  return std::move(frame_);
}

std::string MessageReader::GetText() {
  const auto size = Get<uint32_t>();
  if (size > rest_.size()) {
    Fail();
    return std::string();
  }
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

absl::Status MessageReader::GetStatus() {
  const auto code = Get<int32_t>();
  const std::string text = GetText();
  return absl::Status(static_cast<absl::StatusCode>(code), text);
}

absl::StatusOr<bool> FrameBuffer::Next(MessageKind* kind, std::string* body, uint32_t max_body) {
  if (bytes_.size() - begin_ < sizeof(FrameHead)) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return false;
  }
  FrameHead head;
  std::memcpy(&head, bytes_.data() + begin_, sizeof(head));
  if (head.magic != kMagic || head.length > max_body) {
    return errors::InvalidArgument("the peer is not a rank of gradflow");
  }
  if (bytes_.size() - begin_ < sizeof(head) + head.length) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    return false;
  }
  *kind = head.kind;
  body->assign(bytes_, begin_ + sizeof(head), head.length);
  begin_ += sizeof(head) + head.length;
  return true;
}

// ---- Sockets ----

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SocketError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

absl::StatusOr<std::pair<std::string, int>> SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return errors::InvalidArgument("an address must be host:port, but is '",
                                   errors::Printable(address), "'");
  }
  absl::string_view host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return std::make_pair(std::string(host), port);
}

absl::StatusOr<Fd> Listen(int* port) {
  for (const int family : {AF_INET6, AF_INET}) {
    Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.is_open()) continue;
    const int on = 1;
    const int off = 0;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_storage address{};
    socklen_t size = 0;
    if (family == AF_INET6) {
      // Accepts IPv4 as well.
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
      auto* const in6 = reinterpret_cast<sockaddr_in6*>(&address);
      in6->sin6_family = AF_INET6;
      in6->sin6_port = htons(static_cast<uint16_t>(*port));
      size = sizeof(*in6);
    } else {
      auto* const in = reinterpret_cast<sockaddr_in*>(&address);
      in->sin_family = AF_INET;
      in->sin_port = htons(static_cast<uint16_t>(*port));
      size = sizeof(*in);
    }
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(fd.get(), SOMAXCONN) != 0) {
      if (family == AF_INET) return SocketError(absl::StrCat("listening on port ", *port));
      continue;
    }
    size = sizeof(address);
    if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return SocketError("getsockname");
    }
    *port = ntohs(address.ss_family == AF_INET6
                      ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                      : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
    return fd;
  }
  return SocketError(absl::StrCat("listening on port ", *port));
}

absl::StatusOr<Fd> ConnectTo(const std::string& host, int port, Clock::time_point deadline) {
  constexpr std::chrono::milliseconds kPause(20);
  // A name may have several addresses, some of which do not answer.
  constexpr std::chrono::seconds kAttempt(3);
  absl::Status status;
  while (true) {
    Addresses addresses;
    status = addresses.Find(host, port);
    for (const addrinfo* address = addresses.list(); address != nullptr;
         address = address->ai_next) {
      absl::StatusOr<Fd> fd = ConnectOnce(*address, std::min(deadline, Clock::now() + kAttempt));
      if (fd.ok()) return fd;
      status = fd.status();
    }
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_until(std::min(deadline, Clock::now() + kPause));
  }
  return errors::Prefix(absl::StrCat("connecting to ", errors::Printable(host), ":", port, ": "),
                        status);
}

void PrepareSocket(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

absl::StatusOr<std::string> LocalHost(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST];
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return SocketError("getsockname");
  }
  // An IPv4 address that is written as IPv6.
  if (address.ss_family == AF_INET6) {
    const auto* const in6 = reinterpret_cast<const sockaddr_in6*>(&address);
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
      const uint8_t* const b = in6->sin6_addr.s6_addr + 12;
      return absl::StrCat(b[0], ".", b[1], ".", b[2], ".", b[3]);
    }
  }
  const int code = getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof(host),
                               nullptr, 0, NI_NUMERICHOST);
  if (code != 0) return absl::UnavailableError(absl::StrCat("getnameinfo: ", gai_strerror(code)));
  return std::string(host);
}

absl::StatusOr<bool> ReadAvailable(int fd, FrameBuffer* buffer) {
  // The rest is read later, so that a fast sender holds up nobody else.
  constexpr int kMaxBlocks = 16;
  char block[1 << 16];
  for (int blocks = 0; blocks < kMaxBlocks;) {
    const ssize_t n = recv(fd, block, sizeof(block), MSG_DONTWAIT);
    if (n > 0) {
      buffer->Append(block, static_cast<size_t>(n));
      ++blocks;
      if (static_cast<size_t>(n) < sizeof(block)) return true;
    } else if (n == 0) {
      return false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      return SocketError("recv");
    }
  }
  return true;
}

absl::Status WriteAvailable(int fd, std::string* bytes) {
  size_t written = 0;
  absl::Status status;
  while (written < bytes->size()) {
    const ssize_t n =
        send(fd, bytes->data() + written, bytes->size() - written, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      written += static_cast<size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      status = SocketError("send");
      break;
    }
  }
  bytes->erase(0, written);
  return status;
}

void BlockSignals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace gradflow::distributed
