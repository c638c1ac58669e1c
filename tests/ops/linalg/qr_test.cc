#include <algorithm>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

const TensorShape kQrShapes[] = {{1, 1}, {4, 4}, {7, 3}, {3, 7}, {2, 3, 5, 4}, {40, 25}};

// Expects orthonormal columns.
void ExpectOrthonormal(const Tensor& x) {
  const Tensor gram = Times(x, x, true);
  EXPECT_THAT(gram, MatricesNear(IdentityLike(gram)));
}

TEST(Qr, MultipliesToTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kQrShapes) {
      for (const bool full : {false, true}) {
        SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
        const Tensor x = RandomMatrices(dtype, shape);
        const auto qr = OpTester("Qr").Input(x).Attr("full_matrices", full).Run();
        GRADFLOW_ASSERT_OK(qr.status());
        const int64_t m = shape.dim_size(shape.dims() - 2);
        const int64_t n = shape.dim_size(shape.dims() - 1);
        EXPECT_EQ((*qr)[0].dim_size(shape.dims() - 1), full ? m : std::min(m, n));
        ExpectOrthonormal((*qr)[0]);
        EXPECT_THAT(UpperTriangle((*qr)[1]), TensorEq((*qr)[1]));
        EXPECT_THAT(Times((*qr)[0], (*qr)[1]), MatricesNear(x, 5));
      }
    }
  }
}

TEST(Svd, MultipliesToTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kQrShapes) {
      for (const bool full : {false, true}) {
        SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
        const Tensor x = RandomMatrices(dtype, shape);
        const auto svd = OpTester("Svd").Input(x).Attr("full_matrices", full).Run();
        GRADFLOW_ASSERT_OK(svd.status());
        const int64_t m = shape.dim_size(shape.dims() - 2);
        const int64_t n = shape.dim_size(shape.dims() - 1);
        const Tensor& u = (*svd)[1];
        const Tensor& v = (*svd)[2];
        ExpectOrthonormal(u);
        ExpectOrthonormal(v);
        // The product of the thin factors is the input.
        const auto thin = OpTester("Svd").Input(x).Run();
        GRADFLOW_ASSERT_OK(thin.status());
        EXPECT_THAT((*svd)[0], MatricesNear((*thin)[0]));
        const Tensor scaled = Times((*thin)[1], DiagonalMatrices((*thin)[0]));
        EXPECT_THAT(Times(scaled, (*thin)[2], false, true), MatricesNear(x, 5));
        EXPECT_EQ(u.dim_size(shape.dims() - 1), full ? m : std::min(m, n));
        EXPECT_EQ(v.dim_size(shape.dims() - 1), full ? n : std::min(m, n));
        const auto values = OpTester("Svd").Input(x).Attr("compute_uv", false).Run();
        GRADFLOW_ASSERT_OK(values.status());
        EXPECT_THAT((*values)[0], MatricesNear((*thin)[0], 5));
        EXPECT_THAT((*values)[1], TensorEq(Tensor(dtype, {0})));
        EXPECT_THAT((*values)[2], TensorEq(Tensor(dtype, {0})));
      }
    }
  }
}

TEST(Svd, ValuesAreSortedAndNotNegative) {
  const auto svd =
      OpTester("Svd").Input(AsTensor<double>({0, -3, 0, 2, 0, 0, 0, 0, 5}, {3, 3})).Run();
  GRADFLOW_ASSERT_OK(svd.status());
  EXPECT_THAT((*svd)[0], TensorNear(AsTensor<double>({5, 3, 2}), 0, 1e-15));
}

TEST(Svd, ReturnsNanForNan) {
  const auto svd =
      OpTester("Svd").Input(AsTensor<float>({1, kNan, 0, 1, 2, 0, 0, 1}, {2, 2, 2})).Run();
  GRADFLOW_ASSERT_OK(svd.status());
  EXPECT_THAT((*svd)[0], TensorNear(AsTensor<float>({kNan, kNan, 2, 1}, {2, 2})));
  const auto infinite = OpTester("Svd").Input(AsTensor<float>({kInf}, {1, 1})).Run();
  GRADFLOW_ASSERT_OK(infinite.status());
  EXPECT_THAT((*infinite)[1], TensorEq(AsTensor<float>({kNan}, {1, 1})));
}

TEST(Qr, TakesEmptyTensors) {
  const auto qr = OpTester("Qr").Input(Tensor(DT_FLOAT, {2, 0})).Attr("full_matrices", true).Run();
  GRADFLOW_ASSERT_OK(qr.status());
  EXPECT_THAT((*qr)[0], TensorEq(AsTensor<float>({1, 0, 0, 1}, {2, 2})));
  EXPECT_THAT((*qr)[1], TensorEq(Tensor(DT_FLOAT, {2, 0})));
  const auto svd =
      OpTester("Svd").Input(Tensor(DT_FLOAT, {2, 0})).Attr("full_matrices", true).Run();
  GRADFLOW_ASSERT_OK(svd.status());
  EXPECT_THAT((*svd)[0], TensorEq(Tensor(DT_FLOAT, {0})));
  EXPECT_THAT((*svd)[1], TensorEq(AsTensor<float>({1, 0, 0, 1}, {2, 2})));
  EXPECT_THAT((*svd)[2], TensorEq(Tensor(DT_FLOAT, {0, 0})));
  GRADFLOW_EXPECT_OK(OpTester("Svd").Input(Tensor(DT_FLOAT, {0, 3, 2})).Run().status());
}

// The size of a square matrix with this many columns overflows.
TEST(Qr, AllocatesNothingForEmptyTensors) {
  constexpr int64_t kHuge = int64_t{1} << 31;
  const Tensor x(DT_FLOAT, {0, kHuge, kHuge});
  const auto qr = OpTester("Qr").Input(x).Run();
  GRADFLOW_ASSERT_OK(qr.status());
  EXPECT_EQ((*qr)[0].shape(), x.shape());
  const auto svd = OpTester("Svd").Input(x).Attr("full_matrices", true).Run();
  GRADFLOW_ASSERT_OK(svd.status());
  EXPECT_EQ((*svd)[1].shape(), x.shape());
}

TEST(Qr, TakesManyMatricesWithoutColumns) {
  const Tensor x(DT_COMPLEX64, {3, 70, 0});
  const auto qr = OpTester("Qr").Input(x).Attr("full_matrices", true).Run();
  GRADFLOW_ASSERT_OK(qr.status());
  EXPECT_THAT((*qr)[0], TensorEq(IdentityLike(Tensor(DT_COMPLEX64, {3, 70, 70}))));
}

TEST(Qr, RejectsInvalidInputs) {
  for (const char* op : {"Qr", "Svd"}) {
    ExpectErrors({{"rank", OpTester(op).Input(Tensor(DT_FLOAT, {2})),
                   "Shape must be at least rank 2 but is rank 1: input has shape [2]"}});
    EXPECT_THAT(OpTester(op).Attr("T", DT_DOUBLE).RunOn({Tensor(DT_FLOAT, {1, 1})}),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("input 0 must be of type double")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
