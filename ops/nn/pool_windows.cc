#include "gradflow/ops/nn/pool_windows.h"

#include <hwy/cache_control.h>

#include <limits>
#include <utility>

#include "absl/strings/str_join.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/conv_geometry.h"

namespace gradflow {
namespace {

// Far larger than any image. Sums and products of two sizes below the limit do not overflow.
constexpr int64_t kLimit = int64_t{1} << 31;

absl::Status CheckSizes(const char* name, const std::vector<int64_t>& values,
                        const PoolAttrs& attrs) {
  if (static_cast<int>(values.size()) != attrs.rank) {
    return errors::InvalidArgument(name, " must have ", attrs.rank, " elements, but is [",
                                   absl::StrJoin(values, ","), "]");
  }
  for (const int64_t value : values) {
    if (value < 1 || value >= kLimit) {
      return errors::InvalidArgument(name, " must be positive and less than 2^31, but is [",
                                     absl::StrJoin(values, ","), "]");
    }
  }
  return absl::OkStatus();
}

struct WindowCount {
  int64_t count;
  int64_t padding;
};

absl::StatusOr<WindowCount> WindowExtent(const PoolAttrs& attrs, int d, int64_t in) {
  const bool is_explicit = attrs.padding == "EXPLICIT";
  WindowCount extent = {0, is_explicit ? attrs.explicit_paddings[2 * d] : 0};
  GRADFLOW_ASSIGN_OR_RETURN(
      extent.count,
      WindowedSize(in, attrs.size[d], attrs.stride[d], 1,
                   attrs.padding == "SAME" ? WindowPadding::kSame
                   : is_explicit           ? WindowPadding::kExplicit
                                           : WindowPadding::kValid,
                   &extent.padding, is_explicit ? attrs.explicit_paddings[2 * d + 1] : 0));
  // Kernels assume that the output of an empty input is empty.
  if (in == 0 && extent.count > 0) {
    return errors::InvalidArgument("dimension ", d,
                                   " has no elements: windows would have padding only");
  }
  return extent;
}

}  // namespace

absl::Status PoolAttrs::Check() const {
  GRADFLOW_RETURN_IF_ERROR(CheckSizes("ksize", size, *this));
  GRADFLOW_RETURN_IF_ERROR(CheckSizes("strides", stride, *this));
  if (padding == "EXPLICIT") {
    if (static_cast<int>(explicit_paddings.size()) != 2 * rank) {
      return errors::InvalidArgument("explicit_paddings must have ", 2 * rank,
                                     " elements, but is [", absl::StrJoin(explicit_paddings, ","),
                                     "]");
    }
    for (int i = 0; i < 2 * rank; ++i) {
      const int d = i / 2;
      // Padding of a whole window or more would create windows without elements.
      if (explicit_paddings[i] < 0 || explicit_paddings[i] >= size[d]) {
        return errors::InvalidArgument(
            "explicit_paddings must be nonnegative and less than ksize [", absl::StrJoin(size, ","),
            "], but is [", absl::StrJoin(explicit_paddings, ","), "]");
      }
      if (explicit_paddings[i] != 0 && (d == 0 || d == channel_dim())) {
        return errors::InvalidArgument(
            "explicit_paddings must be 0 for batch and channels, but "
            "is [",
            absl::StrJoin(explicit_paddings, ","), "]");
      }
    }
  } else if (!explicit_paddings.empty()) {
    return errors::InvalidArgument("explicit_paddings must be empty if padding is ", padding,
                                   ", but is [", absl::StrJoin(explicit_paddings, ","), "]");
  }
  return absl::OkStatus();
}

absl::Status PoolAttrs::CheckSupported() const {
  GRADFLOW_RETURN_IF_ERROR(Check());
  for (const auto& [name, values] : {std::pair("ksize", &size), std::pair("strides", &stride)}) {
    if ((*values)[0] == 1) continue;
    return errors::Unimplemented(name, " is [", absl::StrJoin(*values, ","),
                                 "], but pooling across the batch is not supported");
  }
  const int channel = channel_dim();
  bool pools_positions = false;
  for (int d = 1; d < rank; ++d) {
    if (d == channel) continue;
    pools_positions = pools_positions || size[d] != 1 || stride[d] != 1;
  }
  if (pools_channels() && pools_positions) {
    return errors::Unimplemented("ksize is [", absl::StrJoin(size, ","),
                                 "], but pooling across both channels and positions is not "
                                 "supported");
  }
  if (size[channel] != stride[channel]) {
    return errors::Unimplemented("ksize and strides are ", size[channel], " and ", stride[channel],
                                 " for channels, expected the same");
  }
  return absl::OkStatus();
}

absl::StatusOr<PartialTensorShape> PooledShape(const PoolAttrs& attrs,
                                               const PartialTensorShape& input) {
  if (input.unknown_rank()) return PartialTensorShape::UnknownOfRank(attrs.input_rank());
  GRADFLOW_RETURN_IF_ERROR(CheckRank("input", input, attrs.input_rank()));
  DimVector dims(input.dim_sizes().begin(), input.dim_sizes().end());
  for (int d = 1; d < attrs.rank; ++d) {
    if (dims[d] < 0 || (d == attrs.channel_dim() && !attrs.pools_channels())) continue;
    GRADFLOW_ASSIGN_OR_RETURN(const WindowCount extent, WindowExtent(attrs, d, dims[d]));
    dims[d] = extent.count;
  }
  if (attrs.input_rank() != attrs.rank && dims[4] >= 0 && dims[4] != 4) {
    return errors::InvalidArgument("the last dimension of the input must be 4 for NCHW_VECT_C, ",
                                   "but the shape is ", input.DebugString());
  }
  return PartialTensorShape::Make(dims);
}

absl::Status CheckPooled(absl::string_view name, const PartialTensorShape& found,
                         const PartialTensorShape& expected) {
  if (found.IsCompatibleWith(expected)) return absl::OkStatus();
  return ShapeError(name, found, expected, "the shape of the pooled input");
}

absl::StatusOr<PoolGeometry> MakePoolGeometry(const PoolAttrs& attrs, const TensorShape& input,
                                              TensorShape* output) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape pooled, PooledShape(attrs, input));
  GRADFLOW_ASSIGN_OR_RETURN(*output, TensorShape::Make(pooled.dim_sizes()));
  const int channel = attrs.channel_dim();
  if (input.dim_size(channel) % attrs.size[channel] != 0) {
    return errors::Unimplemented("windows of ", attrs.size[channel], " channels do not divide the ",
                                 input.dim_size(channel), " channels of the input");
  }
  PoolGeometry g;
  // The product of the other dimensions may overflow.
  if (input.num_elements() == 0 && output->num_elements() == 0) return g;
  g.batch = input.dim_size(0);
  if (attrs.pools_channels()) {
    g.depth = 1;
    // Channels that come last are treated as columns. Channels that come first are treated as rows;
    // a row then has one column for each position of the image.
    const int d = attrs.channels_last() ? 2 : 1;
    int64_t positions = 1;
    for (int s = 0; s < attrs.spatial_dims(); ++s) {
      positions *= input.dim_size(attrs.first_spatial_dim() + s);
    }
    if (attrs.input_rank() != attrs.rank) {
      return errors::Unimplemented("pooling across the channels of NCHW_VECT_C is not supported");
    }
    if (attrs.channels_last()) {
      g.batch *= positions;
    } else {
      g.in[2] = g.out[2] = positions;
    }
    g.in[d] = input.dim_size(channel);
    g.out[d] = output->dim_size(channel);
    g.size[d] = g.stride[d] = attrs.size[channel];
    return g;
  }
  g.depth = attrs.channels_last() ? input.dim_size(channel) : 1;
  if (!attrs.channels_last()) g.batch *= input.dim_size(channel);
  if (attrs.input_rank() != attrs.rank) g.depth = input.dim_size(4);
  for (int s = 0; s < attrs.spatial_dims(); ++s) {
    const int from = attrs.first_spatial_dim() + s;
    const int to = PoolGeometry::kDims - attrs.spatial_dims() + s;
    GRADFLOW_ASSIGN_OR_RETURN(const WindowCount extent,
                              WindowExtent(attrs, from, input.dim_size(from)));
    g.in[to] = input.dim_size(from);
    g.out[to] = extent.count;
    g.size[to] = attrs.size[from];
    g.stride[to] = attrs.stride[from];
    g.padding[to] = extent.padding;
  }
  return g;
}

absl::Status CheckArgmaxPositions(const PoolGeometry& g) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const int64_t rows = MultiplyWithoutOverflow(g.in[0], g.in[1]);
  const int64_t positions = rows < 0 ? -1 : MultiplyWithoutOverflow(rows, g.in[2]);
  if (positions >= 0 && positions <= kMax) return absl::OkStatus();
  return errors::InvalidArgument("an image has more than ", kMax, " positions");
}

absl::Status CheckArgmaxIndices(const PoolGeometry& g, DataType index, bool include_batch) {
  const int64_t image = g.in[0] * g.in[1] * g.in_row();
  const int64_t count = include_batch ? g.batch * image : image;
  if (index != DT_INT32 || count - 1 <= std::numeric_limits<int32_t>::max()) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("Targmax is int32, which cannot hold the indices of ", count,
                                 " elements");
}

absl::Status ForEachPoolRow(KernelContext& ctx, int64_t rows, double nanoseconds, int64_t bytes,
                            absl::FunctionRef<void(int64_t row, char* scratch)> fn) {
  if (rows == 0) return absl::OkStatus();
  // There are few blocks, so that their scratch memory is small compared to the tensors.
  constexpr int64_t kMaxBlocks = 64;
  const int64_t block = std::max(BlockSizeForCost(nanoseconds), NumBlocks(rows, kMaxBlocks));
  const int64_t stride = PaddedBytes<char>(bytes);
  Tensor scratch;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT8, {NumBlocks(rows, block), stride}, &scratch));
  char* const buffers = static_cast<char*>(scratch.raw_data());
  ParallelFor(ctx, rows, block, [&](int64_t begin, int64_t end) {
    char* const buffer = buffers + begin / block * stride;
    for (int64_t row = begin; row < end && !ctx.ShouldStop(); ++row) fn(row, buffer);
    // Rows may have been written with non-temporal stores.
    hwy::FlushStream();
  });
  return absl::OkStatus();
}

absl::Status ReadPoolSizes(const KernelContext& ctx, int i, PoolAttrs* attrs) {
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector size, ctx.Ints(i, "ksize"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector stride, ctx.Ints(i + 1, "strides"));
  attrs->size.assign(size.begin(), size.end());
  attrs->stride.assign(stride.begin(), stride.end());
  return attrs->CheckSupported();
}

absl::StatusOr<bool> ReadPoolSizes(const ShapeContext& c, int i, PoolAttrs* attrs) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i + 1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const bool has_size, c.IntsFromInput(i, &attrs->size));
  GRADFLOW_ASSIGN_OR_RETURN(const bool has_stride, c.IntsFromInput(i + 1, &attrs->stride));
  if (!has_size || !has_stride) return false;
  GRADFLOW_RETURN_IF_ERROR(attrs->Check());
  return true;
}

}  // namespace gradflow
