#include "tensorflow/cc/saved_model/bundle_v2.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/saved_model/reader.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/cc/saved_model/reader.h"

namespace tensorflow {

absl::Status SavedModelV2Bundle::Load(const std::string& export_dir, SavedModelV2Bundle* bundle) {
  compat_internal::CountRead(export_dir, "cc_load_bundle_v2").IgnoreError();
  SavedModel model;
  GRADFLOW_RETURN_IF_ERROR(compat_internal::ReadSavedModel(export_dir, &model));
  if (model.meta_graphs_size() != 1) {
    return gradflow::errors::InvalidArgument("'", export_dir, "': expected one graph, found ",
                                             model.meta_graphs_size());
  }
  SavedModelV2Bundle loaded;
  loaded.meta_graph_def_ = std::move(*model.mutable_meta_graphs(0));
  GRADFLOW_ASSIGN_OR_RETURN(loaded.debug_info_, gradflow::ReadSavedModelDebugInfo(export_dir));
  GRADFLOW_ASSIGN_OR_RETURN(const std::optional<gradflow::Checkpoint> checkpoint,
                            gradflow::OpenSavedModelCheckpoint(export_dir));
  if (checkpoint.has_value()) {
    GRADFLOW_ASSIGN_OR_RETURN(loaded.trackable_object_graph_,
                              gradflow::ReadTrackableObjectGraph(*checkpoint));
    if (loaded.trackable_object_graph_.nodes_size() == 0) {
      return gradflow::errors::FailedPrecondition("'", export_dir,
                                                  "': the checkpoint has no objects");
    }
    loaded.variable_reader_ =
        std::make_unique<BundleReader>(Env::Default(), gradflow::SavedModelCheckpoint(export_dir));
    GRADFLOW_RETURN_IF_ERROR(loaded.variable_reader_->status());
  }
  *bundle = std::move(loaded);
  return absl::OkStatus();
}

absl::Status SavedModelV2Bundle::VisitObjectsToRestore(RestoreObjectsCallback callback) {
  return gradflow::CallSafely([&]() -> absl::Status {
    const SavedObjectGraph& saved = saved_object_graph();
    const TrackableObjectGraph& restored = trackable_object_graph_;
    if (saved.nodes_size() == 0 || restored.nodes_size() == 0) return absl::OkStatus();
    // Objects with the same path from the first object of each graph belong together.
    struct Pair {
      int saved;
      int restored;
    };
    std::vector<Pair> open = {{0, 0}};
    std::vector<bool> seen(restored.nodes_size());
    seen[0] = true;
    while (!open.empty()) {
      const Pair pair = open.back();
      open.pop_back();
      const auto& object = restored.nodes(pair.restored);
      const bool has_tensors = object.attributes_size() > 0 || object.slot_variables_size() > 0;
      if (pair.saved != 0 && has_tensors) GRADFLOW_RETURN_IF_ERROR(callback(pair.saved, object));
      absl::flat_hash_map<absl::string_view, int> children;
      for (const auto& child : saved.nodes(pair.saved).children()) {
        children.emplace(child.local_name(), child.node_id());
      }
      for (const auto& child : object.children()) {
        const auto error = [&](absl::string_view text) {
          return gradflow::errors::FailedPrecondition(
              "object ", pair.restored, " of the checkpoint, child '",
              gradflow::errors::Printable(child.local_name()), "': ", text);
        };
        if (child.node_id() < 0 || child.node_id() >= restored.nodes_size()) {
          return error("there is no object of its number");
        }
        if (seen[child.node_id()]) continue;
        seen[child.node_id()] = true;
        const auto same = children.find(child.local_name());
        if (same == children.end() || same->second < 0 || same->second >= saved.nodes_size()) {
          return error("the graph has no such object");
        }
        open.push_back({same->second, child.node_id()});
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace tensorflow
