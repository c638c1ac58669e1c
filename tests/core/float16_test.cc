#include "gradflow/core/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

namespace gradflow {
namespace {

// Parameters of a format, for computing in double, which is exact.
struct Format {
  int mantissa_bits;
  int min_exponent;
  double max;
};
constexpr Format kHalf = {10, -14, 65504};
constexpr Format kBfloat16 = {7, -126, 0x1.FEp127};

template <typename T>
constexpr Format FormatOf() {
  return std::is_same_v<T, half> ? kHalf : kBfloat16;
}

// Decodes 16 bits by the definition of the format.
double Decode(uint16_t bits, Format format) {
  const int exponent_bits = 15 - format.mantissa_bits;
  const int exponent = (bits >> format.mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int hidden = exponent == 0 ? 0 : 1 << format.mantissa_bits;
  const int shift = std::max(exponent, 1) - 1 + format.min_exponent - format.mantissa_bits;
  return sign * std::ldexp(hidden + mantissa, shift);
}

// Rounds `value` to the nearest number of the format, ties to even.
double Round(double value, Format format) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent) - format.mantissa_bits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  return std::abs(rounded) > format.max
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : rounded;
}

template <typename T, typename From>
::testing::AssertionResult RoundsToNearest(From f) {
  const T value(f);
  const double expected = Round(f, FormatOf<T>());
  const double found = Decode(value.bits, FormatOf<T>());
  const bool same = std::isnan(expected)
                        ? std::isnan(found)
                        : found == expected && std::signbit(found) == std::signbit(expected);
  if (same) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << std::hexfloat << f << " became " << found << " (bits "
                                       << value.bits << "), expected " << expected;
}

template <typename T>
class Float16Test : public ::testing::Test {};
struct TypeNames {
  template <typename T>
  static std::string GetName(int) {
    return std::is_same_v<T, half> ? "half" : "bfloat16";
  }
};
using Types = ::testing::Types<half, bfloat16>;
TYPED_TEST_SUITE(Float16Test, Types, TypeNames);

TYPED_TEST(Float16Test, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto value = TypeParam::FromBits(bits);
    const float f = value;
    const double expected = Decode(bits, FormatOf<TypeParam>());
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f)) << bits;
      const TypeParam back(f);
      ASSERT_TRUE(std::isnan(float{back})) << bits;
      ASSERT_EQ(back.bits & 0x8000, bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(f, expected) << bits;
      ASSERT_EQ(TypeParam(f).bits, bits);
    }
  }
}

TYPED_TEST(Float16Test, TiesBetweenNeighborsGoToEven) {
  // All pairs of adjacent numbers, and the largest number with its successor in an unbounded
  // format.
  const uint16_t infinity = std::numeric_limits<TypeParam>::infinity().bits;
  for (uint16_t bits = 0; bits < infinity; ++bits) {
    const Format format = FormatOf<TypeParam>();
    const double below = Decode(bits, format);
    const double above =
        bits + 1 == infinity ? std::ldexp(1, std::ilogb(format.max) + 1) : Decode(bits + 1, format);
    const auto middle = static_cast<float>((below + above) / 2);
    const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(TypeParam(middle).bits, even);
    ASSERT_EQ(TypeParam(-middle).bits, even | 0x8000);
    ASSERT_EQ(TypeParam(std::nextafter(middle, 0.0f)).bits, bits);
    ASSERT_EQ(TypeParam(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits,
              bits + 1);
  }
}

TYPED_TEST(Float16Test, RoundsEveryKindOfFloat) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000000; ++i) {
    ASSERT_TRUE(RoundsToNearest<TypeParam>(internal::BitsToFloat(random())));
  }
  // Random bits are rarely subnormal, zero or overflowing in half.
  std::uniform_real_distribution<float> exponents(-30, 18);
  for (int i = 0; i < 2000000; ++i) {
    ASSERT_TRUE(RoundsToNearest<TypeParam>(std::exp2(exponents(random))));
  }
}

TYPED_TEST(Float16Test, RoundsDoublesOnce) {
  // Ties, and the doubles next to them, whose nearest float is the tie.
  const uint16_t infinity = std::numeric_limits<TypeParam>::infinity().bits;
  const Format format = FormatOf<TypeParam>();
  for (uint16_t bits = 0; bits < infinity; ++bits) {
    const double below = Decode(bits, format);
    const double above =
        bits + 1 == infinity ? std::ldexp(1, std::ilogb(format.max) + 1) : Decode(bits + 1, format);
    const double middle = (below + above) / 2;
    for (const double value :
         {middle, std::nextafter(middle, below), std::nextafter(middle, above)}) {
      ASSERT_TRUE(RoundsToNearest<TypeParam>(value));
      ASSERT_TRUE(RoundsToNearest<TypeParam>(-value));
    }
  }
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int> distances(20, 53);
  for (int i = 0; i < 2000000; ++i) {
    const uint16_t bits = static_cast<uint16_t>(random() % (infinity - 1));
    const double below = Decode(bits, format);
    const double middle = (below + Decode(bits + 1, format)) / 2;
    const double off = std::ldexp(middle, -distances(random));
    ASSERT_TRUE(RoundsToNearest<TypeParam>(i % 2 == 0 ? middle + off : middle - off));
    ASSERT_TRUE(RoundsToNearest<TypeParam>(i % 2 == 0 ? -middle - off : off - middle));
    // Random doubles, which are mostly out of range.
    const uint64_t any = random();
    double value;
    std::memcpy(&value, &any, sizeof(value));
    ASSERT_TRUE(RoundsToNearest<TypeParam>(value));
  }
  using Limits = std::numeric_limits<double>;
  for (const double d : {0.0, Limits::denorm_min(), Limits::min(), Limits::max(),
                         Limits::infinity(), Limits::quiet_NaN(), 0x1p-149, 0x1.8p-150, 0x1p-25,
                         0x1.0000000000001p-25, 0x1p-134, 0x1.0000000000001p-134, 65520.0,
                         std::nextafter(65520.0, 0.0), 0x1.FFp127, 0x1.FEFFFFFFFFFFFp127}) {
    EXPECT_TRUE(RoundsToNearest<TypeParam>(d));
    EXPECT_TRUE(RoundsToNearest<TypeParam>(-d));
  }
}

TEST(Float16Test, KnownDoublesRoundOnce) {
  // The numbers are slightly above the midpoint of 1 and 1 + 2^-10. The nearest float is the
  // midpoint.
  EXPECT_EQ(float{half(1.00048828218621)}, 1.0009765625f);
  EXPECT_EQ(float{half(-1.00048828218621)}, -1.0009765625f);
  EXPECT_EQ(float{half(1.00048828125)}, 1.0f);
  EXPECT_EQ(float{bfloat16(1.00390625000001)}, 1.0078125f);
}

TEST(Float16Test, IntegersRoundOnce) {
  // The integers exceed a tie by one. A float loses the difference, and in the last case a double
  // also does.
  EXPECT_EQ(float{bfloat16((1 << 30) + (1 << 22) + 1)}, 0x1p30f + 0x1p23f);
  EXPECT_EQ(float{bfloat16(-(1 << 30) - (1 << 22) - 1)}, -0x1p30f - 0x1p23f);
  EXPECT_EQ(float{bfloat16((1 << 30) + (1 << 22))}, 0x1p30f);
  const int64_t middle = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(float{bfloat16(middle + 1)}, 0x1p62f + 0x1p55f);
  EXPECT_EQ(float{bfloat16(middle)}, 0x1p62f);
  EXPECT_EQ(float{bfloat16(middle - 1)}, 0x1p62f);
  EXPECT_EQ(float{bfloat16(-middle - 1)}, -0x1p62f - 0x1p55f);
  EXPECT_EQ(float{bfloat16(-middle + 1)}, -0x1p62f);
  EXPECT_EQ(float{bfloat16((uint64_t{1} << 63) + (uint64_t{1} << 55) + 1)}, 0x1p63f + 0x1p56f);
  EXPECT_EQ(float{bfloat16(std::numeric_limits<uint64_t>::max())}, 0x1p64f);
  EXPECT_EQ(float{bfloat16(std::numeric_limits<int64_t>::min())}, -0x1p63f);
  EXPECT_EQ(float{half(int64_t{2049})}, 2048.0f);
  EXPECT_EQ(float{half(int64_t{-2051})}, -2052.0f);
  EXPECT_TRUE(std::isinf(float{half(std::numeric_limits<int64_t>::max())}));
}

TYPED_TEST(Float16Test, ConvertsExtremes) {
  using Limits = std::numeric_limits<float>;
  for (const float f : {0.0f, Limits::denorm_min(), Limits::min(), Limits::max(),
                        Limits::infinity(), Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    EXPECT_TRUE(RoundsToNearest<TypeParam>(f));
    EXPECT_TRUE(RoundsToNearest<TypeParam>(-f));
  }
  // The payload of this NaN is only in the discarded bits.
  EXPECT_TRUE(std::isnan(float{TypeParam(internal::BitsToFloat(0x7f800001))}));
  EXPECT_TRUE(std::isnan(float{TypeParam(internal::BitsToFloat(0xff800001))}));
}

TYPED_TEST(Float16Test, LimitsMatchTheFormat) {
  using Limits = std::numeric_limits<TypeParam>;
  constexpr Format format = FormatOf<TypeParam>();
  EXPECT_EQ(float{Limits::max()}, format.max);
  EXPECT_EQ(float{Limits::lowest()}, -format.max);
  EXPECT_EQ(float{Limits::min()}, std::ldexp(1, format.min_exponent));
  EXPECT_EQ(float{Limits::epsilon()}, std::ldexp(1, -format.mantissa_bits));
  EXPECT_EQ(Limits::digits, format.mantissa_bits + 1);
  EXPECT_TRUE(std::isinf(float{Limits::infinity()}));
  EXPECT_TRUE(std::isnan(float{Limits::quiet_NaN()}));
}

TYPED_TEST(Float16Test, ArithmeticRoundsOnce) {
  TypeParam value(1);
  value += TypeParam(2);
  EXPECT_EQ(float{value}, 3.0f);
  value *= TypeParam(1.5);
  EXPECT_EQ(float{value}, 4.5f);
  value -= TypeParam(int64_t{5});
  EXPECT_EQ(float{value}, -0.5f);
  value /= TypeParam(3);
  EXPECT_EQ(double{value}, Round(-0.5f / 3.0f, FormatOf<TypeParam>()));
  EXPECT_EQ(float{TypeParam(1)} + float{std::numeric_limits<TypeParam>::epsilon()} / 2,
            1 + std::ldexp(1, -FormatOf<TypeParam>().mantissa_bits - 1));
  EXPECT_TRUE(std::is_trivially_copyable_v<TypeParam>);
}

}  // namespace
}  // namespace gradflow
