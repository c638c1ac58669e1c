// LogicalAnd, LogicalOr and LogicalNot.
//
// Bools are read as bytes, and every nonzero value is true. A fed bool may be neither 0 nor 1, and
// reading such a bool is undefined behavior.
#include <cstdint>

#include "absl/strings/substitute.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::logical {
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

void Register(Registry& registry) {
  const auto define = [&](const char* op, const char* word, KernelFactory kernel) {
    registry.Op(op)
        .Group("math_ops")
        .Input("x: bool")
        .Input("y: bool")
        .Output("z: bool")
        .Commutative()
        .Shape(BroadcastBinaryShape)
        .Doc(absl::Substitute(R"(Returns x $0 y element-wise.

The inputs are broadcast to one shape as NumPy does.

x: A tensor.
y: A tensor.
z: The results, of the broadcast shape.)",
                              word));
    registry.Kernel(op, kernel);
  };
  define("LogicalAnd", "AND", MakeFunctionKernel<LogicalAnd>);
  define("LogicalOr", "OR", MakeFunctionKernel<LogicalOr>);

  registry.Op("LogicalNot")
      .Group("math_ops")
      .Input("x: bool")
      .Output("y: bool")
      .Shape(UnchangedShape)
      .Doc(R"(Returns NOT x element-wise.

x: A tensor.
y: The results, of the shape of `x`.)");
  registry.Kernel("LogicalNot", MakeFunctionKernel<LogicalNot>);
}

}  // namespace gradflow::logical
