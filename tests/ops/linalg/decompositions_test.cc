// Tests of properties that all matrix decompositions and matrix functions share.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/ops/linalg/run_within.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// An op with its attributes. All ops accept an input that is self-adjoint and positive definite.
// `right_columns` is the number of columns of a second input, or 0 if there is none.
struct Decomposition {
  std::string name;
  OpTester op;
  int64_t right_columns = 0;
};

std::vector<Decomposition> Decompositions(DataType dtype) {
  const DataType complex =
      dtype == DT_FLOAT || dtype == DT_COMPLEX64 ? DT_COMPLEX64 : DT_COMPLEX128;
  std::vector<Decomposition> all;
  for (const bool full : {false, true}) {
    all.push_back({"Qr", OpTester("Qr").Attr("full_matrices", full)});
    all.push_back({"Svd", OpTester("Svd").Attr("full_matrices", full)});
  }
  all.push_back({"Svd", OpTester("Svd").Attr("compute_uv", false)});
  for (const bool vectors : {false, true}) {
    all.push_back({"Eig", OpTester("Eig").Attr("compute_v", vectors).Attr("Tout", complex)});
    all.push_back({"SelfAdjointEigV2", OpTester("SelfAdjointEigV2").Attr("compute_v", vectors)});
  }
  if (!DataTypeIsComplex(dtype)) all.push_back({"SelfAdjointEig", OpTester("SelfAdjointEig")});
  for (const char* name : {"Cholesky", "Lu", "MatrixDeterminant", "LogMatrixDeterminant",
                           "MatrixInverse", "MatrixExponential", "MatrixSquareRoot"}) {
    all.push_back({name, OpTester(name)});
  }
  if (DataTypeIsComplex(dtype)) all.push_back({"MatrixLogarithm", OpTester("MatrixLogarithm")});
  all.push_back({"MatrixSolve", OpTester("MatrixSolve"), 3});
  all.push_back({"MatrixTriangularSolve", OpTester("MatrixTriangularSolve"), 3});
  for (const bool fast : {false, true}) {
    all.push_back({"MatrixSolveLs", OpTester("MatrixSolveLs").Attr("fast", fast), 3});
  }
  return all;
}

// Returns the tester with its inputs: x, and the right-hand side if the op has one.
OpTester With(const Decomposition& decomposition, const Tensor& x) {
  OpTester op = OpTester(decomposition.op).Input(x);
  if (decomposition.right_columns > 0) {
    TensorShape shape = x.shape();
    shape.set_dim(shape.dims() - 1, decomposition.right_columns);
    op.Input(RandomMatrices(x.dtype(), shape, 9));
  }
  if (decomposition.name == "MatrixSolveLs") op.Input(AsScalar<double>(0));
  return op;
}

TEST(Decompositions, HaveTheSameBitsOnAnyNumberOfThreads) {
  Everywhere where;
  where.threads = {1, 3};
  for (const DataType dtype : {DT_DOUBLE, DT_COMPLEX128}) {
    // The matrices are large enough for the BLAS, and for threads to share a batch.
    const Tensor x = PositiveMatrices(dtype, {12, 40, 40});
    for (const Decomposition& decomposition : Decompositions(dtype)) {
      SCOPED_TRACE(absl::StrCat(decomposition.name, " of ", DataTypeString(dtype)));
      GRADFLOW_EXPECT_OK(With(decomposition, x).RunEverywhere(where).status());
    }
  }
}

// Returns the largest magnitude of an element.
double Largest(Tensor x) {
  double largest = 0;
  WithElements(&x, [&](auto elements) {
    for (const auto& element : elements) {
      // NaN stays.
      if (!(std::abs(element) <= largest)) largest = std::abs(element);
    }
  });
  return largest;
}

// Returns the largest error relative to the largest element of `expected`.
double Error(const Tensor& actual, const Tensor& expected) {
  const auto difference = OpTester("Sub").Input(actual).Input(expected).RunOne();
  GRADFLOW_EXPECT_OK(difference.status());
  return Largest(*difference) / Largest(expected);
}

double ErrorOfOrthonormal(const Tensor& q) {
  const Tensor gram = Times(q, q, true);
  return Error(gram, IdentityLike(gram));
}

struct Hard {
  std::string name;
  Tensor matrix;
};

// Matrices with a condition number of 1e16 or more, with elements of very different sizes, with
// tiny or large elements, and with rank 1 or 0.
std::vector<Hard> HardMatrices(DataType dtype, int64_t m, int64_t n) {
  const Tensor x = RandomMatrices(dtype, {m, n});
  const auto map = [&x](double (*f)(double i, double j), bool random) {
    return MapMatrices(x, [&](int64_t i, int64_t j, auto e) {
      const double value = f(static_cast<double>(i), static_cast<double>(j));
      const decltype(e) factor(value);
      return random ? e * factor : factor;
    });
  };
  return {
      {"Hilbert", map([](double i, double j) { return 1 / (i + j + 1); }, false)},
      {"graded rows", map([](double i, double) { return std::pow(10.0, -7 * i); }, true)},
      {"graded columns", map([](double, double j) { return std::pow(10.0, 3 * j); }, true)},
      {"tiny", map([](double, double) { return 1e-200; }, true)},
      {"large", map([](double, double) { return 1e200; }, true)},
      {"rank 1", map([](double i, double j) { return (i - 2) * (j + 1); }, false)},
      {"zero", map([](double, double) { return 0.0; }, false)},
      {"ones above the diagonal", map([](double i, double j) { return i < j ? 1.0 : 0.0; }, false)},
  };
}

TEST(Decompositions, AreAccurateForHardMatrices) {
  constexpr double kTolerance = 2e-14;
  for (const DataType dtype : {DT_DOUBLE, DT_COMPLEX128}) {
    for (const auto& [m, n] :
         std::vector<std::pair<int64_t, int64_t>>{{12, 12}, {40, 9}, {9, 40}}) {
      for (const Hard& hard : HardMatrices(dtype, m, n)) {
        SCOPED_TRACE(absl::StrCat(hard.name, ", ", DataTypeString(dtype), ", ", m, " rows"));
        const Tensor& x = hard.matrix;
        const bool is_zero = Largest(x) == 0;
        const auto qr = OpTester("Qr").Input(x).Run();
        GRADFLOW_ASSERT_OK(qr.status());
        EXPECT_LT(ErrorOfOrthonormal((*qr)[0]), kTolerance);
        const auto svd = OpTester("Svd").Input(x).Run();
        GRADFLOW_ASSERT_OK(svd.status());
        EXPECT_LT(ErrorOfOrthonormal((*svd)[1]), kTolerance);
        EXPECT_LT(ErrorOfOrthonormal((*svd)[2]), kTolerance);
        const Tensor scaled = Times((*svd)[1], DiagonalMatrices((*svd)[0]));
        const Tensor of_svd = Times(scaled, (*svd)[2], false, true);
        const Tensor of_qr = Times((*qr)[0], (*qr)[1]);
        if (is_zero) {
          EXPECT_THAT(of_svd, TensorNear(x, 0, 0));
          EXPECT_THAT(of_qr, TensorNear(x, 0, 0));
        } else {
          EXPECT_LT(Error(of_svd, x), kTolerance);
          EXPECT_LT(Error(of_qr, x), kTolerance);
        }
        const auto solution = OpTester("MatrixSolveLs")
                                  .Input(x)
                                  .Input(x)
                                  .Input(AsScalar<double>(0))
                                  .Attr("fast", false)
                                  .RunOne();
        GRADFLOW_ASSERT_OK(solution.status());
        if (is_zero) {
          EXPECT_EQ(Largest(*solution), 0);
        } else {
          EXPECT_LT(Error(Times(x, *solution), x), kTolerance);
        }
      }
    }
  }
}

TEST(Decompositions, AreAccurateForHardSelfAdjointMatrices) {
  constexpr double kTolerance = 2e-14;
  for (const DataType dtype : {DT_DOUBLE, DT_COMPLEX128}) {
    for (const Hard& hard : HardMatrices(dtype, 12, 12)) {
      SCOPED_TRACE(absl::StrCat(hard.name, ", ", DataTypeString(dtype)));
      if (hard.name == "zero") continue;
      const auto sum = OpTester("Add")
                           .Input(hard.matrix)
                           .Input(Times(IdentityLike(hard.matrix), hard.matrix, false, true))
                           .RunOne();
      GRADFLOW_ASSERT_OK(sum.status());
      const auto eig = OpTester("SelfAdjointEigV2").Input(*sum).Run();
      GRADFLOW_ASSERT_OK(eig.status());
      const Tensor& v = (*eig)[1];
      EXPECT_LT(ErrorOfOrthonormal(v), kTolerance);
      EXPECT_LT(Error(Times(Times(v, DiagonalMatrices((*eig)[0])), v, false, true), *sum),
                kTolerance);
      const auto any = OpTester("Eig").Input(hard.matrix).Attr("Tout", DT_COMPLEX128).Run();
      GRADFLOW_ASSERT_OK(any.status());
      const auto wide = OpTester("Cast").Input(hard.matrix).Attr("DstT", DT_COMPLEX128).RunOne();
      GRADFLOW_ASSERT_OK(wide.status());
      const auto residual = OpTester("Sub")
                                .Input(Times(*wide, (*any)[1]))
                                .Input(Times((*any)[1], DiagonalMatrices((*any)[0])))
                                .RunOne();
      GRADFLOW_ASSERT_OK(residual.status());
      EXPECT_LT(Largest(*residual), kTolerance * Largest(*wide));
    }
  }
}

// Returns true if all elements of matrix i of a batch are NaN. If `lower`, checks only the lower
// triangle and expects zeros above it.
bool IsNan(const Tensor& batch, int64_t i, bool lower) {
  Tensor matrix = batch.SubSlice(i);
  const int64_t columns = matrix.dims() == 0 ? 1 : matrix.dim_size(matrix.dims() - 1);
  bool all = true;
  WithElements(&matrix, [&](auto elements) {
    for (size_t e = 0; e < elements.size(); ++e) {
      const int64_t row = static_cast<int64_t>(e) / columns;
      const int64_t column = static_cast<int64_t>(e) % columns;
      const bool is_nan = std::isnan(std::real(elements[e]));
      if (lower && row < column) {
        all = all && elements[e] == typename decltype(elements)::value_type(0);
      } else {
        all = all && is_nan;
      }
    }
  });
  return all;
}

// Some LAPACK functions never return for certain matrices with NaN or infinity.
TEST(Decompositions, EndWithNanForNanAndInfinity) {
  for (const DataType dtype : kLinalgTypes) {
    const Tensor x = PositiveMatrices(dtype, {2, 5, 5});
    for (const Decomposition& decomposition : Decompositions(dtype)) {
      const std::string& name = decomposition.name;
      // Some results of these ops do not depend on the changed element and stay finite.
      const bool partly = name == "Lu" || name == "MatrixTriangularSolve";
      // Loops compute these ops. Infinity need not become NaN.
      const bool by_loops = partly || name == "LogMatrixDeterminant" ||
                            name == "MatrixDeterminant" || name == "MatrixInverse" ||
                            name == "MatrixSolve";
      for (const float value : {kNan, kInf, -kInf}) {
        for (const int64_t at : {0, 10, 14, 20, 24}) {
          SCOPED_TRACE(
              absl::StrCat(name, " of ", DataTypeString(dtype), " with ", value, " at ", at));
          Tensor bad = *x.DeepCopy();
          WithElements(&bad, [&](auto elements) { elements[at] = value; });
          const auto y = With(decomposition, bad).RunOnThreads(1);
          if (absl::StrContains(name, "Eig")) {
            // The elements above the diagonal are not read.
            if (at == 14 && name != "Eig") continue;
            EXPECT_THAT(
                y, StatusIs(kInvalidArgument, HasSubstr("igen decomposition was not successful")));
            continue;
          }
          GRADFLOW_ASSERT_OK(y.status());
          const auto expected = With(decomposition, x).RunOnThreads(1);
          for (size_t i = 0; i < y->size(); ++i) {
            const Tensor& out = (*y)[i];
            if (out.NumElements() == 0 || out.dtype() == DT_INT32) continue;
            // The other matrix of the batch is not affected.
            EXPECT_THAT(Tensor(out.SubSlice(1)), TensorEq((*expected)[i].SubSlice(1)));
            if (name == "Cholesky") {
              // Elements above the diagonal are not read. The first and the last pivot may be
              // infinite.
              const bool positive = at == 14 || (at % 24 == 0 && value > 0);
              EXPECT_EQ(IsNan(out, 0, true), !positive);
            } else if (!by_loops || (!partly && std::isnan(value))) {
              EXPECT_TRUE(IsNan(out, 0, false)) << i;
            }
          }
        }
      }
    }
  }
}

// Memory limits in KiB. `too_little` has room for the outputs and copies of a matrix, but not for
// LAPACK's workspace.
struct Limits {
  int64_t too_little;
  int64_t enough;
};

void ExpectCharge(const std::string& name, const OpTester& op, Limits limits) {
  SCOPED_TRACE(name);
  EXPECT_THAT(RunWithin(limits.too_little << 10, op),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("out of memory for the workspace of a matrix")));
  GRADFLOW_EXPECT_OK(RunWithin(limits.enough << 10, op));
}

TEST(Decompositions, ChargeTheirWorkspaces) {
  // A matrix takes 128 KiB, or 256 KiB if it is complex.
  const Tensor x = PositiveMatrices(DT_DOUBLE, {128, 128});
  const Tensor z = PositiveMatrices(DT_COMPLEX128, {128, 128});
  ExpectCharge("Svd", OpTester("Svd").Input(x), {1000, 1200});
  ExpectCharge("Svd of complex", OpTester("Svd").Input(z), {1900, 2300});
  ExpectCharge("Svd without vectors", OpTester("Svd").Input(x).Attr("compute_uv", false),
               {180, 250});
  ExpectCharge("Qr", OpTester("Qr").Input(x), {530, 600});
  ExpectCharge("Qr of complex", OpTester("Qr").Input(z), {1060, 1200});
  ExpectCharge("SelfAdjointEigV2", OpTester("SelfAdjointEigV2").Input(x), {500, 600});
  ExpectCharge("SelfAdjointEigV2 of complex", OpTester("SelfAdjointEigV2").Input(z), {1000, 1200});
  ExpectCharge("SelfAdjointEig", OpTester("SelfAdjointEig").Input(x), {650, 760});
  ExpectCharge("Eig", OpTester("Eig").Input(x).Attr("Tout", DT_COMPLEX128), {850, 1000});
  ExpectCharge("Eig of complex", OpTester("Eig").Input(z).Attr("Tout", DT_COMPLEX128),
               {1000, 1200});
  ExpectCharge("MatrixSquareRoot", OpTester("MatrixSquareRoot").Input(x), {785, 900});
  ExpectCharge("MatrixLogarithm", OpTester("MatrixLogarithm").Input(z), {1820, 2100});
  const OpTester ls = OpTester("MatrixSolveLs")
                          .Input(x)
                          .Input(RandomMatrices(DT_DOUBLE, {128, 1}))
                          .Input(AsScalar<double>(0));
  ExpectCharge("MatrixSolveLs", OpTester(ls).Attr("fast", false), {150, 200});
}

TEST(Decompositions, ChargeTheirCopies) {
  const Tensor x = PositiveMatrices(DT_DOUBLE, {128, 128});
  const Tensor rhs = RandomMatrices(DT_DOUBLE, {128, 1});
  ExpectCharge("Cholesky", OpTester("Cholesky").Input(x), {250, 260});
  ExpectCharge("MatrixExponential", OpTester("MatrixExponential").Input(x), {1400, 1420});
  ExpectCharge("MatrixTriangularSolve", OpTester("MatrixTriangularSolve").Input(x).Input(rhs),
               {129, 135});
  ExpectCharge("MatrixSolveLs",
               OpTester("MatrixSolveLs").Input(x).Input(rhs).Input(AsScalar<double>(0)),
               {384, 400});
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
