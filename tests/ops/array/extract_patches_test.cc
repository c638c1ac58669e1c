#include <cstdint>
#include <limits>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

struct Window {
  std::vector<int64_t> size, stride, rate;
};

OpTester ImagePatches(const Tensor& images, const Window& w, const char* padding) {
  return OpTester("ExtractImagePatches")
      .Input(images)
      .Attr("ksizes", w.size)
      .Attr("strides", w.stride)
      .Attr("rates", w.rate)
      .Attr("padding", padding);
}
OpTester VolumePatches(const Tensor& volumes, const Window& w, const char* padding) {
  return OpTester("ExtractVolumePatches")
      .Input(volumes)
      .Attr("ksizes", w.size)
      .Attr("strides", w.stride)
      .Attr("padding", padding);
}

// Computes the patches element by element.
Tensor PatchesReference(const Tensor& images, const Window& w, bool same) {
  const int rank = images.dims();
  TensorShape shape = images.shape();
  std::vector<int64_t> begin(rank);
  int64_t patch = 1;
  for (int d = 1; d + 1 < rank; ++d) {
    const int64_t rate = w.rate.empty() ? 1 : w.rate[d];
    const int64_t span = (w.size[d] - 1) * rate + 1;
    const int64_t size = images.dim_size(d);
    const int64_t count =
        same ? (size + w.stride[d] - 1) / w.stride[d] : (size - span) / w.stride[d] + 1;
    if (same) begin[d] = -std::max<int64_t>(0, (count - 1) * w.stride[d] + span - size) / 2;
    shape.set_dim(d, count);
    patch *= w.size[d];
  }
  const int64_t depth = images.dim_size(rank - 1);
  shape.set_dim(rank - 1, patch * depth);
  const Tensor flat = *images.Reshaped({images.NumElements()});
  const Tensor all = *OpTester("ConcatV2")
                          .Input(flat)
                          .Input(*OpTester("ZerosLike").Input(flat.Slice(0, 1)).RunOne())
                          .Input(AsScalar<int32_t>(0))
                          .RunOne();
  return Rearranged(all, shape, [&](const std::vector<int64_t>& index) {
    std::vector<int64_t> at = index;
    at[rank - 1] = index[rank - 1] % depth;
    int64_t rest = index[rank - 1] / depth;
    for (int d = rank - 2; d > 0; --d) {
      const int64_t rate = w.rate.empty() ? 1 : w.rate[d];
      at[d] = begin[d] + index[d] * w.stride[d] + rest % w.size[d] * rate;
      rest /= w.size[d];
    }
    int64_t source = 0;
    for (int d = 0; d < rank; ++d) {
      if (at[d] < 0 || at[d] >= images.dim_size(d)) return images.NumElements();
      source = source * images.dim_size(d) + at[d];
    }
    return source;
  });
}

TEST(ExtractPatches, AgreesWithTheDefinition) {
  const Window windows[] = {{{1, 3, 3, 1}, {1, 2, 1, 1}, {1, 1, 1, 1}},
                            {{1, 2, 3, 1}, {1, 1, 4, 1}, {1, 2, 2, 1}},
                            {{1, 1, 1, 1}, {1, 3, 3, 1}, {1, 1, 1, 1}},
                            {{1, 5, 2, 1}, {1, 1, 1, 1}, {1, 1, 3, 1}}};
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_UINT8, DT_COMPLEX128, DT_INT64}) {
    SCOPED_TRACE(DataTypeString(dtype));
    const Tensor images = DistinctTensor(dtype, {2, 6, 7, 3});
    for (const Window& w : windows) {
      EXPECT_THAT(ImagePatches(images, w, "SAME").RunOne(),
                  TensorEq(PatchesReference(images, w, true)));
      EXPECT_THAT(ImagePatches(images, w, "VALID").RunOne(),
                  TensorEq(PatchesReference(images, w, false)));
    }
  }
  const Tensor volumes = Iota<float>({2, 3, 4, 5, 2});
  for (const Window& w : {Window{{1, 2, 2, 2, 1}, {1, 2, 1, 2, 1}, {}},
                          Window{{1, 1, 3, 2, 1}, {1, 1, 2, 1, 1}, {}}}) {
    EXPECT_THAT(VolumePatches(volumes, w, "SAME").RunOne(),
                TensorEq(PatchesReference(volumes, w, true)));
    EXPECT_THAT(VolumePatches(volumes, w, "VALID").RunOne(),
                TensorEq(PatchesReference(volumes, w, false)));
  }
}

// The expected values are results of TensorFlow 2.21.
TEST(ExtractPatches, HasTheValuesOfTensorFlow) {
  const Tensor images = Iota<int32_t>({1, 5, 5, 1}, 1);
  EXPECT_THAT(
      ImagePatches(images, {{1, 3, 3, 1}, {1, 4, 4, 1}, {1, 1, 1, 1}}, "SAME").RunOne(),
      TensorEq(AsTensor<int32_t>({0, 0,  0,  0, 1,  2,  0, 6, 7, 0,  0,  0, 4,  5,  0, 9, 10, 0,
                                  0, 16, 17, 0, 21, 22, 0, 0, 0, 19, 20, 0, 24, 25, 0, 0, 0,  0},
                                 {1, 2, 2, 9})));
  EXPECT_THAT(ImagePatches(images, {{1, 2, 2, 1}, {1, 2, 2, 1}, {1, 2, 2, 1}}, "VALID").RunOne(),
              TensorEq(AsTensor<int32_t>(
                  {1, 3, 11, 13, 3, 5, 13, 15, 11, 13, 21, 23, 13, 15, 23, 25}, {1, 2, 2, 4})));
  const Tensor volumes = Iota<float>({1, 3, 3, 3, 1}, 1);
  EXPECT_THAT(
      VolumePatches(volumes, {{1, 2, 2, 2, 1}, {1, 1, 2, 1, 1}, {}}, "VALID").RunOne(),
      TensorEq(AsTensor<float>({1,  2,  4,  5,  10, 11, 13, 14, 2,  3,  5,  6,  11, 12, 14, 15,
                                10, 11, 13, 14, 19, 20, 22, 23, 11, 12, 14, 15, 20, 21, 23, 24},
                               {1, 2, 1, 2, 8})));
}

TEST(ExtractPatches, TakesEmptyTensorsAndRejectsBadArguments) {
  const Window good = {{1, 2, 2, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}};
  EXPECT_THAT(ImagePatches(Tensor(DT_FLOAT, {0, 5, 5, 1}), good, "VALID").RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 4, 4, 4})));
  EXPECT_THAT(ImagePatches(Tensor(DT_FLOAT, {1, 0, 5, 1}), good, "SAME").RunOne(),
              TensorEq(Tensor(DT_FLOAT, {1, 0, 5, 4})));
  const Tensor images = Iota<float>({1, 5, 5, 1});
  ExpectErrors({
      {"large", ImagePatches(images, {{1, 6, 6, 1}, {1, 1, 1, 1}, {1, 2, 2, 1}}, "VALID"),
       "patches span 11 elements, more than the 5 of the images, whose padding is VALID"},
      {"batch", ImagePatches(images, {{2, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, "VALID"),
       "ksizes must have 4 elements, the first and last 1, but is [2,1,1,1]"},
      {"stride", ImagePatches(images, {{1, 1, 1, 1}, {1, 0, 1, 1}, {1, 1, 1, 1}}, "VALID"),
       "strides[1] must be positive and less than 2^31, but is 0"},
      {"huge", ImagePatches(images, {{1, INT64_MAX, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, "SAME"),
       "ksizes[1] must be positive and less than 2^31"},
      {"rank", ImagePatches(Iota<float>({5, 5, 1}), good, "SAME"),
       "Shape must be rank 4 but is rank 3: input has shape [5,5,1]"},
      {"patch",
       VolumePatches(Iota<float>({1, 1, 1, 1, 2}),
                     {{1, 1 << 30, 1 << 30, 1 << 30, 1}, {1, 1, 1, 1, 1}, {}}, "SAME"),
       "the size of a patch of images of shape [1,1,1,1,2] is more than 2^63 - 1"},
  });
  EXPECT_THAT(OpTester("ExtractImagePatches")
                  .UnknownInput(DT_FLOAT, {-1, 5, -1, 2})
                  .Attr("ksizes", good.size)
                  .Attr("strides", good.stride)
                  .Attr("rates", good.rate)
                  .Attr("padding", "VALID")
                  .InferShape(),
              ShapeIs("[?,4,?,8]"));
}

TEST(ExtractPatches, AcceptsImagesOfAnyHeight) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kSize = (int64_t{1} << 31) - 1;
  EXPECT_THAT(OpTester("ExtractImagePatches")
                  .Input(Tensor(DT_FLOAT, {0, kMax, 1, 1}))
                  .Attr("ksizes", {1, kSize, 1, 1})
                  .Attr("strides", {1, 1, 1, 1})
                  .Attr("rates", {1, kSize, 1, 1})
                  .Attr("padding", "SAME")
                  .RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, kMax, 1, kSize})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
