#include "gradflow/distributed/gloo_collectives.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/call_header.h"
#include "gradflow/distributed/control_hub.h"
#include "gradflow/distributed/exchange.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/distributed/mesh.h"
#include "gradflow/distributed/wire.h"

namespace gradflow {
namespace distributed {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The hub ends calls in time. If it does not answer, the rank ends a call this long afterwards.
constexpr milliseconds kGrace(500);

// A rank of a run. One thread talks to the hub, and one runs the exchanges that the hub has
// started, one after another.
//
//   1. Callbacks run without the mutex, on the thread that talks to the hub or in Start().
//   2. A call is in calls_ until its callback is taken out. Messages about other calls are ignored.
//   3. The tensors of a call live until its exchange has ended, even if the call has ended before.
class GlooRank final : private RendezvousValues, public std::enable_shared_from_this<GlooRank> {
 public:
  explicit GlooRank(const LaunchOptions& options) : options_(options) {}

  ~GlooRank() override {
    socket_ = Fd();
    hub_.reset();
    if (!file_.empty()) std::remove(file_.c_str());
  }

  // Ends all calls and the threads.
  void Stop() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.Notify();
      value_changed_.Notify();
      for (const auto& [id, mesh] : meshes_) {
        if (mesh != nullptr) mesh->Abort();
      }
    }
    Wake();
    for (std::thread* const thread : {&worker_, &reader_}) {
      if (!thread->joinable()) continue;
      // The threads own this object.
      if (thread->get_id() == std::this_thread::get_id()) {
        thread->detach();
      } else {
        thread->join();
      }
    }
    Disconnect("this rank has ended");
  }

  // Returns DEADLINE_EXCEEDED instead of any other error after the deadline.
  absl::Status Connect() {
    const Clock::time_point deadline = Clock::now() + options_.connect_timeout;
    absl::Status status = ConnectUntil(deadline);
    if (!absl::IsUnavailable(status) || Clock::now() < deadline) return status;
    return absl::DeadlineExceededError(
        absl::StrCat(status.message(), ", within ", options_.connect_timeout.count(), " ms"));
  }

  const LaunchOptions& options() const { return options_; }

  void Start(Collectives::CallId id, CollectiveCall call, Collectives::Done done) {
    absl::Status status = CheckCall(call, options_.size);
    if (status.ok()) {
      if (call.timeout.count() == 0) call.timeout = options_.timeout;
      const CallHeader header = HeaderOf(call);
      MutexLock lock(&mutex_);
      if (connected_) {
        const Clock::time_point deadline = Clock::now() + call.timeout + kGrace;
        if (deadline < next_deadline_) {
          next_deadline_ = deadline;
          // The thread may wait until a later deadline.
          Wake();
        }
        calls_.emplace(id, Call{std::make_shared<CollectiveCall>(std::move(call)), std::move(done),
                                header, deadline});
        Send(MessageWriter(MessageKind::kJoin).Add(id).Add(header).Finish());
        return;
      }
      status = absl::UnavailableError(absl::StrCat(DebugString(header), ": ", why_disconnected_));
    }
    done(std::move(status));
  }

  void Cancel(Collectives::CallId id) {
    MutexLock lock(&mutex_);
    if (calls_.count(id) != 0) Send(MessageWriter(MessageKind::kCancel).Add(id).Finish());
  }

 private:
  using CallId = Collectives::CallId;
  using Done = Collectives::Done;
  struct Call {
    std::shared_ptr<CollectiveCall> call;
    Done done;
    CallHeader header;
    // When this rank gives up by itself.
    Clock::time_point deadline;
  };
  // A bundle of rounds to exchange.
  struct Bundle {
    uint64_t id = 0;
    uint64_t context = 0;
    std::vector<int> ranks;
    std::vector<std::shared_ptr<CollectiveCall>> calls;
    std::vector<int> senders;
    Clock::time_point deadline;
  };
  struct StartedBundle {
    uint64_t context = 0;
    std::vector<CallId> calls;
  };
  using Ended = std::vector<std::pair<Done, absl::Status>>;

  static void End(Ended* ended) {
    for (auto& [done, status] : *ended) done(std::move(status));
    ended->clear();
  }

  // ---- Rendezvous ----

  absl::Status ConnectUntil(Clock::time_point deadline) {
    Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake.is_open()) return SocketError("eventfd");
    wake_ = std::move(wake);
    std::pair<std::string, int> address;
    if (options_.rank == 0) {
      GRADFLOW_ASSIGN_OR_RETURN(address, StartHub());
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(address, FindHub(deadline));
    }
    GRADFLOW_ASSIGN_OR_RETURN(socket_, ConnectTo(address.first, address.second, deadline));
    PrepareSocket(socket_.get());
    host_ = options_.host;
    if (host_.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(host_, LocalHost(socket_.get()));
    }
    {
      MutexLock lock(&mutex_);
      output_ = MessageWriter(MessageKind::kHello)
                    .Add(kWireVersion)
                    .Add(int32_t{options_.rank})
                    .Add(int32_t{options_.size})
                    .Finish();
    }
    reader_ = std::thread([self = shared_from_this()] { self->Read(); });
    worker_ = std::thread([self = shared_from_this()] { self->Work(); });
    MutexLock lock(&mutex_);
    while (!welcomed_ && connected_) {
      if (Clock::now() >= deadline) {
        return absl::UnavailableError(
            absl::StrCat("not all of the ", options_.size, " ranks have connected"));
      }
      value_changed_.WaitUntil(&mutex_, deadline);
    }
    return welcomed_ ? welcome_ : absl::UnavailableError(why_disconnected_);
  }

  static bool IsFile(const std::string& address, std::string* path) {
    if (!absl::StartsWith(address, "file:")) return false;
    *path = address.substr(5);
    if (absl::StartsWith(*path, "//")) path->erase(0, 2);
    return true;
  }

  absl::StatusOr<std::pair<std::string, int>> StartHub() {
    std::string path;
    std::pair<std::string, int> address = {"", 0};
    const bool is_file = IsFile(options_.address, &path);
    if (!is_file) {
      GRADFLOW_ASSIGN_OR_RETURN(address, SplitAddress(options_.address));
    }
    int port = address.second;
    GRADFLOW_ASSIGN_OR_RETURN(Fd listener, Listen(&port));
    GRADFLOW_ASSIGN_OR_RETURN(hub_, ControlHub::Make(options_.size, std::move(listener)));
    if (!is_file) return std::make_pair(address.first, port);
    std::string host = options_.host;
    if (host.empty()) {
      char name[256] = "";
      gethostname(name, sizeof(name) - 1);
      host = name;
    }
    // The name of the machine may not be known to itself.
    if (!ConnectTo(host, port, Clock::now() + std::chrono::seconds(1)).ok()) host = "127.0.0.1";
    const std::string temporary = absl::StrCat(path, ".", getpid());
    std::ofstream file(temporary);
    file << host << ":" << port << "\n";
    file.close();
    if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
      return SocketError(absl::StrCat("writing ", errors::Printable(path)));
    }
    file_ = path;
    return std::make_pair(host, port);
  }

  absl::StatusOr<std::pair<std::string, int>> FindHub(Clock::time_point deadline) {
    std::string path;
    if (!IsFile(options_.address, &path)) return SplitAddress(options_.address);
    constexpr milliseconds kPause(10);
    while (true) {
      std::ifstream file(path);
      std::string line;
      if (std::getline(file, line)) return SplitAddress(line);
      if (Clock::now() >= deadline) {
        return absl::UnavailableError(
            absl::StrCat("rank 0 has not written ", errors::Printable(path)));
      }
      std::this_thread::sleep_until(std::min(deadline, Clock::now() + kPause));
    }
  }

  absl::Status Set(const std::string& key, const std::string& value) override {
    MutexLock lock(&mutex_);
    Send(MessageWriter(MessageKind::kSet).AddText(key).AddText(value).Finish());
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Get(const std::string& key, Clock::time_point deadline) override {
    MutexLock lock(&mutex_);
    wanted_ = key;
    value_.reset();
    Send(MessageWriter(MessageKind::kGet).AddText(key).Finish());
    while (value_ == nullptr) {
      if (!connected_) return absl::UnavailableError(why_disconnected_);
      if (stopping_ || aborted_.count(connecting_) != 0) {
        return absl::CancelledError("the exchange was aborted");
      }
      if (Clock::now() >= deadline) {
        return absl::DeadlineExceededError("a rank did not connect in time");
      }
      value_changed_.WaitUntil(&mutex_, deadline);
    }
    wanted_.clear();
    return *std::exchange(value_, nullptr);
  }

  // ---- The thread that talks to the hub ----

  void Wake() {
    const uint64_t one = 1;
    (void)!write(wake_.get(), &one, sizeof(one));
  }

  void Send(const std::string& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!connected_) return;
    const bool was_empty = output_.empty();
    output_ += frame;
    if (was_empty) Wake();
  }

  void Read() {
    BlockSignals();
    FrameBuffer input;
    std::string writing;
    while (true) {
      int timeout = -1;
      {
        MutexLock lock(&mutex_);
        if (stopping_) return;
        if (writing.empty()) writing.swap(output_);
        if (next_deadline_ != Clock::time_point::max()) {
          timeout = static_cast<int>(std::clamp<int64_t>(
              std::chrono::ceil<milliseconds>(next_deadline_ - Clock::now()).count(), 0, 1 << 30));
        }
      }
      if (absl::Status status = WriteAvailable(socket_.get(), &writing); !status.ok()) {
        return Disconnect(absl::StrCat("rank 0 is lost: ", status.message()));
      }
      pollfd entries[] = {
          {socket_.get(), static_cast<short>(writing.empty() ? POLLIN : POLLIN | POLLOUT), 0},
          {wake_.get(), POLLIN, 0}};
      if (poll(entries, 2, timeout) > 0) {
        if (entries[1].revents != 0) {
          uint64_t count = 0;
          (void)!read(wake_.get(), &count, sizeof(count));
        }
        if ((entries[0].revents & ~POLLOUT) != 0) {
          const absl::StatusOr<bool> open = ReadAvailable(socket_.get(), &input);
          const absl::Status handled = HandleAll(&input);
          if (!handled.ok()) return Disconnect(std::string(handled.message()));
          if (!open.ok()) {
            return Disconnect(absl::StrCat("rank 0 is lost: ", open.status().message()));
          }
          if (!*open) return Disconnect("rank 0 is lost: the connection was closed");
        }
      }
      EndOverdue();
    }
  }

  // Ends the calls that the hub should have ended.
  void EndOverdue() {
    Ended ended;
    {
      MutexLock lock(&mutex_);
      const Clock::time_point now = Clock::now();
      if (now < next_deadline_) return;
      next_deadline_ = Clock::time_point::max();
      for (auto it = calls_.begin(); it != calls_.end();) {
        const auto current = it++;
        Call& call = current->second;
        if (call.deadline > now) {
          next_deadline_ = std::min(next_deadline_, call.deadline);
          continue;
        }
        ended.emplace_back(std::move(call.done),
                           absl::DeadlineExceededError(absl::StrCat(
                               DebugString(call.header), ": rank 0, which coordinates the ranks, ",
                               "did not answer within ", call.header.timeout_ms, " ms")));
        calls_.erase(current);
      }
    }
    End(&ended);
  }

  // Ends all calls.
  void Disconnect(const std::string& why) {
    Ended ended;
    {
      MutexLock lock(&mutex_);
      if (connected_) why_disconnected_ = why;
      connected_ = false;
      for (auto& [id, call] : calls_) {
        ended.emplace_back(std::move(call.done),
                           absl::UnavailableError(
                               absl::StrCat(DebugString(call.header), ": ", why_disconnected_)));
      }
      calls_.clear();
      for (const auto& [id, mesh] : meshes_) {
        if (mesh != nullptr) mesh->Abort();
      }
      changed_.Notify();
      value_changed_.Notify();
    }
    End(&ended);
  }

  absl::Status HandleAll(FrameBuffer* input) {
    MessageKind kind{};
    std::string body;
    while (true) {
      GRADFLOW_ASSIGN_OR_RETURN(const bool complete, input->Next(&kind, &body));
      if (!complete) return absl::OkStatus();
      MessageReader reader(body);
      Ended ended;
      Handle(kind, &reader, &ended);
      End(&ended);
      if (!reader.AtEnd()) return errors::InvalidArgument("rank 0 sent an unknown message");
    }
  }

  void Handle(MessageKind kind, MessageReader* reader, Ended* ended) {
    MutexLock lock(&mutex_);
    const auto end = [&](CallId id, const absl::Status& status) {
      const auto found = calls_.find(id);
      if (found == calls_.end()) return;
      ended->emplace_back(std::move(found->second.done), status);
      calls_.erase(found);
    };
    switch (kind) {
      case MessageKind::kWelcome:
        welcome_ = reader->GetStatus();
        if (const std::string host = reader->GetText(); !host.empty() && options_.host.empty()) {
          host_ = host;
        }
        welcomed_ = true;
        value_changed_.Notify();
        return;
      case MessageKind::kValue: {
        const std::string key = reader->GetText();
        const std::string value = reader->GetText();
        if (key != wanted_) return;
        value_ = std::make_unique<std::string>(value);
        value_changed_.Notify();
        return;
      }
      case MessageKind::kStart: {
        Bundle bundle;
        bundle.id = reader->Get<uint64_t>();
        bundle.context = reader->Get<uint64_t>();
        // The hub reports which ranks are late, so it gives up first.
        bundle.deadline = Clock::now() + milliseconds(reader->Get<int64_t>()) + kGrace;
        const auto ranks = reader->Get<uint32_t>();
        for (uint32_t i = 0; i < ranks && reader->ok(); ++i) {
          bundle.ranks.push_back(reader->Get<int32_t>());
        }
        const auto rounds = reader->Get<uint32_t>();
        StartedBundle& started = bundles_[bundle.id];
        started.context = bundle.context;
        for (uint32_t i = 0; i < rounds && reader->ok(); ++i) {
          const auto id = reader->Get<CallId>();
          bundle.senders.push_back(reader->Get<int32_t>());
          const auto found = calls_.find(id);
          started.calls.push_back(id);
          bundle.calls.push_back(found == calls_.end() ? nullptr : found->second.call);
        }
        if (!reader->ok()) return;
        queue_.push_back(std::move(bundle));
        changed_.Notify();
        return;
      }
      case MessageKind::kCommit: {
        const auto found = bundles_.find(reader->Get<uint64_t>());
        if (found == bundles_.end()) return;
        for (const CallId id : found->second.calls) end(id, absl::OkStatus());
        bundles_.erase(found);
        return;
      }
      case MessageKind::kFail: {
        const auto id = reader->Get<CallId>();
        end(id, reader->GetStatus());
        return;
      }
      case MessageKind::kAbort: {
        const auto context = reader->Get<uint64_t>();
        aborted_.insert(context);
        // The hub has failed the calls.
        for (auto it = bundles_.begin(); it != bundles_.end();) {
          it = it->second.context == context ? bundles_.erase(it) : std::next(it);
        }
        const auto found = meshes_.find(context);
        if (found != meshes_.end() && found->second != nullptr) found->second->Abort();
        changed_.Notify();
        value_changed_.Notify();
        return;
      }
      default:
        // Makes AtEnd() false.
        reader->Get<CallHeader>();
        return;
    }
  }

  // ---- The thread that exchanges ----

  void Work() {
    BlockSignals();
    while (true) {
      Bundle bundle;
      std::vector<std::shared_ptr<Mesh>> closed;
      bool has_bundle = false;
      {
        MutexLock lock(&mutex_);
        while (queue_.empty() && !stopping_ && connected_ && !HasAborted()) changed_.Wait(&mutex_);
        if (stopping_ || !connected_) return CloseAll(&closed);
        // Meshes are destroyed here, where no exchange uses them.
        for (const uint64_t context : aborted_) {
          const auto found = meshes_.find(context);
          if (found == meshes_.end()) continue;
          closed.push_back(std::move(found->second));
          meshes_.erase(found);
        }
        if (!queue_.empty()) {
          bundle = std::move(queue_.front());
          queue_.pop_front();
          has_bundle = true;
        }
        // The hub has failed the calls.
        if (has_bundle && aborted_.count(bundle.context) != 0) has_bundle = false;
        if (has_bundle) connecting_ = bundle.context;
      }
      closed.clear();
      if (!has_bundle) continue;
      const absl::Status status = Run(bundle);
      bundle.calls.clear();
      MutexLock lock(&mutex_);
      Send(MessageWriter(MessageKind::kDone).Add(bundle.id).AddStatus(status).Finish());
    }
  }

  bool HasAborted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(meshes_.begin(), meshes_.end(),
                       [&](const auto& mesh) { return aborted_.count(mesh.first) != 0; });
  }

  void CloseAll(std::vector<std::shared_ptr<Mesh>>* closed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto& [id, mesh] : meshes_) closed->push_back(std::move(mesh));
    meshes_.clear();
    queue_.clear();
  }

  absl::Status Run(const Bundle& bundle) {
    std::vector<CollectiveCall*> calls;
    for (const auto& call : bundle.calls) {
      if (call == nullptr) return absl::CancelledError("a call has ended");
      calls.push_back(call.get());
    }
    if (calls.empty()) return errors::Internal("rank 0 started a round without calls");
    // The hub has matched the calls; there is nothing to exchange.
    if (calls[0]->type == CollectiveType::kBarrier) return absl::OkStatus();
    std::shared_ptr<Mesh> mesh;
    {
      MutexLock lock(&mutex_);
      const auto found = meshes_.find(bundle.context);
      if (found != meshes_.end()) mesh = found->second;
    }
    if (mesh == nullptr) {
      const auto self = std::find(bundle.ranks.begin(), bundle.ranks.end(), options_.rank);
      if (self == bundle.ranks.end()) return errors::Internal("rank 0 started a round of others");
      const auto publish = [&](const std::shared_ptr<Mesh>& made) {
        MutexLock lock(&mutex_);
        meshes_[bundle.context] = made;
        if (stopping_ || !connected_ || aborted_.count(bundle.context) != 0) made->Abort();
      };
      GRADFLOW_ASSIGN_OR_RETURN(mesh, Mesh::Connect(MeshKeyPrefix(bundle.context),
                                                    static_cast<int>(self - bundle.ranks.begin()),
                                                    static_cast<int>(bundle.ranks.size()), host_,
                                                    this, bundle.deadline, publish));
    }
    return mesh->Run(calls, bundle.senders, bundle.deadline);
  }

  const LaunchOptions options_;
  // Rank 0 only.
  std::unique_ptr<ControlHub> hub_;
  std::string file_;
  Fd wake_;
  Fd socket_;
  std::string host_;

  Mutex mutex_;
  // For the thread that exchanges.
  CondVar changed_;
  // For Get() and Connect().
  CondVar value_changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool connected_ ABSL_GUARDED_BY(mutex_) = true;
  std::string why_disconnected_ ABSL_GUARDED_BY(mutex_);
  bool welcomed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status welcome_ ABSL_GUARDED_BY(mutex_);
  std::string output_ ABSL_GUARDED_BY(mutex_);
  std::map<CallId, Call> calls_ ABSL_GUARDED_BY(mutex_);
  // A lower bound of the deadlines of calls_.
  Clock::time_point next_deadline_ ABSL_GUARDED_BY(mutex_) = Clock::time_point::max();
  // The bundles that have been neither committed nor aborted.
  std::map<uint64_t, StartedBundle> bundles_ ABSL_GUARDED_BY(mutex_);
  std::deque<Bundle> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Mesh>> meshes_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> aborted_ ABSL_GUARDED_BY(mutex_);
  // The context of the exchange in progress.
  uint64_t connecting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string wanted_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::string> value_ ABSL_GUARDED_BY(mutex_);
  std::thread reader_;
  std::thread worker_;
};

// Stops the rank when the user's last reference is gone, even on a thread of the rank.
class RankHandle final : public Collectives {
 public:
  explicit RankHandle(const LaunchOptions& options) : rank_(std::make_shared<GlooRank>(options)) {}
  ~RankHandle() override { rank_->Stop(); }

  absl::Status Connect() { return rank_->Connect(); }

  int rank() const override { return rank_->options().rank; }
  int size() const override { return rank_->options().size; }
  CallId NewCallId() override { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  void Start(CallId id, CollectiveCall call, Done done) override {
    // The last call may destroy this object.
    const std::shared_ptr<GlooRank> rank = rank_;
    rank->Start(id, std::move(call), std::move(done));
  }
  void Cancel(CallId id) override {
    const std::shared_ptr<GlooRank> rank = rank_;
    rank->Cancel(id);
  }

 private:
  const std::shared_ptr<GlooRank> rank_;
  std::atomic<CallId> next_id_{1};
};

}  // namespace
}  // namespace distributed

absl::StatusOr<std::shared_ptr<Collectives>> GlooCollectives(const LaunchOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return errors::InvalidArgument("the rank must be in [0, ", options.size, "), but is ",
                                   options.rank);
  }
  if (options.timeout.count() <= 0 || options.connect_timeout.count() <= 0) {
    return errors::InvalidArgument("timeouts must be greater than 0");
  }
  if (options.size == 1) return InProcessCollectives(1)[0];
  const auto rank = std::make_shared<distributed::RankHandle>(options);
  GRADFLOW_RETURN_IF_ERROR(rank->Connect());
  return rank;
}

}  // namespace gradflow
