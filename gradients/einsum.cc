// Gradients of Einsum, and of the matrix products BatchMatMulV3 and SparseMatMul.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/linalg.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

constexpr char kEllipsis[] = "...";
constexpr int kEllipsisSize = 3;

bool HasEllipsis(const std::string& subscript) {
  return subscript.find(kEllipsis) != std::string::npos;
}
int NumLabels(const std::string& subscript) {
  return static_cast<int>(subscript.size()) - (HasEllipsis(subscript) ? kEllipsisSize : 0);
}

// Sums `g` over the ellipsis dimensions along which x was broadcast. `before` and `after` are the
// numbers of labels before and after the ellipsis.
Output SumEllipsis(const Scope& scope, const Output& g, const Output& x, int before, int after) {
  const auto ellipsis_dims = [&](const Output& shape) -> Output {
    const Output rank = ops::Shape(scope, shape);
    return ops::Slice(scope, shape, Vector(scope, {before}),
                      ops::Sub(scope, rank, Vector(scope, {before + after})));
  };
  const Output shape = ops::Shape(scope, x);
  const auto axes =
      ops::BroadcastGradientArgs(scope, ellipsis_dims(shape), ellipsis_dims(ops::Shape(scope, g)));
  const Output shifted = ops::Add(scope, axes.r0, before);
  return ops::Reshape(scope, ops::Sum(scope, g, shifted), shape);
}

// The gradient of input i is an Einsum of dy and the conjugates of the other inputs; its output has
// the labels of input i. If only input i has a label, the forward op sums over it, and a factor of
// ones broadcasts the gradient along it. If input i repeats a label, only the diagonal gets the
// gradient.
absl::Status GradientOfEinsum(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string equation;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "equation", &equation));
  equation = absl::StrReplaceAll(equation, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) {
    return errors::InvalidArgument("equation '", equation, "' must have one '->'");
  }
  const std::vector<std::string> subscripts = absl::StrSplit(sides[0], ',');
  if (static_cast<int>(subscripts.size()) != op.num_inputs()) {
    return errors::InvalidArgument("equation '", equation, "' must have ", op.num_inputs(),
                                   " inputs, found ", subscripts.size());
  }
  // Each of n gradients has n factors, which takes quadratic time.
  constexpr int kMaxInputs = 256;
  if (op.num_inputs() > kMaxInputs) {
    return errors::Unimplemented("the gradient supports at most ", kMaxInputs, " inputs, found ",
                                 op.num_inputs());
  }
  std::vector<Output> conjugates;
  for (int i = 0; op.num_inputs() > 1 && i < op.num_inputs(); ++i) {
    conjugates.push_back(Conjugate(scope, op.input(i)));
  }
  const bool any_ellipsis = HasEllipsis(equation);
  for (int i = 0; i < op.num_inputs(); ++i) {
    const Output x = op.input(i);
    std::vector<std::string> factors = {sides[1]};
    std::vector<Output> inputs = {dy[0]};
    for (int j = 0; j < op.num_inputs(); ++j) {
      if (j == i) continue;
      factors.push_back(subscripts[j]);
      inputs.push_back(conjugates[j]);
    }
    const std::string known = absl::StrJoin(factors, "");
    const std::string& subscript = subscripts[i];
    const size_t ellipsis = subscript.find(kEllipsis);
    std::string summed;
    std::vector<int32_t> positions;
    for (size_t at = 0; at < subscript.size(); ++at) {
      const char label = subscript[at];
      if (label == '.' || known.find(label) != std::string::npos ||
          summed.find(label) != std::string::npos) {
        continue;
      }
      summed.push_back(label);
      // Labels after the ellipsis are counted from the end.
      const bool is_after = ellipsis != std::string::npos && at > ellipsis;
      positions.push_back(static_cast<int32_t>(is_after ? at - subscript.size() : at));
    }
    if (!summed.empty()) {
      const Output shape = ops::Shape(scope, x);
      const Output rank = ops::Rank(scope, x);
      const Output axes = ops::FloorMod(scope, Vector(scope, positions), rank);
      factors.push_back(summed);
      inputs.push_back(ops::Fill(scope, ops::GatherV2(scope, shape, axes, 0),
                                 Scalar(scope, BaseType(x.type()), 1)));
    }
    // If input i has no ellipsis, but the output has one, the gradient gets an ellipsis, whose
    // dimensions are summed below.
    const bool extra = any_ellipsis && ellipsis == std::string::npos;
    const std::string result = extra ? absl::StrCat(kEllipsis, subscript) : subscript;
    Output g = ops::Einsum(scope, inputs, absl::StrCat(absl::StrJoin(factors, ","), "->", result));
    if (extra) {
      const Output count = ops::Sub(scope, ops::Rank(scope, g), NumLabels(subscript));
      g = ops::Sum(scope, g, ops::Range(scope, 0, count, 1));
    } else if (any_ellipsis) {
      const int before = static_cast<int>(ellipsis);
      g = SumEllipsis(scope, g, x, before, NumLabels(subscript) - before);
    }
    dx->push_back(g);
  }
  return scope.status();
}

// Inputs and outputs may have different types. Each gradient has the type of its input.
absl::Status GradientOfBatchMatMulV3(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool adjoint_x = false;
  bool adjoint_y = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_x", &adjoint_x));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_y", &adjoint_y));
  const DataType dtype = dy[0].type();
  const auto to = [&](const Output& x, DataType type) -> Output {
    return BaseType(x.type()) == type ? x : Output(ops::Cast(scope, x, type));
  };
  const Output x = op.input(0);
  const Output y = op.input(1);
  const Output wide_x = to(x, dtype);
  const Output wide_y = to(y, dtype);
  const Output gx = adjoint_x ? MatrixProduct(scope, wide_y, adjoint_y, dy[0], true)
                              : MatrixProduct(scope, dy[0], false, wide_y, !adjoint_y);
  const Output gy = adjoint_y ? MatrixProduct(scope, dy[0], true, wide_x, adjoint_x)
                              : MatrixProduct(scope, wide_x, !adjoint_x, dy[0], false);
  *dx = {to(SumBatches(scope, gx, x, y), BaseType(x.type())),
         to(SumBatches(scope, gy, y, x), BaseType(y.type()))};
  return scope.status();
}

// The factors are float or bfloat16; the product is float.
absl::Status GradientOfSparseMatMul(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool transposed_a = false;
  bool transposed_b = false;
  bool a_is_sparse = false;
  bool b_is_sparse = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_a", &transposed_a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_b", &transposed_b));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "a_is_sparse", &a_is_sparse));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "b_is_sparse", &b_is_sparse));
  struct Factor {
    Output value;
    bool is_sparse;
  };
  const Factor g = {dy[0], false};
  const Factor a = {op.input(0), a_is_sparse};
  const Factor b = {op.input(1), b_is_sparse};
  const auto product = [&](const Factor& left, bool transpose_left, const Factor& right,
                           bool transpose_right, DataType dtype) -> Output {
    const auto attrs = ops::SparseMatMul::TransposeA(transpose_left)
                           .TransposeB(transpose_right)
                           .AIsSparse(left.is_sparse)
                           .BIsSparse(right.is_sparse);
    const Output result = ops::SparseMatMul(scope, left.value, right.value, attrs);
    return dtype == DT_FLOAT ? result : Output(ops::Cast(scope, result, dtype));
  };
  const DataType type_a = BaseType(a.value.type());
  const DataType type_b = BaseType(b.value.type());
  dx->push_back(transposed_a ? product(b, transposed_b, g, true, type_a)
                             : product(g, false, b, !transposed_b, type_a));
  dx->push_back(transposed_b ? product(g, true, a, transposed_a, type_b)
                             : product(a, !transposed_a, g, false, type_b));
  return scope.status();
}

}  // namespace
}  // namespace gradients

namespace gradients::einsum {

void Register(GradientRegistry& registry) {
  registry.Register("Einsum", GradientOfEinsum);
  registry.Register("BatchMatMulV3", GradientOfBatchMatMulV3);
  registry.Register("SparseMatMul", GradientOfSparseMatMul);
}

}  // namespace gradients::einsum

}  // namespace gradflow
