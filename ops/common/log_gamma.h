// The logarithm of |Gamma(x)|, computed by the C library.
#ifndef GRADFLOW_OPS_COMMON_LOG_GAMMA_H_
#define GRADFLOW_OPS_COMMON_LOG_GAMMA_H_

#include <math.h>

namespace gradflow {

// Unlike std::lgamma(), does not write the global variable `signgam`.
inline double LogGamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_LOG_GAMMA_H_
