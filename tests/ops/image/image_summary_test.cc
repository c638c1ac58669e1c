// Tests of ImageSummary: tags, image files and the scale of their pixels.
#include <cmath>

#include "gradflow/proto/summary.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Summary ImagesOf(const Tensor& images, int64_t max_images = 3) {
  Summary summary;
  const absl::StatusOr<Tensor> text = OpTester("ImageSummary")
                                          .Input(AsScalar<tstring>("t"))
                                          .Input(images)
                                          .Attr("max_images", max_images)
                                          .RunOne();
  GRADFLOW_EXPECT_OK(text.status());
  if (text.ok()) {
    EXPECT_TRUE(summary.ParseFromString(std::string(text->scalar<tstring>()())));
  }
  return summary;
}

Tensor Decoded(const Summary& summary, int i) {
  const absl::StatusOr<Tensor> image =
      OpTester("DecodePng")
          .Input(AsScalar<tstring>(tstring(summary.value(i).image().encoded_image_string())))
          .ShapeIsData()
          .RunOne();
  GRADFLOW_EXPECT_OK(image.status());
  return image.value_or(Tensor());
}

TEST(ImageSummary, HasFilesOfImages) {
  for (const int channels : {1, 3, 4}) {
    const Tensor images = RandomTensor(DT_UINT8, {2, 5, 7, channels}, 0, 255);
    const Summary summary = ImagesOf(images);
    ASSERT_EQ(summary.value_size(), 2);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(summary.value(i).tag(), absl::StrCat("t/image/", i));
      const Summary::Image& image = summary.value(i).image();
      EXPECT_EQ(image.height(), 5);
      EXPECT_EQ(image.width(), 7);
      EXPECT_EQ(image.colorspace(), channels);
      EXPECT_THAT(Decoded(summary, i), TensorEq(*images.SubSlice(i).DeepCopy()));
    }
  }
  EXPECT_EQ(ImagesOf(Tensor(DT_FLOAT, {0, 2, 2, 1})).value_size(), 0);
  const Summary one = ImagesOf(RandomTensor(DT_UINT8, {2, 5, 7, 1}, 0, 255), 1);
  ASSERT_EQ(one.value_size(), 1);
  EXPECT_EQ(one.value(0).tag(), "t/image");
}

TEST(ImageSummary, ScalesNumbers) {
  const auto decoded = [](DataType dtype, const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    const Tensor floats = AsTensor<float>(values, {1, 1, count, 1});
    const Tensor images =
        dtype == DT_FLOAT ? floats : *OpTester("Cast").Input(floats).Attr("DstT", dtype).RunOne();
    return *Decoded(ImagesOf(images), 0).Reshaped({count});
  };
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_DOUBLE}) {
    // The largest number becomes 255. Pixels are rounded down.
    EXPECT_THAT(decoded(dtype, {0, 1, 2, 4}), TensorEq(AsTensor<uint8_t>({0, 63, 127, 255})));
    // The number of largest magnitude becomes 128 - 127 or 128 + 127.
    EXPECT_THAT(decoded(dtype, {0, -4, 2}), TensorEq(AsTensor<uint8_t>({128, 1, 191})));
    // Numbers that are not finite get the bad color and do not affect the scale.
    EXPECT_THAT(decoded(dtype, {kNan, 0, 2, kInf, -kInf}),
                TensorEq(AsTensor<uint8_t>({255, 0, 255, 255, 255})));
    EXPECT_THAT(decoded(dtype, {0, 0}), TensorEq(AsTensor<uint8_t>({0, 0})));
    EXPECT_THAT(decoded(dtype, {kNan}), TensorEq(AsTensor<uint8_t>({255})));
  }
  // Pixels are computed in the type of the image, like in TensorFlow.
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_DOUBLE}) {
    const uint8_t most = dtype == DT_FLOAT ? 255 : 254;
    EXPECT_THAT(decoded(dtype, {0.1f, 0.7f, 0.33f, 1.9f}),
                TensorEq(AsTensor<uint8_t>({13, 93, 44, most})));
    // 1.4f is less than 1.4, which is visible in double.
    EXPECT_THAT(
        decoded(dtype, {-0.3f, 0.77f, 1.4f}),
        TensorEq(AsTensor<uint8_t>({100, 197, dtype == DT_DOUBLE ? uint8_t{254} : uint8_t{255}})));
  }
  // A pixel is bad if one of its channels is.
  const Tensor color = AsTensor<float>({1, 0, kNan, 0, 1, 0.5f}, {1, 1, 2, 3});
  EXPECT_THAT(Decoded(ImagesOf(color), 0),
              TensorEq(AsTensor<uint8_t>({255, 0, 0, 0, 255, 127}, {1, 2, 3})));
  // The largest double exceeds the range of float, so it becomes infinite and the scale 0.
  EXPECT_THAT(Decoded(ImagesOf(AsTensor<double>({1e300, 1}, {1, 1, 2, 1})), 0),
              TensorEq(AsTensor<uint8_t>({0, 0}, {1, 2, 1})));
}

TEST(ImageSummary, RejectsInvalidInputs) {
  const auto error = [](const Tensor& tag, const Tensor& images, const Tensor& bad) {
    return OpTester("ImageSummary").Input(tag).Input(images).Attr("bad_color", bad).Run().status();
  };
  const Tensor tag = AsScalar<tstring>("t");
  const Tensor bad = AsTensor<uint8_t>({1, 2, 3});
  const auto is = [](const std::string& text) {
    return StatusIs(kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(error(AsTensor<tstring>({"t"}), Tensor(DT_UINT8, {1, 1, 1, 1}), bad), is("tag"));
  EXPECT_THAT(error(tag, Tensor(DT_UINT8, {1, 1, 1}), bad), is("tensor"));
  EXPECT_THAT(error(tag, Tensor(DT_UINT8, {1, 1, 1, 2}), bad),
              is("tensor must have 1, 3 or 4 channels, but has shape [1,1,1,2]"));
  EXPECT_THAT(error(tag, Tensor(DT_UINT8, {1, 0, 1, 1}), bad), is("tensor must have pixels"));
  EXPECT_THAT(error(tag, Tensor(DT_FLOAT, {0, int64_t{1} << 15, int64_t{1} << 14, 1}), bad),
              is("less than 2^29 pixels"));
  EXPECT_THAT(error(tag, RandomTensor(DT_FLOAT, {1, 1, 1, 4}), bad),
              is("bad_color has 3 elements, expected 4"));
  EXPECT_THAT(error(tag, RandomTensor(DT_FLOAT, {1, 1, 1, 1}), AsTensor<float>({1})),
              is("bad_color must be a vector of uint8"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
