#include "tools/view/report_nodes.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "tools/json.h"
#include "tools/view/tensor_stats.h"

namespace gradflow::tools {
namespace {

constexpr char kOp[] = "_TensorReport";
constexpr char kPrefix[] = "gradflow_report_";
// The number of elements of a tensor that a report lists.
constexpr int64_t kMaxListedValues = 24;

// Rounds to six significant digits to keep the data small. The page shows six digits.
double Rounded(double value) {
  double rounded = 0;
  return absl::SimpleAtod(absl::StrCat(value), &rounded) ? rounded : value;
}

std::string TensorJson(const Tensor& tensor, const ForEachIndex& for_each) {
  const TensorStats stats = ComputeTensorStats(tensor, for_each);
  constexpr int kMaxDims = 16;
  const auto dims = tensor.shape().dim_sizes();
  const size_t num_dims = std::min<size_t>(dims.size(), kMaxDims);
  Json json = {{"t", DataTypeString(tensor.dtype())},
               {"s", std::vector<int64_t>(dims.begin(), dims.begin() + num_dims)},
               {"count", tensor.NumElements()},
               {"nan", stats.num_nan},
               {"pinf", stats.num_positive_infinity},
               {"ninf", stats.num_negative_infinity},
               {"min", Rounded(stats.min)},
               {"max", Rounded(stats.max)},
               {"mean", Rounded(stats.mean)},
               {"sd", Rounded(stats.stddev)},
               {"hist", stats.histogram},
               {"first", LimitedText(tensor.SummarizeValue(kMaxListedValues), 2000)}};
  const std::vector<double> curve = MakeTensorCurve(tensor, for_each);
  const TensorPicture picture = curve.empty() ? MakeTensorPicture(tensor, stats) : TensorPicture();
  if (!curve.empty()) {
    Json& values = json["c"] = Json::array();
    for (const double value : curve) values.push_back(Rounded(value));
  }
  if (!picture.levels.empty()) {
    Json& values = json["p"] = Json::array({picture.rows, picture.columns, picture.channels});
    for (const int level : picture.levels) values.push_back(level);
  }
  return JsonText(json);
}

class ReportKernel final : public OpKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    const ForEachIndex for_each = [&](int64_t count, const std::function<void(int64_t)>& fn) {
      ParallelFor(ctx.run(), count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) fn(i);
      });
    };
    Tensor report(DT_STRING, TensorShape());
    report.scalar<tstring>()() = TensorJson(ctx.input(0), for_each);
    ctx.set_output(0, report);
    return absl::OkStatus();
  }
};

// Registers the op. Its name is the name of an internal op.
void RegisterOnce() {
  static const bool is_done = [] {
    Registry& registry = GlobalRegistry();
    registry.Op(kOp)
        .Input("tensor: T")
        .Output("report: string")
        .Attr("T: type")
        .Stateful()
        .Shape(ScalarShape)
        .Doc("Describes a tensor for the report of a run.");
    registry.Kernel(kOp, MakeKernel<ReportKernel>);
    return true;
  }();
  (void)is_done;
}

}  // namespace

TensorReport ReportTensor(const std::string& name, const Tensor& tensor) {
  return {name, TensorJson(tensor, OnAllCores())};
}

absl::StatusOr<ReportNodes> ReportNodes::Add(const AnalyzedGraph& graph,
                                             const std::vector<std::string>& outputs,
                                             Session* session) {
  RegisterOnce();
  absl::flat_hash_map<absl::string_view, const Node*> nodes;
  for (const Node* node : graph.nodes) {
    if (node != nullptr) nodes.emplace(node->name(), node);
  }
  ReportNodes result;
  GraphDef added;
  int64_t number = 0;
  for (const std::string& output : outputs) {
    const absl::StatusOr<TensorId> id = ParseTensorId(output);
    if (!id.ok() || id->IsControl()) continue;
    const auto found = nodes.find(id->node);
    if (found == nodes.end() || id->index >= found->second->num_outputs()) continue;
    std::string name;
    do {
      name = absl::StrCat(kPrefix, number++);
    } while (nodes.contains(name));
    NodeDef* const node = added.add_node();
    node->set_name(name);
    node->set_op(kOp);
    node->add_input(FormatTensorId(*id));
    (*node->mutable_attr())["T"].set_type(BaseType(found->second->output_type(id->index)));
    result.outputs_.push_back(output);
    result.fetches_.push_back(std::move(name));
  }
  if (added.node_size() > 0) GRADFLOW_RETURN_IF_ERROR(session->Extend(std::move(added)));
  return result;
}

std::vector<TensorReport> ReportNodes::Reports(const std::vector<Tensor>& fetched) const {
  std::vector<TensorReport> reports;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    reports.push_back({outputs_[i], std::string(fetched[i].scalar<tstring>()())});
  }
  return reports;
}

bool ReportNodes::IsReportNode(absl::string_view name) { return absl::StartsWith(name, kPrefix); }

}  // namespace gradflow::tools
