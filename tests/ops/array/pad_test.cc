#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using Rows = std::vector<std::pair<int64_t, int64_t>>;

Tensor PaddingsTensor(const Rows& rows, DataType dtype = DT_INT32) {
  std::vector<int64_t> values;
  for (const auto& [before, after] : rows) values.insert(values.end(), {before, after});
  const TensorShape shape({static_cast<int64_t>(rows.size()), 2});
  return dtype == DT_INT32 ? AsTensor<int32_t>(values, shape) : AsTensor<int64_t>(values, shape);
}

OpTester Pad(const Tensor& input, const Rows& rows, DataType dtype = DT_INT32) {
  return OpTester("Pad").Input(input).Input(PaddingsTensor(rows, dtype));
}
OpTester MirrorPad(const char* op, const Tensor& input, const Rows& rows, const char* mode) {
  return OpTester(op).Input(input).Input(PaddingsTensor(rows)).Attr("mode", mode);
}

TensorShape Padded(const Tensor& input, const Rows& rows) {
  TensorShape shape = input.shape();
  for (int d = 0; d < shape.dims(); ++d) {
    shape.set_dim(d, rows[d].first + shape.dim_size(d) + rows[d].second);
  }
  return shape;
}

const Rows kRows[] = {{{1, 2}, {0, 3}, {2, 0}},
                      {{0, 0}, {1, 1}, {0, 0}},
                      {{3, 0}, {0, 0}, {0, 1}},
                      {{0, 0}, {0, 0}, {0, 0}}};

TEST(Pad, AddsTheValueInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {3, 4, 5});
    // The padding value comes after the elements of the input.
    const Tensor flat = *input.Reshaped({60});
    const Tensor zero = *OpTester("ZerosLike").Input(flat.Slice(0, 1)).RunOne();
    for (const Rows& rows : kRows) {
      const auto expected = [&](const Tensor& value) {
        const Tensor all =
            *OpTester("ConcatV2").Input(flat).Input(value).Input(AsScalar<int32_t>(0)).RunOne();
        return Rearranged(all, Padded(input, rows), [&](std::vector<int64_t> index) -> int64_t {
          for (int d = 0; d < 3; ++d) {
            index[d] -= rows[d].first;
            if (index[d] < 0 || index[d] >= input.dim_size(d)) return 60;
          }
          return (index[0] * 4 + index[1]) * 5 + index[2];
        });
      };
      EXPECT_THAT(Pad(input, rows).RunOne(), TensorEq(expected(zero)));
      const Tensor value = flat.Slice(7, 8);
      EXPECT_THAT(OpTester("PadV2")
                      .Input(input)
                      .Input(PaddingsTensor(rows, DT_INT64))
                      .Input(*value.Reshaped({}))
                      .RunOne(),
                  TensorEq(expected(value)));
    }
  }
}

TEST(Pad, PadsLargeEmptyAndScalarTensors) {
  const Tensor large = Iota<int32_t>({300, 200}, 1);
  EXPECT_THAT(Pad(large, {{5, 0}, {7, 9}}).RunOne(), TensorEq([&] {
                std::vector<int64_t> values;
                for (int64_t i = -5; i < 300; ++i) {
                  for (int64_t j = -7; j < 209; ++j) {
                    values.push_back(i < 0 || j < 0 || j >= 200 ? 0 : i * 200 + j + 1);
                  }
                }
                return AsTensor<int32_t>(values, {305, 216});
              }()));
  EXPECT_THAT(Pad(Tensor(DT_FLOAT, {0, 2}), {{1, 1}, {0, 0}}).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {2, 2})));
  EXPECT_THAT(Pad(Tensor(DT_FLOAT, {0, 2}), {{0, 0}, {1, 1}}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 4})));
  EXPECT_THAT(Pad(AsScalar<float>(3), {}).RunOne(), TensorEq(AsScalar<float>(3)));
}

TEST(Pad, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  ExpectErrors({
      {"negative", Pad(input, {{0, 0}, {0, -1}}), "paddings[1,1] must not be negative, but is -1"},
      {"rows", Pad(input, {{0, 0}}),
       "paddings must have shape [2,2], a row for each dimension of input, of shape [2,3], but has "
       "shape [1,2]"},
      {"overflow", Pad(input, {{INT64_MAX, 0}, {0, 0}}, DT_INT64), "is more than 2^63 - 1"},
      {"elements", Pad(input, {{int64_t{1} << 62, 0}, {0, 0}}, DT_INT64),
       "padded input: shape [4611686018427387906,3] has more elements than fit in an int64"},
      {"value",
       OpTester("PadV2").Input(input).Input(PaddingsTensor({{0, 0}, {0, 1}})).Input<float>({1}),
       "Shape must be rank 0 but is rank 1: constant_values has shape [1]"},
  });
  EXPECT_THAT(OpTester("Pad").UnknownInput(DT_FLOAT, {-1, 2}).UnknownInput(DT_INT32).InferShape(),
              ShapeIs("[?,?]"));
  EXPECT_THAT(OpTester("Pad").UnknownInput(DT_FLOAT).UnknownInput(DT_INT32, {3, 2}).InferShape(),
              ShapeIs("[?,?,?]"));
  EXPECT_THAT(OpTester("Pad")
                  .UnknownInput(DT_FLOAT, {-1, 2})
                  .Input(PaddingsTensor({{1, 1}, {1, 1}}))
                  .InferShape(),
              ShapeIs("[?,4]"));
}

TEST(Pad, DoesNotAllocateMoreThanTheLimit) {
  // 2^40 floats.
  EXPECT_THAT(OpTester("Pad")
                  .Input(Iota<float>({2}))
                  .Input(PaddingsTensor({{int64_t{1} << 40, 0}}, DT_INT64))
                  .RunOnThreads(1),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("out of memory")));
}

// Returns the index that position `i` mirrors.
int64_t Mirrored(int64_t i, int64_t size, bool reflect) {
  if (i < 0) return reflect ? -i : -i - 1;
  return i < size ? i : 2 * size - i - (reflect ? 2 : 1);
}

TEST(MirrorPad, MirrorsInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {3, 4, 5});
    for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
      for (const Rows& rows :
           std::vector<Rows>{{{1, 2}, {0, 3}, {2, 4}}, {{0, 0}, {3, 0}, {0, 0}}}) {
        EXPECT_THAT(
            MirrorPad("MirrorPad", input, rows, mode).RunOne(),
            TensorEq(Rearranged(input, Padded(input, rows), [&](std::vector<int64_t> index) {
              for (int d = 0; d < 3; ++d) {
                index[d] = Mirrored(index[d] - rows[d].first, input.dim_size(d), mode[0] == 'R');
              }
              return (index[0] * 4 + index[1]) * 5 + index[2];
            })));
      }
    }
  }
}

TEST(MirrorPadGrad, SumsTheCopiesOfEachElement) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_INT32, DT_UINT8, DT_HALF, DT_BFLOAT16}) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const bool reflect : {true, false}) {
      const Rows rows = {{1, 2}, {0, 3}, {2, 1}};
      const TensorShape shape({3, 4, 5});
      const Tensor padded_shape(dtype, shape);
      // The sums of small integers are exact.
      const Tensor input = RandomTensor(dtype, Padded(padded_shape, rows), 0, 2);
      const Tensor rounded = UnaryReference(input, [](double x) { return std::floor(x * 2); });
      const Tensor doubles = *OpTester("Cast").Input(rounded).Attr("DstT", DT_DOUBLE).RunOne();
      std::vector<double> sums(60);
      const auto values = doubles.tensor<double, 3>();
      for (int64_t i = 0; i < values.dimension(0); ++i) {
        for (int64_t j = 0; j < values.dimension(1); ++j) {
          for (int64_t k = 0; k < values.dimension(2); ++k) {
            const int64_t a = Mirrored(i - 1, 3, reflect);
            const int64_t b = Mirrored(j, 4, reflect);
            const int64_t c = Mirrored(k - 2, 5, reflect);
            sums[(a * 4 + b) * 5 + c] += values(i, j, k);
          }
        }
      }
      EXPECT_THAT(
          MirrorPad("MirrorPadGrad", rounded, rows, reflect ? "REFLECT" : "SYMMETRIC").RunOne(),
          TensorEq(FromDoubles(dtype, shape, sums)));
    }
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(MirrorPadGrad, HasTheValuesOfTensorFlow) {
  const Tensor input = Iota<float>({4, 5});
  EXPECT_THAT(MirrorPad("MirrorPadGrad", input, {{1, 1}, {1, 1}}, "REFLECT").RunOne(),
              TensorEq(AsTensor<float>({22, 72, 26, 12, 42, 16}, {2, 3})));
  EXPECT_THAT(MirrorPad("MirrorPadGrad", input, {{1, 1}, {1, 2}}, "SYMMETRIC").RunOne(),
              TensorEq(AsTensor<float>({25, 20, 85, 60}, {2, 2})));
}

TEST(MirrorPad, PadsEmptyAndScalarTensors) {
  EXPECT_THAT(MirrorPad("MirrorPad", AsScalar<float>(3), {}, "REFLECT").RunOne(),
              TensorEq(AsScalar<float>(3)));
  EXPECT_THAT(
      MirrorPad("MirrorPad", Tensor(DT_FLOAT, {0, 2}), {{0, 0}, {1, 1}}, "SYMMETRIC").RunOne(),
      TensorEq(Tensor(DT_FLOAT, {0, 4})));
}

TEST(MirrorPad, RejectsBadArguments) {
  const Tensor input = Iota<float>({2, 3});
  ExpectErrors({
      {"reflect", MirrorPad("MirrorPad", input, {{2, 1}, {0, 0}}, "REFLECT"),
       "paddings[0] must be at most 1, as dimension 0 without padding has size 2, but are 2 and 1"},
      {"symmetric", MirrorPad("MirrorPad", input, {{0, 0}, {0, 4}}, "SYMMETRIC"),
       "paddings[1] must be at most 3, as dimension 1 without padding has size 3, but are 0 and 4"},
      {"empty", MirrorPad("MirrorPad", Tensor(DT_FLOAT, {0}), {{0, 0}}, "REFLECT"),
       "paddings[0] must be at most -1"},
      {"gradient", MirrorPad("MirrorPadGrad", input, {{0, 0}, {2, 2}}, "REFLECT"),
       "paddings[1] are 2 and 2, but dimension 1 of input has size 3"},
      {"gradient of few", MirrorPad("MirrorPadGrad", input, {{0, 0}, {2, 0}}, "SYMMETRIC"),
       "paddings[1] must be at most 1, as dimension 1 without padding has size 1, but are 2 and 0"},
      // TFSA-2022-157.
      {"overflow",
       MirrorPad("MirrorPadGrad", Iota<float>({1}), {{0x77f00000, 0xa000000}}, "REFLECT"),
       "paddings[0] are 2012217344 and 167772160, but dimension 0 of input has size 1"},
  });
  EXPECT_THAT(OpTester("MirrorPadGrad")
                  .UnknownInput(DT_FLOAT, {-1, 5})
                  .Input(PaddingsTensor({{1, 1}, {1, 1}}))
                  .Attr("mode", "REFLECT")
                  .InferShape(),
              ShapeIs("[?,3]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
