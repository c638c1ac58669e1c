// Sums and products as policies of reductions (reduction.h). Scans use them as well.
#ifndef GRADFLOW_OPS_MATH_SUM_POLICY_H_
#define GRADFLOW_OPS_MATH_SUM_POLICY_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "gradflow/core/types.h"

namespace gradflow {

// float, half and bfloat16 are summed in double. Results are exact up to the final rounding, unless
// nearly all of the sum cancels.
template <typename T>
struct NarrowSum {
  using Element = T;
  using Accumulator = double;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, double* a) { *a += static_cast<float>(x); }
  static void Merge(double from, double* a) { *a += from; }
  static T Finish(double a, int64_t) { return static_cast<T>(a); }
  // Returns the sum before it is rounded to the element type.
  static double Wide(double a) { return a; }
};

// double is summed with compensation: the error of each addition is accumulated separately (Knuth's
// two-sum). This is as accurate as a sum in twice the precision.
struct DoubleSum {
  using Element = double;
  struct Accumulator {
    double sum;
    double error;
  };
  static Accumulator Nothing() { return {0, 0}; }
  static void Add(double x, Accumulator* a) {
    const double sum = a->sum + x;
    const double x_part = sum - a->sum;
    a->error += (a->sum - (sum - x_part)) + (x - x_part);
    a->sum = sum;
  }
  static void Merge(const Accumulator& from, Accumulator* a) {
    Add(from.sum, a);
    a->error += from.error;
  }
  static double Finish(const Accumulator& a, int64_t) { return Wide(a); }
  static double Wide(const Accumulator& a) {
    // The error term of an infinite sum is NaN.
    return std::isfinite(a.error) ? a.sum + a.error : a.sum;
  }
};

// Integers are summed in 64 bits. The low bits equal the sum that wraps around in T.
template <typename T>
struct IntegerSum {
  using Element = T;
  using Accumulator = uint64_t;
  using WideInteger = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  static Accumulator Nothing() { return 0; }
  static void Add(T x, uint64_t* a) { *a += static_cast<uint64_t>(static_cast<WideInteger>(x)); }
  static void Merge(uint64_t from, uint64_t* a) { *a += from; }
  static T Finish(uint64_t a, int64_t) { return static_cast<T>(a); }
  static WideInteger Wide(uint64_t a) { return static_cast<WideInteger>(a); }
};

template <typename T>
struct SumPolicyOf {
  using type = std::conditional_t<std::is_integral_v<T>, IntegerSum<T>, NarrowSum<T>>;
};
template <>
struct SumPolicyOf<double> {
  using type = DoubleSum;
};
// The sum of real numbers of type T.
template <typename T>
using SumPolicy = typename SumPolicyOf<T>::type;

// Floats are multiplied in double, so that intermediate products neither overflow nor vanish in
// float.
template <typename T>
struct RealProduct {
  using Element = T;
  using Accumulator = double;
  static Accumulator Nothing() { return 1; }
  static void Add(T x, double* a) { *a *= static_cast<double>(x); }
  static void Merge(double from, double* a) { *a *= from; }
  static T Finish(double a, int64_t) { return static_cast<T>(a); }
};

// Integers are multiplied in 64 bits. The low bits equal the product that wraps around in T.
template <typename T>
struct IntegerProduct {
  using Element = T;
  using Accumulator = uint64_t;
  static Accumulator Nothing() { return 1; }
  static void Add(T x, uint64_t* a) { *a *= static_cast<uint64_t>(x); }
  static void Merge(uint64_t from, uint64_t* a) { *a *= from; }
  static T Finish(uint64_t a, int64_t) { return static_cast<T>(a); }
};

template <typename T>
struct ComplexProduct {
  using Element = T;
  using Accumulator = complex128;
  static Accumulator Nothing() { return 1; }
  static void Add(T x, complex128* a) { *a *= complex128(x); }
  static void Merge(const complex128& from, complex128* a) { *a *= from; }
  static T Finish(const complex128& a, int64_t) { return static_cast<T>(a); }
};

// The product of numbers of type T.
template <typename T>
using ProductPolicy =
    std::conditional_t<std::is_integral_v<T>, IntegerProduct<T>,
                       std::conditional_t<kIsComplex<T>, ComplexProduct<T>, RealProduct<T>>>;

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SUM_POLICY_H_
