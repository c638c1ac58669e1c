#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

TEST(LinSpace, RunsForEveryType) {
  for (const DataType dtype : {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const auto run = [&](double start, double stop, int64_t num) {
      return OpTester("LinSpace")
          .Input(FromDoubles(dtype, {}, {start}))
          .Input(FromDoubles(dtype, {}, {stop}))
          .Input(AsScalar<int64_t>(num))
          .RunOne();
    };
    EXPECT_THAT(run(1, 3, 5), TensorEq(FromDoubles(dtype, {5}, {1, 1.5, 2, 2.5, 3})));
    EXPECT_THAT(run(1, 3, 1), TensorEq(FromDoubles(dtype, {1}, {1})));
    EXPECT_THAT(run(2, 2, 3), TensorEq(FromDoubles(dtype, {3}, {2, 2, 2})));
    // The last number is exact.
    std::vector<double> values;
    for (int i = 0; i < 50; ++i) values.push_back(10 - 0.2 * i);
    values.back() = 0.2;
    const auto y = run(10, 0.2, 50);
    EXPECT_THAT(y, TensorNear(FromDoubles(dtype, {50}, values)));
    GRADFLOW_ASSERT_OK(y.status());
    EXPECT_THAT(y->SubSlice(49), TensorEq(FromDoubles(dtype, {}, {0.2})));
  }
}

TEST(LinSpace, RunsForManyNumbers) {
  OpTester tester("LinSpace");
  tester.Input(AsScalar<double>(0)).Input(AsScalar<double>(1)).Input(AsScalar<int32_t>(200001));
  const auto y = tester.RunOne();
  GRADFLOW_ASSERT_OK(y.status());
  for (const int64_t i : {0, 1, 99999, 200000}) {
    EXPECT_DOUBLE_EQ(y->flat<double>()(i), i / 200000.0);
  }
}

TEST(LinSpace, RejectsInvalidInputs) {
  const auto space = [](const Tensor& start, const Tensor& num) {
    return OpTester("LinSpace").Input(start).Input(AsScalar<float>(1)).Input(num);
  };
  ExpectErrors({
      {"num", space(AsScalar<float>(0), AsScalar<int32_t>(0)), "num is 0, expected at least 1"},
      {"num of a vector", space(AsScalar<float>(0), AsTensor<int32_t>({1})),
       "Shape must be rank 0 but is rank 1: num has shape [1]"},
      {"start", space(AsTensor<float>({0}), AsScalar<int32_t>(2)),
       "Shape must be rank 0 but is rank 1: start has shape [1]"},
  });
  EXPECT_THAT(
      OpTester("LinSpace")
          .Attr("T", DT_FLOAT)
          .RunOn({AsScalar<float>(1), AsScalar<double>(2), AsScalar<int32_t>(2)}),
      StatusIs(kInvalidArgument, HasSubstr("must be of type float, but input 1 is double")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
