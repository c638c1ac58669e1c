// ReLU ops and their gradients: Relu, Relu6, LeakyRelu.
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/activation.h"

namespace gradflow::relu {
namespace {

// The comparisons of Relu and Relu6 propagate NaN.
struct Relu {
  static constexpr ElementwiseLoop kFloatLoop = ReluFloats;
  template <typename T>
  T operator()(T x) const {
    return x <= 0 ? T(0) : x;
  }
};

struct Relu6 {
  static constexpr ElementwiseLoop kFloatLoop = Relu6Floats;
  template <typename T>
  T operator()(T x) const {
    const T positive = x <= 0 ? T(0) : x;
    return positive > T(6) ? T(6) : positive;
  }
};

struct ReluGradient {
  template <typename T>
  T operator()(T dy, T x) const {
    return x > 0 ? dy : T(0);
  }
};

struct Relu6Gradient {
  template <typename T>
  T operator()(T dy, T x) const {
    return ((x > 0) & (x < T(6))) ? dy : T(0);
  }
};

// Reads the attribute alpha.
class LeakyKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    types_ = InputTypes(construction);
    return construction.GetAttr("alpha", &alpha_);
  }

 protected:
  DataTypeVector types_;
  float alpha_ = 0;
};

template <typename T>
class LeakyRelu final : public LeakyKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    const T alpha = static_cast<T>(alpha_);
    return RunElementwise(ctx, {sizeof(T)}, kCheapNanoseconds,
                          [&](const void* const* x, const int64_t*, void* out, int64_t n) {
                            const auto leak = [alpha](T v) { return v > 0 ? v : alpha * v; };
                            internal::UnaryRun<T, T>(leak, x, out, n);
                          });
  }
};

template <typename T>
class LeakyReluGrad final : public LeakyKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, types_));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(0, "gradients", 1, "features"));
    const T alpha = static_cast<T>(alpha_);
    return RunElementwise(
        ctx, {sizeof(T), sizeof(T)}, kCheapNanoseconds,
        [&](const void* const* x, const int64_t* strides, void* out, int64_t n) {
          const auto leak = [alpha](T dy, T v) { return v > 0 ? dy : alpha * dy; };
          internal::BinaryRun<T, T>(leak, x, strides, out, n);
        },
        Pairing::kInOrder);
  }
};

constexpr char kAlpha[] = "alpha: float = 0.2";
constexpr char kLeakyTypes[] = "T: {half, bfloat16, float, double} = DT_FLOAT";

template <template <typename> class Kernel>
void RegisterLeaky(Registry& registry, absl::string_view op) {
  registry.Kernel(op, MakeKernel<Kernel<float>>).Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  registry.Kernel(op, MakeKernel<Kernel<double>>).Types("T", {DT_DOUBLE});
}

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
  RegisterUnaryKernels<Relu, OwnType>(registry, "Relu", RealTypes());
  RegisterActivation(registry, "Relu6", "", kRealActivationTypes,
                     R"(Computes min(max(features, 0), 6) element-wise.

NaN stays NaN.)");
  RegisterUnaryKernels<Relu6, OwnType>(registry, "Relu6", RealTypes());
  RegisterActivation(registry, "LeakyRelu", kAlpha, kLeakyTypes,
                     R"(Computes the leaky rectified linear unit element-wise.

Positive elements are unchanged. Other elements are multiplied by `alpha`.)");
  RegisterLeaky<LeakyRelu>(registry, "LeakyRelu");

  RegisterActivationGrad(registry, "ReluGrad", "features", "", kRealActivationTypes,
                         R"(Computes the gradient of Relu.

Gradients pass where `features` is positive, and are 0 elsewhere. `features` may also be the outputs
of Relu.)");
  RegisterRealActivationGrad<ReluGradient>(registry, "ReluGrad", RealTypes());
  RegisterActivationGrad(registry, "Relu6Grad", "features", "", kRealActivationTypes,
                         R"(Computes the gradient of Relu6.

Gradients pass where `features` is between 0 and 6, and are 0 elsewhere. `features` may also be the
outputs of Relu6.)");
  RegisterRealActivationGrad<Relu6Gradient>(registry, "Relu6Grad", RealTypes());
  RegisterActivationGrad(registry, "LeakyReluGrad", "features", kAlpha, kLeakyTypes,
                         R"(Computes the gradient of LeakyRelu.

Gradients pass where `features` is positive, and are multiplied by `alpha` elsewhere.)");
  RegisterLeaky<LeakyReluGrad>(registry, "LeakyReluGrad");
}

}  // namespace gradflow::relu
