#include <cmath>
#include <complex>
#include <cstring>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/ops/linalg/run_within.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const TensorShape kLuShapes[] = {{1, 1}, {2, 2}, {7, 7}, {3, 2, 5, 5}, {60, 60}};

TEST(Lu, ReordersAndMultipliesToTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kLuShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = RandomMatrices(dtype, shape, 3);
      const auto lu = OpTester("Lu").Input(x).Attr("output_idx_type", DT_INT64).Run();
      GRADFLOW_ASSERT_OK(lu.status());
      const Tensor lower = MapMatrices((*lu)[0], [](int64_t i, int64_t j, auto e) {
        return i > j ? e : decltype(e)(i == j ? 1 : 0);
      });
      // Row r of the product is row p[r] of the input.
      const int64_t n = shape.dim_size(shape.dims() - 1);
      Tensor rows = *x.DeepCopy();
      const auto p = (*lu)[1].flat<int64_t>();
      const int64_t size = DataTypeSize(dtype) * n;
      for (int64_t r = 0; r < p.size(); ++r) {
        const int64_t from = r / n * n + p(r);
        std::memcpy(static_cast<char*>(rows.raw_data()) + r * size,
                    static_cast<const char*>(x.raw_data()) + from * size, size);
      }
      EXPECT_THAT(Times(lower, UpperTriangle((*lu)[0])), MatricesNear(rows, 10));
    }
  }
  const auto lu = OpTester("Lu").Input(AsTensor<float>({1, 2, 2, 1}, {2, 2})).Run();
  GRADFLOW_ASSERT_OK(lu.status());
  EXPECT_THAT((*lu)[0], TensorEq(AsTensor<float>({2, 1, 0.5f, 1.5f}, {2, 2})));
  EXPECT_THAT((*lu)[1], TensorEq(AsTensor<int32_t>({1, 0})));
}

// The determinant of a product of triangular matrices is the product of their diagonals.
TEST(MatrixDeterminant, IsTheProductOfPivots) {
  for (const DataType dtype : kLinalgTypes) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor lower = LowerTriangle(RegularMatrices(dtype, {3, 4, 4}, 2));
    const Tensor upper = UpperTriangle(RandomMatrices(dtype, {3, 4, 4}, 5));
    const Tensor x = Times(lower, upper);
    Tensor expected(dtype, {3});
    Tensor sign(dtype, {3});
    Tensor log(dtype, {3});
    WithElements(&expected, [&](auto determinants) {
      using T = typename decltype(determinants)::value_type;
      const auto l = lower.span<T>();
      const auto u = upper.span<T>();
      for (int64_t i = 0; i < 3; ++i) {
        std::complex<double> product = 1;
        for (int64_t d = 0; d < 4; ++d) {
          product *=
              std::complex<double>(l[i * 16 + d * 5]) * std::complex<double>(u[i * 16 + d * 5]);
        }
        const std::complex<double> phase = product / std::abs(product);
        if constexpr (kIsComplex<T>) {
          determinants[i] = T(product);
          sign.span<T>()[i] = T(phase);
        } else {
          determinants[i] = static_cast<T>(product.real());
          sign.span<T>()[i] = static_cast<T>(phase.real());
        }
        log.span<T>()[i] = static_cast<T>(std::log(std::abs(product)));
      }
    });
    EXPECT_THAT(OpTester("MatrixDeterminant").Input(x).RunOne(), MatricesNear(expected, 100));
    const auto both = OpTester("LogMatrixDeterminant").Input(x).Run();
    GRADFLOW_ASSERT_OK(both.status());
    EXPECT_THAT((*both)[0], MatricesNear(sign));
    EXPECT_THAT((*both)[1], MatricesNear(log, 10));
  }
}

TEST(MatrixDeterminant, HandlesSingularAndEmptyMatrices) {
  const Tensor x = AsTensor<double>({1, 2, 2, 4, 0, 0, 0, 0}, {2, 2, 2});
  EXPECT_THAT(OpTester("MatrixDeterminant").Input(x).RunOne(),
              TensorNear(AsTensor<double>({0, 0}), 0, 0));
  const auto both = OpTester("LogMatrixDeterminant").Input(x).Run();
  GRADFLOW_ASSERT_OK(both.status());
  EXPECT_THAT((*both)[0], TensorNear(AsTensor<double>({0, 0}), 0, 0));
  EXPECT_THAT((*both)[1], TensorEq(AsTensor<double>({-kInf, -kInf})));
  const Tensor empty(DT_COMPLEX64, {2, 0, 0});
  EXPECT_THAT(OpTester("MatrixDeterminant").Input(empty).RunOne(),
              TensorEq(AsTensor<complex64>({{1, 0}, {1, 0}})));
  const auto empty_log = OpTester("LogMatrixDeterminant").Input(Tensor(DT_FLOAT, {0, 0})).Run();
  GRADFLOW_ASSERT_OK(empty_log.status());
  EXPECT_THAT((*empty_log)[0], TensorEq(AsScalar<float>(1)));
  EXPECT_THAT((*empty_log)[1], TensorEq(AsScalar<float>(0)));
  // A determinant that overflows still has a logarithm.
  const Tensor large = AsTensor<double>({1e200, 0, 0, -1e200}, {2, 2});
  EXPECT_THAT(OpTester("MatrixDeterminant").Input(large).RunOne(),
              TensorEq(AsScalar<double>(-kInf)));
  const auto logs = OpTester("LogMatrixDeterminant").Input(large).Run();
  GRADFLOW_ASSERT_OK(logs.status());
  EXPECT_THAT((*logs)[1], TensorNear(AsScalar<double>(400 * std::log(10.0)), 0, 1e-14));
}

TEST(MatrixInverse, TimesTheInputIsTheIdentity) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kLuShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = RegularMatrices(dtype, shape, 4);
      for (const bool adjoint : {false, true}) {
        const auto y = OpTester("MatrixInverse").Input(x).Attr("adjoint", adjoint).RunOne();
        GRADFLOW_ASSERT_OK(y.status());
        EXPECT_THAT(Times(x, *y, adjoint), MatricesNear(IdentityLike(x), 10));
      }
    }
  }
}

TEST(MatrixSolve, TimesTheMatrixIsTheRightHandSide) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kLuShapes) {
      for (const int64_t columns : {1, 3}) {
        SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
        const Tensor a = RegularMatrices(dtype, shape, 4);
        TensorShape rhs_shape = shape;
        rhs_shape.set_dim(shape.dims() - 1, columns);
        const Tensor b = RandomMatrices(dtype, rhs_shape, 5);
        for (const bool adjoint : {false, true}) {
          const auto x =
              OpTester("MatrixSolve").Input(a).Input(b).Attr("adjoint", adjoint).RunOne();
          GRADFLOW_ASSERT_OK(x.status());
          EXPECT_THAT(Times(a, *x, adjoint), MatricesNear(b, 10));
        }
      }
    }
  }
}

// The copies of the matrix and of the right-hand sides, and the solution, are in double.
TEST(MatrixSolve, ChargesItsCopies) {
  constexpr auto kExhausted = absl::StatusCode::kResourceExhausted;
  constexpr int64_t kMiB = 1 << 20;
  const OpTester solve = OpTester("MatrixSolve")
                             .Input(RegularMatrices(DT_FLOAT, {8, 8}))
                             .Input(RandomMatrices(DT_FLOAT, {8, 1 << 16}));
  // The output takes 2 MiB, and each copy 4 MiB.
  EXPECT_EQ(RunWithin(9 * kMiB, solve).code(), kExhausted);
  GRADFLOW_EXPECT_OK(RunWithin(11 * kMiB, solve));
  // The output takes 1 MiB, and each copy of a matrix 1/2 MiB. One thread works on one matrix at a
  // time.
  const OpTester inverse =
      OpTester("MatrixInverse").Input(RegularMatrices(DT_FLOAT, {4, 256, 256}));
  EXPECT_EQ(RunWithin(9 * kMiB / 4, inverse).code(), kExhausted);
  GRADFLOW_EXPECT_OK(RunWithin(11 * kMiB / 4, inverse));
}

TEST(Lu, TakesEmptyTensors) {
  for (const char* op : {"MatrixInverse", "Lu"}) {
    const auto y = OpTester(op).Input(Tensor(DT_FLOAT, {2, 0, 0})).Run();
    GRADFLOW_ASSERT_OK(y.status());
    EXPECT_THAT((*y)[0], TensorEq(Tensor(DT_FLOAT, {2, 0, 0})));
  }
  EXPECT_THAT(OpTester("MatrixSolve")
                  .Input(AsTensor<float>({1}, {1, 1}))
                  .Input(Tensor(DT_FLOAT, {1, 0}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0})));
}

TEST(Lu, KeepsNan) {
  const Tensor x = AsTensor<float>({1, kNan, 0, 1}, {2, 2});
  EXPECT_THAT(OpTester("MatrixDeterminant").Input(x).RunOne(), TensorEq(AsScalar<float>(kNan)));
  EXPECT_THAT(OpTester("MatrixSolve").Input(x).Input(AsTensor<float>({1, 1}, {2, 1})).RunOne(),
              TensorEq(AsTensor<float>({kNan, kNan}, {2, 1})));
}

TEST(Lu, RefusesSingularMatrices) {
  // The second matrix of the batch is singular.
  const Tensor x = AsTensor<double>({1, 0, 0, 1, 1, 2, 2, 4}, {2, 2, 2});
  for (const char* op : {"Lu", "MatrixInverse"}) {
    EXPECT_THAT(OpTester(op).Input(x).Run(),
                StatusIs(kInvalidArgument, HasSubstr("Input is not invertible")));
  }
  EXPECT_THAT(OpTester("MatrixSolve").Input(x).Input(Tensor(DT_DOUBLE, {2, 2, 1})).Run(),
              StatusIs(kInvalidArgument, HasSubstr("Input matrix is not invertible")));
}

TEST(Lu, RejectsInvalidInputs) {
  for (const char* op : {"Lu", "MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant"}) {
    ExpectErrors({
        {"rank", OpTester(op).Input(Tensor(DT_FLOAT, {2})),
         "Shape must be at least rank 2 but is rank 1: input has shape [2]"},
        {"square", OpTester(op).Input(Tensor(DT_FLOAT, {0, 3})),
         "input must be square matrices, but has shape [0,3]"},
    });
    EXPECT_THAT(OpTester(op).Attr("T", DT_DOUBLE).RunOn({Tensor(DT_FLOAT, {1, 1})}),
                StatusIs(kInvalidArgument, HasSubstr("input 0 must be of type double")));
  }
  const auto solve = [](const TensorShape& a, const TensorShape& b) {
    return OpTester("MatrixSolve").Input(Tensor(DT_FLOAT, a)).Input(Tensor(DT_FLOAT, b));
  };
  ExpectErrors({
      {"square", solve({2, 3}, {2, 1}), "matrix must be square matrices, but has shape [2,3]"},
      {"rows", solve({2, 2}, {3, 1}), "Dimensions must be equal, but are 2 and 3: matrix"},
      {"batches", solve({2, 2, 2}, {2, 1}),
       "the batches of matrix and rhs: Shapes must be equal rank, but are 1 and 0: the batch of "
       "matrix has shape [2], and the batch of rhs has shape []"},
      {"vector", solve({2, 2}, {2}),
       "Shape must be at least rank 2 but is rank 1: rhs has shape [2]"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
