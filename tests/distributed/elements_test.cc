#include "gradflow/distributed/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gradflow {
namespace distributed {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<T> Merged(CollectiveMerge merge, std::vector<T> a, const std::vector<T>& b) {
  MergeElements(DataTypeToEnum<T>::value, merge, a.data(), b.data(),
                static_cast<int64_t>(a.size()));
  return a;
}

TEST(Elements, MergeByTheFunction) {
  const std::vector<float> a = {1, 5, -3};
  const std::vector<float> b = {4, 2, -7};
  EXPECT_THAT(Merged(CollectiveMerge::kAdd, a, b), ElementsAre(5, 7, -10));
  EXPECT_THAT(Merged(CollectiveMerge::kMul, a, b), ElementsAre(4, 10, 21));
  EXPECT_THAT(Merged(CollectiveMerge::kMin, a, b), ElementsAre(1, 2, -7));
  EXPECT_THAT(Merged(CollectiveMerge::kMax, a, b), ElementsAre(4, 5, -3));
}

TEST(Elements, IntegersWrapAround) {
  constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_THAT(Merged<int32_t>(CollectiveMerge::kAdd, {kMax}, {1}),
              ElementsAre(std::numeric_limits<int32_t>::min()));
  EXPECT_THAT(Merged<int64_t>(CollectiveMerge::kMul, {kMin}, {-1}), ElementsAre(kMin));
}

TEST(Elements, MinimumAndMaximumPropagateNaN) {
  const float nan = std::nanf("");
  for (const CollectiveMerge merge : {CollectiveMerge::kMin, CollectiveMerge::kMax}) {
    for (const float x : Merged<float>(merge, {nan, 1}, {1, nan})) EXPECT_TRUE(std::isnan(x));
  }
}

TEST(Elements, SixteenBitsRoundEachResult) {
  // 1 + 2^-9 is a tie in bfloat16, which has 8 bits.
  EXPECT_THAT(Merged<bfloat16>(CollectiveMerge::kAdd, {bfloat16(1.0f)}, {bfloat16(0x1p-8f)}),
              ElementsAre(bfloat16(1.0f)));
  EXPECT_THAT(Merged<half>(CollectiveMerge::kMul, {half(3.0f)}, {half(0.5f)}),
              ElementsAre(half(1.5f)));
}

TEST(Elements, DivideInTheType) {
  std::vector<int32_t> integers = {7, -7};
  DivideElements(DT_INT32, integers.data(), 2, 2);
  EXPECT_THAT(integers, ElementsAre(3, -3));
  std::vector<float> floats = {1};
  DivideElements(DT_FLOAT, floats.data(), 1, 3);
  EXPECT_THAT(floats, ElementsAre(1.0f / 3.0f));
}

TEST(Elements, OnlyNumbersMerge) {
  for (const DataType dtype : {DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64}) {
    EXPECT_TRUE(CanMerge(dtype));
  }
  for (const DataType dtype : {DT_BOOL, DT_STRING, DT_INT8, DT_COMPLEX64, DT_RESOURCE}) {
    EXPECT_FALSE(CanMerge(dtype));
  }
}

}  // namespace
}  // namespace distributed
}  // namespace gradflow
