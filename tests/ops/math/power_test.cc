#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using Long = long double;

double RoundToDouble(Long value) { return static_cast<double>(value); }

struct PowerCase {
  const char* op;
  double (*reference)(double, double);
  double low;
};
// References in long double, so that rounding to double is correct.
const PowerCase kPowerCases[] = {
    {"Pow", [](double x, double y) { return RoundToDouble(std::pow(Long{x}, Long{y})); }, 0.01},
    {"Atan2", [](double x, double y) { return RoundToDouble(std::atan2(Long{x}, Long{y})); }, -9},
    {"Xlogy", [](double x, double y) { return RoundToDouble(x * std::log(Long{y})); }, 0.01},
    {"Xlog1py", [](double x, double y) { return RoundToDouble(x * std::log1p(Long{y})); }, -0.9},
};

TEST(Power, ComputesFloatsOfEveryType) {
  for (const PowerCase& c : kPowerCases) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const Tensor x = RandomTensor(dtype, {3, 501}, c.op[0] == 'A' ? -9 : 0.01, 9, 1);
      const Tensor y = RandomTensor(dtype, {3, 501}, c.low, 9, 2);
      EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunEverywhere(),
                  IsOkAndHolds(::testing::ElementsAre(
                      TensorWithinUlps(BinaryReference(x, y, dtype, c.reference), 2))));
      // One operand is broadcast.
      const Tensor column = y.Slice(0, 1).Reshaped({501}).value().Slice(0, 3);
      const Tensor repeated = column.Reshaped({3, 1}).value();
      EXPECT_THAT(OpTester(c.op).Input(x).Input(repeated).RunOne(),
                  TensorWithinUlps(BinaryReference(x, repeated, dtype, c.reference), 2));
    }
  }
}

TEST(Pow, WrapsIntegersAround) {
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    EXPECT_THAT(OpTester("Pow")
                    .Input(AsTensor<T>({2, 3, 0, -2, -1, 7, 2}))
                    .Input(AsTensor<T>({3, 0, 0, 3, 127, 2, 100}))
                    .RunOne(),
                TensorEq(AsTensor<T>({8, 1, 1, -8, -1, 49, 0})));
    EXPECT_THAT(OpTester("Pow").Input(AsTensor<T>({2})).Input(AsTensor<T>({1, -1})).Run(),
                StatusIs(kInvalidArgument, "integers to negative integer powers are not allowed"));
    EXPECT_THAT(OpTester("Pow")
                    .Input(Tensor(DataTypeToEnum<T>::value, {0}))
                    .Input(AsTensor<T>({-1}))
                    .RunOne(),
                TensorEq(Tensor(DataTypeToEnum<T>::value, {0})));
  });
}

TEST(Pow, HandlesSpecialValues) {
  EXPECT_THAT(OpTester("Pow")
                  .Input(AsTensor<float>({0, -1, -8, kNan, 1, kInf, -kInf, 0, -2}))
                  .Input(AsTensor<float>({0, 0.5f, 1 / 3.f, 0, kNan, 0, 3, -1, 3}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1, kNan, kNan, 1, 1, 1, -kInf, kInf, -8})));
}

TEST(Power, RunsForComplexNumbers) {
  const Tensor x = AsTensor<complex128>({{2, 1}, {0, 1}});
  const Tensor y = AsTensor<complex128>({{0, 1}, {2, 0}});
  EXPECT_THAT(OpTester("Pow").Input(x).Input(y).RunOne(),
              TensorNear(AsTensor<complex128>(
                  {std::exp(complex128(0, 1) * std::log(complex128(2, 1))), {-1, 0}})));
  EXPECT_THAT(OpTester("Xlogy").Input(y).Input(x).RunOne(),
              TensorNear(AsTensor<complex128>(
                  {complex128(0, 1) * std::log(complex128(2, 1)), {0, 3.14159265358979324}})));
  EXPECT_THAT(OpTester("Xlog1py").Input(AsTensor<complex128>({{0, 0}})).Input(x).RunOne(),
              TensorEq(AsTensor<complex128>({{0, 0}, {0, 0}})));
}

TEST(NextAfter, StepsToTheNextNumber) {
  EXPECT_THAT(OpTester("NextAfter")
                  .Input(AsTensor<float>({1, 1, kNan, 2, 0}))
                  .Input(AsTensor<float>({kInf, 0, 1, 2, -1}))
                  .RunOne(),
              TensorEq(AsTensor<float>({1 + 0x1p-23f, 1 - 0x1p-24f, kNan, 2,
                                        -std::numeric_limits<float>::denorm_min()})));
  EXPECT_THAT(OpTester("NextAfter").Input<double>({1, 2}).Input<double>({5}).RunOne(),
              TensorEq(AsTensor<double>({1 + 0x1p-52, 2 + 0x1p-51})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
