// Gradients of the ops of ops/image.
#include <string>
#include <type_traits>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// Integer images have no gradient.
bool IsFloating(const Output& x) { return DataTypeIsFloating(x.type()); }

// The numbers of rows and columns of images, as a vector.
Output ImageSize(const Scope& scope, const Output& images) {
  return ops::Slice(scope, ops::Shape(scope, images), Vector(scope, {1}), Vector(scope, {2}));
}

struct ResizeOptions {
  bool align_corners = false;
  bool half_pixel_centers = false;
};
absl::Status ReadResize(const Operation& op, ResizeOptions* options) {
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "align_corners", &options->align_corners));
  return GetAttr(op, "half_pixel_centers", &options->half_pixel_centers);
}
template <typename Op>
typename Op::Attrs ResizeAttrsOf(const ResizeOptions& options) {
  return typename Op::Attrs()
      .AlignCorners(options.align_corners)
      .HalfPixelCenters(options.half_pixel_centers);
}

// Resizing is linear. The gradient op takes the images only for their shape.
template <typename Gradient>
absl::Status GradientOfResize(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  ResizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(ReadResize(op, &options));
  if (IsFloating(op.input(0))) {
    dx->push_back(Gradient(scope, dy[0], op.input(0), ResizeAttrsOf<Gradient>(options)));
  }
  return NoGradientForTheRest(scope, op, dx);
}
// The adjoint of the gradient op is the resize op, which returns floats.
template <typename Resize>
absl::Status GradientOfResizeGrad(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  ResizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(ReadResize(op, &options));
  dx->push_back(
      Resize(scope, dy[0], ImageSize(scope, op.input(0)), ResizeAttrsOf<Resize>(options)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfResizeNearest(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  ResizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(ReadResize(op, &options));
  if (IsFloating(op.input(0))) {
    dx->push_back(
        ops::ResizeNearestNeighborGrad(scope, dy[0], ImageSize(scope, op.input(0)),
                                       ResizeAttrsOf<ops::ResizeNearestNeighborGrad>(options)));
  }
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfResizeNearestGrad(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  ResizeOptions options;
  GRADFLOW_RETURN_IF_ERROR(ReadResize(op, &options));
  dx->push_back(ops::ResizeNearestNeighbor(scope, dy[0], ImageSize(scope, op.input(0)),
                                           ResizeAttrsOf<ops::ResizeNearestNeighbor>(options)));
  return NoGradientForTheRest(scope, op, dx);
}
// The gradient op only supports float images.
absl::Status GradientOfScaleAndTranslate(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string kernel_type;
  bool antialias = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "kernel_type", &kernel_type));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "antialias", &antialias));
  if (IsFloating(op.input(0))) {
    const DataType dtype = op.input(0).type();
    const Output images =
        dtype == DT_FLOAT ? op.input(0) : Output(ops::Cast(scope, op.input(0), DT_FLOAT));
    const Output gradient = ops::ScaleAndTranslateGrad(
        scope, dy[0], images, op.input(2), op.input(3),
        ops::ScaleAndTranslateGrad::KernelType(kernel_type).Antialias(antialias));
    dx->push_back(dtype == DT_FLOAT ? gradient : Output(ops::Cast(scope, gradient, dtype)));
  }
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfScaleAndTranslateGrad(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  std::string kernel_type;
  bool antialias = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "kernel_type", &kernel_type));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "antialias", &antialias));
  dx->push_back(
      ops::ScaleAndTranslate(scope, dy[0], ImageSize(scope, op.input(0)), op.input(2), op.input(3),
                             ops::ScaleAndTranslate::KernelType(kernel_type).Antialias(antialias)));
  return NoGradientForTheRest(scope, op, dx);
}
// Crops are linear in the image. Between pixels, they are differentiable with respect to the boxes.
absl::Status GradientOfCropAndResize(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string method;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "method", &method));
  const Output image = op.input(0);
  Output by_image = NoGradient();
  if (IsFloating(image)) {
    by_image = ops::CropAndResizeGradImage(scope, dy[0], op.input(1), op.input(2),
                                           ops::Shape(scope, image), image.type(),
                                           ops::CropAndResizeGradImage::Method(method));
  }
  *dx = {by_image, NoGradient()};
  // With nearest neighbors, crops are constant in the boxes almost everywhere.
  if (method == "bilinear") {
    (*dx)[1] = ops::CropAndResizeGradBoxes(scope, dy[0], image, op.input(1), op.input(2));
  }
  return NoGradientForTheRest(scope, op, dx);
}

// The adjoint of the gradient op is the crop.
absl::Status GradientOfCropAndResizeGradImage(const Scope& scope, const Operation& op,
                                              const std::vector<Output>& dy,
                                              std::vector<Output>* dx) {
  std::string method;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "method", &method));
  const Output crops = op.input(0);
  const Output boxes = op.input(1);
  const Output of_box = op.input(2);
  dx->push_back(ops::CropAndResize(scope, dy[0], boxes, of_box, ImageSize(scope, crops),
                                   ops::CropAndResize::Method(method)));
  if (method == "bilinear") {
    dx->push_back(ops::CropAndResizeGradBoxes(scope, crops, dy[0], boxes, of_box));
  }
  return NoGradientForTheRest(scope, op, dx);
}

// ---- Colors ----

// Formulas of pixels. Channels are the last dimension.
std::vector<Output> ImageChannels(const Scope& scope, const Output& pixels) {
  return ops::Unpack(scope, pixels, 3, ops::Unpack::Axis(-1)).output;
}
Output Pixels(const Scope& scope, const std::vector<Output>& channels) {
  return ops::Pack(scope, channels, ops::Pack::Axis(-1));
}
// If channels are equal, red counts as the greatest and blue as the least channel, as in
// TensorFlow. The hue of gray and the saturation of black are 0.
Output ToHsv(const Scope& s, const Output& rgb) {
  const std::vector<Output> c = ImageChannels(s, rgb);
  const Output &r = c[0], &g = c[1], &b = c[2];
  const auto number = [&](double value) { return Scalar(s, rgb.type(), value); };
  const auto select = [&](const Output& condition, const Output& x, const Output& y) -> Output {
    return ops::SelectV2(s, condition, x, y);
  };
  const auto subtract = [&](const Output& x, const Output& y) -> Output {
    return ops::Sub(s, x, y);
  };
  const Output green_exceeds_blue = ops::GreaterEqual(s, g, b);
  const Output is_red = ops::LogicalAnd(s, ops::GreaterEqual(s, r, g), ops::GreaterEqual(s, r, b));
  const Output green_is_least = ops::LessEqual(s, g, r);
  const Output blue_is_least = ops::LogicalAnd(s, ops::LessEqual(s, b, r), green_exceeds_blue);
  const Output value = select(is_red, r, select(green_exceeds_blue, g, b));
  const Output least = select(blue_is_least, b, select(green_is_least, g, r));
  const Output range = subtract(value, least);
  const Output has_hue = ops::Greater(s, range, number(0));
  const Output is_light = ops::Greater(s, value, number(0));
  const Output sixth = ops::Mul(s, select(has_hue, range, number(1)), number(6));
  const Output difference =
      select(is_red, subtract(g, b), select(green_exceeds_blue, subtract(b, r), subtract(r, g)));
  const Output offset =
      select(is_red, number(0), select(green_exceeds_blue, number(2.0 / 6), number(4.0 / 6)));
  const Output hue = ops::Add(s, ops::Div(s, difference, sixth), offset);
  const Output positive_hue =
      select(ops::Less(s, hue, number(0)), ops::Add(s, hue, number(1)), hue);
  const Output saturation = ops::Div(s, range, select(is_light, value, number(1)));
  return Pixels(s, {select(has_hue, positive_hue, number(0)),
                    select(is_light, saturation, number(0)), value});
}
Output ToRgb(const Scope& s, const Output& hsv) {
  const std::vector<Output> c = ImageChannels(s, hsv);
  const auto number = [&](double value) { return Scalar(s, hsv.type(), value); };
  const Output hue = ops::Mul(s, c[0], number(6));
  const auto distance = [&](double from) -> Output {
    return ops::Abs(s, ops::Sub(s, hue, number(from)));
  };
  const Output shares[] = {ops::Sub(s, distance(3), number(1)), ops::Sub(s, number(2), distance(2)),
                           ops::Sub(s, number(2), distance(4))};
  std::vector<Output> rgb;
  for (const Output& share : shares) {
    const Output clamped = ops::ClipByValue(s, share, number(0), number(1));
    const Output saturated = ops::Add(s, ops::Sub(s, number(1), c[1]), ops::Mul(s, c[1], clamped));
    rgb.push_back(ops::Mul(s, saturated, c[2]));
  }
  return Pixels(s, rgb);
}

template <Output (*kConvert)(const Scope& scope, const Output& pixels)>
absl::Status GradientOfConversion(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const auto formula = [](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    return {kConvert(s, xs[0])};
  };
  return DifferentiateFormula(scope, {op.input(0)}, formula, dy, dx);
}
// Adjustments are computed in float by kAdjust(scope, images, factor).
template <Output (*kAdjust)(const Scope& scope, const Output& images, const Output& factor)>
absl::Status GradientOfAdjustment(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  const auto formula = [](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    const DataType dtype = xs[0].type();
    if (dtype == DT_FLOAT) return {kAdjust(s, xs[0], xs[1])};
    return {ops::Cast(s, kAdjust(s, ops::Cast(s, xs[0], DT_FLOAT), xs[1]), dtype)};
  };
  return DifferentiateFormula(scope, {op.input(0), op.input(1)}, formula, dy, dx);
}
Output AdjustHue(const Scope& s, const Output& images, const Output& delta) {
  const std::vector<Output> c = ImageChannels(s, ToHsv(s, images));
  const Output hue = ops::FloorMod(s, ops::Add(s, c[0], delta), Scalar(s, DT_FLOAT, 1));
  return ToRgb(s, Pixels(s, {hue, c[1], c[2]}));
}
Output AdjustSaturation(const Scope& s, const Output& images, const Output& scale) {
  const std::vector<Output> c = ImageChannels(s, ToHsv(s, images));
  const Output saturation =
      ops::ClipByValue(s, ops::Mul(s, c[1], scale), Scalar(s, DT_FLOAT, 0), Scalar(s, DT_FLOAT, 1));
  return ToRgb(s, Pixels(s, {c[0], saturation, c[2]}));
}
Output AdjustContrast(const Scope& s, const Output& images, const Output& factor) {
  const Output mean = ops::Mean(s, images, Vector(s, {-3, -2}), ops::Mean::KeepDims(true));
  return ops::Add(s, mean, ops::Mul(s, ops::Sub(s, images, mean), factor));
}

// ---- Projections ----

// Moves the gradients back by the inverse transforms, like TensorFlow. This equals the derivative
// where the transforms move pixels to pixels.
template <typename Op>
absl::Status GradientOfProjection(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::string interpolation;
  std::string fill_mode;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "interpolation", &interpolation));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "fill_mode", &fill_mode));
  if (IsFloating(op.input(0))) {
    // The matrices are [[a0, a1, a2], [b0, b1, b2], [c0, c1, 1]].
    const Output flat = ops::Reshape(scope, op.input(1), Vector(scope, {-1, 8}));
    const Output ones = ops::OnesLike(
        scope, ops::Slice(scope, flat, Vector(scope, {0, 0}), Vector(scope, {-1, 1})));
    const Output matrices =
        ops::Reshape(scope, ops::ConcatV2(scope, {flat, ones}, 1), Vector(scope, {-1, 3, 3}));
    const Output inverse =
        ops::Reshape(scope, ops::MatrixInverse(scope, matrices), Vector(scope, {-1, 9}));
    const Output last = ops::Slice(scope, inverse, Vector(scope, {0, 8}), Vector(scope, {-1, 1}));
    const Output transforms = ops::Slice(scope, ops::Div(scope, inverse, last),
                                         Vector(scope, {0, 0}), Vector(scope, {-1, 8}));
    const Output size = ImageSize(scope, op.input(0));
    if constexpr (std::is_same_v<Op, ops::ImageProjectiveTransformV3>) {
      dx->push_back(Op(scope, dy[0], transforms, size, 0.0f, interpolation,
                       typename Op::Attrs().FillMode(fill_mode)));
    } else {
      dx->push_back(Op(scope, dy[0], transforms, size, interpolation,
                       typename Op::Attrs().FillMode(fill_mode)));
    }
  }
  return NoGradientForTheRest(scope, op, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::image {

void Register(GradientRegistry& registry) {
  registry.Register("ResizeBilinear", GradientOfResize<ops::ResizeBilinearGrad>);
  registry.Register("ResizeBicubic", GradientOfResize<ops::ResizeBicubicGrad>);
  registry.Register("ResizeNearestNeighbor", GradientOfResizeNearest);
  registry.Register("ResizeBilinearGrad", GradientOfResizeGrad<ops::ResizeBilinear>);
  registry.Register("ResizeBicubicGrad", GradientOfResizeGrad<ops::ResizeBicubic>);
  registry.Register("ResizeNearestNeighborGrad", GradientOfResizeNearestGrad);
  registry.Register("ScaleAndTranslate", GradientOfScaleAndTranslate);
  registry.Register("CropAndResize", GradientOfCropAndResize);
  registry.Register("ScaleAndTranslateGrad", GradientOfScaleAndTranslateGrad);
  registry.Register("CropAndResizeGradImage", GradientOfCropAndResizeGradImage);
  registry.Register("RGBToHSV", GradientOfConversion<ToHsv>);
  registry.Register("HSVToRGB", GradientOfConversion<ToRgb>);
  registry.Register("AdjustHue", GradientOfAdjustment<AdjustHue>);
  registry.Register("AdjustSaturation", GradientOfAdjustment<AdjustSaturation>);
  registry.Register("AdjustContrastv2", GradientOfAdjustment<AdjustContrast>);
  registry.Register("ImageProjectiveTransformV2",
                    GradientOfProjection<ops::ImageProjectiveTransformV2>);
  registry.Register("ImageProjectiveTransformV3",
                    GradientOfProjection<ops::ImageProjectiveTransformV3>);
  for (const char* const op : {"CombinedNonMaxSuppression",
                               "DecodeAndCropJpeg",
                               "DecodeBmp",
                               "DecodeGif",
                               "DecodeImage",
                               "DecodeJpeg",
                               "DecodePng",
                               "DecodeWebP",
                               "DrawBoundingBoxes",
                               "DrawBoundingBoxesV2",
                               "EncodeJpeg",
                               "EncodeJpegVariableQuality",
                               "EncodePng",
                               "NonMaxSuppression",
                               "NonMaxSuppressionV2",
                               "NonMaxSuppressionV3",
                               "NonMaxSuppressionV4",
                               "NonMaxSuppressionV5",
                               "NonMaxSuppressionWithOverlaps",
                               "SampleDistortedBoundingBox",
                               "SampleDistortedBoundingBoxV2"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace gradients::image

}  // namespace gradflow
