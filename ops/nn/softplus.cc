// Softplus, Softsign and their gradients.
#include <cmath>
#include <cstdint>

#include "gradflow/core/registry.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"
#include "gradflow/ops/nn/activation.h"

namespace gradflow::softplus {
namespace {

// Sets e[i] = e^-|x[i]|, which never overflows.
template <typename T>
void ExpOfNegativeAbs(const T* x, T* e, int64_t count) {
  for (int64_t i = 0; i < count; ++i) e[i] = -std::abs(x[i]);
  ApplyElementary(Elementary::kExp, e, e, count);
}

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
template <typename T>
void SoftplusLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<T, T, 1>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
    T e[kElementwiseChunk];
    ExpOfNegativeAbs(a[0], e, count);
    ApplyElementary(Elementary::kLog1p, e, e, count);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < count; ++i) result[i] = (a[0][i] > 0 ? a[0][i] : T(0)) + e[i];
  });
}

// dy / (1 + e^-x), in the form whose exponential is at most 1.
template <typename T>
void SoftplusGradLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<T, T, 2>(x, strides, out, n, [&](const T* const* a, T* result, int64_t count) {
    T features[kElementwiseChunk];
    T gradients[kElementwiseChunk];
    T e[kElementwiseChunk];
    const T* const dy = Repeated(a[0], strides[0], count, gradients);
    const T* const v = Repeated(a[1], strides[1], count, features);
    ExpOfNegativeAbs(v, e, count);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < count; ++i) {
      result[i] = dy[i] * ((v[i] >= 0 ? T(1) : e[i]) / (T(1) + e[i]));
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
  RegisterFloatActivation<SoftplusLoop<float>, SoftplusLoop<double>, 6000>(registry, "Softplus");
  RegisterActivationGrad(registry, "SoftplusGrad", "features", "", kFloatActivationTypes,
                         R"(Computes the gradient of Softplus: gradients / (1 + e^-features).)");
  RegisterFloatActivationGrad<SoftplusGradLoop<float>, SoftplusGradLoop<double>, 3000>(
      registry, "SoftplusGrad");
  RegisterActivation(registry, "Softsign", "", kFloatActivationTypes,
                     R"(Computes features / (1 + |features|) element-wise.

The result for an infinity is NaN, as in TensorFlow.)");
  RegisterFloatActivation<internal::UnaryLoop<SoftsignFunction, float, float>,
                          internal::UnaryLoop<SoftsignFunction, double, double>, 1000>(registry,
                                                                                       "Softsign");
  RegisterActivationGrad(registry, "SoftsignGrad", "features", "", kFloatActivationTypes,
                         R"(Computes the gradient of Softsign: gradients / (1 + |features|)^2.)");
  RegisterFloatActivationGrad<internal::BinaryLoop<GradientOfSoftsign, float, float>,
                              internal::BinaryLoop<GradientOfSoftsign, double, double>, 1000>(
      registry, "SoftsignGrad");
}

}  // namespace gradflow::softplus
