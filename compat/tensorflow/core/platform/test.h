// GoogleTest, and where tests put their files.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace testing {

// A folder to write in.
inline std::string TmpDir() {
  std::string dir = ::testing::TempDir();
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  return dir;
}
// The seed of GoogleTest's --gtest_random_seed, or a fixed one.
inline int RandomSeed() {
  const int seed = ::testing::UnitTest::GetInstance()->random_seed();
  return seed == 0 ? 301 : seed;
}

}  // namespace testing
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TEST_H_
