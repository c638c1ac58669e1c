// Names used by many tests, in one place: unity builds compile several tests together.
#ifndef GRADFLOW_TESTS_TESTING_CONSTANTS_H_
#define GRADFLOW_TESTS_TESTING_CONSTANTS_H_

#include <limits>

#include "absl/status/status.h"

namespace gradflow::testing {

inline constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Also used as doubles, to which they convert exactly.
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_CONSTANTS_H_
