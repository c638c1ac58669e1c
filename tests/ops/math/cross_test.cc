#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

TEST(Cross, RunsForEveryRealType) {
  ForEachType(RealTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    EXPECT_THAT(
        OpTester("Cross")
            .Input(AsTensor<T>({1, 4, 2, 1, 0, 0}, {2, 3}))
            .Input(AsTensor<T>({2, 1, 9, 0, 1, 0}, {2, 3}))
            .RunOne(),
        TensorEq(AsTensor<T>({34, static_cast<T>(-5), static_cast<T>(-7), 0, 0, 1}, {2, 3})));
  });
}

TEST(Cross, RunsForManyVectors) {
  const Tensor a = RandomTensor(DT_DOUBLE, {50, 700, 3}, -1, 1, 1);
  const Tensor b = RandomTensor(DT_DOUBLE, {50, 700, 3}, -1, 1, 2);
  Tensor expected(DT_DOUBLE, a.shape());
  const auto u = a.flat<double>();
  const auto v = b.flat<double>();
  for (int64_t i = 0; i < a.NumElements(); i += 3) {
    for (int64_t j = 0; j < 3; ++j) {
      const int64_t k = i + (j + 1) % 3;
      const int64_t l = i + (j + 2) % 3;
      expected.flat<double>()(i + j) = u(k) * v(l) - u(l) * v(k);
    }
  }
  EXPECT_THAT(OpTester("Cross").Input(a).Input(b).RunOne(), TensorNear(expected, 1e-15, 1e-15));
  EXPECT_THAT(
      OpTester("Cross").Input(Tensor(DT_FLOAT, {0, 3})).Input(Tensor(DT_FLOAT, {0, 3})).RunOne(),
      TensorEq(Tensor(DT_FLOAT, {0, 3})));
}

TEST(Cross, RejectsInvalidInputs) {
  const auto cross = [](const TensorShape& a, const TensorShape& b) {
    return OpTester("Cross").Input(Tensor(DT_FLOAT, a)).Input(Tensor(DT_FLOAT, b));
  };
  ExpectErrors({
      {"last dimension", cross({4}, {4}), "the last dimension must be 3, but a has shape [4]"},
      {"shapes", cross({3}, {1, 3}), "shape"},
      {"scalars", cross({}, {}), "a"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
