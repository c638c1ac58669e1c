// Softplus, Softsign and their gradients.
#include <cmath>
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"
#include "gradflow/ops/nn/activation.h"
#include "gradflow/ops/nn/activation_simd.h"

namespace gradflow::softplus {
namespace {

void FloatLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  ApplySoftplus(static_cast<const float*>(x[0]), static_cast<float*>(out), n);
}
void FloatGradLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  ApplySoftplusGrad(static_cast<const float*>(x[0]), static_cast<const float*>(x[1]),
                    static_cast<float*>(out), n);
}

// Sets e[i] = e^-|x[i]|, which never overflows.
void ExpOfNegativeAbs(const double* x, double* e, int64_t count) {
  for (int64_t i = 0; i < count; ++i) e[i] = -std::abs(x[i]);
  ApplyElementary(Elementary::kExp, e, e, count);
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
void DoubleLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  const auto run = [](const double* const* a, double* result, int64_t count) {
    double e[kElementwiseChunk];
    ExpOfNegativeAbs(a[0], e, count);
    ApplyElementary(Elementary::kLog1p, e, e, count);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < count; ++i) result[i] = (a[0][i] > 0 ? a[0][i] : 0) + e[i];
  };
  ForEachChunk<double, double, 1>(x, strides, out, n, run);
}

// dy / (1 + e^-x), computed with an exponential that is at most 1.
void DoubleGradLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<double, double, 2>(
      x, strides, out, n, [&](const double* const* a, double* result, int64_t count) {
        double e[kElementwiseChunk];
        ExpOfNegativeAbs(a[1], e, count);
        GRADFLOW_SAME_INDEX_LOOP
        for (int64_t i = 0; i < count; ++i) {
          result[i] = a[0][i] * ((a[1][i] >= 0 ? 1 : e[i]) / (1 + e[i]));
        }
      });
}

struct SoftsignFunction {
  template <typename T>
  T operator()(T x) const {
    return x / (T(1) + std::abs(x));
  }
};

struct GradientOfSoftsign {
  template <typename T>
  T operator()(T dy, T x) const {
    const T d = T(1) + std::abs(x);
    return dy / (d * d);
  }
};

}  // namespace

void Register(Registry& registry) {
  RegisterActivation(registry, "Softplus", "", kFloatActivationTypes,
                     R"(Computes log(1 + e^features) element-wise.

Does not overflow, and small results keep their precision.)");
  RegisterFloatActivation<FloatLoop, DoubleLoop, 3000>(registry, "Softplus");
  RegisterActivationGrad(registry, "SoftplusGrad", "features", "", kFloatActivationTypes,
                         R"(Computes the gradient of Softplus: gradients / (1 + e^-features).)");
  RegisterFloatActivationGrad<FloatGradLoop, DoubleGradLoop, 2000>(registry, "SoftplusGrad");
  RegisterActivation(registry, "Softsign", "", kFloatActivationTypes,
                     R"(Computes features / (1 + |features|) element-wise.

The result for an infinity is NaN, as in TensorFlow.)");
  RegisterFloatActivation<internal::kUnaryLoop<SoftsignFunction, float, float>,
                          internal::kUnaryLoop<SoftsignFunction, double, double>, 1000>(registry,
                                                                                        "Softsign");
  RegisterActivationGrad(registry, "SoftsignGrad", "features", "", kFloatActivationTypes,
                         R"(Computes the gradient of Softsign: gradients / (1 + |features|)^2.)");
  RegisterFloatActivationGrad<internal::kBinaryLoop<GradientOfSoftsign, float, float>,
                              internal::kBinaryLoop<GradientOfSoftsign, double, double>, 1000>(
      registry, "SoftsignGrad");
}

}  // namespace gradflow::softplus
