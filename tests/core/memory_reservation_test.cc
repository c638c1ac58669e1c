#include "gradflow/core/memory_reservation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>

#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;

// An allocator that only allows 100 bytes of external memory.
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

TEST(MemoryReservation, GrowsAndShrinksWithinTheLimit) {
  SmallAllocator allocator;
  {
    MemoryReservation reservation(&allocator);
    EXPECT_EQ(allocator.charged, 0);
    EXPECT_TRUE(reservation.Set(60));
    EXPECT_EQ(allocator.charged, 60);
    MemoryReservation other(&allocator);
    EXPECT_FALSE(other.Set(41));
    EXPECT_TRUE(other.Set(40));
    EXPECT_FALSE(reservation.Set(61));
    EXPECT_EQ(reservation.bytes(), 60);
    EXPECT_TRUE(reservation.Set(10));
    EXPECT_EQ(allocator.charged, 50);
    EXPECT_TRUE(other.Set(90));
    EXPECT_EQ(allocator.charged, 100);
  }
  EXPECT_EQ(allocator.charged, 0);
}

TEST(MemoryReservation, ErrorNamesTheReservation) {
  SmallAllocator allocator;
  MemoryReservation reservation(&allocator);
  EXPECT_THAT(reservation.Set(100.0, "the plan"), IsOk());
  EXPECT_THAT(
      reservation.Set(101.0, "the plan"),
      StatusIs(absl::StatusCode::kResourceExhausted, "out of memory for the plan, 101 bytes"));
  for (const double bytes : {1e18, 1e30, std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(reservation.Set(bytes, "the plan"), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_EQ(allocator.charged, 100);
}

}  // namespace
}  // namespace gradflow
