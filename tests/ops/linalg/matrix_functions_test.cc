#include <cmath>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const TensorShape kFunctionShapes[] = {{1, 1}, {2, 2}, {5, 5}, {2, 3, 4, 4}, {20, 20}};

// A diagonalizable matrix with chosen eigenvalues, and its function V f(D) V^-1.
struct Diagonalized {
  Tensor matrix;
  Tensor function;
};
Diagonalized Diagonalize(DataType dtype, double (*values)(int64_t), double (*f)(double)) {
  const Tensor v = RegularMatrices(dtype, {2, 4, 4}, 5);
  const auto inverse = OpTester("MatrixInverse").Input(v).RunOne();
  GRADFLOW_EXPECT_OK(inverse.status());
  const auto diagonal = [&](bool apply) {
    return MapMatrices(v, [&](int64_t i, int64_t j, auto e) {
      const double value = apply ? f(values(i)) : values(i);
      return i == j ? decltype(e)(value) : decltype(e)(0);
    });
  };
  return {Times(Times(v, diagonal(false)), *inverse), Times(Times(v, diagonal(true)), *inverse)};
}

TEST(MatrixExponential, RunsForDiagonalizableMatrices) {
  for (const DataType dtype : kLinalgTypes) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Diagonalized x = Diagonalize(
        dtype, [](int64_t i) { return 0.7 * static_cast<double>(i) - 1; },
        [](double v) { return std::exp(v); });
    EXPECT_THAT(OpTester("MatrixExponential").Input(x.matrix).RunOne(),
                MatricesNear(x.function, 10));
  }
  // This matrix is not diagonalizable.
  EXPECT_THAT(OpTester("MatrixExponential").Input(AsTensor<double>({0, 1, 0, 0}, {2, 2})).RunOne(),
              TensorNear(AsTensor<double>({1, 1, 0, 1}, {2, 2}), 1e-15, 1e-15));
  // This matrix is large enough for scaling and squaring.
  EXPECT_THAT(
      OpTester("MatrixExponential").Input(AsTensor<double>({50, 0, 0, -50}, {2, 2})).RunOne(),
      TensorNear(AsTensor<double>({std::exp(50.0), 0, 0, std::exp(-50.0)}, {2, 2}), 0, 1e-12));
}

// Each norm selects an approximant of another degree. The last two matrices need squaring.
TEST(MatrixExponential, RunsForRotations) {
  for (const double angle : {1e-9, 0.01, 0.2, 0.9, 2.0, 5.0, 11.0, 100.0}) {
    SCOPED_TRACE(angle);
    const double c = std::cos(angle);
    const double s = std::sin(angle);
    const Tensor expected = AsTensor<double>({c, -s, s, c}, {2, 2});
    EXPECT_THAT(OpTester("MatrixExponential")
                    .Input(AsTensor<double>({0, -angle, angle, 0}, {2, 2}))
                    .RunOne(),
                TensorNear(expected, 2e-15 * (1 + angle), 0));
  }
}

// The eigenvalues are -1 and -17, and the eigenvectors are nearly parallel (C. Moler, C. Van Loan,
// Nineteen dubious ways to compute the exponential of a matrix, 1978).
TEST(MatrixExponential, IsAccurateForNearlyParallelEigenvectors) {
  const double a = std::exp(-1.0);
  const double b = std::exp(-17.0);
  EXPECT_THAT(
      OpTester("MatrixExponential").Input(AsTensor<double>({-49, 24, -64, 31}, {2, 2})).RunOne(),
      TensorNear(
          AsTensor<double>({3 * b - 2 * a, 1.5 * (a - b), 4 * (b - a), 3 * a - 2 * b}, {2, 2}),
          1e-13, 0));
}

TEST(MatrixExponential, ReturnsNanIfTheNormOverflows) {
  EXPECT_THAT(
      OpTester("MatrixExponential").Input(AsTensor<double>({1e308, 0, 1e308, 0}, {2, 2})).RunOne(),
      TensorEq(AsTensor<double>({kNan, kNan, kNan, kNan}, {2, 2})));
  EXPECT_THAT(OpTester("MatrixExponential").Input(AsTensor<double>({-1e308}, {1, 1})).RunOne(),
              TensorEq(AsTensor<double>({0}, {1, 1})));
}

TEST(MatrixLogarithm, InvertsTheExponential) {
  for (const DataType dtype : {DT_COMPLEX64, DT_COMPLEX128}) {
    for (const TensorShape& shape : kFunctionShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = RegularMatrices(dtype, shape, 6);
      const auto log = OpTester("MatrixLogarithm").Input(x).RunOne();
      GRADFLOW_ASSERT_OK(log.status());
      EXPECT_THAT(OpTester("MatrixExponential").Input(*log).RunOne(), MatricesNear(x, 50));
    }
    const Diagonalized x = Diagonalize(
        dtype, [](int64_t i) { return 0.01 * std::pow(10.0, static_cast<double>(i)); },
        [](double v) { return std::log(v); });
    EXPECT_THAT(OpTester("MatrixLogarithm").Input(x.matrix).RunOne(),
                MatricesNear(x.function, 100));
  }
  // 1x1 matrices: negative, complex, tiny and large.
  const Tensor x = AsTensor<complex128>({{-1, 0}, {0, 2}, {1e-300, 0}, {1e300, 0}}, {4, 1, 1});
  EXPECT_THAT(OpTester("MatrixLogarithm").Input(x).RunOne(),
              TensorNear(AsTensor<complex128>({{0, M_PI},
                                               {std::log(2.0), M_PI / 2},
                                               {-300 * std::log(10.0), 0},
                                               {300 * std::log(10.0), 0}},
                                              {4, 1, 1}),
                         1e-10, 1e-12));
}

TEST(MatrixSquareRoot, ReturnsNaNForANegativeEigenvalue) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  // A quarter-turn rotation has a real root, although its eigenvalues are not real.
  const auto x = AsTensor<float>({-1, 0, 0, 4, 4, 0, 0, 9, 3, 1, 0, -2}, {3, 2, 2});
  EXPECT_THAT(
      OpTester("MatrixSquareRoot").Input(x).RunOne(),
      TensorEq(AsTensor<float>({nan, nan, nan, nan, 2, 0, 0, 3, nan, nan, nan, nan}, {3, 2, 2})));
  const double half = std::sqrt(0.5);
  EXPECT_THAT(OpTester("MatrixSquareRoot").Input(AsTensor<double>({0, -1, 1, 0}, {2, 2})).RunOne(),
              TensorNear(AsTensor<double>({half, -half, half, half}, {2, 2}), 1e-15, 0));
}

TEST(MatrixSquareRoot, SquaredIsTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kFunctionShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = RegularMatrices(dtype, shape, 6);
      const auto root = OpTester("MatrixSquareRoot").Input(x).RunOne();
      GRADFLOW_ASSERT_OK(root.status());
      EXPECT_THAT(Times(*root, *root), MatricesNear(x, 50));
    }
  }
  EXPECT_THAT(OpTester("MatrixSquareRoot").Input(AsTensor<float>({4, 0, 0, 9}, {2, 2})).RunOne(),
              TensorEq(AsTensor<float>({2, 0, 0, 3}, {2, 2})));
}

// Real matrices with real eigenvalues and conjugate pairs. The sizes of their rows differ a lot.
TEST(MatrixSquareRoot, HandlesRealAndConjugateEigenvalues) {
  for (const int64_t n : {3, 4, 7, 50}) {
    const Tensor x =
        MapMatrices(RandomMatrices(DT_DOUBLE, {n, n}, 3), [n](int64_t i, int64_t j, auto e) {
          // A large antisymmetric part, and a positive diagonal.
          using E = decltype(e);
          if (i == j) return E(3 * n);
          if (i / 2 == j / 2) return E(i < j ? 4 : -9);
          return e;
        });
    const auto root = OpTester("MatrixSquareRoot").Input(x).RunOne();
    GRADFLOW_ASSERT_OK(root.status());
    EXPECT_THAT(Times(*root, *root), MatricesNear(x, 10));
  }
}

TEST(MatrixLogarithm, ReturnsNanForSingularMatricesAndNan) {
  const auto expect_nan = [](const Tensor& y) {
    for (const complex64& v : y.span<complex64>()) EXPECT_TRUE(std::isnan(v.real())) << v.real();
  };
  for (const Tensor& x :
       {Tensor(AsTensor<complex64>({{1, 0}, {2, 0}, {2, 0}, {4, 0}}, {2, 2})),
        Tensor(AsTensor<complex64>({{0, 0}}, {1, 1})),
        Tensor(AsTensor<complex64>({{0, 0}, {1, 0}, {0, 0}, {0, 0}}, {2, 2})),
        Tensor(AsTensor<complex64>({{kNan, 0}}, {1, 1})),
        Tensor(AsTensor<complex64>({{1, 0}, {kInf, 0}, {0, 0}, {1, 0}}, {2, 2}))}) {
    SCOPED_TRACE(x.DebugString(4));
    const auto y = OpTester("MatrixLogarithm").Input(x).RunOne();
    GRADFLOW_ASSERT_OK(y.status());
    if (x.NumElements() == 4 && x.flat<complex64>()(1).real() == 2) continue;
    expect_nan(*y);
  }
  for (const char* op : {"MatrixExponential", "MatrixSquareRoot"}) {
    for (const float value : {kNan, kInf}) {
      EXPECT_THAT(OpTester(op).Input(AsTensor<float>({1, value, 0, 1}, {2, 2})).RunOne(),
                  TensorEq(AsTensor<float>({kNan, kNan, kNan, kNan}, {2, 2})));
    }
  }
}

TEST(MatrixExponential, TakesEmptyTensors) {
  for (const char* op : {"MatrixExponential", "MatrixSquareRoot", "MatrixLogarithm"}) {
    for (const TensorShape& shape : {TensorShape({0, 0}), TensorShape({0, 2, 2})}) {
      EXPECT_THAT(OpTester(op).Input(Tensor(DT_COMPLEX64, shape)).RunOne(),
                  TensorEq(Tensor(DT_COMPLEX64, shape)));
    }
  }
}

TEST(MatrixExponential, RejectsInvalidInputs) {
  for (const char* op : {"MatrixExponential", "MatrixSquareRoot", "MatrixLogarithm"}) {
    ExpectErrors({
        {"rank", OpTester(op).Input(Tensor(DT_COMPLEX64, {2})),
         "Shape must be at least rank 2 but is rank 1: input has shape [2]"},
        {"square", OpTester(op).Input(Tensor(DT_COMPLEX64, {2, 3})),
         "input must be square matrices, but has shape [2,3]"},
    });
    EXPECT_THAT(OpTester(op).Attr("T", DT_COMPLEX128).RunOn({Tensor(DT_COMPLEX64, {1, 1})}),
                StatusIs(kInvalidArgument, HasSubstr("input 0 must be of type complex128")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
