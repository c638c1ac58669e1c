// FreezeSavedModel: replaces the variables of a loaded model by constants.
#ifndef GRADFLOW_COMPAT_CC_TOOLS_FREEZE_SAVED_MODEL_H_
#define GRADFLOW_COMPAT_CC_TOOLS_FREEZE_SAVED_MODEL_H_

#include <string>
#include <unordered_set>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

namespace compat_internal {

absl::Status FreezeModel(const MetaGraphDef& meta_graph, LocalSessionCalls* session,
                         GraphDef* frozen, std::unordered_set<std::string>* inputs,
                         std::unordered_set<std::string>* outputs);

}  // namespace compat_internal

// Stores a graph with the nodes that the signatures need, in the order of the model, and the names
// of the tensors that are their inputs and outputs. Calls of functions remain.
inline Status FreezeSavedModel(const SavedModelBundle& saved_model_bundle,
                               GraphDef* frozen_graph_def, std::unordered_set<std::string>* inputs,
                               std::unordered_set<std::string>* outputs) {
  // A graph without variables needs no session.
  compat_internal::LocalSessionCalls* calls = nullptr;
  if (saved_model_bundle.session != nullptr) {
    auto* const local =
        dynamic_cast<compat_internal::LocalSession*>(saved_model_bundle.session.get());
    if (local == nullptr) {
      return errors::Unimplemented("FreezeSavedModel needs a session of LoadSavedModel");
    }
    calls = local->calls();
  }
  return compat_internal::FreezeModel(saved_model_bundle.meta_graph_def, calls, frozen_graph_def,
                                      inputs, outputs);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_TOOLS_FREEZE_SAVED_MODEL_H_
