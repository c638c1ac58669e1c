// Attributes, shapes, shards and element conversions shared by batch normalization and its
// gradients.
#ifndef GRADFLOW_OPS_NN_BATCH_NORM_COMMON_H_
#define GRADFLOW_OPS_NN_BATCH_NORM_COMMON_H_

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
#include "gradflow/ops/common/plane_blocks.h"
#include "gradflow/ops/common/row_blocks.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/nn/batch_norm_simd.h"

namespace gradflow {

// The attributes that all ops have.
struct BatchNormAttrs {
  float epsilon = 0;
  bool is_training = true;
  // "NHWC", "NCHW", "NDHWC" or "NCDHW". The members below follow from it.
  std::string data_format;
  int rank = 0;
  bool channels_last = true;
};

// Checks epsilon and data_format, and sets the members that follow from data_format.
absl::Status CheckBatchNormAttrs(BatchNormAttrs* attrs);
// Reads and checks the attributes. Source is KernelConstruction or ShapeContext.
template <typename Source>
absl::Status ReadBatchNormAttrs(const Source& source, BatchNormAttrs* attrs) {
  if (absl::Status s = source.GetAttr("epsilon", &attrs->epsilon); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("is_training", &attrs->is_training); !s.ok()) return s;
  if (absl::Status s = source.GetAttr("data_format", &attrs->data_format); !s.ok()) return s;
  return CheckBatchNormAttrs(attrs);
}

// The documentation of T and U, for the ops that have both.
inline constexpr char kBatchNormTypesDoc[] =
    R"(T: The type of the elements, which are computed in float.
U: The type of the statistics.
)";

// ---- Shapes ----

// Returns the number of channels of `x`; -1 if unknown.
absl::StatusOr<int64_t> BatchNormChannels(const BatchNormAttrs& attrs, const PartialTensorShape& x);
// Returns an error unless input `name` of shape `found` may be a vector of *channels elements. Sets
// *channels if it was -1.
absl::Status CheckPerChannel(const BatchNormAttrs& attrs, const PartialTensorShape& x,
                             absl::string_view name, const PartialTensorShape& found,
                             int64_t* channels);
// Returns `x` with the given number of channels.
PartialTensorShape WithChannels(const BatchNormAttrs& attrs, PartialTensorShape x,
                                int64_t channels);

// The memory layout of x: [rows, channels] if `in_rows` is true, otherwise [batch, channels,
// spatial].
struct BatchNormLayout {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t spatial = 0;
  bool in_rows = true;
  // The number of elements per channel.
  int64_t count() const { return batch * spatial; }
};
// REQUIRES: the rank of x is attrs.rank
BatchNormLayout MakeBatchNormLayout(const BatchNormAttrs& attrs, const TensorShape& x);

// The shards of a tensor with this layout, and the shape of their sums. Either `rows` or `planes`
// is used, depending on the layout.
struct BatchNormBlocks {
  // REQUIRES: no size of the layout is 0
  BatchNormBlocks(const RunContext& run, const BatchNormLayout& layout)
      : rows(run, layout.count(), layout.channels),
        planes(run, layout.batch, layout.channels, layout.spatial),
        width(layout.in_rows ? rows.width() : layout.channels),
        sums_shape(layout.in_rows ? TensorShape({rows.num_blocks(), 2, width})
                                  : TensorShape({layout.channels, planes.num_blocks(), 2})) {}

  RowBlocks rows;
  PlaneBlocks planes;
  // The number of coefficients of each kind: one per column of a wide row, or one per channel.
  int64_t width;
  // The shape of the sums: two sums per block, for each column or channel.
  TensorShape sums_shape;
};

// Divides `size` elements into rows of `width` elements and calls fn concurrently for several rows
// at a time. The last row may be shorter. With `backwards`, starts with the last rows: an earlier
// loop has read them last, so they are the most likely to be still in a cache.
void ForEachRows(const RunContext& run, int64_t size, int64_t width, bool backwards,
                 absl::FunctionRef<void(int64_t offset, const BatchNormRows& rows)> fn);

// ---- Elements ----

// REQUIRES: dtype is float, half or bfloat16
ElementType ElementTypeOf(DataType dtype);
// Returns the size of `count` elements in bytes.
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

// Calls fn(c) for every channel, concurrently if there are thousands of channels.
template <typename F>
void ForEachChannel(const RunContext& run, int64_t channels, const F& fn) {
  ParallelFor(run, channels, BlockSizeForCost(10), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) fn(c);
  });
}

// Converts the elements of a float or bfloat16 vector to float.
void VectorToFloats(const RunContext& run, const Tensor& vector, float* floats);
// Sets each element i of a float or bfloat16 vector to value(i). Calls value concurrently.
void SetVector(const RunContext& run, Tensor* vector, absl::FunctionRef<double(int64_t i)> value);

// Returns the nearest float, and the difference in *rest. Both together have twice the precision of
// a float.
inline float SplitDouble(double value, float* rest) {
  const float nearest = static_cast<float>(value);
  *rest = std::isfinite(nearest) ? static_cast<float>(value - static_cast<double>(nearest)) : 0.0f;
  return nearest;
}
// Returns 1 / stddev.
inline double Rstd(float variance, float epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + static_cast<double>(epsilon));
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_COMMON_H_
