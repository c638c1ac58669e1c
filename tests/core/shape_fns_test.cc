#include "gradflow/core/shape_fns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "gradflow/core/op_def_builder.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOkAndHolds;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

const PartialTensorShape kUnknown{};

TEST(BroadcastShapes, FollowsNumPy) {
  struct Case {
    PartialTensorShape a, b;
    std::string result;
  };
  const Case cases[] = {
      {{2, 3}, {2, 3}, "[2,3]"},  {{2, 3}, {3}, "[2,3]"},
      {{2, 1}, {1, 3}, "[2,3]"},  {TensorShape(), {2, 3}, "[2,3]"},
      {{0, 3}, {1, 3}, "[0,3]"},  {{0}, {1}, "[0]"},
      {{-1, 3}, {2, 1}, "[2,3]"}, {{-1}, {1}, "[?]"},
      {{-1}, {-1}, "[?]"},        {{-1}, {5}, "[5]"},
      {{-1}, {0}, "[0]"},         {kUnknown, {2}, "<unknown>"},
  };
  for (const Case& c : cases) {
    for (const bool swap : {false, true}) {
      const auto result = swap ? BroadcastShapes(c.b, c.a) : BroadcastShapes(c.a, c.b);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->DebugString(), c.result)
          << c.a.DebugString() << " and " << c.b.DebugString();
    }
  }
}

TEST(BroadcastShapes, RejectsIncompatibleShapes) {
  EXPECT_THAT(BroadcastShapes(TensorShape({2, 3}), TensorShape({2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "shapes [2,3] and [2] cannot be broadcast together"));
  EXPECT_THAT(BroadcastShapes(TensorShape({0}), TensorShape({2})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // The product of the broadcast sizes overflows, although each operand is small enough.
  EXPECT_THAT(BroadcastShapes(TensorShape({int64_t{1} << 40, 1}), TensorShape({int64_t{1} << 40})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more elements")));
}

TEST(CanBroadcast, ComparesSizesButNotTheirProduct) {
  const int64_t large = int64_t{1} << 40;
  EXPECT_TRUE(CanBroadcast({2, 1}, {1, 3}));
  EXPECT_TRUE(CanBroadcast({large, 1}, {large}));
  EXPECT_TRUE(CanBroadcast({-1, 3}, {2, -1}));
  EXPECT_TRUE(CanBroadcast(kUnknown, {2}));
  EXPECT_FALSE(CanBroadcast({2, 3}, {2}));
  EXPECT_FALSE(CanBroadcast({-1, 3}, {2, 2}));
  EXPECT_FALSE(CanBroadcast({0}, {2}));
}

TEST(CanonicalAxis, CountsFromTheEnd) {
  EXPECT_EQ(*CanonicalAxis("axis", 1, 2), 1);
  EXPECT_EQ(*CanonicalAxis("axis", -2, 2), 0);
  EXPECT_THAT(CanonicalAxis("axis", 2, 2),
              StatusIs(absl::StatusCode::kInvalidArgument, "axis 2 is out of range [-2, 2)"));
  EXPECT_THAT(CanonicalAxis("axis", INT64_MIN, 2), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CanonicalAxis("axis", 0, 0), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ResolveReshape, FillsInOneDimension) {
  EXPECT_EQ(ResolveReshape({6}, {2, -1})->DebugString(), "[2,3]");
  EXPECT_EQ(ResolveReshape({6}, {6})->DebugString(), "[6]");
  EXPECT_EQ(ResolveReshape({1}, {})->DebugString(), "[]");
  EXPECT_EQ(ResolveReshape({0}, {3, -1})->DebugString(), "[3,0]");
  EXPECT_EQ(ResolveReshape({0, 4, 3}, {0, -1})->DebugString(), "[0,12]");
  EXPECT_EQ(ResolveReshape({4, 0, 3}, {-1, 0, 2})->DebugString(), "[6,0,2]");
  EXPECT_EQ(ResolveReshape({0}, {-1, 0})->DebugString(), "[1,0]");
}

TEST(ResolveReshape, RejectsIncompatibleShapes) {
  const auto text = [](const TensorShape& input, absl::Span<const int64_t> dims) {
    const auto result = ResolveReshape(input, dims);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_EQ(text({6}, {-1, -1}), "shape [?,?] must have at most one unknown dimension (-1)");
  EXPECT_EQ(text({6}, {4, -1}), "a tensor of 6 elements cannot be reshaped to [4,?]");
  EXPECT_EQ(text({6}, {4}), "a tensor of 6 elements cannot be reshaped to [4]");
  EXPECT_EQ(text({6}, {0, -1}), "a tensor of 6 elements cannot be reshaped to [0,?]");
  EXPECT_EQ(text({0, 4}, {-1, 3, 0}), "a tensor of 0 elements cannot be reshaped to [?,3,0]");
  EXPECT_THAT(text({6}, {-2}), HasSubstr("negative"));
  EXPECT_THAT(text({6}, {-1, int64_t{1} << 40, int64_t{1} << 40}), HasSubstr("more elements"));
}

// Infers the output shape of a Reduce node from the input shape and, if known, the axes.
absl::StatusOr<std::string> Reduce(const PartialTensorShape& input, const Tensor* axes,
                                   bool keep_dims) {
  OpDef op_def;
  const absl::Status built = OpDefBuilder("Reduce")
                                 .Input("input: float")
                                 .Input("axis: int32")
                                 .Output("output: float")
                                 .Attr("keep_dims: bool = false")
                                 .Finalize(&op_def);
  if (!built.ok()) return built;
  NodeDef node;
  node.set_op("Reduce");
  AddNodeAttr("keep_dims", keep_dims, &node);
  const PartialTensorShape axes_shape = axes == nullptr ? kUnknown : axes->shape();
  const PartialTensorShape* const shapes[] = {&input, &axes_shape};
  const DataType types[] = {DT_FLOAT, DT_INT32};
  const auto constant = [&](int i) { return i == 1 ? axes : nullptr; };
  ShapeContext c(node, op_def, shapes, types, 1, constant);
  if (absl::Status status = ReductionShape(c); !status.ok()) return status;
  return c.output(0).DebugString();
}

Tensor Axes(std::initializer_list<int32_t> values) {
  Tensor axes(DT_INT32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), axes.flat<int32_t>().begin());
  return axes;
}

TEST(ReductionShape, RemovesOrKeepsAxes) {
  const Tensor axes = Axes({-1, 0});
  EXPECT_EQ(*Reduce({2, 3, 4}, &axes, false), "[3]");
  EXPECT_EQ(*Reduce({2, 3, 4}, &axes, true), "[1,3,1]");
  EXPECT_EQ(*Reduce({-1, -1, 4}, &axes, true), "[1,?,1]");
  EXPECT_EQ(*Reduce({2, 3, 4}, nullptr, false), "<unknown>");
  EXPECT_EQ(*Reduce({2, 3, 4}, nullptr, true), "[?,?,?]");
  EXPECT_EQ(*Reduce(kUnknown, &axes, true), "<unknown>");
  const Tensor none = Axes({});
  EXPECT_EQ(*Reduce({2, 3}, &none, false), "[2,3]");
}

TEST(ReductionShape, NamesTheBadAxis) {
  const Tensor outside = Axes({3});
  EXPECT_THAT(Reduce({2, 3, 4}, &outside, false),
              StatusIs(absl::StatusCode::kInvalidArgument, "axis 3 is out of range [-3, 3)"));
  const Tensor many = Axes({0, 1, 0});
  EXPECT_THAT(Reduce({2, 3}, &many, false),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "axis has 3 axes, more than the 2 of the input"));
  const Tensor twice = Axes({1, -2});
  EXPECT_THAT(Reduce({2, 3, 4}, &twice, false),
              StatusIs(absl::StatusCode::kInvalidArgument, "axis names axis 1 twice"));
}

TEST(NamedAxes, RejectsRepeatedAxes) {
  EXPECT_THAT(NamedAxes("perm", {0, -1}, 3), IsOkAndHolds(std::vector<bool>{true, false, true}));
  EXPECT_THAT(NamedAxes("perm", {0, -3}, 3),
              StatusIs(absl::StatusCode::kInvalidArgument, "perm names axis 0 twice"));
}

}  // namespace
}  // namespace gradflow
