// Exponential linear units and their gradients: Elu, Selu.
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"
#include "gradflow/ops/nn/activation.h"

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

template <typename Constants, typename T>
void Loop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  constexpr T kPositive = static_cast<T>(Constants::kPositive);
  constexpr T kNegative = static_cast<T>(Constants::kNegative);
  ForEachChunk<T, T, 1>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
    T e[kElementwiseChunk];
    ApplyElementary(Elementary::kExpm1, a[0], e, count);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < count; ++i) {
      // Both, since a product in a branch is not vectorized.
      const T negative = kNegative * e[i];
      const T positive = kPositive * a[0][i];
      result[i] = a[0][i] < 0 ? negative : positive;
    }
  });
}

template <typename Constants>
struct Gradient {
  template <typename T>
  T operator()(T dy, T y) const {
    const T slope =
        y < 0 ? y + static_cast<T>(Constants::kNegative) : static_cast<T>(Constants::kPositive);
    return dy * slope;
  }
};

template <typename Constants>
void RegisterKernels(Registry& registry, absl::string_view op, absl::string_view gradient_op) {
  RegisterFloatActivation<Loop<Constants, float>, Loop<Constants, double>, 3000>(registry, op);
  using F = Gradient<Constants>;
  RegisterFloatActivationGrad<internal::BinaryLoop<F, float, float>,
                              internal::BinaryLoop<F, double, double>, 500>(registry, gradient_op);
}

}  // namespace

void Register(Registry& registry) {
  RegisterActivation(registry, "Elu", "", kFloatActivationTypes,
                     R"(Computes the exponential linear unit element-wise.

Negative elements x become e^x - 1, others stay as they are.)");
  RegisterActivationGrad(registry, "EluGrad", "outputs", "", kFloatActivationTypes,
                         R"(Computes the gradient of Elu from its results.

Gradients are multiplied by `outputs + 1` where `outputs` is negative.)");
  RegisterKernels<EluConstants>(registry, "Elu", "EluGrad");
  RegisterActivation(registry, "Selu", "", kFloatActivationTypes,
                     R"(Computes the scaled exponential linear unit element-wise.

Negative elements x become scale * alpha * (e^x - 1), others scale * x, with scale = 1.0507 and
alpha = 1.6733 as in Klambauer et al., Self-Normalizing Neural Networks (2017).)");
  RegisterActivationGrad(registry, "SeluGrad", "outputs", "", kFloatActivationTypes,
                         R"(Computes the gradient of Selu from its results.

Gradients are multiplied by `outputs + scale * alpha` where `outputs` is negative, and by `scale`
elsewhere.)");
  RegisterKernels<SeluConstants>(registry, "Selu", "SeluGrad");
}

}  // namespace gradflow::elu
