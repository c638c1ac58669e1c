#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester SolveLs(const Tensor& a, const Tensor& b, double regularizer, bool fast) {
  return OpTester("MatrixSolveLs")
      .Input(a)
      .Input(b)
      .Input(AsScalar<double>(regularizer))
      .Attr("fast", fast);
}

// The residual of the least-squares solution is orthogonal to the columns of the matrix.
TEST(MatrixSolveLs, TallMatricesHaveAnOrthogonalResidual) {
  for (const DataType dtype : kLinalgTypes) {
    const Tensor a = RandomMatrices(dtype, {2, 9, 4});
    const Tensor b = RandomMatrices(dtype, {2, 9, 3}, 2);
    for (const bool fast : {false, true}) {
      SCOPED_TRACE(DataTypeString(dtype));
      const auto x = SolveLs(a, b, 0, fast).RunOne();
      GRADFLOW_ASSERT_OK(x.status());
      const auto residual = OpTester("Sub").Input(Times(a, *x)).Input(b).RunOne();
      GRADFLOW_ASSERT_OK(residual.status());
      const Tensor normal = Times(a, *residual, true);
      EXPECT_THAT(
          normal,
          MatricesNear(MapMatrices(normal, [](int64_t, int64_t, auto e) { return decltype(e)(0); }),
                       20));
    }
  }
}

TEST(MatrixSolveLs, WideMatricesHaveTheSmallestSolution) {
  for (const DataType dtype : kLinalgTypes) {
    const Tensor a = RandomMatrices(dtype, {3, 7});
    const Tensor b = RandomMatrices(dtype, {3, 2}, 2);
    const auto slow = SolveLs(a, b, 0, false).RunOne();
    const auto fast = SolveLs(a, b, 0, true).RunOne();
    GRADFLOW_ASSERT_OK(slow.status());
    GRADFLOW_ASSERT_OK(fast.status());
    EXPECT_THAT(Times(a, *slow), MatricesNear(b, 20));
    EXPECT_THAT(*fast, MatricesNear(*slow, 50));
  }
}

TEST(MatrixSolveLs, HandlesSingularMatrices) {
  const Tensor a = AsTensor<double>({1, 2, 2, 4}, {2, 2});
  const Tensor b = AsTensor<double>({1, 1}, {2, 1});
  EXPECT_THAT(SolveLs(a, b, 0, false).RunOne(),
              TensorNear(AsTensor<double>({0.12, 0.24}, {2, 1}), 1e-14, 1e-14));
  EXPECT_THAT(
      SolveLs(a, b, 0, true).Run(),
      StatusIs(kInvalidArgument, HasSubstr("Input matrix was rank deficient or ill-conditioned")));
  GRADFLOW_EXPECT_OK(SolveLs(a, b, 1, true).Run().status());
}

TEST(MatrixSolveLs, AddsTheRegularizer) {
  EXPECT_THAT(
      SolveLs(AsTensor<double>({4, 1, 2, 3}, {2, 2}), AsTensor<double>({1, 1}, {2, 1}), 1, true)
          .RunOne(),
      TensorNear(AsTensor<double>({0.19847328244274814, 0.18320610687022898}, {2, 1}), 0, 1e-14));
}

TEST(MatrixSolveLs, TakesEmptyTensors) {
  for (const bool fast : {false, true}) {
    EXPECT_THAT(SolveLs(Tensor(DT_FLOAT, {0, 2}), Tensor(DT_FLOAT, {0, 1}), 0, fast).RunOne(),
                TensorEq(AsTensor<float>({0, 0}, {2, 1})));
    EXPECT_THAT(SolveLs(Tensor(DT_FLOAT, {2, 0}), Tensor(DT_FLOAT, {2, 1}), 0, fast).RunOne(),
                TensorEq(Tensor(DT_FLOAT, {0, 1})));
  }
}

TEST(MatrixSolveLs, RejectsInvalidInputs) {
  const auto solve = [](const TensorShape& a, const TensorShape& b) {
    return SolveLs(Tensor(DT_FLOAT, a), Tensor(DT_FLOAT, b), 0, true);
  };
  ExpectErrors({
      {"rows", solve({2, 3}, {3, 1}), "Dimensions must be equal, but are 2 and 3: matrix"},
      {"batches", solve({2, 2, 2}, {1, 2, 1}),
       "the batches of matrix and rhs: Dimension 0 in both shapes must be equal, but are 2 and 1: "
       "the batch of matrix has shape [2], and the batch of rhs has shape [1]"},
      {"rank", solve({2}, {2, 1}),
       "Shape must be at least rank 2 but is rank 1: matrix has shape [2]"},
      {"regularizer",
       OpTester("MatrixSolveLs")
           .Input(Tensor(DT_FLOAT, {2, 2}))
           .Input(Tensor(DT_FLOAT, {2, 1}))
           .Input(AsTensor<double>({1})),
       "Shape must be rank 0 but is rank 1: l2_regularizer has shape [1]"},
  });
  const Tensor one = AsTensor<float>({1}, {1, 1});
  EXPECT_THAT(SolveLs(one, one, -1, true).Run(),
              StatusIs(kInvalidArgument, HasSubstr("l2_regularizer is -1, expected at least 0")));
  EXPECT_THAT(SolveLs(one, one, kNan, true).Run(),
              StatusIs(kInvalidArgument, HasSubstr("l2_regularizer is nan")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
