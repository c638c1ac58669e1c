#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Slice(const Tensor& input, const std::vector<int64_t>& begin,
               const std::vector<int64_t>& size) {
  return OpTester("Slice")
      .Input(input)
      .Input(AsTensor<int64_t>(begin))
      .Input(AsTensor<int64_t>(size));
}

TEST(Slice, CopiesABlockOfEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {3, 4, 5});
    EXPECT_THAT(Slice(input, {1, 0, 2}, {2, 3, -1}).RunOne(),
                TensorEq(Rearranged(input, {2, 3, 3}, [](const std::vector<int64_t>& index) {
                  return ((index[0] + 1) * 4 + index[1]) * 5 + index[2] + 2;
                })));
  }
}

TEST(Slice, TakesInt32) {
  EXPECT_THAT(OpTester("Slice")
                  .Input(Iota<float>({5}))
                  .Input(AsTensor<int32_t>({1}))
                  .Input(AsTensor<int32_t>({3}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1, 2, 3})));
}

TEST(Slice, CutsAtTheEdges) {
  const Tensor input = Iota<float>({2, 3});
  EXPECT_THAT(Slice(input, {0, 0}, {-1, -1}).RunOne(), TensorEq(input));
  EXPECT_THAT(Slice(input, {2, 0}, {-1, 3}).RunOne(), TensorEq(Tensor(DT_FLOAT, {0, 3})));
  EXPECT_THAT(Slice(input, {1, 3}, {1, 0}).RunOne(), TensorEq(Tensor(DT_FLOAT, {1, 0})));
  EXPECT_THAT(Slice(AsScalar<float>(7), {}, {}).RunOne(), TensorEq(AsScalar<float>(7)));
}

TEST(Slice, SharesRowsThatAreAligned) {
  const Tensor input = Iota<float>({10, 16});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor rows, Slice(input, {3, 0}, {2, 16}).RunOne());
  EXPECT_THAT(rows, TensorEq(Iota<float>({2, 16}, 48)));
  EXPECT_EQ(rows.raw_data(), input.flat<float>().data() + 48);
}

TEST(Slice, RejectsBlocksThatAreNotInside) {
  const Tensor input = Iota<float>({2, 3});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Slice(input, {0, 4}, {1, -1}), "begin[1] must be in [0, 3], but is 4"},
      {Slice(input, {-1, 0}, {1, 1}), "begin[0] must be in [0, 2], but is -1"},
      {Slice(input, {0, 1}, {1, 3}), "size[1] must be in [0, 2], or -1, but is 3"},
      {Slice(input, {0, 1}, {1, -2}), "size[1] must be in [0, 2], or -1, but is -2"},
      {Slice(input, {0, 1}, {1, INT64_MAX}),
       "size[1] must be in [0, 2], or -1, but is 9223372036854775807"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, c.error));
  }
}

TEST(Slice, RejectsVectorsOfTheWrongLength) {
  const Tensor input = Iota<float>({2, 3});
  EXPECT_THAT(Slice(input, {0}, {1, 1}).Run(),
              StatusIs(kInvalidArgument,
                       "begin must have one element for each dimension of input, of shape [2,3], "
                       "but has 1"));
  EXPECT_THAT(Slice(input, {0, 0}, {1, 1, 1}).InferShape(),
              StatusIs(kInvalidArgument,
                       "size has 3 elements, one for each dimension, but input has shape [2,3]"));
  OpTester scalar =
      OpTester("Slice").Input(input).Input(AsScalar<int32_t>(0)).Input(AsTensor<int32_t>({1, 1}));
  EXPECT_THAT(scalar.Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: begin has shape []"));
  EXPECT_THAT(scalar.InferShape(), StatusIs(kInvalidArgument));
}

TEST(Slice, InfersKnownDimensions) {
  EXPECT_THAT(OpTester("Slice")
                  .UnknownInput(DT_FLOAT, {4, 5})
                  .UnknownInput(DT_INT32)
                  .Input(AsTensor<int32_t>({2, -1}))
                  .InferShape(),
              ShapeIs("[2,?]"));
  EXPECT_THAT(OpTester("Slice")
                  .UnknownInput(DT_FLOAT)
                  .UnknownInput(DT_INT32, {3})
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              ShapeIs("[?,?,?]"));
  EXPECT_THAT(OpTester("Slice")
                  .UnknownInput(DT_FLOAT, {-1, 5})
                  .Input(AsTensor<int32_t>({1, 1}))
                  .Input(AsTensor<int32_t>({-1, -1}))
                  .InferShape(),
              ShapeIs("[?,4]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
