#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

double Add(double x, double y) { return x + y; }
double Subtract(double x, double y) { return x - y; }
double Multiply(double x, double y) { return x * y; }
double Divide(double x, double y) { return x / y; }
double SquaredDifference(double x, double y) { return (x - y) * (x - y); }

struct ArithmeticCase {
  const char* op;
  double (*reference)(double, double);
  // True if rounding the float64 result once gives the result of the formula in the type.
  bool one_operation;
};
const ArithmeticCase kArithmeticCases[] = {
    {"Add", Add, true},        {"AddV2", Add, true},
    {"Sub", Subtract, true},   {"Mul", Multiply, true},
    {"RealDiv", Divide, true}, {"SquaredDifference", SquaredDifference, false},
};

TEST(Arithmetic, FloatsHaveTheBitsOfTheFormula) {
  for (const ArithmeticCase& c : kArithmeticCases) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {17, 5}, -100, 100, 1);
      const Tensor y = RandomTensor(dtype, {17, 1}, 1, 100, 2);
      const auto z = OpTester(c.op).Input(x).Input(y).RunOne();
      const Tensor expected = BinaryReference(x, y, dtype, c.reference);
      // Rounding a float64 result to at most half its precision gives the correctly rounded result.
      if (c.one_operation) {
        EXPECT_THAT(z, TensorEq(expected));
      } else {
        EXPECT_THAT(z, TensorNear(expected));
      }
    }
  }
}

TEST(Arithmetic, RepeatsASingleElement) {
  const TensorShape shapes[][2] = {{{}, {3}},           {{1}, {2, 3}},   {{1, 1}, {2}},
                                   {{}, {0, 2}},        {{}, {1, 1}},    {{1}, {1}},
                                   {{1, 1, 1}, {2, 3}}, {{1}, {40, 50}}, {{1, 1}, {1, 4}}};
  for (const auto& [single, other] : shapes) {
    for (const bool single_first : {false, true}) {
      const TensorShape& first = single_first ? single : other;
      const TensorShape& second = single_first ? other : single;
      SCOPED_TRACE(first.DebugString() + " - " + second.DebugString());
      for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
        const Tensor x = RandomTensor(dtype, first, -100, 100, 1);
        const Tensor y = RandomTensor(dtype, second, -100, 100, 2);
        EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(),
                    TensorEq(BinaryReference(x, y, dtype, Subtract)));
      }
    }
  }
}

TEST(Arithmetic, SquaredDifferenceRoundsTwice) {
  // The difference rounds to 1 in float. In double, its square would not be 1.
  const auto z = OpTester("SquaredDifference")
                     .Input(AsTensor<float>({1.0f, 3}))
                     .Input(AsTensor<float>({1e-9f, 5}))
                     .RunOne();
  EXPECT_THAT(z, TensorEq(AsTensor<float>({1, 4})));
}

TEST(Arithmetic, HalfRoundsOnceFromFloat) {
  // 2049 is not a half and rounds to even, 2048. The sum in float is exact.
  EXPECT_THAT(
      OpTester("AddV2").Input(AsTensor<half>({2048, 2048})).Input(AsTensor<half>({1, 3})).RunOne(),
      TensorEq(AsTensor<half>({2048, 2052})));
  // The result exceeds the largest half.
  EXPECT_THAT(OpTester("Mul").Input(AsTensor<half>({60000})).Input(AsTensor<half>({2})).RunOne(),
              TensorEq(AsTensor<half>({kInf})));
}

TEST(Arithmetic, ComputesIntegersOfEveryType) {
  for (const ArithmeticCase& c :
       {ArithmeticCase{"AddV2", Add, true}, {"Sub", Subtract, true}, {"Mul", Multiply, true}}) {
    ForEachType(IntegerTypes(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(DataTypeToEnum<T>::value));
      const Tensor x = AsTensor<T>({9, 10, 11, 7});
      const Tensor y = AsTensor<T>({3, 1, 5, 7});
      EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunOne(),
                  TensorEq(BinaryReference(x, y, DataTypeToEnum<T>::value, c.reference)));
    });
  }
}

TEST(Arithmetic, SignedIntegersComputeWithNegatives) {
  const Tensor x = AsTensor<int64_t>({-7, 7, -7});
  const Tensor y = AsTensor<int64_t>({3, -3, -3});
  EXPECT_THAT(OpTester("AddV2").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({-4, 4, -10})));
  EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({-10, 10, -4})));
  EXPECT_THAT(OpTester("Mul").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({-21, -21, 21})));
  EXPECT_THAT(OpTester("SquaredDifference").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({100, 100, 16})));
}

TEST(Arithmetic, IntegersWrapAround) {
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    constexpr T max = std::numeric_limits<T>::max();
    constexpr T min = std::numeric_limits<T>::min();
    EXPECT_THAT(
        OpTester("AddV2").Input(AsTensor<T>({max, min})).Input(AsTensor<T>({1, min})).RunOne(),
        TensorEq(AsTensor<T>({min, 0})));
    EXPECT_THAT(OpTester("Sub").Input(AsTensor<T>({min, 0})).Input(AsTensor<T>({1, min})).RunOne(),
                TensorEq(AsTensor<T>({max, min})));
    EXPECT_THAT(OpTester("Mul")
                    .Input(AsTensor<T>({max, min, min}))
                    .Input(AsTensor<T>({max, -1, min}))
                    .RunOne(),
                TensorEq(AsTensor<T>({1, min, 0})));
  });
  EXPECT_THAT(OpTester("Mul")
                  .Input(AsTensor<uint16_t>({65535}))
                  .Input(AsTensor<uint16_t>({65535}))
                  .RunOne(),
              TensorEq(AsTensor<uint16_t>({1})));
  EXPECT_THAT(OpTester("SquaredDifference")
                  .Input(AsTensor<int32_t>({std::numeric_limits<int32_t>::min()}))
                  .Input(AsTensor<int32_t>({1}))
                  .RunOne(),
              TensorEq(AsTensor<int32_t>({1})));
}

TEST(Arithmetic, ComputesComplexNumbers) {
  const Tensor x = AsTensor<complex64>({{1, 2}, {3, -1}});
  const Tensor y = AsTensor<complex64>({{4, -5}, {0, 2}});
  EXPECT_THAT(OpTester("AddV2").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<complex64>({{5, -3}, {3, 1}})));
  EXPECT_THAT(OpTester("Sub").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<complex64>({{-3, 7}, {3, -3}})));
  EXPECT_THAT(OpTester("Mul").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<complex64>({{14, 3}, {2, 6}})));
  EXPECT_THAT(OpTester("RealDiv").Input(x).Input(y).RunOne(),
              TensorNear(AsTensor<complex64>({{-6.0f / 41, 13.0f / 41}, {-0.5f, -1.5f}})));
  EXPECT_THAT(OpTester("SquaredDifference").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<complex64>({{58, 0}, {18, 0}})));
}

TEST(Arithmetic, HandlesInfinitiesNanAndSignedZeros) {
  EXPECT_THAT(OpTester("Sub")
                  .Input(AsTensor<float>({kInf, kNan, 0, -0.0f}))
                  .Input(AsTensor<float>({kInf, 1, 0, 0}))
                  .RunOne(),
              TensorEq(AsTensor<float>({kNan, kNan, 0, -0.0f})));
  EXPECT_THAT(OpTester("RealDiv")
                  .Input(AsTensor<float>({1, -1, 0, 1}))
                  .Input(AsTensor<float>({0, 0, 0, -kInf}))
                  .RunOne(),
              TensorEq(AsTensor<float>({kInf, -kInf, kNan, -0.0f})));
  EXPECT_THAT(
      OpTester("Mul").Input(AsTensor<float>({kNan, kInf})).Input(AsTensor<float>({0, 0})).RunOne(),
      TensorEq(AsTensor<float>({kNan, kNan})));
}

TEST(Add, AppendsStrings) {
  EXPECT_THAT(OpTester("Add")
                  .Input(AsTensor<tstring>({"a", "", "a long one that is on the heap, "}))
                  .Input(AsScalar<tstring>("b"))
                  .RunOne(),
              TensorEq(AsTensor<tstring>({"ab", "b", "a long one that is on the heap, b"})));
}

TEST(RealDiv, HasNoKernelForIntegers) {
  EXPECT_THAT(
      OpTester("RealDiv").Input(AsTensor<int32_t>({1})).Input(AsTensor<int32_t>({0})).MakeKernel(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("RealDiv")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
