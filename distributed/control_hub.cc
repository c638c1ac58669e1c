#include "gradflow/distributed/control_hub.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"
#include "gradflow/core/types.h"
#include "gradflow/distributed/round_table.h"

namespace gradflow::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes that wait to be sent to a rank, after which the rank counts as lost.
constexpr size_t kMaxOutput = 256 << 20;
// Values and connections that have not said hello.
constexpr size_t kMaxValues = 1 << 20;
constexpr size_t kMaxStrangers = 4096;
// Connections of sets of ranks that are kept for later rounds.
constexpr size_t kMaxContexts = 32;

struct Connection {
  Fd fd;
  FrameBuffer input;
  std::string output;
  // -1 before kHello.
  int rank = -1;
  // The connection is to be closed, for this reason.
  absl::Status status;
};

// The exchange of a bundle of rounds.
struct Bundle {
  uint64_t context = 0;
  std::vector<int> ranks;
  std::vector<int64_t> rounds;
  std::set<int> done;
  Clock::time_point deadline;
  int64_t timeout_ms = 0;
};

// The connections between a set of ranks. The first rounds of the set make them.
struct Context {
  uint64_t id;
  std::vector<int> ranks;
};

class Hub final : public ControlHub {
 public:
  Hub(int size, Fd listener, Fd wake)
      : size_(size), listener_(std::move(listener)), wake_(std::move(wake)), table_(size) {
    thread_ = std::thread([this] { Loop(); });
  }
  ~Hub() override {
    stopping_ = true;
    const uint64_t one = 1;
    while (write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }

 private:
  void Loop() {
    BlockSignals();
    Clock::time_point end = Clock::time_point::max();
    while (true) {
      if (stopping_ && end == Clock::time_point::max())
        end = Clock::now() + std::chrono::seconds(1);
      if (end != Clock::time_point::max() && (!HasOutput() || Clock::now() >= end)) return;
      Wait(std::min(end, NextDeadline()));
      // Messages of all ranks are read before rounds start, so that bundles are large.
      StartRounds();
      Expire();
      CloseFailed();
      for (Connection& connection : connections_) Flush(&connection);
      CloseFailed();
    }
  }

  bool HasOutput() const {
    return std::any_of(connections_.begin(), connections_.end(),
                       [](const Connection& c) { return !c.output.empty(); });
  }

  Clock::time_point NextDeadline() const {
    Clock::time_point next = table_.NextDeadline();
    for (const auto& [id, bundle] : bundles_) next = std::min(next, bundle.deadline);
    return next;
  }

  // ---- Connections ----

  void Wait(Clock::time_point until) {
    std::vector<pollfd> entries = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::vector<Connection*> polled;
    for (Connection& connection : connections_) {
      const short events = connection.output.empty() ? POLLIN : POLLIN | POLLOUT;
      entries.push_back({connection.fd.get(), events, 0});
      polled.push_back(&connection);
    }
    int64_t timeout = -1;
    if (until != Clock::time_point::max()) {
      // Rounded up, so that the deadline has passed afterwards.
      timeout = std::clamp<int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count(), 0, 1 << 30);
    }
    if (poll(entries.data(), entries.size(), static_cast<int>(timeout)) <= 0) return;
    if (entries[0].revents != 0) {
      uint64_t count = 0;
      (void)!read(wake_.get(), &count, sizeof(count));
    }
    if (entries[1].revents != 0) Accept();
    for (size_t i = 0; i < polled.size(); ++i) {
      if ((entries[i + 2].revents & ~POLLOUT) != 0) Receive(polled[i]);
    }
  }

  void Accept() {
    while (true) {
      Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd.is_open()) return;
      if (connections_.size() >= kMaxStrangers + static_cast<size_t>(size_)) continue;
      PrepareSocket(fd.get());
      connections_.emplace_back().fd = std::move(fd);
    }
  }

  void Receive(Connection* connection) {
    const absl::StatusOr<bool> open = ReadAvailable(connection->fd.get(), &connection->input);
    MessageKind kind{};
    std::string body;
    while (connection->status.ok()) {
      const uint32_t max_body = connection->rank < 0 ? kMaxHelloBody : kMaxBody;
      const absl::StatusOr<bool> next = connection->input.Next(&kind, &body, max_body);
      if (!next.ok()) connection->status = next.status();
      if (!next.ok() || !*next) break;
      absl::Status status = Handle(connection, kind, body);
      if (!status.ok()) connection->status = std::move(status);
    }
    if (!connection->status.ok()) return;
    if (!open.ok()) {
      connection->status = open.status();
    } else if (!*open) {
      connection->status = absl::UnavailableError("the connection was closed");
    }
  }

  void Send(Connection* connection, std::string frame) {
    if (!connection->status.ok()) return;
    connection->output += frame;
    if (connection->output.size() > kMaxOutput) {
      connection->status = absl::UnavailableError("the rank does not read its messages");
    }
  }
  void SendTo(int rank, std::string frame) {
    const auto found = by_rank_.find(rank);
    if (found != by_rank_.end()) Send(found->second, std::move(frame));
  }

  void Flush(Connection* connection) {
    if (connection->output.empty() || !connection->status.ok()) return;
    absl::Status status = WriteAvailable(connection->fd.get(), &connection->output);
    if (!status.ok()) connection->status = std::move(status);
  }

  // Closes the connections that have failed. Their ranks are lost.
  void CloseFailed() {
    for (auto it = connections_.begin(); it != connections_.end();) {
      const auto current = it++;
      if (current->status.ok()) continue;
      const int rank = current->rank;
      const std::string why(current->status.message());
      connections_.erase(current);
      if (rank < 0) continue;
      by_rank_.erase(rank);
      Lose(rank, why);
      it = connections_.begin();
    }
  }

  // ---- Messages ----

  absl::Status Handle(Connection* connection, MessageKind kind, const std::string& body) {
    MessageReader reader(body);
    if (kind == MessageKind::kHello) return Hello(connection, &reader);
    const int rank = connection->rank;
    if (rank < 0) return errors::InvalidArgument("a rank must begin with hello");
    switch (kind) {
      case MessageKind::kSet: {
        std::string key = reader.GetText();
        std::string value = reader.GetText();
        if (reader.AtEnd()) Set(std::move(key), std::move(value));
        break;
      }
      case MessageKind::kGet: {
        const std::string key = reader.GetText();
        if (reader.AtEnd()) Get(rank, key);
        break;
      }
      case MessageKind::kJoin: {
        const auto call = reader.Get<Collectives::CallId>();
        const auto header = reader.Get<CallHeader>();
        if (!reader.AtEnd()) break;
        GRADFLOW_RETURN_IF_ERROR(CheckHeader(header));
        Take(table_.Join(rank, call, header, Clock::now()));
        break;
      }
      case MessageKind::kCancel: {
        const auto call = reader.Get<Collectives::CallId>();
        if (reader.AtEnd()) Cancel(rank, call);
        break;
      }
      case MessageKind::kDone: {
        const auto bundle = reader.Get<uint64_t>();
        const absl::Status status = reader.GetStatus();
        if (reader.AtEnd()) Done(rank, bundle, status);
        break;
      }
      default:
        return errors::InvalidArgument("a rank sent an unknown message");
    }
    if (!reader.AtEnd()) return errors::InvalidArgument("a rank sent a message of a wrong length");
    return absl::OkStatus();
  }

  absl::Status Hello(Connection* connection, MessageReader* reader) {
    const auto version = reader->Get<uint32_t>();
    const auto rank = reader->Get<int32_t>();
    const auto size = reader->Get<int32_t>();
    absl::Status status;
    if (!reader->AtEnd() || version != kWireVersion) {
      status = errors::InvalidArgument("rank 0 has another version of gradflow");
    } else if (size != size_) {
      status = errors::InvalidArgument("rank ", rank, " expects ", size, " ranks, but rank 0 ",
                                       "expects ", size_);
    } else if (rank < 0 || rank >= size_) {
      status = errors::InvalidArgument("there is no rank ", rank, " of ", size_);
    } else if (joined_.count(rank) != 0) {
      status = errors::InvalidArgument("there are two ranks ", rank);
    }
    if (!status.ok()) {
      Send(connection, MessageWriter(MessageKind::kWelcome).AddStatus(status).AddText("").Finish());
      // Does not wait: a stranger may not read.
      Flush(connection);
      return status;
    }
    connection->rank = rank;
    by_rank_[rank] = connection;
    joined_.insert(rank);
    if (static_cast<int>(joined_.size()) == size_) {
      const std::string host = HostForOthers();
      for (const auto& [r, c] : by_rank_) {
        Send(c, MessageWriter(MessageKind::kWelcome)
                    .AddStatus(absl::OkStatus())
                    .AddText(IsLocal(*c) ? host : "")
                    .Finish());
      }
    }
    return absl::OkStatus();
  }

  // True if the rank has reached this machine by a loopback address, so the rank runs on this
  // machine.
  static bool IsLocal(const Connection& connection) {
    const absl::StatusOr<std::string> host = LocalHost(connection.fd.get());
    return !host.ok() || *host == "::1" || absl::StartsWith(*host, "127.");
  }

  // Returns the address by which ranks on other machines have reached this machine, or "". The name
  // of a machine often stands for a loopback address on the machine itself.
  std::string HostForOthers() const {
    for (const auto& [rank, connection] : by_rank_) {
      if (!IsLocal(*connection)) return *LocalHost(connection->fd.get());
    }
    return std::string();
  }

  // True if a key belongs to connections that are in use. Other keys would never be erased.
  bool IsInUse(const std::string& key) const {
    return std::any_of(contexts_.begin(), contexts_.end(), [&](const Context& c) {
      return absl::StartsWith(key, MeshKeyPrefix(c.id));
    });
  }

  void Set(std::string key, std::string value) {
    if (values_.size() >= kMaxValues || !IsInUse(key)) return;
    const auto waiting = waiting_.find(key);
    if (waiting != waiting_.end()) {
      for (const int rank : waiting->second) SendValue(rank, key, value);
      waiting_.erase(waiting);
    }
    values_.insert_or_assign(std::move(key), std::move(value));
  }

  void Get(int rank, const std::string& key) {
    const auto found = values_.find(key);
    if (found != values_.end()) {
      SendValue(rank, key, found->second);
    } else if (waiting_.size() < kMaxValues && IsInUse(key)) {
      waiting_[key].insert(rank);
    }
  }

  void SendValue(int rank, const std::string& key, const std::string& value) {
    SendTo(rank, MessageWriter(MessageKind::kValue).AddText(key).AddText(value).Finish());
  }

  // ---- Rounds ----

  void Take(RoundTable::Events events) {
    for (RoundTable::Event& event : events) {
      if (event.status.ok()) {
        started_.push_back(std::move(event));
      } else {
        SendErrors(event);
      }
    }
  }

  void SendErrors(const RoundTable::Event& event) {
    for (const RoundTable::Member& member : event.members) {
      SendTo(member.rank,
             MessageWriter(MessageKind::kFail).Add(member.call).AddStatus(event.status).Finish());
    }
  }

  // CheckHeader() excludes overflow.
  static int64_t BytesOf(const CallHeader& header) {
    return header.num_elements *
           static_cast<int64_t>(DataTypeSize(static_cast<DataType>(header.dtype)));
  }
  static bool CanBundle(const CallHeader& header) {
    return header.type == static_cast<uint8_t>(CollectiveType::kReduce);
  }
  static std::vector<int> RanksOf(const RoundTable::Event& event) {
    std::vector<int> ranks;
    for (const RoundTable::Member& member : event.members) ranks.push_back(member.rank);
    return ranks;
  }

  // Starts the exchanges of all rounds that have become ready, in bundles.
  void StartRounds() {
    for (size_t begin = 0; begin < started_.size();) {
      const std::vector<int> ranks = RanksOf(started_[begin]);
      int64_t bytes = BytesOf(started_[begin].header);
      size_t end = begin + 1;
      while (end < started_.size() && CanBundle(started_[begin].header) &&
             CanBundle(started_[end].header) && RanksOf(started_[end]) == ranks) {
        bytes += BytesOf(started_[end].header);
        if (bytes > kMaxBundleBytes) break;
        ++end;
      }
      StartBundle(ranks, begin, end);
      begin = end;
    }
    started_.clear();
  }

  // Returns the connections of these ranks, in this order.
  uint64_t ContextOf(const std::vector<int>& ranks) {
    const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                    [&](const Context& c) { return c.ranks == ranks; });
    if (found != contexts_.end()) {
      contexts_.splice(contexts_.end(), contexts_, found);
      return contexts_.back().id;
    }
    if (contexts_.size() >= kMaxContexts) {
      // The connections that were not used for the longest time and are not in use.
      const auto unused = std::find_if(contexts_.begin(), contexts_.end(), [&](const Context& c) {
        return std::none_of(bundles_.begin(), bundles_.end(),
                            [&](const auto& b) { return b.second.context == c.id; });
      });
      if (unused != contexts_.end()) CloseContext(unused);
    }
    contexts_.push_back({next_context_++, ranks});
    return contexts_.back().id;
  }

  void CloseContext(std::list<Context>::iterator context) {
    for (const int rank : context->ranks) {
      SendTo(rank, MessageWriter(MessageKind::kAbort).Add(context->id).Finish());
    }
    EraseKeys(MeshKeyPrefix(context->id), &values_);
    EraseKeys(MeshKeyPrefix(context->id), &waiting_);
    contexts_.erase(context);
  }

  // Erases the keys with a prefix.
  template <typename T>
  static void EraseKeys(const std::string& prefix, std::map<std::string, T>* map) {
    auto it = map->lower_bound(prefix);
    while (it != map->end() && absl::StartsWith(it->first, prefix)) it = map->erase(it);
  }

  void StartBundle(const std::vector<int>& ranks, size_t begin, size_t end) {
    const uint64_t id = next_bundle_++;
    Bundle bundle;
    bundle.context = ContextOf(ranks);
    bundle.ranks = ranks;
    std::set<int> members(ranks.begin(), ranks.end());
    bundle.timeout_ms = started_[begin].header.timeout_ms;
    for (size_t i = begin; i < end; ++i) {
      bundle.rounds.push_back(started_[i].round);
      bundle.timeout_ms = std::min(bundle.timeout_ms, started_[i].header.timeout_ms);
    }
    bundle.deadline = Clock::now() + std::chrono::milliseconds(bundle.timeout_ms);
    for (size_t i = begin; i < end; ++i) {
      bundle.deadline = std::min(bundle.deadline, started_[i].deadline);
    }
    const int64_t left =
        std::chrono::duration_cast<std::chrono::milliseconds>(bundle.deadline - Clock::now())
            .count();
    for (size_t r = 0; r < ranks.size(); ++r) {
      MessageWriter message(MessageKind::kStart);
      message.Add(id).Add(bundle.context).Add(left).Add(static_cast<uint32_t>(ranks.size()));
      for (const int rank : ranks) message.Add(int32_t{rank});
      message.Add(static_cast<uint32_t>(end - begin));
      for (size_t i = begin; i < end; ++i) {
        const auto& round = started_[i].members;
        int32_t sender = -1;
        for (size_t m = 0; m < round.size(); ++m) {
          if (round[m].is_sender) sender = static_cast<int32_t>(m);
        }
        message.Add(round[r].call).Add(sender);
      }
      SendTo(ranks[r], message.Finish());
    }
    // Calls of a rank that has been lost in the meantime.
    absl::Status lost;
    for (const int rank : ranks) {
      if (by_rank_.count(rank) == 0) {
        lost = absl::UnavailableError(absl::StrCat("rank ", rank, " is lost"));
      }
    }
    const uint64_t context = bundle.context;
    bundles_.emplace(id, std::move(bundle));
    if (!lost.ok()) Abort(context, lost);
  }

  void Done(int rank, uint64_t id, const absl::Status& status) {
    const auto found = bundles_.find(id);
    if (found == bundles_.end()) return;
    Bundle& bundle = found->second;
    if (std::count(bundle.ranks.begin(), bundle.ranks.end(), rank) == 0) return;
    if (!status.ok()) {
      Abort(bundle.context, errors::Prefix(absl::StrCat("rank ", rank, ": "), status));
      return;
    }
    bundle.done.insert(rank);
    if (bundle.done.size() < bundle.ranks.size()) return;
    for (const int64_t round : bundle.rounds) table_.Finish(round, absl::OkStatus());
    for (const int member : bundle.ranks) {
      SendTo(member, MessageWriter(MessageKind::kCommit).Add(id).Finish());
    }
    bundles_.erase(found);
  }

  void Cancel(int rank, Collectives::CallId call) {
    RoundTable::Events events;
    const int64_t round = table_.Cancel(rank, call, Clock::now(), &events);
    Take(std::move(events));
    if (round == 0) return;
    const absl::Status status =
        absl::CancelledError(absl::StrCat("the run of rank ", rank, " was stopped"));
    for (const auto& [id, bundle] : bundles_) {
      if (std::count(bundle.rounds.begin(), bundle.rounds.end(), round) == 0) continue;
      Abort(bundle.context, status);
      return;
    }
    // The round is about to start.
    const auto about = std::find_if(started_.begin(), started_.end(),
                                    [&](const RoundTable::Event& e) { return e.round == round; });
    if (about == started_.end()) return;
    started_.erase(about);
    for (const RoundTable::Event& event : table_.Finish(round, status)) SendErrors(event);
  }

  // Fails all rounds that use a context, and closes it.
  void Abort(uint64_t context, const absl::Status& status) {
    for (auto it = bundles_.begin(); it != bundles_.end();) {
      const auto current = it++;
      if (current->second.context != context) continue;
      for (const int64_t round : current->second.rounds) {
        for (const RoundTable::Event& event : table_.Finish(round, status)) SendErrors(event);
      }
      bundles_.erase(current);
    }
    const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                    [&](const Context& c) { return c.id == context; });
    if (found != contexts_.end()) CloseContext(found);
  }

  void Lose(int rank, const std::string& why) {
    Take(table_.Lose(rank, why, Clock::now()));
    const absl::Status status =
        absl::UnavailableError(absl::StrCat("rank ", rank, " is lost: ", why));
    std::vector<uint64_t> lost;
    for (const Context& context : contexts_) {
      if (std::count(context.ranks.begin(), context.ranks.end(), rank) != 0) {
        lost.push_back(context.id);
      }
    }
    for (const uint64_t context : lost) Abort(context, status);
  }

  void Expire() {
    const Clock::time_point now = Clock::now();
    Take(table_.Expire(now));
    std::map<uint64_t, absl::Status> expired;
    for (const auto& [id, bundle] : bundles_) {
      if (bundle.deadline > now) continue;
      std::vector<int> missing;
      for (const int rank : bundle.ranks) {
        if (bundle.done.count(rank) == 0) missing.push_back(rank);
      }
      expired.emplace(bundle.context,
                      absl::DeadlineExceededError(absl::StrCat(
                          missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                          " did not finish the exchange within ", bundle.timeout_ms, " ms")));
    }
    for (const auto& [context, status] : expired) Abort(context, status);
  }

  const int size_;
  const Fd listener_;
  const Fd wake_;
  std::atomic<bool> stopping_{false};
  // The members below belong to the thread.
  std::list<Connection> connections_;
  std::map<int, Connection*> by_rank_;
  // The ranks that have ever said hello.
  std::set<int> joined_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<int>> waiting_;
  RoundTable table_;
  // Rounds that start at the end of this turn of the loop.
  RoundTable::Events started_;
  std::map<uint64_t, Bundle> bundles_;
  uint64_t next_bundle_ = 1;
  // The least recently used first.
  std::list<Context> contexts_;
  uint64_t next_context_ = 1;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlHub>> ControlHub::Make(int size, Fd listener) {
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return SocketError("eventfd");
  return std::unique_ptr<ControlHub>(new Hub(size, std::move(listener), std::move(wake)));
}

}  // namespace gradflow::distributed
