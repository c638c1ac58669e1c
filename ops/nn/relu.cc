// Relu.
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/ops/common/elementwise.h"

namespace gradflow::relu {
namespace {

struct Rectify {
  static constexpr double kNanoseconds = kCheapNanoseconds;
  template <typename T>
  T operator()(T x) const {
    // This form propagates NaN.
    return x <= 0 ? T(0) : x;
  }
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Relu")
      .Group("nn_ops")
      .Input("features: T")
      .Output("activations: T")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, "
          "uint16, half, uint32, "
          "uint64, qint8}")
      .Shape(UnchangedShape)
      .Doc(R"(Computes the rectified linear unit max(features, 0) element-wise.

NaN stays NaN.

features: A tensor.
activations: The elements where they are positive, otherwise 0.
T: The type of both; there is no kernel for qint8, as on TensorFlow's CPU.)");
  RegisterUnaryKernels<Rectify, OwnType>(registry, "Relu", RealTypes());
}

}  // namespace gradflow::relu
