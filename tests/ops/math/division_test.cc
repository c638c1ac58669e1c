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

using ::testing::HasSubstr;

double FloorMod(double x, double y) {
  const double remainder = std::fmod(x, y);
  return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;
}

struct DivisionCase {
  const char* op;
  double (*reference)(double, double);
  bool integers;
  // True if the op supports integers of every type.
  bool all_integers;
};
const DivisionCase kDivisionCases[] = {
    {"Div", [](double x, double y) { return x / y; }, false, false},
    {"TruncateDiv", [](double x, double y) { return std::trunc(x / y); }, true, true},
    {"FloorDiv", [](double x, double y) { return std::floor(x / y); }, true, true},
    {"Mod", [](double x, double y) { return std::fmod(x, y); }, true, false},
    {"TruncateMod", [](double x, double y) { return std::fmod(x, y); }, true, false},
    {"FloorMod", FloorMod, true, true},
    {"DivNoNan", [](double x, double y) { return y == 0 ? 0 : x / y; }, false, false},
    {"MulNoNan", [](double x, double y) { return y == 0 ? 0 : x * y; }, false, false},
    {"Xdivy", [](double x, double y) { return x == 0 ? 0 : x / y; }, false, false},
};

TEST(Division, DividesFloatsOfEveryType) {
  for (const DivisionCase& c : kDivisionCases) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      // Multiples of a quarter, so that quotients are either exact or far from integers.
      const auto quarters = [](double v) { return std::floor(v) / 4; };
      const Tensor x = UnaryReference(RandomTensor(dtype, {31, 17}, -60, 60, 1), quarters);
      const Tensor y = UnaryReference(RandomTensor(dtype, {31, 1}, 1, 20, 2), quarters);
      EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunOne(),
                  TensorEq(BinaryReference(x, y, dtype, c.reference)));
      const Tensor negative = UnaryReference(y, [](double v) { return -v; });
      EXPECT_THAT(OpTester(c.op).Input(x).Input(negative).RunOne(),
                  TensorEq(BinaryReference(x, negative, dtype, c.reference)));
    }
  }
}

TEST(Division, DividesIntegersOfEveryType) {
  for (const DivisionCase& c : kDivisionCases) {
    if (!c.integers) continue;
    ForEachType(IntegerTypes(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if (!c.all_integers && !std::is_same_v<T, int32_t> && !std::is_same_v<T, int64_t>) return;
      constexpr DataType dtype = DataTypeToEnum<T>::value;
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      const double low = std::is_signed_v<T> ? -100 : 0;
      const Tensor x = RandomTensor(dtype, {40, 11}, low, 100, 1);
      const Tensor y = RandomTensor(dtype, {11}, 1, 20, 2);
      EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunOne(),
                  TensorEq(BinaryReference(x, y, dtype, c.reference)));
      if (!std::is_signed_v<T>) return;
      const Tensor z = RandomTensor(dtype, {11}, -20, -1, 2);
      EXPECT_THAT(OpTester(c.op).Input(x).Input(z).RunOne(),
                  TensorEq(BinaryReference(x, z, dtype, c.reference)));
    });
  }
}

TEST(Division, SmallestIntegerWrapsAround) {
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr T min = std::numeric_limits<T>::min();
    for (const char* op : {"Div", "TruncateDiv", "FloorDiv", "FloorMod"}) {
      SCOPED_TRACE(op);
      const T expected = std::string(op) == "FloorMod" ? 0 : min;
      EXPECT_THAT(OpTester(op).Input(AsTensor<T>({min})).Input(AsTensor<T>({-1})).RunOne(),
                  TensorEq(AsTensor<T>({expected})));
    }
  });
}

TEST(Division, RejectsIntegerDivisionByZero) {
  for (const char* op : {"Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod"}) {
    SCOPED_TRACE(op);
    EXPECT_THAT(OpTester(op).Input<int32_t>({7, -7}).Input<int32_t>({3, 0}).Run(),
                StatusIs(kInvalidArgument, "integer division by zero"));
    EXPECT_THAT(OpTester(op).Input<int64_t>({7, -7}).Input<int64_t>({0}).Run(),
                StatusIs(kInvalidArgument, "integer division by zero"));
    EXPECT_THAT(OpTester(op).Input(Tensor(DT_INT32, {0, 2})).Input<int32_t>({0}).RunOne(),
                TensorEq(Tensor(DT_INT32, {0, 2})));
  }
  // The zero is in the last of many blocks.
  Tensor y = Iota<uint8_t>({70001}, 1);
  for (int64_t i = 0; i < y.NumElements(); ++i) y.flat<uint8_t>()(i) |= 1;
  GRADFLOW_EXPECT_OK(OpTester("Div").Input(AsScalar<uint8_t>(9)).Input(y).Run());
  y.flat<uint8_t>()(70000) = 0;
  EXPECT_THAT(OpTester("Div").Input(AsScalar<uint8_t>(9)).Input(y).Run(),
              StatusIs(kInvalidArgument, "integer division by zero"));
}

TEST(Division, NoNanOpsAndXdivyHandleZeros) {
  const Tensor x = AsTensor<float>({0, 0, 2, kInf, kNan, 3, 0});
  const Tensor y = AsTensor<float>({0, kNan, 0, 0, 0, -1, -2});
  EXPECT_THAT(OpTester("DivNoNan").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<float>({0, kNan, 0, 0, 0, -3, -0.0f})));
  EXPECT_THAT(OpTester("MulNoNan").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<float>({0, kNan, 0, 0, 0, -3, -0.0f})));
  EXPECT_THAT(OpTester("Xdivy").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<float>({0, 0, kInf, kInf, kNan, -3, 0})));
}

TEST(Division, HasNoComplexRemainders) {
  for (const char* op : {"FloorDiv", "TruncateDiv"}) {
    EXPECT_THAT(OpTester(op)
                    .Input(AsTensor<complex64>({{1, 2}}))
                    .Input(AsTensor<complex64>({{1, 2}}))
                    .MakeKernel(),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(op)));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
