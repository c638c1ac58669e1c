// Names that tests say often, in one place: a unity build compiles several of them together.
#ifndef GRADFLOW_TESTS_TESTING_CONSTANTS_H_
#define GRADFLOW_TESTS_TESTING_CONSTANTS_H_

#include <limits>

#include "absl/status/status.h"

namespace gradflow::testing {

inline constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Also where doubles are meant, to which they convert as they are.
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_CONSTANTS_H_
