#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(ConcatV2, JoinsAlongEveryAxisInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(axis);
      const int d = axis < 0 ? axis + 3 : axis;
      // The parts have sizes 1, 0 and 3 along the axis.
      TensorShape shape({2, 3, 5});
      shape.set_dim(d, 4);
      const Tensor whole = DistinctTensor(dtype, shape);
      OpTester tester("ConcatV2");
      int64_t start = 0;
      for (const int64_t size : {1, 0, 3}) {
        TensorShape part = shape;
        part.set_dim(d, size);
        tester.Input(Rearranged(whole, part, [&](std::vector<int64_t> index) {
          index[d] += start;
          return (index[0] * shape.dim_size(1) + index[1]) * shape.dim_size(2) + index[2];
        }));
        start += size;
      }
      EXPECT_THAT(tester.Input(AsScalar<int32_t>(axis)).RunOne(), TensorEq(whole));
    }
  }
}

TEST(ConcatV2, PassesOnTheOnlyPartWithElements) {
  const Tensor part = Iota<float>({2, 3});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, OpTester("ConcatV2")
                                                         .Input(Tensor(DT_FLOAT, {0, 3}))
                                                         .Input(part)
                                                         .Input(AsScalar<int64_t>(0))
                                                         .RunOne());
  EXPECT_THAT(output, TensorEq(part));
  EXPECT_EQ(output.raw_data(), part.raw_data());
}

TEST(ConcatV2, JoinsLargeTensors) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor output, OpTester("ConcatV2")
                                                         .Input(Iota<int32_t>({1000, 300}))
                                                         .Input(Iota<int32_t>({1000, 200}, 300000))
                                                         .Input(AsScalar<int32_t>(1))
                                                         .RunOne());
  const auto values = output.matrix<int32_t>();
  for (int i = 0; i < 1000; ++i) {
    for (int j = 0; j < 500; ++j) {
      ASSERT_EQ(values(i, j), j < 300 ? i * 300 + j : 300000 + i * 200 + j - 300);
    }
  }
}

TEST(ConcatV2, RejectsBadArguments) {
  const struct {
    std::vector<Tensor> values;
    Tensor axis;
    const char* error;
  } cases[] = {
      {{Iota<float>({2, 3}), Iota<float>({2, 4})},
       AsScalar<int32_t>(0),
       "values[1] has shape [2,4], expected [?,3] to concatenate with the previous values along "
       "axis 0"},
      {{Iota<float>({2, 3}), Iota<float>({2})}, AsScalar<int32_t>(0), "values[1] has shape [2]"},
      {{AsScalar<float>(1), AsScalar<float>(2)},
       AsScalar<int32_t>(0),
       "values[0] is a scalar, which cannot be concatenated"},
      {{Iota<float>({2}), Iota<float>({2})},
       AsScalar<int32_t>(1),
       "axis 1 is out of range [-1, 1)"},
      {{Iota<float>({2}), Iota<float>({2})},
       AsScalar<int32_t>(-2),
       "axis -2 is out of range [-1, 1)"},
      {{Iota<float>({2}), Iota<float>({2})}, AsTensor<int32_t>({0}, {1, 1}), "has shape [1,1]"},
      {{Tensor(DT_FLOAT, {std::numeric_limits<int64_t>::max(), 0}),
        Tensor(DT_FLOAT, {std::numeric_limits<int64_t>::max(), 0})},
       AsScalar<int32_t>(0),
       "the sizes along axis 0 add up to more than 2^63 - 1"},
  };
  for (const auto& c : cases) {
    OpTester tester = OpTester("ConcatV2").Inputs(c.values).Input(c.axis);
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(ConcatV2, InfersKnownDimensions) {
  const auto infer = [](const PartialTensorShape& a, const PartialTensorShape& b, int32_t axis) {
    return OpTester("ConcatV2")
        .UnknownInput(DT_FLOAT, a)
        .UnknownInput(DT_FLOAT, b)
        .Input(AsScalar<int32_t>(axis))
        .InferShape();
  };
  EXPECT_THAT(infer({2, -1}, {3, 4}, 0), ShapeIs("[5,4]"));
  EXPECT_THAT(infer({-1, 4}, {3, 4}, -2), ShapeIs("[?,4]"));
  EXPECT_THAT(infer(PartialTensorShape(), {3, 4}, 0), ShapeIs("[?,4]"));
  EXPECT_THAT(OpTester("ConcatV2")
                  .UnknownInput(DT_FLOAT, {2, 3})
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              ShapeIs("[?,?]"));
  EXPECT_THAT(OpTester("ConcatV2")
                  .UnknownInput(DT_FLOAT, {2, 3})
                  .UnknownInput(DT_FLOAT, {2})
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              StatusIs(kInvalidArgument, HasSubstr("expected rank 2")));
}

// More than 4 MiB, with rows of whole cache lines.
TEST(ConcatV2, ConcatenatesAndSplitsTensorsLargerThanACache) {
  const Tensor a = Iota<int32_t>({1 << 14, 64});
  const Tensor b = Iota<int32_t>({1 << 14, 32}, 1 << 20);
  const Tensor c =
      OpTester("ConcatV2").Input(a).Input(b).Input(AsScalar<int32_t>(1)).RunOne().value();
  const absl::Span<const int32_t> values = c.span<int32_t>();
  bool equal = true;
  for (int64_t i = 0; i < c.NumElements(); ++i) {
    const int64_t row = i / 96;
    const int64_t at = i % 96;
    equal &= values[i] == (at < 64 ? row * 64 + at : (1 << 20) + row * 32 + at - 64);
  }
  EXPECT_TRUE(equal);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts, OpTester("SplitV")
                                                                     .Input(c)
                                                                     .Input<int32_t>({64, 32})
                                                                     .Input(AsScalar<int32_t>(1))
                                                                     .Attr("num_split", int64_t{2})
                                                                     .Run());
  EXPECT_THAT(parts[0], TensorEq(a));
  EXPECT_THAT(parts[1], TensorEq(b));
}

// TensorFlow's kernel accepts such an axis, but its shape function does not.
TEST(ConcatV2, TakesAVectorOfOneElementAsAxis) {
  const Tensor x = AsTensor<float>({1, 2}, {1, 2});
  const Tensor axis = AsTensor<int32_t>({0});
  const auto joined = OpTester("ConcatV2").Attr("N", 2).Attr("T", DT_FLOAT).RunOn({x, x, axis});
  GRADFLOW_ASSERT_OK(joined.status());
  EXPECT_THAT((*joined)[0], TensorEq(AsTensor<float>({1, 2, 1, 2}, {2, 2})));
  for (const TensorShape& shape : {TensorShape({2}), TensorShape({0}), TensorShape({1, 1})}) {
    EXPECT_THAT(OpTester("ConcatV2")
                    .Attr("N", 2)
                    .Attr("T", DT_FLOAT)
                    .RunOn({x, x, Tensor(DT_INT32, shape)}),
                StatusIs(kInvalidArgument, HasSubstr("axis must be a scalar, but has shape")));
  }
}

TEST(Concat, TakesTheAxisFirst) {
  EXPECT_THAT(OpTester("Concat")
                  .Input(AsScalar<int32_t>(-1))
                  .Input<float>({1, 2, 3, 4}, {2, 2})
                  .Input<float>({5, 6}, {2, 1})
                  .RunOne(),
              TensorEq(AsTensor<float>({1, 2, 5, 3, 4, 6}, {2, 3})));
  OpTester bad = OpTester("Concat")
                     .Input(AsScalar<int32_t>(0))
                     .Input<float>({1, 2}, {1, 2})
                     .Input<float>({5, 6}, {2, 1});
  EXPECT_THAT(bad.Run(), StatusIs(kInvalidArgument, HasSubstr("values[1] has shape [2,1]")));
  EXPECT_THAT(bad.InferShape(), StatusIs(kInvalidArgument, HasSubstr("values[1] has shape [2,1]")));
}

TEST(ParallelConcat, StacksRows) {
  const auto concat = [](const PartialTensorShape& shape) {
    return OpTester("ParallelConcat")
        .Input<float>({1, 2}, {1, 2})
        .Input<float>({3, 4}, {1, 2})
        .Attr("shape", shape);
  };
  EXPECT_THAT(concat({2, 2}).RunOne(), TensorEq(AsTensor<float>({1, 2, 3, 4}, {2, 2})));
  EXPECT_THAT(concat({3, 2}).Run(),
              StatusIs(kInvalidArgument,
                       "shape must be fully known, with N = 2 as first dimension, but is [3,2]"));
  EXPECT_THAT(concat({2, 3}).Run(),
              StatusIs(kInvalidArgument, "values[0] must have shape [1,3], but has shape [1,2]"));
  EXPECT_THAT(concat({2, -1}).InferShape(),
              StatusIs(kInvalidArgument, HasSubstr("shape must be fully known")));
}

OpTester Offsets(const Tensor& axis, const std::vector<Tensor>& shapes) {
  return OpTester("ConcatOffset").Input(axis).Inputs(shapes);
}

TEST(ConcatOffset, AddsUpSizes) {
  for (const int32_t axis : {1, -1}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const std::vector<Tensor> offsets,
        Offsets(AsScalar<int32_t>(axis),
                {AsTensor<int32_t>({2, 3}), AsTensor<int32_t>({2, 4}), AsTensor<int32_t>({2, 5})})
            .Run());
    EXPECT_THAT(offsets[0], TensorEq(AsTensor<int32_t>({0, 0})));
    EXPECT_THAT(offsets[1], TensorEq(AsTensor<int32_t>({0, 3})));
    EXPECT_THAT(offsets[2], TensorEq(AsTensor<int32_t>({0, 7})));
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> wide,
      Offsets(AsScalar<int32_t>(0), {AsTensor<int64_t>({int64_t{1} << 40}), AsTensor<int64_t>({1})})
          .Run());
  EXPECT_THAT(wide[1], TensorEq(AsTensor<int64_t>({int64_t{1} << 40})));
}

TEST(ConcatOffset, RejectsBadArguments) {
  EXPECT_THAT(
      Offsets(AsScalar<int32_t>(1), {AsTensor<int32_t>({2, 3}), AsTensor<int32_t>({3, 4})}).Run(),
      StatusIs(kInvalidArgument, "shape[1][0] is 3, expected 2, as in shape[0]"));
  EXPECT_THAT(
      Offsets(AsScalar<int32_t>(0), {AsTensor<int32_t>({2}), AsTensor<int32_t>({3, 4})}).Run(),
      StatusIs(kInvalidArgument,
               HasSubstr("Dimension 0 in both shapes must be equal, but are 1 and 2: shape[0] has "
                         "shape [1], and shape[1] has shape [2]")));
  EXPECT_THAT(Offsets(AsScalar<int32_t>(0), {AsTensor<int32_t>({}), AsTensor<int32_t>({})}).Run(),
              StatusIs(kInvalidArgument, "concat_dim 0 is out of range [0, 0)"));
  EXPECT_THAT(
      Offsets(AsScalar<int32_t>(0),
              {AsTensor<int32_t>({INT32_MAX}), AsTensor<int32_t>({1}), AsTensor<int32_t>({1})})
          .Run(),
      StatusIs(kInvalidArgument, "the sizes along concat_dim 0 add up to more than fits in int32"));
}

// The products of the dimensions overflow.
TEST(ConcatV2, MovesTensorsWithoutElements) {
  constexpr int64_t kHuge = int64_t{1} << 60;
  const auto empty = [](const TensorShape& shape) { return Tensor(DT_INT32, shape); };
  const Tensor x = empty({0, kHuge, 8});
  EXPECT_THAT(OpTester("ConcatV2")
                  .Input(x)
                  .Input(empty({0, kHuge + 2, 8}))
                  .Input(AsScalar<int32_t>(1))
                  .RunOne(),
              TensorEq(empty({0, 2 * kHuge + 2, 8})));
  EXPECT_THAT(OpTester("Pack").Input(x).Input(x).Attr("axis", 2).RunOne(),
              TensorEq(empty({0, kHuge, 2, 8})));
  const auto run = [](OpTester tester, const TensorShape& part) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts, tester.Run());
    for (const Tensor& y : parts) EXPECT_EQ(y.shape(), part);
  };
  run(OpTester("Split").Input(AsScalar<int32_t>(1)).Input(x).Attr("num_split", 2),
      {0, kHuge / 2, 8});
  run(OpTester("SplitV")
          .Input(x)
          .Input<int64_t>({kHuge / 2, kHuge / 2})
          .Input(AsScalar<int32_t>(1))
          .Attr("num_split", 2),
      {0, kHuge / 2, 8});
  run(OpTester("Unpack").Input(empty({0, 2, kHuge, 8})).Attr("axis", 1).Attr("num", 2),
      {0, kHuge, 8});
  run(OpTester("ReverseV2").Input(x).Input<int32_t>({1, 2}), {0, kHuge, 8});
  run(OpTester("Slice").Input(x).Input<int64_t>({0, kHuge / 2, 1}).Input<int64_t>({0, -1, 2}),
      {0, kHuge / 2, 2});
  run(OpTester("SpaceToDepth").Input(empty({0, kHuge, 16, 4})).Attr("block_size", 2),
      {0, kHuge / 2, 8, 16});
  run(OpTester("DepthToSpace").Input(empty({0, kHuge, 16, 4})).Attr("block_size", 2),
      {0, 2 * kHuge, 32, 1});
  run(OpTester("MirrorPadGrad")
          .Input(empty({0, kHuge, 8}))
          .Input<int64_t>({0, 0, 4, kHuge / 4, 1, 1}, {3, 2})
          .Attr("mode", "SYMMETRIC"),
      {0, kHuge - kHuge / 4 - 4, 6});
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
