// Reads the files of a SavedModel without making a session.
#ifndef GRADFLOW_SAVED_MODEL_READER_H_
#define GRADFLOW_SAVED_MODEL_READER_H_

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/proto/fingerprint.pb.h"
#include "gradflow/proto/graph_debug_info.pb.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/proto/saved_model.pb.h"
#include "gradflow/proto/trackable_object_graph.pb.h"

#pragma GCC visibility push(default)
namespace gradflow {

// The tag of graphs for serving.
inline constexpr char kSavedModelServeTag[] = "serve";

// Reads the message. Returns NOT_FOUND if the folder has no SavedModel, PERMISSION_DENIED if the
// file is a link that leads out of the folder, and INVALID_ARGUMENT if it is malformed or exceeds a
// limit. Errors name the file.
absl::StatusOr<SavedModel> ReadSavedModel(const std::string& export_dir,
                                          const GraphLimits& limits = {});

// Parses the content of "saved_model.pb", or of "saved_model.pbtxt" if `is_text`. Returns the
// errors of ReadSavedModel() that concern the content.
absl::StatusOr<SavedModel> ParseSavedModel(absl::string_view bytes, bool is_text,
                                           const GraphLimits& limits = {});

// Reads the graph whose tags are exactly `tags`. Returns the errors of ReadSavedModel(), and
// NOT_FOUND, with the tags of up to 20 graphs, if there is no such graph.
absl::Status ReadMetaGraphDefFromSavedModel(const std::string& export_dir,
                                            const std::unordered_set<std::string>& tags,
                                            MetaGraphDef* meta_graph,
                                            const GraphLimits& limits = {});

// Reads "debug/saved_model_debug_info.pb", which has the Python source locations of the nodes.
// Returns null if the file does not exist.
absl::StatusOr<std::unique_ptr<GraphDebugInfo>> ReadSavedModelDebugInfo(
    const std::string& export_dir, const GraphLimits& limits = {});

// Reads "fingerprint.pb", the identity that TensorFlow gives an export. Returns null if the model
// has no such file. Nothing compares its checksums with the model.
absl::StatusOr<std::unique_ptr<FingerprintDef>> ReadSavedModelFingerprint(
    const std::string& export_dir, const GraphLimits& limits = {});

// Returns the index in model.meta_graphs() of the graph whose tags are exactly `tags`. Returns
// NOT_FOUND like ReadMetaGraphDefFromSavedModel(). `export_dir` is for messages.
absl::StatusOr<int> FindMetaGraph(const std::string& export_dir,
                                  const std::unordered_set<std::string>& tags,
                                  const SavedModel& model);

// Moves the graph whose tags are exactly `tags` out of *model. TensorFlow 1 lists assets in a
// collection; they are copied to meta_graph->asset_file_def unless it has assets. Returns NOT_FOUND
// like ReadMetaGraphDefFromSavedModel(), and INVALID_ARGUMENT if the collection is malformed.
// `export_dir` is for messages.
absl::Status TakeMetaGraph(const std::string& export_dir,
                           const std::unordered_set<std::string>& tags, SavedModel* model,
                           MetaGraphDef* meta_graph);

// A variable of a graph, and its tensor in the checkpoint.
struct ModelVariable {
  // The node that makes the handle or reference.
  std::string node;
  // The container and the name of the variable in the session.
  std::string container;
  std::string name;
  // The type and shape that the node declares.
  DataType dtype = DT_INVALID;
  PartialTensorShape shape;
  // The name of the tensor in the checkpoint, and the slice of it. Both are empty if no tensor was
  // found for the variable.
  std::string key;
  std::string slice;
};

// Returns the variables of the graph in the order of its nodes, followed by the variables of its
// functions. The saver does not name all variables: Keras names some only in the graph of objects
// that the checkpoint has. Their tensors are found only if `checkpoint` is given.
absl::StatusOr<std::vector<ModelVariable>> ModelVariables(const MetaGraphDef& meta_graph,
                                                          const Checkpoint* checkpoint = nullptr);

// Returns the ops, in alphabetical order, that the computation of `tensors` needs and that are not
// in `registry`. Includes ops of called functions. Nodes whose first output is in `feeds` are not
// computed. Names of tensors have the form "node" or "node:1".
std::vector<std::string> MissingOpsOf(const MetaGraphDef& meta_graph,
                                      const std::vector<std::string>& tensors,
                                      const std::vector<std::string>& feeds = {},
                                      const Registry& registry = GlobalRegistry());

// Returns the path of saved_model.pb or saved_model.pbtxt, or "" if the folder has neither.
std::string SavedModelFile(const std::string& export_dir);
// Returns true if the folder has a SavedModel. Does not check the model.
bool MaybeSavedModelDirectory(const std::string& export_dir);

// Opens the checkpoint with the variables. Returns std::nullopt if the model has no variables, and
// PERMISSION_DENIED if a file is a link that leads out of the folder.
absl::StatusOr<std::optional<Checkpoint>> OpenSavedModelCheckpoint(
    const std::string& export_dir, const std::shared_ptr<Allocator>& allocator = SystemAllocator());

// Returns the objects whose tensors the checkpoint has. The result is empty if the checkpoint has
// no list of objects.
absl::StatusOr<TrackableObjectGraph> ReadTrackableObjectGraph(const Checkpoint& checkpoint,
                                                              const GraphLimits& limits = {});

// Returns the prefix of the checkpoint, "DIR/variables/variables".
std::string SavedModelCheckpoint(const std::string& export_dir);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_SAVED_MODEL_READER_H_
