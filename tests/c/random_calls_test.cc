// Calls of the C API in random orders. The variable GRADFLOW_RANDOM_CALLS sets the number of
// orders; the fuzzer `c_api` makes more of them.
#include "tests/c/random_calls.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/testing/heap_meter.h"
#include "tests/testing/mutate.h"
#include "tests/testing/subprocess.h"

namespace gradflow::capi_test {
namespace {

TEST(CRandomCallsTest, EveryOrderOfCallsIsSafe) {
  constexpr int64_t kMaxMemory = 64 << 20;
  constexpr size_t kBytes = 3000;
  const char* const requested = std::getenv("GRADFLOW_RANDOM_CALLS");
  const int count = requested == nullptr ? 40 : std::atoi(requested);
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    testing::MutationRandom random(seed);
    std::string bytes;
    while (bytes.size() < kBytes) bytes.push_back(static_cast<char>(random.Below(256)));
    const testing::HeapMeter meter;
    CallInRandomOrder(bytes);
    EXPECT_LT(meter.peak(), kMaxMemory);
  }
}

TEST(CRandomCallsTest, ReplaysTheCorpus) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(GRADFLOW_TEST_DATA_DIR "/corpus/c_api")) {
    SCOPED_TRACE(entry.path());
    CallInRandomOrder(testing::ReadFile(entry.path()));
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace gradflow::capi_test
