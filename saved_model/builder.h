// SavedModelBuilder: writes SavedModels, which TensorFlow, Keras (TFSMLayer) and gradflow load.
//
//   SavedModelBuilder builder("model");
//   GRADFLOW_RETURN_IF_ERROR(builder.AddGraph(
//       scope, session.resources(), {"serve"}, {{"serving_default", {{"x", x}}, {{"y", y}}}}));
//   GRADFLOW_RETURN_IF_ERROR(builder.Save());
//
// A loaded model whose variables have changed is written back with its functions and the objects of
// the Python program, so that Python programs use it as before:
//
//   builder.AddModel("old_model", bundle.meta_graph_def, bundle.session->resources());
//
// The folder appears whole or not at all: it is written under a temporary name next to its target
// and then renamed.
//
// Thread safety: none.
#ifndef GRADFLOW_SAVED_MODEL_BUILDER_H_
#define GRADFLOW_SAVED_MODEL_BUILDER_H_

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/proto/saved_model.pb.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Returns the bytes of "saved_model.pb". Returns INVALID_ARGUMENT if they would be 2 GiB or more.
absl::StatusOr<std::string> SerializeSavedModel(const SavedModel& model);

// A signature of a graph that is written: inputs and outputs with their names for users.
struct NewSignature {
  // The name of the signature, such as "serving_default".
  std::string name;
  // The inputs with their names.
  std::vector<std::pair<std::string, Output>> inputs;
  // The outputs with their names.
  std::vector<std::pair<std::string, Output>> outputs;
  // The purpose of the signature, for TensorFlow Serving.
  std::string method_name = "tensorflow/serving/predict";
};

// Options of SavedModelBuilder::AddGraph.
struct NewGraphOptions {
  // If not empty, the node that initializes the model after its variables are restored.
  Operation init_op;
  // The constants of strings that hold paths of files, with the files. The model gets copies of the
  // files, and loading feeds the constants with the paths of the copies.
  std::vector<std::pair<Output, std::string>> assets;
};

// Collects graphs, and writes them as one SavedModel.
class SavedModelBuilder {
 public:
  // Will write the folder `export_dir`.
  explicit SavedModelBuilder(std::string export_dir) : export_dir_(std::move(export_dir)) {}

  // Adds the graph of a scope. `resources` holds the values of its variables, which are the nodes
  // VarHandleOp, VariableV2 and Variable outside of functions. All graphs share their variables by
  // name; the first graph determines the values. Returns FAILED_PRECONDITION if a variable has no
  // value, and INVALID_ARGUMENT if the tags are in use, a signature is malformed, or two files of
  // assets have the same name.
  absl::Status AddGraph(const Scope& scope, const ResourceManager* resources,
                        const std::unordered_set<std::string>& tags,
                        const std::vector<NewSignature>& signatures,
                        const NewGraphOptions& options = {});

  // Adds the graph of the SavedModel in `folder`, with its assets and the current values of its
  // variables. `meta_graph` is the graph that was loaded from there.
  absl::Status AddModel(const std::string& folder, const MetaGraphDef& meta_graph,
                        const ResourceManager* resources);

  // Writes the folder. Returns ALREADY_EXISTS if it exists, unless `replace` is true and it has a
  // SavedModel.
  absl::Status Save(bool replace = false) const;

 private:
  absl::Status AddAsset(const std::string& file, std::string* name);
  absl::Status Write(const std::string& folder) const;

  const std::string export_dir_;
  SavedModel model_;
  // The tensors of the checkpoint, by name.
  std::map<std::string, Tensor> tensors_;
  // The names of assets, and the files that they are copies of.
  std::map<std::string, std::string> assets_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_SAVED_MODEL_BUILDER_H_
