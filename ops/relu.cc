// Relu.
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

struct Rectify {
  static constexpr double kNanoseconds = kCheapNanoseconds;
  template <typename T>
  T operator()(T x) const {
    // In this form NaN stays NaN.
    return x <= 0 ? T(0) : x;
  }
};

}  // namespace

void RegisterRelu(Registry& registry) {
  registry.Op("Relu")
      .Group("nn_ops")
      .Input("features: T")
      .Output("activations: T")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
          "uint16, half, uint32, "
          "uint64, qint8}")
      .Shape(UnchangedShape)
      .Doc(R"(The larger of each element and zero: rectified linear units.

NaN stays NaN.

features: A tensor.
activations: Its elements where they are positive, else 0.
T: The type of both; there is no kernel for qint8, as on TensorFlow's CPU.)");
  RegisterUnaryKernels<Rectify, OwnType>(registry, "Relu", RealTypes());
}

}  // namespace gradflow
