// TensorFormat: the order of the dimensions of images, "NHWC" or "NCHW".
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_

#include <string>

#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {

enum TensorFormat {
  // Batch, spatial dimensions, channels: "NHWC" for two spatial dimensions.
  FORMAT_NHWC = 0,
  FORMAT_NCHW = 1,
};

// Parses "NHWC", "NCHW", "NDHWC" or "NCDHW". Returns false for other texts.
inline bool FormatFromString(StringPiece text, TensorFormat* format) {
  if (text == "NHWC" || text == "NDHWC") return *format = FORMAT_NHWC, true;
  if (text == "NCHW" || text == "NCDHW") return *format = FORMAT_NCHW, true;
  return false;
}
inline std::string ToString(TensorFormat format) { return format == FORMAT_NHWC ? "NHWC" : "NCHW"; }
// For REGISTER_OP.
inline std::string GetConvnetDataFormatAttrString() {
  return "data_format: { 'NHWC', 'NCHW' } = 'NHWC' ";
}

inline int GetTensorSpatialDims(int num_dims, TensorFormat) { return num_dims - 2; }
inline int GetTensorDimsFromSpatialDims(int num_spatial_dims, TensorFormat) {
  return num_spatial_dims + 2;
}
inline int GetTensorBatchDimIndex(int, TensorFormat) { return 0; }
inline int GetTensorFeatureDimIndex(int num_dims, TensorFormat format) {
  return format == FORMAT_NHWC ? num_dims - 1 : 1;
}
// Aborts if there is no such dimension.
inline int GetTensorSpatialDimIndex(int num_dims, TensorFormat format, int spatial_dim) {
  CHECK(spatial_dim >= 0 && spatial_dim < GetTensorSpatialDims(num_dims, format))
      << "spatial dimension " << spatial_dim << " of " << num_dims << " dimensions";
  return spatial_dim + (format == FORMAT_NHWC ? 1 : 2);
}

// Returns the index of dimension 'N', 'C', 'H' or 'W' ('0', '1', ... for spatial dimensions) of a
// tensor with the given number of spatial dimensions. Aborts for other letters.
template <int NUM_SPATIAL_DIMS>
int GetTensorDimIndex(TensorFormat format, char dimension) {
  constexpr int kDims = NUM_SPATIAL_DIMS + 2;
  switch (dimension) {
    case 'N':
      return GetTensorBatchDimIndex(kDims, format);
    case 'C':
      return GetTensorFeatureDimIndex(kDims, format);
    case '0':
      return GetTensorSpatialDimIndex(kDims, format, 0);
    case '1':
      return GetTensorSpatialDimIndex(kDims, format, 1);
    case '2':
      return GetTensorSpatialDimIndex(kDims, format, 2);
    case 'D':
      return GetTensorSpatialDimIndex(kDims, format, NUM_SPATIAL_DIMS - 3);
    case 'H':
      return GetTensorSpatialDimIndex(kDims, format, NUM_SPATIAL_DIMS - 2);
    case 'W':
      return GetTensorSpatialDimIndex(kDims, format, NUM_SPATIAL_DIMS - 1);
    default:
      LOG(FATAL) << "Invalid dimension: " << dimension;
  }
}
inline int GetTensorDimIndex(TensorFormat format, char dimension) {
  return GetTensorDimIndex<2>(format, dimension);
}
inline int GetTensorDimIndex(TensorFormat format, char dimension, int num_total_dims) {
  switch (num_total_dims) {
    case 3:
      return GetTensorDimIndex<1>(format, dimension);
    case 4:
      return GetTensorDimIndex<2>(format, dimension);
    case 5:
      return GetTensorDimIndex<3>(format, dimension);
    default:
      LOG(FATAL) << "Invalid number of dimensions: " << num_total_dims;
  }
}

// Returns the size of a dimension.
inline int64 GetTensorDim(absl::Span<const int64> sizes, TensorFormat format, char dimension) {
  const int i = GetTensorDimIndex(format, dimension, static_cast<int>(sizes.size()));
  return sizes[i];
}
inline int64 GetTensorDim(const TensorShape& shape, TensorFormat format, char dimension) {
  return GetTensorDim(shape.dim_sizes(), format, dimension);
}
inline int64 GetTensorDim(const Tensor& tensor, TensorFormat format, char dimension) {
  return GetTensorDim(tensor.shape(), format, dimension);
}

// Returns the shape of a batch of images.
inline TensorShape ShapeFromFormat(TensorFormat format, int64 N, absl::Span<const int64> spatial,
                                   int64 C) {
  TensorShape shape({N});
  if (format == FORMAT_NCHW) shape.AddDim(C);
  for (const int64 size : spatial) shape.AddDim(size);
  if (format == FORMAT_NHWC) shape.AddDim(C);
  return shape;
}
inline TensorShape ShapeFromFormat(TensorFormat format, int64 N, int64 H, int64 W, int64 C) {
  const int64 spatial[] = {H, W};
  return ShapeFromFormat(format, N, spatial, C);
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_
