// The attributes and sizes of convolutions, which their shape functions and kernels share.
//
// Every convolution is one of volumes: [batch, planes, rows, columns, depth], with a filter
// [planes, rows, columns, depth / groups, output depth]. Images are volumes of one plane. A
// depthwise convolution has as many groups as channels: its filter [rows, columns, depth,
// multiplier] has the elements of one of [1, rows, columns, 1, depth * multiplier].
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

// The attributes of a node. Those of images are in elements 1 and 2 of sizes.
struct ConvAttrs {
  int spatial_dims = 2;
  // The dimensions of the input before the spatial ones and the depth.
  int batch_dims = 1;
  bool channels_last = true;
  bool depthwise = false;
  // 0 for as many as the depths imply.
  int64_t groups = 0;
  WindowPadding padding = WindowPadding::kValid;
  ConvSizes stride = {1, 1, 1};
  ConvSizes dilation = {1, 1, 1};
  ConvSizes pad_before = {};
  ConvSizes pad_after = {};

  // Read the attributes of any op of the families of convolutions.
  absl::Status Read(const KernelConstruction& construction);
  absl::Status Read(const ShapeContext& context);

  int input_rank() const { return batch_dims + spatial_dims + 1; }
  int filter_rank() const { return spatial_dims + 2; }
  // The dimension of an input or output, and of a filter, that has spatial size s.
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
  // Rows of zeros before the first row of the input. Those behind the last follow from the sizes.
  ConvSizes pad = {};

  int64_t taps() const { return filter[0] * filter[1] * filter[2]; }
  int64_t in_volume() const { return in[0] * in[1] * in[2]; }
  int64_t out_volume() const { return out[0] * out[1] * out[2]; }
  int64_t group_in_depth() const { return in_depth / groups; }
  int64_t group_out_depth() const { return out_depth / groups; }
  // Multiplications, in double, as the number may exceed int64.
  double products() const {
    return static_cast<double>(batch) * static_cast<double>(out_volume()) *
           static_cast<double>(taps()) * static_cast<double>(group_in_depth()) *
           static_cast<double>(out_depth);
  }
  // True if output positions are input positions and each reads only its own.
  bool IsPointwise() const;

  friend bool operator==(const ConvGeometry& a, const ConvGeometry& b) {
    const auto members = [](const ConvGeometry& g) {
      return std::tie(g.batch, g.groups, g.in_depth, g.out_depth, g.in, g.filter, g.out, g.stride,
                      g.dilation, g.pad);
    };
    return members(a) == members(b);
  }
};

// Returns the output positions of windows along a dimension of `size` elements, and sets
// *pad_before, if the padding determines it. Unknown sizes are -1. Returns INVALID_ARGUMENT if
// there are fewer than none. `pad_after` is for explicit padding. REQUIRES: stride > 0, dilation >
// 0
absl::StatusOr<int64_t> WindowedSize(int64_t size, int64_t filter, int64_t stride, int64_t dilation,
                                     WindowPadding padding, int64_t* pad_before, int64_t pad_after);

// Checks the shapes of a convolution and sets *geometry as far as known. *output is the shape of
// its output. The names are those of errors.
absl::Status InferConv(const ConvAttrs& attrs, const PartialTensorShape& input,
                       const PartialTensorShape& filter, ConvGeometry* geometry,
                       PartialTensorShape* output);
// Checks the shapes of a gradient, too.
absl::Status InferConvGradient(const ConvAttrs& attrs, const PartialTensorShape& input,
                               const PartialTensorShape& filter,
                               const PartialTensorShape& out_backprop, ConvGeometry* geometry);

// Returns the shape that the elements of `sizes` ask for, which may be those of the spatial
// dimensions alone for Conv2DBackpropInput. Unknown elements are -1.
absl::StatusOr<PartialTensorShape> InputShapeFromSizes(const ConvAttrs& attrs,
                                                       absl::Span<const int64_t> sizes,
                                                       const PartialTensorShape& filter,
                                                       const PartialTensorShape& out_backprop);
absl::StatusOr<PartialTensorShape> FilterShapeFromSizes(const ConvAttrs& attrs,
                                                        absl::Span<const int64_t> sizes);

// The shape functions of convolutions and of their gradients.
absl::Status ConvShape(ShapeContext& c);
// Input 0 is the size of the input, a vector, or has its shape.
absl::Status ConvBackpropInputShape(ShapeContext& c);
// Input 1 is the size of the filter, a vector, or has its shape.
absl::Status ConvBackpropFilterShape(ShapeContext& c);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CONV_GEOMETRY_H_
