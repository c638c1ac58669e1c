// LogicalAnd, LogicalOr and LogicalNot.
//
// Bools are read as bytes, of which any but 0 is true: a bool that was fed as another value than 0
// and 1 must not be read as one.
#include <cstdint>

#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

absl::Status LogicalAnd(KernelContext& ctx) {
  return Binary<uint8_t>(ctx, [](uint8_t x, uint8_t y) { return (x != 0) & (y != 0); });
}

absl::Status LogicalOr(KernelContext& ctx) {
  return Binary<uint8_t>(ctx, [](uint8_t x, uint8_t y) { return (x | y) != 0; });
}

absl::Status LogicalNot(KernelContext& ctx) {
  return Unary<uint8_t>(ctx, [](uint8_t x) { return x == 0; });
}

}  // namespace

void RegisterLogical(Registry& registry) {
  registry.Op("LogicalAnd")
      .Group("math_ops")
      .Input("x: bool")
      .Input("y: bool")
      .Output("z: bool")
      .Commutative()
      .Shape(BroadcastBinaryShape)
      .Doc(R"(Whether x and y are both true, element by element.

The inputs are broadcast to one shape as NumPy does.

x: A tensor.
y: A tensor.
z: The answers, of the common shape.)");
  registry.Kernel("LogicalAnd", MakeFunctionKernel<LogicalAnd>);

  registry.Op("LogicalOr")
      .Group("math_ops")
      .Input("x: bool")
      .Input("y: bool")
      .Output("z: bool")
      .Commutative()
      .Shape(BroadcastBinaryShape)
      .Doc(R"(Whether x or y is true, or both, element by element.

The inputs are broadcast to one shape as NumPy does.

x: A tensor.
y: A tensor.
z: The answers, of the common shape.)");
  registry.Kernel("LogicalOr", MakeFunctionKernel<LogicalOr>);

  registry.Op("LogicalNot")
      .Group("math_ops")
      .Input("x: bool")
      .Output("y: bool")
      .Shape(UnchangedShape)
      .Doc(R"(Whether x is false, element by element.

x: A tensor.
y: The answers, of the shape of `x`.)");
  registry.Kernel("LogicalNot", MakeFunctionKernel<LogicalNot>);
}

}  // namespace gradflow
