// The elementary functions, those of the standard library that they are compared with, and how far
// apart they may be.
#ifndef GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_
#define GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_

#include <cmath>

#include "gradflow/ops/common/elementary_simd.h"

namespace gradflow::testing {

template <typename Real>
struct ElementaryCase {
  const char* name;
  Elementary function;
  Real (*reference)(Real);
  // The allowed error in units in the last place. Subnormal results may have one more.
  double ulps;
};

// With the functions of Real, which is wider than the type that is tested.
template <typename Real>
inline constexpr ElementaryCase<Real> kElementaryCases[] = {
    {"acos", Elementary::kAcos, std::acos, 1},       {"acosh", Elementary::kAcosh, std::acosh, 1},
    {"asin", Elementary::kAsin, std::asin, 1},       {"asinh", Elementary::kAsinh, std::asinh, 1},
    {"atan", Elementary::kAtan, std::atan, 1},       {"atanh", Elementary::kAtanh, std::atanh, 1},
    {"cos", Elementary::kCos, std::cos, 1},          {"cosh", Elementary::kCosh, std::cosh, 2},
    {"erf", Elementary::kErf, std::erf, 2},          {"erfc", Elementary::kErfc, std::erfc, 2},
    {"exp", Elementary::kExp, std::exp, 1},          {"expm1", Elementary::kExpm1, std::expm1, 1.1},
    {"lgamma", Elementary::kLgamma, std::lgamma, 5}, {"log", Elementary::kLog, std::log, 1},
    {"log1p", Elementary::kLog1p, std::log1p, 1.1},  {"sin", Elementary::kSin, std::sin, 1},
    {"sinh", Elementary::kSinh, std::sinh, 2},       {"tan", Elementary::kTan, std::tan, 1},
    {"tanh", Elementary::kTanh, std::tanh, 1},
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_OPS_COMMON_ELEMENTARY_CASES_H_
