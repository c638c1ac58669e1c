#include "tools/models.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/saved_model/freeze.h"
#include "gradflow/saved_model/loader.h"
#include "gradflow/saved_model/reader.h"

namespace gradflow::tools {

absl::StatusOr<std::unordered_set<std::string>> ChooseTags(const SavedModel& model,
                                                           const std::string& tag) {
  std::unordered_set<std::string> tags;
  if (!tag.empty()) {
    tags = absl::StrSplit(tag, ',', absl::SkipEmpty());
  } else if (model.meta_graphs_size() == 1) {
    const auto& only = model.meta_graphs(0).meta_info_def().tags();
    tags.insert(only.begin(), only.end());
  } else {
    tags.insert(kSavedModelServeTag);
  }
  return tags;
}

absl::StatusOr<MetaGraphDef> ReadMetaGraph(const std::string& folder, const std::string& tag,
                                           const GraphLimits& limits) {
  GRADFLOW_ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(folder, limits));
  GRADFLOW_ASSIGN_OR_RETURN(const auto tags, ChooseTags(model, tag));
  MetaGraphDef graph;
  GRADFLOW_RETURN_IF_ERROR(TakeMetaGraph(folder, tags, &model, &graph));
  return graph;
}

absl::StatusOr<GraphDef> ReadModelGraph(const std::string& model, const std::string& tag,
                                        const GraphLimits& limits) {
  if (!MaybeSavedModelDirectory(model)) {
    if (!tag.empty()) return errors::InvalidArgument("--tag: '", model, "' is not a SavedModel");
    return ReadGraphDef(model, limits);
  }
  GRADFLOW_ASSIGN_OR_RETURN(MetaGraphDef graph, ReadMetaGraph(model, tag, limits));
  return std::move(*graph.mutable_graph_def());
}

absl::StatusOr<std::string> ChooseSignature(const MetaGraphDef& graph,
                                            const std::string& signature) {
  const auto& signatures = graph.signature_def();
  if (!signature.empty()) {
    if (signatures.count(signature) > 0) return signature;
    std::vector<std::string> names;
    for (const auto& [name, def] : signatures) {
      if (!absl::StartsWith(name, "__saved_model_")) names.push_back(errors::Printable(name));
    }
    std::sort(names.begin(), names.end());
    constexpr size_t kMaxNames = 20;
    if (names.size() > kMaxNames) names.resize(kMaxNames);
    return errors::NotFound("--signature: there is no signature '", errors::Printable(signature),
                            "'; the model has ",
                            names.empty() ? "none" : absl::StrJoin(names, ", "));
  }
  if (signatures.count("serving_default") > 0) return std::string("serving_default");
  std::string only;
  for (const auto& [name, def] : signatures) {
    if (absl::StartsWith(name, "__saved_model_")) continue;
    if (!only.empty()) return std::string();
    only = name;
  }
  return only;
}

// Returns true if a node may have the name.
static bool IsNodeName(absl::string_view name) {
  return !name.empty() && absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' || c == '/';
         });
}

absl::StatusOr<FrozenModel> FreezeModel(const std::string& folder, const std::string& tag,
                                        const std::string& signature, const std::string& outputs,
                                        bool keep_variables, const GraphLimits& limits) {
  GRADFLOW_ASSIGN_OR_RETURN(MetaGraphDef graph, ReadMetaGraph(folder, tag, limits));
  FrozenModel model;
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, ChooseSignature(graph, signature));
  std::vector<SignatureTensor> all;
  if (!name.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(const Signature found,
                              Signature::Make(name, graph.signature_def().at(name), nullptr));
    model.inputs.assign(found.inputs().begin(), found.inputs().end());
    all.assign(found.outputs().begin(), found.outputs().end());
  }
  if (outputs.empty()) model.outputs = all;
  for (const absl::string_view output : absl::StrSplit(outputs, ',', absl::SkipEmpty())) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const auto& known) { return known.name == output; });
    model.outputs.push_back(found != all.end()
                                ? *found
                                : SignatureTensor{std::string(output), std::string(output),
                                                  DT_INVALID, PartialTensorShape()});
  }
  if (model.outputs.empty()) {
    return errors::InvalidArgument(
        graph.signature_def().empty()
            ? "the model has no signature; name its outputs"
            : "the model has several signatures; --signature selects one");
  }
  SavedModelBundleLite bundle;
  if (!keep_variables) {
    SessionOptions options;
    options.graph_limits = limits;
    options.file_access = FileAccess::None();
    const auto& tags = graph.meta_info_def().tags();
    GRADFLOW_RETURN_IF_ERROR(
        LoadSavedModel(options, RunOptions(), folder,
                       std::unordered_set<std::string>(tags.begin(), tags.end()), &bundle));
  }
  std::vector<std::string> tensors;
  for (const SignatureTensor& output : model.outputs) tensors.push_back(output.tensor_name);
  FreezeGraphOptions options;
  options.keep_variables = keep_variables;
  options.inputs = model.inputs;
  options.limits = limits;
  GRADFLOW_ASSIGN_OR_RETURN(FrozenGraph frozen,
                            FreezeGraph(graph.graph_def(), tensors, bundle.GetSession(), options));
  model.num_variables = frozen.num_variables;
  model.graph = std::move(frozen.graph);
  std::unordered_set<std::string> names;
  for (const NodeDef& node : model.graph.node()) names.insert(node.name());
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    SignatureTensor& output = model.outputs[i];
    output.tensor_name = frozen.outputs[i];
    if (output.dtype == DT_INVALID || output.dtype == DT_RESOURCE ||
        !names.insert(output.name).second || !IsNodeName(output.name)) {
      continue;
    }
    NodeDef* const identity = model.graph.add_node();
    identity->set_name(output.name);
    identity->set_op("Identity");
    identity->add_input(output.tensor_name);
    (*identity->mutable_attr())["T"].set_type(output.dtype);
    output.tensor_name = output.name;
  }
  return model;
}

}  // namespace gradflow::tools
