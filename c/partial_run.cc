// Partial runs: one run in several calls.
//
// Each call is an ordinary run of the nodes that its fetches and targets need and that no earlier
// call has run. A call also fetches each output of its nodes that a node outside of the call reads,
// and later calls feed these values. No node therefore runs twice. A control edge cannot be fed. A
// node may therefore not have a control input that ran in an earlier call, unless that input has no
// inputs itself, such as a placeholder, and its output 0 is known.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/session.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/graph/node_checks.h"

namespace gradflow::capi {
namespace {

// A node and the index of its output.
using TensorKey = std::pair<const Node*, int>;

class PartialRun {
 public:
  PartialRun(TF_Session* session, const CallSpec& setup) : session_(session) {
    for (const TF_Output& input : setup.inputs) feeds_.insert(KeyOf(input));
    for (const TF_Output& output : setup.outputs) fetches_.insert(KeyOf(output));
    for (const TF_Operation* oper : setup.targets) targets_.insert(FromC(oper));
  }

  const TF_Session* session() const { return session_; }

  // Returns INVALID_ARGUMENT if the setup does not have a feed, fetch or target of the call, if a
  // feed was fed before, or if the call needs a feed that has no value yet. Returns UNIMPLEMENTED
  // if a node would have to run again. A call that fails feeds nothing.
  absl::Status Run(const CallSpec& call, const FeedVector& values, std::vector<Tensor>* outputs) {
    MutexLock lock(&mutex_);
    Tensors known = known_;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorKey key = KeyOf(call.inputs[i]);
      if (feeds_.count(key) == 0) {
        return errors::InvalidArgument(NameOf(key), " was not a feed of the setup");
      }
      if (!known.emplace(key, values[i]).second) {
        return errors::InvalidArgument("The feed ", NameOf(key), " had already been fed.");
      }
    }
    for (const TF_Output& output : call.outputs) {
      if (fetches_.count(KeyOf(output)) == 0) {
        return errors::InvalidArgument(NameOf(KeyOf(output)), " was not a fetch of the setup");
      }
    }
    std::set<const Node*> running;
    for (const TF_Output& output : call.outputs) {
      GRADFLOW_RETURN_IF_ERROR(Collect(KeyOf(output), known, &running));
    }
    for (const TF_Operation* oper : call.targets) {
      if (targets_.count(FromC(oper)) == 0) {
        return errors::InvalidArgument("operation ", FromC(oper)->name(),
                                       " was not a target of the setup");
      }
      GRADFLOW_RETURN_IF_ERROR(CollectNode(*FromC(oper), known, &running));
    }
    GRADFLOW_RETURN_IF_ERROR(RunNodes(call, running, &known, outputs));
    known_.swap(known);
    done_.insert(running.begin(), running.end());
    return absl::OkStatus();
  }

 private:
  using Tensors = std::map<TensorKey, Tensor>;

  static TensorKey KeyOf(const TF_Output& output) { return {FromC(output.oper), output.index}; }
  static std::string NameOf(const TensorKey& key) {
    return absl::StrCat(key.first->name(), ":", key.second);
  }

  // Adds the nodes that compute a tensor, unless it is known.
  absl::Status Collect(const TensorKey& key, const Tensors& known, std::set<const Node*>* running)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (known.count(key) > 0) return absl::OkStatus();
    if (feeds_.count(key) > 0) {
      return errors::InvalidArgument("Must feed ", NameOf(key), " before it is needed");
    }
    return CollectNode(*key.first, known, running);
  }
  absl::Status CollectNode(const Node& first, const Tensors& known, std::set<const Node*>* running)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const MutexLock lock(&session_->graph->mutex);
    std::vector<const Node*> stack = {&first};
    while (!stack.empty()) {
      const Node* const node = stack.back();
      stack.pop_back();
      if (done_.count(node) > 0) {
        return errors::Unimplemented(internal::NodePrefix(node->def()),
                                     "the node has run in an earlier call of the partial run and "
                                     "cannot run again; a target, a control edge or an output "
                                     "that was not fetched needs it");
      }
      if (!running->insert(node).second) continue;
      for (const Node::Source& source : node->sources()) {
        if (source.output < 0) {
          // As in other runs, a control edge from a fed placeholder is fulfilled.
          if (known.count({source.node, 0}) == 0 || source.node->num_inputs() > 0) {
            stack.push_back(source.node);
          }
          continue;
        }
        const TensorKey key(source.node, source.output);
        if (known.count(key) > 0) continue;
        if (feeds_.count(key) > 0) {
          return errors::InvalidArgument("Must feed ", NameOf(key), " before ", node->name(),
                                         " can run");
        }
        stack.push_back(source.node);
      }
    }
    return absl::OkStatus();
  }

  // Runs nodes, and adds the tensors that the call fetches or that another node may read later.
  absl::Status RunNodes(const CallSpec& call, const std::set<const Node*>& running, Tensors* known,
                        std::vector<Tensor>* outputs) {
    std::vector<TF_Output> feed_outputs;
    std::vector<Tensor> feed_values;
    for (const auto& [key, value] : *known) {
      feed_outputs.push_back({ToC(key.first), key.second});
      feed_values.push_back(value);
    }
    std::vector<TF_Output> fetched(call.outputs.begin(), call.outputs.end());
    {
      const MutexLock lock(&session_->graph->mutex);
      for (const Node* node : running) {
        std::set<int> read;
        for (const Edge* edge : node->out_edges()) {
          if (!edge->IsControlEdge() && running.count(edge->dst()) == 0) {
            read.insert(edge->src_output());
          }
        }
        for (const int output : read) fetched.push_back({ToC(node), output});
      }
    }
    const CallSpec all = {feed_outputs, fetched, call.targets};
    std::vector<Tensor> values;
    // Options keep RunSession from making a callable, which would serve only this call.
    const RunOptions options;
    GRADFLOW_RETURN_IF_ERROR(RunSession(session_, all, feed_values, &options, &values, nullptr));
    for (size_t i = 0; i < fetched.size(); ++i) known->emplace(KeyOf(fetched[i]), values[i]);
    values.resize(call.outputs.size());
    *outputs = std::move(values);
    return absl::OkStatus();
  }

  TF_Session* const session_;
  std::set<TensorKey> feeds_;
  std::set<TensorKey> fetches_;
  std::set<const Node*> targets_;
  Mutex mutex_;
  // The tensors that were fed, or that an earlier call has fetched, and the nodes that have run.
  Tensors known_ ABSL_GUARDED_BY(mutex_);
  std::set<const Node*> done_ ABSL_GUARDED_BY(mutex_);
};

// The partial runs of all sessions, keyed by handle.
struct PartialRuns {
  Mutex mutex;
  int64_t next ABSL_GUARDED_BY(mutex) = 1;
  std::map<std::string, std::shared_ptr<PartialRun>, std::less<>> by_handle ABSL_GUARDED_BY(mutex);
};
PartialRuns& AllPartialRuns() {
  static auto& runs = *new PartialRuns;
  return runs;
}

// Stores a handle for a new run.
absl::Status AddPartialRun(TF_Session* session, const CallSpec& setup, const char** handle) {
  auto run = std::make_shared<PartialRun>(session, setup);
  PartialRuns& runs = AllPartialRuns();
  const MutexLock lock(&runs.mutex);
  std::string name = absl::StrCat("partial run ", runs.next++);
  std::unique_ptr<char, decltype(&std::free)> copy(strdup(name.c_str()), &std::free);
  if (copy == nullptr) return errors::ResourceExhausted("out of memory for a handle");
  runs.by_handle.emplace(std::move(name), std::move(run));
  *handle = copy.release();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PartialRun>> FindPartialRun(const TF_Session* session,
                                                           absl::string_view handle) {
  PartialRuns& runs = AllPartialRuns();
  const MutexLock lock(&runs.mutex);
  const auto found = runs.by_handle.find(handle);
  if (found != runs.by_handle.end() && found->second->session() == session) return found->second;
  return errors::InvalidArgument("the session has no partial run with handle ",
                                 internal::Quoted(handle));
}

}  // namespace

void DropPartialRuns(const TF_Session* session) {
  // The runs are destroyed without a lock.
  std::vector<std::shared_ptr<PartialRun>> dropped;
  PartialRuns& runs = AllPartialRuns();
  const MutexLock lock(&runs.mutex);
  for (auto it = runs.by_handle.begin(); it != runs.by_handle.end();) {
    if (it->second->session() != session) {
      ++it;
      continue;
    }
    dropped.push_back(std::move(it->second));
    it = runs.by_handle.erase(it);
  }
}

}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::CallQuietly;
using gradflow::capi::CallSpec;
using gradflow::capi::OrEmpty;

void TF_SessionPRunSetup(TF_Session* session, const TF_Output* inputs, int ninputs,
                         const TF_Output* outputs, int noutputs,
                         const TF_Operation* const* target_opers, int ntargets, const char** handle,
                         TF_Status* status) {
  *handle = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const CallSpec setup,
                              gradflow::capi::CallFromC(session->graph->graph, inputs, ninputs,
                                                        outputs, noutputs, target_opers, ntargets));
    return gradflow::capi::AddPartialRun(session, setup, handle);
  });
}

void TF_SessionPRun(TF_Session* session, const char* handle, const TF_Output* inputs,
                    TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                    TF_Tensor** output_values, int noutputs,
                    const TF_Operation* const* target_opers, int ntargets, TF_Status* status) {
  gradflow::capi::ClearOutputs(output_values, noutputs);
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const CallSpec call,
                              gradflow::capi::CallFromC(session->graph->graph, inputs, ninputs,
                                                        outputs, noutputs, target_opers, ntargets));
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::capi::FeedVector feeds,
                              gradflow::capi::FeedsFromC(call, input_values));
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::CheckArray(output_values, noutputs, "output_values"));
    GRADFLOW_ASSIGN_OR_RETURN(const auto run,
                              gradflow::capi::FindPartialRun(session, OrEmpty(handle)));
    std::vector<gradflow::Tensor> results;
    GRADFLOW_RETURN_IF_ERROR(run->Run(call, feeds, &results));
    return gradflow::capi::StoreOutputs(std::move(results), output_values);
  });
}

void TF_DeletePRunHandle(const char* handle) {
  if (handle == nullptr) return;
  CallQuietly([&] {
    std::shared_ptr<gradflow::capi::PartialRun> dropped;
    gradflow::capi::PartialRuns& runs = gradflow::capi::AllPartialRuns();
    const gradflow::MutexLock lock(&runs.mutex);
    const auto found = runs.by_handle.find(absl::string_view(handle));
    if (found == runs.by_handle.end()) return;
    dropped = std::move(found->second);
    runs.by_handle.erase(found);
  });
  std::free(const_cast<char*>(handle));
}
