// Conversions between float and 16-bit types.
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

// Floats of all exponents, whose mantissas are around those of ties.
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
    // The last ones are single.
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

// All values; the last ones are single.
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

}  // namespace
}  // namespace gradflow
