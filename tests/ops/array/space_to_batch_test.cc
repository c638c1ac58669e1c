#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Nd(const char* op, const Tensor& input, const std::vector<int64_t>& blocks,
            const std::vector<int64_t>& pads) {
  return OpTester(op)
      .Input(input)
      .Input(AsTensor<int32_t>(blocks))
      .Input(AsTensor<int64_t>(pads, {static_cast<int64_t>(pads.size() / 2), 2}));
}
OpTester Images(const char* op, const Tensor& input, int64_t block,
                const std::vector<int64_t>& pads) {
  return OpTester(op).Input(input).Input(AsTensor<int32_t>(pads, {2, 2})).Attr("block_size", block);
}

TEST(SpaceToBatch, MovesElementsInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {2, 4, 5, 3});
    const Tensor flat = *input.Reshaped({120});
    const Tensor all = *OpTester("ConcatV2")
                            .Input(flat)
                            .Input(*OpTester("ZerosLike").Input(flat.Slice(0, 1)).RunOne())
                            .Input(AsScalar<int32_t>(0))
                            .RunOne();
    // The padded shape is [2, 6, 6, 3].
    const Tensor expected =
        Rearranged(all, {12, 3, 2, 3}, [](const std::vector<int64_t>& index) -> int64_t {
          const int64_t position = index[0] / 2;
          const int64_t row = index[1] * 2 + position / 3 - 2;
          const int64_t column = index[2] * 3 + position % 3;
          if (row < 0 || row >= 4 || column >= 5) return 120;
          return ((index[0] % 2 * 4 + row) * 5 + column) * 3 + index[3];
        });
    EXPECT_THAT(Nd("SpaceToBatchND", input, {2, 3}, {2, 0, 0, 1}).RunOne(), TensorEq(expected));
    EXPECT_THAT(Nd("BatchToSpaceND", expected, {2, 3}, {2, 0, 0, 1}).RunOne(), TensorEq(input));
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(SpaceToBatch, HasTheValuesOfTensorFlow) {
  const Tensor images = Iota<int32_t>({1, 4, 4, 1}, 1);
  const Tensor batch = AsTensor<int32_t>(
      {0, 1, 3, 0, 9, 11, 0, 2, 4, 0, 10, 12, 0, 5, 7, 0, 13, 15, 0, 6, 8, 0, 14, 16},
      {4, 2, 3, 1});
  EXPECT_THAT(Images("SpaceToBatch", images, 2, {0, 0, 2, 0}).RunOne(), TensorEq(batch));
  EXPECT_THAT(Images("BatchToSpace", batch, 2, {0, 0, 2, 0}).RunOne(), TensorEq(images));
  EXPECT_THAT(Nd("BatchToSpaceND", AsTensor<int32_t>({1, 2, 3, 4}, {4, 1, 1}), {2, 2}, {0, 0, 0, 1})
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1, 3}, {1, 2, 1})));
}

TEST(SpaceToBatch, MovesEmptyTensors) {
  EXPECT_THAT(Nd("SpaceToBatchND", Iota<float>({1, 3}), {}, {}).RunOne(),
              TensorEq(Iota<float>({1, 3})));
  EXPECT_THAT(Nd("SpaceToBatchND", Tensor(DT_FLOAT, {1, 0}), {2}, {1, 1}).RunOne(),
              TensorEq(AsTensor<float>({0, 0}, {2, 1})));
  EXPECT_THAT(Nd("SpaceToBatchND", Tensor(DT_FLOAT, {0, 2}), {2}, {0, 0}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 1})));
  EXPECT_THAT(Nd("BatchToSpaceND", AsTensor<float>({1, 2}, {2, 1}), {2}, {1, 1}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0})));
}

TEST(SpaceToBatch, RejectsBadArguments) {
  const Tensor input = Iota<float>({4, 3});
  ExpectErrors({
      {"rank", Nd("SpaceToBatchND", input, {2, 2}, {0, 0, 0, 0}),
       "input must have rank at least 3, a batch and the 2 dimensions of block_shape, but has "
       "shape [4,3]"},
      {"multiple", Nd("SpaceToBatchND", input, {2}, {0, 0}),
       "dimension 1 of input, of shape [4,3], with paddings is 3, which must be a multiple of "
       "block_shape[0] = 2"},
      {"zero", Nd("SpaceToBatchND", input, {0}, {0, 0}),
       "block_shape[0] must be positive, but is 0"},
      {"negative", Nd("SpaceToBatchND", input, {1}, {-1, 0}),
       "paddings[0,0] must not be negative, but is -1"},
      {"paddings", Nd("SpaceToBatchND", input, {1}, {0, 0, 0, 0}),
       "paddings must have shape [1,2]"},
      {"overflow", Nd("SpaceToBatchND", input, {1}, {INT64_MAX, 0}), "is more than 2^63 - 1"},
      {"product",
       Nd("SpaceToBatchND", Iota<float>({1, 1, 1, 1}), {INT32_MAX, INT32_MAX, INT32_MAX},
          {0, 0, 0, 0, 0, 0}),
       "the product of block_shape is more than 2^63 - 1"},
      {"batch", Nd("BatchToSpaceND", input, {3}, {0, 0}),
       "the batch of input, of shape [4,3], must be a multiple of 3, the product of block_shape"},
      {"crops", Nd("BatchToSpaceND", input, {2}, {4, 3}),
       "dimension 1 of input, of shape [4,3], times block_shape[0] = 2 is less than its crops, 4 "
       "and 3"},
      {"image", Images("BatchToSpace", Iota<float>({4, 1, 1}), 2, {0, 0, 0, 0}),
       "Shape must be rank 4 but is rank 3: input has shape [4,1,1]"},
      {"scalar", Nd("SpaceToBatchND", AsScalar<float>(1), {}, {}),
       "Shape must be at least rank 1 but is rank 0: input has shape []"},
  });
  EXPECT_THAT(OpTester("SpaceToBatchND")
                  .UnknownInput(DT_FLOAT, {-1, 4, -1, 7})
                  .Input<int32_t>({2, 3})
                  .UnknownInput(DT_INT32, {2, 2})
                  .InferShape(),
              ShapeIs("[?,?,?,7]"));
  EXPECT_THAT(OpTester("SpaceToBatchND")
                  .UnknownInput(DT_FLOAT, {-1, 4, -1, 7})
                  .Input<int32_t>({2, 3})
                  .Input<int32_t>({0, 0, 1, 1}, {2, 2})
                  .InferShape(),
              ShapeIs("[?,2,?,7]"));
}

OpTester Depth(const char* op, const Tensor& input, int64_t block, const char* format) {
  return OpTester(op).Input(input).Attr("block_size", block).Attr("data_format", format);
}

TEST(SpaceToDepth, MovesElementsInEveryTypeAndFormat) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    // Images of 2 channels, blocks of 3.
    const Tensor nhwc = DistinctTensor(dtype, {2, 6, 3, 2});
    const Tensor deep = Rearranged(nhwc, {2, 2, 1, 18}, [](const std::vector<int64_t>& index) {
      const int64_t position = index[3] / 2;
      const int64_t row = index[1] * 3 + position / 3;
      const int64_t column = index[2] * 3 + position % 3;
      return ((index[0] * 6 + row) * 3 + column) * 2 + index[3] % 2;
    });
    EXPECT_THAT(Depth("SpaceToDepth", nhwc, 3, "NHWC").RunOne(), TensorEq(deep));
    EXPECT_THAT(Depth("DepthToSpace", deep, 3, "NHWC").RunOne(), TensorEq(nhwc));
    const auto to_nchw = [](const Tensor& x) {
      return *OpTester("Transpose").Input(x).Input<int32_t>({0, 3, 1, 2}).RunOne();
    };
    EXPECT_THAT(Depth("SpaceToDepth", to_nchw(nhwc), 3, "NCHW").RunOne(), TensorEq(to_nchw(deep)));
    EXPECT_THAT(Depth("DepthToSpace", to_nchw(deep), 3, "NCHW").RunOne(), TensorEq(to_nchw(nhwc)));
  }
}

TEST(SpaceToDepth, MovesVectorsOfChannels) {
  // NCHW_VECT_C with 8 channels is NHWC with the channels split and moved.
  const Tensor nhwc = Iota<int8_t>({1, 2, 2, 8});
  const auto to_vectors = [](const Tensor& x) {
    const TensorShape split({x.dim_size(0), x.dim_size(1), x.dim_size(2), x.dim_size(3) / 4, 4});
    return *OpTester("Transpose")
                .Input(*x.Reshaped(split))
                .Input<int32_t>({0, 3, 1, 2, 4})
                .RunOne();
  };
  const Tensor deep = *Depth("SpaceToDepth", nhwc, 2, "NHWC").RunOne();
  EXPECT_THAT(Depth("SpaceToDepth", to_vectors(nhwc), 2, "NCHW_VECT_C").RunOne(),
              TensorEq(to_vectors(deep)));
  EXPECT_THAT(Depth("DepthToSpace", to_vectors(deep), 2, "NCHW_VECT_C").RunOne(),
              TensorEq(to_vectors(nhwc)));
}

TEST(SpaceToDepth, RejectsBadArguments) {
  const Tensor input = Iota<float>({1, 4, 4, 3});
  ExpectErrors({
      {"height", Depth("SpaceToDepth", input, 3, "NHWC"),
       "dimension 1 of input, of shape [1,4,4,3], must be a multiple of 3"},
      {"depth", Depth("DepthToSpace", input, 2, "NHWC"),
       "dimension 3 of input, of shape [1,4,4,3], must be a multiple of 4"},
      {"rank", Depth("SpaceToDepth", Iota<float>({4, 4, 1}), 2, "NHWC"),
       "Shape must be rank 4 but is rank 3: input has shape [4,4,1]"},
      {"vectors", Depth("SpaceToDepth", Iota<float>({1, 1, 2, 2, 3}), 2, "NCHW_VECT_C"),
       "the last dimension of input, of shape [1,1,2,2,3], must be 4 for NCHW_VECT_C"},
      {"large", Depth("SpaceToDepth", input, INT64_MAX, "NHWC"), "block_size must be at least 2"},
  });
  EXPECT_THAT(Depth("SpaceToDepth", input, 1, "NHWC").Run(),
              StatusIs(kInvalidArgument, HasSubstr("block_size")));
  EXPECT_THAT(OpTester("DepthToSpace")
                  .UnknownInput(DT_FLOAT, {-1, 2, -1, 8})
                  .Attr("block_size", int64_t{2})
                  .InferShape(),
              ShapeIs("[?,4,?,2]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
