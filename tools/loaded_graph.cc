#include "tools/loaded_graph.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "gradflow/saved_model/loader.h"
#include "gradflow/saved_model/signature.h"
#include "tools/checkpoints.h"
#include "tools/graph_limits.h"
#include "tools/light_graph.h"
#include "tools/models.h"

namespace gradflow::tools {
namespace {

// Splits NAME=FILE. The file is "" if there is no '='.
std::pair<std::string, std::string> SplitFlag(const std::string& flag) {
  const size_t equals = flag.find('=');
  if (equals == std::string::npos) return {flag, ""};
  return {flag.substr(0, equals), flag.substr(equals + 1)};
}

// Assigns the variables of the checkpoint. Adds nodes for this to the session's graph, under unused
// names.
absl::Status Restore(const std::string& argument, const std::vector<VariableNode>& variables,
                     const std::string& free_name, Session* session) {
  GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(argument));
  GraphDef graph;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> targets;
  for (const VariableNode& variable : variables) {
    if (!checkpoint.Find(variable.info.name).ok()) continue;
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadVariable(checkpoint, variable));
    const std::string feed = absl::StrCat(free_name, "/value_", targets.size());
    NodeDef* const placeholder = graph.add_node();
    placeholder->set_name(feed);
    placeholder->set_op("Placeholder");
    (*placeholder->mutable_attr())["dtype"].set_type(variable.info.dtype);
    NodeDef* const assign = graph.add_node();
    targets.push_back(absl::StrCat(free_name, "/assign_", targets.size()));
    assign->set_name(targets.back());
    assign->set_op(variable.info.is_resource ? "AssignVariableOp" : "Assign");
    assign->add_input(variable.node);
    assign->add_input(feed);
    (*assign->mutable_attr())[variable.info.is_resource ? "dtype" : "T"].set_type(
        variable.info.dtype);
    feeds.emplace_back(feed, std::move(value));
  }
  if (targets.empty()) {
    return errors::NotFound("the checkpoint has none of the ", variables.size(),
                            " variables of the graph");
  }
  GRADFLOW_RETURN_IF_ERROR(session->Extend(std::move(graph)));
  return session->Run(feeds, {}, targets, nullptr);
}

// Loads the graph of a SavedModel into loaded->session. Returns the signature whose names the flags
// use, or nothing.
absl::StatusOr<std::optional<Signature>> LoadModel(const GraphFlags& flags,
                                                   const SessionOptions& session_options,
                                                   bool keep_graph, LoadedGraph* loaded) {
  if (!flags.checkpoint.empty()) {
    return errors::InvalidArgument("--checkpoint: a SavedModel has its own variables");
  }
  // Reads the file twice, so that loading need not keep the graph.
  std::unordered_set<std::string> tags;
  std::string name;
  {
    GRADFLOW_ASSIGN_OR_RETURN(MetaGraphDef graph,
                              ReadMetaGraph(flags.graph, flags.tag, session_options.graph_limits));
    tags.insert(graph.meta_info_def().tags().begin(), graph.meta_info_def().tags().end());
    GRADFLOW_ASSIGN_OR_RETURN(name, ChooseSignature(graph, flags.signature));
    if (keep_graph) loaded->graph = LightCopy(graph.mutable_graph_def());
  }
  SavedModelBundleLite bundle;
  SessionOptions options = session_options;
  options.config.set_allow_soft_placement(true);
  GRADFLOW_RETURN_IF_ERROR(LoadSavedModel(options, RunOptions(), flags.graph, tags, &bundle));
  std::optional<Signature> signature;
  if (!name.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(signature, bundle.signature(name));
  }
  loaded->session = bundle.TakeSession();
  return signature;
}

// Returns the name in the graph of a name of the signature, or the unchanged name.
std::string TensorName(absl::Span<const SignatureTensor> tensors, const std::string& name) {
  for (const SignatureTensor& tensor : tensors) {
    if (tensor.name == name) return tensor.tensor_name;
  }
  return name;
}

// Feeds the default values of inputs. Returns an error if an input has no value and the run fetches
// outputs of the signature only.
absl::Status AddDefaults(const Signature& signature, bool only_outputs, LoadedGraph* loaded) {
  for (const SignatureTensor& input : signature.inputs()) {
    const bool is_fed =
        std::any_of(loaded->feeds.begin(), loaded->feeds.end(),
                    [&](const auto& feed) { return feed.first == input.tensor_name; });
    if (is_fed) continue;
    const auto value = signature.defaults().find(input.name);
    if (value != signature.defaults().end()) {
      loaded->feeds.emplace_back(input.tensor_name, value->second);
    } else if (only_outputs) {
      return errors::InvalidArgument("--feed: signature '", errors::Printable(signature.name()),
                                     "' needs input '", errors::Printable(input.name), "', ",
                                     DataTypeString(input.dtype), " ", input.shape.DebugString());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoadedGraph> LoadGraph(const GraphFlags& flags, const LoadOptions& options) {
  LoadedGraph loaded;
  SessionOptions session_options;
  GRADFLOW_ASSIGN_OR_RETURN(session_options.graph_limits, MakeGraphLimits(flags.graph_limits));
  session_options.graph_limits.deadline = options.deadline;
  session_options.config.set_intra_op_parallelism_threads(flags.threads);
  session_options.config.set_inter_op_parallelism_threads(flags.threads);
  session_options.tensor_memory_limit_bytes = flags.memory_limit;
  session_options.fold_batch_norms = flags.fast;
  session_options.integer_inference = !flags.int8.empty();
  session_options.tflite_rounding = flags.int8 == kTfLiteRounding;
  session_options.raw_prints = flags.raw_prints;
  GRADFLOW_ASSIGN_OR_RETURN(session_options.file_access, MakeFileAccess(flags.files));
  if (!options.repeats && !flags.fast && flags.int8.empty()) {
    session_options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
        OptimizerOptions::L0);
  }
  std::vector<VariableNode> variables;
  // A prefix that no node name has.
  std::string free_name = "checkpoint";
  std::optional<Signature> signature;
  if (MaybeSavedModelDirectory(flags.graph)) {
    GRADFLOW_ASSIGN_OR_RETURN(signature,
                              LoadModel(flags, session_options, options.keep_graph, &loaded));
  } else {
    for (const auto& [flag, value] :
         {std::pair("--tag", &flags.tag), std::pair("--signature", &flags.signature)}) {
      if (value->empty()) continue;
      return errors::InvalidArgument(flag, ": '", flags.graph, "' is not a SavedModel");
    }
    GRADFLOW_ASSIGN_OR_RETURN(GraphDef graph,
                              ReadGraphDef(flags.graph, session_options.graph_limits));
    GRADFLOW_ASSIGN_OR_RETURN(loaded.session, Session::Make(session_options));
    if (options.keep_graph) loaded.graph = LightCopy(&graph);
    if (!flags.checkpoint.empty()) {
      for (const NodeDef& node : graph.node()) {
        VariableNode variable;
        if (IsVariable(node, &variable)) variables.push_back(std::move(variable));
        while (absl::StartsWith(node.name(), free_name)) free_name += "_";
      }
    }
    if (absl::Status status = loaded.session->Create(std::move(graph)); !status.ok()) {
      return errors::Prefix(absl::StrCat("'", flags.graph, "': "), status);
    }
  }

  for (const std::string& flag : flags.feeds) {
    auto [name, file] = SplitFlag(flag);
    if (name.empty() || file.empty()) {
      return errors::InvalidArgument("--feed '", flag, "' must be NAME=FILE.npy");
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadNpy(file));
    if (signature.has_value()) name = TensorName(signature->inputs(), name);
    loaded.feeds.emplace_back(std::move(name), std::move(value));
  }
  bool only_outputs = flags.targets.empty();
  for (const std::string& flag : flags.fetches) {
    auto [name, file] = SplitFlag(flag);
    if (name.empty() || (file.empty() && name != flag)) {
      return errors::InvalidArgument("--fetch '", flag, "' must be NAME or NAME=FILE.npy");
    }
    loaded.labels.push_back(name);
    if (signature.has_value()) {
      std::string tensor = TensorName(signature->outputs(), name);
      only_outputs &= tensor != name;
      name = std::move(tensor);
    }
    loaded.fetches.push_back(std::move(name));
    loaded.files.push_back(std::move(file));
  }
  loaded.targets = flags.targets;
  if (flags.fetches.empty() && flags.targets.empty()) {
    if (signature.has_value()) {
      for (const SignatureTensor& output : signature->outputs()) {
        loaded.labels.push_back(output.name);
        loaded.fetches.push_back(output.tensor_name);
      }
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(loaded.fetches, loaded.session->UnusedOutputs());
      loaded.labels = loaded.fetches;
    }
    loaded.files.resize(loaded.fetches.size());
  }
  if (signature.has_value()) {
    GRADFLOW_RETURN_IF_ERROR(AddDefaults(*signature, only_outputs, &loaded));
  }
  if (!flags.checkpoint.empty()) {
    const absl::Status status =
        Restore(flags.checkpoint, variables, free_name, loaded.session.get());
    if (!status.ok()) return errors::Prefix("--checkpoint: ", status);
  }
  return loaded;
}

}  // namespace gradflow::tools
