#include "gradflow/c/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/runtime/session/plan_cache.h"

absl::StatusOr<std::unique_ptr<TF_Session>> TF_Session::Make(TF_Graph* graph,
                                                             const TF_SessionOptions* options) {
  const gradflow::SessionOptions defaults;
  const gradflow::SessionOptions& used = options == nullptr ? defaults : options->options;
  std::unique_ptr<TF_Session> session(new TF_Session(graph));
  gradflow::capi::RefGraph(graph);
  GRADFLOW_ASSIGN_OR_RETURN(session->runner, gradflow::GraphRunner::Make(used, graph->graph));
  session->runner->AcceptAnyFeedShape();
  const gradflow::MutexLock lock(&graph->mutex);
  graph->runners.push_back(session->runner.get());
  return session;
}

TF_Session::~TF_Session() {
  gradflow::capi::DropPartialRuns(this);
  {
    const gradflow::MutexLock lock(&graph->mutex);
    auto& runners = graph->runners;
    runners.erase(std::remove(runners.begin(), runners.end(), runner.get()), runners.end());
  }
  // The runner borrows the graph.
  runner = nullptr;
  gradflow::capi::UnrefGraph(graph);
}

namespace gradflow::capi {
namespace {

constexpr size_t kMaxCallables = 256;

TF_Session::CallKey KeyOf(const CallSpec& call) {
  TF_Session::CallKey key;
  key.push_back(call.inputs.size());
  key.push_back(call.outputs.size());
  for (const auto& list : {call.inputs, call.outputs}) {
    for (const TF_Output& output : list) {
      key.push_back(static_cast<uint64_t>(FromC(output.oper)->id()) << 32 |
                    static_cast<uint32_t>(output.index));
    }
  }
  for (const TF_Operation* oper : call.targets) key.push_back(FromC(oper)->id());
  return key;
}

std::string NameOf(const TF_Output& output) {
  return FormatTensorId({FromC(output.oper)->name(), output.index});
}

// Makes a callable, keeps its handle for later runs of the same call, and returns it. Returns 0 if
// the session already keeps kMaxCallables callables.
absl::StatusOr<int64_t> MakeCallable(TF_Session* session, const CallSpec& call,
                                     const TF_Session::CallKey& key) {
  const size_t size =
      session->callables.Read([](const auto& callables) { return callables.size(); });
  if (size >= kMaxCallables) return 0;
  CallableOptions options;
  for (const TF_Output& output : call.inputs) options.add_feed(NameOf(output));
  for (const TF_Output& output : call.outputs) options.add_fetch(NameOf(output));
  for (const TF_Operation* oper : call.targets) options.add_target(FromC(oper)->name());
  int64_t handle;
  GRADFLOW_RETURN_IF_ERROR(session->runner->MakeCallable(options, &handle));
  // If another thread has made the same callable meanwhile, that one is kept.
  int64_t kept = handle;
  session->callables.Update(
      [&](auto* callables) { kept = callables->emplace(key, handle).first->second; });
  if (kept != handle) session->runner->ReleaseCallable(handle).IgnoreError();
  return kept;
}

}  // namespace

absl::StatusOr<CallSpec> CallFromC(const Graph& graph, const TF_Output* inputs, int num_inputs,
                                   const TF_Output* outputs, int num_outputs,
                                   const TF_Operation* const* targets, int num_targets) {
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(graph, inputs, num_inputs, "inputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(graph, outputs, num_outputs, "outputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(targets, num_targets, "target_opers"));
  for (int i = 0; i < num_targets; ++i) {
    if (targets[i] != nullptr && &FromC(targets[i])->graph() == &graph) continue;
    // Makes the error. Its argument is not built for valid targets.
    return CheckOperation(graph, targets[i], absl::StrCat("target_opers[", i, "]"));
  }
  return CallSpec{absl::MakeConstSpan(inputs, num_inputs),
                  absl::MakeConstSpan(outputs, num_outputs),
                  absl::MakeConstSpan(targets, num_targets)};
}

absl::StatusOr<FeedVector> FeedsFromC(const CallSpec& call, TF_Tensor* const* values) {
  const int count = static_cast<int>(call.inputs.size());
  GRADFLOW_RETURN_IF_ERROR(CheckArray(values, count, "input_values"));
  FeedVector feeds;
  feeds.reserve(count);
  for (int i = 0; i < count; ++i) {
    if (values[i] == nullptr) return errors::InvalidArgument("input_values[", i, "] is null");
    GRADFLOW_ASSIGN_OR_RETURN(Tensor feed, TensorFromC(*values[i]));
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

absl::Status StoreOutputs(std::vector<Tensor> outputs, TF_Tensor** values) {
  size_t stored = 0;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    for (; stored < outputs.size(); ++stored) {
      GRADFLOW_ASSIGN_OR_RETURN(values[stored], TensorToC(std::move(outputs[stored])));
    }
    return absl::OkStatus();
  });
  while (!status.ok() && stored > 0) TF_DeleteTensor(std::exchange(values[--stored], nullptr));
  return status;
}

void ClearOutputs(TF_Tensor** values, int count) {
  if (values != nullptr) std::fill(values, values + std::max(count, 0), nullptr);
}

absl::Status RunSession(TF_Session* session, const CallSpec& call, absl::Span<const Tensor> feeds,
                        const RunOptions* options, std::vector<Tensor>* outputs,
                        RunMetadata* metadata) {
  // A callable has no metadata, and no options of its own.
  if (options == nullptr && metadata == nullptr) {
    const TF_Session::CallKey key = KeyOf(call);
    int64_t handle = session->callables.Read([&](const auto& callables) -> int64_t {
      const auto found = callables.find(key);
      return found == callables.end() ? 0 : found->second;
    });
    if (handle == 0) {
      GRADFLOW_ASSIGN_OR_RETURN(handle, MakeCallable(session, call, key));
    }
    if (handle != 0) return session->runner->RunCallable(handle, feeds, outputs, nullptr);
  }
  std::vector<std::pair<std::string, Tensor>> named_feeds;
  for (size_t i = 0; i < feeds.size(); ++i) {
    named_feeds.emplace_back(NameOf(call.inputs[i]), feeds[i]);
  }
  std::vector<std::string> fetches;
  for (const TF_Output& output : call.outputs) fetches.push_back(NameOf(output));
  std::vector<std::string> targets;
  for (const TF_Operation* oper : call.targets) targets.push_back(FromC(oper)->name());
  const RunOptions defaults;
  return session->runner->Run(options == nullptr ? defaults : *options,
                              {named_feeds, fetches, targets}, outputs, metadata);
}

namespace {

absl::Status Run(TF_Session* session, const TF_Buffer* run_options, const CallSpec& call,
                 TF_Tensor* const* input_values, TF_Tensor** output_values,
                 TF_Buffer* run_metadata) {
  GRADFLOW_ASSIGN_OR_RETURN(const FeedVector feeds, FeedsFromC(call, input_values));
  GRADFLOW_RETURN_IF_ERROR(
      CheckArray(output_values, static_cast<int>(call.outputs.size()), "output_values"));
  std::vector<Tensor> outputs;
  // Messages cost more than a small run.
  if (run_options == nullptr && run_metadata == nullptr) {
    GRADFLOW_RETURN_IF_ERROR(RunSession(session, call, feeds, nullptr, &outputs, nullptr));
    return StoreOutputs(std::move(outputs), output_values);
  }
  RunOptions options;
  if (run_options != nullptr) GRADFLOW_RETURN_IF_ERROR(ParseMessage(run_options, &options));
  RunMetadata metadata;
  const absl::Status ran =
      RunSession(session, call, feeds, run_options == nullptr ? nullptr : &options, &outputs,
                 run_metadata == nullptr ? nullptr : &metadata);
  // Callers also read the metadata of runs that failed.
  if (run_metadata != nullptr) GRADFLOW_RETURN_IF_ERROR(FillBuffer(metadata, run_metadata));
  GRADFLOW_RETURN_IF_ERROR(ran);
  return StoreOutputs(std::move(outputs), output_values);
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::OrEmpty;

// ---- Options ----

TF_SessionOptions* TF_NewSessionOptions(void) {
  return CallOr<TF_SessionOptions*>(nullptr, [] { return new TF_SessionOptions; });
}
void TF_DeleteSessionOptions(TF_SessionOptions* options) { delete options; }

void TF_SetTarget(TF_SessionOptions* options, const char* target) {
  CallQuietly([&] { options->options.target = OrEmpty(target); });
}

void TF_SetConfig(TF_SessionOptions* options, const void* proto, size_t proto_len,
                  TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    gradflow::ConfigProto config;
    if (!gradflow::capi::ParseMessage(proto, proto_len, &config).ok()) {
      return gradflow::errors::InvalidArgument("Unparseable ConfigProto");
    }
    options->options.config.Swap(&config);
    return absl::OkStatus();
  });
}

// ---- Sessions ----

TF_Session* TF_NewSession(TF_Graph* graph, const TF_SessionOptions* opts, TF_Status* status) {
  TF_Session* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<TF_Session> session, TF_Session::Make(graph, opts));
    result = session.release();
    return absl::OkStatus();
  });
  return result;
}

void TF_CloseSession(TF_Session* session, TF_Status* status) {
  Call(status, [&] {
    session->runner->Close();
    return absl::OkStatus();
  });
}

void TF_DeleteSession(TF_Session* session, TF_Status* status) {
  Call(status, [&] {
    delete session;
    return absl::OkStatus();
  });
}

void TF_SessionRun(TF_Session* session, const TF_Buffer* run_options, const TF_Output* inputs,
                   TF_Tensor* const* input_values, int ninputs, const TF_Output* outputs,
                   TF_Tensor** output_values, int noutputs, const TF_Operation* const* target_opers,
                   int ntargets, TF_Buffer* run_metadata, TF_Status* status) {
  gradflow::capi::ClearOutputs(output_values, noutputs);
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::capi::CallSpec call,
                              gradflow::capi::CallFromC(session->graph->graph, inputs, ninputs,
                                                        outputs, noutputs, target_opers, ntargets));
    return gradflow::capi::Run(session, run_options, call, input_values, output_values,
                               run_metadata);
  });
}

// Runs read the nodes of the graph itself, so a session needs no extension.
void TF_ExtendSession(TF_Session*, TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

TF_DeviceList* TF_SessionListDevices(TF_Session*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return gradflow::capi::NewDeviceList();
}
