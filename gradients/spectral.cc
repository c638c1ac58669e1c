// Gradients of the Fourier transforms of ops/math. The transform is linear, y = F x, and its
// gradient uses the adjoint: F^H dy = n * (inverse transform of dy), where n is the number of
// elements that are transformed together. Real transforms omit almost half of the last dimension.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// The axes of a transform, in the form that the functions below need.
struct Transform {
  // A vector of axes, in [0, rank).
  Output axes;
  // The length of the transform of each axis.
  Output lengths;
};

// The last `dims` axes of a tensor, with their sizes.
Transform LastAxes(const Scope& scope, const Output& x, int dims) {
  const Output rank = ops::Rank(scope, x);
  const Output axes = ops::Range(scope, ops::Sub(scope, rank, dims), rank, 1);
  return {axes, ops::GatherV2(scope, ops::Shape(scope, x), axes, 0)};
}
Transform NamedAxes(const Scope& scope, const Operation& op) {
  const Output rank = ops::Rank(scope, op.input(0));
  return {ops::FloorMod(scope, ops::Add(scope, op.input(2), rank), rank), op.input(1)};
}

// The product of the lengths, as a real number of type `dtype`.
Output Count(const Scope& scope, const Transform& transform, DataType dtype) {
  return ops::Prod(scope, ops::Cast(scope, transform.lengths, dtype), 0);
}
DataType RealType(DataType dtype) {
  return dtype == DT_COMPLEX64 || dtype == DT_FLOAT ? DT_FLOAT : DT_DOUBLE;
}
Output ToComplex(const Scope& scope, const Output& x, DataType dtype) {
  return ops::Cast(scope, x, dtype);
}

// Crops or pads `g` to the shape of `x`, with zeros.
Output CropOrPad(const Scope& scope, const Output& g, const Output& x) {
  const Output shape = ops::Shape(scope, x);
  const Output common = ops::Minimum(scope, shape, ops::Shape(scope, g));
  const Output zeros = ops::ZerosLike(scope, shape);
  const Output cropped = ops::Slice(scope, g, zeros, common);
  const Output missing = ops::Sub(scope, shape, common);
  return ops::Pad(scope, cropped, ops::Pack(scope, {zeros, missing}, ops::Pack::Axis(1)));
}

// Multiplies `value` by the real scalar `factor`.
Output Scale(const Scope& scope, const Output& value, const Output& factor) {
  return ops::Mul(scope, value, ops::Cast(scope, factor, value.type()));
}
Output Unscale(const Scope& scope, const Output& value, const Output& divisor) {
  return ops::Div(scope, value, ops::Cast(scope, divisor, value.type()));
}

template <typename Inverse, int kDims>
absl::Status GradientOfFft(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  const Transform transform = LastAxes(scope, dy[0], kDims);
  const Output count = Count(scope, transform, RealType(op.input_type(0)));
  dx->push_back(Scale(scope, Inverse(scope, dy[0]), count));
  return scope.status();
}
template <typename Forward, int kDims>
absl::Status GradientOfIfft(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Transform transform = LastAxes(scope, dy[0], kDims);
  const Output count = Count(scope, transform, RealType(op.input_type(0)));
  dx->push_back(Unscale(scope, Forward(scope, dy[0]), count));
  return scope.status();
}

// Transforms along named axes crop their input to the lengths, or pad it with zeros.
absl::Status GradientOfFftNd(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  const Transform transform = NamedAxes(scope, op);
  const Output count = Count(scope, transform, RealType(op.input_type(0)));
  const Output inverse = ops::IFFTND(scope, dy[0], transform.lengths, transform.axes);
  dx->push_back(CropOrPad(scope, Scale(scope, inverse, count), op.input(0)));
  return NoGradientForTheRest(scope, op, dx);
}
absl::Status GradientOfIfftNd(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Transform transform = NamedAxes(scope, op);
  const Output count = Count(scope, transform, RealType(op.input_type(0)));
  const Output forward = ops::FFTND(scope, dy[0], transform.lengths, transform.axes);
  dx->push_back(CropOrPad(scope, Unscale(scope, forward, count), op.input(0)));
  return NoGradientForTheRest(scope, op, dx);
}

// The real part of F^H dy, where dy is padded with zeros to the full length: the elements that the
// transform omits have no gradient.
absl::Status RealTransform(const Scope& scope, const Operation& op, const Transform& transform,
                           const Output& dy, std::vector<Output>* dx) {
  const DataType real = BaseType(op.input_type(0));
  const Output count = Count(scope, transform, real);
  const Output inverse = ops::IFFTND(scope, dy, transform.lengths, transform.axes);
  const Output part = ops::Real(scope, inverse, ops::Real::Tout(real));
  dx->push_back(CropOrPad(scope, Scale(scope, part, count), op.input(0)));
  return NoGradientForTheRest(scope, op, dx);
}
template <int kDims>
absl::Status GradientOfRfft(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                            std::vector<Output>* dx) {
  const Transform transform = {LastAxes(scope, op.input(0), kDims).axes, op.input(1)};
  return RealTransform(scope, op, transform, dy[0], dx);
}
absl::Status GradientOfRfftNd(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  return RealTransform(scope, op, NamedAxes(scope, op), dy[0], dx);
}

// An element of the half transform represents itself and its conjugate. Exceptions are the first
// element of the last axis and, if the length n is even, element n / 2. The gradient is the
// transform of dy divided by n, doubled for all elements that are not exceptions.
absl::Status InverseRealTransform(const Scope& scope, const Operation& op,
                                  const Transform& transform, const Output& dy,
                                  std::vector<Output>* dx) {
  const DataType dtype = BaseType(op.input_type(0));
  const DataType real = BaseType(dy.type());
  const Output half =
      ops::RFFTND(scope, dy, transform.lengths, transform.axes, ops::RFFTND::Tcomplex(dtype));
  const Output last = ops::Sub(scope, ops::Size(scope, transform.axes), 1);
  const Output n = ops::GatherV2(scope, transform.lengths, last, 0);
  const Output size = ops::Add(scope, ops::FloorDiv(scope, n, 2), 1);
  const Output k = ops::Range(scope, 0, size, 1);
  const Output is_single =
      ops::LogicalOr(scope, ops::Equal(scope, k, 0), ops::Equal(scope, ops::Mul(scope, k, 2), n));
  const Output weights =
      ops::SelectV2(scope, is_single, Scalar(scope, real, 1), Scalar(scope, real, 2));
  // The weights along the last transformed axis.
  const Output axis = ops::GatherV2(scope, transform.axes, last, 0);
  const Output rank = ops::Rank(scope, half);
  const Output shape =
      ops::SelectV2(scope, ops::Equal(scope, ops::Range(scope, 0, rank, 1), axis), size, 1);
  const Output weighted =
      ops::Mul(scope, half, ToComplex(scope, ops::Reshape(scope, weights, shape), dtype));
  const Output g = Unscale(scope, weighted, Count(scope, transform, real));
  dx->push_back(CropOrPad(scope, g, op.input(0)));
  return NoGradientForTheRest(scope, op, dx);
}
template <int kDims>
absl::Status GradientOfIrfft(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  return InverseRealTransform(scope, op, LastAxes(scope, dy[0], kDims), dy[0], dx);
}
absl::Status GradientOfIrfftNd(const Scope& scope, const Operation& op,
                               const std::vector<Output>& dy, std::vector<Output>* dx) {
  return InverseRealTransform(scope, op, NamedAxes(scope, op), dy[0], dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::spectral {

void Register(GradientRegistry& registry) {
  registry.Register("FFT", GradientOfFft<ops::IFFT, 1>);
  registry.Register("FFT2D", GradientOfFft<ops::IFFT2D, 2>);
  registry.Register("FFT3D", GradientOfFft<ops::IFFT3D, 3>);
  registry.Register("IFFT", GradientOfIfft<ops::FFT, 1>);
  registry.Register("IFFT2D", GradientOfIfft<ops::FFT2D, 2>);
  registry.Register("IFFT3D", GradientOfIfft<ops::FFT3D, 3>);
  registry.Register("FFTND", GradientOfFftNd);
  registry.Register("IFFTND", GradientOfIfftNd);
  registry.Register("RFFT", GradientOfRfft<1>);
  registry.Register("RFFT2D", GradientOfRfft<2>);
  registry.Register("RFFT3D", GradientOfRfft<3>);
  registry.Register("RFFTND", GradientOfRfftNd);
  registry.Register("IRFFT", GradientOfIrfft<1>);
  registry.Register("IRFFT2D", GradientOfIrfft<2>);
  registry.Register("IRFFT3D", GradientOfIrfft<3>);
  registry.Register("IRFFTND", GradientOfIrfftNd);
}

}  // namespace gradients::spectral

}  // namespace gradflow
