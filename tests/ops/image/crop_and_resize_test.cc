#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

constexpr int64_t kBatch = 2, kImageRows = 5, kImageColumns = 6, kDepth = 3;
const float kBoxes[][4] = {{0, 0, 1, 1},
                           {0.13f, 0.21f, 0.72f, 0.64f},
                           {0.9f, 1.2f, -0.3f, 0.1f},
                           {0.4f, 0.31f, 0.4f, 0.87f},
                           {-0.21f, 0.3f, 0.55f, 1.33f}};
constexpr int64_t kBoxCount = 5;
const int32_t kImages[] = {0, 1, 1, 0, 1};

Tensor Boxes() {
  Tensor boxes(DT_FLOAT, {kBoxCount, 4});
  for (int64_t i = 0; i < 4 * kBoxCount; ++i) boxes.flat<float>()(i) = kBoxes[i / 4][i % 4];
  return boxes;
}
Tensor BoxImages() { return AsTensor<int32_t>(std::vector<int32_t>(kImages, kImages + kBoxCount)); }

// Returns the position in the image of pixel i of a crop.
double At(double from, double to, int64_t i, int64_t crop, int64_t image) {
  const double last = static_cast<double>(image - 1);
  if (crop == 1) return (from + to) / 2 * last;
  return (from + (to - from) * static_cast<double>(i) / static_cast<double>(crop - 1)) * last;
}

// Returns the weight of pixel (y, x) of the image in a pixel of a crop. If all weights are 0, the
// pixel of the crop is outside of the image.
double PixelWeight(double at_y, double at_x, int64_t y, int64_t x, bool nearest) {
  if (nearest) {
    return std::round(at_y) == static_cast<double>(y) && std::round(at_x) == static_cast<double>(x);
  }
  return std::max(0.0, 1 - std::abs(at_y - static_cast<double>(y))) *
         std::max(0.0, 1 - std::abs(at_x - static_cast<double>(x)));
}

struct CropReference {
  std::vector<double> crops, image_grad;
};
CropReference Reference(const Tensor& image, const Tensor& grads, int64_t rows, int64_t columns,
                        bool nearest, double outside) {
  CropReference r;
  const std::vector<double> x = AsDoubles(image);
  const std::vector<double> g = AsDoubles(grads);
  r.crops.resize(kBoxCount * rows * columns * kDepth);
  r.image_grad.resize(x.size());
  for (int64_t n = 0; n < kBoxCount; ++n) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const double y = At(kBoxes[n][0], kBoxes[n][2], i, rows, kImageRows);
        const double c = At(kBoxes[n][1], kBoxes[n][3], j, columns, kImageColumns);
        const bool inside = y >= 0 && y <= kImageRows - 1 && c >= 0 && c <= kImageColumns - 1;
        for (int64_t d = 0; d < kDepth; ++d) {
          const int64_t out = ((n * rows + i) * columns + j) * kDepth + d;
          if (!inside) r.crops[out] = outside;
          for (int64_t p = 0; inside && p < kImageRows * kImageColumns; ++p) {
            const int64_t in = (kImages[n] * kImageRows * kImageColumns + p) * kDepth + d;
            const double w = PixelWeight(y, c, p / kImageColumns, p % kImageColumns, nearest);
            r.crops[out] += w * x[in];
            r.image_grad[in] += w * g[out];
          }
        }
      }
    }
  }
  return r;
}

TEST(CropAndResize, AgreesWithItsDefinition) {
  const int64_t sizes[][2] = {{3, 4}, {1, 1}, {7, 2}, {1, 9}};
  for (const auto& size : sizes) {
    for (const char* const method : {"bilinear", "nearest"}) {
      const bool nearest = std::string(method) == "nearest";
      const TensorShape shape = {kBoxCount, size[0], size[1], kDepth};
      const Tensor grads = RandomTensor(DT_FLOAT, shape, -2, 2);
      const Tensor crop_size =
          AsTensor<int32_t>({static_cast<int32_t>(size[0]), static_cast<int32_t>(size[1])});
      for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_UINT8, DT_UINT16, DT_INT8,
                                   DT_INT16, DT_INT32, DT_INT64}) {
        SCOPED_TRACE(std::string(method) + " of " + DataTypeString(dtype));
        const Tensor image =
            RandomTensor(dtype, {kBatch, kImageRows, kImageColumns, kDepth}, 0, 100);
        const CropReference r = Reference(image, grads, size[0], size[1], nearest, 0.5);
        EXPECT_THAT(OpTester("CropAndResize")
                        .Inputs({image, Boxes(), BoxImages(), crop_size})
                        .Attr("method", method)
                        .Attr("extrapolation_value", 0.5f)
                        .RunOne(),
                    TensorNear(FromDoubles(DT_FLOAT, shape, r.crops), 1e-4, 1e-4));
        if (dtype != DT_FLOAT && dtype != DT_DOUBLE && dtype != DT_HALF) continue;
        const double tolerance = dtype == DT_HALF ? 4e-3 : 1e-5;
        EXPECT_THAT(
            OpTester("CropAndResizeGradImage")
                .Inputs({grads, Boxes(), BoxImages()})
                .Input<int32_t>({kBatch, kImageRows, kImageColumns, kDepth})
                .Attr("method", method)
                .Attr("T", dtype)
                .RunOne(),
            TensorNear(FromDoubles(dtype, image.shape(), r.image_grad), tolerance, tolerance));
      }
    }
  }
}

// Compares with central differences. Between pixels, crops are linear in each bound of a box.
TEST(CropAndResize, GradientOfBoxesAgreesWithDifferences) {
  const Tensor image = RandomTensor(DT_FLOAT, {kBatch, kImageRows, kImageColumns, kDepth}, -1, 1);
  const Tensor grads = RandomTensor(DT_FLOAT, {1, 3, 2, kDepth}, -1, 1, 2);
  const Tensor index = AsTensor<int32_t>({1});
  const Tensor size = AsTensor<int32_t>({3, 2});
  const std::vector<float> box = {0.13f, 0.21f, 0.72f, 0.64f};
  std::vector<double> expected;
  for (int k = 0; k < 4; ++k) {
    double change = 0;
    for (const float step : {0.01f, -0.01f}) {
      std::vector<float> moved = box;
      moved[static_cast<size_t>(k)] += step;
      const Tensor crops = *OpTester("CropAndResize")
                                .Inputs({image, AsTensor<float>(moved, {1, 4}), index, size})
                                .RunOne();
      for (int64_t i = 0; i < crops.NumElements(); ++i) {
        change += double{crops.flat<float>()(i)} * grads.flat<float>()(i) * (step > 0 ? 1 : -1);
      }
    }
    expected.push_back(change / 0.02);
  }
  for (const DataType dtype : {DT_FLOAT, DT_DOUBLE}) {
    const Tensor cast = *OpTester("Cast").Input(image).Attr("DstT", dtype).RunOne();
    EXPECT_THAT(OpTester("CropAndResizeGradBoxes")
                    .Inputs({grads, cast, AsTensor<float>(box, {1, 4}), index})
                    .RunOne(),
                TensorNear(FromDoubles(DT_FLOAT, {1, 4}, expected), 1e-3, 1e-3));
  }
}

// The index of the last row is not a float. The nearest float lies after the image.
TEST(CropAndResize, TakesMoreRowsThanFloatsCount) {
  constexpr int64_t kRows = (int64_t{1} << 24) + 4;
  Tensor image(DT_UINT8, {1, kRows, 1, 1});
  image.flat<uint8_t>().setZero();
  image.flat<uint8_t>()(kRows - 2) = 9;
  const Tensor box = AsTensor<float>({1, 0, 1, 0}, {1, 4});
  const Tensor index = AsTensor<int32_t>({0});
  for (const char* const method : {"bilinear", "nearest"}) {
    for (const int32_t rows : {1, 2}) {
      std::vector<float> expected(static_cast<size_t>(rows), 9);
      EXPECT_THAT(OpTester("CropAndResize")
                      .Inputs({image, box, index, AsTensor<int32_t>({rows, 1})})
                      .Attr("method", method)
                      .RunOne(),
                  TensorEq(AsTensor<float>(expected, {1, rows, 1, 1})));
    }
    const auto grad = OpTester("CropAndResizeGradImage")
                          .Input<float>({3}, {1, 1, 1, 1})
                          .Inputs({box, index})
                          .Input<int32_t>({1, kRows, 1, 1})
                          .Attr("method", method)
                          .Attr("T", DT_FLOAT)
                          .RunOnThreads(1);
    ASSERT_TRUE(grad.ok()) << grad.status();
    EXPECT_EQ((*grad)[0].flat<float>()(kRows - 2), 3);
    EXPECT_EQ((*grad)[0].flat<float>()(kRows - 1), 0);
  }
  EXPECT_THAT(OpTester("CropAndResizeGradBoxes")
                  .Input<float>({3}, {1, 1, 1, 1})
                  .Inputs({image, box, index})
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {1, 4})));
}

// Crops without channels may have any size. No loop may run over them.
TEST(CropAndResize, TakesImagesWithoutChannels) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  EXPECT_THAT(OpTester("CropAndResizeGradBoxes")
                  .Inputs({Tensor(DT_FLOAT, {1, kLarge, kLarge, 0}), Tensor(DT_UINT8, {1, 1, 1, 0}),
                           AsTensor<float>({0, 0, 1, 1}, {1, 4}), AsTensor<int32_t>({0})})
                  .RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {1, 4})));
}

// The kernel visits the boxes image by image.
TEST(CropAndResize, GradientTakesManyImages) {
  constexpr int64_t kImageCount = 3000;
  const Tensor boxes = RandomTensor(DT_FLOAT, {2 * kImageCount, 4}, 0, 1);
  Tensor indices(DT_INT32, {2 * kImageCount});
  Tensor grads(DT_FLOAT, {2 * kImageCount, 1, 1, 1});
  std::vector<float> expected(kImageCount, 0);
  for (int64_t i = 0; i < 2 * kImageCount; ++i) {
    indices.flat<int32_t>()(i) = static_cast<int32_t>(i * 7919 % (kImageCount - 1));
    grads.flat<float>()(i) = static_cast<float>(i % 50);
    expected[static_cast<size_t>(indices.flat<int32_t>()(i))] += static_cast<float>(i % 50);
  }
  EXPECT_THAT(OpTester("CropAndResizeGradImage")
                  .Inputs({grads, boxes, indices})
                  .Input<int32_t>({kImageCount, 1, 1, 1})
                  .Attr("T", DT_FLOAT)
                  .RunOne(),
              TensorEq(AsTensor<float>(expected, {kImageCount, 1, 1, 1})));
}

TEST(CropAndResize, RejectsBadArguments) {
  const Tensor image = Iota<float>({1, 2, 3, 1});
  const auto crop = [&](const Tensor& boxes, std::vector<int32_t> index,
                        std::vector<int32_t> size) {
    return OpTester("CropAndResize")
        .Inputs({image, boxes, AsTensor<int32_t>(index), AsTensor<int32_t>(size)});
  };
  const Tensor one = AsTensor<float>({0, 0, 1, 1}, {1, 4});
  ExpectErrors({
      {"boxes", crop(AsTensor<float>({0, 0, 1}, {1, 3}), {0}, {1, 1}), "boxes"},
      {"count", crop(one, {0, 0}, {1, 1}), "box_ind"},
      {"size", crop(one, {0}, {1, 0}), "crop_size must be positive, but is 1 x 0"},
      {"sizes", crop(one, {0}, {1}), "has shape [1]"},
      {"channels",
       OpTester("CropAndResizeGradImage")
           .Inputs({image, one, AsTensor<int32_t>({0})})
           .Input<int32_t>({1, 2, 3})
           .Attr("T", DT_FLOAT),
       "image_size must have"},
  });
  for (const int32_t index : {-1, 1}) {
    EXPECT_THAT(crop(one, {index}, {1, 1}).Run(),
                StatusIs(absl::StatusCode::kOutOfRange,
                         "box_index has values outside [0, batch_size): box_ind[0] is " +
                             std::to_string(index) + ", expected an image from 0 to 0"));
  }
  EXPECT_THAT(crop(AsTensor<float>({0, kNan, 1, 1}, {1, 4}), {0}, {1, 1}).Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("boxes must be finite")));
  EXPECT_THAT(crop(AsTensor<float>({3e38f, -3e38f, -3e38f, 3e38f}, {1, 4}), {0}, {2, 2}).RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {1, 2, 2, 1})));
  EXPECT_THAT(crop(Tensor(DT_FLOAT, {0, 4}), {}, {2, 2}).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0, 2, 2, 1})));
  EXPECT_THAT(OpTester("CropAndResize")
                  .UnknownInput(DT_FLOAT, {-1, -1, -1, 3})
                  .UnknownInput(DT_FLOAT, {5, -1})
                  .UnknownInput(DT_INT32)
                  .Input<int32_t>({7, 8})
                  .InferShape(),
              ShapeIs("[5,7,8,3]"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
