#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

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

}  // namespace
}  // namespace testing
}  // namespace gradflow
