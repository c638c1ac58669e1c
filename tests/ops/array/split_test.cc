#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Split(const Tensor& split_dim, const Tensor& value, int num_split) {
  return OpTester("Split").Input(split_dim).Input(value).Attr("num_split", num_split);
}

TEST(Split, SplitsAlongEveryAxisInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const TensorShape whole({2, 4, 6});
    const Tensor value = DistinctTensor(dtype, whole);
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(axis);
      const int d = axis < 0 ? axis + 3 : axis;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                                    Split(AsScalar<int32_t>(axis), value, 2).Run());
      ASSERT_EQ(parts.size(), 2);
      TensorShape shape = whole;
      shape.set_dim(d, whole.dim_size(d) / 2);
      for (int p = 0; p < 2; ++p) {
        EXPECT_THAT(parts[p], TensorEq(Rearranged(value, shape, [&](std::vector<int64_t> index) {
                      index[d] += p * shape.dim_size(d);
                      return (index[0] * 4 + index[1]) * 6 + index[2];
                    })));
      }
    }
  }
}

TEST(Split, SharesPartsThatAreAligned) {
  const Tensor value = Iota<float>({4, 16});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                                Split(AsScalar<int32_t>(0), value, 2).Run());
  EXPECT_THAT(parts[1], TensorEq(Iota<float>({2, 16}, 32)));
  EXPECT_EQ(parts[1].raw_data(), value.flat<float>().data() + 32);
}

TEST(Split, SplitsEmptyTensors) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                                Split(AsTensor<int32_t>({1}), Tensor(DT_FLOAT, {0, 6}), 3).Run());
  ASSERT_EQ(parts.size(), 3);
  EXPECT_THAT(parts[2], TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(Split, RejectsBadArguments) {
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Split(AsScalar<int32_t>(1), Iota<float>({2, 5}), 2),
       "dimension 1 of value, of shape [2,5], must be a multiple of num_split, which is 2"},
      {Split(AsScalar<int32_t>(2), Iota<float>({2, 5}), 1), "split_dim 2 is out of range [-2, 2)"},
      {Split(AsScalar<int32_t>(0), AsScalar<float>(1), 1), "split_dim 0 is out of range [0, 0)"},
      {Split(AsTensor<int32_t>({0, 1}), Iota<float>({2}), 1),
       "split_dim must have one element, but has shape [2]"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
    EXPECT_THAT(tester.InferShapes(), StatusIs(kInvalidArgument, c.error));
  }
}

TEST(Split, InfersKnownDimensions) {
  const auto shapes = OpTester("Split")
                          .UnknownInput(DT_INT32)
                          .UnknownInput(DT_FLOAT, {2, 4})
                          .Attr("num_split", 2)
                          .InferShapes();
  EXPECT_THAT(shapes, IsOkAndHolds(::testing::Each(ShapeIs("[?,?]"))));
}

OpTester SplitV(const Tensor& value, const Tensor& sizes, int32_t axis, int64_t num_split) {
  return OpTester("SplitV")
      .Input(value)
      .Input(sizes)
      .Input(AsScalar<int32_t>(axis))
      .Attr("num_split", num_split);
}

TEST(SplitV, SplitsAlongEveryAxisInEveryType) {
  const std::vector<int64_t> sizes = {1, 0, 3};
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (int axis = -3; axis < 3; ++axis) {
      const int d = axis < 0 ? axis + 3 : axis;
      TensorShape shape({2, 2, 2});
      shape.set_dim(d, 4);
      const Tensor value = DistinctTensor(dtype, shape);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                                    SplitV(value, AsTensor<int64_t>(sizes), axis, 3).Run());
      int64_t start = 0;
      for (int i = 0; i < 3; ++i) {
        TensorShape part = shape;
        part.set_dim(d, sizes[i]);
        EXPECT_THAT(parts[i], TensorEq(Rearranged(value, part, [&](std::vector<int64_t> index) {
                      index[d] += start;
                      return (index[0] * shape.dim_size(1) + index[1]) * shape.dim_size(2) +
                             index[2];
                    })));
        start += sizes[i];
      }
    }
  }
}

TEST(SplitV, ResolvesOneSize) {
  const Tensor value = AsTensor<float>({1, 2, 3, 4, 5});
  for (const Tensor& sizes : {AsTensor<int8_t>({1, -1, 2}), AsTensor<int32_t>({1, -1, 2}),
                              AsTensor<int64_t>({1, -1, 2})}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> parts,
                                  SplitV(value, sizes, 0, 3).Run());
    EXPECT_THAT(parts[0], TensorEq(AsTensor<float>({1})));
    EXPECT_THAT(parts[1], TensorEq(AsTensor<float>({2, 3})));
    EXPECT_THAT(parts[2], TensorEq(AsTensor<float>({4, 5})));
  }
}

TEST(SplitV, RejectsBadArguments) {
  const Tensor value = Iota<float>({5});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {SplitV(value, AsTensor<int64_t>({1, 3}), 0, 2),
       "size_splits add up to 4, but dimension 0 of value, of shape [5], has size 5"},
      {SplitV(value, AsTensor<int64_t>({6, -1}), 0, 2),
       "size_splits add up to 6 and -1, but dimension 0 of value, of shape [5], has size 5"},
      {SplitV(value, AsTensor<int64_t>({-1, -1}), 0, 2),
       "size_splits[1] must not be negative, except for one -1, but is -1"},
      {SplitV(value, AsTensor<int64_t>({-2, 7}), 0, 2), "size_splits[0] must not be negative"},
      {SplitV(value, AsTensor<int64_t>({INT64_MAX, INT64_MAX}), 0, 2),
       "size_splits add up to more than 2^63 - 1"},
      {SplitV(value, AsTensor<int64_t>({5}), 0, 2),
       "size_splits must have shape [2], by num_split, but has shape [1]"},
      {SplitV(value, AsTensor<int64_t>({2, 3}), 1, 2), "split_dim 1 is out of range [-1, 1)"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShapes(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(SplitV, InfersKnownDimensions) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<PartialTensorShape> shapes,
                                OpTester("SplitV")
                                    .UnknownInput(DT_FLOAT, {-1, 6})
                                    .Input<int64_t>({1, -1})
                                    .Input(AsScalar<int32_t>(0))
                                    .Attr("num_split", int64_t{2})
                                    .InferShapes());
  EXPECT_THAT(shapes[0], ShapeIs("[1,6]"));
  EXPECT_THAT(shapes[1], ShapeIs("[?,6]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
