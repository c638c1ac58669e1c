#include <algorithm>
#include <chrono>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Solve(const char* op, const Tensor& a, const Tensor& b, bool lower, bool adjoint) {
  return OpTester(op).Input(a).Input(b).Attr("lower", lower).Attr("adjoint", adjoint);
}

struct SolveShapes {
  TensorShape matrix;
  TensorShape rhs;
};
const SolveShapes kSolveShapes[] = {{{1, 1}, {1, 2}},          {{6, 6}, {6, 3}},
                                    {{2, 5, 5}, {2, 5, 1}},    {{4, 4}, {3, 4, 2}},
                                    {{3, 1, 4, 4}, {2, 4, 2}}, {{50, 50}, {50, 4}}};

TEST(MatrixTriangularSolve, TimesTheTriangleIsTheRightHandSide) {
  for (const DataType dtype : kLinalgTypes) {
    for (const SolveShapes& shapes : kSolveShapes) {
      for (const bool lower : {false, true}) {
        for (const bool adjoint : {false, true}) {
          SCOPED_TRACE(DataTypeString(dtype) + shapes.matrix.DebugString());
          const Tensor a = RegularMatrices(dtype, shapes.matrix);
          const Tensor b = RandomMatrices(dtype, shapes.rhs, 2);
          const auto x = Solve("MatrixTriangularSolve", a, b, lower, adjoint).RunOne();
          GRADFLOW_ASSERT_OK(x.status());
          const Tensor product = Times(lower ? LowerTriangle(a) : UpperTriangle(a), *x, adjoint);
          // Broadcasts b to the shape of the product.
          const Tensor zeros =
              MapMatrices(product, [](int64_t, int64_t, auto e) { return decltype(e)(0); });
          const auto expected = OpTester("AddV2").Input(zeros).Input(b).RunOne();
          GRADFLOW_ASSERT_OK(expected.status());
          EXPECT_THAT(product, MatricesNear(*expected, 10));
        }
      }
    }
  }
}

// Returns the bands of lower or upper triangular matrices, and sets *matrices to the matrices.
Tensor Bands(DataType dtype, const TensorShape& batch, int64_t num_bands, int64_t m, bool lower,
             Tensor* matrices) {
  TensorShape shape = batch;
  shape.AddDim(m);
  shape.AddDim(m);
  const int64_t used = std::min(num_bands, m);
  *matrices = MapMatrices(RegularMatrices(dtype, shape), [&](int64_t i, int64_t j, auto e) {
    const int64_t band = lower ? i - j : j - i;
    return band >= 0 && band < used ? e : decltype(e)(0);
  });
  shape.set_dim(batch.dims(), num_bands);
  // Band elements outside of the matrix are NaN.
  Tensor bands(dtype, shape);
  WithElements(&bands, [&](auto to) {
    using T = typename decltype(to)::value_type;
    const auto from = matrices->span<T>();
    for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
      const int64_t row = i % m;
      const int64_t k = i / m % num_bands;
      const int64_t matrix = i / (m * num_bands);
      const int64_t column = lower ? row - k : row + (num_bands - 1 - k);
      to[i] = column >= 0 && column < m ? from[(matrix * m + row) * m + column] : T(kNan);
    }
  });
  return bands;
}

TEST(BandedTriangularSolve, TimesTheMatrixIsTheRightHandSide) {
  for (const DataType dtype : kLinalgTypes) {
    for (const int64_t num_bands : {1, 2, 4, 7}) {
      for (const bool lower : {false, true}) {
        for (const bool adjoint : {false, true}) {
          SCOPED_TRACE(num_bands);
          Tensor a;
          const Tensor bands = Bands(dtype, {2}, num_bands, 6, lower, &a);
          const Tensor b = RandomMatrices(dtype, {2, 6, 3}, 2);
          const auto x = Solve("BandedTriangularSolve", bands, b, lower, adjoint).RunOne();
          GRADFLOW_ASSERT_OK(x.status());
          EXPECT_THAT(Times(a, *x, adjoint), MatricesNear(b, 10));
        }
      }
    }
  }
  EXPECT_THAT(Solve("BandedTriangularSolve", AsTensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}),
                    AsTensor<float>({1, 1, 1}, {3, 1}), true, false)
                  .RunOne(),
              TensorNear(AsTensor<float>({1, -2, 4.3333333f}, {3, 1})));
  // Batches are broadcast.
  const auto x = Solve("BandedTriangularSolve", AsTensor<float>({1, 2}, {2, 1, 1}),
                       AsTensor<float>({6}, {1, 1}), true, false)
                     .RunOne();
  EXPECT_THAT(x, TensorEq(AsTensor<float>({6, 3}, {2, 1, 1})));
}

TEST(MatrixTriangularSolve, HandlesZeroOnTheDiagonal) {
  EXPECT_THAT(Solve("MatrixTriangularSolve", AsTensor<float>({0, 0, 0, 2}, {2, 2}),
                    AsTensor<float>({1, 4}, {2, 1}), false, false)
                  .RunOne(),
              TensorEq(AsTensor<float>({kInf, 2}, {2, 1})));
  EXPECT_THAT(Solve("BandedTriangularSolve", AsTensor<float>({1, 0, 2}, {1, 3}),
                    AsTensor<float>({1, 1, 1}, {3, 1}), true, false)
                  .Run(),
              StatusIs(kInvalidArgument, HasSubstr("Input matrix is not invertible")));
}

TEST(MatrixTriangularSolve, TakesEmptyTensors) {
  EXPECT_THAT(Solve("MatrixTriangularSolve", Tensor(DT_FLOAT, {0, 0}), Tensor(DT_FLOAT, {0, 2}),
                    true, false)
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
  EXPECT_THAT(Solve("BandedTriangularSolve", Tensor(DT_FLOAT, {2, 3}), Tensor(DT_FLOAT, {3, 0}),
                    true, false)
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {3, 0})));
}

TEST(MatrixTriangularSolve, RejectsInvalidInputs) {
  const auto solve = [](const char* op, const TensorShape& a, const TensorShape& b) {
    return OpTester(op).Input(Tensor(DT_FLOAT, a)).Input(Tensor(DT_FLOAT, b));
  };
  ExpectErrors({
      {"square", solve("MatrixTriangularSolve", {2, 3}, {2, 1}),
       "matrix must be square matrices, but has shape [2,3]"},
      {"rows", solve("MatrixTriangularSolve", {2, 2}, {3, 1}),
       "Dimensions must be equal, but are 2 and 3: matrix"},
      {"batches", solve("MatrixTriangularSolve", {2, 2, 2}, {3, 2, 1}),
       "the batches of matrix and rhs: shapes [2] and [3] cannot be broadcast together"},
      {"columns", solve("BandedTriangularSolve", {2, 3}, {2, 1}),
       "Dimensions must be equal, but are 3 and 2: matrix"},
      {"no bands", solve("BandedTriangularSolve", {0, 3}, {3, 1}),
       "matrix must have one band at least, but has shape [0,3]"},
      {"vector", solve("BandedTriangularSolve", {1, 2}, {2}),
       "Shape must be at least rank 2 but is rank 1: rhs has shape [2]"},
  });
}

// A matrix is one block of a loop. Loops do not check the deadline within a block.
TEST(BandedTriangularSolve, StopsWithinAMatrix) {
  constexpr int64_t kRows = int64_t{1} << 22;
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
  Tensor bands(DT_FLOAT, {1, kRows});
  Tensor rhs(DT_FLOAT, {kRows, 1});
  std::fill_n(bands.flat<float>().data(), kRows, 2.0f);
  std::fill_n(rhs.flat<float>().data(), kRows, 4.0f);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      OpTester("BandedTriangularSolve").Input(bands).Input(rhs).StoppedBy(&stop).RunOnThreads(1));
  EXPECT_NE(outputs[0].flat<float>()(kRows - 1), 2);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
