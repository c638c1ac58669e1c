// The elementary functions, the standard library's functions as references, and the allowed errors.
#ifndef GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_
#define GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "gradflow/ops/common/elementary_simd.h"

namespace gradflow::testing {

template <typename Real>
struct ElementaryCase {
  const char* name;
  Elementary function;
  Real (*reference)(Real);
  // The allowed error in units in the last place. Subnormal results may have one unit more.
  double ulps;
  // The allowed error of floats, if it differs; otherwise 0.
  double float_ulps = 0;
};

// References use the type Real, which is wider than the tested type.
template <typename Real>
inline constexpr ElementaryCase<Real> kElementaryCases[] = {
    {"acos", Elementary::kAcos, std::acos, 1, 1.3},  {"acosh", Elementary::kAcosh, std::acosh, 1},
    {"asin", Elementary::kAsin, std::asin, 1, 2.5},  {"asinh", Elementary::kAsinh, std::asinh, 1},
    {"atan", Elementary::kAtan, std::atan, 1, 2},    {"atanh", Elementary::kAtanh, std::atanh, 1},
    {"cos", Elementary::kCos, std::cos, 1},          {"cosh", Elementary::kCosh, std::cosh, 2},
    {"erf", Elementary::kErf, std::erf, 2, 2.2},     {"erfc", Elementary::kErfc, std::erfc, 2},
    {"exp", Elementary::kExp, std::exp, 1},          {"expm1", Elementary::kExpm1, std::expm1, 1.1},
    {"lgamma", Elementary::kLgamma, std::lgamma, 5}, {"log", Elementary::kLog, std::log, 1},
    {"log1p", Elementary::kLog1p, std::log1p, 1.1},  {"sin", Elementary::kSin, std::sin, 1},
    {"sinh", Elementary::kSinh, std::sinh, 2},       {"tan", Elementary::kTan, std::tan, 1},
    {"tanh", Elementary::kTanh, std::tanh, 1, 1.3},
};

// Returns the distance between `value` and the exact result in units in the last place. Returns a
// large number if only one of them is NaN or infinite.
template <typename T, typename Real>
double ErrorInUlps(T value, Real exact) {
  constexpr double kWrong = 1e9;
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(value)) {
    return std::isnan(exact) == std::isnan(value) ? 0 : kWrong;
  }
  if (value == static_cast<T>(exact)) return 0;
  // Results next to the largest number may round to infinity.
  const Real almost_infinite = Real{Limits::max()} * Real{0.9999999L};
  if (std::isinf(value)) return std::abs(exact) > almost_infinite ? 1 : kWrong;
  if (std::isinf(static_cast<T>(exact))) {
    return std::abs(Real{value}) > almost_infinite ? 1 : kWrong;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, Limits::min_exponent);
  return static_cast<double>(std::abs(Real{value} - exact) /
                             std::ldexp(Real{1}, exponent - Limits::digits));
}

// Returns the allowed error of a result.
template <typename T, typename Real>
double AllowedUlps(const ElementaryCase<Real>& c, Real exact) {
  const bool is_tiny = std::abs(exact) < 16 * std::numeric_limits<T>::min();
  const double ulps = std::is_same_v<T, float> && c.float_ulps > 0 ? c.float_ulps : c.ulps;
  return ulps + (is_tiny ? 1 : 0) + 0.01;
}

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_
