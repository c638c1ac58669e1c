#include <chrono>
#include <cmath>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Returns matrices [..., m, m] with the diagonals [..., 3, m].
Tensor FromDiagonals(const Tensor& diagonals) {
  TensorShape shape = diagonals.shape();
  const int64_t m = shape.dim_size(shape.dims() - 1);
  shape.set_dim(shape.dims() - 2, m);
  Tensor matrices(diagonals.dtype(), shape);
  Tensor in = diagonals;
  WithElements(&in, [&](auto from) {
    using T = typename decltype(from)::value_type;
    const auto to = matrices.span<T>();
    for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
      const int64_t row = i / m % m;
      const int64_t band = 1 - (i % m - row);
      to[i] = band >= 0 && band < 3 ? from[i / (m * m) * 3 * m + band * m + row] : T(0);
    }
  });
  return matrices;
}

// Returns row `row` of [batch..., 3, m] as [batch..., 1, m].
Tensor Diagonal(const Tensor& diagonals, int64_t row) {
  const auto y = OpTester("GatherV2")
                     .Input(diagonals)
                     .Input(AsTensor<int64_t>({row}))
                     .Input(AsScalar<int32_t>(diagonals.dims() - 2))
                     .RunOne();
  GRADFLOW_EXPECT_OK(y.status());
  return *y;
}

TEST(TridiagonalMatMul, MultipliesByTheMatrix) {
  for (const DataType dtype : kLinalgTypes) {
    for (const int64_t m : {1, 2, 5, 3000}) {
      SCOPED_TRACE(m);
      const TensorShape batch = m < 10 ? TensorShape({2, 3}) : TensorShape({1, 1});
      TensorShape shape = batch;
      shape.AddDim(3);
      shape.AddDim(m);
      const Tensor diagonals = RandomMatrices(dtype, shape);
      shape.set_dim(2, m);
      shape.set_dim(3, 2);
      const Tensor rhs = RandomMatrices(dtype, shape, 2);
      if (m > 10) {
        // A large product is divided among threads. Expects the same bits everywhere.
        GRADFLOW_EXPECT_OK(OpTester("TridiagonalMatMul")
                               .Input(Diagonal(diagonals, 0))
                               .Input(Diagonal(diagonals, 1))
                               .Input(Diagonal(diagonals, 2))
                               .Input(rhs)
                               .RunEverywhere()
                               .status());
        continue;
      }
      EXPECT_THAT(OpTester("TridiagonalMatMul")
                      .Input(Diagonal(diagonals, 0))
                      .Input(Diagonal(diagonals, 1))
                      .Input(Diagonal(diagonals, 2))
                      .Input(rhs)
                      .RunOne(),
                  MatricesNear(Times(FromDiagonals(diagonals), rhs)));
    }
  }
}

OpTester SolveTridiagonal(const Tensor& diagonals, const Tensor& rhs, bool pivoting = true,
                          bool perturb = false) {
  return OpTester("TridiagonalSolve")
      .Input(diagonals)
      .Input(rhs)
      .Attr("partial_pivoting", pivoting)
      .Attr("perturb_singular", perturb);
}

TEST(TridiagonalSolve, TimesTheMatrixIsTheRightHandSide) {
  for (const DataType dtype : kLinalgTypes) {
    for (const int64_t m : {1, 2, 3, 9}) {
      for (const bool pivoting : {false, true}) {
        SCOPED_TRACE(m);
        Tensor diagonals = RandomMatrices(dtype, {2, 3, m}, 3);
        if (!pivoting) {
          // Without pivoting, the diagonal must dominate.
          diagonals = MapMatrices(diagonals, [](int64_t i, int64_t, auto e) {
            return i == 1 ? e + decltype(e)(4) : e;
          });
        }
        const Tensor rhs = RandomMatrices(dtype, {2, m, 3}, 2);
        const auto x = SolveTridiagonal(diagonals, rhs, pivoting).RunOne();
        GRADFLOW_ASSERT_OK(x.status());
        EXPECT_THAT(Times(FromDiagonals(diagonals), *x), MatricesNear(rhs, 50));
      }
    }
  }
}

TEST(TridiagonalSolve, ExchangesRows) {
  // [0 1; 1 0]
  const Tensor diagonals = AsTensor<double>({1, 9, 0, 0, 9, 1}, {3, 2});
  const Tensor rhs = AsTensor<double>({2, 3}, {2, 1});
  EXPECT_THAT(SolveTridiagonal(diagonals, rhs).RunOne(),
              TensorEq(AsTensor<double>({3, 2}, {2, 1})));
  EXPECT_THAT(SolveTridiagonal(diagonals, rhs, false).RunOne(),
              TensorEq(AsTensor<double>({kNan, kNan}, {2, 1})));
}

TEST(TridiagonalSolve, HandlesSingularMatrices) {
  const Tensor diagonals = AsTensor<float>({1, 2, 9, 0, 0, 0, 9, 0, 0}, {3, 3});
  const Tensor rhs = AsTensor<float>({1, 1, 1}, {3, 1});
  EXPECT_THAT(SolveTridiagonal(diagonals, rhs).RunOne(),
              TensorEq(AsTensor<float>({kNan, kNan, kNan}, {3, 1})));
  const auto x = SolveTridiagonal(diagonals, rhs, true, true).RunOne();
  GRADFLOW_ASSERT_OK(x.status());
  for (const float v : x->span<float>()) EXPECT_TRUE(std::isfinite(v)) << v;
  EXPECT_THAT(SolveTridiagonal(diagonals, rhs, false, true).MakeKernel(),
              StatusIs(kInvalidArgument, HasSubstr("perturb_singular requires partial_pivoting")));
}

TEST(TridiagonalSolve, TakesEmptyTensors) {
  EXPECT_THAT(SolveTridiagonal(Tensor(DT_FLOAT, {3, 0}), Tensor(DT_FLOAT, {0, 2})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2})));
  EXPECT_THAT(SolveTridiagonal(Tensor(DT_FLOAT, {3, 4}), Tensor(DT_FLOAT, {4, 0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {4, 0})));
}

TEST(TridiagonalSolve, RejectsInvalidInputs) {
  const auto solve = [](const TensorShape& a, const TensorShape& b) {
    return SolveTridiagonal(Tensor(DT_FLOAT, a), Tensor(DT_FLOAT, b));
  };
  const auto multiply = [](const TensorShape& sub, const TensorShape& rhs) {
    return OpTester("TridiagonalMatMul")
        .Input(Tensor(DT_FLOAT, {1, 3}))
        .Input(Tensor(DT_FLOAT, {1, 3}))
        .Input(Tensor(DT_FLOAT, sub))
        .Input(Tensor(DT_FLOAT, rhs));
  };
  ExpectErrors({
      {"rows", solve({2, 3}, {3, 1}), "Dimension must be 3 but is 2: dimension 0 of diagonals"},
      {"size", solve({3, 4}, {3, 1}), "Dimensions must be equal, but are 4 and 3: diagonals"},
      {"batches", solve({2, 3, 4}, {1, 4, 1}),
       "Dimension 0 in both shapes must be equal, but are 2 and 1: the batch of diagonals"},
      {"rank", solve({3, 4}, {4}),
       "Shape must be at least rank 2 but is rank 1: rhs has shape [4]"},
      {"diagonal", multiply({3}, {3, 1}),
       "Shape must be at least rank 2 but is rank 1: subdiag has shape [3]"},
      {"diagonals", multiply({2, 3}, {3, 1}),
       "Dimension must be 1 but is 2: dimension 0 of subdiag"},
      {"length", multiply({1, 4}, {3, 1}), "Dimensions must be equal, but are 4 and 3: subdiag"},
  });
}

// A matrix is one block of a loop. Loops do not check the deadline within a block.
TEST(TridiagonalSolve, StopsWithinAMatrix) {
  constexpr int64_t kRows = int64_t{1} << 22;
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(1));
  Tensor diagonals(DT_FLOAT, {3, kRows});
  Tensor rhs(DT_FLOAT, {kRows, 1});
  std::fill_n(diagonals.flat<float>().data(), 3 * kRows, 0.0f);
  std::fill_n(diagonals.flat<float>().data() + kRows, kRows, 2.0f);
  std::fill_n(rhs.flat<float>().data(), kRows, 4.0f);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      OpTester("TridiagonalSolve").Input(diagonals).Input(rhs).StoppedBy(&stop).RunOnThreads(1));
  EXPECT_NE(outputs[0].flat<float>()(0), 2);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
