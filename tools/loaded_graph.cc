#include "tools/loaded_graph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {
namespace {

// Splits NAME=FILE. The file is "" if there is no '='.
std::pair<std::string, std::string> SplitFlag(const std::string& flag) {
  const size_t equals = flag.find('=');
  if (equals == std::string::npos) return {flag, ""};
  return {flag.substr(0, equals), flag.substr(equals + 1)};
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
  if (!options.repeats && !flags.fast) {
    session_options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
        OptimizerOptions::L0);
  }
  GRADFLOW_ASSIGN_OR_RETURN(loaded.session, Session::Make(session_options));
  if (options.keep_graph) loaded.graph = graph;
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
  return loaded;
}

}  // namespace gradflow::tools
