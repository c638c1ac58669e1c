// The windows of pooling ops: attributes, shapes of outputs, and the positions of windows.
#ifndef GRADFLOW_OPS_NN_POOL_WINDOWS_H_
#define GRADFLOW_OPS_NN_POOL_WINDOWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// The attributes of a pooling op. Sizes and strides may be inputs instead.
struct PoolAttrs {
  // The number of sizes: 4 for images, 5 for volumes.
  int rank = 4;
  std::string data_format;
  std::string padding;
  // `rank` numbers each, in the order of data_format.
  std::vector<int64_t> size;
  std::vector<int64_t> stride;
  // The padding before and after each dimension: 2 * rank numbers. Empty unless `padding` is
  // EXPLICIT.
  std::vector<int64_t> explicit_paddings;

  // Reads the attributes that the op has. Source is KernelConstruction or ShapeContext.
  template <typename Source>
  absl::Status Read(const Source& source, int pool_rank, bool sizes_are_inputs = false) {
    rank = pool_rank;
    if (!source.GetAttr("data_format", &data_format).ok()) data_format = "NHWC";
    if (!source.GetAttr("explicit_paddings", &explicit_paddings).ok()) explicit_paddings.clear();
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("padding", &padding));
    if (sizes_are_inputs) return absl::OkStatus();
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("ksize", &size));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("strides", &stride));
    // As in TensorFlow, a graph may have windows that no kernel supports.
    const bool is_kernel = std::is_same_v<Source, KernelConstruction>;
    return is_kernel ? CheckSupported() : Check();
  }
  // Returns INVALID_ARGUMENT if there are not `rank` sizes and strides, each in [1, 2^31), or if
  // explicit_paddings is invalid.
  absl::Status Check() const;
  // Same, and returns UNIMPLEMENTED if windows span several images, if they span both channels and
  // positions, or if windows of channels overlap or leave gaps.
  absl::Status CheckSupported() const;

  // The dimension of the channels, and the first spatial dimension. Spatial dimensions are
  // adjacent.
  int channel_dim() const { return channels_last() ? rank - 1 : 1; }
  int first_spatial_dim() const { return channels_last() ? 1 : 2; }
  int spatial_dims() const { return rank - 2; }
  bool channels_last() const { return data_format == "NHWC" || data_format == "NDHWC"; }
  // The rank of the input. The format NCHW_VECT_C has groups of four channels in a fifth dimension.
  int input_rank() const { return data_format == "NCHW_VECT_C" ? 5 : rank; }
  // True if windows span channels.
  bool pools_channels() const { return size[channel_dim()] != 1; }
};

// Returns the shape of the pooled input.
absl::StatusOr<PartialTensorShape> PooledShape(const PoolAttrs& attrs,
                                               const PartialTensorShape& input);
// Returns INVALID_ARGUMENT unless the shape `found` of input `name` may be the pooled shape
// `expected`.
absl::Status CheckPooled(absl::string_view name, const PartialTensorShape& found,
                         const PartialTensorShape& expected);

// A range of positions.
struct PoolRange {
  int64_t begin;
  int64_t end;
  int64_t size() const { return end - begin; }
};

// Windows over tensors [batch, planes, rows, columns, depth]. If the input has its channels first,
// the channels are part of the batch and the depth is 1 (4 for NCHW_VECT_C). If windows span
// channels, the channels are columns or rows and the depth is 1. Sizes are not negative, and the
// number of elements of the input and of the output fits int64.
struct PoolGeometry {
  static constexpr int kDims = 3;
  using Sizes = std::array<int64_t, kDims>;

  int64_t batch = 0;
  int64_t depth = 0;
  Sizes in = {1, 1, 1};
  Sizes out = {1, 1, 1};
  Sizes size = {1, 1, 1};
  Sizes stride = {1, 1, 1};
  // The first window begins `padding` elements before the input.
  Sizes padding = {0, 0, 0};

  // The positions of window `o` along dimension d, clamped to the input.
  PoolRange Window(int d, int64_t o) const {
    const int64_t begin = o * stride[d] - padding[d];
    return {std::max<int64_t>(begin, 0), std::max<int64_t>(0, std::min(begin + size[d], in[d]))};
  }
  // The windows along dimension d that cover position `i`.
  PoolRange Covering(int d, int64_t i) const {
    const int64_t last = i + padding[d];
    const int64_t begin = last < size[d] ? 0 : (last - size[d]) / stride[d] + 1;
    return {begin, std::max(begin, std::min(last / stride[d] + 1, out[d]))};
  }
  // The windows whose column k, counted from 0 within the window, lies within the input.
  PoolRange WindowsWithColumn(int64_t k) const {
    const int64_t first = padding[2] - k;
    const int64_t begin = first <= 0 ? 0 : (first + stride[2] - 1) / stride[2];
    const int64_t last = in[2] - 1 + first;
    const int64_t end = last < 0 ? 0 : std::min(out[2], last / stride[2] + 1);
    return {begin, std::max(begin, end)};
  }
  // The columns k of a window that lie within the input for at least one window.
  PoolRange UsedColumns() const {
    const int64_t begin = std::max<int64_t>(0, padding[2] - (out[2] - 1) * stride[2]);
    return {begin, std::max(begin, std::min(size[2], in[2] + padding[2]))};
  }
  // True if UsedColumns() has more elements than all windows together have within the input. A loop
  // over windows is then shorter than a loop over the columns of windows.
  bool HasSparseColumns() const {
    const int64_t used = UsedColumns().size();
    int64_t sum = 0;
    for (int64_t o = 0; o < out[2] && sum < used; ++o) sum += Window(2, o).size();
    return sum < used;
  }
  // The number of elements of a row.
  int64_t in_row() const { return in[2] * depth; }
  int64_t out_row() const { return out[2] * depth; }
  // The number of rows.
  int64_t in_rows() const { return batch * in[0] * in[1]; }
  int64_t out_rows() const { return batch * out[0] * out[1]; }
  // The approximate number of input rows that are combined into an output row.
  double window_rows() const {
    return static_cast<double>(std::min(size[0], in[0])) *
           static_cast<double>(std::min(size[1], in[1]));
  }
};

// Returns the geometry for an input of shape `input`, and sets *output to the pooled shape.
absl::StatusOr<PoolGeometry> MakePoolGeometry(const PoolAttrs& attrs, const TensorShape& input,
                                              TensorShape* output);

// Returns the size in bytes of a part of a scratch buffer with `count` elements of type T, rounded
// up so that the next part begins at a cache line.
template <typename T>
constexpr int64_t PaddedBytes(int64_t count) {
  return (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
}

// Calls fn(row, scratch) concurrently for all rows of [0, rows). A row takes about `nanoseconds`.
// Calls that run at the same time have separate scratch buffers of `bytes` bytes, aligned for all
// number types, with unspecified contents. Skips rows once the run must stop. Returns an error if
// the buffers cannot be allocated.
absl::Status ForEachPoolRow(KernelContext& ctx, int64_t rows, double nanoseconds, int64_t bytes,
                            absl::FunctionRef<void(int64_t row, char* scratch)> fn);

// Returns an error if the positions in an image do not fit int32.
absl::Status CheckArgmaxPositions(const PoolGeometry& g);
// Returns an error if the indices of elements, within an image or within the whole input, do not
// fit the type `index`. REQUIRES: CheckArgmaxPositions(g) is OK
absl::Status CheckArgmaxIndices(const PoolGeometry& g, DataType index, bool include_batch);

// Reads the sizes and strides of a version 2 op from inputs i and i + 1.
absl::Status ReadPoolSizes(const KernelContext& ctx, int i, PoolAttrs* attrs);
// Overload for shape functions. Returns false if the sizes and strides are unknown.
absl::StatusOr<bool> ReadPoolSizes(const ShapeContext& c, int i, PoolAttrs* attrs);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_WINDOWS_H_
