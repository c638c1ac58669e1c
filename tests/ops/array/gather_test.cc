#include <limits>
#include <memory>

#include "gradflow/core/parallel.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/small_blocks.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Gather(const Tensor& params, const Tensor& indices, int64_t axis, int64_t batch_dims = 0) {
  return OpTester("GatherV2")
      .Input(params)
      .Input(indices)
      .Input(AsScalar<int64_t>(axis))
      .Attr("batch_dims", batch_dims);
}

TEST(GatherV2, PicksAlongEveryAxisInEveryType) {
  const std::vector<int32_t> picks = {1, 0, 1, 1, 0, 0};
  const Tensor indices = AsTensor<int32_t>(picks, {3, 2});
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor params = DistinctTensor(dtype, {2, 3, 4});
    for (int axis = -3; axis < 3; ++axis) {
      SCOPED_TRACE(axis);
      const int d = axis < 0 ? axis + 3 : axis;
      TensorShape shape = params.shape();
      shape.set_dim(d, 3);
      shape.InsertDim(d + 1, 2);
      EXPECT_THAT(Gather(params, indices, axis).RunOne(),
                  TensorEq(Rearranged(params, shape, [&](std::vector<int64_t> index) {
                    const int64_t pick = picks[index[d] * 2 + index[d + 1]];
                    index.erase(index.begin() + d);
                    index[d] = pick;
                    return (index[0] * 3 + index[1]) * 4 + index[2];
                  })));
    }
  }
}

TEST(GatherV2, TakesIndicesOfEveryType) {
  const Tensor params = AsTensor<float>({10, 11, 12});
  const Tensor expected = AsTensor<float>({12, 10});
  EXPECT_THAT(Gather(params, AsTensor<int16_t>({2, 0}), 0).RunOne(), TensorEq(expected));
  EXPECT_THAT(Gather(params, AsTensor<int32_t>({2, 0}), 0).RunOne(), TensorEq(expected));
  EXPECT_THAT(Gather(params, AsTensor<int64_t>({2, 0}), 0).RunOne(), TensorEq(expected));
  EXPECT_THAT(Gather(params, AsScalar<int64_t>(1), 0).RunOne(), TensorEq(AsScalar<float>(11)));
}

TEST(GatherV2, PicksWithinBatches) {
  // params[b, i, :], indices[b, k] -> output[b, k, :]
  const Tensor params = Iota<float>({2, 3, 2});
  const Tensor indices = AsTensor<int32_t>({2, 0, 1, 1}, {2, 2});
  const Tensor expected = AsTensor<float>({4, 5, 0, 1, 8, 9, 8, 9}, {2, 2, 2});
  EXPECT_THAT(Gather(params, indices, 1, 1).RunOne(), TensorEq(expected));
  EXPECT_THAT(Gather(params, indices, 1, -1).RunOne(), TensorEq(expected));
  // A dimension between the batch and the axis: params[b, o, i].
  EXPECT_THAT(Gather(params, AsTensor<int32_t>({1, 0}, {2, 1}), 2, 1).RunOne(),
              TensorEq(AsTensor<float>({1, 3, 5, 6, 8, 10}, {2, 3, 1})));
  // All dimensions of the indices are batch dimensions.
  EXPECT_THAT(Gather(params, AsTensor<int32_t>({2, 1}), 1, 1).RunOne(),
              TensorEq(AsTensor<float>({4, 5, 8, 9}, {2, 2})));
}

TEST(GatherV2, PicksFromLargeAndEmptyTensors) {
  std::vector<int64_t> picks;
  for (int64_t i = 0; i < 2000; ++i) picks.push_back(i * 7919 % 3000);
  const Tensor params = Iota<int32_t>({3000, 64});
  EXPECT_THAT(Gather(params, AsTensor<int64_t>(picks), 0).RunOne(),
              TensorEq(Rearranged(params, {2000, 64},
                                  [&](auto& index) { return picks[index[0]] * 64 + index[1]; })));
  EXPECT_THAT(Gather(params, AsTensor<int64_t>({}), 0).RunOne(),
              TensorEq(Tensor(DT_INT32, {0, 64})));
  EXPECT_THAT(Gather(Tensor(DT_FLOAT, {2, 0}), AsTensor<int32_t>({1}), 0).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0})));
}

// The output has more than 4 MiB, in rows of whole cache lines.
TEST(GatherV2, PicksTensorsLargerThanACache) {
  const Tensor params = Iota<int32_t>({1 << 14, 80});
  std::vector<int32_t> picks;
  for (int32_t i = 0; i < 1 << 14; ++i) picks.push_back(i * 7919 % (1 << 14));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor picked,
                                Gather(params, AsTensor<int32_t>(picks), 0).RunOne());
  const absl::Span<const int32_t> values = picked.span<int32_t>();
  bool equal = true;
  for (int64_t i = 0; i < picked.NumElements(); ++i) {
    equal &= values[i] == picks[i / 80] * 80 + i % 80;
  }
  EXPECT_TRUE(equal);
}

TEST(GatherV2, PicksManyElements) {
  for (const DataType dtype : {DT_INT8, DT_FLOAT, DT_DOUBLE, DT_STRING}) {
    const int64_t size = dtype == DT_INT8 ? 100 : 70000;
    // Floats are written with non-temporal stores.
    const int64_t count = dtype == DT_STRING
                              ? 3000
                              : MinNonTemporalBytes() / static_cast<int64_t>(sizeof(float)) + 77;
    const Tensor params = DistinctTensor(dtype, {size});
    std::vector<int32_t> picks;
    for (int64_t i = 0; i < count; ++i) picks.push_back(static_cast<int32_t>(i * 7919 % size));
    EXPECT_THAT(
        Gather(params, AsTensor<int32_t>(picks), 0).RunOne(),
        TensorEq(Rearranged(params, {count}, [&](const auto& index) { return picks[index[0]]; })));
  }
}

TEST(GatherV2, RejectsIndicesOutOfRange) {
  const Tensor params = Iota<float>({3, 2});
  const struct {
    Tensor params;
    Tensor indices;
    const char* error;
  } cases[] = {
      {params, AsTensor<int32_t>({0, 1, 2, 5}, {2, 2}), "indices[1,1] = 5 is not in [0, 3)"},
      {params, AsTensor<int64_t>({-1}), "indices[0] = -1 is not in [0, 3)"},
      {params, AsScalar<int64_t>(INT64_MAX), "indices = 9223372036854775807 is not in [0, 3)"},
      {Tensor(DT_FLOAT, {0, 2}), AsTensor<int32_t>({0}), "indices[0] = 0 is not in [0, 0)"},
      {Tensor(DT_FLOAT, {3, 0}), AsTensor<int32_t>({3}), "indices[0] = 3 is not in [0, 3)"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Gather(c.params, c.indices, 0).Run(), StatusIs(kInvalidArgument, c.error));
  }
}

TEST(GatherV2, NamesTheFirstOfManyIndicesOutOfRange) {
  Tensor indices(DT_INT16, {400, 1000});
  indices.flat<int16_t>().setConstant(2);
  for (const int64_t i : {399999, 260000, 170123}) indices.flat<int16_t>()(i) = 3;
  indices.flat<int16_t>()(170122) = -7;
  EXPECT_THAT(Gather(Iota<float>({3, 2}), indices, 0).Run(),
              StatusIs(kInvalidArgument, "indices[170,122] = -7 is not in [0, 3)"));
}

// Indices are checked in parts.
TEST(GatherV2, FindsAnIndexOutOfRangeAnywhere) {
  const auto expect_found = [](auto bad, int64_t limit) {
    using Index = decltype(bad);
    for (const int64_t at : {0, 255, 256, 700, 1029}) {
      Tensor indices(DataTypeToEnum<Index>::value, {1030});
      indices.flat<Index>().setConstant(static_cast<Index>(limit - 1));
      EXPECT_THAT(Gather(Tensor(DT_INT8, {limit, 0}), indices, 0).RunOne(), IsOk());
      indices.flat<Index>()(at) = bad;
      EXPECT_THAT(Gather(Tensor(DT_INT8, {limit, 0}), indices, 0).Run(),
                  StatusIs(kInvalidArgument, absl::StrCat("indices[", at, "] = ", bad,
                                                          " is not in [0, ", limit, ")")));
    }
  };
  expect_found(int16_t{-1}, 32768);
  expect_found(int16_t{-32768}, 5);
  expect_found(int16_t{-7}, 3);
  expect_found(int16_t{5}, 5);
  expect_found(int64_t{-1}, 1030);
  expect_found(int32_t{-1}, int64_t{1} << 31);
  expect_found(std::numeric_limits<int32_t>::min(), 7);
  expect_found(std::numeric_limits<int32_t>::max(), 7);
  expect_found(std::numeric_limits<int64_t>::min(), 1);
  expect_found(int64_t{1}, 1);
}

// Returns a node with 2^36 indices. Only the first few indices have memory, so a copy of all
// indices as int64 would fail.
OpTester WithoutIndices() {
  return OpTester("GatherV2")
      .Attr("Tparams", DT_FLOAT)
      .Attr("Tindices", DT_INT16)
      .Attr("Taxis", DT_INT32);
}
std::vector<Tensor> InputsWithoutIndices(int16_t first) {
  Tensor indices(std::make_shared<SmallBlocks>(), DT_INT16, {int64_t{1} << 36});
  *static_cast<int16_t*>(indices.raw_data()) = first;
  return {Tensor(DT_FLOAT, {1, 0}), indices, AsScalar<int32_t>(0)};
}

TEST(GatherV2, ReadsIndicesWithoutACopy) {
  EXPECT_THAT(WithoutIndices().RunOn(InputsWithoutIndices(5)),
              StatusIs(kInvalidArgument, "indices[0] = 5 is not in [0, 1)"));
}

TEST(GatherV2, ReadsNoIndicesInAStoppedRun) {
  StopToken stop;
  stop.Stop();
  GRADFLOW_EXPECT_OK(WithoutIndices().StoppedBy(&stop).RunOn(InputsWithoutIndices(0)));
}

TEST(GatherV2, StopsWithinALongSlice) {
  Tensor params(DT_STRING, {1, 5000});
  for (tstring& s : params.span<tstring>()) s = "x";
  // The deadline has passed, but a loop of one block does not check it. One slice is one block.
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      Gather(params, AsTensor<int32_t>({0}), 0).StoppedBy(&stop).RunOnThreads(1));
  EXPECT_EQ(outputs[0].span<tstring>()[0], "x");
  EXPECT_EQ(outputs[0].span<tstring>()[4999], "");
}

TEST(GatherV2, RejectsBadArguments) {
  const Tensor params = Iota<float>({2, 3});
  const Tensor indices = AsTensor<int32_t>({0, 1}, {2, 1});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Gather(params, indices, 2), "axis 2 is out of range [-2, 2)"},
      {Gather(params, indices, 1, 3), "Expected batch_dims in the range [-2, 2], but got 3"},
      {Gather(params, indices, 1, -3), "Expected batch_dims in the range [-2, 2], but got -3"},
      {Gather(params, indices, 1, INT64_MIN),
       "batch_dims in the range [-2, 2], but got -9223372036854775808"},
      {Gather(params, indices, 1, INT64_MAX),
       "batch_dims in the range [-2, 2], but got 9223372036854775807"},
      {Gather(params, indices, 0, 1), "batch_dims 1 must be at most axis 0"},
      {Gather(Iota<float>({3, 3}), indices, 1, 1),
       "params, of shape [3,3], and indices, of shape [2,1], must agree in the first 1 dimensions"},
      {Gather(AsScalar<float>(1), indices, 0),
       "Shape must be at least rank 1 but is rank 0: params has shape []"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  EXPECT_THAT(OpTester("GatherV2").Input(params).Input(indices).Input(AsTensor<int32_t>({0})).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 0 but is rank 1: axis has shape [1]"));
}

TEST(GatherV2, ChecksBatchDimsBeforeTheAxisIsKnown) {
  const auto infer = [](int64_t batch_dims) {
    return OpTester("GatherV2")
        .UnknownInput(DT_FLOAT, {2, 3, 4})
        .UnknownInput(DT_INT32, {2, 5})
        .UnknownInput(DT_INT32)
        .Attr("batch_dims", batch_dims)
        .InferShape();
  };
  EXPECT_THAT(infer(1), ShapeIs("[?,?,?]"));
  EXPECT_THAT(infer(-1), ShapeIs("[?,?,?]"));
  EXPECT_THAT(infer(-2), ShapeIs("[?,?,?,?]"));
  for (const int64_t batch_dims : {int64_t{3}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_THAT(
        infer(batch_dims),
        StatusIs(kInvalidArgument,
                 absl::StrCat("Expected batch_dims in the range [-2, 2], but got ", batch_dims)));
  }
}

TEST(GatherV2, InfersKnownDimensions) {
  EXPECT_THAT(OpTester("GatherV2")
                  .UnknownInput(DT_FLOAT, {-1, 3, 4})
                  .UnknownInput(DT_INT32, {5, -1})
                  .Input(AsScalar<int32_t>(1))
                  .Attr("batch_dims", 1)
                  .InferShape(),
              ShapeIs("[5,?,4]"));
  EXPECT_THAT(OpTester("GatherV2")
                  .UnknownInput(DT_FLOAT, {2, 3})
                  .UnknownInput(DT_INT32, {5})
                  .UnknownInput(DT_INT32)
                  .InferShape(),
              ShapeIs("[?,?]"));
}

TEST(Gather, PicksAlongTheFirstAxis) {
  const auto gather = [](const Tensor& params, const Tensor& indices) {
    return OpTester("Gather").Input(params).Input(indices);
  };
  const Tensor params = Iota<float>({3, 2});
  EXPECT_THAT(gather(params, AsTensor<int64_t>({2, 0, 2, 1}, {2, 2})).RunOne(),
              TensorEq(AsTensor<float>({4, 5, 0, 1, 4, 5, 2, 3}, {2, 2, 2})));
  EXPECT_THAT(gather(params, AsScalar<int32_t>(1)).RunOne(), TensorEq(AsTensor<float>({2, 3})));
  EXPECT_THAT(gather(params, AsTensor<int32_t>({3})).Attr("validate_indices", false).Run(),
              StatusIs(kInvalidArgument, "indices[0] = 3 is not in [0, 3)"));
  OpTester scalar = gather(AsScalar<float>(1), AsTensor<int32_t>({0}));
  EXPECT_THAT(
      scalar.Run(),
      StatusIs(kInvalidArgument,
               HasSubstr("Shape must be at least rank 1 but is rank 0: params has shape []")));
  EXPECT_THAT(
      scalar.InferShape(),
      StatusIs(kInvalidArgument,
               HasSubstr("Shape must be at least rank 1 but is rank 0: params has shape []")));
  EXPECT_THAT(
      OpTester("Gather").UnknownInput(DT_FLOAT, {-1, 4}).UnknownInput(DT_INT32, {5}).InferShape(),
      ShapeIs("[5,4]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
