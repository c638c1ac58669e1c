// gradflow quantize: calibrates a float graph, and inserts fake-quantization nodes. It can correct
// biases and write a report.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/training/quantize_graph.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"
#include "tools/quantize_report.h"

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

// Runs a graph with each --data of the flags. Calls done(feeds, values of the fetches).
template <typename Done>
absl::Status RunAll(Session& session, const QuantizeFlags& flags,
                    const std::vector<std::string>& fetches, const Done& done) {
  for (const std::string& data : flags.data) {
    GRADFLOW_ASSIGN_OR_RETURN(const Feeds feeds, ReadFeeds(data));
    std::vector<Tensor> values;
    const absl::Status status = session.Run(feeds, fetches, {}, &values);
    if (!status.ok()) return errors::Prefix(absl::StrCat("--data '", data, "': "), status);
    GRADFLOW_RETURN_IF_ERROR(done(feeds, values));
  }
  return absl::OkStatus();
}

// Sums of the errors of a product, over all runs.
struct ErrorSums {
  std::vector<double> mean;
  double squared_error = 0;
  double squared_result = 0;
};

// Adds the errors of a run: a mean, a squared error and a squared result for each product.
absl::Status AddErrors(const std::vector<std::string>& products, const std::vector<Tensor>& values,
                       std::vector<ErrorSums>* sums) {
  for (size_t i = 0; i < sums->size(); ++i) {
    ErrorSums& sum = (*sums)[i];
    const Tensor& mean = values[3 * i];
    if (sum.mean.empty()) sum.mean.resize(static_cast<size_t>(mean.NumElements()));
    if (mean.NumElements() != static_cast<int64_t>(sum.mean.size())) {
      return errors::Internal("the number of channels of '", products[i], "' changes");
    }
    for (int64_t c = 0; c < mean.NumElements(); ++c) {
      sum.mean[static_cast<size_t>(c)] += mean.flat<float>()(c);
    }
    sum.squared_error += values[3 * i + 1].scalar<float>()();
    sum.squared_result += values[3 * i + 2].scalar<float>()();
  }
  return absl::OkStatus();
}

// Returns the mean errors of a product. A product without finite errors is not corrected.
Tensor CorrectionOf(const ErrorSums& sums, size_t runs) {
  Tensor correction(DT_FLOAT, {static_cast<int64_t>(sums.mean.size())});
  for (size_t c = 0; c < sums.mean.size(); ++c) {
    const auto mean = static_cast<float>(sums.mean[c] / static_cast<double>(runs));
    correction.flat<float>()(static_cast<int64_t>(c)) = std::isfinite(mean) ? mean : 0;
  }
  return correction;
}

double SumOfSquares(const Tensor& values) {
  double sum = 0;
  for (const float x : values.flat<float>()) sum += static_cast<double>(x) * x;
  return sum;
}

double SumOfSquaredDifferences(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.NumElements(); ++i) {
    const double difference = static_cast<double>(a.flat<float>()(i)) - b.flat<float>()(i);
    sum += difference * difference;
  }
  return sum;
}

// A run of `gradflow quantize`.
class Quantization {
 public:
  static absl::StatusOr<Quantization> Make(const QuantizeFlags& flags) {
    GRADFLOW_ASSIGN_OR_RETURN(const GraphLimits limits,
                              MakeGraphLimits(flags.graph_limits, flags.limits));
    // The graph would overwrite the report.
    if (flags.report == flags.output) {
      return errors::InvalidArgument("--report and --output are the same file: '", flags.output,
                                     "'");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const GraphDef graph, ReadModelGraph(flags.graph, flags.tag, limits));
    GRADFLOW_ASSIGN_OR_RETURN(GraphQuantizer quantizer, GraphQuantizer::Make(graph));
    return Quantization(flags, limits, std::move(quantizer));
  }

  absl::Status Run(std::ostream& out) {
    GRADFLOW_RETURN_IF_ERROR(FindRanges());
    if (flags_.bias_correction || !flags_.report.empty()) GRADFLOW_RETURN_IF_ERROR(FindErrors());
    std::vector<Tensor> corrections;
    if (flags_.bias_correction) {
      for (const ErrorSums& sums : errors_) {
        corrections.push_back(CorrectionOf(sums, flags_.data.size()));
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(const GraphDef quantized, quantizer_.Quantize(ranges_, corrections));
    // Either both files are written, or neither.
    std::optional<internal::StagedFile> report;
    if (!flags_.report.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(const std::string page, MakeReport(quantized));
      absl::StatusOr<internal::StagedFile> staged =
          internal::StagedFile::Write(flags_.report, {page});
      if (!staged.ok()) {
        return errors::Prefix(absl::StrCat("'", flags_.report, "': "), staged.status());
      }
      report = *std::move(staged);
    }
    GRADFLOW_RETURN_IF_ERROR(WriteGraphDef(flags_.output, quantized));
    if (report.has_value()) {
      GRADFLOW_RETURN_IF_ERROR(
          errors::Prefix(absl::StrCat("'", flags_.report, "': "), report->Commit()));
    }
    out << "quantized " << quantizer_.num_products() << " convolutions and matrix products, and "
        << quantizer_.tensors().size() << " tensors between them\n";
    return absl::OkStatus();
  }

 private:
  Quantization(const QuantizeFlags& flags, const GraphLimits& limits, GraphQuantizer quantizer)
      : flags_(flags), limits_(limits), quantizer_(std::move(quantizer)) {}

  absl::StatusOr<std::unique_ptr<Session>> MakeSession(const GraphDef& graph) const {
    SessionOptions options;
    options.graph_limits = limits_;
    options.tensor_memory_limit_bytes = flags_.limits.memory_limit;
    options.file_access = FileAccess::None();
    GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Make(options));
    GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
    return session;
  }

  absl::Status FindRanges() {
    RangeMethod method = RangeMethod::kMinMax;
    if (flags_.method == "moving-average") method = RangeMethod::kMovingAverage;
    if (flags_.method == "percentile") method = RangeMethod::kPercentile;
    if (flags_.method == "least-squares") method = RangeMethod::kLeastSquares;
    ranges_.assign(quantizer_.tensors().size(), RangeCalibrator(method, flags_.percentile));
    if (!flags_.report.empty()) bounds_.resize(ranges_.size());
    GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                              MakeSession(quantizer_.graph()));
    return RunAll(*session, flags_, quantizer_.tensors(),
                  [&](const Feeds&, const std::vector<Tensor>& values) {
                    for (size_t i = 0; i < ranges_.size(); ++i) ranges_[i].Add(values[i]);
                    for (size_t i = 0; i < bounds_.size(); ++i) bounds_[i].Add(values[i]);
                    return absl::OkStatus();
                  });
  }

  absl::Status FindErrors() {
    GRADFLOW_ASSIGN_OR_RETURN(const GraphQuantizer::ErrorGraph measured,
                              quantizer_.MeasureErrors(ranges_));
    std::vector<std::string> fetches;
    for (const GraphQuantizer::ErrorTensors& tensors : measured.products) {
      fetches.insert(fetches.end(), {tensors.mean, tensors.squared_error, tensors.squared_result});
    }
    errors_.resize(measured.products.size());
    GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, MakeSession(measured.graph));
    return RunAll(*session, flags_, fetches, [&](const Feeds&, const std::vector<Tensor>& values) {
      return AddErrors(quantizer_.products(), values, &errors_);
    });
  }

  // Runs both graphs with all data, and returns the page.
  absl::StatusOr<std::string> MakeReport(const GraphDef& quantized) {
    const std::vector<std::string> names = quantizer_.products();
    std::vector<ReportedProduct> products(names.size());
    std::map<std::string, std::string> ops;
    for (const NodeDef& node : quantizer_.graph().node()) ops.emplace(node.name(), node.op());
    for (size_t i = 0; i < names.size(); ++i) {
      products[i].name = names[i];
      products[i].op = ops[names[i]];
      products[i].squared_results = errors_[i].squared_result;
      products[i].squared_errors = errors_[i].squared_error;
    }
    // Tensors that share a range have the same range in the quantized graph.
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<RangeCalibrator> joined,
                              quantizer_.JoinedRanges(ranges_));
    std::vector<ReportedRange> ranges;
    for (size_t i = 0; i < joined.size(); ++i) {
      ranges.push_back({quantizer_.tensors()[i], joined[i].min(), joined[i].max(),
                        TensorHistogram(bounds_[i].min(), bounds_[i].max())});
    }
    std::vector<std::string> fetches = names;
    fetches.insert(fetches.end(), quantizer_.tensors().begin(), quantizer_.tensors().end());
    GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> exact,
                              MakeSession(quantizer_.graph()));
    GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> rounded, MakeSession(quantized));
    const auto add = [&](const Feeds& feeds, const std::vector<Tensor>& values) -> absl::Status {
      for (size_t i = 0; i < ranges.size(); ++i) {
        ranges[i].histogram.Add(values[names.size() + i], ranges[i].min, ranges[i].max);
      }
      std::vector<Tensor> results;
      GRADFLOW_RETURN_IF_ERROR(rounded->Run(feeds, names, {}, &results));
      for (size_t i = 0; i < names.size(); ++i) {
        if (results[i].shape() != values[i].shape()) {
          return errors::Internal("the shape of '", names[i], "' changes");
        }
        products[i].total_squared_results += SumOfSquares(values[i]);
        products[i].total_squared_errors += SumOfSquaredDifferences(values[i], results[i]);
      }
      return absl::OkStatus();
    };
    GRADFLOW_RETURN_IF_ERROR(RunAll(*exact, flags_, fetches, add));
    return QuantizeReport(flags_.graph, flags_.method, static_cast<int64_t>(flags_.data.size()),
                          products, ranges);
  }

  const QuantizeFlags& flags_;
  GraphLimits limits_;
  GraphQuantizer quantizer_;
  std::vector<RangeCalibrator> ranges_;
  // The bounds of the histograms of the report. Empty without a report.
  std::vector<RangeCalibrator> bounds_;
  std::vector<ErrorSums> errors_;
};

}  // namespace

absl::Status QuantizeCommand(const QuantizeFlags& flags, std::ostream& out) {
  GRADFLOW_ASSIGN_OR_RETURN(Quantization quantization, Quantization::Make(flags));
  return quantization.Run(out);
}

}  // namespace gradflow::tools
