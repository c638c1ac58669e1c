#include <cstdint>
#include <limits>

#include "tests/ops/common/error_case.h"
#include "tests/ops/linalg/matrices.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const TensorShape kEigShapes[] = {{1, 1}, {5, 5}, {2, 3, 4, 4}, {30, 30}};

TEST(SelfAdjointEigV2, MultipliesToTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    for (const TensorShape& shape : kEigShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = PositiveMatrices(dtype, shape);
      // The upper triangle is not read.
      const auto eig = OpTester("SelfAdjointEigV2").Input(LowerTriangle(x)).Run();
      GRADFLOW_ASSERT_OK(eig.status());
      const Tensor& v = (*eig)[1];
      const Tensor gram = Times(v, v, true);
      EXPECT_THAT(gram, MatricesNear(IdentityLike(gram)));
      EXPECT_THAT(Times(Times(v, DiagonalMatrices((*eig)[0])), v, false, true),
                  MatricesNear(x, 1000));
      const auto values = OpTester("SelfAdjointEigV2").Input(x).Attr("compute_v", false).Run();
      GRADFLOW_ASSERT_OK(values.status());
      EXPECT_THAT((*values)[0], MatricesNear((*eig)[0], 1000));
      EXPECT_THAT((*values)[1], TensorEq(Tensor(dtype, {0})));
    }
  }
  const auto eig = OpTester("SelfAdjointEigV2").Input(AsTensor<double>({1, 9, 2, 1}, {2, 2})).Run();
  GRADFLOW_ASSERT_OK(eig.status());
  EXPECT_THAT((*eig)[0], TensorNear(AsTensor<double>({-1, 3}), 1e-15, 1e-15));
}

TEST(SelfAdjointEig, HasTheValuesAsFirstRow) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Tensor x = PositiveMatrices(dtype, {2, 3, 3});
    const auto both = OpTester("SelfAdjointEig").Input(x).RunOne();
    const auto eig = OpTester("SelfAdjointEigV2").Input(x).Run();
    GRADFLOW_ASSERT_OK(both.status());
    GRADFLOW_ASSERT_OK(eig.status());
    for (int64_t i = 0; i < 2; ++i) {
      const Tensor matrix = both->SubSlice(i);
      EXPECT_THAT(Tensor(matrix.SubSlice(0)), TensorEq((*eig)[0].SubSlice(i)));
      EXPECT_THAT(matrix.Slice(1, 4), TensorEq((*eig)[1].SubSlice(i)));
    }
  }
}

TEST(Eig, MultipliesToTheInput) {
  for (const DataType dtype : kLinalgTypes) {
    const bool is_narrow = dtype == DT_FLOAT || dtype == DT_COMPLEX64;
    const DataType out = is_narrow ? DT_COMPLEX64 : DT_COMPLEX128;
    for (const TensorShape& shape : kEigShapes) {
      SCOPED_TRACE(DataTypeString(dtype) + shape.DebugString());
      const Tensor x = RandomMatrices(dtype, shape);
      const auto eig = OpTester("Eig").Input(x).Attr("Tout", out).Run();
      GRADFLOW_ASSERT_OK(eig.status());
      const auto wide = OpTester("Cast").Input(x).Attr("DstT", out).RunOne();
      GRADFLOW_ASSERT_OK(wide.status());
      const Tensor& v = (*eig)[1];
      EXPECT_THAT(Times(*wide, v), MatricesNear(Times(v, DiagonalMatrices((*eig)[0])), 50));
      // The vectors have norm 1.
      const Tensor gram = Times(v, v, true);
      EXPECT_THAT(MapMatrices(gram, [](int64_t i, int64_t j,
                                       auto e) { return i == j ? e : decltype(e)(0); }),
                  MatricesNear(IdentityLike(gram)));
      const auto values = OpTester("Eig").Input(x).Attr("Tout", out).Attr("compute_v", false).Run();
      GRADFLOW_ASSERT_OK(values.status());
      EXPECT_EQ((*values)[0].NumElements(), (*eig)[0].NumElements());
      EXPECT_THAT((*values)[1], TensorEq(Tensor(out, {0})));
    }
  }
  // A rotation has complex eigenvalues.
  const auto eig = OpTester("Eig")
                       .Input(AsTensor<float>({0, -1, 1, 0}, {2, 2}))
                       .Attr("Tout", DT_COMPLEX64)
                       .Run();
  GRADFLOW_ASSERT_OK(eig.status());
  EXPECT_THAT((*eig)[0], TensorNear(AsTensor<complex64>({{0, 1}, {0, -1}})));
}

TEST(Eig, TakesEmptyTensors) {
  for (const TensorShape& shape : {TensorShape({0, 0}), TensorShape({0, 2, 2})}) {
    GRADFLOW_EXPECT_OK(
        OpTester("Eig").Input(Tensor(DT_FLOAT, shape)).Attr("Tout", DT_COMPLEX64).Run().status());
    GRADFLOW_EXPECT_OK(OpTester("SelfAdjointEigV2").Input(Tensor(DT_FLOAT, shape)).Run().status());
  }
  EXPECT_THAT(OpTester("SelfAdjointEig").Input(Tensor(DT_FLOAT, {0, 0})).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0})));
}

TEST(Eig, RejectsInvalidInputs) {
  for (const char* op : {"Eig", "SelfAdjointEig", "SelfAdjointEigV2"}) {
    const auto eig = [&](const Tensor& x) {
      OpTester tester = OpTester(op).Input(x);
      if (op[0] == 'E') tester.Attr("Tout", DT_COMPLEX64);
      return tester;
    };
    ExpectErrors({
        {"rank", eig(Tensor(DT_FLOAT, {2})),
         "Shape must be at least rank 2 but is rank 1: input has shape [2]"},
        {"square", eig(Tensor(DT_FLOAT, {2, 3})),
         "input must be square matrices, but has shape [2,3]"},
    });
    for (const float value : {kNan, kInf}) {
      EXPECT_THAT(eig(AsTensor<float>({1, 2, value, 1}, {2, 2})).Run(),
                  StatusIs(kInvalidArgument, HasSubstr("igen decomposition was not successful")));
    }
  }
  EXPECT_THAT(
      OpTester("Eig").Input(Tensor(DT_DOUBLE, {1, 1})).Attr("Tout", DT_COMPLEX64).MakeKernel(),
      StatusIs(kInvalidArgument,
               HasSubstr("Tout must be complex128 for inputs of type double, but is complex64")));
}

TEST(SelfAdjointEig, RefusesMatricesWithoutRoomForARow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  ExpectErrors({{"rows", OpTester("SelfAdjointEig").Input(Tensor(DT_FLOAT, {0, kMax, kMax})),
                 "has too many rows for one more in the output"}});
  const Tensor nearly(DT_FLOAT, {0, kMax - 1, kMax - 1});
  EXPECT_THAT(OpTester("SelfAdjointEig").Input(nearly).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, kMax, kMax - 1})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
