// Maximum and Minimum.
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

// A NaN in either operand is the result: x if that is one, and y because NaN compares false. The
// operators that do not branch let the compiler use vectors.
struct Larger {
  template <typename T>
  T operator()(T x, T y) const {
    return ((x > y) | (x != x)) ? x : y;
  }
};

struct Smaller {
  template <typename T>
  T operator()(T x, T y) const {
    return ((x < y) | (x != x)) ? x : y;
  }
};

}  // namespace

void RegisterMaximum(Registry& registry) {
  registry.Op("Maximum")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, "
          "int32, uint32, int64, "
          "uint64}")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The larger of x and y, element by element.

The inputs are broadcast to one shape as NumPy does. Where either is NaN, so is the result. Of zeros
of either sign it is the one in `y`.

x: A tensor.
y: A tensor of the same type.
z: The larger elements, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<Larger, OwnType>(registry, "Maximum", RealTypes());

  registry.Op("Minimum")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, "
          "int32, uint32, int64, "
          "uint64}")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The smaller of x and y, element by element.

The inputs are broadcast to one shape as NumPy does. Where either is NaN, so is the result. Of zeros
of either sign it is the one in `y`.

x: A tensor.
y: A tensor of the same type.
z: The smaller elements, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<Smaller, OwnType>(registry, "Minimum", RealTypes());
}

}  // namespace gradflow
