// Factors as TensorFlow Lite's integer kernels apply them: in fixed point, with one or two
// roundings. Internal.
#ifndef GRADFLOW_CORE_FIXED_POINT_H_
#define GRADFLOW_CORE_FIXED_POINT_H_

#include <cmath>
#include <cstdint>
#include <limits>

namespace gradflow {

// The factor multiplier * 2^(shift - 31).
struct FixedPoint {
  // Factors must be less than 2^30 in magnitude.
  static constexpr double kMaxFactor = 1 << 30;

  int32_t multiplier = 0;
  int32_t shift = 0;
};

// Returns the nearest factor with 31 significant bits, halves away from 0. Magnitudes below 2^-32
// become 0. REQUIRES: |factor| < FixedPoint::kMaxFactor
inline FixedPoint ToFixedPoint(double factor) {
  constexpr int kBits = 31;
  constexpr int64_t kOne = int64_t{1} << kBits;
  FixedPoint result;
  int shift = 0;
  auto multiplier = static_cast<int64_t>(std::round(std::frexp(factor, &shift) * kOne));
  if (multiplier == kOne) {
    multiplier /= 2;
    ++shift;
  }
  if (multiplier == 0 || shift < -kBits) return result;
  result.multiplier = static_cast<int32_t>(multiplier);
  result.shift = shift;
  return result;
}

// Returns x * 2^-shift, rounded to the nearest integer, halves away from 0. 0 <= shift <= 31.
inline int32_t RoundingShiftRight(int32_t x, int32_t shift) {
  const int64_t mask = (int64_t{1} << shift) - 1;
  const int64_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> shift) + ((x & mask) > threshold ? 1 : 0);
}

// Returns x * factor. The product is rounded to 31 bits after the binary point, halves up, and then
// to an integer, halves away from 0. x * 2^shift wraps around if it exceeds 32 bits.
inline int32_t Multiply(int32_t x, FixedPoint factor) {
  constexpr int64_t kHalf = int64_t{1} << 30;
  const int32_t left = factor.shift > 0 ? factor.shift : 0;
  const auto shifted = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  const int64_t product = int64_t{shifted} * factor.multiplier;
  const int64_t high = (product + (product >= 0 ? kHalf : 1 - kHalf)) / (2 * kHalf);
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  return RoundingShiftRight(static_cast<int32_t>(high < kMax ? high : kMax),
                            factor.shift < 0 ? -factor.shift : 0);
}

// Returns x * factor, rounded once to an integer, halves up. The result is clamped to 32 bits.
inline int32_t MultiplyOnce(int32_t x, FixedPoint factor) {
  const int32_t shift = 31 - factor.shift;
  const int64_t product = int64_t{x} * factor.multiplier;
  // A shift of 0 needs no rounding.
  const int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
  const int64_t result = (product + half) >> shift;
  constexpr int64_t kMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(result < kMin ? kMin : result > kMax ? kMax : result);
}

}  // namespace gradflow

#endif  // GRADFLOW_CORE_FIXED_POINT_H_
