// Tests of activation functions of floating-point numbers, and of properties that all gradient ops
// share.
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

constexpr DataType kActivationTypes[] = {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16};
constexpr double kSeluScale = 1.0507009873554805;
constexpr double kSeluScaleAlpha = 1.7580993408473766;

struct ActivationCase {
  const char* op;
  double (*reference)(double x);
  // The results for the largest float, infinity and minus infinity.
  float largest;
  float infinity;
  float minus_infinity;
};
const ActivationCase kActivationCases[] = {
    {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }, 3e38f, kInf, -1},
    {"Selu", [](double x) { return x < 0 ? kSeluScaleAlpha * std::expm1(x) : kSeluScale * x; },
     3.1521029e38f, kInf, -1.7580993f},
    {"Softplus", [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }, 3e38f, kInf, 0},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, 1, kNan, kNan},
};

TEST(Activations, RunsForEveryType) {
  for (const ActivationCase& c : kActivationCases) {
    for (const DataType dtype : kActivationTypes) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {3, 1401}, -9, 9);
      EXPECT_THAT(OpTester(c.op).Input(x).RunOne(), TensorNear(UnaryReference(x, c.reference)));
      const Tensor large = RandomTensor(dtype, {100000}, -100, 100);
      EXPECT_THAT(OpTester(c.op).Input(large).RunOne(),
                  TensorNear(UnaryReference(large, c.reference)));
      EXPECT_THAT(OpTester(c.op).Input(Tensor(dtype, {0, 3})).RunOne(),
                  TensorEq(Tensor(dtype, {0, 3})));
      const Tensor scalar = RandomTensor(dtype, {}, -1, 1);
      EXPECT_THAT(OpTester(c.op).Input(scalar).RunOne(),
                  TensorNear(UnaryReference(scalar, c.reference)));
    }
  }
}

TEST(Activations, HandlesSpecialNumbers) {
  for (const ActivationCase& c : kActivationCases) {
    EXPECT_THAT(OpTester(c.op).Input<float>({0, 3e38f, kInf, -kInf, kNan}).RunOne(),
                TensorWithinUlps(AsTensor<float>({c.op == std::string("Softplus") ? 0.6931472f : 0,
                                                  c.largest, c.infinity, c.minus_infinity, kNan}),
                                 2))
        << c.op;
  }
}

// Covers vectors of each width, their remainders, and special numbers at which the result is the
// argument or nearly its exponential.
TEST(Activations, HaveTheSameBitsOnEverySimdTarget) {
  const double special[] = {0, -0.0, -1, kInf, -kInf, kNan, -1e-40, 6e-8, -3e38, -88, 6};
  for (const DataType dtype : kActivationTypes) {
    for (const int64_t n : {1, 3, 15, 37, 1030}) {
      size_t i = 0;
      const Tensor x = UnaryReference(RandomTensor(dtype, {n}, -20, 20), [&](double v) {
        return i++ % 3 == 2 ? special[i / 3 % std::size(special)] : v;
      });
      for (const char* op : {"Elu", "Selu", "Softplus", "Relu", "Relu6"}) {
        SCOPED_TRACE(std::string(op) + " of " + DataTypeString(dtype) + ", " + std::to_string(n));
        EXPECT_THAT(OpTester(op).Input(x).RunEverywhere({{1, 3}, {}}), IsOk());
      }
      const Tensor dy = RandomTensor(dtype, {n}, -2, 2);
      EXPECT_THAT(OpTester("SoftplusGrad").Input(dy).Input(x).RunEverywhere({{1, 3}, {}}), IsOk());
    }
  }
}

TEST(Activations, KeepSmallResults) {
  EXPECT_THAT(OpTester("Elu").Input<float>({-1e-20f, 1e-20f}).RunOne(),
              TensorEq(AsTensor<float>({-1e-20f, 1e-20f})));
  EXPECT_THAT(OpTester("Softplus").Input<double>({-80}).RunOne(),
              TensorWithinUlps(AsTensor<double>({std::exp(-80.0)}), 2));
}

struct ActivationGradCase {
  const char* op;
  double (*reference)(double dy, double known);
};
const ActivationGradCase kActivationGradCases[] = {
    {"EluGrad", [](double dy, double y) { return y < 0 ? dy * (y + 1) : dy; }},
    {"SeluGrad",
     [](double dy, double y) { return dy * (y < 0 ? y + kSeluScaleAlpha : kSeluScale); }},
    {"SoftplusGrad", [](double dy, double x) { return dy / (1 + std::exp(-x)); }},
    {"SoftsignGrad",
     [](double dy, double x) { return dy / ((1 + std::abs(x)) * (1 + std::abs(x))); }},
};

TEST(ActivationGrads, RunsForEveryType) {
  for (const ActivationGradCase& c : kActivationGradCases) {
    for (const DataType dtype : kActivationTypes) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const bool by_output = c.op[1] == 'l' || c.op[1] == 'e';
      const Tensor dy = RandomTensor(dtype, {3, 1401}, -3, 3, 1);
      const Tensor x = RandomTensor(dtype, {3, 1401}, by_output ? -0.9 : -9, 9, 2);
      EXPECT_THAT(OpTester(c.op).Input(dy).Input(x).RunOne(),
                  TensorNear(BinaryReference(dy, x, dtype, c.reference)));
      const Tensor empty(dtype, {2, 0});
      EXPECT_THAT(OpTester(c.op).Input(empty).Input(empty).RunOne(), TensorEq(empty));
    }
  }
  EXPECT_THAT(
      OpTester("SoftplusGrad").Input<float>({1, 1, 1}).Input<float>({-kInf, kInf, kNan}).RunOne(),
      TensorEq(AsTensor<float>({0, 1, kNan})));
}

TEST(ActivationGrads, RejectOtherShapes) {
  const std::pair<const char*, const char*> cases[] = {
      {"ReluGrad", "features"},     {"Relu6Grad", "features"}, {"LeakyReluGrad", "features"},
      {"EluGrad", "outputs"},       {"SeluGrad", "outputs"},   {"SoftplusGrad", "features"},
      {"SoftsignGrad", "features"},
  };
  for (const auto& [op, known] : cases) {
    OpTester tester(op);
    tester.Input<float>({1, 2}).Input<float>({1, 2}, {2, 1});
    const auto error = StatusIs(
        kInvalidArgument,
        std::string("Shapes must be equal rank, but are 1 and 2: gradients has shape [2], and ") +
            known + " has shape [2,1]");
    EXPECT_THAT(tester.Run(), error) << op;
    EXPECT_THAT(tester.InferShape(), error) << op;
    EXPECT_THAT(OpTester(op)
                    .UnknownInput(DT_FLOAT, PartialTensorShape({-1, 3}))
                    .UnknownInput(DT_FLOAT, PartialTensorShape({2, -1}))
                    .InferShape(),
                ShapeIs("[2,3]"))
        << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
