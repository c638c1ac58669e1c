// Exponential linear units and their gradients: Elu, Selu.
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"
#include "gradflow/ops/nn/activation.h"
#include "gradflow/ops/nn/activation_simd.h"

namespace gradflow::elu {
namespace {

// The constants of self-normalizing networks (Klambauer et al., 2017).
constexpr double kScale = 1.0507009873554804934;
constexpr double kScaleAlpha = 1.7580993408473768600;

struct EluConstants {
  static constexpr double kPositive = 1;
  static constexpr double kNegative = 1;
};
struct SeluConstants {
  static constexpr double kPositive = kScale;
  static constexpr double kNegative = kScaleAlpha;
};

template <typename Constants>
void FloatLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  ApplyElu(static_cast<float>(Constants::kPositive), static_cast<float>(Constants::kNegative),
           static_cast<const float*>(x[0]), static_cast<float*>(out), n);
}

template <typename Constants>
void DoubleLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<double, double, 1>(x, strides, out, n,
                                  [&](const double* const* a, double* result, int64_t count) {
                                    double e[kElementwiseChunk];
                                    ApplyElementary(Elementary::kExpm1, a[0], e, count);
                                    GRADFLOW_SAME_INDEX_LOOP
                                    for (int64_t i = 0; i < count; ++i) {
                                      // Computes both, because a product within a branch is not
                                      // vectorized.
                                      const double negative = Constants::kNegative * e[i];
                                      const double positive = Constants::kPositive * a[0][i];
                                      result[i] = a[0][i] < 0 ? negative : positive;
                                    }
                                  });
}

template <typename Constants>
struct EluGradient {
  template <typename T>
  T operator()(T dy, T y) const {
    const T slope =
        y < 0 ? y + static_cast<T>(Constants::kNegative) : static_cast<T>(Constants::kPositive);
    return dy * slope;
  }
};

template <typename Constants>
void RegisterKernels(Registry& registry, absl::string_view op, absl::string_view gradient_op) {
  RegisterFloatActivation<FloatLoop<Constants>, DoubleLoop<Constants>, 1500>(registry, op);
  using F = EluGradient<Constants>;
  RegisterFloatActivationGrad<internal::kBinaryLoop<F, float, float>,
                              internal::kBinaryLoop<F, double, double>, 500>(registry, gradient_op);
}

}  // namespace

void Register(Registry& registry) {
  RegisterActivation(registry, "Elu", "", kFloatActivationTypes,
                     R"(Computes the exponential linear unit element-wise.

Negative elements x become e^x - 1. Other elements are unchanged.)");
  RegisterActivationGrad(registry, "EluGrad", "outputs", "", kFloatActivationTypes,
                         R"(Computes the gradient of Elu from its results.

Gradients are multiplied by `outputs + 1` where `outputs` is negative.)");
  RegisterKernels<EluConstants>(registry, "Elu", "EluGrad");
  RegisterActivation(registry, "Selu", "", kFloatActivationTypes,
                     R"(Computes the scaled exponential linear unit element-wise.

Negative elements x become scale * alpha * (e^x - 1). Other elements become scale * x. scale =
1.0507 and alpha = 1.6733 are the constants of Klambauer et al., Self-Normalizing Neural Networks
(2017).)");
  RegisterActivationGrad(registry, "SeluGrad", "outputs", "", kFloatActivationTypes,
                         R"(Computes the gradient of Selu from its results.

Gradients are multiplied by `outputs + scale * alpha` where `outputs` is negative, and by `scale`
elsewhere.)");
  RegisterKernels<SeluConstants>(registry, "Selu", "SeluGrad");
}

}  // namespace gradflow::elu
