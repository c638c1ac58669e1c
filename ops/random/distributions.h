// Distributions of random numbers, as functions of the numbers of a Philox stream. Integers and
// uniform numbers have the same bits as in TensorFlow. Normal numbers differ in the rounding of
// log, sin and cos.
#ifndef GRADFLOW_OPS_RANDOM_DISTRIBUTIONS_H_
#define GRADFLOW_OPS_RANDOM_DISTRIBUTIONS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "gradflow/core/types.h"
#include "gradflow/ops/random/philox.h"

namespace gradflow {

// Makes numbers in [0, 1): random mantissa bits give a number in [1, 2); then 1 is subtracted.
template <typename T>
struct UnitNumbers {
  // The number of elements made from the four numbers of a counter.
  static constexpr int kPerCounter = 4;
  // Returns a number in [0, 1).
  static T Make(uint32_t bits) {
    if constexpr (std::is_same_v<T, half>) {
      return half(float{half::FromBits(static_cast<uint16_t>(0x3c00 | (bits & 0x3ff)))} - 1.0f);
    } else if constexpr (std::is_same_v<T, bfloat16>) {
      return bfloat16(float{bfloat16::FromBits(static_cast<uint16_t>(0x3f80 | (bits & 0x7f)))} -
                      1.0f);
    } else {
      return internal::BitsToFloat(0x3f800000 | (bits & 0x7fffff)) - 1.0f;
    }
  }
};
template <>
struct UnitNumbers<double> {
  static constexpr int kPerCounter = 2;
  static double Make(uint32_t high, uint32_t low) {
    const uint64_t bits = uint64_t{0x3ff00000 | (high & 0xfffff)} << 32 | low;
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value - 1.0;
  }
};

// The Box-Muller method makes two normal numbers from two numbers in [0, 1).

// Returns the angle in radians. Rounds the product once, as TensorFlow does.
template <typename F>
F Angle(F u) {
  return static_cast<F>(6.283185307179586476925286766559 * double{u});
}
// Returns at least 1e-7, which keeps the logarithm finite.
template <typename F>
F LeastRadius(F u) {
  return std::max(u, F(1.0e-7));
}
template <typename F>
std::array<F, 2> NormalPair(F radius, F angle) {
  const F phi = Angle(angle);
  const F r = std::sqrt(F{-2} * std::log(LeastRadius(radius)));
  return {std::sin(phi) * r, std::cos(phi) * r};
}

// Distributions for FillGroups(). One counter makes a group of kGroup elements.
template <typename T>
struct Uniform {
  using Element = T;
  static constexpr int kGroup = UnitNumbers<T>::kPerCounter;
  static constexpr double kNanoseconds = 4;
  std::array<T, kGroup> operator()(const Philox::Numbers& x) const {
    if constexpr (kGroup == 2) {
      return {UnitNumbers<T>::Make(x[0], x[1]), UnitNumbers<T>::Make(x[2], x[3])};
    } else {
      return {UnitNumbers<T>::Make(x[0]), UnitNumbers<T>::Make(x[1]), UnitNumbers<T>::Make(x[2]),
              UnitNumbers<T>::Make(x[3])};
    }
  }
};

template <typename T>
struct StandardNormal {
  using Element = T;
  static constexpr int kGroup = UnitNumbers<T>::kPerCounter;
  static constexpr double kNanoseconds = 20;
  std::array<T, kGroup> operator()(const Philox::Numbers& x) const {
    if constexpr (kGroup == 2) {
      const Uniform<double> uniform;
      const auto u = uniform(x);
      return NormalPair(u[0], u[1]);
    } else {
      const Uniform<float> uniform;
      const auto u = uniform(x);
      const auto a = NormalPair(u[0], u[1]);
      const auto b = NormalPair(u[2], u[3]);
      return {T(a[0]), T(a[1]), T(b[0]), T(b[1])};
    }
  }
};

// Unsigned integers with random bits.
template <typename T>
struct FullInteger {
  using Element = T;
  static constexpr int kGroup = 16 / sizeof(T);
  static constexpr double kNanoseconds = 3;
  std::array<T, kGroup> operator()(const Philox::Numbers& x) const {
    if constexpr (kGroup == 2) {
      return {uint64_t{x[1]} << 32 | x[0], uint64_t{x[3]} << 32 | x[2]};
    } else {
      return x;
    }
  }
};

// Integers in [low, low + size), computed modulo 2^n, so that signed and unsigned types have the
// same bits.
template <typename T>
struct IntegerRange {
  using Element = T;
  static constexpr int kGroup = FullInteger<T>::kGroup;
  static constexpr double kNanoseconds = 8;
  T low;
  T size;
  std::array<T, kGroup> operator()(const Philox::Numbers& x) const {
    std::array<T, kGroup> values = FullInteger<T>()(x);
    for (T& value : values) value = low + value % size;
    return values;
  }
};

// Normal numbers with a magnitude of less than 2. A group reads as many numbers as it needs.
template <typename T>
struct TruncatedNormal {
  using Element = T;
  static constexpr int kGroup = UnitNumbers<T>::kPerCounter;
  static constexpr double kNanoseconds = 30;
  std::array<T, kGroup> operator()(PhiloxReader* reader) const {
    std::array<T, kGroup> group;
    int size = 0;
    while (true) {
      for (const auto value : Pair(reader)) {
        if (std::abs(value) >= 2) continue;
        group[size++] = T(value);
        if (size == kGroup) return group;
      }
    }
  }

 private:
  static auto Pair(PhiloxReader* reader) {
    const uint32_t a = reader->Next();
    const uint32_t b = reader->Next();
    if constexpr (kGroup == 2) {
      const uint32_t c = reader->Next();
      const uint32_t d = reader->Next();
      return NormalPair(UnitNumbers<double>::Make(a, b), UnitNumbers<double>::Make(c, d));
    } else {
      return NormalPair(UnitNumbers<float>::Make(a), UnitNumbers<float>::Make(b));
    }
  }
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_DISTRIBUTIONS_H_
