// SavedModelV2Bundle: the messages and the checkpoint of a SavedModel of TensorFlow 2, without a
// session.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_BUNDLE_V2_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_BUNDLE_V2_H_

#include <functional>
#include <memory>
#include <string>

#include "tensorflow/core/framework/graph_debug_info.pb.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_object_graph.pb.h"
#include "tensorflow/core/protobuf/trackable_object_graph.pb.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"

namespace tensorflow {

class SavedModelV2Bundle {
 public:
  // Called with the number of an object in saved_object_graph(), and the object of the same name in
  // the checkpoint.
  using RestoreObjectsCallback =
      std::function<absl::Status(int, const TrackableObjectGraph::TrackableObject&)>;

  // Reads a model. Returns INVALID_ARGUMENT unless it has one graph, and FAILED_PRECONDITION if its
  // checkpoint has no objects. On error *bundle is unchanged.
  static absl::Status Load(const std::string& export_dir, SavedModelV2Bundle* bundle);

  MetaGraphDef& meta_graph_def() { return meta_graph_def_; }
  const SavedObjectGraph& saved_object_graph() { return meta_graph_def_.object_graph_def(); }
  TrackableObjectGraph& trackable_object_graph() { return trackable_object_graph_; }
  // Null if the model has no variables.
  BundleReader* variable_reader() { return variable_reader_.get(); }
  // Null without debug information.
  GraphDebugInfo* debug_info() { return debug_info_.get(); }

  // Calls `callback` once for each object that has tensors in the checkpoint, except the first
  // object. Returns FAILED_PRECONDITION if the two graphs of objects do not match, and the first
  // error of the callback.
  absl::Status VisitObjectsToRestore(RestoreObjectsCallback callback);

 private:
  MetaGraphDef meta_graph_def_;
  TrackableObjectGraph trackable_object_graph_;
  std::unique_ptr<BundleReader> variable_reader_;
  std::unique_ptr<GraphDebugInfo> debug_info_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_BUNDLE_V2_H_
