#include "gradflow/graph/shape_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gradflow::internal {
namespace {

const PartialTensorShape* Add(ShapeStore* store, std::vector<PartialTensorShape> shapes) {
  int step = -1;
  const PartialTensorShape* const added = store->Add(absl::MakeSpan(shapes), &step);
  for (size_t i = 0; i < shapes.size(); ++i) {
    // Shapes with few dimensions are unchanged after a move, so they can still be compared.
    EXPECT_EQ(added[static_cast<int>(i) * step], shapes[i]);
  }
  return added;
}

TEST(ShapeStore, SharesConsecutiveEqualShapes) {
  ShapeStore store;
  const PartialTensorShape* const a = Add(&store, {{2, -1}});
  const PartialTensorShape* const b = Add(&store, {{3}});
  EXPECT_EQ(*a, PartialTensorShape({2, -1}));
  EXPECT_EQ(Add(&store, {{2, -1}}), a);
  EXPECT_EQ(Add(&store, {{3}}), b);
  EXPECT_NE(Add(&store, {PartialTensorShape()}), a);
  EXPECT_EQ(store.mark().single, 3u);
}

TEST(ShapeStore, CountsTheBytesOfEachShapeOnce) {
  ShapeStore store;
  EXPECT_EQ(store.bytes(), 0);
  const PartialTensorShape large = PartialTensorShape::UnknownOfRank(254);
  Add(&store, {large});
  const int64_t one = store.bytes();
  EXPECT_EQ(one, static_cast<int64_t>(sizeof(large) + large.HeapBytes()));
  EXPECT_GE(one, 254 * 8);
  Add(&store, {large});
  EXPECT_EQ(store.bytes(), one);
  const ShapeStore::Mark mark = store.mark();
  Add(&store, {{7}});
  EXPECT_GT(store.bytes(), one);
  store.Truncate(mark);
  EXPECT_EQ(store.bytes(), one);
}

TEST(ShapeStore, KeepsTheAddressesOfShapes) {
  ShapeStore store;
  std::vector<const PartialTensorShape*> places;
  for (int i = 0; i < 1000; ++i) places.push_back(Add(&store, {{i}}));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(*places[i], PartialTensorShape({i}));
}

TEST(ShapeStore, StoresAnyNumberOfShapes) {
  ShapeStore store;
  const PartialTensorShape* const two = Add(&store, {{1}, {2}});
  EXPECT_EQ(two[1], PartialTensorShape({2}));
  Add(&store, {});
  EXPECT_TRUE(ShapeStore::Unknown()->unknown_rank());
}

TEST(ShapeStore, StoresEqualShapesOnce) {
  ShapeStore store;
  int step = -1;
  std::vector<PartialTensorShape> many(100, PartialTensorShape::UnknownOfRank(254));
  store.Add(absl::MakeSpan(many), &step);
  EXPECT_EQ(step, 0);
  EXPECT_EQ(store.mark().single, 1u);
  EXPECT_LT(store.bytes(), 3000);
  many[50].set_dim(0, 2);
  store.Add(absl::MakeSpan(many), &step);
  EXPECT_EQ(step, 1);
  EXPECT_EQ(store.mark().several, 1u);
  EXPECT_THAT(store.bytes(), ::testing::AllOf(::testing::Gt(3 * 254 * 8), ::testing::Lt(20'000)));
}

TEST(ShapeStore, ForgetsShapesAddedSinceAMark) {
  ShapeStore store;
  const PartialTensorShape* const a = Add(&store, {{1}});
  const ShapeStore::Mark mark = store.mark();
  Add(&store, {{2}});
  Add(&store, {{3}, {4}});
  store.Truncate(mark);
  EXPECT_EQ(store.mark().single, 1u);
  EXPECT_EQ(store.mark().several, 0u);
  EXPECT_EQ(*a, PartialTensorShape({1}));
  EXPECT_EQ(*Add(&store, {{2}}), PartialTensorShape({2}));
}

}  // namespace
}  // namespace gradflow::internal
