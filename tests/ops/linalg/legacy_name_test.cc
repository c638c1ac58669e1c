// Tests of second names of ops, which graphs of early versions of TensorFlow have.
#include <string>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

TEST(LegacyNames, AreTheSameOps) {
  const Tensor square = AsTensor<double>({4, 1, 1, 3, 2, -1, -1, 5}, {2, 2, 2});
  const Tensor right = RandomTensor(DT_DOUBLE, {2, 2, 3});
  const Tensor vectors = RandomTensor(DT_DOUBLE, {2, 2});
  const Tensor signal = RandomTensor(DT_COMPLEX64, {2, 3, 4, 5}, -1, 1);
  const struct {
    const char* name;
    const char* op;
    std::vector<Tensor> inputs;
  } cases[] = {
      {"BatchCholesky", "Cholesky", {square}},
      {"BatchCholeskyGrad", "CholeskyGrad", {square, square}},
      {"BatchMatrixDeterminant", "MatrixDeterminant", {square}},
      {"BatchMatrixInverse", "MatrixInverse", {square}},
      {"BatchMatrixSolve", "MatrixSolve", {square, right}},
      {"BatchMatrixTriangularSolve", "MatrixTriangularSolve", {square, right}},
      {"BatchMatrixSolveLs", "MatrixSolveLs", {square, right, AsScalar<double>(0.5)}},
      {"BatchSelfAdjointEig", "SelfAdjointEig", {square}},
      {"BatchSelfAdjointEigV2", "SelfAdjointEigV2", {square}},
      {"BatchSvd", "Svd", {square}},
      {"BatchFFT", "FFT", {signal}},
      {"BatchFFT2D", "FFT2D", {signal}},
      {"BatchFFT3D", "FFT3D", {signal}},
      {"BatchIFFT", "IFFT", {signal}},
      {"BatchIFFT2D", "IFFT2D", {signal}},
      {"BatchIFFT3D", "IFFT3D", {signal}},
      {"BatchMatrixDiag", "MatrixDiag", {vectors}},
      {"BatchMatrixDiagPart", "MatrixDiagPart", {square}},
      {"BatchMatrixSetDiag", "MatrixSetDiag", {square, vectors}},
      {"BatchMatrixBandPart",
       "MatrixBandPart",
       {square, AsScalar<int64_t>(0), AsScalar<int64_t>(-1)}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto run = [&](const char* op) { return OpTester(op).Inputs(c.inputs).Run(); };
    const auto expected = run(c.op);
    const auto outputs = run(c.name);
    GRADFLOW_ASSERT_OK(expected.status());
    GRADFLOW_ASSERT_OK(outputs.status());
    ASSERT_EQ(outputs->size(), expected->size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      EXPECT_THAT((*outputs)[i], TensorEq((*expected)[i]));
    }
    const OpRegistration* const op = GlobalRegistry().FindOp(c.name);
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->def().deprecation().explanation(), std::string("Use ") + c.op + " instead.");
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
