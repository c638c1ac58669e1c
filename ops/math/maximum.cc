// Maximum and Minimum.
#include "absl/strings/substitute.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::maximum {
namespace {

// Propagates NaN from x and y, because comparisons with NaN are false. Uses operators without
// branches, so that the compiler vectorizes.
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

void Register(Registry& registry) {
  const auto define = [&](const char* op, const char* word, const char* words) {
    registry.Op(op)
        .Group("math_ops")
        .Input("x: T")
        .Input("y: T")
        .Output("z: T")
        .Attr(
            "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
            "uint64}")
        .Shape(BroadcastBinaryShape)
        .Doc(absl::Substitute(R"(Returns the $0 of x and y element-wise.

The inputs are broadcast to one shape as NumPy does. If either element is NaN, the result is NaN.
For zeros of different sign, the result is the zero in `y`.

x: A tensor.
y: A tensor of the same type.
z: The $1, of the broadcast shape.
T: The type of the inputs and the output.)",
                              word, words));
  };
  define("Maximum", "maximum", "maxima");
  RegisterBinaryKernels<Larger, OwnType>(registry, "Maximum", RealTypes());
  define("Minimum", "minimum", "minima");
  RegisterBinaryKernels<Smaller, OwnType>(registry, "Minimum", RealTypes());
}

}  // namespace gradflow::maximum
