// Attributes, shapes, shards and element conversions that batch normalization and its gradients
// share.
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

// The attributes of all the ops.
struct BatchNormAttrs {
  float epsilon = 0;
  bool is_training = true;
  // "NHWC", "NCHW", "NDHWC" or "NCDHW", and what follows from it.
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

// The documentation of T and U in the ops that have both.
inline constexpr char kBatchNormTypesDoc[] =
    R"(T: The type of the elements, which are computed in float.
U: The type of the statistics.
)";

// ---- Shapes ----

// Returns the number of channels of `x`, -1 if not known.
absl::StatusOr<int64_t> BatchNormChannels(const BatchNormAttrs& attrs, const PartialTensorShape& x);
// Returns an error unless `found`, the shape of input `name`, may be [*channels]. Sets *channels if
// it was -1.
absl::Status CheckPerChannel(const BatchNormAttrs& attrs, const PartialTensorShape& x,
                             absl::string_view name, const PartialTensorShape& found,
                             int64_t* channels);
// Returns `x` with its number of channels set.
PartialTensorShape WithChannels(const BatchNormAttrs& attrs, PartialTensorShape x,
                                int64_t channels);

// The elements of x in memory: [rows, channels] if `in_rows`, or [batch, channels, spatial].
struct BatchNormLayout {
  int64_t batch = 0;
  int64_t channels = 0;
  int64_t spatial = 0;
  bool in_rows = true;
  // The number of elements of a channel.
  int64_t count() const { return batch * spatial; }
};
// REQUIRES: x is of rank attrs.rank
BatchNormLayout MakeBatchNormLayout(const BatchNormAttrs& attrs, const TensorShape& x);

// The shards of such a tensor, of which the layout uses one, and the sums that they have.
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
  // The number of coefficients of each kind: columns of wide rows, or channels.
  int64_t width;
  // Two sums of each column, or channel, in each block.
  TensorShape sums_shape;
};

// Calls fn concurrently for some rows at a time, of `size` elements in rows of `width`, the last of
// which may be shorter. With `backwards` it begins with the last rows: those that an earlier loop
// read last are the most likely to be in a cache still.
void ForEachRows(const RunContext& run, int64_t size, int64_t width, bool backwards,
                 absl::FunctionRef<void(int64_t offset, const BatchNormRows& rows)> fn);

// ---- Elements ----

// REQUIRES: float, half or bfloat16
ElementType ElementTypeOf(DataType dtype);
// Returns the number of bytes of `count` elements.
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
void ForEachChannel(const RunContext& run, int64_t channels, const F& fn) {
  ParallelFor(run, channels, BlockSizeForCost(10), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) fn(c);
  });
}

// Converts the elements of a vector of float or bfloat16.
void VectorToFloats(const RunContext& run, const Tensor& vector, float* floats);
// Sets element i of a vector of float or bfloat16 to value(i), which is called concurrently.
void SetVector(const RunContext& run, Tensor* vector, absl::FunctionRef<double(int64_t i)> value);

// Returns the nearest float, and in *rest the difference. Together they have the precision of two
// floats.
inline float SplitDouble(double value, float* rest) {
  const float nearest = static_cast<float>(value);
  *rest = std::isfinite(nearest) ? static_cast<float>(value - static_cast<double>(nearest)) : 0.0f;
  return nearest;
}
// Returns the reciprocal of the stddev.
inline double Rstd(float variance, float epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + static_cast<double>(epsilon));
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_BATCH_NORM_COMMON_H_
