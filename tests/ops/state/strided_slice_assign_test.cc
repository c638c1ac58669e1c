#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const char* const kOps[] = {"StridedSliceAssign", "ResourceStridedSliceAssign"};

OpTester Assign(const char* op, const Tensor& variable, const std::vector<int64_t>& begin,
                const std::vector<int64_t>& end, const std::vector<int64_t>& strides,
                const Tensor& value) {
  return OpTester(op)
      .Input(variable)
      .Input(AsTensor<int64_t>(begin))
      .Input(AsTensor<int64_t>(end))
      .Input(AsTensor<int64_t>(strides))
      .Input(value);
}

TEST(StridedSliceAssign, ReplacesSlices) {
  const Tensor x = AsTensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  for (const char* const op : kOps) {
    SCOPED_TRACE(op);
    EXPECT_THAT(
        Assign(op, x, {0, 2}, {2, 0}, {1, -1}, AsTensor<float>({7, 8, 9, 6}, {2, 2})).RunOne(),
        TensorEq(AsTensor<float>({0, 8, 7, 3, 6, 9}, {2, 3})));
    // The value is broadcast to the slice.
    EXPECT_THAT(Assign(op, x, {0, 0}, {2, 3}, {1, 2}, AsScalar<float>(9)).RunOne(),
                TensorEq(AsTensor<float>({9, 1, 9, 9, 4, 9}, {2, 3})));
    EXPECT_THAT(Assign(op, x, {1, 0}, {2, 3}, {1, 1}, AsTensor<float>({7, 8, 9}))
                    .Attr("shrink_axis_mask", 1)
                    .RunOne(),
                TensorEq(AsTensor<float>({0, 1, 2, 7, 8, 9}, {2, 3})));
    // An empty slice.
    EXPECT_THAT(Assign(op, x, {1}, {1}, {1}, Tensor(DT_FLOAT, {0, 3})).RunOne(), TensorEq(x));
    EXPECT_THAT(Assign(op, AsScalar<float>(3), {}, {}, {}, AsScalar<float>(4)).RunOne(),
                TensorEq(AsScalar<float>(4)));
    EXPECT_THAT(Assign(op, AsTensor<tstring>({"a", "b", "c"}), {0}, {3}, {2},
                       AsTensor<tstring>({"long enough to be on the heap", "d"}))
                    .RunOne(),
                TensorEq(AsTensor<tstring>({"long enough to be on the heap", "b", "d"})));
  }
}

TEST(StridedSliceAssign, RejectsBadArguments) {
  const Tensor x = AsTensor<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  for (const char* const op : kOps) {
    SCOPED_TRACE(op);
    EXPECT_THAT(Assign(op, x, {0}, {2}, {0}, AsScalar<float>(1)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("strides[0]")));
    EXPECT_THAT(Assign(op, x, {0}, {2}, {1}, AsTensor<float>({1, 2})).Run(),
                StatusIs(kInvalidArgument, HasSubstr("value")));
    EXPECT_THAT(Assign(op, x, {5}, {6}, {1}, AsScalar<float>(1)).Attr("shrink_axis_mask", 1).Run(),
                StatusIs(kInvalidArgument, HasSubstr("5")));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
