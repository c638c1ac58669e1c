#include <algorithm>
#include <cmath>
#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(Relu, OfEveryRealType) {
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

}  // namespace
}  // namespace testing
}  // namespace gradflow
