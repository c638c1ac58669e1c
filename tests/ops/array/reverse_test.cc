#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester ReverseV2(const Tensor& tensor, const std::vector<int64_t>& axes) {
  return OpTester("ReverseV2").Input(tensor).Input(AsTensor<int64_t>(axes));
}

TEST(ReverseV2, ReversesInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    if (!OpTester("ReverseV2").Input(Tensor(dtype, {1})).Input<int32_t>({0}).MakeKernel().ok()) {
      continue;
    }
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor tensor = DistinctTensor(dtype, {3, 4, 5});
    for (int mask = 0; mask < 8; ++mask) {
      std::vector<int64_t> axes;
      std::vector<bool> flags;
      for (int d = 0; d < 3; ++d) {
        flags.push_back((mask >> d & 1) != 0);
        if (flags[d]) axes.push_back(d % 2 == 0 ? d : d - 3);
      }
      const Tensor expected = Rearranged(tensor, {3, 4, 5}, [&](std::vector<int64_t> index) {
        for (int d = 0; d < 3; ++d) {
          if (flags[d]) index[d] = tensor.dim_size(d) - 1 - index[d];
        }
        return (index[0] * 4 + index[1]) * 5 + index[2];
      });
      EXPECT_THAT(ReverseV2(tensor, axes).RunOne(), TensorEq(expected));
      EXPECT_THAT(OpTester("Reverse").Input(tensor).Input(AsTensor<bool>(flags)).RunOne(),
                  TensorEq(expected));
    }
  }
}

TEST(ReverseV2, ReversesLargeEmptyAndScalarTensors) {
  const Tensor large = Iota<int32_t>({1000, 333});
  EXPECT_THAT(ReverseV2(large, {0, 1}).RunOne(),
              TensorEq(Rearranged(large, {1000, 333}, [](const std::vector<int64_t>& index) {
                return 333 * 1000 - 1 - (index[0] * 333 + index[1]);
              })));
  EXPECT_THAT(ReverseV2(Tensor(DT_FLOAT, {0, 2}), {0, 1}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
  EXPECT_THAT(ReverseV2(AsScalar<float>(2), {}).RunOne(), TensorEq(AsScalar<float>(2)));
}

TEST(ReverseV2, RejectsBadArguments) {
  const Tensor tensor = Iota<float>({2, 3});
  ExpectErrors({
      {"axis", ReverseV2(tensor, {2}), "axis 2 is out of range [-2, 2)"},
      {"twice", ReverseV2(tensor, {0, -2}), "axis names axis 0 twice"},
      {"flags", OpTester("Reverse").Input(tensor).Input<bool>({true}),
       "dims must have one element for each dimension of tensor, of shape [2,3], but has 1"},
  });
  EXPECT_THAT(OpTester("ReverseV2").Input(tensor).Input(AsScalar<int32_t>(0)).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: axis has shape []"));
  EXPECT_THAT(OpTester("Reverse").UnknownInput(DT_FLOAT).UnknownInput(DT_BOOL, {2}).InferShape(),
              ShapeIs("[?,?]"));
}

OpTester ReverseSequence(const Tensor& input, const Tensor& lengths, int64_t seq, int64_t batch) {
  return OpTester("ReverseSequence")
      .Input(input)
      .Input(lengths)
      .Attr("seq_dim", seq)
      .Attr("batch_dim", batch);
}

TEST(ReverseSequence, ReversesTheBeginningInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {2, 3, 4, 5});
    for (int seq = 0; seq < 4; ++seq) {
      for (int batch = 0; batch < 4; ++batch) {
        if (seq == batch) continue;
        std::vector<int64_t> lengths;
        for (int64_t b = 0; b < input.dim_size(batch); ++b) {
          lengths.push_back((b * 2 + 1) % (input.dim_size(seq) + 1));
        }
        const auto source = [&](std::vector<int64_t> index) {
          const int64_t length = lengths[index[batch]];
          if (index[seq] < length) index[seq] = length - 1 - index[seq];
          return ((index[0] * 3 + index[1]) * 4 + index[2]) * 5 + index[3];
        };
        EXPECT_THAT(ReverseSequence(input, AsTensor<int64_t>(lengths), seq, batch).RunOne(),
                    TensorEq(Rearranged(input, {2, 3, 4, 5}, source)));
      }
    }
  }
}

TEST(ReverseSequence, TakesLengthsOfBothTypesAndEmptyBatches) {
  EXPECT_THAT(ReverseSequence(AsTensor<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3}),
                              AsTensor<int32_t>({2, 3}), 1, 0)
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({2, 1, 3, 6, 5, 4}, {2, 3})));
  EXPECT_THAT(ReverseSequence(Tensor(DT_FLOAT, {0, 3}), AsTensor<int64_t>({}), 1, 0).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 3})));
}

TEST(ReverseSequence, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  const Tensor lengths = AsTensor<int64_t>({1, 2});
  ExpectErrors({
      {"seq", ReverseSequence(input, lengths, -1, 0), "seq_dim -1 is out of range [0, 2)"},
      {"batch", ReverseSequence(input, lengths, 1, 2), "batch_dim 2 is out of range [0, 2)"},
      {"same", ReverseSequence(input, lengths, 1, 1),
       "seq_dim and batch_dim must differ, but both are 1"},
      {"count", ReverseSequence(input, lengths, 0, 1),
       "seq_lengths has 2 elements, expected 3, the size of dimension batch_dim of input, of shape "
       "[2,3]"},
  });
  EXPECT_THAT(ReverseSequence(input, AsTensor<int64_t>({1, 4}), 1, 0).Run(),
              StatusIs(kInvalidArgument, "seq_lengths[1] must be in [0, 3], but is 4"));
  EXPECT_THAT(ReverseSequence(input, AsTensor<int64_t>({-1, 2}), 1, 0).Run(),
              StatusIs(kInvalidArgument, HasSubstr("seq_lengths[0] must be in [0, 3]")));
  EXPECT_THAT(OpTester("ReverseSequence")
                  .UnknownInput(DT_FLOAT, {-1, 3})
                  .UnknownInput(DT_INT64, {4})
                  .Attr("seq_dim", int64_t{1})
                  .InferShape(),
              ShapeIs("[4,3]"));
}

OpTester Roll(const Tensor& input, const Tensor& shift, const Tensor& axis) {
  return OpTester("Roll").Input(input).Input(shift).Input(axis);
}

TEST(Roll, ShiftsInEveryType) {
  const std::vector<std::vector<int64_t>> shifts = {{1, 0, 0},  {0, 2, 0},  {0, 0, -3},
                                                    {-1, 1, 2}, {7, -8, 0}, {0, 5, 1}};
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {3, 4, 5});
    for (const std::vector<int64_t>& shift : shifts) {
      const Tensor expected = Rearranged(input, {3, 4, 5}, [&](std::vector<int64_t> index) {
        for (int d = 0; d < 3; ++d) {
          const int64_t size = input.dim_size(d);
          index[d] = ((index[d] - shift[d]) % size + size) % size;
        }
        return (index[0] * 4 + index[1]) * 5 + index[2];
      });
      EXPECT_THAT(Roll(input, AsTensor<int64_t>(shift), AsTensor<int32_t>({0, 1, -1})).RunOne(),
                  TensorEq(expected));
    }
  }
}

TEST(Roll, AddsShiftsAndTakesScalars) {
  const Tensor input = AsTensor<int32_t>({0, 1, 2, 3, 4});
  EXPECT_THAT(Roll(input, AsTensor<int32_t>({2, -3, 2}), AsTensor<int64_t>({0, 0, -1})).RunOne(),
              TensorEq(AsTensor<int32_t>({4, 0, 1, 2, 3})));
  EXPECT_THAT(Roll(input, AsScalar<int64_t>(INT64_MAX), AsScalar<int32_t>(0)).RunOne(),
              TensorEq(AsTensor<int32_t>({3, 4, 0, 1, 2})));
  EXPECT_THAT(Roll(input, AsScalar<int64_t>(INT64_MIN), AsScalar<int32_t>(0)).RunOne(),
              TensorEq(AsTensor<int32_t>({3, 4, 0, 1, 2})));
  EXPECT_THAT(Roll(input, AsTensor<int32_t>({}), AsTensor<int32_t>({})).RunOne(), TensorEq(input));
  const Tensor empty(DT_FLOAT, {3, 0});
  EXPECT_THAT(Roll(empty, AsTensor<int32_t>({1, 2}), AsTensor<int32_t>({0, 1})).RunOne(),
              TensorEq(empty));
}

TEST(Roll, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  ExpectErrors({
      {"axis", Roll(input, AsScalar<int32_t>(1), AsScalar<int32_t>(2)),
       "axis 2 is out of range [-2, 2)"},
      {"sizes", Roll(input, AsTensor<int32_t>({1, 2}), AsTensor<int32_t>({0})),
       "shift and axis must have the same size, but have shapes [2] and [1]"},
      {"matrix", Roll(input, AsTensor<int32_t>({1}, {1, 1}), AsTensor<int32_t>({0}, {1, 1})),
       "shift must be a scalar or a 1-D vector, but has shape [1,1]"},
      {"scalar", Roll(AsScalar<float>(1), AsTensor<int32_t>({}), AsTensor<int32_t>({})),
       "Shape must be at least rank 1 but is rank 0: input has shape []"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
