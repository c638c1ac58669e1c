// Gradients of the ops of ops/image.
#include <string>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/register.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// Images of integers have no gradient.
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

// Resizing is linear. The gradient op takes the images for their shape.
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
// The adjoint of the gradient is resizing, which makes floats.
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
// The gradient op has float images alone.
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
// Crops are linear in the image, and between pixels differentiable by the boxes.
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
  // Nearest pixels are constant by the boxes almost everywhere.
  if (method == "bilinear") {
    (*dx)[1] = ops::CropAndResizeGradBoxes(scope, dy[0], image, op.input(1), op.input(2));
  }
  return NoGradientForTheRest(scope, op, dx);
}

}  // namespace
}  // namespace gradients

void RegisterImageGradients(GradientRegistry& registry) {
  using namespace gradients;  // NOLINT(google-build-using-namespace)
  registry.Register("ResizeBilinear", GradientOfResize<ops::ResizeBilinearGrad>);
  registry.Register("ResizeBicubic", GradientOfResize<ops::ResizeBicubicGrad>);
  registry.Register("ResizeNearestNeighbor", GradientOfResizeNearest);
  registry.Register("ResizeBilinearGrad", GradientOfResizeGrad<ops::ResizeBilinear>);
  registry.Register("ResizeBicubicGrad", GradientOfResizeGrad<ops::ResizeBicubic>);
  registry.Register("ResizeNearestNeighborGrad", GradientOfResizeNearestGrad);
  registry.Register("ScaleAndTranslate", GradientOfScaleAndTranslate);
  registry.Register("CropAndResize", GradientOfCropAndResize);
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

}  // namespace gradflow
