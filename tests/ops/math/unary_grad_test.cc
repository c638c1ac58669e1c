#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

struct GradientCase {
  const char* op;
  double (*reference)(double y, double dy);
};
const GradientCase kGradientCases[] = {
    {"InvGrad", [](double y, double dy) { return -dy * y * y; }},
    {"ReciprocalGrad", [](double y, double dy) { return -dy * y * y; }},
    {"SqrtGrad", [](double y, double dy) { return dy * 0.5 / y; }},
    {"RsqrtGrad", [](double y, double dy) { return dy * -0.5 * y * y * y; }},
    {"SigmoidGrad", [](double y, double dy) { return dy * y * (1 - y); }},
    {"TanhGrad", [](double y, double dy) { return dy * (1 - y * y); }},
};

TEST(UnaryGrad, ComputesFloatsOfEveryType) {
  for (const GradientCase& c : kGradientCases) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor y = RandomTensor(dtype, {7, 301}, 0.05, 0.95, 1);
      const Tensor dy = RandomTensor(dtype, {7, 301}, -3, 3, 2);
      EXPECT_THAT(OpTester(c.op).Input(y).Input(dy).RunOne(),
                  TensorNear(BinaryReference(y, dy, dtype, c.reference)));
    }
  }
}

TEST(UnaryGrad, ConjugatesComplexNumbers) {
  const Tensor y = AsTensor<complex128>({{0.5, 2}});
  const Tensor dy = AsTensor<complex128>({{3, -1}});
  const complex128 z(0.5, 2);
  const complex128 c = std::conj(z);
  const complex128 d(3, -1);
  const std::pair<const char*, complex128> cases[] = {
      {"ReciprocalGrad", -d * c * c},      {"SqrtGrad", d * 0.5 / c},
      {"RsqrtGrad", d * -0.5 * c * c * c}, {"SigmoidGrad", d * z * (1.0 - z)},
      {"TanhGrad", d * (1.0 - z * z)},
  };
  for (const auto& [op, expected] : cases) {
    EXPECT_THAT(OpTester(op).Input(y).Input(dy).RunOne(),
                TensorNear(AsTensor<complex128>({expected})))
        << op;
  }
}

TEST(UnaryGrad, PairsElementsInOrder) {
  const Tensor y = AsTensor<float>({0.5f, 0.25f}, {1, 2});
  EXPECT_THAT(OpTester("TanhGrad").Input(y).Input(AsTensor<float>({4, 16})).RunOne(),
              TensorEq(AsTensor<float>({3, 15}, {1, 2})));
  EXPECT_THAT(
      OpTester("TanhGrad").Input(Tensor(DT_HALF, {0})).Input(Tensor(DT_HALF, {2, 0})).RunOne(),
      TensorEq(Tensor(DT_HALF, {0})));
}

TEST(UnaryGrad, RejectsOtherNumbersOfElements) {
  for (const GradientCase& c : kGradientCases) {
    OpTester op(c.op);
    op.Input<float>({1, 2}).Input<float>({1});
    const auto error =
        StatusIs(kInvalidArgument, "input 1 has shape [1], expected 2 elements, as in [2]");
    EXPECT_THAT(op.Run(), error) << c.op;
    EXPECT_THAT(op.InferShape(), error) << c.op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
