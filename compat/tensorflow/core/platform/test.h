// GoogleTest, and helpers for tests: a temporary directory, a folder of data and a random seed.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

#ifndef ABSL_USES_STD_STRING_VIEW
// Lets ContainsRegex and MatchesRegex accept absl::string_view, such as the message of a status, if
// it is not std::string_view.
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
// Returns the folder of TensorFlow's sources, for tests that read data in them: "tensorflow" in the
// folder of the environment variable TEST_SRCDIR.
inline std::string TensorFlowSrcRoot() {
  const char* const sources = std::getenv("TEST_SRCDIR");
  return (sources == nullptr ? std::string() : std::string(sources) + "/") + "tensorflow";
}
// Returns the value of --gtest_random_seed, or a constant if it is not set.
inline int RandomSeed() {
  const int seed = ::testing::UnitTest::GetInstance()->random_seed();
  return seed == 0 ? 301 : seed;
}

}  // namespace testing
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
