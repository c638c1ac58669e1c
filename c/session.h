// TF_Session: a runner of a TF_Graph, with callables for the runs that repeat.
#ifndef GRADFLOW_C_SESSION_H_
#define GRADFLOW_C_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/c/graph.h"
#include "gradflow/core/mutex.h"
#include "gradflow/runtime/session/graph_runner.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/replicated.h"
#include "tensorflow/c/c_api.h"

struct TF_SessionOptions {
  gradflow::SessionOptions options;
};

struct TF_Session {
  // Makes a session of the graph. Null options are defaults.
  static absl::StatusOr<std::unique_ptr<TF_Session>> Make(TF_Graph* graph,
                                                          const TF_SessionOptions* options);
  ~TF_Session();

  TF_Graph* const graph;
  std::unique_ptr<gradflow::GraphRunner> runner;

  // The outputs and operations of a run: words that identify them, with the lengths of the lists.
  using CallKey = absl::InlinedVector<uint64_t, 16>;
  // The handles of callables for the first different runs. Further runs go by names.
  gradflow::Replicated<absl::flat_hash_map<CallKey, int64_t>> callables;

 private:
  explicit TF_Session(TF_Graph* owner) : graph(owner) {}
};

namespace gradflow::capi {

using FeedVector = absl::InlinedVector<Tensor, 4>;

// The feeds, fetches and targets of a run. Borrows the arrays.
struct CallSpec {
  absl::Span<const TF_Output> inputs;
  absl::Span<const TF_Output> outputs;
  absl::Span<const TF_Operation* const> targets;
};

// Returns the call of these arrays. Returns INVALID_ARGUMENT if a size is negative, an array is
// null, or an output or operation is wrong.
absl::StatusOr<CallSpec> CallFromC(const Graph& graph, const TF_Output* inputs, int num_inputs,
                                   const TF_Output* outputs, int num_outputs,
                                   const TF_Operation* const* targets, int num_targets);
// Returns the tensors that are fed to the inputs of the call, or INVALID_ARGUMENT if one is null.
absl::StatusOr<FeedVector> FeedsFromC(const CallSpec& call, TF_Tensor* const* values);
// Stores the outputs. Deletes what it has stored on error.
absl::Status StoreOutputs(std::vector<Tensor> outputs, TF_Tensor** values);
// Stores `count` null pointers.
void ClearOutputs(TF_Tensor** values, int count);
// Runs the session on tensors. `options` and `metadata` may be null.
absl::Status RunSession(TF_Session* session, const CallSpec& call, absl::Span<const Tensor> feeds,
                        const RunOptions* options, std::vector<Tensor>* outputs,
                        RunMetadata* metadata);

// Forgets the partial runs of a session.
void DropPartialRuns(const TF_Session* session);

// Returns the device list of this process.
TF_DeviceList* NewDeviceList();

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_SESSION_H_
