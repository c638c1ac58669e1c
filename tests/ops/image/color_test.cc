// Tests of color conversions, boxes drawn on images, sampled boxes and projective transforms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/core/stop_token.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

std::vector<double> Hsv(double r, double g, double b) {
  const double v = std::max({r, g, b});
  const double range = v - std::min({r, g, b});
  double h = 0;
  if (range > 0) {
    h = v == r ? (g - b) / range : v == g ? 2 + (b - r) / range : 4 + (r - g) / range;
  }
  h /= 6;
  return {h < 0 ? h + 1 : h, v > 0 ? range / v : 0, v};
}
// The textbook formula, by sixths of the color circle.
std::vector<double> Rgb(double h, double s, double v) {
  h = (h - std::floor(h)) * 6;
  const double x = 1 - std::abs(std::fmod(h, 2) - 1);
  const double share[6][3] = {{1, x, 0}, {x, 1, 0}, {0, 1, x}, {0, x, 1}, {x, 0, 1}, {1, 0, x}};
  std::vector<double> rgb;
  for (int k = 0; k < 3; ++k)
    rgb.push_back(v * (1 - s + s * share[std::min(5, static_cast<int>(h))][k]));
  return rgb;
}

template <typename F>
Tensor OfPixels(const Tensor& x, const F& f) {
  const std::vector<double> values = AsDoubles(x);
  std::vector<double> result;
  for (size_t i = 0; i < values.size(); i += 3) {
    const std::vector<double> pixel = f(values[i], values[i + 1], values[i + 2]);
    result.insert(result.end(), pixel.begin(), pixel.end());
  }
  return FromDoubles(x.dtype(), x.shape(), result);
}

double Tolerance16(DataType dtype) {
  return dtype == DT_HALF ? 4e-3 : dtype == DT_BFLOAT16 ? 2e-2 : dtype == DT_FLOAT ? 2e-6 : 1e-13;
}

TEST(Colors, AreConverted) {
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    const Tensor x = RandomTensor(dtype, {3, 300, 3}, 0, 1);
    const double t = Tolerance16(dtype);
    EXPECT_THAT(OpTester("RGBToHSV").Input(x).RunOne(), TensorNear(OfPixels(x, Hsv), t, t));
    EXPECT_THAT(OpTester("HSVToRGB").Input(x).RunOne(), TensorNear(OfPixels(x, Rgb), t, t));
  }
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    const Tensor x = RandomTensor(dtype, {2, 5, 40, 3}, 0, 1);
    const double t = 3 * Tolerance16(dtype);
    for (const float delta : {0.0f, 0.3f, -1.4f}) {
      const auto turned = [&](double r, double g, double b) {
        const std::vector<double> hsv = Hsv(r, g, b);
        return Rgb(hsv[0] + delta, hsv[1], hsv[2]);
      };
      EXPECT_THAT(OpTester("AdjustHue").Input(x).Input(AsScalar<float>(delta)).RunOne(),
                  TensorNear(OfPixels(x, turned), t, t));
    }
    for (const float scale : {0.0f, 0.5f, 3.0f}) {
      const auto scaled = [&](double r, double g, double b) {
        const std::vector<double> hsv = Hsv(r, g, b);
        return Rgb(hsv[0], std::min(1.0, hsv[1] * scale), hsv[2]);
      };
      EXPECT_THAT(OpTester("AdjustSaturation").Input(x).Input(AsScalar<float>(scale)).RunOne(),
                  TensorNear(OfPixels(x, scaled), t, t));
    }
    for (const float factor : {0.0f, 0.5f, -2.0f}) {
      const std::vector<double> values = AsDoubles(x);
      std::vector<double> expected;
      for (size_t i = 0; i < values.size(); ++i) {
        double mean = 0;
        for (size_t k = i / 600 * 600 + i % 3; k < (i / 600 + 1) * 600; k += 3)
          mean += values[k] / 200;
        expected.push_back(mean + factor * (values[i] - mean));
      }
      EXPECT_THAT(OpTester("AdjustContrastv2").Input(x).Input(AsScalar<float>(factor)).RunOne(),
                  TensorNear(FromDoubles(dtype, x.shape(), expected), t, t));
    }
  }
}

TEST(Colors, HandleSpecialNumbers) {
  const Tensor x = AsTensor<float>({kNan, 1, 0, 0, 0, 0, 1, 1, 1}, {1, 3, 3});
  for (const float delta : {1e30f, kInf, kNan}) {
    EXPECT_TRUE(OpTester("AdjustHue").Input(x).Input(AsScalar<float>(delta)).Run().ok());
    EXPECT_TRUE(OpTester("AdjustSaturation").Input(x).Input(AsScalar<float>(delta)).Run().ok());
  }
}

TEST(Colors, RejectBadArguments) {
  const Tensor x = Iota<float>({1, 1, 2});
  for (const char* const op : {"RGBToHSV", "HSVToRGB"}) {
    EXPECT_THAT(OpTester(op).Input(x).Run(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         ::testing::HasSubstr("images must have 3 channels")));
    EXPECT_THAT(OpTester(op).Input(AsScalar<float>(1)).Run(),
                StatusIs(kInvalidArgument,
                         ::testing::HasSubstr("Shape must be at least rank 1 but is rank 0")));
  }
  for (const char* const op : {"AdjustHue", "AdjustSaturation", "AdjustContrastv2"}) {
    ExpectErrors(
        {{op, OpTester(op).Input(Iota<float>({1, 3})).Input(AsScalar<float>(1)), "rank"},
         {op, OpTester(op).Input(Iota<float>({1, 1, 3})).Input<float>({1}), "has shape [1]"}});
  }
  EXPECT_THAT(OpTester("AdjustHue").Input(x).Input(AsScalar<float>(1)).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("images must have 3 channels")));
}

// ---- Boxes ----

TEST(DrawBoundingBoxes, DrawsLines) {
  const Tensor boxes = AsTensor<float>({0, 0.25f, 1, 0.75f, 0.5f, -1, 3, 0.5f}, {1, 2, 4});
  const Tensor colors = AsTensor<float>({1, 2}, {2, 1});
  const Tensor image(DT_FLOAT, {1, 5, 5, 1});
  Tensor zeros = *OpTester("ZerosLike").Input(image).RunOne();
  const std::vector<float> expected = {0, 1, 1, 1, 0,  //
                                       0, 1, 0, 1, 0,  //
                                       2, 2, 2, 1, 0,  //
                                       0, 1, 2, 1, 0,  //
                                       0, 1, 2, 1, 0};
  EXPECT_THAT(OpTester("DrawBoundingBoxesV2").Inputs({zeros, boxes, colors}).RunOne(),
              TensorEq(AsTensor<float>(expected, {1, 5, 5, 1})));
  // The default color of gray images is white.
  std::vector<float> white;
  for (const float v : expected) white.push_back(v > 0 ? 1.0f : 0.0f);
  for (const DataType dtype : {DT_FLOAT, DT_HALF}) {
    const Tensor cast = *OpTester("Cast").Input(zeros).Attr("DstT", dtype).RunOne();
    const Tensor result =
        *OpTester("Cast").Input(AsTensor<float>(white, {1, 5, 5, 1})).Attr("DstT", dtype).RunOne();
    EXPECT_THAT(OpTester("DrawBoundingBoxes").Input(cast).Input(boxes).RunOne(), TensorEq(result));
  }
  // These boxes cover no pixels.
  const Tensor none = AsTensor<float>(
      {kNan, 0, 1, 1, 1, 0, 0, 1, 2, 2, 3, 3, -kInf, -kInf, -1, -1, 1e38f, 0, 3e38f, 1}, {1, 5, 4});
  EXPECT_THAT(OpTester("DrawBoundingBoxes").Input(zeros).Input(none).RunOne(), TensorEq(zeros));
}

// The image has one row, so infinity is multiplied by 0.
TEST(DrawBoundingBoxes, TakesInfiniteBoxes) {
  const Tensor boxes = AsTensor<float>({-kInf, 0, kInf, 1}, {1, 1, 4});
  EXPECT_THAT(
      OpTester("DrawBoundingBoxes").Input(Tensor(DT_FLOAT, {1, 1, 0, 1})).Input(boxes).RunOne(),
      TensorEq(Tensor(DT_FLOAT, {1, 1, 0, 1})));
  EXPECT_THAT(
      OpTester("DrawBoundingBoxes").Input<float>({0, 0, 0}, {1, 1, 3, 1}).Input(boxes).RunOne(),
      TensorEq(AsTensor<float>({1, 1, 1}, {1, 1, 3, 1})));
}

TEST(DrawBoundingBoxes, RejectsBadArguments) {
  const auto tester = [](const TensorShape& images, const TensorShape& boxes,
                         const TensorShape& colors) {
    return OpTester("DrawBoundingBoxesV2")
        .Inputs({RandomTensor(DT_FLOAT, images), RandomTensor(DT_FLOAT, boxes),
                 RandomTensor(DT_FLOAT, colors)});
  };
  ExpectErrors({
      {"rank", tester({2, 2, 1}, {1, 1, 4}, {1, 4}),
       "Shape must be rank 4 but is rank 3: images has shape [2,2,1]"},
      {"columns", tester({1, 2, 2, 1}, {1, 1, 3}, {1, 4}),
       "Dimension must be 4 but is 3: dimension 2 of boxes"},
      {"batch", tester({2, 2, 2, 1}, {1, 1, 4}, {1, 4}), "the same batch"},
      {"depth", tester({1, 2, 2, 2}, {1, 1, 4}, {1, 4}),
       "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but images has shape "
       "[1,2,2,2]"},
  });
  EXPECT_THAT(tester({1, 2, 2, 3}, {1, 1, 4}, {1, 2}).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("colors must have a column")));
}

TEST(SampleDistortedBoundingBox, KeepsItsRanges) {
  const Tensor boxes = AsTensor<float>({0.1f, 0.2f, 0.6f, 0.7f}, {1, 1, 4});
  for (int64_t seed = 1; seed < 60; ++seed) {
    const auto outputs = OpTester("SampleDistortedBoundingBox")
                             .Input<int32_t>({480, 640, 3})
                             .Input(boxes)
                             .Attr("seed", seed)
                             .Attr("min_object_covered", 0.5f)
                             .Attr("aspect_ratio_range", std::vector<float>{0.5f, 2})
                             .Attr("area_range", std::vector<float>{0.3f, 0.8f})
                             .Run();
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const auto begin = (*outputs)[0].flat<int32_t>();
    const auto size = (*outputs)[1].flat<int32_t>();
    const auto box = (*outputs)[2].flat<float>();
    EXPECT_EQ(begin(2), 0);
    EXPECT_EQ(size(2), -1);
    EXPECT_EQ(box(0), static_cast<float>(begin(0)) / 480);
    EXPECT_EQ(box(3), static_cast<float>(begin(1) + size(1)) / 640);
    if (size(0) == 480 && size(1) == 640) continue;
    const double area = double(size(0)) * size(1) / (480 * 640);
    EXPECT_GE(area, 0.299);
    EXPECT_LE(area, 0.801);
    EXPECT_GE(double(size(1)) / size(0), 0.49);
    EXPECT_LE(double(size(1)) / size(0), 2.01);
    const double rows = std::min(288, begin(0) + size(0)) - std::max(48, begin(0));
    const double columns = std::min(448, begin(1) + size(1)) - std::max(128, begin(1));
    EXPECT_GE(std::max(0.0, rows) * std::max(0.0, columns) / (240 * 320), 0.499);
  }
}

// A stopped run makes no attempt, and returns the whole image.
TEST(SampleDistortedBoundingBox, StopsBeforeAnAttempt) {
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  OpTester op("SampleDistortedBoundingBoxV2");
  op.Input<int32_t>({50, 60, 3}).Input<float>({0, 0, 1, 1}, {1, 1, 4}).Input(AsScalar<float>(0));
  op.Attr("seed", int64_t{1}).Attr("area_range", std::vector<float>{0.1f, 0.2f});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> whole,
                                op.StoppedBy(&stop).RunOnThreads(1));
  EXPECT_THAT(whole[1], TensorEq(AsTensor<int32_t>({50, 60, -1})));
}

TEST(SampleDistortedBoundingBox, RejectsBadArguments) {
  const Tensor boxes = AsTensor<float>({0.1f, 0.2f, 0.6f, 0.7f}, {1, 1, 4});
  const auto tester = [](const Tensor& size, const Tensor& b, float covered) {
    return OpTester("SampleDistortedBoundingBoxV2")
        .Inputs({size, b, AsScalar<float>(covered)})
        .Attr("seed", int64_t{1});
  };
  const Tensor size = AsTensor<int64_t>({48, 64, 3});
  ExpectErrors({{"size", tester(AsTensor<int64_t>({48, 64}), boxes, 0.1f),
                 "image_size must have shape [3]"}});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {tester(AsTensor<int64_t>({-1, 64, 3}), boxes, 0.1f), "image_size[0] is -1"},
      {tester(AsTensor<int64_t>({1, int64_t{1} << 40, 3}), boxes, 0.1f), "image_size[1] is"},
      {tester(size, boxes, -1), "min_object_covered must not be negative, but is -1"},
      {tester(size, AsTensor<float>({0, 0, 2, 1}, {1, 1, 4}), 0),
       "bounding_boxes must be in [0, 1]"},
      {tester(size, Tensor(DT_FLOAT, {1, 0, 4}), 0), "use_image_if_no_bounding_boxes"},
      {tester(size, boxes, 0).Attr("max_attempts", int64_t{0}), "max_attempts must be positive"},
      {tester(size, boxes, 0).Attr("area_range", std::vector<float>{0, 1}), "area_range must have"},
      {tester(size, boxes, 0).Attr("aspect_ratio_range", std::vector<float>{1}),
       "aspect_ratio_range must have 2 positive elements"},
  };
  for (auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
  }
}

// ---- Projective transforms ----

TEST(ImageProjectiveTransform, AgreesWithItsDefinition) {
  const std::vector<float> t = {0.8f, -0.4f, 1.3f, 0.3f, 0.9f, -1.6f, 0.01f, -0.02f};
  const int64_t rows = 5, columns = 6;
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
    const Tensor image = RandomTensor(dtype, {1, rows, columns, 2}, 0, 1);
    const std::vector<double> x = AsDoubles(image);
    for (const char* const mode : {"CONSTANT", "NEAREST"}) {
      std::vector<double> expected;
      const bool constant = std::string(mode) == "CONSTANT";
      for (int64_t i = 0; i < 7 * 8; ++i) {
        const double c = static_cast<double>(i % 8), r = static_cast<double>(i / 8);
        const double k = t[6] * c + t[7] * r + 1;
        double px = (t[0] * c + t[1] * r + t[2]) / k;
        double py = (t[3] * c + t[4] * r + t[5]) / k;
        if (!constant) {
          px = std::clamp(px, 0.0, double(columns - 1));
          py = std::clamp(py, 0.0, double(rows - 1));
        }
        for (int64_t d = 0; d < 2; ++d) {
          double sum = 0;
          for (int64_t dy = 0; dy < 2; ++dy) {
            for (int64_t dx = 0; dx < 2; ++dx) {
              const int64_t at_x = static_cast<int64_t>(std::floor(px)) + dx;
              const int64_t at_y = static_cast<int64_t>(std::floor(py)) + dy;
              const bool inside = at_x >= 0 && at_x < columns && at_y >= 0 && at_y < rows;
              const double value = inside ? x[(at_y * columns + at_x) * 2 + d] : 0.25;
              sum += value * (1 - std::abs(px - double(at_x))) * (1 - std::abs(py - double(at_y)));
            }
          }
          expected.push_back(sum);
        }
      }
      const double tolerance = dtype == DT_HALF ? 2e-3 : dtype == DT_BFLOAT16 ? 1e-2 : 1e-5;
      EXPECT_THAT(OpTester("ImageProjectiveTransformV3")
                      .Inputs({image, AsTensor<float>(t, {1, 8}), AsTensor<int32_t>({7, 8}),
                               AsScalar<float>(0.25f)})
                      .Attr("interpolation", "BILINEAR")
                      .Attr("fill_mode", mode)
                      .RunOne(),
                  TensorNear(FromDoubles(dtype, {1, 7, 8, 2}, expected), tolerance, tolerance));
    }
  }
}

TEST(ImageProjectiveTransform, RepeatsImages) {
  // The transform moves the image by two columns.
  const Tensor move = AsTensor<float>({1, 0, -2, 0, 1, 0, 0, 0}, {1, 8});
  const struct {
    const char* mode;
    std::vector<int32_t> expected;
  } cases[] = {{"CONSTANT", {0, 0, 1, 2, 3, 0}},
               {"NEAREST", {1, 1, 1, 2, 3, 3}},
               {"REFLECT", {2, 1, 1, 2, 3, 3}}};
  for (const auto& c : cases) {
    for (const DataType dtype : {DT_UINT8, DT_INT32, DT_INT64, DT_FLOAT}) {
      const auto cast = [&](const Tensor& t) {
        return *OpTester("Cast").Input(t).Attr("DstT", dtype).RunOne();
      };
      EXPECT_THAT(OpTester("ImageProjectiveTransformV2")
                      .Inputs({cast(AsTensor<int32_t>({1, 2, 3}, {1, 1, 3, 1})), move,
                               AsTensor<int32_t>({1, 6})})
                      .Attr("interpolation", "NEAREST")
                      .Attr("fill_mode", c.mode)
                      .RunOne(),
                  TensorEq(cast(AsTensor<int32_t>(c.expected, {1, 1, 6, 1}))));
    }
  }
}

// Images without columns may have any number of rows.
TEST(ImageProjectiveTransform, TakesEmptyTensors) {
  EXPECT_THAT(OpTester("ImageProjectiveTransformV3")
                  .Input(Tensor(DT_UINT8, {8, int64_t{1} << 62, 0, 1}))
                  .Input<float>({1, 0, 0, 0, 1, 0, 0, 0}, {1, 8})
                  .Input<int32_t>({1, 1})
                  .Input(AsScalar<float>(7))
                  .Attr("interpolation", "BILINEAR")
                  .RunOne(),
              TensorEq(AsTensor<uint8_t>({7, 7, 7, 7, 7, 7, 7, 7}, {8, 1, 1, 1})));
}

TEST(ImageProjectiveTransform, RejectsBadArguments) {
  const Tensor image = Iota<float>({2, 2, 2, 1});
  const auto tester = [&](const TensorShape& transforms, std::vector<int32_t> size,
                          const char* interpolation, const char* mode) {
    return OpTester("ImageProjectiveTransformV2")
        .Inputs({image, RandomTensor(DT_FLOAT, transforms), AsTensor<int32_t>(size)})
        .Attr("interpolation", interpolation)
        .Attr("fill_mode", mode);
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {tester({1, 7}, {1, 1}, "NEAREST", "WRAP"), "transforms must have"},
      {tester({3, 8}, {1, 1}, "NEAREST", "WRAP"), "transforms must have shape [1,8] or [2,8]"},
      {tester({1, 8}, {1, 0}, "NEAREST", "WRAP"), "output_shape must be positive"},
      {tester({1, 8}, {1}, "NEAREST", "WRAP"), "output_shape must have shape [2]"},
      {tester({1, 8}, {1, 1}, "CUBIC", "WRAP"), "interpolation is 'CUBIC'"},
      {tester({1, 8}, {1, 1}, "NEAREST", "ZERO"), "fill_mode is 'ZERO'"},
  };
  for (auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr(c.error)));
  }
  // Positions that are infinite, NaN or far outside of the image.
  const std::vector<float> wild = {1e38f, kInf, kNan, -kInf, 1e38f, 0, -1, kNan};
  for (const char* const mode : {"CONSTANT", "NEAREST", "REFLECT", "WRAP"}) {
    for (const char* const interpolation : {"NEAREST", "BILINEAR"}) {
      EXPECT_TRUE(OpTester("ImageProjectiveTransformV2")
                      .Inputs({image, AsTensor<float>(wild, {1, 8}), AsTensor<int32_t>({5, 5})})
                      .Attr("interpolation", interpolation)
                      .Attr("fill_mode", mode)
                      .Run()
                      .ok());
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
