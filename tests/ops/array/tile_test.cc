#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Tile(const Tensor& input, const std::vector<int64_t>& multiples) {
  return OpTester("Tile").Input(input).Input(AsTensor<int64_t>(multiples));
}

TEST(Tile, RepeatsInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {2, 3, 2});
    for (const std::vector<int64_t>& multiples :
         std::vector<std::vector<int64_t>>{{3, 2, 1}, {1, 1, 4}, {2, 1, 2}, {1, 1, 1}, {2, 0, 3}}) {
      const TensorShape shape({2 * multiples[0], 3 * multiples[1], 2 * multiples[2]});
      EXPECT_THAT(Tile(input, multiples).RunOne(),
                  TensorEq(Rearranged(input, shape, [](const std::vector<int64_t>& index) {
                    return (index[0] % 2 * 3 + index[1] % 3) * 2 + index[2] % 2;
                  })));
    }
  }
}

TEST(Tile, RepeatsScalarsVectorsAndEmptyTensors) {
  EXPECT_THAT(Tile(AsScalar<float>(3), {}).RunOne(), TensorEq(AsScalar<float>(3)));
  EXPECT_THAT(
      OpTester("Tile").Input(AsTensor<tstring>({"a", "b"})).Input(AsTensor<int32_t>({2})).RunOne(),
      TensorEq(AsTensor<tstring>({"a", "b", "a", "b"})));
  EXPECT_THAT(Tile(Tensor(DT_FLOAT, {0, 2}), {5, 2}).RunOne(), TensorEq(Tensor(DT_FLOAT, {0, 4})));
}

TEST(TileGrad, SumsTheCopies) {
  for (const DataType dtype : {DT_INT32, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_COMPLEX64}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {2, 1, 3});
    for (const std::vector<int32_t>& multiples :
         std::vector<std::vector<int32_t>>{{3, 2, 1}, {1, 4, 4}, {1, 1, 1}}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const Tensor copies,
          OpTester("Tile").Input(input).Input(AsTensor<int32_t>(multiples)).RunOne());
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const Tensor count,
          OpTester("Cast")
              .Input(AsScalar<int32_t>(multiples[0] * multiples[1] * multiples[2]))
              .Attr("DstT", dtype)
              .RunOne());
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected,
                                    OpTester("Mul").Input(input).Input(count).RunOne());
      EXPECT_THAT(OpTester("TileGrad").Input(copies).Input(AsTensor<int32_t>(multiples)).RunOne(),
                  TensorNear(expected));
    }
  }
}

TEST(TileGrad, RejectsBadArguments) {
  const auto run = [](const Tensor& input, const std::vector<int32_t>& multiples) {
    return OpTester("TileGrad").Input(input).Input(AsTensor<int32_t>(multiples)).Run();
  };
  EXPECT_THAT(run(Iota<float>({2, 3}), {2}),
              StatusIs(kInvalidArgument, HasSubstr("of shape [2,3], but has 1")));
  EXPECT_THAT(run(Iota<float>({2, 3}), {2, 0}),
              StatusIs(kInvalidArgument, HasSubstr("multiples[1] must be positive, but is 0")));
  EXPECT_THAT(run(Iota<float>({2, 3}), {2, 2}),
              StatusIs(kInvalidArgument, HasSubstr("must be a multiple of multiples[1] = 2")));
  EXPECT_THAT(OpTester("TileGrad")
                  .Input(Tensor(DT_FLOAT, {0, 4}))
                  .Input(AsTensor<int32_t>({3, 2}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
}

TEST(Tile, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Tile(input, {2}),
       "multiples must have one element for each dimension of input, of shape [2,3], but has 1"},
      {Tile(input, {1, -1}), "multiples[1] must not be negative, but is -1"},
      {Tile(input, {INT64_MAX, 1}),
       "dimension 0 of input, of shape [2,3], times multiples[0] = 9223372036854775807 is more "
       "than 2^63 - 1"},
      {Tile(input, {int64_t{1} << 31, int64_t{1} << 31}), "has more elements than fit in an int64"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(
      OpTester("Tile").Input(input).Input(AsScalar<int32_t>(1)).Run(),
      StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: multiples has shape []"));
}

TEST(Tile, InfersKnownDimensions) {
  EXPECT_THAT(OpTester("Tile")
                  .UnknownInput(DT_FLOAT, {2, -1, -1})
                  .Input(AsTensor<int32_t>({3, 2, 0}))
                  .InferShape(),
              ShapeIs("[6,?,0]"));
  EXPECT_THAT(OpTester("Tile").UnknownInput(DT_FLOAT).UnknownInput(DT_INT32, {2}).InferShape(),
              ShapeIs("[?,?]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
