// GoogleTest, and helpers for tests: a temporary directory and a random seed.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

#ifndef ABSL_USES_STD_STRING_VIEW
// Lets ContainsRegex and MatchesRegex take an absl::string_view that is a class of Abseil's own, as
// the message of a status is.
template <>
inline bool testing::internal::MatchesRegexMatcher::MatchAndExplain(
    const absl::string_view& s, MatchResultListener* listener) const {
  return MatchAndExplain(std::string(s), listener);
}
#endif

namespace tensorflow {
namespace testing {

// Returns a directory for temporary files.
inline std::string TmpDir() {
  std::string dir = ::testing::TempDir();
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  return dir;
}
// Returns the value of --gtest_random_seed, or a constant if it is not set.
inline int RandomSeed() {
  const int seed = ::testing::UnitTest::GetInstance()->random_seed();
  return seed == 0 ? 301 : seed;
}

}  // namespace testing
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
