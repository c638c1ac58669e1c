// UniformDistribution and NormalDistribution over PhiloxRandom. Their numbers differ from the
// numbers of TensorFlow's kernels.
#ifndef GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_
#define GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_

#include <cmath>
#include <type_traits>

#include "tensorflow/core/lib/random/philox_random.h"

namespace tensorflow {
namespace random {

// Generates numbers in [0, 1), or integers in [lo, hi) if bounds are given.
template <class Generator, typename T>
class UniformDistribution {
 public:
  // A 64-bit number takes two numbers of the generator.
  static constexpr int kResultElementCount =
      sizeof(T) == 8 ? Generator::kResultElementCount / 2 : Generator::kResultElementCount;
  static constexpr int kElementCost = 3;
  static constexpr bool kVariableSamplesPerOutput = false;
  using ResultType = Array<T, kResultElementCount>;
  using ResultElementType = T;

  UniformDistribution() = default;
  // REQUIRES: lo < hi
  UniformDistribution(T lo, T hi)
      : lo_(lo), range_(static_cast<uint64>(hi) - static_cast<uint64>(lo)) {}

  ResultType operator()(Generator* gen) {
    const typename Generator::ResultType bits = (*gen)();
    ResultType result;
    for (int i = 0; i < kResultElementCount; ++i) {
      const uint64 word =
          sizeof(T) == 8 ? bits[2 * i] | uint64{bits[2 * i + 1]} << 32 : uint64{bits[i]};
      if constexpr (std::is_integral_v<T>) {
        result[i] = static_cast<T>(static_cast<uint64>(lo_) + word % range_);
      } else if constexpr (std::is_same_v<T, double>) {
        result[i] = static_cast<double>(word >> 11) * 0x1p-53;
      } else {
        // Rounding may reach 1 in 16-bit types, so they use fewer bits.
        constexpr int kBits = sizeof(T) == 2 ? 7 : 24;
        result[i] = static_cast<T>(std::ldexp(static_cast<float>(word >> (32 - kBits)), -kBits));
      }
    }
    return result;
  }

 private:
  T lo_{};
  uint64 range_ = 1;
};

// Generates normally distributed numbers by the Box-Muller method.
template <class Generator, typename T>
class NormalDistribution {
 public:
  static constexpr int kResultElementCount = UniformDistribution<Generator, T>::kResultElementCount;
  static constexpr int kElementCost = 70;
  static constexpr bool kVariableSamplesPerOutput = false;
  using ResultType = Array<T, kResultElementCount>;
  using ResultElementType = T;

  ResultType operator()(Generator* gen) {
    UniformDistribution<Generator, std::conditional_t<sizeof(T) == 8, double, float>> uniform;
    const auto u = uniform(gen);
    ResultType result;
    for (int i = 0; i < kResultElementCount; i += 2) {
      // 1 - u is not 0.
      const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(u[i])));
      const double angle = 2 * 3.14159265358979323846 * static_cast<double>(u[i + 1]);
      result[i] = static_cast<T>(radius * std::cos(angle));
      result[i + 1] = static_cast<T>(radius * std::sin(angle));
    }
    return result;
  }
};

}  // namespace random
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_RANDOM_RANDOM_DISTRIBUTIONS_H_
