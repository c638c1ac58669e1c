#include "gradflow/ops/random/philox.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/ops/common/simd.h"

namespace gradflow {
namespace {

TEST(Philox, VectorsHaveTheSameNumbers) {
  struct Counter {
    uint64_t low;
    uint64_t high;
  };
  // Counters that carry into each word, at several positions of a vector.
  const std::vector<Counter> counters = {{0, 0},
                                         {0xfffffff0, 7},
                                         {0xffffffff, 7},
                                         {UINT64_MAX - 20, 0xffffffff},
                                         {UINT64_MAX - 3, UINT64_MAX},
                                         {0x123456789abcdef, 0xfedcba987654321}};
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target));
    for (const Counter& counter : counters) {
      for (const int64_t n : {0, 1, 3, 4, 15, 16, 17, 50}) {
        Philox one_at_a_time(0x0123456789abcdef, counter.low, counter.high);
        Philox many = one_at_a_time;
        std::vector<Philox::Numbers> numbers(n + 1, Philox::Numbers{1, 2, 3, 4});
        many.Next(n, numbers.data());
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ(numbers[i], one_at_a_time.Next()) << target << i;
        EXPECT_EQ(numbers[n], (Philox::Numbers{1, 2, 3, 4}));
        EXPECT_EQ(many.Next(), one_at_a_time.Next());
      }
    }
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

}  // namespace
}  // namespace gradflow
