// The kernels of ScaleAndTranslate, as functions of the distance from a sample.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_IMAGE_SAMPLING_KERNELS_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_IMAGE_SAMPLING_KERNELS_H_

#include <cmath>
#include <cstddef>

#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {
namespace functor {

enum SamplingKernelType {
  Lanczos1Kernel,
  Lanczos3Kernel,
  Lanczos5Kernel,
  GaussianKernel,
  BoxKernel,
  TriangleKernel,
  KeysCubicKernel,
  MitchellCubicKernel,
  SamplingKernelTypeEnd
};

// Returns the type with a name such as "lanczos3", or SamplingKernelTypeEnd.
inline SamplingKernelType SamplingKernelTypeFromString(absl::string_view name) {
  static constexpr const char* kNames[] = {"lanczos1", "lanczos3", "lanczos5",  "gaussian",
                                           "box",      "triangle", "keyscubic", "mitchellcubic"};
  for (int i = 0; i < SamplingKernelTypeEnd; ++i) {
    if (name == kNames[i]) return static_cast<SamplingKernelType>(i);
  }
  return SamplingKernelTypeEnd;
}

// A symmetric function that is 0 beyond its radius.
class SamplingKernel {
 public:
  SamplingKernel(float radius, float (*value)(float x, float radius))
      : radius_(radius), value_(value) {}
  float Radius() const { return radius_; }
  // `value_` need not be 0 beyond the radius.
  float operator()(float x) const {
    const float distance = std::abs(x);
    return distance > radius_ ? 0 : value_(distance, radius_);
  }

 private:
  float radius_;
  float (*value_)(float, float);
};

namespace internal {

inline float Sinc(float x) {
  const float angle = 3.14159265358979f * x;
  return x <= 1e-3f ? 1 : std::sin(angle) / angle;
}
// A cubic Mitchell-Netravali filter with parameters b and c, times 6.
inline float Cubic(float x, float b, float c) {
  const float near = ((12 - 9 * b - 6 * c) * x - (18 - 12 * b - 6 * c)) * x * x + 6 - 2 * b;
  const float far =
      ((-(b + 6 * c) * x + 6 * b + 30 * c) * x - (12 * b + 48 * c)) * x + 8 * b + 24 * c;
  return (x < 1 ? near : far) / 6;
}

}  // namespace internal

inline SamplingKernel CreateLanczosKernel(float radius) {
  return SamplingKernel(radius,
                        [](float x, float r) { return internal::Sinc(x) * internal::Sinc(x / r); });
}
inline SamplingKernel CreateLanczos1Kernel() { return CreateLanczosKernel(1); }
inline SamplingKernel CreateLanczos3Kernel() { return CreateLanczosKernel(3); }
inline SamplingKernel CreateLanczos5Kernel() { return CreateLanczosKernel(5); }
// The radius is three standard deviations.
inline SamplingKernel CreateGaussianKernel() {
  return SamplingKernel(
      1.5f, [](float x, float r) { return x >= r ? 0 : std::exp(-x * x * 9 / (2 * r * r)); });
}
inline SamplingKernel CreateBoxKernel() {
  return SamplingKernel(1, [](float x, float) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; });
}
inline SamplingKernel CreateTriangleKernel() {
  return SamplingKernel(1, [](float x, float) { return 1 - x; });
}
inline SamplingKernel CreateKeysCubicKernel() {
  return SamplingKernel(2, [](float x, float) { return internal::Cubic(x, 0, 0.5f); });
}
inline SamplingKernel CreateMitchellCubicKernel() {
  return SamplingKernel(2, [](float x, float) { return internal::Cubic(x, 1.0f / 3, 1.0f / 3); });
}

}  // namespace functor
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_IMAGE_SAMPLING_KERNELS_H_
