#include <cmath>
#include <string>
#include <utility>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const std::pair<const char*, double (*)(double)> kRoundings[] = {
    {"Floor", [](double x) { return std::floor(x); }},
    {"Ceil", [](double x) { return std::ceil(x); }},
    {"Rint", [](double x) { return std::nearbyint(x); }},
    {"Round", [](double x) { return std::nearbyint(x); }},
};

TEST(Rounding, RoundsFloatsOfEveryType) {
  for (const auto& [op, reference] : kRoundings) {
    for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
      SCOPED_TRACE(std::string(op) + " of " + DataTypeString(dtype));
      // The numbers include halves.
      const Tensor x = UnaryReference(RandomTensor(dtype, {5, 41}, -100, 100),
                                      [](double v) { return std::floor(v * 4) / 4; });
      EXPECT_THAT(OpTester(op).Input(x).RunEverywhere(),
                  IsOkAndHolds(::testing::ElementsAre(TensorEq(UnaryReference(x, reference)))));
    }
  }
}

TEST(Rounding, KeepsSignedZerosAndNonFiniteNumbers) {
  const Tensor x = AsTensor<float>({-0.0f, 0, -0.25f, 8388609, -8388607.5f, kInf, -kInf, kNan});
  for (const auto& [op, reference] : kRoundings) {
    SCOPED_TRACE(op);
    EXPECT_THAT(OpTester(op).Input(x).RunOne(), TensorEq(UnaryReference(x, reference)));
  }
}

TEST(Round, ReturnsIntegersUnchanged) {
  ForEachType(SignedIntegerTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor x = AsTensor<T>({-3, 0, 7});
    const auto y = OpTester("Round").Input(x).RunOne();
    EXPECT_THAT(y, TensorEq(x));
  });
  EXPECT_THAT(OpTester("Round").Input(AsTensor<complex64>({{1, 2}})).MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Round")));
}

TEST(Predicates, ClassifyFloats) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = FromDoubles(dtype, {6}, {0, -1, kInf, -kInf, kNan, 60000});
    EXPECT_THAT(OpTester("IsNan").Input(x).RunOne(),
                TensorEq(AsTensor<bool>({false, false, false, false, true, false})));
    EXPECT_THAT(OpTester("IsInf").Input(x).RunOne(),
                TensorEq(AsTensor<bool>({false, false, true, true, false, false})));
    EXPECT_THAT(OpTester("IsFinite").Input(x).RunOne(),
                TensorEq(AsTensor<bool>({true, true, false, false, false, true})));
  }
  EXPECT_THAT(OpTester("IsFinite").Input(Tensor(DT_HALF, {0, 3})).RunOne(),
              TensorEq(Tensor(DT_BOOL, {0, 3})));
}

TEST(Rounding, RefusesTypesThatAreNotAllowed) {
  for (const char* op : {"Floor", "Ceil", "Rint", "IsNan", "IsInf", "IsFinite"}) {
    EXPECT_THAT(OpTester(op).Input(AsTensor<int32_t>({1})).MakeKernel(),
                StatusIs(kInvalidArgument, HasSubstr("T")))
        << op;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
