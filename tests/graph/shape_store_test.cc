#include "gradflow/graph/shape_store.h"

#include <gtest/gtest.h>

#include <vector>

namespace gradflow::internal {
namespace {

const PartialTensorShape* Add(ShapeStore* store, std::vector<PartialTensorShape> shapes) {
  return store->Add(absl::MakeSpan(shapes));
}

TEST(ShapeStore, SharesShapesThatFollowEachOther) {
  ShapeStore store;
  const PartialTensorShape* const a = Add(&store, {{2, -1}});
  const PartialTensorShape* const b = Add(&store, {{3}});
  EXPECT_EQ(*a, PartialTensorShape({2, -1}));
  EXPECT_EQ(Add(&store, {{2, -1}}), a);
  EXPECT_EQ(Add(&store, {{3}}), b);
  EXPECT_NE(Add(&store, {PartialTensorShape()}), a);
  EXPECT_EQ(store.mark().single, 3u);
}

TEST(ShapeStore, KeepsShapesInTheirPlaces) {
  ShapeStore store;
  std::vector<const PartialTensorShape*> places;
  for (int i = 0; i < 1000; ++i) places.push_back(Add(&store, {{i}}));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(*places[i], PartialTensorShape({i}));
}

TEST(ShapeStore, HasAnyNumberOfShapes) {
  ShapeStore store;
  const PartialTensorShape* const two = Add(&store, {{1}, {2}});
  EXPECT_EQ(two[1], PartialTensorShape({2}));
  Add(&store, {});
  for (const int count : {0, 1, 16, 17, 100}) {
    const PartialTensorShape* const shapes = store.Unknown(count);
    for (int i = 0; i < count; ++i) EXPECT_TRUE(shapes[i].unknown_rank());
  }
}

TEST(ShapeStore, ForgetsWhatWasAddedSinceAMark) {
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
