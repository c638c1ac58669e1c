// A custom op in a plugin: definition, shape function and kernel.
#include <cmath>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/io/plugin.h"

namespace {

using gradflow::KernelConstruction;
using gradflow::KernelContext;
using gradflow::Registry;
using gradflow::ShapeContext;
using gradflow::Tensor;

absl::Status CheckThreshold(float threshold) {
  if (threshold >= 0) return absl::OkStatus();
  return gradflow::errors::InvalidArgument("threshold must not be negative, but is ", threshold);
}

// Shape function. Runs when a node is added to a graph. Infers the output's shape and reports the
// errors that can be found then.
absl::Status SoftThresholdShape(ShapeContext& c) {
  float threshold;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("threshold", &threshold));
  GRADFLOW_RETURN_IF_ERROR(CheckThreshold(threshold));
  return gradflow::UnchangedShape(c);
}

template <typename T>
class SoftThreshold final : public gradflow::OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("threshold", &threshold_));
    return CheckThreshold(threshold_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    Tensor* output;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, ctx.input(0).shape(), &output));
    const T* x = ctx.input(0).flat<T>().data();
    T* y = output->flat<T>().data();
    const T threshold = static_cast<T>(threshold_);
    constexpr int64_t kBlock = 1 << 14;
    gradflow::ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        // This form propagates NaN.
        y[i] = std::abs(x[i]) <= threshold ? T(0) : x[i] - std::copysign(threshold, x[i]);
      }
    });
    return absl::OkStatus();
  }

 private:
  float threshold_ = 0;
};

void RegisterSoftThreshold(Registry& registry) {
  registry.Op("SoftThreshold")
      .Group("shrinkage_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("threshold: float = 1.0")
      .Attr("T: {float, double}")
      .Shape(SoftThresholdShape)
      .Doc(R"doc(Moves each element towards zero by `threshold`, and those nearer to zero to zero.

x: Any shape.
y: Has the shape of `x`.
threshold: Not negative.)doc");
  registry.Kernel("SoftThreshold", gradflow::MakeKernel<SoftThreshold<float>>).Type<float>("T");
  registry.Kernel("SoftThreshold", gradflow::MakeKernel<SoftThreshold<double>>).Type<double>("T");
}

}  // namespace

GRADFLOW_PLUGIN(RegisterSoftThreshold)
