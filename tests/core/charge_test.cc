#include "gradflow/core/charge.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>

#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;

// Has room for 100 bytes that are allocated elsewhere.
class SmallAllocator : public Allocator {
 public:
  void* Allocate(size_t) override { return nullptr; }
  void Deallocate(void*, size_t) override {}
  bool Reserve(size_t bytes) override {
    if (bytes > 100 - charged) return false;
    charged += bytes;
    return true;
  }
  void Release(size_t bytes) override { charged -= bytes; }

  size_t charged = 0;
};

TEST(Charge, GrowsAndShrinksWithinTheLimit) {
  SmallAllocator allocator;
  {
    Charge charge(&allocator);
    EXPECT_EQ(allocator.charged, 0);
    EXPECT_TRUE(charge.Set(60));
    EXPECT_EQ(allocator.charged, 60);
    Charge other(&allocator);
    EXPECT_FALSE(other.Set(41));
    EXPECT_TRUE(other.Set(40));
    EXPECT_FALSE(charge.Set(61));
    EXPECT_EQ(charge.bytes(), 60);
    EXPECT_TRUE(charge.Set(10));
    EXPECT_EQ(allocator.charged, 50);
    EXPECT_TRUE(other.Set(90));
    EXPECT_EQ(allocator.charged, 100);
  }
  EXPECT_EQ(allocator.charged, 0);
}

TEST(Charge, NamesWhatHasNoMemory) {
  SmallAllocator allocator;
  Charge charge(&allocator);
  EXPECT_THAT(charge.Set(100.0, "the plan"), IsOk());
  EXPECT_THAT(charge.Set(101.0, "the plan"), StatusIs(absl::StatusCode::kResourceExhausted,
                                                      "out of memory for the plan, 101 bytes"));
  for (const double bytes : {1e18, 1e30, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(charge.Set(bytes, "the plan"), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_EQ(allocator.charged, 100);
}

}  // namespace
}  // namespace gradflow
