// Sessions of several ranks in one program, for tests of collective ops.
#ifndef GRADFLOW_TESTS_OPS_COLLECTIVE_RANKS_H_
#define GRADFLOW_TESTS_OPS_COLLECTIVE_RANKS_H_

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/distributed/in_process.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::testing {

inline constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Adds a node whose inputs are placeholders `name`/i0, ... of the types of `inputs`, or the nodes
// that `nodes` names. An empty name stands for a placeholder.
inline NodeDef* AddCall(const std::string& name, const std::string& op,
                        const std::vector<Tensor>& inputs, GraphDef* graph,
                        const std::vector<std::string>& nodes = {}) {
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < nodes.size() && !nodes[i].empty()) {
      names.push_back(nodes[i]);
      continue;
    }
    NodeDef* const placeholder = graph->add_node();
    placeholder->set_name(absl::StrCat(name, "/i", i));
    placeholder->set_op("Placeholder");
    AddNodeAttr("dtype", inputs[i].dtype(), placeholder);
    names.push_back(placeholder->name());
  }
  NodeDef* const node = graph->add_node();
  node->set_name(name);
  node->set_op(op);
  for (const std::string& input : names) node->add_input(input);
  return node;
}

// The feeds of a node that AddCall() added.
inline std::vector<std::pair<std::string, Tensor>> FeedsOf(const std::string& name,
                                                           const std::vector<Tensor>& inputs) {
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DT_RESOURCE)
      feeds.emplace_back(absl::StrCat(name, "/i", i), inputs[i]);
  }
  return feeds;
}

// Passes calls on, and reports that a call was started.
class WatchedCollectives final : public Collectives {
 public:
  explicit WatchedCollectives(std::shared_ptr<Collectives> base) : base_(std::move(base)) {}

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  CallId NewCallId() override { return base_->NewCallId(); }
  void Start(CallId id, CollectiveCall call, Done done) override {
    base_->Start(id, std::move(call), std::move(done));
    if (!was_started_.exchange(true)) started_.set_value();
  }
  void Cancel(CallId id) override { base_->Cancel(id); }

  // Waits for the first call. May be called once.
  void WaitForStart() { started_.get_future().wait(); }

 private:
  const std::shared_ptr<Collectives> base_;
  std::atomic<bool> was_started_{false};
  std::promise<void> started_;
};

// A session for each rank. A session uses one thread, so a kernel that held it would be seen.
class RankSessions {
 public:
  explicit RankSessions(int size) {
    for (auto& rank : InProcessCollectives(size)) {
      collectives_.push_back(std::make_shared<WatchedCollectives>(std::move(rank)));
      SessionOptions options;
      options.config.set_inter_op_parallelism_threads(1);
      options.config.set_intra_op_parallelism_threads(1);
      options.collectives = collectives_.back();
      sessions_.push_back(*Session::Make(options));
    }
  }

  int size() const { return static_cast<int>(sessions_.size()); }
  Session& session(int rank) { return *sessions_[static_cast<size_t>(rank)]; }

  // Waits until a run of the rank's session waits for other ranks.
  void WaitForStart(int rank) { collectives_[static_cast<size_t>(rank)]->WaitForStart(); }

  // Calls fn(rank) on a thread for each rank, and returns the results.
  template <typename F>
  auto OnEachRank(F fn) {
    std::vector<decltype(fn(0))> results(sessions_.size(), absl::UnknownError("did not run"));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] { results[static_cast<size_t>(rank)] = fn(rank); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

 private:
  std::vector<std::shared_ptr<WatchedCollectives>> collectives_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_OPS_COLLECTIVE_RANKS_H_
