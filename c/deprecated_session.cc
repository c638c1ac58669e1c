// TF_DeprecatedSession: sessions that own their graph and work with names.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/session.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

struct TF_DeprecatedSession {
  std::unique_ptr<gradflow::Session> session;
  std::atomic<bool> has_graph{false};
};

namespace gradflow::capi {
namespace {

absl::Status Run(TF_DeprecatedSession* session, const TF_Buffer* run_options,
                 const char** input_names, TF_Tensor** inputs, int ninputs,
                 const char** output_names, TF_Tensor** outputs, int noutputs,
                 const char** target_oper_names, int ntargets, TF_Buffer* run_metadata) {
  // TensorFlow's words, which programs look for.
  if (!session->has_graph.load()) {
    return errors::InvalidArgument("Session was not created with a graph before Run()!");
  }
  GRADFLOW_RETURN_IF_ERROR(CheckArray(input_names, ninputs, "input_names"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(inputs, ninputs, "inputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(output_names, noutputs, "output_names"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(outputs, noutputs, "outputs"));
  GRADFLOW_RETURN_IF_ERROR(CheckArray(target_oper_names, ntargets, "target_oper_names"));
  RunOptions options;
  GRADFLOW_RETURN_IF_ERROR(ParseMessage(run_options, &options));
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (int i = 0; i < ninputs; ++i) {
    if (inputs[i] == nullptr) return errors::InvalidArgument("inputs[", i, "] is null");
    GRADFLOW_ASSIGN_OR_RETURN(Tensor feed, TensorFromC(*inputs[i]));
    feeds.emplace_back(OrEmpty(input_names[i]), std::move(feed));
  }
  std::vector<std::string> fetches;
  for (int i = 0; i < noutputs; ++i) fetches.emplace_back(OrEmpty(output_names[i]));
  std::vector<std::string> targets;
  for (int i = 0; i < ntargets; ++i) targets.emplace_back(OrEmpty(target_oper_names[i]));
  std::vector<Tensor> results;
  RunMetadata metadata;
  GRADFLOW_RETURN_IF_ERROR(session->session->Run(options, feeds, fetches, targets, &results,
                                                 run_metadata == nullptr ? nullptr : &metadata));
  if (run_metadata != nullptr) GRADFLOW_RETURN_IF_ERROR(FillBuffer(metadata, run_metadata));
  return StoreOutputs(std::move(results), outputs);
}

constexpr char kNoPartialRuns[] =
    "sessions that work with names have no partial runs; use TF_SessionPRunSetup";

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;

TF_DeprecatedSession* TF_NewDeprecatedSession(const TF_SessionOptions* options, TF_Status* status) {
  TF_DeprecatedSession* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto session = std::make_unique<TF_DeprecatedSession>();
    GRADFLOW_ASSIGN_OR_RETURN(
        session->session, gradflow::Session::Make(options == nullptr ? gradflow::SessionOptions()
                                                                     : options->options));
    result = session.release();
    return absl::OkStatus();
  });
  return result;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  Call(status, [&] { return session->session->Close(); });
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession* session, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  delete session;
}

void TF_Reset(const TF_SessionOptions*, const char**, int, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

void TF_ExtendGraph(TF_DeprecatedSession* session, const void* proto, size_t proto_len,
                    TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(
        gradflow::GraphDef graph_def,
        gradflow::ParseGraphDef(absl::string_view(static_cast<const char*>(proto), proto_len)));
    GRADFLOW_RETURN_IF_ERROR(session->session->Extend(std::move(graph_def)));
    session->has_graph.store(true);
    return absl::OkStatus();
  });
}

void TF_Run(TF_DeprecatedSession* session, const TF_Buffer* run_options, const char** input_names,
            TF_Tensor** inputs, int ninputs, const char** output_names, TF_Tensor** outputs,
            int noutputs, const char** target_oper_names, int ntargets, TF_Buffer* run_metadata,
            TF_Status* status) {
  gradflow::capi::ClearOutputs(outputs, noutputs);
  Call(status, [&] {
    return gradflow::capi::Run(session, run_options, input_names, inputs, ninputs, output_names,
                               outputs, noutputs, target_oper_names, ntargets, run_metadata);
  });
}

void TF_PRunSetup(TF_DeprecatedSession*, const char**, int, const char**, int, const char**, int,
                  const char** handle, TF_Status* status) {
  *handle = nullptr;
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoPartialRuns);
}

void TF_PRun(TF_DeprecatedSession*, const char*, const char**, TF_Tensor**, int, const char**,
             TF_Tensor**, int, const char**, int, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED, gradflow::capi::kNoPartialRuns);
}

TF_DeviceList* TF_DeprecatedSessionListDevices(TF_DeprecatedSession*, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return gradflow::capi::NewDeviceList();
}
