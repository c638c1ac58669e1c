#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/elements.h"
#include "gradflow/distributed/mesh.h"

namespace gradflow::distributed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Elements of a bundle begin at multiples of this number of bytes, and chunks end there, so that an
// element is never split.
constexpr int64_t kAlignment = 64;
// Chunks are exchanged in segments: the next segment travels while this one is merged.
constexpr int64_t kSegment = int64_t{1} << 20;
constexpr int kSegmentsInFlight = 3;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The time until `deadline`, at least a millisecond: Gloo takes 0 for no timeout.
milliseconds Until(Clock::time_point deadline) {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
}

// A tensor of a bundle, at `begin` of the bundle's bytes.
struct Piece {
  int64_t begin;
  int64_t bytes;
  DataType dtype;
  CollectiveMerge merge;
  CollectiveFinal final;
};

// Calls fn(piece, offset, bytes) for the parts of pieces in [begin, end) of the bundle's bytes.
template <typename F>
void ForPieces(const std::vector<Piece>& pieces, int64_t begin, int64_t end, F fn) {
  auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                [](int64_t b, const Piece& p) { return b < p.begin + p.bytes; });
  for (; piece != pieces.end() && piece->begin < end; ++piece) {
    const int64_t from = std::max(begin, piece->begin);
    const int64_t to = std::min(end, piece->begin + piece->bytes);
    if (from < to) fn(*piece, from, to - from);
  }
}

class GlooMesh final : public Mesh {
 public:
  GlooMesh(int index, int size) : index_(index), size_(size) {}
  ~GlooMesh() override { ClosePairs(); }

  absl::Status Connect(const std::string& prefix, const std::string& host, RendezvousValues* values,
                       Time deadline) {
    const absl::Status status = Guarded([&]() -> absl::Status {
      gloo::transport::tcp::attr attr;
      attr.hostname = host;
      const std::shared_ptr<gloo::transport::Device> device =
          gloo::transport::tcp::CreateDevice(attr);
      const std::shared_ptr<gloo::transport::Context> context =
          device->createContext(index_, size_);
      // Gloo multiplies the timeout for new connections by this number.
      constexpr int kConnectFactor = 5;
      context->setTimeout(std::max(milliseconds(1), Until(deadline) / kConnectFactor));
      // A rank publishes an address for each other rank.
      std::string addresses;
      for (int r = 0; r < size_; ++r) {
        std::vector<char> address;
        if (r != index_) address = context->createPair(r)->address().bytes();
        AppendAddress(address, &addresses);
      }
      {
        MutexLock lock(&mutex_);
        context_ = context;
        is_connecting_ = true;
      }
      GRADFLOW_RETURN_IF_ERROR(values->Set(absl::StrCat(prefix, index_), addresses));
      for (int r = 0; r < size_; ++r) {
        if (r == index_) continue;
        GRADFLOW_ASSIGN_OR_RETURN(const std::string others,
                                  values->Get(absl::StrCat(prefix, r), deadline));
        GRADFLOW_ASSIGN_OR_RETURN(const std::vector<char> address, AddressAt(others, index_));
        if (aborted_) return Aborted();
        context->getPair(r)->connect(address);
      }
      return absl::OkStatus();
    });
    MutexLock lock(&mutex_);
    is_connecting_ = false;
    // A closed connection is not an error for Gloo.
    return aborted_ ? Aborted() : status;
  }

  absl::Status Run(const std::vector<CollectiveCall*>& calls, const std::vector<int>& senders,
                   Time deadline) override {
    deadline_ = deadline;
    return Guarded([&]() -> absl::Status {
      CollectiveCall& call = *calls[0];
      switch (call.type) {
        case CollectiveType::kReduce:
          return ReduceAll(calls);
        case CollectiveType::kReduceScatter:
          return ReduceScatter(call);
        case CollectiveType::kGather: {
          const auto bytes = static_cast<int64_t>(call.input.TotalBytes());
          return ToAll(
              call,
              [&](int) {
                return Range{0, bytes};
              },
              [&](int r) {
                return Range{r * bytes, bytes};
              });
        }
        case CollectiveType::kAllToAll: {
          const int64_t row = static_cast<int64_t>(call.input.TotalBytes()) / size_;
          const auto row_of = [&](int r) { return Range{r * row, row}; };
          return ToAll(call, row_of, row_of);
        }
        case CollectiveType::kBroadcast:
          return Broadcast(call, senders[0]);
        case CollectiveType::kBarrier:
          return absl::OkStatus();
      }
      return errors::Internal("unknown exchange");
    });
  }

  void Abort() override {
    MutexLock lock(&mutex_);
    aborted_ = true;
    for (gloo::transport::UnboundBuffer* const buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
    // Ends the wait for connections.
    if (is_connecting_) ClosePairs();
  }

 private:
  struct Range {
    int64_t begin;
    int64_t bytes;
  };

  // Memory that Gloo sends or fills. Counts the operations in flight.
  class Buffer {
   public:
    Buffer(GlooMesh* mesh, const void* data, int64_t bytes)
        : mesh_(mesh),
          buffer_(mesh->context_->createUnboundBuffer(const_cast<void*>(data),
                                                      static_cast<size_t>(bytes))) {
      MutexLock lock(&mesh_->mutex_);
      mesh_->buffers_.insert(buffer_.get());
    }
    ~Buffer() {
      MutexLock lock(&mesh_->mutex_);
      mesh_->buffers_.erase(buffer_.get());
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    void Send(int rank, uint64_t slot, const Range& range) {
      if (range.bytes == 0) return;
      buffer_->send(rank, slot, static_cast<size_t>(range.begin), static_cast<size_t>(range.bytes));
      ++sends_;
    }
    void Receive(int rank, uint64_t slot, const Range& range) {
      if (range.bytes == 0) return;
      buffer_->recv(rank, slot, static_cast<size_t>(range.begin), static_cast<size_t>(range.bytes));
      ++receives_;
    }
    absl::Status WaitReceives() {
      for (; receives_ > 0; --receives_) {
        GRADFLOW_RETURN_IF_ERROR(mesh_->CheckTime());
        if (!buffer_->waitRecv(Until(mesh_->deadline_))) return Aborted();
      }
      return absl::OkStatus();
    }
    absl::Status WaitSends() {
      for (; sends_ > 0; --sends_) {
        GRADFLOW_RETURN_IF_ERROR(mesh_->CheckTime());
        if (!buffer_->waitSend(Until(mesh_->deadline_))) return Aborted();
      }
      return absl::OkStatus();
    }

   private:
    GlooMesh* const mesh_;
    const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
    int sends_ = 0;
    int receives_ = 0;
  };

  static absl::Status Aborted() { return absl::CancelledError("the exchange was aborted"); }

  absl::Status CheckTime() {
    if (aborted_) return Aborted();
    if (Clock::now() < deadline_) return absl::OkStatus();
    return absl::DeadlineExceededError("the exchange did not end in time");
  }

  // Gloo reports errors by exceptions. None leaves this class.
  template <typename F>
  static absl::Status Guarded(F fn) {
    try {
      return fn();
    } catch (const std::bad_alloc&) {
      return errors::ResourceExhausted("out of memory for an exchange");
    } catch (const std::exception& error) {
      return absl::UnavailableError(errors::Printable(error.what()));
    }
  }

  // ---- Lists of addresses, each of which follows its length ----

  static void AppendAddress(const std::vector<char>& address, std::string* list) {
    const auto size = static_cast<uint32_t>(address.size());
    list->append(reinterpret_cast<const char*>(&size), sizeof(size));
    list->append(address.data(), address.size());
  }

  static absl::StatusOr<std::vector<char>> AddressAt(absl::string_view list, int index) {
    for (;; --index) {
      uint32_t size = 0;
      if (list.size() < sizeof(size)) break;
      std::memcpy(&size, list.data(), sizeof(size));
      list.remove_prefix(sizeof(size));
      if (list.size() < size) break;
      if (index == 0) return std::vector<char>(list.begin(), list.begin() + size);
      list.remove_prefix(size);
    }
    return absl::UnavailableError("a rank sent an invalid address");
  }

  void ClosePairs() {
    if (context_ == nullptr) return;
    for (int r = 0; r < size_; ++r) {
      if (r == index_) continue;
      try {
        context_->getPair(r)->close();
      } catch (const std::exception&) {
        // The connection is closed in any case.
      }
    }
  }

  uint64_t NextSlot() { return next_slot_++; }

  // The tensors of a call are handles: a constant call may have a writable output.
  static char* DataOf(const Tensor& tensor) {
    return static_cast<char*>(const_cast<void*>(tensor.raw_data()));
  }

  // Sends sent(r) of the input to each other rank r, and receives received(r) of the output.
  template <typename S, typename R>
  absl::Status ToAll(const CollectiveCall& call, S sent, R received) {
    const uint64_t slot = NextSlot();
    Buffer input(this, DataOf(call.input), static_cast<int64_t>(call.input.TotalBytes()));
    Buffer output(this, DataOf(call.output), static_cast<int64_t>(call.output.TotalBytes()));
    for (int r = 0; r < size_; ++r) {
      if (r != index_) output.Receive(r, slot, received(r));
    }
    for (int i = 1; i < size_; ++i) {
      // Ranks begin with different receivers.
      const int r = (index_ + i) % size_;
      input.Send(r, slot, sent(r));
    }
    const Range from = sent(index_);
    const Range to = received(index_);
    if (from.bytes > 0) {
      std::memcpy(DataOf(call.output) + to.begin, DataOf(call.input) + from.begin,
                  static_cast<size_t>(from.bytes));
    }
    GRADFLOW_RETURN_IF_ERROR(output.WaitReceives());
    return input.WaitSends();
  }

  // A large tensor travels in chunks: the sender sends chunk r to rank r, which passes it on.
  absl::Status Broadcast(const CollectiveCall& call, int sender) {
    const bool sends = index_ == sender;
    const Tensor& tensor = sends ? call.input : call.output;
    const auto bytes = static_cast<int64_t>(tensor.TotalBytes());
    Buffer buffer(this, DataOf(tensor), bytes);
    constexpr int64_t kMinChunk = 16 << 10;
    if (bytes < kMinChunk * size_ || size_ == 2) {
      const uint64_t slot = NextSlot();
      if (!sends) {
        buffer.Receive(sender, slot, {0, bytes});
        return buffer.WaitReceives();
      }
      for (int r = 0; r < size_; ++r) {
        if (r != index_) buffer.Send(r, slot, {0, bytes});
      }
      return buffer.WaitSends();
    }
    const uint64_t first = NextSlot();
    const uint64_t second = NextSlot();
    const auto chunk = [&](int r) { return ChunkOf(bytes, r); };
    if (sends) {
      for (int r = 0; r < size_; ++r) {
        if (r != index_) buffer.Send(r, first, chunk(r));
      }
      // The sender's own chunk has no other rank that passes it on.
      for (int r = 0; r < size_; ++r) {
        if (r != index_) buffer.Send(r, second, chunk(index_));
      }
      return buffer.WaitSends();
    }
    Buffer own(this, DataOf(tensor), bytes);
    own.Receive(sender, first, chunk(index_));
    for (int r = 0; r < size_; ++r) {
      if (r != index_) buffer.Receive(r, second, chunk(r));
    }
    GRADFLOW_RETURN_IF_ERROR(own.WaitReceives());
    for (int r = 0; r < size_; ++r) {
      if (r != index_ && r != sender) own.Send(r, second, chunk(index_));
    }
    GRADFLOW_RETURN_IF_ERROR(buffer.WaitReceives());
    return own.WaitSends();
  }

  // The chunk of rank r of `bytes` bytes.
  Range ChunkOf(int64_t bytes, int r) const {
    const int64_t chunk = RoundUp((bytes + size_ - 1) / size_, kAlignment);
    const int64_t begin = std::min(bytes, r * chunk);
    return {begin, std::min(bytes, begin + chunk) - begin};
  }

  // Sets target[...] to the merged elements of this rank's range, in the order of the ranks.
  // `others` has the ranges of the other ranks, in their order, each at a multiple of `stride`.
  void MergeRange(const std::vector<Piece>& pieces, const char* input, const Range& range,
                  char* others, int64_t stride, char* target) const {
    // The result grows in the memory of rank 0's range, or in the target on rank 0.
    char* const result = index_ == 0 ? target : others;
    if (index_ == 0 && target != input + range.begin) {
      std::memcpy(target, input + range.begin, static_cast<size_t>(range.bytes));
    }
    ForPieces(pieces, range.begin, range.begin + range.bytes,
              [&](const Piece& piece, int64_t at, int64_t bytes) {
                const int64_t offset = at - range.begin;
                const int64_t count = bytes / static_cast<int64_t>(DataTypeSize(piece.dtype));
                for (int r = 1; r < size_; ++r) {
                  const char* const source =
                      r == index_ ? input + at
                                  : others + (r < index_ ? r : r - 1) * stride + offset;
                  MergeElements(piece.dtype, piece.merge, result + offset, source, count);
                }
                if (piece.final == CollectiveFinal::kDiv) {
                  DivideElements(piece.dtype, result + offset, count, size_);
                }
              });
    if (result != target) std::memcpy(target, result, static_cast<size_t>(range.bytes));
  }

  // Merges `bytes` bytes of all ranks. `output` may be `input`.
  absl::Status Reduce(const std::vector<Piece>& pieces, const char* input, char* output,
                      int64_t bytes) {
    const int64_t chunk = ChunkOf(bytes, 0).bytes;
    const int64_t segment = std::min(kSegment, RoundUp(chunk, kAlignment));
    const auto segments = segment == 0 ? 0 : (chunk + segment - 1) / segment;
    const uint64_t slots = next_slot_;
    next_slot_ += static_cast<uint64_t>(2 * segments);
    const auto range_of = [&](int r, int64_t s) {
      const Range all = ChunkOf(bytes, r);
      const int64_t begin = std::min(s * segment, all.bytes);
      return Range{all.begin + begin, std::min(all.bytes, begin + segment) - begin};
    };
    Buffer sent(this, input, bytes);
    Buffer result(this, output, bytes);
    std::vector<std::unique_ptr<char[]>> memory;
    std::vector<std::unique_ptr<Buffer>> received;
    const int64_t in_flight = std::min<int64_t>(segments, kSegmentsInFlight);
    for (int64_t i = 0; i < in_flight; ++i) {
      const int64_t size = segment * (size_ - 1);
      memory.emplace_back(new char[static_cast<size_t>(size)]);
      received.push_back(std::make_unique<Buffer>(this, memory.back().get(), size));
    }
    const auto begin = [&](int64_t s) {
      const uint64_t slot = slots + static_cast<uint64_t>(2 * s);
      const int64_t mine = range_of(index_, s).bytes;
      for (int r = 0; r < size_; ++r) {
        if (r == index_) continue;
        received[static_cast<size_t>(s % in_flight)]->Receive(
            r, slot, {(r < index_ ? r : r - 1) * segment, mine});
      }
      for (int i = 1; i < size_; ++i) {
        const int r = (index_ + i) % size_;
        sent.Send(r, slot, range_of(r, s));
      }
    };
    for (int64_t s = 0; s < in_flight; ++s) begin(s);
    for (int64_t s = 0; s < segments; ++s) {
      const uint64_t slot = slots + static_cast<uint64_t>(2 * s) + 1;
      const Range mine = range_of(index_, s);
      const auto scratch = static_cast<size_t>(s % in_flight);
      GRADFLOW_RETURN_IF_ERROR(received[scratch]->WaitReceives());
      if (mine.bytes > 0) {
        MergeRange(pieces, input, mine, memory[scratch].get(), segment, output + mine.begin);
      }
      // A rank sends its result after it has received this rank's elements, so that the result may
      // overwrite them.
      for (int r = 0; r < size_; ++r) {
        if (r != index_) result.Receive(r, slot, range_of(r, s));
      }
      for (int i = 1; i < size_; ++i) result.Send((index_ + i) % size_, slot, mine);
      if (s + in_flight < segments) begin(s + in_flight);
    }
    GRADFLOW_RETURN_IF_ERROR(result.WaitReceives());
    GRADFLOW_RETURN_IF_ERROR(sent.WaitSends());
    return result.WaitSends();
  }

  absl::Status ReduceAll(const std::vector<CollectiveCall*>& calls) {
    std::vector<Piece> pieces;
    int64_t total = 0;
    for (const CollectiveCall* const call : calls) {
      const auto bytes = static_cast<int64_t>(call->input.TotalBytes());
      pieces.push_back({total, bytes, call->dtype(), call->merge, call->final});
      total = RoundUp(total + bytes, kAlignment);
    }
    if (calls.size() == 1) {
      return Reduce(pieces, DataOf(calls[0]->input), DataOf(calls[0]->output), pieces[0].bytes);
    }
    const std::unique_ptr<char[]> packed(new char[static_cast<size_t>(total)]);
    int64_t end = 0;
    for (size_t i = 0; i < calls.size(); ++i) {
      // The gaps are sent.
      std::memset(packed.get() + end, 0, static_cast<size_t>(pieces[i].begin - end));
      end = pieces[i].begin + pieces[i].bytes;
      if (pieces[i].bytes == 0) continue;
      std::memcpy(packed.get() + pieces[i].begin, DataOf(calls[i]->input),
                  static_cast<size_t>(pieces[i].bytes));
    }
    std::memset(packed.get() + end, 0, static_cast<size_t>(total - end));
    GRADFLOW_RETURN_IF_ERROR(Reduce(pieces, packed.get(), packed.get(), total));
    for (size_t i = 0; i < calls.size(); ++i) {
      if (pieces[i].bytes == 0) continue;
      std::memcpy(DataOf(calls[i]->output), packed.get() + pieces[i].begin,
                  static_cast<size_t>(pieces[i].bytes));
    }
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(const CollectiveCall& call) {
    const auto bytes = static_cast<int64_t>(call.input.TotalBytes());
    const int64_t part = bytes / size_;
    if (part == 0) return absl::OkStatus();
    const uint64_t slot = NextSlot();
    const std::unique_ptr<char[]> memory(new char[static_cast<size_t>(part * (size_ - 1))]);
    Buffer sent(this, DataOf(call.input), bytes);
    Buffer received(this, memory.get(), part * (size_ - 1));
    for (int r = 0; r < size_; ++r) {
      if (r != index_) received.Receive(r, slot, {(r < index_ ? r : r - 1) * part, part});
    }
    for (int i = 1; i < size_; ++i) {
      const int r = (index_ + i) % size_;
      sent.Send(r, slot, {r * part, part});
    }
    GRADFLOW_RETURN_IF_ERROR(received.WaitReceives());
    const std::vector<Piece> pieces = {{0, bytes, call.dtype(), call.merge, call.final}};
    MergeRange(pieces, DataOf(call.input), {index_ * part, part}, memory.get(), part,
               DataOf(call.output));
    return sent.WaitSends();
  }

  const int index_;
  const int size_;
  // Set by Connect().
  std::shared_ptr<gloo::transport::Context> context_;
  // The exchange in progress.
  Time deadline_;
  uint64_t next_slot_ = 0;
  std::atomic<bool> aborted_{false};
  Mutex mutex_;
  bool is_connecting_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<gloo::transport::UnboundBuffer*> buffers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<std::shared_ptr<Mesh>> Mesh::Connect(
    const std::string& prefix, int index, int size, const std::string& host,
    RendezvousValues* values, Time deadline,
    const std::function<void(const std::shared_ptr<Mesh>&)>& publish) {
  auto mesh = std::make_shared<GlooMesh>(index, size);
  publish(mesh);
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix("connecting the ranks: ", mesh->Connect(prefix, host, values, deadline)));
  return mesh;
}

}  // namespace gradflow::distributed
