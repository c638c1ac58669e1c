#include "tools/loaded_graph.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "tools/checkpoints.h"
#include "tools/graph_limits.h"
#include "tools/light_graph.h"

namespace gradflow::tools {
namespace {

// Splits NAME=FILE. The file is "" if there is no '='.
std::pair<std::string, std::string> SplitFlag(const std::string& flag) {
  const size_t equals = flag.find('=');
  if (equals == std::string::npos) return {flag, ""};
  return {flag.substr(0, equals), flag.substr(equals + 1)};
}

// Assigns the variables that the checkpoint has. The nodes that do so are added to the session's
// graph under names that are free.
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

}  // namespace

absl::StatusOr<LoadedGraph> LoadGraph(const GraphFlags& flags, const LoadOptions& options) {
  LoadedGraph loaded;
  SessionOptions session_options;
  GRADFLOW_ASSIGN_OR_RETURN(session_options.graph_limits, MakeGraphLimits(flags.graph_limits));
  session_options.graph_limits.deadline = options.deadline;
  GRADFLOW_ASSIGN_OR_RETURN(GraphDef graph,
                            ReadGraphDef(flags.graph, session_options.graph_limits));
  session_options.config.set_intra_op_parallelism_threads(flags.threads);
  session_options.config.set_inter_op_parallelism_threads(flags.threads);
  session_options.tensor_memory_limit_bytes = flags.memory_limit;
  session_options.fold_batch_norms = flags.fast;
  session_options.raw_prints = flags.raw_prints;
  GRADFLOW_ASSIGN_OR_RETURN(session_options.file_access, MakeFileAccess(flags.files));
  if (!options.repeats && !flags.fast) {
    session_options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
        OptimizerOptions::L0);
  }
  GRADFLOW_ASSIGN_OR_RETURN(loaded.session, Session::Make(session_options));
  if (options.keep_graph) loaded.graph = LightCopy(&graph);
  std::vector<VariableNode> variables;
  // No name of a node begins with it.
  std::string free_name = "checkpoint";
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

  for (const std::string& flag : flags.feeds) {
    auto [name, file] = SplitFlag(flag);
    if (name.empty() || file.empty()) {
      return errors::InvalidArgument("--feed '", flag, "' must be NAME=FILE.npy");
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadNpy(file));
    loaded.feeds.emplace_back(std::move(name), std::move(value));
  }
  for (const std::string& flag : flags.fetches) {
    auto [name, file] = SplitFlag(flag);
    if (name.empty() || (file.empty() && name != flag)) {
      return errors::InvalidArgument("--fetch '", flag, "' must be NAME or NAME=FILE.npy");
    }
    loaded.fetches.push_back(std::move(name));
    loaded.files.push_back(std::move(file));
  }
  loaded.targets = flags.targets;
  if (flags.fetches.empty() && flags.targets.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(loaded.fetches, loaded.session->UnusedOutputs());
    loaded.files.resize(loaded.fetches.size());
  }
  if (!flags.checkpoint.empty()) {
    const absl::Status status =
        Restore(flags.checkpoint, variables, free_name, loaded.session.get());
    if (!status.ok()) return errors::Prefix("--checkpoint: ", status);
  }
  return loaded;
}

}  // namespace gradflow::tools
