// The subcommands of `gradflow`. Each prints its result to `out`, or writes it to a file, and
// returns a status.
#ifndef GRADFLOW_TOOLS_COMMANDS_H_
#define GRADFLOW_TOOLS_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/graph_limits.h"

namespace gradflow::tools {

// The value of --int8 that sets SessionOptions::tflite_rounding.
inline constexpr absl::string_view kTfLiteRounding = "tflite";

// Flags shared by `run` and `bench`: a graph, its feeds, fetches and targets, and limits.
struct GraphFlags {
  // A GraphDef file or the folder of a SavedModel.
  std::string graph;
  // The tags of the graph of a SavedModel, separated by commas; empty for the usual graph.
  std::string tag;
  // The signature of a SavedModel whose names feeds and fetches use; empty for the usual signature.
  std::string signature;
  // The checkpoint with the values of variables; empty for no checkpoint.
  std::string checkpoint;
  // NAME=FILE.npy: a tensor and the file with its value.
  std::vector<std::string> feeds;
  // NAME or NAME=FILE.npy; without a file, the tensor is printed. Without fetches and targets,
  // fetches every output that no node of the graph uses.
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
  // SessionOptions::integer_inference: empty, "nearest", or kTfLiteRounding.
  std::string int8;
  FileFlags files;
  // SessionOptions::raw_prints.
  bool raw_prints = false;
};

struct RunFlags {
  GraphFlags graph;
  // 0 for no limit.
  double timeout_seconds = 0;
  // Path of the trace to write; empty to write no trace.
  std::string trace;
  // Path of the page to write; empty to write no page.
  std::string report;
  // The outputs whose values the page shows: "outputs", "all" or a regular expression.
  std::string report_tensors = "outputs";
};

struct BenchFlags {
  GraphFlags graph;
  int repeat = 100;
  bool json = false;
  bool progress = false;
  // Path of the page of an additional run; empty to write no page.
  std::string report;
};

struct InspectFlags {
  // These members are described at GraphFlags.
  std::string graph;
  std::string tag;
  // Lists the changes that the passes of a plan make.
  bool plan = false;
  // Includes the passes of `run --fast` and `run --int8`.
  bool fast = false;
  std::string int8;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct ConvertFlags {
  std::string from;
  // See GraphFlags.
  std::string tag;
  std::string to;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct GradientsFlags {
  // These members are described at GraphFlags.
  std::string graph;
  std::string tag;
  // The tensor that is differentiated.
  std::string of;
  // Names separated by commas, "variables" or "placeholders".
  std::string wrt = "placeholders";
  std::string output;
  // NAME=FILE.npy: feeds for comparing the gradients with finite differences. If empty, nothing is
  // compared.
  std::vector<std::string> check;
  // GradientBuildOptions::automatic_checkpoints.
  bool recompute = false;
  // The memory limit also applies to the tensors of `check`.
  CommandLimits limits;
  // File access of the runs of `check`.
  FileFlags files;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct QuantizeFlags {
  // These members are described at GraphFlags.
  std::string graph;
  std::string tag;
  // The feeds of each calibration run: NAME=FILE.npy, separated by commas.
  std::vector<std::string> data;
  // "min-max", "moving-average", "percentile" or "least-squares".
  std::string method = "min-max";
  // The percentage of numbers within the ranges of the method "percentile".
  double percentile = 99.99;
  // Adds the mean errors of products to their results.
  bool bias_correction = false;
  std::string output;
  // The page to write; empty for no page.
  std::string report;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct CheckpointFlags {
  // A prefix, an index file or a folder.
  std::string checkpoint;
  // The tensor to print or write; empty to list all tensors.
  std::string tensor;
  // The file for the tensor; empty to print the tensor.
  std::string output;
  // The checkpoint to compare with; empty to compare nothing.
  std::string diff;
  CommandLimits limits;
};

struct FreezeFlags {
  // These members are described at GraphFlags.
  std::string graph;
  std::string tag;
  std::string signature;
  // See CheckpointFlags. Empty for a SavedModel.
  std::string checkpoint;
  // Names separated by commas. Empty for all outputs of the signature of a SavedModel.
  std::string outputs;
  std::string output;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct OpsFlags {
  // "text" or "pbtxt".
  std::string format = "text";
  // The op to describe; empty to list all ops.
  std::string name;
  // Lists the ops of this graph; empty for the registered ops.
  std::string of;
};

struct ViewFlags {
  // These members are described at GraphFlags.
  std::string graph;
  std::string tag;
  // Path of the page (.html), or of the text for Graphviz (.dot or .gv).
  std::string output;
  // The graph to compare with; empty to compare nothing.
  std::string diff;
  CommandLimits limits;
  // See GraphFlags.
  std::vector<std::string> graph_limits;
};

struct EditFlags {
  // A file or the folder of a SavedModel; empty for a new graph.
  std::string graph;
  // The tags of the graph of a SavedModel, separated by commas.
  std::string tag;
  // Path of a page that edits without a server; empty to serve.
  std::string output;
  // 0 for any free port.
  int port = 0;
  // See GraphFlags. These members limit runs of the editor.
  int threads = 0;
  int64_t memory_limit = int64_t{4} << 30;
  // Limit on the time of a run; 0 for no limit.
  double timeout_seconds = 60;
  // File access of runs.
  FileFlags files;
  std::vector<std::string> graph_limits;
};

absl::Status RunCommand(const RunFlags& flags, std::ostream& out);
absl::Status BenchCommand(const BenchFlags& flags, std::ostream& out);
absl::Status InspectCommand(const InspectFlags& flags, std::ostream& out);
absl::Status CheckpointCommand(const CheckpointFlags& flags, std::ostream& out);
absl::Status QuantizeCommand(const QuantizeFlags& flags, std::ostream& out);
absl::Status FreezeCommand(const FreezeFlags& flags, std::ostream& out);
absl::Status GradientsCommand(const GradientsFlags& flags, std::ostream& out);
absl::Status OpsCommand(const OpsFlags& flags, std::ostream& out);
absl::Status ConvertCommand(const ConvertFlags& flags);
absl::Status ViewCommand(const ViewFlags& flags);
absl::Status EditCommand(const EditFlags& flags, std::ostream& out);

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_COMMANDS_H_
