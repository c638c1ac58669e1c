#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Cholesky, TimesItsAdjointIsTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : {TensorShape({1, 1}), TensorShape({5, 5}),
                                     TensorShape({3, 2, 4, 4}), TensorShape({70, 70})}) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = PositiveMatrices(dtype, shape);
      const auto l = OpTester("Cholesky").Input(x).RunOne();
      GRADFLOW_ASSERT_OK(l.status());
      EXPECT_THAT(LowerTriangle(*l), TensorEq(*l));
      EXPECT_THAT(Times(*l, *l, false, true), MatricesNear(x, 100));
      // The upper triangle is not read.
      EXPECT_THAT(OpTester("Cholesky").Input(LowerTriangle(x)).RunOne(), TensorEq(*l));
    }
  }
}

TEST(Cholesky, ReturnsNanUnlessPositiveDefinite) {
  const Tensor x = AsTensor<double>({1, 2, 2, 1, 4, 2, 2, 5}, {2, 2, 2});
  EXPECT_THAT(OpTester("Cholesky").Input(x).RunOne(),
              TensorEq(AsTensor<double>({kNan, 0, kNan, kNan, 2, 0, 1, 2}, {2, 2, 2})));
}

TEST(Cholesky, TakesEmptyTensors) {
  EXPECT_THAT(OpTester("Cholesky").Input(Tensor(DT_FLOAT, {0, 3, 3})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 3, 3})));
  EXPECT_THAT(OpTester("Cholesky").Input(Tensor(DT_FLOAT, {2, 0, 0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {2, 0, 0})));
}

// Compares with central differences of sum(weight * Cholesky(x)) for symmetric x.
TEST(CholeskyGrad, IsTheGradientOfCholesky) {
  constexpr int64_t n = 4;
  constexpr double kStep = 1e-5;
  const Tensor x = PositiveMatrices(DT_DOUBLE, {n, n});
  const Tensor weight = RandomMatrices(DT_DOUBLE, {n, n}, 7);
  const auto value = [&](const Tensor& at) {
    const auto l = OpTester("Cholesky").Input(at).RunOne();
    GRADFLOW_EXPECT_OK(l.status());
    double sum = 0;
    for (int64_t i = 0; i < n * n; ++i) {
      if (i / n >= i % n) sum += weight.flat<double>()(i) * l->flat<double>()(i);
    }
    return sum;
  };
  Tensor expected(DT_DOUBLE, {n, n});
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double ends[2];
      for (const int sign : {0, 1}) {
        Tensor moved = *x.DeepCopy();
        moved.matrix<double>()(i, j) += sign == 0 ? -kStep : kStep;
        if (i != j) moved.matrix<double>()(j, i) += sign == 0 ? -kStep : kStep;
        ends[sign] = value(moved);
      }
      const double slope = (ends[1] - ends[0]) / (2 * kStep);
      expected.matrix<double>()(i, j) = i == j ? slope : slope / 2;
      expected.matrix<double>()(j, i) = i == j ? slope : slope / 2;
    }
  }
  const auto l = OpTester("Cholesky").Input(x).RunOne();
  GRADFLOW_ASSERT_OK(l.status());
  EXPECT_THAT(OpTester("CholeskyGrad").Input(*l).Input(weight).RunOne(),
              TensorNear(expected, 1e-8, 1e-8));
}

TEST(CholeskyGrad, RunsForBatchesAndFloats) {
  const Tensor l = AsTensor<float>({4, 1, 2, 3, 4, 1, 2, 3}, {2, 2, 2});
  const Tensor grad = AsTensor<float>({4, 1, 1, 3, 4, 1, 1, 3}, {2, 2, 2});
  EXPECT_THAT(OpTester("CholeskyGrad").Input(l).Input(grad).RunOne(),
              TensorNear(AsTensor<float>(
                  {0.5625f, -0.125f, -0.125f, 0.5f, 0.5625f, -0.125f, -0.125f, 0.5f}, {2, 2, 2})));
  EXPECT_THAT(OpTester("CholeskyGrad")
                  .Input(Tensor(DT_FLOAT, {0, 0}))
                  .Input(Tensor(DT_FLOAT, {0, 0}))
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 0})));
}

TEST(Cholesky, RejectsInvalidInputs) {
  const auto grad = [](const TensorShape& l, const TensorShape& g) {
    return OpTester("CholeskyGrad").Input(Tensor(DT_FLOAT, l)).Input(Tensor(DT_FLOAT, g));
  };
  ExpectErrors({
      {"rank", OpTester("Cholesky").Input(Tensor(DT_FLOAT, {2})),
       "Shape must be at least rank 2 but is rank 1: input has shape [2]"},
      {"square", OpTester("Cholesky").Input(Tensor(DT_FLOAT, {2, 3})),
       "input must be square matrices, but has shape [2,3]"},
      {"square l", grad({2, 3}, {2, 3}), "l must be square matrices, but has shape [2,3]"},
      {"shapes", grad({2, 2}, {1, 2, 2}), "shape"},
  });
  EXPECT_THAT(
      OpTester("Cholesky").Attr("T", DT_DOUBLE).RunOn({Tensor(DT_FLOAT, {1, 1})}),
      StatusIs(kInvalidArgument, HasSubstr("input 0 must be of type double, but is float")));
  EXPECT_THAT(OpTester("Cholesky").Input(Tensor(DT_HALF, {1, 1})).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Cholesky")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
