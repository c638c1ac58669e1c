#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

struct SliceSpec {
  std::vector<int64_t> begin, end, strides;
  int64_t begin_mask = 0, end_mask = 0, ellipsis_mask = 0, new_axis_mask = 0, shrink_axis_mask = 0;
};

OpTester WithSlice(OpTester tester, const SliceSpec& s) {
  return tester.Input(AsTensor<int32_t>(s.begin))
      .Input(AsTensor<int32_t>(s.end))
      .Input(AsTensor<int32_t>(s.strides))
      .Attr("begin_mask", s.begin_mask)
      .Attr("end_mask", s.end_mask)
      .Attr("ellipsis_mask", s.ellipsis_mask)
      .Attr("new_axis_mask", s.new_axis_mask)
      .Attr("shrink_axis_mask", s.shrink_axis_mask);
}

// Slices of a tensor of shape [4, 5, 6].
const SliceSpec kSlices[] = {
    {{1}, {3}, {1}},
    {{0, 4}, {4, 0}, {2, -2}},
    {{-1, 0, 1}, {0, 5, 6}, {-3, 1, 2}},
    {{1, 2}, {2, 4}, {1, 1}, 0, 0, 0, 0, 1},
    {{0, 1, 0}, {0, 5, 3}, {1, 2, 1}, 0, 0, 0, 1, 0},
    {{0, 2}, {0, 3}, {1, 1}, 0, 0, 1, 0, 2},
    {{3, 0}, {1, 0}, {1, 1}, 2, 2},
    {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, 7, 7},
    {{1, 1, 1}, {2, 2, 2}, {1, 1, 1}, 0, 0, 0, 0, 7},
};

// Slicing a tensor of positions shows which elements the slice selects.
TEST(StridedSliceUpdate, ReplacesTheSelectedElements) {
  const Tensor positions = Iota<int32_t>({4, 5, 6});
  for (const SliceSpec& slice : kSlices) {
    SCOPED_TRACE(&slice - kSlices);
    const Tensor selected = *WithSlice(OpTester("StridedSlice").Input(positions), slice).RunOne();
    for (const DataType dtype : TensorTypes()) {
      SCOPED_TRACE(DataTypeString(dtype));
      const Tensor all = DistinctTensor(dtype, {240});
      const Tensor input = *all.Slice(0, 120).Reshaped({4, 5, 6});
      const Tensor value = *all.Slice(120, 120 + selected.NumElements()).Reshaped(selected.shape());
      // The selected elements come from the value, elements 120 and up of `all`. The other elements
      // come from the input or, for the gradient, are 0.
      const auto expected = [&](bool keeps_input) {
        return Rearranged(
            keeps_input ? all
                        : *OpTester("ConcatV2")
                               .Input(*OpTester("ZerosLike").Input(all.Slice(0, 120)).RunOne())
                               .Input(all.Slice(120, 240))
                               .Input(AsScalar<int32_t>(0))
                               .RunOne(),
            {4, 5, 6}, [&](const std::vector<int64_t>& index) -> int64_t {
              const int64_t at = (index[0] * 5 + index[1]) * 6 + index[2];
              for (int64_t i = 0; i < selected.NumElements(); ++i) {
                if (selected.flat<int32_t>()(i) == at) return 120 + i;
              }
              return at;
            });
      };
      OpTester update = WithSlice(OpTester("TensorStridedSliceUpdate").Input(input), slice);
      EXPECT_THAT(update.Input(value).RunOne(), TensorEq(expected(true)));
      OpTester gradient = WithSlice(OpTester("StridedSliceGrad").Input<int32_t>({4, 5, 6}), slice);
      EXPECT_THAT(gradient.Input(value).RunOne(), TensorEq(expected(false)));
    }
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(StridedSliceUpdate, BroadcastsTheValue) {
  const auto update = [](const Tensor& value) {
    return WithSlice(OpTester("TensorStridedSliceUpdate")
                         .Input(*OpTester("ZerosLike").Input(Iota<float>({4, 3})).RunOne()),
                     {{1, 0}, {3, 2}, {1, 1}})
        .Input(value);
  };
  EXPECT_THAT(update(AsTensor<float>({1, 2})).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0}, {4, 3})));
  EXPECT_THAT(update(AsScalar<float>(7)).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 7, 7, 0, 7, 7, 0, 0, 0, 0}, {4, 3})));
  ExpectErrors({{"value", update(AsTensor<float>({1, 2, 3})),
                 "value has shape [3], which cannot be broadcast to shape [2,2]"}});
}

TEST(StridedSliceGrad, RejectsBadArguments) {
  const auto gradient = [](const Tensor& shape, const SliceSpec& slice, const Tensor& dy) {
    return WithSlice(OpTester("StridedSliceGrad").Input(shape), slice).Input(dy);
  };
  ExpectErrors({
      {"dy", gradient(AsTensor<int32_t>({4}), {{1}, {4}, {2}}, AsTensor<float>({5})),
       "dy has shape [1], expected [2], the shape of the slice"},
      {"shape", gradient(AsTensor<int32_t>({-4}), {{1}, {4}, {2}}, AsTensor<float>({5})),
       "shape: dimension -4 of shape [-4] is negative"},
      {"strides", gradient(AsTensor<int32_t>({4}), {{1}, {4}, {0}}, AsTensor<float>({5})),
       "strides[0] must not be 0"},
      {"dims", gradient(AsTensor<int32_t>({4}), {{1, 1}, {4, 4}, {1, 1}}, AsTensor<float>({5})),
       "begin, end and strides index 2 dimensions, but input has shape [4]"},
  });
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
