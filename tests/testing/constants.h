// Names that many tests use. They are in one place, because unity builds compile several tests
// together.
#ifndef GRADFLOW_TESTS_TESTING_CONSTANTS_H_
#define GRADFLOW_TESTS_TESTING_CONSTANTS_H_

#include <limits>

#include "absl/status/status.h"

namespace gradflow::testing {

inline constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

// Also usable as doubles, because the conversion is exact.
inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The death test style of programs with threads. It starts the program again, because threads do
// not survive a fork. An emulator cannot start the program again.
#ifdef GRADFLOW_EMULATED
inline constexpr char kDeathTestStyle[] = "fast";
#else
inline constexpr char kDeathTestStyle[] = "threadsafe";
#endif

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_CONSTANTS_H_
