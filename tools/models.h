// MODEL arguments of commands: a GraphDef file, or the folder of a SavedModel.
#ifndef GRADFLOW_TOOLS_MODELS_H_
#define GRADFLOW_TOOLS_MODELS_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/proto/saved_model.pb.h"
#include "gradflow/saved_model/signature.h"

namespace gradflow::tools {

// Returns the tags that a flag --tag names, separated by commas. Without a flag, returns the tags
// of the only graph of the model, or "serve". Errors list the tags of all graphs.
absl::StatusOr<std::unordered_set<std::string>> ChooseTags(const SavedModel& model,
                                                           const std::string& tag);

// Reads the graph of a SavedModel that --tag selects.
absl::StatusOr<MetaGraphDef> ReadMetaGraph(const std::string& folder, const std::string& tag,
                                           const GraphLimits& limits);

// Reads a graph: a file, or the graph of a SavedModel that --tag selects. --tag is an error for
// files.
absl::StatusOr<GraphDef> ReadModelGraph(const std::string& model, const std::string& tag,
                                        const GraphLimits& limits);

// Returns the name of the signature that --signature selects. Without a flag, returns
// "serving_default", or the only signature, or "" if neither exists.
absl::StatusOr<std::string> ChooseSignature(const MetaGraphDef& graph,
                                            const std::string& signature);

// The graph of a signature without variables and calls. It has an Identity for each output, with
// the output's name if no other node has it.
struct FrozenModel {
  GraphDef graph;
  std::vector<SignatureTensor> inputs;
  // The tensor names are names in `graph`.
  std::vector<SignatureTensor> outputs;
  int num_variables = 0;
};

// Loads a SavedModel and freezes a signature. `outputs` are names of the signature or of the graph,
// separated by commas; empty for all outputs of the signature. `keep_variables` is the option of
// FreezeGraph().
absl::StatusOr<FrozenModel> FreezeModel(const std::string& folder, const std::string& tag,
                                        const std::string& signature, const std::string& outputs,
                                        bool keep_variables, const GraphLimits& limits);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_MODELS_H_
