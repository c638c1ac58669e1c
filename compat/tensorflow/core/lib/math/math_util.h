// MathUtil: integer division, powers and common divisors.
#ifndef GRADFLOW_COMPAT_CORE_LIB_MATH_MATH_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_MATH_MATH_UTIL_H_

#include <cstdint>

#include "tensorflow/core/platform/types.h"

namespace tensorflow {

class MathUtil {
 public:
  // Return the quotient, rounded up or down. REQUIRES: denominator != 0
  template <typename T>
  static T CeilOfRatio(T numerator, T denominator) {
    const T quotient = numerator / denominator;
    const bool positive = (numerator > 0) == (denominator > 0);
    return quotient + (positive && quotient * denominator != numerator ? 1 : 0);
  }
  template <typename T>
  static T FloorOfRatio(T numerator, T denominator) {
    const T quotient = numerator / denominator;
    const bool positive = (numerator > 0) == (denominator > 0);
    return quotient - (!positive && quotient * denominator != numerator ? 1 : 0);
  }
  // Returns the greatest common divisor of nonnegative numbers.
  template <typename T>
  static T GCD(T x, T y) {
    while (y != 0) {
      const T rest = x % y;
      x = y;
      y = rest;
    }
    return x;
  }
  // Returns base to the power `exponent`. REQUIRES: exponent >= 0
  template <typename T>
  static T IPow(T base, int exponent) {
    T power = T(1);
    for (; exponent > 0; exponent >>= 1, base = base * base) {
      if (exponent & 1) power = power * base;
    }
    return power;
  }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_MATH_MATH_UTIL_H_
