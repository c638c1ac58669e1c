// What batch normalisation and its gradients share: attributes, shapes, and the way from elements
// of small vectors to floats and back.
#ifndef GRADFLOW_OPS_BATCH_NORM_COMMON_H_
#define GRADFLOW_OPS_BATCH_NORM_COMMON_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/batch_norm_simd.h"
#include "gradflow/ops/simd.h"

namespace gradflow {

// The attributes of all the ops.
struct BatchNormAttrs {
  float epsilon = 0;
  bool is_training = true;
  // "NHWC", "NCHW", "NDHWC" or "NCDHW", and what that says.
  std::string data_format;
  int rank = 0;
  bool channels_last = true;
};

// Checks epsilon and data_format, and sets what follows from the latter.
absl::Status CheckBatchNormAttrs(BatchNormAttrs* attrs);
// Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadBatchNormAttrs(const Source& source, BatchNormAttrs* attrs) {
  if (absl::Status s = source.GetAttr("epsilon", &attrs->epsilon); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("is_training", &attrs->is_training); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("data_format", &attrs->data_format); !s.ok()) return s;
  return CheckBatchNormAttrs(attrs);
}

// ---- Shapes ----

// The number of channels of `x`, -1 if not known.
absl::StatusOr<int64_t> BatchNormChannels(const BatchNormAttrs& attrs, const PartialTensorShape& x);
// Unless `found`, the shape of input `name`, may be [*channels]; sets *channels if it was -1.
absl::Status CheckPerChannel(const BatchNormAttrs& attrs, const PartialTensorShape& x,
                             absl::string_view name, const PartialTensorShape& found,
                             int64_t* channels);
// `x` with its channels known.
PartialTensorShape WithChannels(const BatchNormAttrs& attrs, PartialTensorShape x,
                                int64_t channels);

// What the data format and the shape of x mean for its elements in memory: [rows, channels] if
// `in_rows`, or [batch, channels, spatial].
struct BatchNormLayout {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t spatial = 0;
  bool in_rows = true;
  // Elements of a channel.
  int64_t count() const { return batch * spatial; }
};
// REQUIRES: x is of rank attrs.rank
BatchNormLayout MakeBatchNormLayout(const BatchNormAttrs& attrs, const TensorShape& x);

// Calls fn for some rows at a time of `size` elements in rows of `width` (the last of which may be
// shorter), concurrently. With `backwards` it begins with the last rows: those that were read last
// by an earlier loop are the most likely to be in a cache still.
void ForEachRows(int64_t size, int64_t width, bool backwards,
                 absl::FunctionRef<void(int64_t offset, const BatchNormRows& rows)> fn);

// ---- Elements ----

// REQUIRES: float, half or bfloat16
ElementType ElementTypeOf(DataType dtype);
// Bytes of `count` elements.
inline int64_t ElementBytes(ElementType type, int64_t count) {
  return count * (type == ElementType::kFloat ? 4 : 2);
}
inline const void* ElementAt(const void* base, ElementType type, int64_t i) {
  return static_cast<const char*>(base) + ElementBytes(type, i);
}
inline void* ElementAt(void* base, ElementType type, int64_t i) {
  return static_cast<char*>(base) + ElementBytes(type, i);
}
void ElementsToFloats(ElementType type, const void* elements, int64_t n, float* floats);

// Calls fn(c) for every channel, concurrently if there are thousands.
template <typename F>
void ForEachChannel(int64_t channels, const F& fn) {
  ParallelFor(channels, BlockSizeForCost(10), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) fn(c);
  });
}

// The elements of a vector of float or bfloat16.
void VectorToFloats(const Tensor& vector, float* floats);
// Sets element i of a vector of float or bfloat16 to value(i), which is called concurrently.
void SetVector(Tensor* vector, absl::FunctionRef<double(int64_t i)> value);

// The nearest float, and in *rest what it lacks. Together they are as precise as two floats.
inline float SplitDouble(double value, float* rest) {
  const float nearest = static_cast<float>(value);
  *rest = std::isfinite(nearest) ? static_cast<float>(value - static_cast<double>(nearest)) : 0.0f;
  return nearest;
}
inline double InverseDeviation(float variance, float epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + static_cast<double>(epsilon));
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_BATCH_NORM_COMMON_H_
