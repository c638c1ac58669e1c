// Adds every op to a graph through its C++ wrapper class.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace ops {
namespace {

using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;

class WrappersTest : public ::testing::Test {
 protected:
  Scope scope_ = Scope::NewRootScope();
  Output x_ = Placeholder(scope_, DT_FLOAT, Placeholder::Shape({2, 6}));
};

TEST_F(WrappersTest, AddNodesOfTheirOps) {
  const Scope& s = scope_;
  const Output x = x_;
  const Output images = Placeholder(s, DT_FLOAT, Placeholder::Shape({2, 3, 3, 4}));
  const Output channels = Const(s, 1.f, {4});
  const Output flag = Equal(s, x, x);

  const struct {
    const char* op;
    Operation operation;
  } nodes[] = {
      {"NoOp", NoOp(s.WithControlDependencies(x)).operation},
      {"PlaceholderWithDefault", PlaceholderWithDefault(s, x, {-1, 6}).operation},
      {"Identity", Identity(s, x).operation},
      {"IdentityN", IdentityN(s, {x, flag}).operation},
      {"StopGradient", StopGradient(s, x).operation},
      {"PreventGradient", PreventGradient(s, x, PreventGradient::Message("no")).operation},
      {"CheckNumerics", CheckNumerics(s, x, "x").operation},
      {"Shape", Shape(s, x, Shape::OutType(DT_INT64)).operation},
      {"ShapeN", ShapeN(s, {x, x}).operation},
      {"Size", Size(s, x).operation},
      {"Rank", Rank(s, x).operation},
      {"Reshape", Reshape(s, x, {3, -1}).operation},
      {"ExpandDims", ExpandDims(s, x, 0).operation},
      {"Squeeze", Squeeze(s, ExpandDims(s, x, 0), Squeeze::Axis({0})).operation},
      {"ZerosLike", ZerosLike(s, x).operation},
      {"OnesLike", OnesLike(s, x).operation},
      {"Fill", Fill(s, {2, 2}, 1.f).operation},
      {"Cast", Cast(s, x, DT_HALF, Cast::Truncate(true)).operation},
      {"Range", Range(s, 0, 10, 1).operation},
      {"Pack", Stack(s, {x, x}, Stack::Axis(1)).operation},
      {"Unpack", Unstack(s, x, 2, Unstack::Axis(0)).operation},
      {"ConcatV2", Concat(s, {x, x}, 0).operation},
      {"Split", Split(s, 1, x, 3).operation},
      {"Slice", Slice(s, x, {0, 0}, {1, 1}).operation},
      {"StridedSlice",
       StridedSlice(s, x, {0}, {1}, {1}, StridedSlice::ShrinkAxisMask(1)).operation},
      {"GatherV2", GatherV2(s, x, {0, 1}, 1, GatherV2::BatchDims(0)).operation},
      {"Transpose", Transpose(s, x, {1, 0}).operation},
      {"Tile", Tile(s, x, {1, 2}).operation},
      {"BroadcastTo", BroadcastTo(s, x, {3, 2, 6}).operation},
      {"Add", Add(s, x, 1.f).operation},
      {"AddV2", AddV2(s, x, x).operation},
      {"AddN", AddN(s, {x, x}).operation},
      {"Sub", Subtract(s, x, x).operation},
      {"Mul", Multiply(s, x, x).operation},
      {"RealDiv", RealDiv(s, x, x).operation},
      {"Maximum", Maximum(s, x, x).operation},
      {"Minimum", Minimum(s, x, x).operation},
      {"Neg", Negate(s, x).operation},
      {"Abs", Abs(s, x).operation},
      {"Square", Square(s, x).operation},
      {"SquaredDifference", SquaredDifference(s, x, x).operation},
      {"Sqrt", Sqrt(s, x).operation},
      {"Rsqrt", Rsqrt(s, x).operation},
      {"Exp", Exp(s, x).operation},
      {"Log", Log(s, x).operation},
      {"Tanh", Tanh(s, x).operation},
      {"Sigmoid", Sigmoid(s, x).operation},
      {"Relu", Relu(s, x).operation},
      {"Less", Less(s, x, x).operation},
      {"Greater", Greater(s, x, x).operation},
      {"GreaterEqual", GreaterEqual(s, x, x).operation},
      {"LogicalAnd", LogicalAnd(s, flag, flag).operation},
      {"SelectV2", SelectV2(s, flag, x, x).operation},
      {"Sum", ReduceSum(s, x, 0, ReduceSum::KeepDims(true)).operation},
      {"Mean", ReduceMean(s, x, {0, 1}).operation},
      {"Max", ReduceMax(s, x, 0).operation},
      {"Min", ReduceMin(s, x, 0).operation},
      {"MatMul", MatMul(s, x, x, MatMul::TransposeB(true)).operation},
      {"FakeQuantWithMinMaxArgs",
       FakeQuantWithMinMaxArgs(s, x, FakeQuantWithMinMaxArgs::Min(-1).Max(1)).operation},
      {"FakeQuantWithMinMaxArgsGradient", FakeQuantWithMinMaxArgsGradient(s, x, x).operation},
      {"FakeQuantWithMinMaxVars",
       FakeQuantWithMinMaxVars(s, x, -1.f, 1.f, FakeQuantWithMinMaxVars::NarrowRange(true))
           .operation},
      {"FakeQuantWithMinMaxVarsGradient",
       FakeQuantWithMinMaxVarsGradient(s, x, x, -1.f, 1.f).operation},
      {"FakeQuantWithMinMaxVarsPerChannel",
       FakeQuantWithMinMaxVarsPerChannel(s, images, channels, channels).operation},
      {"FakeQuantWithMinMaxVarsPerChannelGradient",
       FakeQuantWithMinMaxVarsPerChannelGradient(s, images, images, channels, channels).operation},
      {"FusedBatchNorm",
       FusedBatchNorm(s, images, channels, channels, channels, channels).operation},
      {"FusedBatchNormV2",
       FusedBatchNormV2(s, images, channels, channels, channels, channels).operation},
      {"FusedBatchNormV3", FusedBatchNormV3(s, images, channels, channels, channels, channels,
                                            FusedBatchNormV3::IsTraining(true).DataFormat("NHWC"))
                               .operation},
      {"FusedBatchNormGrad", FusedBatchNormGrad(s, images, images, channels, channels, channels,
                                                FusedBatchNormGrad::IsTraining(false))
                                 .operation},
      {"FusedBatchNormGradV2",
       FusedBatchNormGradV2(s, images, images, channels, channels, channels).operation},
      {"FusedBatchNormGradV3",
       FusedBatchNormGradV3(s, images, images, channels, channels, channels, channels).operation},
  };
  GRADFLOW_ASSERT_OK(s.status());
  for (const auto& node : nodes) {
    EXPECT_EQ(node.operation.node()->type_string(), node.op);
  }
}

TEST_F(WrappersTest, InferShapes) {
  const Split split(scope_, 1, x_, 3);
  const Squeeze squeezed(scope_, ExpandDims(scope_, x_, -1), Squeeze::Axis({-1}));
  const Unstack rows(scope_, x_, 2);
  GRADFLOW_ASSERT_OK(scope_.status());
  ASSERT_EQ(split.output.size(), 3);
  EXPECT_EQ(split[2].node()->output_shape(2).DebugString(), "[2,2]");
  EXPECT_EQ(squeezed.node()->output_shape(0).DebugString(), "[2,6]");
  EXPECT_EQ(rows[1].index(), 1);
  EXPECT_EQ(rows[1].node()->output_shape(1).DebugString(), "[6]");
}

TEST_F(WrappersTest, ErrorsNameNodeOpAndArgument) {
  const Split split(scope_.WithOpName("cut"), 1, x_, 4);
  EXPECT_TRUE(split.output.empty());
  EXPECT_THAT(scope_.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 'cut' (Split): dimension 1 of value, of shape [2,6], must be a "
                       "multiple of num_split, which is 4"));
}

TEST(Wrappers, HaveTensorFlowsNames) {
  EXPECT_TRUE((std::is_same_v<Stack, Pack>));
  EXPECT_TRUE((std::is_same_v<Unstack, Unpack>));
  EXPECT_TRUE((std::is_same_v<Concat, ConcatV2>));
  EXPECT_TRUE((std::is_same_v<Subtract, Sub>));
  EXPECT_TRUE((std::is_same_v<Multiply, Mul>));
  EXPECT_TRUE((std::is_same_v<Negate, Neg>));
  EXPECT_TRUE((std::is_same_v<ReduceSum, Sum>));
  EXPECT_TRUE((std::is_same_v<ReduceMean, Mean>));
  EXPECT_TRUE((std::is_same_v<ReduceMax, Max>));
  EXPECT_TRUE((std::is_same_v<ReduceMin, Min>));
  EXPECT_TRUE((std::is_same_v<RandomNormal, RandomStandardNormal>));
  EXPECT_TRUE((std::is_same_v<AdjustContrast, AdjustContrastv2>));
}

// Attrs own their values and may outlive the expressions that made them.
TEST(Wrappers, AttrsOwnTheirValues) {
  const Scope scope = Scope::NewRootScope();
  const auto attrs = [] { return Squeeze::Axis(std::vector<int>{0}); }();
  const auto message = PreventGradient::Message(std::string(100, 'm'));
  const Squeeze squeezed(scope, Const(scope, {{1.f, 2.f}}), attrs);
  const PreventGradient prevented(scope, squeezed, message);
  GRADFLOW_ASSERT_OK(scope.status());
  std::vector<int64_t> axes;
  GRADFLOW_ASSERT_OK(squeezed.node()->GetAttr("squeeze_dims", &axes));
  EXPECT_THAT(axes, ElementsAre(0));
  std::string text;
  GRADFLOW_ASSERT_OK(prevented.node()->GetAttr("message", &text));
  EXPECT_EQ(text, std::string(100, 'm'));
}

}  // namespace
}  // namespace ops
}  // namespace gradflow
