#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Bucketize(const Tensor& input, const std::vector<float>& boundaries) {
  return OpTester("Bucketize").Input(input).Attr("boundaries", absl::MakeConstSpan(boundaries));
}

TEST(Bucketize, CountsBoundariesUpToEachValue) {
  ForEachType(TypeList<int32_t, int64_t, float, double>(), [](auto tag) {
    using T = typename decltype(tag)::type;
    const Tensor input = RandomTensor(DataTypeToEnum<T>::value, {3, 1001}, -20, 20);
    for (const int size : {0, 1, 2, 3, 7, 8, 20}) {
      std::vector<float> boundaries;
      for (int i = 0; i < size; ++i) boundaries.push_back(static_cast<float>(i * 40 / size - 18));
      Tensor expected(DT_INT32, input.shape());
      for (int64_t i = 0; i < input.NumElements(); ++i) {
        expected.flat<int32_t>()(i) =
            static_cast<int32_t>(std::count_if(boundaries.begin(), boundaries.end(), [&](float b) {
              return b <= static_cast<double>(input.flat<T>()(i));
            }));
      }
      EXPECT_THAT(Bucketize(input, boundaries).RunOne(), TensorEq(expected)) << size;
    }
  });
}

TEST(Bucketize, HandlesSpecialValues) {
  EXPECT_THAT(Bucketize(AsTensor<float>({0, 5, 10, kNan, kInf, -kInf}), {0, 5, 5, 10}).RunOne(),
              TensorEq(AsTensor<int32_t>({1, 3, 4, 4, 4, 0})));
  EXPECT_THAT(Bucketize(Tensor(DT_DOUBLE, {0}), {1}).RunOne(), TensorEq(Tensor(DT_INT32, {0})));
  EXPECT_THAT(Bucketize(AsScalar<int64_t>(INT64_MIN), {1}).RunOne(),
              TensorEq(AsScalar<int32_t>(0)));
}

TEST(Bucketize, RejectsBoundariesThatAreNotSorted) {
  EXPECT_THAT(Bucketize(AsTensor<float>({1}), {0, 3, 1}).Run(),
              StatusIs(kInvalidArgument, "boundaries are not sorted: 1 comes after 3"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
