#include "gradflow/gradients/gradient_helpers.h"

#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"

namespace gradflow::gradients {
Output Scalar(const Scope& scope, DataType dtype, double value) {
  // A reference to a variable is treated as its value type.
  dtype = BaseType(dtype);
  if (dtype == DT_DOUBLE) return ops::Const(scope, value);
  return ops::Cast(scope, ops::Const(scope, value), dtype);
}

Output Vector(const Scope& scope, const std::vector<int32_t>& values) {
  Tensor tensor(DT_INT32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.flat<int32_t>()(static_cast<int64_t>(i)) = values[i];
  }
  return ops::Const(scope, tensor);
}

Output Conjugate(const Scope& scope, const Output& x) {
  return DataTypeIsComplex(BaseType(x.type())) ? Output(ops::Conj(scope, x)) : x;
}

Output RealPart(const Scope& scope, const Output& x) {
  const DataType dtype = BaseType(x.type());
  if (!DataTypeIsComplex(dtype)) return x;
  return ops::Cast(scope, ops::Real(scope, x, ops::Real::Tout(PartType(dtype))), dtype);
}

DataType PartType(DataType complex) {
  return BaseType(complex) == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE;
}

namespace {

// Returns true if the shapes that are known when the graph is built show that broadcasting `x` with
// `other` does not change the shape of x.
bool KeepsItsShape(const Output& x, const Output& other) {
  const PartialTensorShape& shape = x.node()->output_shape(x.index());
  const PartialTensorShape& other_shape = other.node()->output_shape(other.index());
  if (other_shape.dims() == 0) return true;
  const int offset = shape.dims() - other_shape.dims();
  if (shape.unknown_rank() || other_shape.unknown_rank() || offset < 0) return false;
  for (int d = 0; d < other_shape.dims(); ++d) {
    const int64_t size = other_shape.dim_size(d);
    if (size != 1 && (size < 0 || size != shape.dim_size(offset + d))) return false;
  }
  return true;
}

}  // namespace

Output SumToShapeOf(const Scope& scope, const Output& gradient, const Output& x,
                    const Output& other) {
  if (!scope.ok() || IsNoGradient(gradient) || x == other || KeepsItsShape(x, other)) {
    return gradient;
  }
  const Output shape = ops::Shape(scope, x);
  const auto axes = ops::BroadcastGradientArgs(scope, shape, ops::Shape(scope, other));
  return ops::Reshape(scope, ops::Sum(scope, gradient, axes.r0), shape);
}

absl::Status Broadcast(const Scope& scope, const Operation& op, const Output& gradient_x,
                       const Output& gradient_y, std::vector<Output>* dx) {
  GRADFLOW_RETURN_IF_ERROR(scope.status());
  const Output x = op.input(0);
  const Output y = op.input(1);
  if (x == y || IsNoGradient(gradient_x) || IsNoGradient(gradient_y) || KeepsItsShape(x, y) ||
      KeepsItsShape(y, x)) {
    dx->push_back(SumToShapeOf(scope, gradient_x, x, y));
    dx->push_back(SumToShapeOf(scope, gradient_y, y, x));
    return scope.status();
  }
  // The shapes are shared by both sums.
  const Output shape_x = ops::Shape(scope, x);
  const Output shape_y = ops::Shape(scope, y);
  const auto axes = ops::BroadcastGradientArgs(scope, shape_x, shape_y);
  dx->push_back(ops::Reshape(scope, ops::Sum(scope, gradient_x, axes.r0), shape_x));
  dx->push_back(ops::Reshape(scope, ops::Sum(scope, gradient_y, axes.r1), shape_y));
  return scope.status();
}

Output UnknownGradient() { return Output(nullptr, -2); }
bool IsUnknownGradient(const Output& output) {
  return output.node() == nullptr && output.index() == -2;
}

Output OrZeros(const Scope& scope, const Operation& op, int i, const std::vector<Output>& dy) {
  if (!IsNoGradient(dy[i])) return dy[i];
  return ops::ZerosLike(scope, op.output(i));
}

absl::Status NoGradientForTheRest(const Scope& scope, const Operation& op,
                                  std::vector<Output>* dx) {
  dx->resize(op.num_inputs(), NoGradient());
  return scope.status();
}

}  // namespace gradflow::gradients
