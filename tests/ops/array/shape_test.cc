#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Returns a tensor with large dimensions but no elements, which needs no memory.
Tensor Empty(const TensorShape& shape) {
  const Tensor tensor(DT_FLOAT, shape);
  EXPECT_EQ(tensor.NumElements(), 0);
  return tensor;
}

TEST(Shape, ReturnsSizesOfDimensions) {
  const Tensor matrix = Iota<float>({2, 3});
  EXPECT_THAT(OpTester("Shape").Input(matrix).RunOne(), TensorEq(AsTensor<int32_t>({2, 3})));
  EXPECT_THAT(OpTester("Shape").Input(matrix).Attr("out_type", DT_INT64).RunOne(),
              TensorEq(AsTensor<int64_t>({2, 3})));
  EXPECT_THAT(OpTester("Shape").Input(AsScalar<tstring>("x")).RunOne(),
              TensorEq(AsTensor<int32_t>({})));
  EXPECT_THAT(OpTester("Shape").Input(Empty({0, 5})).RunOne(), TensorEq(AsTensor<int32_t>({0, 5})));
}

TEST(Shape, LargeSizesNeedInt64) {
  const Tensor large = Empty({int64_t{1} << 40, 0});
  EXPECT_THAT(OpTester("Shape").Input(large).Attr("out_type", DT_INT64).RunOne(),
              TensorEq(AsTensor<int64_t>({int64_t{1} << 40, 0})));
  EXPECT_THAT(OpTester("Shape").Input(large).Run(),
              StatusIs(kInvalidArgument,
                       "out_type is int32, which cannot hold 1099511627776 of the input's shape "
                       "[1099511627776,0]"));
}

TEST(Shape, RejectsOtherOutTypes) {
  EXPECT_THAT(OpTester("Shape").Input(AsScalar<float>(1)).Attr("out_type", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, HasSubstr("out_type")));
}

TEST(Shape, InfersTheRank) {
  EXPECT_THAT(OpTester("Shape").UnknownInput(DT_FLOAT, {-1, 3}).InferShape(), ShapeIs("[2]"));
  EXPECT_THAT(OpTester("Shape").UnknownInput(DT_FLOAT).InferShape(), ShapeIs("[?]"));
}

TEST(ShapeN, ReturnsOneShapePerInput) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> shapes, OpTester("ShapeN")
                                                                      .Input(Iota<float>({2, 3}))
                                                                      .Input(AsScalar<float>(1))
                                                                      .Input(Iota<float>({4}))
                                                                      .Run());
  ASSERT_EQ(shapes.size(), 3);
  EXPECT_THAT(shapes[0], TensorEq(AsTensor<int32_t>({2, 3})));
  EXPECT_THAT(shapes[1], TensorEq(AsTensor<int32_t>({})));
  EXPECT_THAT(shapes[2], TensorEq(AsTensor<int32_t>({4})));
}

TEST(ShapeN, TakesAtLeastOneInput) {
  EXPECT_THAT(OpTester("ShapeN").Attr("T", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, HasSubstr("N")));
}

TEST(Size, CountsElements) {
  EXPECT_THAT(OpTester("Size").Input(Iota<half>({2, 3, 4})).RunOne(),
              TensorEq(AsScalar<int32_t>(24)));
  EXPECT_THAT(OpTester("Size").Input(AsScalar<tstring>("x")).Attr("out_type", DT_INT64).RunOne(),
              TensorEq(AsScalar<int64_t>(1)));
  EXPECT_THAT(OpTester("Size").Input(Empty({3, 0})).RunOne(), TensorEq(AsScalar<int32_t>(0)));
}

TEST(Size, RejectsOtherOutTypes) {
  EXPECT_THAT(OpTester("Size").Input(AsScalar<float>(1)).Attr("out_type", DT_INT16).Run(),
              StatusIs(kInvalidArgument, HasSubstr("out_type")));
}

TEST(Rank, CountsDimensions) {
  EXPECT_THAT(OpTester("Rank").Input(Iota<bfloat16>({2, 3, 4})).RunOne(),
              TensorEq(AsScalar<int32_t>(3)));
  EXPECT_THAT(OpTester("Rank").Input(AsScalar<bool>(true)).RunOne(),
              TensorEq(AsScalar<int32_t>(0)));
}

TEST(Rank, TakesOneInput) {
  EXPECT_THAT(OpTester("Rank").Input(AsScalar<float>(1)).Input(AsScalar<float>(1)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("input")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
