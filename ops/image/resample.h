// Separable resampling. Each row (column) of the output is a weighted sum of rows (columns) of the
// input. The weights depend on the op.
#ifndef GRADFLOW_OPS_IMAGE_RESAMPLE_H_
#define GRADFLOW_OPS_IMAGE_RESAMPLE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// The element types of images.
const DataTypeVector& ImageTypes();

// Reads the elements of a tensor with one of ImageTypes() as floats.
class FloatReader {
 public:
  // Does not copy the elements.
  explicit FloatReader(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.raw_data())), dtype_(tensor.dtype()) {}
  // Returns the n elements from element i on, either in place or converted in `buffer`.
  const float* Read(int64_t i, int64_t n, float* buffer) const;

 private:
  const char* data_;
  DataType dtype_;
};

// ---- Sizes and scales ----

// Maps positions of the output to positions of the input.
struct ResizeAttrs {
  bool align_corners = false;
  bool half_pixel_centers = false;

  // Reads the attributes that the op has. Returns INVALID_ARGUMENT if both are true. Source is
  // KernelConstruction or ShapeContext.
  template <typename Source>
  absl::Status Read(const Source& source) {
    if (absl::Status status = source.GetAttr("align_corners", &align_corners); !status.ok()) {
      return status;
    }
    if (!source.GetAttr("half_pixel_centers", &half_pixel_centers).ok()) half_pixel_centers = false;
    return CheckOneIsFalse();
  }
  // The distance between neighboring output pixels, in input pixels. Computed in float, like the
  // positions below, so that the same pixels are chosen as in TensorFlow.
  float Scale(int64_t in, int64_t out) const {
    return align_corners && in > 1 && out > 1
               ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
               : static_cast<float>(in) / static_cast<float>(out);
  }
  // The input position of output pixel i.
  float Position(int64_t i, float scale) const {
    return half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                              : static_cast<float>(i) * scale;
  }

 private:
  absl::Status CheckOneIsFalse() const;
};

// Returns the shape [batch, size[0], size[1], channels] of a resized image. Input `size` is the new
// size.
absl::StatusOr<PartialTensorShape> ResizedShape(ShapeContext& c, int size);
// The shape function of ops with inputs (images, size, ...).
absl::Status ResizeShape(ShapeContext& c);
// Like ResizeShape(), but also checks ResizeAttrs.
absl::Status ResizeAttrsShape(ShapeContext& c);
// The shape function of gradient ops with inputs (grads, original_image, ...).
absl::Status ResizeGradShape(ShapeContext& c);
// Checks input 0, which must be images of rank 4, and input `size`. Images must not be empty, but
// the batch may be. Sets *shape to the shape of the output.
absl::Status CheckResize(const KernelContext& ctx, int size, TensorShape* shape);
// Checks inputs 0 and 1, the gradients and the images. Their heights and widths may differ.
absl::Status CheckResizeGrad(const KernelContext& ctx);

// ---- Resampling ----

// The weights of one dimension. Output i is the sum of weight(i, k) * input[index(i, k)].
class Taps {
 public:
  // Allocates taps. Their indices and weights are uninitialized.
  absl::Status Allocate(KernelContext& ctx, int64_t in, int64_t out, int64_t count);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  // The number of taps per output.
  int64_t count() const { return count_; }
  const int32_t* indices(int64_t i) const { return indices_ + i * count_; }
  const float* weights(int64_t i) const { return weights_ + i * count_; }
  // Sets a tap. Clamps the index to the input. The indices of taps k and k + 1 of an output differ
  // by at most one.
  void Set(int64_t i, int64_t k, int64_t index, float weight) {
    indices_[i * count_ + k] = static_cast<int32_t>(std::min(in_ - 1, std::max<int64_t>(0, index)));
    weights_[i * count_ + k] = weight;
  }
  // If true, an output has two taps a and b with weights 1 - w and w. It is computed as a + (b - a)
  // * w, which rounds like TensorFlow.
  bool is_linear = false;

 private:
  int64_t in_ = 0;
  int64_t out_ = 0;
  int64_t count_ = 0;
  Tensor index_tensor_;
  Tensor weight_tensor_;
  int32_t* indices_ = nullptr;
  float* weights_ = nullptr;
};

// Resamples images [batch, rows.in, columns.in, channels] with one of ImageTypes() to the float
// tensor `output`.
absl::Status Resample(KernelContext& ctx, const Tensor& images, const Taps& rows,
                      const Taps& columns, Tensor* output);
// Computes the gradient of Resample(). Distributes the float tensor `grads` [batch, rows.out,
// columns.out, channels] to `output` [batch, rows.in, columns.in, channels], which has a
// floating-point type. Accumulates sums in double.
absl::Status ResampleGrad(KernelContext& ctx, const Tensor& grads, const Taps& rows,
                          const Taps& columns, Tensor* output);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_IMAGE_RESAMPLE_H_
