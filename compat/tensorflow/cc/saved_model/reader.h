// Reads the messages of a SavedModel. See gradflow/saved_model/reader.h.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_READER_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_READER_H_

#include <memory>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/graph_debug_info.pb.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace tensorflow {

namespace compat_internal {

absl::Status ReadSavedModel(absl::string_view export_dir, SavedModel* saved_model);
absl::StatusOr<MetaGraphDef*> FindMetaGraph(const std::unordered_set<std::string>& tags,
                                            SavedModel* saved_model);
absl::Status ReadMetaGraph(absl::string_view export_dir,
                           const std::unordered_set<std::string>& tags, MetaGraphDef* meta_graph);
absl::Status ReadDebugInfo(absl::string_view export_dir,
                           std::unique_ptr<GraphDebugInfo>* debug_info);

}  // namespace compat_internal

// Reads saved_model.pb or saved_model.pbtxt.
inline Status ReadSavedModel(absl::string_view export_dir, SavedModel* saved_model_proto) {
  return compat_internal::ReadSavedModel(export_dir, saved_model_proto);
}
// Returns the graph whose tags are exactly `tags`, or NOT_FOUND.
inline absl::StatusOr<MetaGraphDef*> FindMetaGraphDef(const std::unordered_set<std::string>& tags,
                                                      SavedModel* saved_model_proto) {
  return compat_internal::FindMetaGraph(tags, saved_model_proto);
}
inline Status ReadMetaGraphDefFromSavedModel(absl::string_view export_dir,
                                             const std::unordered_set<std::string>& tags,
                                             MetaGraphDef* meta_graph_def) {
  return compat_internal::ReadMetaGraph(export_dir, tags, meta_graph_def);
}
// Stores the debug information, or null if the model has none.
inline Status ReadSavedModelDebugInfoIfPresent(absl::string_view export_dir,
                                               std::unique_ptr<GraphDebugInfo>* debug_info_proto) {
  return compat_internal::ReadDebugInfo(export_dir, debug_info_proto);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_READER_H_
