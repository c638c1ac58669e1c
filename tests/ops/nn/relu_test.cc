#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Relu, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    const bool is_signed = std::numeric_limits<T>::is_signed;
    const Tensor x = RandomTensor(dtype, {3, 4, 5}, is_signed ? -100 : 0, 100);
    EXPECT_THAT(OpTester("Relu").Input(x).RunOne(),
                TensorEq(UnaryReference(x, [](double v) { return v > 0 ? v : 0; })));
  });
}

TEST(Relu, KeepsNan) {
  for (const int64_t n : {1, 9}) {
    Tensor x(DT_FLOAT, {5, n});
    const float values[] = {kNan, kInf, -kInf, -0.0f, 2};
    for (int64_t i = 0; i < 5 * n; ++i) x.flat<float>()(i) = values[i / n];
    EXPECT_THAT(
        OpTester("Relu").Input(x).RunOne(),
        TensorEq(UnaryReference(x, [](double v) { return std::isnan(v) || v > 0 ? v : 0; })));
  }
}

TEST(Relu, HasNoKernelForQuantizedNumbers) {
  EXPECT_THAT(OpTester("Relu").Input(AsTensor<qint8>({1})).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Relu")));
}

TEST(Relu, RefusesComplexNumbers) {
  EXPECT_THAT(OpTester("Relu").Input(AsTensor<complex64>({{1, 0}})).MakeKernel(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")));
}

TEST(Relu6, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    const double low = std::numeric_limits<T>::is_signed ? -10 : 0;
    const Tensor x = RandomTensor(dtype, {3, 4, 50}, low, 12);
    EXPECT_THAT(OpTester("Relu6").Input(x).RunOne(),
                TensorEq(UnaryReference(x, [](double v) { return std::clamp(v, 0.0, 6.0); })));
  });
  const Tensor special = AsTensor<float>({kNan, kInf, -kInf, -0.0f, 6});
  EXPECT_THAT(OpTester("Relu6").Input(special).RunOne(),
              TensorEq(AsTensor<float>({kNan, 6, 0, 0, 6})));
}

struct ReluGradCase {
  const char* op;
  double (*slope)(double x);
};
const ReluGradCase kReluGradCases[] = {
    {"ReluGrad", [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"Relu6Grad", [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }},
};

TEST(ReluGrads, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    const double low = std::numeric_limits<T>::is_signed ? -10 : 0;
    for (const ReluGradCase& c : kReluGradCases) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor dy = RandomTensor(dtype, {5, 333}, low, 10, 1);
      const Tensor x = RandomTensor(dtype, {5, 333}, low, 12, 2);
      EXPECT_THAT(OpTester(c.op).Input(dy).Input(x).RunOne(),
                  TensorEq(BinaryReference(
                      dy, x, dtype, [&](double g, double v) { return c.slope(v) != 0 ? g : 0; })));
    }
  });
}

// The gradient at a kink is 0, even for an infinite gradient.
TEST(ReluGrads, AreZeroAtKinks) {
  const Tensor x = AsTensor<float>({0, -0.0f, 6, kNan, -1, 1});
  const Tensor dy = AsTensor<float>({1, 1, 1, kInf, kInf, kInf});
  EXPECT_THAT(OpTester("ReluGrad").Input(dy).Input(x).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 1, 0, 0, kInf})));
  EXPECT_THAT(OpTester("Relu6Grad").Input(dy).Input(x).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0, 0, kInf})));
}

TEST(LeakyRelu, ScalesNumbersThatAreNotPositive) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    for (const float alpha : {0.2f, 0.0f, 2.0f, -1.5f}) {
      SCOPED_TRACE(DataTypeString(dtype));
      const double slope = alpha;
      const Tensor x = RandomTensor(dtype, {7, 411}, -3, 3, 1);
      const Tensor dy = RandomTensor(dtype, {7, 411}, -3, 3, 2);
      EXPECT_THAT(OpTester("LeakyRelu").Input(x).Attr("alpha", alpha).RunOne(),
                  TensorNear(UnaryReference(x, [=](double v) { return v > 0 ? v : slope * v; })));
      EXPECT_THAT(OpTester("LeakyReluGrad").Input(dy).Input(x).Attr("alpha", alpha).RunOne(),
                  TensorNear(BinaryReference(
                      dy, x, dtype, [=](double g, double v) { return v > 0 ? g : slope * g; })));
    }
  }
  EXPECT_THAT(OpTester("LeakyRelu").Input<float>({-1, kNan, -kInf, 2}).RunOne(),
              TensorEq(AsTensor<float>({-0.2f, kNan, -kInf, 2})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
