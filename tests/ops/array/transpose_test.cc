#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

Tensor Transposed(const Tensor& x, const std::vector<int64_t>& perm) {
  TensorShape shape;
  for (const int64_t axis : perm) shape.AddDim(x.dim_size(static_cast<int>(axis)));
  return Rearranged(x, shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> from_index(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) from_index[perm[d]] = index[d];
    int64_t from = 0;
    for (size_t d = 0; d < perm.size(); ++d) {
      from = from * x.dim_size(static_cast<int>(d)) + from_index[d];
    }
    return from;
  });
}

TEST(Transpose, ReordersInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = DistinctTensor(dtype, {5, 6, 7});
    for (const std::vector<int64_t>& perm :
         std::vector<std::vector<int64_t>>{{2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {0, 1, 2}}) {
      EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsTensor<int32_t>(perm)).RunOne(),
                  TensorEq(Transposed(x, perm)));
    }
  }
}

TEST(Transpose, TakesEveryPermutation) {
  const Tensor x = Iota<int16_t>({3, 1, 4, 5});
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do {
    EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsTensor<int64_t>(perm)).RunOne(),
                TensorEq(Transposed(x, perm)));
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, ReordersLargeTensors) {
  // These sizes are not multiples of the tile size.
  const Tensor x = Iota<int32_t>({333, 257});
  EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsTensor<int32_t>({1, 0})).RunOne(),
              TensorEq(Transposed(x, {1, 0})));
  const Tensor images = Iota<int32_t>({8, 30, 31, 5});
  for (const std::vector<int64_t>& perm :
       std::vector<std::vector<int64_t>>{{0, 3, 1, 2}, {0, 2, 3, 1}, {3, 2, 1, 0}}) {
    EXPECT_THAT(OpTester("Transpose").Input(images).Input(AsTensor<int32_t>(perm)).RunOne(),
                TensorEq(Transposed(images, perm)));
  }
}

// Returns whether matrix y is the transpose of matrix x. Elements have `size` bytes.
bool IsTransposed(const Tensor& x, const Tensor& y, size_t size) {
  const char* from = static_cast<const char*>(x.raw_data());
  const char* to = static_cast<const char*>(y.raw_data());
  const int64_t rows = x.dim_size(0);
  const int64_t columns = x.dim_size(1);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      if (std::memcmp(from + (r * columns + c) * size, to + (c * rows + r) * size, size) != 0) {
        return false;
      }
    }
  }
  return true;
}

// Tensors that are written with non-temporal stores, with rows that are whole cache lines or not.
TEST(Transpose, ReordersTensorsLargerThanACacheByTheirElementSize) {
  for (const DataType dtype : {DT_UINT8, DT_HALF, DT_FLOAT, DT_INT64, DT_COMPLEX128}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const int64_t size = DataTypeSize(dtype);
    const int64_t columns = 64 * 33;
    const int64_t rows = MinNonTemporalBytes() / size / columns / 64 * 64 + 64;
    for (const TensorShape& shape : {TensorShape({rows, columns}), TensorShape({columns, rows}),
                                     TensorShape({rows + 3, columns + 5})}) {
      SCOPED_TRACE(shape.DebugString());
      const Tensor x = DistinctTensor(dtype, shape);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y,
                                    OpTester("Transpose").Input(x).Input<int32_t>({1, 0}).RunOne());
      EXPECT_TRUE(IsTransposed(x, y, size));
    }
  }
}

// Several short dimensions, with units of 1 to 16 bytes, and the last part of a divided dimension.
TEST(Transpose, ReordersShortDimensions) {
  const std::pair<TensorShape, std::vector<int64_t>> cases[] = {
      {{37, 14, 2, 14, 2}, {0, 1, 3, 2, 4}},
      {{101, 7, 11, 13}, {2, 0, 3, 1}},
      {{1030, 2, 2}, {0, 2, 1}},
      {{333, 3, 5}, {0, 2, 1}},
      {{9, 28, 2, 28, 2, 3}, {0, 1, 3, 2, 4, 5}},
      {{5, 4, 3, 2, 16}, {3, 2, 1, 0, 4}},
      {{700, 3}, {1, 0}},
      {{3, 700}, {1, 0}}};
  for (const DataType dtype : {DT_UINT8, DT_HALF, DT_FLOAT, DT_INT64, DT_COMPLEX128, DT_STRING}) {
    for (const auto& [shape, perm] : cases) {
      SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", shape.DebugString()));
      const Tensor x = DistinctTensor(dtype, shape);
      EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsTensor<int64_t>(perm)).RunOne(),
                  TensorEq(Transposed(x, perm)));
    }
  }
}

TEST(Transpose, ReordersShortDimensionsOfALargeTensor) {
  const int64_t rows = MinNonTemporalBytes() / (8 * 12 * 4) + 3;
  const Tensor x = Iota<int32_t>({rows, 2, 4, 3, 4});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor y, OpTester("Transpose").Input(x).Input<int32_t>({0, 1, 3, 2, 4}).RunOne());
  const auto from = x.flat<int32_t>();
  const auto to = y.flat<int32_t>();
  int64_t wrong = 0;
  for (int64_t i = 0; i < to.size(); ++i) {
    const int64_t inner = i % 4, b = i / 4 % 4, c = i / 16 % 3, outer = i / 48;
    wrong += to(i) != from(outer * 48 + (b * 3 + c) * 4 + inner) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0);
}

// Rows that begin and end at cache lines, rows that end within a cache line, and rows that begin
// within one.
TEST(Transpose, ReordersLargeTensorsOnEverySimdTarget) {
  const std::vector<int64_t> shapes[] = {{512, 2, 2064}, {520, 2, 2053}, {33000, 2, 21},
                                         {70000, 1, 16}, {16, 1, 70000}, {24, 4, 12000}};
  for (const DataType dtype : {DT_FLOAT, DT_INT64}) {
    for (const std::vector<int64_t>& dims : shapes) {
      const Tensor x = DistinctTensor(dtype, TensorShape(dims));
      for (const std::vector<int64_t>& perm :
           {std::vector<int64_t>{1, 2, 0}, std::vector<int64_t>{2, 1, 0}}) {
        const Tensor expected = Transposed(x, perm);
        for (const std::string& target : SimdTargets()) {
          SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", x.shape().DebugString(), " ",
                                    perm[0], " ", target));
          ASSERT_TRUE(SetSimdTarget(target));
          GRADFLOW_ASSERT_OK_AND_ASSIGN(
              const Tensor y,
              OpTester("Transpose").Input(x).Input(AsTensor<int64_t>(perm)).RunOne());
          EXPECT_EQ(y.tensor_data(), expected.tensor_data());
        }
      }
    }
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

TEST(Transpose, ReordersAroundTheSizesOfTiles) {
  for (const DataType dtype : {DT_UINT8, DT_HALF, DT_FLOAT, DT_INT64, DT_COMPLEX128}) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const int64_t rows : {2, 3, 4, 5, 15, 16, 17, 64, 65, 129}) {
      for (const int64_t columns : {2, 3, 7, 16, 33, 64, 128, 1100}) {
        const Tensor x = DistinctTensor(dtype, {rows, columns});
        GRADFLOW_ASSERT_OK_AND_ASSIGN(
            const Tensor y, OpTester("Transpose").Input(x).Input<int32_t>({1, 0}).RunOne());
        EXPECT_TRUE(IsTransposed(x, y, DataTypeSize(dtype))) << rows << " x " << columns;
      }
    }
  }
}

TEST(Transpose, MovesChannelsOfImages) {
  for (const int64_t channels : {2, 3, 4, 5, 64}) {
    const Tensor images = Iota<int32_t>({2, 37, 19, channels});
    const Tensor planes = Transposed(images, {0, 3, 1, 2});
    EXPECT_THAT(OpTester("Transpose").Input(images).Input<int32_t>({0, 3, 1, 2}).RunOne(),
                TensorEq(planes));
    EXPECT_THAT(OpTester("Transpose").Input(planes).Input<int32_t>({0, 2, 3, 1}).RunOne(),
                TensorEq(images));
  }
}

// Tiles with few columns have longer rows. The sizes lie around the tile sizes, for each element
// size.
TEST(Transpose, MovesFewChannelsOfLongRows) {
  for (const DataType dtype : {DT_INT8, DT_INT16, DT_INT32, DT_INT64, DT_COMPLEX128}) {
    for (const int64_t channels : {1, 2, 3, 4, 5, 9, 17}) {
      for (const int64_t pixels : {255, 1023, 1027, 4099}) {
        SCOPED_TRACE(absl::StrCat(DataTypeString(dtype), " ", channels, " ", pixels));
        const auto expect_transposed = [](const Tensor& x, const std::vector<int64_t>& perm) {
          EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsTensor<int64_t>(perm)).RunOne(),
                      TensorEq(Transposed(x, perm)));
        };
        expect_transposed(DistinctTensor(dtype, {2, pixels, channels}), {0, 2, 1});
        // Other elements lie between the rows.
        expect_transposed(DistinctTensor(dtype, {pixels, 2, channels}), {1, 2, 0});
      }
    }
  }
}

TEST(Transpose, DoesNotCopyIfTheOrderStays) {
  const Tensor x = Iota<float>({1, 4, 1, 5});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor y,
      OpTester("Transpose").Input(x).Input(AsTensor<int32_t>({1, 0, 3, 2})).RunOne());
  EXPECT_THAT(y, TensorEq(Iota<float>({4, 1, 5, 1})));
  EXPECT_EQ(y.raw_data(), x.raw_data());
}

TEST(Transpose, ReordersScalarsAndEmptyTensors) {
  EXPECT_THAT(OpTester("Transpose").Input(AsScalar<float>(1)).Input(AsTensor<int32_t>({})).RunOne(),
              TensorEq(AsScalar<float>(1)));
  EXPECT_THAT(OpTester("Transpose")
                  .Input(Tensor(DT_FLOAT, {2, 0, 3}))
                  .Input(AsTensor<int32_t>({2, 0, 1}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {3, 2, 0})));
}

TEST(Transpose, RejectsNonPermutations) {
  const Tensor x = Iota<float>({2, 3});
  const struct {
    Tensor perm;
    const char* error;
  } cases[] = {
      {AsTensor<int32_t>({0, 0}), "perm names dimension 0 twice"},
      {AsTensor<int32_t>({0, 2}), "perm 2 is out of range [0, 2)"},
      {AsTensor<int32_t>({0, -1}), "perm -1 is out of range [0, 2)"},
      {AsTensor<int32_t>({-1, -2}), "perm -1 is out of range [0, 2)"},
      {AsTensor<int64_t>({INT64_MIN, 0}), "perm -9223372036854775808 is out of range [0, 2)"},
  };
  for (const auto& c : cases) {
    OpTester tester = OpTester("Transpose").Input(x).Input(c.perm);
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, c.error));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, c.error));
  }
  OpTester length = OpTester("Transpose").Input(x).Input(AsTensor<int32_t>({0}));
  EXPECT_THAT(length.Run(),
              StatusIs(kInvalidArgument,
                       "perm must have 2 elements, one for each dimension of x, but has 1"));
  EXPECT_THAT(length.InferShape(), StatusIs(kInvalidArgument));
  EXPECT_THAT(OpTester("Transpose").Input(x).Input(AsScalar<int32_t>(0)).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: perm has shape []"));
}

TEST(Transpose, InfersKnownDimensions) {
  EXPECT_THAT(OpTester("Transpose")
                  .UnknownInput(DT_FLOAT, {2, -1, 4})
                  .Input(AsTensor<int32_t>({1, 2, 0}))
                  .InferShape(),
              ShapeIs("[?,4,2]"));
  EXPECT_THAT(OpTester("Transpose").UnknownInput(DT_FLOAT).UnknownInput(DT_INT32, {2}).InferShape(),
              ShapeIs("[?,?]"));
}

TEST(ConjugateTranspose, ConjugatesComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, -4}, {5, 6}, {7, 0}, {0, 1}, {2, 2}}, {2, 3});
  EXPECT_THAT(OpTester("ConjugateTranspose").Input(x).Input(AsTensor<int32_t>({1, 0})).RunOne(),
              TensorEq(AsTensor<complex64>({{1, -2}, {7, -0.0f}, {3, 4}, {0, -1}, {5, -6}, {2, -2}},
                                           {3, 2})));
  // Elements are conjugated even if none moves.
  EXPECT_THAT(OpTester("ConjugateTranspose")
                  .Input(AsTensor<complex128>({{1, 2}, {3, -4}}))
                  .Input(AsTensor<int64_t>({0}))
                  .RunOne(),
              TensorEq(AsTensor<complex128>({{1, -2}, {3, 4}})));
  for (const DataType dtype : {DT_FLOAT, DT_STRING, DT_INT16}) {
    const Tensor real = DistinctTensor(dtype, {3, 4});
    EXPECT_THAT(
        OpTester("ConjugateTranspose").Input(real).Input(AsTensor<int32_t>({1, 0})).RunOne(),
        TensorEq(Transposed(real, {1, 0})));
  }
}

TEST(InvertPermutation, InvertsPermutations) {
  EXPECT_THAT(OpTester("InvertPermutation").Input<int32_t>({3, 0, 2, 1}).RunOne(),
              TensorEq(AsTensor<int32_t>({1, 3, 2, 0})));
  EXPECT_THAT(OpTester("InvertPermutation").Input<int64_t>({1, 0}).RunOne(),
              TensorEq(AsTensor<int64_t>({1, 0})));
  EXPECT_THAT(OpTester("InvertPermutation").Input<int32_t>({}).RunOne(),
              TensorEq(AsTensor<int32_t>({})));
}

TEST(InvertPermutation, RejectsNonPermutations) {
  EXPECT_THAT(OpTester("InvertPermutation").Input<int32_t>({2, 0, 2}).Run(),
              StatusIs(kInvalidArgument, "x must be a permutation, but x[0] and x[2] are both 2"));
  EXPECT_THAT(OpTester("InvertPermutation").Input<int32_t>({2, 0, 3}).Run(),
              StatusIs(kInvalidArgument, "x[2] = 3 is not in [0, 3)"));
  EXPECT_THAT(OpTester("InvertPermutation").Input<int64_t>({-1}).Run(),
              StatusIs(kInvalidArgument, "x[0] = -1 is not in [0, 1)"));
  EXPECT_THAT(OpTester("InvertPermutation").Input(AsScalar<int32_t>(0)).Run(),
              StatusIs(kInvalidArgument, "Shape must be rank 1 but is rank 0: x has shape []"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
