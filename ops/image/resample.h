// Separable resampling: each row (column) of the output is a weighted sum of some rows (columns) of
// the input. Ops differ in the weights.
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

// The types of images.
const DataTypeVector& ImageTypes();

// The elements of a tensor of any type of ImageTypes(), as floats.
class FloatReader {
 public:
  // Borrows the elements.
  explicit FloatReader(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.raw_data())), dtype_(tensor.dtype()) {}
  // Returns n elements from element i on, where they are or converted in `buffer`.
  const float* Read(int64_t i, int64_t n, float* buffer) const;

 private:
  const char* data_;
  DataType dtype_;
};

// ---- Sizes and scales ----

// How the positions of the output map to those of the input.
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
  // The distance of neighboring pixels of the output, in pixels of the input. In float, as the
  // positions below, so that the same pixels are chosen as by TensorFlow.
  float Scale(int64_t in, int64_t out) const {
    return align_corners && in > 1 && out > 1
               ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
               : static_cast<float>(in) / static_cast<float>(out);
  }
  // The position of pixel i of the output in the input.
  float Position(int64_t i, float scale) const {
    return half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                              : static_cast<float>(i) * scale;
  }

 private:
  absl::Status CheckOneIsFalse() const;
};

// Returns the shape [batch, size[0], size[1], channels] of an image whose size is input `size`.
absl::StatusOr<PartialTensorShape> ResizedShape(ShapeContext& c, int size);
// Shape function of ops (images, size, ...).
absl::Status ResizeShape(ShapeContext& c);
// Checks ResizeAttrs, too.
absl::Status ResizeAttrsShape(ShapeContext& c);
// Shape function of gradient ops (grads, original_image, ...).
absl::Status ResizeGradShape(ShapeContext& c);
// Checks input 0, images of rank 4 that are not empty except for the batch, and input `size`. Sets
// *shape to the shape of the output.
absl::Status CheckResize(const KernelContext& ctx, int size, TensorShape* shape);
// Checks inputs 0 and 1, the gradients and the images, which differ in height and width.
absl::Status CheckResizeGrad(const KernelContext& ctx);

// ---- Resampling ----

// The weights of one dimension. Output i is the sum of weight(i, k) * input[index(i, k)].
class Taps {
 public:
  // Allocates taps. Their indices and weights are not initialized.
  absl::Status Allocate(KernelContext& ctx, int64_t in, int64_t out, int64_t count);

  int64_t in() const { return in_; }
  int64_t out() const { return out_; }
  // The number of taps of each output.
  int64_t count() const { return count_; }
  const int32_t* indices(int64_t i) const { return indices_ + i * count_; }
  const float* weights(int64_t i) const { return weights_ + i * count_; }
  // Sets a tap. The index is clamped to the input. The indices of an output are neighbors: those of
  // taps k and k + 1 differ by one at most.
  void Set(int64_t i, int64_t k, int64_t index, float weight) {
    indices_[i * count_ + k] = static_cast<int32_t>(std::min(in_ - 1, std::max<int64_t>(0, index)));
    weights_[i * count_ + k] = weight;
  }
  // If true, an output has two taps a and b of weights 1 - w and w, and is a + (b - a) * w: rounded
  // as TensorFlow does.
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

// Resamples images [batch, rows.in, columns.in, channels] of ImageTypes() to `output`, of float.
absl::Status Resample(KernelContext& ctx, const Tensor& images, const Taps& rows,
                      const Taps& columns, Tensor* output);
// The gradient: distributes `grads` [batch, rows.out, columns.out, channels], of float, to `output`
// [batch, rows.in, columns.in, channels] of a floating type. Sums are accumulated in double.
absl::Status ResampleGrad(KernelContext& ctx, const Tensor& grads, const Taps& rows,
                          const Taps& columns, Tensor* output);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_IMAGE_RESAMPLE_H_
