// CheckGradient and ComputeGradientError for registered gradient ops.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/gradient_defaults.h"

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
    (*table)["Identity"] = {"Identity", {"d:output"}, {"input"}};
    (*table)["Neg"] = {"Neg", {"d:y"}, {"x"}};
    return table;
  }();
  return *ops;
}

// A call of a node's gradient op: a GradientOp whose names are resolved to indices.
class GradientCall {
 public:
  // `node` has op `op_def`, and need not have inputs yet. Borrows `gradient`.
  static absl::StatusOr<GradientCall> Make(const NodeDef& node, const OpDef& op_def,
                                           const GradientOp& gradient) {
    GradientCall call(node.op(), gradient);
    GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(node, op_def, &call.inputs_, &call.outputs_));
    for (const std::string& input : gradient.inputs) {
      absl::string_view name = input;
      if (!absl::ConsumePrefix(&name, "d:")) continue;
      GRADFLOW_ASSIGN_OR_RETURN(const int i, call.Find(call.outputs_, std::string(name), "output"));
      call.dys_.push_back(i);
    }
    for (const std::string& name : gradient.outputs) {
      GRADFLOW_ASSIGN_OR_RETURN(const int i, call.Find(call.inputs_, name, "input"));
      call.dxs_.push_back(i);
    }
    return call;
  }

  const std::string& gradient_op() const { return gradient_->op; }
  // The outputs of the node whose gradients the gradient op takes, in order.
  const std::vector<int>& dys() const { return dys_; }
  // The inputs of the node whose gradients the gradient op returns, in order.
  const std::vector<int>& dxs() const { return dxs_; }
  // Returns the index of the node's input `name`, or -1.
  int FindInput(const std::string& name) const {
    const auto range = inputs_.find(name);
    return range == inputs_.end() ? -1 : range->second.first;
  }

  // Adds the gradient op to the node's graph. Takes the gradients of dys(), and returns the
  // gradients of dxs().
  absl::StatusOr<OutputList> Add(const Scope& scope, const Node& node,
                                 const OutputList& dys) const {
    Graph& graph = *scope.graph();
    GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* op, graph.registry().LookUpOp(gradient_->op));
    NodeDef def;
    def.set_name(scope.GetUniqueNameForOp(gradient_->op));
    def.set_op(gradient_->op);
    size_t next_dy = 0;
    for (const std::string& name : gradient_->inputs) {
      if (absl::StartsWith(name, "d:")) {
        def.add_input(dys[next_dy++].name());
      } else if (const int i = FindInput(name); i >= 0) {
        const Node::Source source = node.sources()[i];
        def.add_input(Output(source.node, source.output).name());
      } else {
        GRADFLOW_ASSIGN_OR_RETURN(const int j, Find(outputs_, name, "input or output"));
        def.add_input(Output(&node, j).name());
      }
    }
    for (const OpDef::AttrDef& attr : op->def().attr()) {
      if (const AttrValue* value = FindNodeAttr(node.def(), attr.name()); value != nullptr) {
        AddNodeAttr(attr.name(), *value, &def);
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Node* added, graph.AddNode(std::move(def)));
    OutputList dxs;
    for (size_t i = 0; i < dxs_.size(); ++i) dxs.emplace_back(added, static_cast<int>(i));
    return dxs;
  }

 private:
  GradientCall(std::string op, const GradientOp& gradient)
      : op_(std::move(op)), gradient_(&gradient) {}

  absl::StatusOr<int> Find(const NameRangeMap& ranges, const std::string& name,
                           absl::string_view kind) const {
    const auto range = ranges.find(name);
    if (range == ranges.end()) {
      return errors::InvalidArgument("op '", op_, "' has no ", kind, " '", name,
                                     "', which the call of '", gradient_->op, "' names");
    }
    return range->second.first;
  }

  std::string op_;
  const GradientOp* gradient_;
  NameRangeMap inputs_;
  NameRangeMap outputs_;
  std::vector<int> dys_;
  std::vector<int> dxs_;
};

// A graph with the op under test. Inputs with gradients are placeholders, which are fed.
class OpGraph {
 public:
  OpGraph(const OpTester& tester, const GradientOp& gradient)
      : tester_(tester), gradient_(gradient), scope_(Scope::NewRootScope(tester_.registry())) {}

  absl::StatusOr<GradientError> Run(GradientOptions options) {
    GRADFLOW_RETURN_IF_ERROR(tester_.Finalize());
    if (tester_.num_inputs() == 0) return errors::InvalidArgument("the op has no inputs");
    GRADFLOW_ASSIGN_OR_RETURN(const GradientCall call,
                              GradientCall::Make(tester_.node(), tester_.op_def(), gradient_));
    GRADFLOW_RETURN_IF_ERROR(AddOp(call));
    OutputList xs;
    std::vector<Tensor> values;
    for (const int i : call.dxs()) {
      xs.push_back(input_nodes_[i]);
      values.push_back(tester_.input(i));
    }
    OutputList ys;
    for (const int i : call.dys()) ys.emplace_back(op_, i);
    if (gradient_.straight_through) {
      GRADFLOW_ASSIGN_OR_RETURN(const Output clipped, Clipped(call));
      ys = {clipped};
    }
    const auto gradient = [&](const Scope&, const OutputList& dys) {
      absl::StatusOr<OutputList> dxs = call.Add(scope_, *op_, dys);
      scope_.UpdateStatus(dxs.status());
      return dxs.ok() ? *std::move(dxs) : OutputList();
    };
    return FindGradientError(scope_, xs, values, ys, gradient, options);
  }

 private:
  // Adds the op, and a node for each input. Inputs without a gradient are constants.
  absl::Status AddOp(const GradientCall& call) {
    NodeDef def = tester_.node();
    def.clear_input();
    for (int i = 0; i < tester_.num_inputs(); ++i) {
      const Scope scope = scope_.WithOpName("input", i);
      const bool varies = absl::c_linear_search(call.dxs(), i);
      input_nodes_.push_back(
          varies ? ops::Placeholder(scope, tester_.input_types()[i],
                                    ops::Placeholder::Shape(tester_.input(i).shape()))
                 : ops::Const(scope, tester_.input(i)));
      GRADFLOW_RETURN_IF_ERROR(scope_.status());
      def.add_input(input_nodes_.back().name());
    }
    def.set_name("op");
    GRADFLOW_ASSIGN_OR_RETURN(op_, scope_.graph()->AddNode(std::move(def)));
    return absl::OkStatus();
  }

  // Adds the op without its rounding: a node that clamps the input to the bounds of the op.
  absl::StatusOr<Output> Clipped(const GradientCall& call) {
    constexpr float kFar = 1e30f;
    GRADFLOW_ASSIGN_OR_RETURN(const Output low, Bound(-kFar, call.FindInput("min")));
    GRADFLOW_ASSIGN_OR_RETURN(const Output high, Bound(kFar, call.FindInput("max")));
    const Output y = ops::Minimum(scope_, ops::Maximum(scope_, input_nodes_[0], low), high);
    GRADFLOW_RETURN_IF_ERROR(scope_.status());
    return y;
  }

  // Adds a bound of the op: its output for an input of value `far`. If the bound is input `i` (min
  // or max), which the op rounds, returns this input plus a constant, so that the bound still
  // depends on the input. Returns a constant if `i` is -1.
  absl::StatusOr<Output> Bound(float far, int i) {
    const bool is_input = i >= 0;
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

  OpTester tester_;
  const GradientOp& gradient_;
  Scope scope_;
  OutputList input_nodes_;
  const Node* op_ = nullptr;
};

// The gradient function of ops that RegisterGradientOp has added.
absl::Status CallGradientOp(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Node& node = *op.node();
  GRADFLOW_ASSIGN_OR_RETURN(const GradientCall call,
                            GradientCall::Make(node.def(), node.op_def(),
                                               GradientOps().find(node.type_string())->second));
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsNoGradient(dy[i]) || absl::c_linear_search(call.dys(), i)) continue;
    return errors::Unimplemented("its gradient op '", call.gradient_op(),
                                 "' takes no gradient of output ", i);
  }
  OutputList dys;
  for (const int i : call.dys()) {
    dys.push_back(IsNoGradient(dy[i]) ? Output(ops::ZerosLike(scope, op.output(i))) : dy[i]);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const OutputList dxs, call.Add(scope, node, dys));
  dx->assign(op.num_inputs(), NoGradient());
  for (size_t i = 0; i < dxs.size(); ++i) (*dx)[call.dxs()[i]] = dxs[i];
  return absl::OkStatus();
}

// Calls `compute` with a GradientFn for xs.
template <typename Compute>
absl::Status WithKnownGradient(const OutputList& xs, const OutputList& ys, const Compute& compute) {
  absl::Status known;
  const auto gradient = [&](const Scope& scope, const OutputList& dys) {
    OutputList dxs;
    // The xs are fed, so they do not depend on each other.
    GradientBuildOptions options;
    options.stop_gradients = xs;
    known = AddSymbolicGradients(scope, ys, xs, dys, &dxs, options);
    for (size_t i = 0; i < dxs.size(); ++i) {
      if (!IsNoGradient(dxs[i])) continue;
      known = errors::InvalidArgument("no y depends on x", i, ", which is '", xs[i].name(), "'");
      return OutputList();
    }
    return dxs;
  };
  const absl::Status computed = compute(gradient);
  return known.ok() ? computed : known;
}

}  // namespace

void RegisterGradientOp(absl::string_view op, const GradientOp& gradient) {
  GradientOps()[std::string(op)] = gradient;
  (void)GradientRegistry::Global().Register(op, CallGradientOp);
}

::testing::AssertionResult CheckGradient(const OpTester& op, const GradientOptions& options) {
  const auto failure = [&] {
    return ::testing::AssertionFailure() << "gradient of '" << op.node().op() << "': ";
  };
  const auto gradient = GradientOps().find(op.node().op());
  if (gradient == GradientOps().end()) {
    return failure() << "the op has no registered gradient op; see RegisterGradientOp";
  }
  const absl::StatusOr<GradientError> error = OpGraph(op, gradient->second).Run(options);
  if (!error.ok()) return failure() << error.status();
  double allowed = options.max_error;
  if (allowed == 0) allowed = DefaultMaxError(op.input(0).dtype() != DT_DOUBLE);
  allowed *= std::max(1.0, error->largest);
  // False if max_error is NaN or infinite, because `largest` is finite.
  if (error->max_error <= allowed) return ::testing::AssertionSuccess();
  // Explains the names x0, x1, ... in the message.
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

absl::Status ComputeGradientError(const Scope& scope, const OutputList& xs,
                                  const std::vector<TensorShape>& x_shapes, const OutputList& ys,
                                  const std::vector<TensorShape>& y_shapes, double* max_error,
                                  const GradientOptions& options) {
  return WithKnownGradient(xs, ys, [&](const GradientFn& gradient) {
    return ComputeGradientError(scope, xs, x_shapes, ys, y_shapes, gradient, max_error, options);
  });
}

absl::Status ComputeGradientError(const Scope& scope, const Output& x, const Tensor& x_init_value,
                                  const Output& y, const TensorShape& y_shape, double* max_error,
                                  const GradientOptions& options) {
  return WithKnownGradient({x}, {y}, [&](const GradientFn& gradient) {
    return ComputeGradientError(scope, x, x_init_value, y, y_shape, gradient, max_error, options);
  });
}

}  // namespace testing
}  // namespace gradflow
