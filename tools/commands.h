// The subcommands of `gradflow`. Each prints its result to `out`, or writes it to a file, and
// returns a status.
#ifndef GRADFLOW_TOOLS_COMMANDS_H_
#define GRADFLOW_TOOLS_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {

// Flags shared by `run` and `bench`: a graph, its feeds, fetches and targets, and limits.
struct GraphFlags {
  std::string graph;
  // The checkpoint that gives variables their values; empty for none.
  std::string checkpoint;
  // NAME=FILE.npy
  std::vector<std::string> feeds;
  // NAME or NAME=FILE.npy. Without fetches and targets, fetches every output that no node of the
  // graph uses.
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // Number of threads; 0 for all cores.
  int threads = 0;
  // Maximum bytes of tensors at a time; 0 for no limit.
  int64_t memory_limit = 0;
  // NAME=NUMBER, members of GraphLimits.
  std::vector<std::string> graph_limits;
  // SessionOptions::fold_batch_norms.
  bool fast = false;
  FileFlags files;
  // SessionOptions::raw_prints.
  bool raw_prints = false;
};

struct RunFlags {
  GraphFlags graph;
  // 0 for no limit.
  double timeout_seconds = 0;
  // Path of the trace to write; empty for none.
  std::string trace;
  // Path of the page to write; empty for none.
  std::string report;
  // The outputs whose values the page has: "outputs", "all" or a regular expression.
  std::string report_tensors = "outputs";
};

struct BenchFlags {
  GraphFlags graph;
  int repeat = 100;
  bool json = false;
  bool progress = false;
  // Path of the page of one more run; empty for none.
  std::string report;
};

struct InspectFlags {
  std::string graph;
  // Lists what the passes of a plan do, of one with `fast` if that is set.
  bool plan = false;
  bool fast = false;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct ConvertFlags {
  std::string from;
  std::string to;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct GradientsFlags {
  std::string graph;
  // The tensor that is differentiated.
  std::string of;
  // Names separated by commas, "variables" or "placeholders".
  std::string wrt = "placeholders";
  std::string output;
  // NAME=FILE.npy: feeds with which the gradients are compared with differences; empty to not
  // compare.
  std::vector<std::string> check;
  // GradientBuildOptions::automatic_checkpoints.
  bool recompute = false;
  // The limit on memory applies to the tensors of `check` as well.
  CommandLimits limits;
  // Rights of the runs of `check`.
  FileFlags files;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct CheckpointFlags {
  // A prefix, an index file or a folder.
  std::string checkpoint;
  // The tensor to take out, and the file for it; empty to list all, or to print it.
  std::string tensor;
  std::string output;
  // The checkpoint to compare with; empty for none.
  std::string diff;
  CommandLimits limits;
};

struct FreezeFlags {
  std::string graph;
  // See CheckpointFlags.
  std::string checkpoint;
  // Names separated by commas.
  std::string outputs;
  std::string output;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct OpsFlags {
  // "text" or "pbtxt".
  std::string format = "text";
  // The op to describe; empty for all.
  std::string name;
  // A graph whose ops to list; empty for the registered ops.
  std::string of;
};

struct ViewFlags {
  std::string graph;
  // Path of the page, .html, or of the text for Graphviz, .dot or .gv.
  std::string output;
  // The graph to compare with; empty for none.
  std::string diff;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct EditFlags {
  // Empty for a new graph.
  std::string graph;
  // Path of a page that edits without a server; empty to serve.
  std::string output;
  // 0 for any free port.
  int port = 0;
  // See GraphFlags. They limit runs of the editor.
  int threads = 0;
  int64_t memory_limit = int64_t{4} << 30;
  // Limit on the time of a run; 0 for none.
  double timeout_seconds = 60;
  // Rights of runs.
  FileFlags files;
  std::vector<std::string> graph_limits;
};

absl::Status RunCommand(const RunFlags& flags, std::ostream& out);
absl::Status BenchCommand(const BenchFlags& flags, std::ostream& out);
absl::Status InspectCommand(const InspectFlags& flags, std::ostream& out);
absl::Status CheckpointCommand(const CheckpointFlags& flags, std::ostream& out);
absl::Status FreezeCommand(const FreezeFlags& flags, std::ostream& out);
absl::Status GradientsCommand(const GradientsFlags& flags, std::ostream& out);
absl::Status OpsCommand(const OpsFlags& flags, std::ostream& out);
absl::Status ConvertCommand(const ConvertFlags& flags);
absl::Status ViewCommand(const ViewFlags& flags);
absl::Status EditCommand(const EditFlags& flags, std::ostream& out);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_COMMANDS_H_
