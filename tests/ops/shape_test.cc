#include "tests/ops/op_test_util.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// A tensor of many elements that takes no memory.
Tensor Empty(const TensorShape& shape) {
  const Tensor tensor(DT_FLOAT, shape);
  EXPECT_EQ(tensor.NumElements(), 0);
  return tensor;
}

TEST(Shape, GivesSizesOfDimensions) {
  const Tensor matrix = Iota<float>({2, 3});
  ExpectTensorEqual(OpTester("Shape").Input(matrix).RunOne(), AsTensor<int32_t>({2, 3}));
  ExpectTensorEqual(OpTester("Shape").Input(matrix).Attr("out_type", DT_INT64).RunOne(),
                    AsTensor<int64_t>({2, 3}));
  ExpectTensorEqual(OpTester("Shape").Input(AsScalar<tstring>("x")).RunOne(),
                    AsTensor<int32_t>({}));
  ExpectTensorEqual(OpTester("Shape").Input(Empty({0, 5})).RunOne(), AsTensor<int32_t>({0, 5}));
}

TEST(Shape, LargeSizesNeedInt64) {
  const Tensor large = Empty({int64_t{1} << 40, 0});
  ExpectTensorEqual(OpTester("Shape").Input(large).Attr("out_type", DT_INT64).RunOne(),
                    AsTensor<int64_t>({int64_t{1} << 40, 0}));
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

TEST(ShapeN, GivesOneShapeForEachInput) {
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> shapes, OpTester("ShapeN")
                                                             .Input(Iota<float>({2, 3}))
                                                             .Input(AsScalar<float>(1))
                                                             .Input(Iota<float>({4}))
                                                             .Run());
  ASSERT_EQ(shapes.size(), 3);
  ExpectTensorEqual(shapes[0], AsTensor<int32_t>({2, 3}));
  ExpectTensorEqual(shapes[1], AsTensor<int32_t>({}));
  ExpectTensorEqual(shapes[2], AsTensor<int32_t>({4}));
}

TEST(ShapeN, TakesAtLeastOneInput) {
  EXPECT_THAT(OpTester("ShapeN").Attr("T", DT_FLOAT).Run(),
              StatusIs(kInvalidArgument, HasSubstr("N")));
}

TEST(Size, CountsElements) {
  ExpectTensorEqual(OpTester("Size").Input(Iota<half>({2, 3, 4})).RunOne(), AsScalar<int32_t>(24));
  ExpectTensorEqual(
      OpTester("Size").Input(AsScalar<tstring>("x")).Attr("out_type", DT_INT64).RunOne(),
      AsScalar<int64_t>(1));
  ExpectTensorEqual(OpTester("Size").Input(Empty({3, 0})).RunOne(), AsScalar<int32_t>(0));
}

TEST(Size, RejectsOtherOutTypes) {
  EXPECT_THAT(OpTester("Size").Input(AsScalar<float>(1)).Attr("out_type", DT_INT16).Run(),
              StatusIs(kInvalidArgument, HasSubstr("out_type")));
}

TEST(Rank, CountsDimensions) {
  ExpectTensorEqual(OpTester("Rank").Input(Iota<bfloat16>({2, 3, 4})).RunOne(),
                    AsScalar<int32_t>(3));
  ExpectTensorEqual(OpTester("Rank").Input(AsScalar<bool>(true)).RunOne(), AsScalar<int32_t>(0));
}

TEST(Rank, TakesOneInput) {
  EXPECT_THAT(OpTester("Rank").Input(AsScalar<float>(1)).Input(AsScalar<float>(1)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("input")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
