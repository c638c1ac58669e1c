// CheckGradient, and the gradient ops that it knows.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/gradient_checker.h"

namespace gradflow {
namespace testing {
namespace {

std::map<std::string, GradientOp, std::less<>>& GradientOps() {
  static auto* const ops = [] {
    auto* table = new std::map<std::string, GradientOp, std::less<>>;
    (*table)["FakeQuantWithMinMaxArgs"] = {
        "FakeQuantWithMinMaxArgsGradient", {"d:outputs", "inputs"}, {"inputs"}, true};
    for (const std::string op : {"FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel"}) {
      (*table)[op] = {
          op + "Gradient", {"d:outputs", "inputs", "min", "max"}, {"inputs", "min", "max"}, true};
    }
    const std::vector<std::string> inputs = {"d:y", "x", "scale", "reserve_space_1",
                                             "reserve_space_2"};
    (*table)["FusedBatchNorm"] = {"FusedBatchNormGrad", inputs, {"x", "scale", "offset"}};
    (*table)["FusedBatchNormV2"] = {"FusedBatchNormGradV2", inputs, {"x", "scale", "offset"}};
    std::vector<std::string> inputs_v3 = inputs;
    inputs_v3.emplace_back("reserve_space_3");
    (*table)["FusedBatchNormV3"] = {"FusedBatchNormGradV3", inputs_v3, {"x", "scale", "offset"}};
    return table;
  }();
  return *ops;
}

// The op under test in a graph of its own: its inputs are placeholders, which are fed.
class OpGraph {
 public:
  OpGraph(OpTester tester, GradientOp gradient)
      : tester_(std::move(tester)),
        gradient_(std::move(gradient)),
        scope_(Scope::NewRootScope(tester_.registry())) {}

  absl::StatusOr<GradientError> Run(GradientOptions options) {
    GRADFLOW_RETURN_IF_ERROR(tester_.Finalize());
    if (tester_.num_inputs() == 0) return errors::InvalidArgument("the op has no inputs");
    GRADFLOW_RETURN_IF_ERROR(
        NameRangesForNode(tester_.node(), tester_.op_def(), &inputs_, &outputs_));
    GRADFLOW_RETURN_IF_ERROR(AddOp());
    OutputList xs;
    std::vector<Tensor> values;
    for (const std::string& name : gradient_.outputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const int i, Find(inputs_, name, "input"));
      xs.push_back(input_nodes_[i]);
      values.push_back(tester_.input(i));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const OutputList ys, Differentiated());
    const auto gradient = [&](const Scope&, const OutputList& dys) {
      absl::StatusOr<OutputList> dxs = AddGradientOp(dys);
      scope_.UpdateStatus(dxs.status());
      return dxs.ok() ? *std::move(dxs) : OutputList();
    };
    return FindGradientError(scope_, xs, values, ys, gradient, options);
  }

 private:
  absl::StatusOr<int> Find(const NameRangeMap& ranges, const std::string& name,
                           absl::string_view kind) const {
    const auto range = ranges.find(name);
    if (range == ranges.end()) {
      return errors::InvalidArgument("op '", tester_.node().op(), "' has no ", kind, " '", name,
                                     "', which the call of '", gradient_.op, "' names");
    }
    return range->second.first;
  }

  absl::StatusOr<Output> AddNode(NodeDef&& def) {
    GRADFLOW_ASSIGN_OR_RETURN(const Node* node, scope_.graph()->AddNode(std::move(def)));
    return Output(node, 0);
  }

  // The op, with a node for each of its inputs. Those of which no gradient is taken are constants.
  absl::Status AddOp() {
    std::vector<bool> varies(tester_.num_inputs());
    for (const std::string& name : gradient_.outputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const int i, Find(inputs_, name, "input"));
      varies[i] = true;
    }
    NodeDef def = tester_.node();
    def.clear_input();
    for (int i = 0; i < tester_.num_inputs(); ++i) {
      const Scope scope = scope_.WithOpName("input", i);
      input_nodes_.push_back(
          varies[i] ? ops::Placeholder(scope, tester_.input_types()[i],
                                       ops::Placeholder::Shape(tester_.input(i).shape()))
                    : ops::Const(scope, tester_.input(i)));
      GRADFLOW_RETURN_IF_ERROR(scope_.status());
      def.add_input(input_nodes_.back().name());
    }
    def.set_name("op");
    GRADFLOW_ASSIGN_OR_RETURN(op_, AddNode(std::move(def)));
    return absl::OkStatus();
  }

  // What differences are taken of: for each "d:name" of the gradient op in turn, that output.
  absl::StatusOr<OutputList> Differentiated() {
    OutputList ys;
    for (const std::string& input : gradient_.inputs) {
      absl::string_view name = input;
      if (!absl::ConsumePrefix(&name, "d:")) continue;
      GRADFLOW_ASSIGN_OR_RETURN(const int i, Find(outputs_, std::string(name), "output"));
      ys.emplace_back(op_.node(), i);
    }
    if (!gradient_.straight_through) return ys;
    GRADFLOW_ASSIGN_OR_RETURN(const Output clipped, Clipped());
    return OutputList{clipped};
  }

  // The op without its rounding. Its result is between two bounds, which are min and max after
  // they have been rounded, too: these roundings stay what they are at the values given.
  absl::StatusOr<Output> Clipped() {
    constexpr float kFar = 1e30f;
    GRADFLOW_ASSIGN_OR_RETURN(const Output low, Bound(-kFar, "min"));
    GRADFLOW_ASSIGN_OR_RETURN(const Output high, Bound(kFar, "max"));
    const Output y = ops::Minimum(scope_, ops::Maximum(scope_, input_nodes_[0], low), high);
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    return y;
  }

  // The bound that the op has for inputs that are `far` away: its argument `name` plus what
  // rounding has added to that, or, if the op has no such argument, a constant.
  absl::StatusOr<Output> Bound(float far, const std::string& name) {
    const auto argument = inputs_.find(name);
    const bool is_input = argument != inputs_.end();
    const int i = is_input ? argument->second.first : 0;
    Tensor x(DT_FLOAT, is_input ? tester_.input(i).shape() : TensorShape());
    for (float& element : x.flat<float>()) element = far;
    std::vector<Tensor> inputs = {x};
    for (int j = 1; j < tester_.num_inputs(); ++j) inputs.push_back(tester_.input(j));
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Tensor> bound, tester_.RunOn(std::move(inputs)));
    if (!is_input) return ops::Const(scope_, bound[0]);
    Tensor added(DT_FLOAT, x.shape());
    for (int64_t k = 0; k < added.NumElements(); ++k) {
      added.flat<float>()(k) = bound[0].flat<float>()(k) - tester_.input(i).flat<float>()(k);
    }
    return Output(ops::Add(scope_, input_nodes_[i], added));
  }

  absl::StatusOr<OutputList> AddGradientOp(const OutputList& dys) {
    GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* op, tester_.registry().LookUpOp(gradient_.op));
    NodeDef def;
    def.set_name("gradient");
    def.set_op(gradient_.op);
    size_t next_dy = 0;
    for (const std::string& name : gradient_.inputs) {
      if (absl::StartsWith(name, "d:")) {
        def.add_input(dys[next_dy++].name());
      } else if (const auto input = inputs_.find(name); input != inputs_.end()) {
        def.add_input(input_nodes_[input->second.first].name());
      } else {
        GRADFLOW_ASSIGN_OR_RETURN(const int i, Find(outputs_, name, "input or output"));
        def.add_input(Output(op_.node(), i).name());
      }
    }
    for (const OpDef::AttrDef& attr : op->def().attr()) {
      if (const AttrValue* value = FindNodeAttr(tester_.node(), attr.name()); value != nullptr) {
        AddNodeAttr(attr.name(), *value, &def);
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Output node, AddNode(std::move(def)));
    OutputList dxs;
    for (size_t i = 0; i < gradient_.outputs.size(); ++i) {
      dxs.emplace_back(node.node(), static_cast<int>(i));
    }
    return dxs;
  }

  OpTester tester_;
  const GradientOp gradient_;
  Scope scope_;
  NameRangeMap inputs_;
  NameRangeMap outputs_;
  OutputList input_nodes_;
  Output op_;
};

}  // namespace

void RegisterGradientOp(absl::string_view op, const GradientOp& gradient) {
  GradientOps()[std::string(op)] = gradient;
}

::testing::AssertionResult CheckGradient(const OpTester& op, const GradientOptions& options) {
  const auto failure = [&] {
    return ::testing::AssertionFailure() << "gradient of '" << op.node().op() << "': ";
  };
  const auto gradient = GradientOps().find(op.node().op());
  if (gradient == GradientOps().end()) {
    return failure() << "no gradient op is known; RegisterGradientOp adds one";
  }
  const absl::StatusOr<GradientError> error = OpGraph(op, gradient->second).Run(options);
  if (!error.ok()) return failure() << error.status();
  double allowed = options.max_error;
  if (allowed == 0) allowed = op.input(0).dtype() == DT_DOUBLE ? 1e-8 : 2e-3;
  allowed *= std::max(1.0, error->largest);
  // Also false for NaN.
  if (error->max_error <= allowed) return ::testing::AssertionSuccess();
  // Names for what the error calls x0, x1, ...
  std::vector<std::string> names;
  for (const std::string& name : gradient->second.outputs) {
    names.push_back(absl::StrCat("x", names.size(), " = ", name));
  }
  return failure() << error->DebugString() << absl::StrCat(", allowed ", allowed, "; ")
                   << absl::StrJoin(names, ", ");
}

::testing::AssertionResult CheckGradient(absl::string_view op, const std::vector<Tensor>& inputs,
                                         const GradientOptions& options) {
  return CheckGradient(OpTester(op).Inputs(inputs), options);
}

}  // namespace testing
}  // namespace gradflow
