// The values that 0 stands for in GradientOptions. Internal.
#ifndef GRADFLOW_TESTING_GRADIENT_DEFAULTS_H_
#define GRADFLOW_TESTING_GRADIENT_DEFAULTS_H_

namespace gradflow {
namespace testing {

// `is_single` is true for float and complex64.
inline double DefaultDelta(bool is_single) { return is_single ? 1e-2 : 1e-5; }
inline double DefaultMaxError(bool is_single) { return is_single ? 2e-3 : 1e-7; }

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_GRADIENT_DEFAULTS_H_
