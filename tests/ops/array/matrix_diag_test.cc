#include <cstdint>
#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAligns[] = {"LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"};

Tensor K(int lower, int upper) { return AsTensor<int32_t>({lower, upper}); }

// Returns the position of element i of diagonal k in a row of `length` elements, for [rows,
// columns] matrices.
int64_t Position(int64_t k, int64_t i, int64_t rows, int64_t columns, int64_t length,
                 const std::string& align) {
  const int64_t own = std::min(rows + std::min<int64_t>(k, 0), columns - std::max<int64_t>(k, 0));
  const bool left = k >= 0 ? align.rfind("LEFT", 0) == 0 : align.find("_LEFT") != align.npos;
  return left ? i : length - own + i;
}

// Returns `first` followed by `second`, flattened.
Tensor Joined(const Tensor& first, const Tensor& second) {
  return *OpTester("ConcatV2")
              .Input(*first.Reshaped({first.NumElements()}))
              .Input(*second.Reshaped({second.NumElements()}))
              .Input(AsScalar<int32_t>(0))
              .RunOne();
}

TEST(MatrixDiag, AgreesWithTheDefinitionInEveryTypeAndAlignment) {
  constexpr int64_t kRows = 3;
  constexpr int64_t kColumns = 4;
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const char* align : kAligns) {
      SCOPED_TRACE(align);
      for (int lower = -2; lower <= 3; ++lower) {
        for (int upper = lower; upper <= 3; ++upper) {
          SCOPED_TRACE(absl::StrCat(lower, " to ", upper));
          const int64_t count = upper - lower + 1;
          const int64_t length =
              std::min<int64_t>(kRows + std::min(upper, 0), kColumns - std::max(lower, 0));
          const Tensor matrices = DistinctTensor(dtype, {2, kRows, kColumns});
          const Tensor pad = *matrices.Reshaped({24})->Slice(5, 6).Reshaped({});
          // Returns the matrix element at a position of the diagonals, or -1 for padding.
          const auto source = [&](int64_t m, int64_t at) -> int64_t {
            const int64_t k = upper - m;
            const int64_t i = at - Position(k, 0, kRows, kColumns, length, align);
            const int64_t row = k >= 0 ? i : i - k;
            const int64_t column = k >= 0 ? i + k : i;
            return i >= 0 && row < kRows && column < kColumns ? row * kColumns + column : -1;
          };
          TensorShape shape({2, count, length});
          if (count == 1) shape.RemoveDim(1);
          const auto split = [&](const std::vector<int64_t>& index) {
            return count == 1 ? source(0, index[1]) : source(index[1], index[2]);
          };
          const Tensor diagonals =
              Rearranged(Joined(matrices, pad), shape, [&](const std::vector<int64_t>& index) {
                const int64_t at = split(index);
                return at < 0 ? 24 : index[0] * 12 + at;
              });
          EXPECT_THAT(OpTester("MatrixDiagPartV3")
                          .Input(matrices)
                          .Input(K(lower, upper))
                          .Input(pad)
                          .Attr("align", align)
                          .RunOne(),
                      TensorEq(diagonals));
          // Elements outside of the band come from `others`.
          const auto banded = [&](const Tensor& others, bool repeats) {
            return Rearranged(Joined(matrices, others), {2, kRows, kColumns},
                              [&](const std::vector<int64_t>& index) {
                                const int64_t k = index[2] - index[1];
                                const int64_t at =
                                    (index[0] * kRows + index[1]) * kColumns + index[2];
                                if (k >= lower && k <= upper) return at;
                                return 24 + (repeats ? 0 : at);
                              });
          };
          EXPECT_THAT(OpTester("MatrixDiagV3")
                          .Input(diagonals)
                          .Input(K(lower, upper))
                          .Input(AsScalar<int32_t>(kRows))
                          .Input(AsScalar<int32_t>(kColumns))
                          .Input(pad)
                          .Attr("align", align)
                          .RunOne(),
                      TensorEq(banded(pad, true)));
          const Tensor input =
              Rearranged(matrices, {2, kRows, kColumns}, [](const std::vector<int64_t>& index) {
                return 23 - ((index[0] * kRows + index[1]) * kColumns + index[2]);
              });
          EXPECT_THAT(OpTester("MatrixSetDiagV3")
                          .Input(input)
                          .Input(diagonals)
                          .Input(K(lower, upper))
                          .Attr("align", align)
                          .RunOne(),
                      TensorEq(banded(input, false)));
        }
      }
    }
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(MatrixDiag, HasTheValuesOfTensorFlow) {
  const Tensor matrix = Iota<int32_t>({3, 4}, 1);
  const Tensor zero = AsScalar<int32_t>(0);
  const std::vector<std::vector<int32_t>> parts = {
      {3, 8, 0, 2, 7, 12, 1, 6, 11, 0, 5, 10, 0, 0, 9},
      {0, 3, 8, 2, 7, 12, 1, 6, 11, 5, 10, 0, 9, 0, 0},
      {3, 8, 0, 2, 7, 12, 1, 6, 11, 5, 10, 0, 9, 0, 0},
      {0, 3, 8, 2, 7, 12, 1, 6, 11, 0, 5, 10, 0, 0, 9}};
  const std::vector<std::vector<int32_t>> sets = {{4, 1, 0, 0, 8, 5, 2, 0, 0, 9, 6, 3},
                                                  {4, 1, 0, 0, 7, 5, 2, 0, 0, 8, 6, 3},
                                                  {4, 1, 0, 0, 7, 5, 2, 0, 0, 8, 6, 3},
                                                  {4, 1, 0, 0, 8, 5, 2, 0, 0, 9, 6, 3}};
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(kAligns[i]);
    EXPECT_THAT(OpTester("MatrixDiagPartV3")
                    .Input(matrix)
                    .Input(K(-2, 2))
                    .Input(zero)
                    .Attr("align", kAligns[i])
                    .RunOne(),
                TensorEq(AsTensor<int32_t>(parts[i], {5, 3})));
    EXPECT_THAT(OpTester("MatrixSetDiagV3")
                    .Input(*OpTester("ZerosLike").Input(matrix).RunOne())
                    .Input(Iota<int32_t>({3, 3}, 1))
                    .Input(K(-1, 1))
                    .Attr("align", kAligns[i])
                    .RunOne(),
                TensorEq(AsTensor<int32_t>(sets[i], {3, 4})));
  }
  EXPECT_THAT(OpTester("MatrixDiagPartV2").Input(matrix).Input(K(-1, 1)).Input(zero).RunOne(),
              TensorEq(AsTensor<int32_t>({2, 7, 12, 1, 6, 11, 5, 10, 0}, {3, 3})));
  EXPECT_THAT(OpTester("MatrixDiagPart").Input(matrix).RunOne(),
              TensorEq(AsTensor<int32_t>({1, 6, 11})));
  EXPECT_THAT(OpTester("MatrixSetDiag").Input(matrix).Input<int32_t>({0, 0, 0}).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 2, 3, 4, 5, 0, 7, 8, 9, 10, 0, 12}, {3, 4})));
  EXPECT_THAT(OpTester("MatrixSetDiagV2")
                  .Input(matrix)
                  .Input<int32_t>({0, 0, 0})
                  .Input(AsTensor<int32_t>({1, 1}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1, 0, 3, 4, 5, 6, 0, 8, 9, 10, 11, 0}, {3, 4})));
  EXPECT_THAT(OpTester("MatrixDiag").Input<int32_t>({1, 2}, {1, 2}).RunOne(),
              TensorEq(AsTensor<int32_t>({1, 0, 0, 2}, {1, 2, 2})));
  EXPECT_THAT(OpTester("MatrixDiag").Input(Tensor(DT_FLOAT, {0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 0})));
}

OpTester Diag(const char* op, const Tensor& diagonal, const Tensor& k, int rows, int columns) {
  return OpTester(op)
      .Input(diagonal)
      .Input(k)
      .Input(AsScalar<int32_t>(rows))
      .Input(AsScalar<int32_t>(columns))
      .Input(AsScalar<int32_t>(9));
}

// The expected values are results of TensorFlow 2.21.
TEST(MatrixDiag, ChoosesTheSizes) {
  const Tensor pair = AsTensor<int32_t>({1, 2});
  const Tensor one = AsScalar<int32_t>(1);
  EXPECT_THAT(Diag("MatrixDiagV3", pair, one, -1, -1).RunOne(),
              TensorEq(AsTensor<int32_t>({9, 1, 9, 9, 9, 2, 9, 9, 9}, {3, 3})));
  EXPECT_THAT(Diag("MatrixDiagV3", pair, one, 4, -1).RunOne(),
              TensorEq(AsTensor<int32_t>({9, 1, 9, 9, 9, 2, 9, 9, 9, 9, 9, 9}, {4, 3})));
  EXPECT_THAT(Diag("MatrixDiagV3", pair, one, -1, 5).RunOne(),
              TensorEq(AsTensor<int32_t>({9, 1, 9, 9, 9, 9, 9, 2, 9, 9}, {2, 5})));
  EXPECT_THAT(
      Diag("MatrixDiagV2", AsTensor<int32_t>({0, 1, 2, 3, 4, 5, 6, 7, 0}, {3, 3}), K(-1, 1), -1, -1)
          .RunOne(),
      TensorEq(AsTensor<int32_t>({3, 0, 9, 6, 4, 1, 9, 7, 5}, {3, 3})));
}

TEST(MatrixDiag, RejectsBadArguments) {
  const Tensor pair = AsTensor<int32_t>({1, 2});
  const Tensor matrix = Iota<int32_t>({3, 4});
  const Tensor zero = AsScalar<int32_t>(0);
  const auto part = [&](const Tensor& k) {
    return OpTester("MatrixDiagPartV3").Input(matrix).Input(k).Input(zero);
  };
  const auto set = [&](const Tensor& diagonal, const Tensor& k) {
    return OpTester("MatrixSetDiagV3").Input(matrix).Input(diagonal).Input(k);
  };
  ExpectErrors({
      {"sizes", Diag("MatrixDiagV3", pair, AsScalar<int32_t>(1), 4, 5),
       "matrices of shape [4,5] have no diagonals 1 to 1 of length 2"},
      {"columns", Diag("MatrixDiagV3", pair, AsScalar<int32_t>(1), 2, 2),
       "matrices of shape [2,2] have no diagonals 1 to 1 of length 2"},
      {"rows", Diag("MatrixDiagV2", pair, zero, -2, 2), "num_rows must be at least -1, but is -2"},
      {"order", Diag("MatrixDiagV3", pair, K(1, 0), -1, -1),
       "k must be in ascending order, but is 1 and 0"},
      {"three", Diag("MatrixDiagV3", pair, AsTensor<int32_t>({0, 0, 0}), -1, -1),
       "k must have one or two elements, but has 3"},
      // TensorFlow 2.21 crashes for this input.
      {"count", Diag("MatrixDiagV3", pair, K(0, 1), -1, -1),
       "diagonal must have 2 rows, the diagonals of k, but has shape [2]"},
      {"scalar", Diag("MatrixDiagV3", zero, zero, -1, -1),
       "Shape must be at least rank 1 but is rank 0: diagonal has shape []"},
      {"high", part(AsScalar<int32_t>(4)),
       "diagonal k = 4 is out of range (-3, 4) for matrices of shape [3,4]"},
      {"low", part(AsScalar<int32_t>(-3)), "diagonal k = -3 is out of range (-3, 4)"},
      {"none", part(AsTensor<int32_t>({})), "k must have one or two elements, but has 0"},
      {"matrix", part(AsTensor<int32_t>({0}, {1, 1})),
       "k must be a scalar or a vector, but has shape [1,1]"},
      {"vector", OpTester("MatrixDiagPart").Input(pair),
       "Shape must be at least rank 2 but is rank 1: input has shape [2]"},
      {"diagonal", set(pair, zero),
       "diagonal has shape [2], expected [3], the shape of the diagonals 0 to 0 of input, of shape "
       "[3,4]"},
      {"diagonals", set(AsTensor<int32_t>({0, 0, 0}), K(0, 1)),
       "diagonal has shape [3], expected [2,3]"},
  });
  EXPECT_THAT(OpTester("MatrixDiagPartV3")
                  .UnknownInput(DT_INT32, {-1, 3, -1})
                  .Input(K(0, 1))
                  .Input(zero)
                  .InferShape(),
              ShapeIs("[?,2,?]"));
  EXPECT_THAT(OpTester("MatrixDiag").UnknownInput(DT_INT32, {-1, 3}).InferShape(),
              ShapeIs("[?,3,3]"));
}

TEST(MatrixBandPart, KeepsTheBandInEveryType) {
  for (const DataType dtype : TensorTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor input = DistinctTensor(dtype, {2, 3, 4});
    const Tensor zero = *OpTester("ZerosLike").Input(*input.Reshaped({24})).RunOne();
    for (int lower = -2; lower <= 3; ++lower) {
      for (int upper = -1; upper <= 4; ++upper) {
        EXPECT_THAT(OpTester("MatrixBandPart")
                        .Input(input)
                        .Input(AsScalar<int32_t>(lower))
                        .Input(AsScalar<int32_t>(upper))
                        .RunOne(),
                    TensorEq(Rearranged(
                        Joined(input, zero), {2, 3, 4}, [&](const std::vector<int64_t>& index) {
                          const bool in_band = (lower < 0 || index[1] - index[2] <= lower) &&
                                               (upper < 0 || index[2] - index[1] <= upper);
                          return (index[0] * 3 + index[1]) * 4 + index[2] + (in_band ? 0 : 24);
                        })));
      }
    }
  }
}

TEST(MatrixBandPart, RejectsBadArguments) {
  const auto band = [](const Tensor& input, int64_t lower, int64_t upper) {
    return OpTester("MatrixBandPart")
        .Input(input)
        .Input(AsScalar<int64_t>(lower))
        .Input(AsScalar<int64_t>(upper));
  };
  ExpectErrors({
      {"lower", band(Iota<float>({3, 4}), 4, 0),
       "num_lower must be at most 3, the number of rows of input, but is 4"},
      {"upper", band(Iota<float>({3, 4}), 0, INT64_MAX),
       "num_upper must be at most 4, the number of columns of input, but is 9223372036854775807"},
      {"vector", band(Iota<float>({3}), 0, 0),
       "Shape must be at least rank 2 but is rank 1: input has shape [3]"},
  });
}

TEST(Diag, SetsTheDiagonal) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_INT64, DT_COMPLEX128}) {
    const Tensor diagonal = DistinctTensor(dtype, {2, 3});
    const Tensor flat = *diagonal.Reshaped({6});
    const Tensor all = Joined(flat, *OpTester("ZerosLike").Input(flat).RunOne());
    const Tensor expected =
        Rearranged(all, {2, 3, 2, 3}, [](const std::vector<int64_t>& index) -> int64_t {
          if (index[0] != index[2] || index[1] != index[3]) return 6;
          return index[0] * 3 + index[1];
        });
    EXPECT_THAT(OpTester("Diag").Input(diagonal).RunOne(), TensorEq(expected));
    EXPECT_THAT(OpTester("DiagPart").Input(expected).RunOne(), TensorEq(diagonal));
  }
  EXPECT_THAT(OpTester("Diag").Input(Tensor(DT_FLOAT, {0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 0})));
  EXPECT_THAT(OpTester("DiagPart").UnknownInput(DT_FLOAT, {2, -1, -1, 3}).InferShape(),
              ShapeIs("[2,3]"));
  ExpectErrors({
      {"scalar", OpTester("Diag").Input(AsScalar<float>(1)),
       "Shape must be at least rank 1 but is rank 0: diagonal has shape []"},
      {"odd", OpTester("DiagPart").Input(Iota<float>({3})),
       "input must have an even rank, at least 2, but has shape [3]"},
      {"halves", OpTester("DiagPart").Input(Iota<float>({2, 3})),
       "the first half of the dimensions of input, of shape [2,3], must equal the second"},
  });
}

TEST(MatrixDiag, RejectsDiagonalsTooLongForAMatrix) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int32_t k : {-1, 1}) {
    const OpTester tester = OpTester("MatrixDiagV2")
                                .Input(Tensor(DT_FLOAT, {0, kMax}))
                                .Input(AsScalar<int32_t>(k))
                                .Input(AsScalar<int32_t>(-1))
                                .Input(AsScalar<int32_t>(-1))
                                .Input(AsScalar<float>(0));
    ExpectErrors({{"length", tester, "need matrices of more than 2^63 - 1 rows or columns"}});
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
