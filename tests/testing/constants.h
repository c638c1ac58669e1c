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

// The style of death tests of programs with threads: it starts the program again, because threads
// do not survive a fork. An emulator runs the program, but cannot start it.
#ifdef GRADFLOW_EMULATED
inline constexpr char kDeathTestStyle[] = "fast";
#else
inline constexpr char kDeathTestStyle[] = "threadsafe";
#endif

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_CONSTANTS_H_
