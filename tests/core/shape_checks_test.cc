// Tests of the shape checks that shape functions and kernels share.
#include "gradflow/core/shape_checks.h"

#include <gtest/gtest.h>

#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ShapeChecks, RanksAreCheckedIfTheyAreKnown) {
  const PartialTensorShape vector({3});
  EXPECT_THAT(CheckRank("x", vector, 1), IsOk());
  EXPECT_THAT(CheckRank("x", PartialTensorShape(), 2), IsOk());
  EXPECT_THAT(CheckRank("x", vector, 2),
              StatusIs(kInvalid, "Shape must be rank 2 but is rank 1: x has shape [3]"));
  EXPECT_THAT(CheckRankAtLeast("x", vector, 1), IsOk());
  EXPECT_THAT(CheckRankAtLeast("x", PartialTensorShape(), 2), IsOk());
  EXPECT_THAT(CheckRankAtLeast("x", vector, 2),
              StatusIs(kInvalid, "Shape must be at least rank 2 but is rank 1: x has shape [3]"));
  EXPECT_THAT(CheckRankAtMost("x", vector, 1), IsOk());
  EXPECT_THAT(CheckRankAtMost("x", PartialTensorShape(), 0), IsOk());
  EXPECT_THAT(CheckRankAtMost("x", vector, 0),
              StatusIs(kInvalid, "Shape must be at most rank 0 but is rank 1: x has shape [3]"));
}

TEST(ShapeChecks, DimensionsAreCheckedIfTheyAreKnown) {
  const PartialTensorShape shape({-1, 3});
  EXPECT_THAT(CheckDim("x", shape, 1, 3), IsOk());
  EXPECT_THAT(CheckDim("x", shape, 0, 9), IsOk());
  EXPECT_THAT(CheckDim("x", shape, 2, 9), IsOk());
  EXPECT_THAT(CheckDim("x", PartialTensorShape(), 0, 9), IsOk());
  EXPECT_THAT(
      CheckDim("x", shape, -1, 2),
      StatusIs(kInvalid, "Dimension must be 2 but is 3: dimension 1 of x, which has shape [?,3]"));
}

TEST(ShapeChecks, DimensionsAreMerged) {
  const PartialTensorShape a({-1, 3});
  const PartialTensorShape b({4, 5});
  EXPECT_EQ(*MergeDims("a", a, 0, "b", b, 0), 4);
  EXPECT_EQ(*MergeDims("b", b, 0, "a", a, 0), 4);
  EXPECT_EQ(*MergeDims("a", a, 0, "a", a, -2), -1);
  EXPECT_EQ(*MergeDims("a", a, -1, "b", PartialTensorShape(), 0), 3);
  EXPECT_THAT(MergeDims("a", a, -1, "b", b, -1).status(),
              StatusIs(kInvalid,
                       "Dimensions must be equal, but are 3 and 5: a has shape [?,3], and b has "
                       "shape [4,5]"));
}

TEST(ShapeChecks, ShapesAreMerged) {
  const PartialTensorShape a({-1, 3});
  EXPECT_EQ(*MergeShapes("a", a, "b", PartialTensorShape({2, -1})), PartialTensorShape({2, 3}));
  EXPECT_EQ(*MergeShapes("a", a, "b", PartialTensorShape()), a);
  EXPECT_EQ(*MergeShapes("b", PartialTensorShape(), "a", a), a);
  EXPECT_THAT(
      MergeShapes("a", a, "b", PartialTensorShape({2, 4})).status(),
      StatusIs(kInvalid,
               "Dimension 1 in both shapes must be equal, but are 3 and 4: a has shape [?,3], and "
               "b has shape [2,4]"));
  EXPECT_THAT(
      MergeShapes("a", a, "b", PartialTensorShape({2})).status(),
      StatusIs(
          kInvalid,
          "Shapes must be equal rank, but are 2 and 1: a has shape [?,3], and b has shape [2]"));
}

}  // namespace
}  // namespace gradflow
