#include "gradflow/core/fixed_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace gradflow {
namespace {

constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();

double ValueOf(FixedPoint factor) { return std::ldexp(factor.multiplier, factor.shift - 31); }

TEST(FixedPoint, FactorsHave31SignificantBits) {
  struct Case {
    double factor;
    int32_t multiplier;
    int32_t shift;
  };
  for (const Case& c : {
           Case{0, 0, 0},
           Case{1, 1 << 30, 1},
           Case{0.5, 1 << 30, 0},
           Case{-0.75, -(3 << 29), 0},
           Case{5, 5 << 28, 3},
           Case{1.0 / 3, 1431655765, -1},
           // Rounds up to the next power of two.
           Case{1 - 0x1p-40, 1 << 30, 1},
           // Halves are rounded away from 0.
           Case{0.5 + 0x1p-32, (1 << 30) + 1, 0},
           Case{-0.5 - 0x1p-32, -(1 << 30) - 1, 0},
           Case{0x1p-32, 1 << 30, -31},
           Case{0x1p-33, 0, 0},
           Case{1e-300, 0, 0},
           Case{0x1p30 - 1, kMax - 1, 30},
       }) {
    const FixedPoint found = ToFixedPoint(c.factor);
    EXPECT_EQ(found.multiplier, c.multiplier) << c.factor;
    EXPECT_EQ(found.shift, c.shift) << c.factor;
  }
}

TEST(FixedPoint, ShiftsRoundHalvesAwayFrom0) {
  struct Case {
    int32_t x;
    int32_t shift;
    int32_t result;
  };
  for (const Case& c :
       {Case{5, 0, 5}, Case{5, 1, 3}, Case{-5, 1, -3}, Case{6, 2, 2}, Case{-6, 2, -2},
        Case{5, 2, 1}, Case{-5, 2, -1}, Case{7, 2, 2}, Case{kMax, 31, 1}, Case{kMin, 31, -1},
        Case{1 << 30, 31, 1}, Case{(1 << 30) - 1, 31, 0}, Case{-(1 << 30), 31, -1},
        Case{1 - (1 << 30), 31, 0}, Case{kMin, 0, kMin}}) {
    EXPECT_EQ(RoundingShiftRight(c.x, c.shift), c.result) << c.x << " " << c.shift;
  }
}

struct ProductCase {
  int32_t x;
  double factor;
  int32_t result;
};

// Products are rounded twice: to a multiple of 2^shift, halves up, and to an integer, halves away
// from 0.
TEST(FixedPoint, ProductsAreRoundedTwice) {
  for (const ProductCase& c : {
           ProductCase{7, 0.5, 4},
           ProductCase{-7, 0.5, -3},
           ProductCase{6, 0.25, 2},
           // -1.5: the first rounding is exact.
           ProductCase{-6, 0.25, -2},
           // 1.25 is first rounded to 1.5.
           ProductCase{5, 0.25, 2},
           // -1.25 is first rounded to -1.
           ProductCase{-5, 0.25, -1},
           ProductCase{100, 1, 100},
           ProductCase{-100, 3, -300},
           ProductCase{1000, 1000, 1000000},
           ProductCase{kMax, 0.5, 1 << 30},
           ProductCase{kMin, 0.5, -(1 << 30)},
           ProductCase{kMin, -0x1p-31, 1},
           ProductCase{12345, 0, 0},
           ProductCase{-1, 0x1p29, -(1 << 29)},
       }) {
    EXPECT_EQ(Multiply(c.x, ToFixedPoint(c.factor)), c.result) << c.x << " * " << c.factor;
  }
  // The product of the lowest numbers is clamped.
  EXPECT_EQ(Multiply(kMin, {kMin, 0}), kMax);
}

TEST(FixedPoint, ProductsCanBeRoundedOnce) {
  for (const ProductCase& c : {
           ProductCase{7, 0.5, 4},
           ProductCase{-7, 0.5, -3},
           ProductCase{6, 0.25, 2},
           ProductCase{-6, 0.25, -1},
           // Two roundings give 2.
           ProductCase{5, 0.25, 1},
           ProductCase{-5, 0.25, -1},
           ProductCase{100, 1, 100},
           ProductCase{kMin, -0x1p-31, 1},
           ProductCase{kMax, 3, kMax},
           ProductCase{kMin, 3, kMin},
           ProductCase{1, 0x1p30 - 0x1p-20, 1 << 30},
           ProductCase{12345, 0, 0},
       }) {
    EXPECT_EQ(MultiplyOnce(c.x, ToFixedPoint(c.factor)), c.result) << c.x << " * " << c.factor;
  }
}

TEST(FixedPoint, ProductsAreNearTheExactProduct) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(-32, 12);
  for (int i = 0; i < 200000; ++i) {
    const double factor = std::exp2(exponent(random)) * (i % 2 == 0 ? 1 : -1);
    const FixedPoint fixed = ToFixedPoint(factor);
    EXPECT_NEAR(ValueOf(fixed) / factor, 1, 0x1p-30);
    const double most = std::ldexp(0.999, 31 - std::max(fixed.shift, 0));
    const auto x =
        static_cast<int32_t>(std::uniform_real_distribution<double>(-most, most)(random));
    // Both roundings add an error of a half at most; the first is smaller by the shift.
    const double bound =
        0.5 + (fixed.shift < 0 ? std::ldexp(0.5, fixed.shift) : 0) + (fixed.shift > 0 ? 0.5 : 0);
    ASSERT_LE(std::abs(Multiply(x, fixed) - x * ValueOf(fixed)), bound) << x << " * " << factor;
    ASSERT_LE(std::abs(MultiplyOnce(x, fixed) - x * ValueOf(fixed)), 0.5) << x << " * " << factor;
  }
}

}  // namespace
}  // namespace gradflow
