#include <cmath>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Maximum, TakesTheLargerInEveryType) {
  ForEachType(RealTypes(), [](auto tag) {
    constexpr DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor x = RandomTensor(dtype, {13, 7}, 0, 100, 1);
    const Tensor y = RandomTensor(dtype, {7}, 0, 100, 2);
    EXPECT_THAT(
        OpTester("Maximum").Input(x).Input(y).RunOne(),
        TensorEq(BinaryReference(x, y, dtype, [](double a, double b) { return std::fmax(a, b); })));
    EXPECT_THAT(
        OpTester("Minimum").Input(x).Input(y).RunOne(),
        TensorEq(BinaryReference(x, y, dtype, [](double a, double b) { return std::fmin(a, b); })));
  });
}

TEST(Maximum, OrdersNegativeAndLargeIntegers) {
  constexpr int64_t large = int64_t{1} << 62;
  const Tensor x = AsTensor<int64_t>({-1, large, -large});
  const Tensor y = AsTensor<int64_t>({0, large + 1, -large - 1});
  EXPECT_THAT(OpTester("Maximum").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({0, large + 1, -large})));
  EXPECT_THAT(OpTester("Minimum").Input(x).Input(y).RunOne(),
              TensorEq(AsTensor<int64_t>({-1, large, -large - 1})));
}

TEST(Maximum, KeepsNanOfEitherInput) {
  // Sizes that cover whole vectors and remainders.
  for (const int64_t n : {1, 4, 19}) {
    Tensor x(DT_FLOAT, {3, n});
    Tensor y(DT_FLOAT, {3, n});
    for (int64_t i = 0; i < n; ++i) {
      x.matrix<float>()(0, i) = kNan;
      y.matrix<float>()(0, i) = 1;
      x.matrix<float>()(1, i) = 1;
      y.matrix<float>()(1, i) = kNan;
      x.matrix<float>()(2, i) = kInf;
      y.matrix<float>()(2, i) = -kInf;
    }
    Tensor larger = x;
    const Tensor expected_max = BinaryReference(x, y, DT_FLOAT, [](double a, double b) {
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b);
    });
    const Tensor expected_min = BinaryReference(x, y, DT_FLOAT, [](double a, double b) {
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmin(a, b);
    });
    EXPECT_THAT(OpTester("Maximum").Input(x).Input(y).RunOne(), TensorEq(expected_max));
    EXPECT_THAT(OpTester("Minimum").Input(x).Input(y).RunOne(), TensorEq(expected_min));
  }
  EXPECT_THAT(OpTester("Maximum").Input(AsScalar<half>(kNan)).Input(AsScalar<half>(1)).RunOne(),
              TensorEq(AsScalar<half>(kNan)));
}

TEST(Maximum, TakesTheZeroOfTheSecondInput) {
  const Tensor plus = AsTensor<float>({0});
  const Tensor minus = AsTensor<float>({-0.0f});
  EXPECT_THAT(OpTester("Maximum").Input(plus).Input(minus).RunOne(), TensorEq(minus));
  EXPECT_THAT(OpTester("Minimum").Input(minus).Input(plus).RunOne(), TensorEq(plus));
}

TEST(Maximum, RejectsComplexNumbers) {
  for (const char* op : {"Maximum", "Minimum"}) {
    EXPECT_THAT(OpTester(op)
                    .Input(AsTensor<complex64>({{1, 2}}))
                    .Input(AsTensor<complex64>({{1, 2}}))
                    .MakeKernel(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
