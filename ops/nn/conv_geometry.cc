#include "gradflow/ops/nn/conv_geometry.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow {
namespace {

// The limit for strides, dilations and paddings. Their products with sizes are checked.
constexpr int64_t kMaxAttr = std::numeric_limits<int32_t>::max();
// The limit for the span of a window with its padding. Sums of a few spans and a size do not
// overflow.
constexpr int64_t kMaxSpan = int64_t{1} << 60;

template <typename Source>
absl::Status ReadSizes(const Source& source, const ConvAttrs& attrs, const char* name,
                       ConvSizes* sizes) {
  std::vector<int64_t> values;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr(name, &values));
  const size_t rank = static_cast<size_t>(attrs.spatial_dims) + 2;
  const size_t depth = attrs.channels_last ? rank - 1 : 1;
  if (values.empty() && attrs.groups > 0 && absl::string_view(name) == "dilations") {
    return absl::OkStatus();  // The default of Conv.
  }
  if (values.size() != rank || values[0] != 1 || values[depth] != 1) {
    return errors::InvalidArgument(name, " must have ", rank, " elements, 1 for the batch and the ",
                                   "depth, but is [", absl::StrJoin(values, ","), "]");
  }
  const size_t first = attrs.channels_last ? 1 : 2;
  for (size_t d = 0; d + 2 < rank; ++d) {
    const int64_t value = values[first + d];
    if (value < 1 || value > kMaxAttr) {
      return errors::InvalidArgument(name, "[", first + d, "] is ", value, ", expected 1 to ",
                                     kMaxAttr);
    }
    (*sizes)[static_cast<size_t>(attrs.first_spatial()) + d] = value;
  }
  return absl::OkStatus();
}

template <typename Source>
absl::Status ReadPaddings(const Source& source, ConvAttrs* attrs) {
  std::string padding;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("padding", &padding));
  attrs->padding = padding == "SAME"    ? WindowPadding::kSame
                   : padding == "VALID" ? WindowPadding::kValid
                                        : WindowPadding::kExplicit;
  std::vector<int64_t> values;
  absl::Status status = source.GetAttr("explicit_paddings", &values);
  // 3-D convolutions do not have this attribute.
  if (absl::IsNotFound(status)) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(status);
  if (attrs->padding != WindowPadding::kExplicit) {
    if (values.empty()) return absl::OkStatus();
    return errors::InvalidArgument("explicit_paddings must be empty if padding is ", padding,
                                   ", but is [", absl::StrJoin(values, ","), "]");
  }
  if (attrs->spatial_dims != 2) {
    return errors::InvalidArgument("padding is EXPLICIT, expected SAME or VALID for volumes");
  }
  const size_t depth = attrs->channels_last ? 3 : 1;
  if (values.size() != 8 || values[0] != 0 || values[1] != 0 || values[2 * depth] != 0 ||
      values[2 * depth + 1] != 0) {
    return errors::InvalidArgument("explicit_paddings must have 8 elements, 0 for the batch and ",
                                   "the depth, but is [", absl::StrJoin(values, ","), "]");
  }
  const size_t first = attrs->channels_last ? 1 : 2;
  for (size_t d = 0; d < 2; ++d) {
    for (size_t side = 0; side < 2; ++side) {
      const size_t i = 2 * (first + d) + side;
      if (values[i] < 0 || values[i] > kMaxAttr) {
        return errors::InvalidArgument("explicit_paddings[", i, "] is ", values[i],
                                       ", expected 0 to ", kMaxAttr);
      }
      (side == 0 ? attrs->pad_before : attrs->pad_after)[1 + d] = values[i];
    }
  }
  return absl::OkStatus();
}

template <typename Source>
absl::Status ReadAttrs(const Source& source, ConvAttrs* attrs) {
  const absl::string_view op = source.def().op();
  std::string format = "NHWC";
  absl::Status status = source.GetAttr("data_format", &format);
  // Conv3DBackpropInput and Conv3DBackpropFilter do not have this attribute.
  if (!absl::IsNotFound(status)) GRADFLOW_RETURN_IF_ERROR(status);
  attrs->channels_last = format == "NHWC" || format == "NDHWC" || format == "CHANNELS_LAST";
  attrs->depthwise = absl::StartsWith(op, "Depthwise");
  attrs->spatial_dims = absl::StartsWith(op, "Conv3D") ? 3 : 2;
  if (op == "Conv") {
    std::vector<int64_t> strides;
    int64_t batch_dims = 0;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("strides", &strides));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("batch_dims", &batch_dims));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("groups", &attrs->groups));
    if (strides.size() != 4 && strides.size() != 5) {
      return errors::InvalidArgument("strides must have 4 or 5 elements, but is [",
                                     absl::StrJoin(strides, ","), "]");
    }
    if (attrs->groups < 1) {
      return errors::InvalidArgument("groups is ", attrs->groups, ", expected 1 at least");
    }
    attrs->spatial_dims = static_cast<int>(strides.size()) - 2;
    const int max_batch_dims = kMaxDims - attrs->spatial_dims - 1;
    if (batch_dims < 0 || batch_dims > max_batch_dims) {
      return errors::InvalidArgument("batch_dims is ", batch_dims, ", expected 0 to ",
                                     max_batch_dims);
    }
    attrs->batch_dims = static_cast<int>(batch_dims);
  }
  GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, *attrs, "strides", &attrs->stride));
  GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, *attrs, "dilations", &attrs->dilation));
  return ReadPaddings(source, attrs);
}

// Sets the depths and the number of groups.
absl::Status InferDepths(const ConvAttrs& attrs, const PartialTensorShape& input,
                         const PartialTensorShape& filter, ConvGeometry* g) {
  g->in_depth = input.unknown_rank() ? -1 : input.dim_size(attrs.DepthDim());
  if (filter.unknown_rank()) return absl::OkStatus();
  const int64_t filter_in = filter.dim_size(attrs.spatial_dims);
  const int64_t filter_out = filter.dim_size(attrs.spatial_dims + 1);
  if (attrs.depthwise) {
    if (g->in_depth >= 0 && filter_in >= 0 && g->in_depth != filter_in) {
      return errors::InvalidArgument("input has depth ", g->in_depth, ", expected ", filter_in,
                                     " (dimension 2 of filter ", filter.DebugString(), ")");
    }
    g->groups = std::max(g->in_depth, filter_in);
    if (filter_out < 0 || g->groups < 0) return absl::OkStatus();
    g->out_depth = MultiplyWithoutOverflow(g->groups, filter_out);
    if (g->out_depth < 0) {
      return errors::InvalidArgument("the output of filter ", filter.DebugString(),
                                     " has a depth of more than 2^63 - 1");
    }
    return absl::OkStatus();
  }
  g->out_depth = filter_out;
  if (g->in_depth >= 0 && filter_in >= 0) {
    if (g->in_depth == 0 || g->in_depth % filter_in != 0) {
      return errors::InvalidArgument("input has depth ", g->in_depth,
                                     ", expected a positive multiple of ", filter_in,
                                     " (the depth of filter ", filter.DebugString(), ")");
    }
    g->groups = g->in_depth / filter_in;
    if (attrs.groups > 0 && g->groups != attrs.groups) {
      return errors::InvalidArgument("groups is ", attrs.groups, ", expected ", g->groups,
                                     ", as input has depth ", g->in_depth, " and filter ",
                                     filter_in);
    }
  } else if (attrs.groups > 0) {
    g->groups = attrs.groups;
    if (g->in_depth >= 0 && g->in_depth % g->groups != 0) {
      return errors::InvalidArgument("input has depth ", g->in_depth, ", expected a multiple of ",
                                     g->groups, " (groups)");
    }
  }
  if (g->groups > 0 && g->out_depth >= 0 && g->out_depth % g->groups != 0) {
    return errors::InvalidArgument("filter has output depth ", g->out_depth,
                                   ", expected a multiple of ", g->groups, " (the groups)");
  }
  return absl::OkStatus();
}

absl::StatusOr<PartialTensorShape> ShapeFromSizes(const char* name,
                                                  absl::Span<const int64_t> sizes) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < -1) return errors::InvalidArgument(name, "[", d, "] is ", sizes[d]);
  }
  return PartialTensorShape::Make(sizes);
}

// Sets *sizes to the elements of input i; unknown elements are -1. Returns false if their number is
// unknown.
absl::StatusOr<bool> KnownSizes(const ShapeContext& c, int i, std::vector<int64_t>* sizes) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(i, sizes));
  if (known) {
    for (size_t d = 0; d < sizes->size(); ++d) {
      if ((*sizes)[d] >= 0) continue;
      return errors::InvalidArgument(c.input_name(i), "[", d, "] is ", (*sizes)[d],
                                     ", expected at least 0");
    }
    return true;
  }
  const int64_t length = c.Dim(i, 0);
  if (length < 0) return false;
  if (length > kMaxDims) {
    return errors::InvalidArgument(c.input_name(i), " has ", length, " elements, expected at most ",
                                   kMaxDims);
  }
  const PartialTensorShape shape = c.input_as_shape(i);
  if (shape.dims() == length) {
    sizes->assign(shape.dim_sizes().begin(), shape.dim_sizes().end());
  } else {
    sizes->assign(static_cast<size_t>(length), -1);
  }
  return true;
}

bool IsSizes(const ShapeContext& c, int i) {
  return c.input_name(i) == "input_sizes" || c.input_name(i) == "filter_sizes";
}

}  // namespace

absl::Status ConvAttrs::Read(const KernelConstruction& construction) {
  return ReadAttrs(construction, this);
}
absl::Status ConvAttrs::Read(const ShapeContext& context) { return ReadAttrs(context, this); }

bool ConvGeometry::IsPointwise() const {
  for (size_t s = 0; s < kConvSpatial; ++s) {
    if (filter[s] != 1 || stride[s] != 1 || pad[s] != 0 || in[s] != out[s]) return false;
  }
  return true;
}

absl::StatusOr<int64_t> WindowedSize(int64_t size, int64_t filter, int64_t stride, int64_t dilation,
                                     WindowPadding padding, int64_t* pad_before,
                                     int64_t pad_after) {
  if (padding == WindowPadding::kSame && size >= 0 && filter < 0) return NumBlocks(size, stride);
  if (size < 0 || filter < 0) return -1;
  int64_t span = MultiplyWithoutOverflow(std::max<int64_t>(filter - 1, 0), dilation);
  if (span < 0 || span >= kMaxSpan || size >= kMaxSpan) {
    return errors::InvalidArgument("a window of ", filter, " elements of dilation ", dilation,
                                   " on ", size, " elements exceeds the limit of 2^60");
  }
  ++span;
  if (padding == WindowPadding::kSame) {
    const int64_t count = NumBlocks(size, stride);
    *pad_before = std::max<int64_t>(0, (count - 1) * stride + span - size) / 2;
    return count;
  }
  if (padding == WindowPadding::kValid) *pad_before = 0;
  const int64_t padded = size + *pad_before + (padding == WindowPadding::kValid ? 0 : pad_after);
  // As in TensorFlow, the output is empty if the input is less than two strides too small.
  if (padded - span <= -2 * stride) {
    return errors::InvalidArgument("the filter spans ", span, " elements, more than the ", padded,
                                   " of the padded input");
  }
  return padded < span ? 0 : (padded - span) / stride + 1;
}

absl::Status InferConv(const ConvAttrs& attrs, const PartialTensorShape& input,
                       const PartialTensorShape& filter, ConvGeometry* g,
                       PartialTensorShape* output) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("input", input, attrs.input_rank()));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("filter", filter, attrs.filter_rank()));
  if (!filter.unknown_rank()) {
    for (int d = 0; d < filter.dims(); ++d) {
      if (filter.dim_size(d) != 0) continue;
      return errors::InvalidArgument("filter has shape ", filter.DebugString(),
                                     ", expected no dimension of 0");
    }
  }
  *output = PartialTensorShape::UnknownOfRank(attrs.input_rank());
  GRADFLOW_RETURN_IF_ERROR(InferDepths(attrs, input, filter, g));
  output->set_dim(attrs.DepthDim(), g->out_depth);
  g->stride = attrs.stride;
  g->dilation = attrs.dilation;
  g->pad = attrs.pad_before;
  g->batch = 1;
  for (int d = 0; d < attrs.batch_dims; ++d) {
    const int64_t size = input.unknown_rank() ? -1 : input.dim_size(d);
    output->set_dim(d, size);
    g->batch = g->batch < 0 || size < 0 ? -1 : MultiplyWithoutOverflow(g->batch, size);
  }
  for (int s = attrs.first_spatial(); s < kConvSpatial; ++s) {
    const size_t i = static_cast<size_t>(s);
    g->in[i] = input.unknown_rank() ? -1 : input.dim_size(attrs.SpatialDim(s));
    g->filter[i] = filter.unknown_rank() ? -1 : filter.dim_size(attrs.FilterDim(s));
    GRADFLOW_ASSIGN_OR_RETURN(
        g->out[i], WindowedSize(g->in[i], g->filter[i], g->stride[i], g->dilation[i], attrs.padding,
                                &g->pad[i], attrs.pad_after[i]));
    output->set_dim(attrs.SpatialDim(s), g->out[i]);
  }
  return PartialTensorShape::Make(output->dim_sizes()).status();
}

absl::Status InferConvGradient(const ConvAttrs& attrs, const PartialTensorShape& input,
                               const PartialTensorShape& filter,
                               const PartialTensorShape& out_backprop, ConvGeometry* geometry) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("out_backprop", out_backprop, attrs.input_rank()));
  PartialTensorShape output;
  GRADFLOW_RETURN_IF_ERROR(InferConv(attrs, input, filter, geometry, &output));
  if (output.IsCompatibleWith(out_backprop)) return absl::OkStatus();
  return ShapeError("out_backprop", out_backprop, output, "the output of the convolution");
}

absl::StatusOr<PartialTensorShape> InputShapeFromSizes(const ConvAttrs& attrs,
                                                       absl::Span<const int64_t> sizes,
                                                       const PartialTensorShape& filter,
                                                       const PartialTensorShape& out_backprop) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("filter", filter, attrs.filter_rank()));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("out_backprop", out_backprop, attrs.input_rank()));
  const int rank = attrs.input_rank();
  if (static_cast<int>(sizes.size()) == rank) return ShapeFromSizes("input_sizes", sizes);
  const bool short_form = attrs.spatial_dims == 2 && !attrs.depthwise;
  if (!short_form || sizes.size() != 2) {
    return errors::InvalidArgument("input_sizes has ", sizes.size(), " elements, expected ", rank,
                                   short_form ? ", or 2 for rows and columns" : "");
  }
  DimVector dims(static_cast<size_t>(rank), -1);
  if (!out_backprop.unknown_rank()) dims[0] = out_backprop.dim_size(0);
  dims[static_cast<size_t>(attrs.SpatialDim(1))] = sizes[0];
  dims[static_cast<size_t>(attrs.SpatialDim(2))] = sizes[1];
  if (!filter.unknown_rank()) dims[static_cast<size_t>(attrs.DepthDim())] = filter.dim_size(2);
  return ShapeFromSizes("input_sizes", dims);
}

absl::StatusOr<PartialTensorShape> FilterShapeFromSizes(const ConvAttrs& attrs,
                                                        absl::Span<const int64_t> sizes) {
  if (static_cast<int>(sizes.size()) != attrs.filter_rank()) {
    return errors::InvalidArgument("filter_sizes has ", sizes.size(), " elements, expected ",
                                   attrs.filter_rank());
  }
  return ShapeFromSizes("filter_sizes", sizes);
}

absl::Status ConvShape(ShapeContext& c) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  ConvGeometry geometry;
  PartialTensorShape output;
  GRADFLOW_RETURN_IF_ERROR(InferConv(attrs, c.input(0), c.input(1), &geometry, &output));
  c.set_output(0, output);
  return absl::OkStatus();
}

absl::Status ConvBackpropInputShape(ShapeContext& c) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  PartialTensorShape input = c.input(0);
  if (IsSizes(c, 0)) {
    std::vector<int64_t> sizes;
    input = PartialTensorShape::UnknownOfRank(attrs.input_rank());
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, KnownSizes(c, 0, &sizes));
    if (known) {
      GRADFLOW_ASSIGN_OR_RETURN(input, InputShapeFromSizes(attrs, sizes, c.input(1), c.input(2)));
    }
  }
  ConvGeometry geometry;
  GRADFLOW_RETURN_IF_ERROR(InferConvGradient(attrs, input, c.input(1), c.input(2), &geometry));
  if (input.unknown_rank()) input = PartialTensorShape::UnknownOfRank(attrs.input_rank());
  // The batch size of the gradients is the batch size of the input.
  if (!c.input(2).unknown_rank()) {
    for (int d = 0; d < attrs.batch_dims; ++d) {
      if (input.dim_size(d) < 0) input.set_dim(d, c.input(2).dim_size(d));
    }
  }
  GRADFLOW_RETURN_IF_ERROR(PartialTensorShape::Make(input.dim_sizes()).status());
  c.set_output(0, input);
  return absl::OkStatus();
}

absl::Status ConvBackpropFilterShape(ShapeContext& c) {
  ConvAttrs attrs;
  GRADFLOW_RETURN_IF_ERROR(attrs.Read(c));
  PartialTensorShape filter = c.input(1);
  if (IsSizes(c, 1)) {
    std::vector<int64_t> sizes;
    filter = PartialTensorShape::UnknownOfRank(attrs.filter_rank());
    GRADFLOW_ASSIGN_OR_RETURN(const bool known, KnownSizes(c, 1, &sizes));
    if (known) {
      GRADFLOW_ASSIGN_OR_RETURN(filter, FilterShapeFromSizes(attrs, sizes));
    }
  }
  ConvGeometry geometry;
  GRADFLOW_RETURN_IF_ERROR(InferConvGradient(attrs, c.input(0), filter, c.input(2), &geometry));
  if (filter.unknown_rank()) filter = PartialTensorShape::UnknownOfRank(attrs.filter_rank());
  c.set_output(0, filter);
  return absl::OkStatus();
}

}  // namespace gradflow
