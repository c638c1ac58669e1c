// gradflow quantize: calibrates a float graph, and inserts fake-quantization nodes.
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/training/quantize_graph.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"

namespace gradflow::tools {
namespace {

using training::GraphQuantizer;
using training::RangeCalibrator;
using training::RangeMethod;

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// Reads the feeds of a run: "NAME=FILE.npy,NAME=FILE.npy".
absl::StatusOr<Feeds> ReadFeeds(const std::string& flag) {
  Feeds feeds;
  for (const absl::string_view part : absl::StrSplit(flag, ',')) {
    const std::vector<std::string> sides = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (sides.size() != 2 || sides[0].empty() || sides[1].empty()) {
      return errors::InvalidArgument("--data '", flag, "' must be NAME=FILE.npy[,...]");
    }
    GRADFLOW_ASSIGN_OR_RETURN(Tensor value, ReadNpy(sides[1]));
    feeds.emplace_back(sides[0], std::move(value));
  }
  return feeds;
}

}  // namespace

absl::Status QuantizeCommand(const QuantizeFlags& flags, std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits,
                            MakeGraphLimits(flags.graph_limits, flags.limits));
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadModelGraph(flags.graph, flags.tag, limits));
  GRADFLOW_ASSIGN_OR_RETURN(const GraphQuantizer quantizer, GraphQuantizer::Make(graph));
  SessionOptions options;
  options.graph_limits = limits;
  options.tensor_memory_limit_bytes = flags.limits.memory_limit;
  options.file_access = FileAccess::None();
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  RangeMethod method = RangeMethod::kMinMax;
  if (flags.method == "moving-average") method = RangeMethod::kMovingAverage;
  if (flags.method == "percentile") method = RangeMethod::kPercentile;
  if (flags.method == "least-squares") method = RangeMethod::kLeastSquares;
  std::vector<RangeCalibrator> ranges(quantizer.tensors().size(),
                                      RangeCalibrator(method, flags.percentile));
  for (const std::string& data : flags.data) {
    GRADFLOW_ASSIGN_OR_RETURN(const Feeds feeds, ReadFeeds(data));
    std::vector<Tensor> values;
    const absl::Status status = session->Run(feeds, quantizer.tensors(), {}, &values);
    if (!status.ok()) return errors::Prefix(absl::StrCat("--data '", data, "': "), status);
    for (size_t i = 0; i < values.size(); ++i) ranges[i].Add(values[i]);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef quantized, quantizer.Quantize(ranges));
  GRADFLOW_RETURN_IF_ERROR(WriteGraphDef(flags.output, quantized));
  out << "quantized " << quantizer.num_products() << " convolutions and matrix products, and "
      << quantizer.tensors().size() << " tensors between them\n";
  return absl::OkStatus();
}

}  // namespace gradflow::tools
