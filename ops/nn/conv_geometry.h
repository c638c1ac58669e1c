// Attributes and sizes of convolutions, for shape functions and kernels.
//
// Every convolution is treated as 3-D: the input is [batch, planes, rows, columns, depth], the
// filter [planes, rows, columns, depth / groups, output depth]. Images are volumes with one plane.
// In a depthwise convolution, every channel is a group: the filter [rows, columns, depth,
// multiplier] has the same elements as a filter [1, rows, columns, 1, depth * multiplier].
#ifndef GRADFLOW_OPS_NN_CONV_GEOMETRY_H_
#define GRADFLOW_OPS_NN_CONV_GEOMETRY_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

inline constexpr int kConvSpatial = 3;
using ConvSizes = std::array<int64_t, kConvSpatial>;

enum class WindowPadding { kValid, kSame, kExplicit };

// The attributes of a node. 2-D convolutions use elements 1 and 2 of ConvSizes.
struct ConvAttrs {
  int spatial_dims = 2;
  // The number of batch dimensions of the input.
  int batch_dims = 1;
  bool channels_last = true;
  bool depthwise = false;
  // 0 if the depths determine the number of groups.
  int64_t groups = 0;
  WindowPadding padding = WindowPadding::kValid;
  ConvSizes stride = {1, 1, 1};
  ConvSizes dilation = {1, 1, 1};
  ConvSizes pad_before = {};
  ConvSizes pad_after = {};

  // Reads the attributes of any convolution op.
  absl::Status Read(const KernelConstruction& construction);
  absl::Status Read(const ShapeContext& context);

  int input_rank() const { return batch_dims + spatial_dims + 1; }
  int filter_rank() const { return spatial_dims + 2; }
  // The dimension of an input or output (SpatialDim) or a filter (FilterDim) with spatial size s.
  int SpatialDim(int s) const { return batch_dims + (channels_last ? 0 : 1) + FilterDim(s); }
  int FilterDim(int s) const { return s - (kConvSpatial - spatial_dims); }
  int DepthDim() const { return channels_last ? input_rank() - 1 : batch_dims; }
  int first_spatial() const { return kConvSpatial - spatial_dims; }
};

// The sizes of a convolution. In shape functions, -1 is an unknown size.
struct ConvGeometry {
  int64_t batch = -1;
  int64_t groups = -1;
  int64_t in_depth = -1;
  int64_t out_depth = -1;
  ConvSizes in = {1, 1, 1};
  ConvSizes filter = {1, 1, 1};
  ConvSizes out = {1, 1, 1};
  ConvSizes stride = {1, 1, 1};
  ConvSizes dilation = {1, 1, 1};
  // Padding before the first row, column or plane. The padding after the last one follows from the
  // sizes.
  ConvSizes pad = {};

  int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  int64_t in_volume() const { return in[0] * in[1] * in[2]; }
  int64_t out_volume() const { return out[0] * out[1] * out[2]; }
  int64_t group_in_depth() const { return in_depth / groups; }
  int64_t group_out_depth() const { return out_depth / groups; }
  // The number of multiplications. A double, because the number may exceed int64.
  double products() const {
    return static_cast<double>(batch) * static_cast<double>(out_volume()) *
           static_cast<double>(taps()) * static_cast<double>(group_in_depth()) *
           static_cast<double>(out_depth);
  }
  // True if each output position reads only the input position with the same coordinates.
  bool IsPointwise() const;

  friend bool operator==(const ConvGeometry& a, const ConvGeometry& b) {
    const auto members = [](const ConvGeometry& g) {
      return std::tie(g.batch, g.groups, g.in_depth, g.out_depth, g.in, g.filter, g.out, g.stride,
                      g.dilation, g.pad);
    };
    return members(a) == members(b);
  }
};

// Returns the number of output positions of a window along a dimension of `size` elements. Sets
// *pad_before if the padding determines it. Unknown sizes are -1. Returns INVALID_ARGUMENT if the
// output size would be negative. `pad_after` is used for explicit padding.
// REQUIRES: stride > 0, dilation > 0
absl::StatusOr<int64_t> WindowedSize(int64_t size, int64_t filter, int64_t stride, int64_t dilation,
                                     WindowPadding padding, int64_t* pad_before, int64_t pad_after);

// Checks the shapes of a convolution. Sets *geometry, and *output to the shape of the output, if
// they are known. Error messages call the inputs "input" and "filter".
absl::Status InferConv(const ConvAttrs& attrs, const PartialTensorShape& input,
                       const PartialTensorShape& filter, ConvGeometry* geometry,
                       PartialTensorShape* output);
// InferConv() for a gradient: also checks the shape of the input `out_backprop`.
absl::Status InferConvGradient(const ConvAttrs& attrs, const PartialTensorShape& input,
                               const PartialTensorShape& filter,
                               const PartialTensorShape& out_backprop, ConvGeometry* geometry);

// Returns the shape that the elements of `sizes` describe. For Conv2DBackpropInput, `sizes` may
// have only the spatial dimensions. Unknown elements are -1.
absl::StatusOr<PartialTensorShape> InputShapeFromSizes(const ConvAttrs& attrs,
                                                       absl::Span<const int64_t> sizes,
                                                       const PartialTensorShape& filter,
                                                       const PartialTensorShape& out_backprop);
absl::StatusOr<PartialTensorShape> FilterShapeFromSizes(const ConvAttrs& attrs,
                                                        absl::Span<const int64_t> sizes);

// The shape functions of convolutions and their gradients.
absl::Status ConvShape(ShapeContext& c);
// Input 0 is either a vector, the sizes of the convolution's input, or a tensor of the same shape.
absl::Status ConvBackpropInputShape(ShapeContext& c);
// Input 1 is either a vector, the sizes of the convolution's filter, or a tensor of the same shape.
absl::Status ConvBackpropFilterShape(ShapeContext& c);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CONV_GEOMETRY_H_
