// Tests of conversions between float and 16-bit types, and of loops over floats.
#include "gradflow/ops/common/elementwise_simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gradflow/core/float16.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow {
namespace {

// Returns floats of all exponents with mantissas around ties.
std::vector<float> FloatsNearTies() {
  std::vector<float> floats;
  for (uint32_t high = 0; high < 1 << 16; ++high) {
    for (const uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u,
                               0x3001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const uint32_t bits = high << 16 | low;
      floats.emplace_back();
      std::memcpy(&floats.back(), &bits, sizeof(bits));
    }
  }
  return floats;
}

template <typename T>
void ExpectBitsOfConversions(ElementType type) {
  const std::vector<float> floats = FloatsNearTies();
  std::vector<T> found(floats.size());
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(SetSimdTarget(target));
    // The last elements do not fill a vector.
    const auto n = static_cast<int64_t>(floats.size()) - 3;
    FloatToFloat16(type, floats.data(), found.data(), n, false);
    int wrong = 0;
    for (int64_t i = 0; i < n && wrong < 5; ++i) {
      const T expected(floats[i]);
      if (std::memcmp(&found[i], &expected, sizeof(T)) == 0) continue;
      ++wrong;
      ADD_FAILURE() << floats[i] << " becomes " << static_cast<float>(found[i]) << ", expected "
                    << static_cast<float>(expected);
    }
  }
  SetSimdTarget("");
}

TEST(FloatToFloat16, HasTheBitsOfHalf) { ExpectBitsOfConversions<half>(ElementType::kHalf); }

TEST(FloatToFloat16, HasTheBitsOfBfloat16) {
  ExpectBitsOfConversions<bfloat16>(ElementType::kBfloat16);
}

// Converts all values. The last elements do not fill a vector.
template <typename T>
void ExpectFloatsOf(ElementType type) {
  std::vector<T> all(1 << 16);
  for (uint32_t bits = 0; bits < all.size(); ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    std::memcpy(&all[bits], &pattern, sizeof(pattern));
  }
  std::vector<float> found(all.size());
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(SetSimdTarget(target));
    const auto n = static_cast<int64_t>(all.size()) - 3;
    Float16ToFloat(type, all.data(), found.data(), n);
    int wrong = 0;
    for (int64_t i = 0; i < n && wrong < 5; ++i) {
      const auto expected = static_cast<float>(all[i]);
      if (std::isnan(expected) && std::isnan(found[i])) continue;
      if (std::memcmp(&found[i], &expected, sizeof(expected)) == 0) continue;
      ++wrong;
      ADD_FAILURE() << "bits " << i << " become " << found[i] << ", expected " << expected;
    }
  }
  SetSimdTarget("");
}

TEST(Float16ToFloat, HasTheBitsOfHalf) { ExpectFloatsOf<half>(ElementType::kHalf); }

TEST(Float16ToFloat, HasTheBitsOfBfloat16) { ExpectFloatsOf<bfloat16>(ElementType::kBfloat16); }

struct FloatLoop {
  const char* name;
  void (*run)(const void* const* x, const int64_t* strides, void* out, int64_t n);
  float (*expected)(float x, float y);
};

const FloatLoop kFloatLoops[] = {
    {"add", AddFloats, [](float x, float y) { return x + y; }},
    {"subtract", SubtractFloats, [](float x, float y) { return x - y; }},
    {"multiply", MultiplyFloats, [](float x, float y) { return x * y; }},
    {"relu", ReluFloats, [](float x, float) { return x <= 0 ? 0 : x; }},
    {"relu6", Relu6Floats, [](float x, float) { return x <= 0  ? 0
                                                       : x > 6 ? 6
                                                               : x; }},
};

// Runs a loop that overwrites operand `in_place`, and expects nothing after its n elements to
// change.
void RunInPlace(const FloatLoop& loop, std::vector<float> x, std::vector<float> y, int in_place,
                const int64_t (&strides)[2], int64_t n) {
  const std::vector<float> a = x;
  const std::vector<float> b = y;
  const void* const operands[] = {x.data(), y.data()};
  std::vector<float>& out = in_place == 0 ? x : y;
  loop.run(operands, strides, out.data(), n);
  for (int64_t i = 0; i < n; ++i) {
    const float expected = loop.expected(a[i * strides[0]], b[i * strides[1]]);
    if (std::isnan(expected) && std::isnan(out[i])) continue;
    ASSERT_EQ(std::memcmp(&out[i], &expected, sizeof(float)), 0)
        << "element " << i << " of " << n << " is " << out[i] << ", expected " << expected;
  }
  const std::vector<float>& before = in_place == 0 ? a : b;
  ASSERT_EQ(out[n], before[n]) << "behind " << n << " elements";
}

TEST(FloatLoops, HaveTheBitsOfScalarCodeOnEverySimdTarget) {
  const float infinity = HUGE_VALF;
  const std::vector<float> special = {0.0f,    -0.0f,      NAN,        infinity, -infinity,
                                      6.0f,    6.0000005f, 5.9999995f, 1e-45f,   -1e-45f,
                                      3.4e38f, -3.4e38f,   -1.5f,      2.5f};
  std::vector<float> x;
  std::vector<float> y;
  for (size_t i = 0; i < 80; ++i) {
    x.push_back(special[i % special.size()]);
    y.push_back(special[i * 5 / special.size() % special.size()]);
  }
  // The sentinels after the elements are ordinary numbers.
  x.push_back(7);
  y.push_back(7);
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target));
    for (const FloatLoop& loop : kFloatLoops) {
      for (const int64_t n : {1, 3, 16, 80}) {
        SCOPED_TRACE(target + " " + loop.name);
        x[n] = y[n] = 7;
        RunInPlace(loop, x, y, 0, {1, 1}, n);
        RunInPlace(loop, x, y, 1, {1, 1}, n);
        // One operand is repeated.
        RunInPlace(loop, x, std::vector<float>(n + 1, 2.5f), 0, {1, 0}, n);
        if (std::string(loop.name).find("relu") == 0) continue;
        RunInPlace(loop, {-1.5f}, y, 1, {0, 1}, n);
      }
    }
  }
  SetSimdTarget("");
}

}  // namespace
}  // namespace gradflow
