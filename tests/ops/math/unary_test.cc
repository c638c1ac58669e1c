#include <cmath>
#include <complex>
#include <iterator>
#include <limits>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const DataType kFloats[] = {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16};

TEST(Unary, FloatsHaveTheBitsOfTheFormula) {
  const std::pair<const char*, double (*)(double)> cases[] = {
      {"Neg", [](double x) { return -x; }},
      {"Abs", [](double x) { return std::fabs(x); }},
      {"Square", [](double x) { return x * x; }},
      {"Sqrt", [](double x) { return std::sqrt(x); }},
  };
  for (const auto& [op, reference] : cases) {
    for (const DataType dtype : kFloats) {
      SCOPED_TRACE(std::string(op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {5, 41}, op[1] == 'q' ? 0 : -100, 100);
      // Rounding one float64 operation to half the precision gives the correctly rounded result.
      EXPECT_THAT(OpTester(op).Input(x).RunOne(), TensorEq(UnaryReference(x, reference)));
    }
  }
}

TEST(Rsqrt, RoundsTheRootAndItsReciprocal) {
  const Tensor x = RandomTensor(DT_FLOAT, {1000}, 0, 100);
  Tensor expected(DT_FLOAT, {1000});
  for (int i = 0; i < 1000; ++i) {
    expected.vec<float>()(i) = 1.0f / std::sqrt(x.vec<float>()(i));
  }
  EXPECT_THAT(OpTester("Rsqrt").Input(x).RunOne(), TensorEq(expected));
  for (const DataType dtype : kFloats) {
    const Tensor values = RandomTensor(dtype, {99}, 1, 100);
    EXPECT_THAT(OpTester("Rsqrt").Input(values).RunOne(),
                TensorNear(UnaryReference(values, [](double v) { return 1 / std::sqrt(v); })));
  }
}

TEST(Reciprocal, DividesOne) {
  for (const char* op : {"Reciprocal", "Inv"}) {
    for (const DataType dtype : kFloats) {
      SCOPED_TRACE(std::string(op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {5, 41}, -100, 100);
      EXPECT_THAT(OpTester(op).Input(x).RunOne(),
                  TensorEq(UnaryReference(x, [](double v) { return 1 / v; })));
    }
    EXPECT_THAT(OpTester(op).Input(AsTensor<float>({0, -0.0f, kInf, kNan})).RunOne(),
                TensorEq(AsTensor<float>({kInf, -kInf, 0, kNan})));
    EXPECT_THAT(OpTester(op).Input(AsTensor<complex128>({{3, 4}})).RunOne(),
                TensorNear(AsTensor<complex128>({{0.12, -0.16}})));
    EXPECT_THAT(OpTester(op).Input(AsTensor<int32_t>({2})).MakeKernel(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(op)));
  }
}

TEST(Sign, RunsForEveryType) {
  for (const DataType dtype : kFloats) {
    const Tensor x = FromDoubles(dtype, {7}, {-2, -0.0, 0, 0.25, kInf, -kInf, kNan});
    EXPECT_THAT(OpTester("Sign").Input(x).RunOne(),
                TensorEq(FromDoubles(dtype, {7}, {-1, 0, 0, 1, 1, -1, kNan})));
  }
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr T min = std::numeric_limits<T>::min();
    EXPECT_THAT(OpTester("Sign").Input(AsTensor<T>({min, -1, 0, 7})).RunOne(),
                TensorEq(AsTensor<T>({-1, -1, 0, 1})));
  });
  EXPECT_THAT(OpTester("Sign").Input(AsTensor<complex128>({{3, 4}, {0, 0}})).RunOne(),
              TensorNear(AsTensor<complex128>({{0.6, 0.8}, {0, 0}})));
}

TEST(Unary, ComputesIntegersOfEverySignedType) {
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    constexpr T min = std::numeric_limits<T>::min();
    constexpr T max = std::numeric_limits<T>::max();
    const Tensor x = AsTensor<T>({0, 1, -2, 11, max, min});
    EXPECT_THAT(OpTester("Neg").Input(x).RunOne(),
                TensorEq(AsTensor<T>({0, -1, 2, -11, -max, min})));
    EXPECT_THAT(OpTester("Abs").Input(x).RunOne(), TensorEq(AsTensor<T>({0, 1, 2, 11, max, min})));
    EXPECT_THAT(OpTester("Square").Input(x).RunOne(), TensorEq(AsTensor<T>({0, 1, 4, 121, 1, 0})));
  });
  EXPECT_THAT(OpTester("Square").Input(AsTensor<uint16_t>({65535, 3})).RunOne(),
              TensorEq(AsTensor<uint16_t>({1, 9})));
}

TEST(Unary, HandlesSpecialValues) {
  const Tensor x = AsTensor<float>({kInf, -kInf, kNan, 0, -0.0f});
  EXPECT_THAT(OpTester("Neg").Input(x).RunOne(),
              TensorEq(AsTensor<float>({-kInf, kInf, kNan, -0.0f, 0})));
  EXPECT_THAT(OpTester("Abs").Input(x).RunOne(),
              TensorEq(AsTensor<float>({kInf, kInf, kNan, 0, 0})));
  EXPECT_THAT(OpTester("Square").Input(x).RunOne(),
              TensorEq(AsTensor<float>({kInf, kInf, kNan, 0, 0})));
  EXPECT_THAT(OpTester("Sqrt").Input(x).RunOne(),
              TensorEq(AsTensor<float>({kInf, kNan, kNan, 0, -0.0f})));
  EXPECT_THAT(OpTester("Rsqrt").Input(x).RunOne(),
              TensorEq(AsTensor<float>({0, kNan, kNan, kInf, -kInf})));
}

TEST(Unary, ComputesComplexNumbers) {
  const Tensor x = AsTensor<complex128>({{3, 4}, {-4, 0}, {0, 0}});
  EXPECT_THAT(OpTester("Neg").Input(x).RunOne(),
              TensorEq(AsTensor<complex128>({{-3, -4}, {4, -0.0}, {-0.0, -0.0}})));
  EXPECT_THAT(OpTester("Square").Input(x).RunOne(),
              TensorEq(AsTensor<complex128>({{-7, 24}, {16, -0.0}, {0, 0}})));
  EXPECT_THAT(OpTester("Sqrt").Input(x).RunOne(),
              TensorNear(AsTensor<complex128>({{2, 1}, {0, 2}, {0, 0}})));
  EXPECT_THAT(OpTester("Rsqrt").Input(x.Slice(0, 2)).RunOne(),
              TensorNear(AsTensor<complex128>({{0.4, -0.2}, {0, -0.5}})));
}

// Covers vectors of each width, their remainders, and numbers at the ends of the range.
TEST(Unary, HasTheSameBitsOnEverySimdTarget) {
  for (const char* op : {"Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal"}) {
    for (const DataType dtype : kFloats) {
      for (const int64_t n : {1, 3, 15, 37, 1030}) {
        SCOPED_TRACE(std::string(op) + " of " + DataTypeString(dtype) + ", " + std::to_string(n));
        const double special[] = {0, -0.0, -1, kInf, -kInf, kNan, 1e-310, 1e-40, 6e-8, 3e38, 65504};
        size_t i = 0;
        const Tensor x = UnaryReference(RandomTensor(dtype, {n}, 0, 100), [&](double v) {
          return i++ % 3 == 2 ? special[i / 3 % std::size(special)] : v;
        });
        EXPECT_THAT(OpTester(op).Input(x).RunEverywhere({{1, 3}, {}}), IsOk());
      }
    }
  }
}

TEST(Sqrt, RoundsCorrectlyOnEverySimdTarget) {
  for (const DataType dtype : kFloats) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = RandomTensor(dtype, {4099}, 0, 1e4);
    EXPECT_THAT(OpTester("Sqrt").Input(x).RunEverywhere({{1}, {}}),
                IsOkAndHolds(::testing::ElementsAre(
                    TensorEq(UnaryReference(x, [](double v) { return std::sqrt(v); })))));
  }
}

TEST(Unary, TakesEmptyTensors) {
  const Tensor empty(DT_FLOAT, {2, 0, 3});
  for (const char* op : {"Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Inv"}) {
    EXPECT_THAT(OpTester(op).Input(empty).RunOne(), TensorEq(empty));
  }
}

TEST(Unary, RefusesTypesThatAreNotAllowed) {
  for (const char* op : {"Neg", "Abs", "Sign", "Square", "Sqrt", "Rsqrt", "Reciprocal", "Inv"}) {
    EXPECT_THAT(OpTester(op).Input(AsTensor<bool>({true})).MakeKernel(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")))
        << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
