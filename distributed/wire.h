// Messages between the ranks and the hub (control_hub.h), and sockets.
//
// A message is a frame: a magic number, a kind, a length, and a body. Numbers have the byte order
// of the machine, which is the same on all machines of a run.
#ifndef GRADFLOW_DISTRIBUTED_WIRE_H_
#define GRADFLOW_DISTRIBUTED_WIRE_H_

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow::distributed {

enum class MessageKind : uint32_t {
  // ---- From a rank to the hub ----
  kHello = 1,
  // Stores a value, and asks for one.
  kSet,
  kGet,
  // A call, its cancellation, and the end of an exchange.
  kJoin,
  kCancel,
  kDone,
  // ---- From the hub to a rank ----
  kWelcome,
  kValue,
  // Begins an exchange, commits it, and ends calls with an error.
  kStart,
  kCommit,
  kFail,
  // Ends all exchanges of connections to a set of ranks, and closes the connections.
  kAbort,
};

// The version of the messages. Ranks with another version are rejected.
inline constexpr uint32_t kWireVersion = 1;
// The maximum length of a body, and of the first message of a rank.
inline constexpr uint32_t kMaxBody = 64 << 20;
inline constexpr uint32_t kMaxHelloBody = 64;

// The prefix of the keys under which the ranks of a set of connections store their addresses.
std::string MeshKeyPrefix(uint64_t context);

// Appends the parts of a message.
class MessageWriter {
 public:
  explicit MessageWriter(MessageKind kind);

  // Appends the bytes of a number or a struct without padding.
  template <typename T>
  MessageWriter& Add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    frame_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  MessageWriter& AddText(absl::string_view text) {
    Add(static_cast<uint32_t>(text.size()));
    frame_.append(text.data(), text.size());
    return *this;
  }
  MessageWriter& AddStatus(const absl::Status& status) {
    return Add(static_cast<int32_t>(status.code())).AddText(status.message());
  }
  // Returns the whole frame.
  std::string Finish();

 private:
  std::string frame_;
};

// Reads the parts of a body. ok() is false after a read beyond the end.
class MessageReader {
 public:
  explicit MessageReader(absl::string_view body) : rest_(body) {}

  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (rest_.size() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(static_cast<void*>(&value), rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  std::string GetText();
  absl::Status GetStatus();
  // True if all reads were within the body.
  bool ok() const { return ok_; }
  // True if the body has been read to its end.
  bool AtEnd() const { return ok_ && rest_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  absl::string_view rest_;
  bool ok_ = true;
};

// Splits received bytes into messages.
class FrameBuffer {
 public:
  void Append(const char* data, size_t size) { bytes_.append(data, size); }
  // Moves the next message to *kind and *body. Returns false if it is not complete, and an error if
  // the bytes are not a frame or the body is longer than `max_body`.
  absl::StatusOr<bool> Next(MessageKind* kind, std::string* body, uint32_t max_body = kMaxBody);

 private:
  std::string bytes_;
  // The bytes before this index have been returned.
  size_t begin_ = 0;
};

// ---- Sockets ----

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Returns "what: " and the text of errno, as UNAVAILABLE.
absl::Status SocketError(absl::string_view what);

// Splits "host:port" or "[host]:port". Returns INVALID_ARGUMENT if there is no port in [0, 65535].
absl::StatusOr<std::pair<std::string, int>> SplitAddress(absl::string_view address);

// Listens on all addresses of the machine. Port 0 chooses a port; *port is the port.
absl::StatusOr<Fd> Listen(int* port);
// Connects, and tries again until `deadline` if nobody listens yet.
absl::StatusOr<Fd> ConnectTo(const std::string& host, int port,
                             std::chrono::steady_clock::time_point deadline);
// Makes reads and writes return instead of waiting, and sends small messages at once.
void PrepareSocket(int fd);
// Returns the numeric address of this end of a connection.
absl::StatusOr<std::string> LocalHost(int fd);

// Reads bytes that have arrived, up to a limit. Returns false at the end of the stream.
absl::StatusOr<bool> ReadAvailable(int fd, FrameBuffer* buffer);
// Writes as much of *bytes as possible, and removes it.
absl::Status WriteAvailable(int fd, std::string* bytes);

// Blocks all signals on this thread and on the threads that it starts. A write to a connection that
// the other side has closed is then an error instead of SIGPIPE, which ends the process.
void BlockSignals();

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_WIRE_H_
