// TensorFormat: the order of image dimensions, such as "NHWC". FilterTensorFormat: the order of
// filter dimensions, such as "HWIO". gradflow's kernels take NHWC and NCHW images, and HWIO
// filters.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_
#define GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/inlined_vector.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

enum TensorFormat {
  // Batch, spatial dimensions, channels: "NHWC" for two spatial dimensions.
  FORMAT_NHWC = 0,
  FORMAT_NCHW = 1,
  // The last dimension holds 4 channels, or 4 columns.
  FORMAT_NCHW_VECT_C = 2,
  FORMAT_NHWC_VECT_W = 3,
  FORMAT_HWNC = 4,
  FORMAT_HWCN = 5,
};

enum FilterTensorFormat {
  // Spatial dimensions, input channels, output channels.
  FORMAT_HWIO = 0,
  FORMAT_OIHW = 1,
  FORMAT_OHWI = 2,
  // The last dimension holds 4 input channels.
  FORMAT_OIHW_VECT_I = 3,
};

namespace compat_internal {

// The order of the dimensions. '*' stands for the spatial dimensions, 'V' for the inner vector.
struct Layout {
  // The names for two spatial dimensions and, if it exists, for three.
  const char* name;
  const char* name_3d;
  const char* order;
};
inline constexpr Layout kTensorLayouts[] = {
    {"NHWC", "NDHWC", "N*C"},         {"NCHW", "NCDHW", "NC*"}, {"NCHW_VECT_C", nullptr, "NC*V"},
    {"NHWC_VECT_W", nullptr, "N*CV"}, {"HWNC", nullptr, "*NC"}, {"HWCN", nullptr, "*CN"},
};
inline constexpr Layout kFilterLayouts[] = {
    {"HWIO", "DHWIO", "*IO"},
    {"OIHW", "OIDHW", "OI*"},
    {"OHWI", "ODHWI", "O*I"},
    {"OIHW_VECT_I", nullptr, "OI*V"},
};
inline const Layout& LayoutOf(TensorFormat format) {
  CHECK(format >= FORMAT_NHWC && format <= FORMAT_HWCN) << "Unknown format " << format;
  return kTensorLayouts[format];
}
inline const Layout& LayoutOf(FilterTensorFormat format) {
  CHECK(format >= FORMAT_HWIO && format <= FORMAT_OIHW_VECT_I) << "Unknown format " << format;
  return kFilterLayouts[format];
}
template <typename Format, int N>
bool FormatFromString(const Layout (&layouts)[N], absl::string_view text, Format* format) {
  for (int i = 0; i < N; ++i) {
    if (text == layouts[i].name || (layouts[i].name_3d != nullptr && text == layouts[i].name_3d)) {
      return *format = static_cast<Format>(i), true;
    }
  }
  return false;
}

// Returns the number of non-spatial dimensions.
template <typename Format>
int OtherDims(Format format) {
  return static_cast<int>(std::char_traits<char>::length(LayoutOf(format).order)) - 1;
}
// Returns the index of a dimension: a letter of the order, 'D', 'H' or 'W', or the number of a
// spatial dimension ('0', '1', ...). Aborts if the dimension does not exist.
template <typename Format>
int DimIndex(Format format, int num_spatial_dims, char dimension) {
  int spatial = -1;
  if (dimension >= '0' && dimension <= '9') spatial = dimension - '0';
  if (dimension == 'W') spatial = num_spatial_dims - 1;
  if (dimension == 'H') spatial = num_spatial_dims - 2;
  if (dimension == 'D') spatial = num_spatial_dims - 3;
  int index = 0;
  for (const char* letter = LayoutOf(format).order; *letter != 0; ++letter) {
    if (*letter == '*') {
      if (spatial >= 0 && spatial < num_spatial_dims) return index + spatial;
      index += num_spatial_dims;
    } else {
      if (*letter == dimension) return index;
      ++index;
    }
  }
  LOG(FATAL) << "Invalid dimension " << dimension << " of " << LayoutOf(format).name << " with "
             << num_spatial_dims << " spatial dimensions";
}
template <typename Format>
int DimIndexOf(Format format, int num_dims, char dimension) {
  CHECK(num_dims >= OtherDims(format))
      << num_dims << " dimensions in format " << LayoutOf(format).name;
  return DimIndex(format, num_dims - OtherDims(format), dimension);
}

}  // namespace compat_internal

// Parse names, including names for three spatial dimensions ("NDHWC"). Return false for other text.
inline bool FormatFromString(absl::string_view text, TensorFormat* format) {
  return compat_internal::FormatFromString(compat_internal::kTensorLayouts, text, format);
}
inline bool FilterFormatFromString(absl::string_view text, FilterTensorFormat* format) {
  return compat_internal::FormatFromString(compat_internal::kFilterLayouts, text, format);
}
inline std::string ToString(TensorFormat format) { return compat_internal::LayoutOf(format).name; }
inline std::string ToString(FilterTensorFormat format) {
  return compat_internal::LayoutOf(format).name;
}
// For REGISTER_OP.
inline std::string GetConvnetDataFormatAttrString() {
  return "data_format: { 'NHWC', 'NCHW' } = 'NHWC' ";
}
inline std::string GetConvnet3dDataFormatAttrString() {
  return "data_format: { 'NDHWC', 'NCDHW' } = 'NDHWC' ";
}
inline std::string GetConvnetDataFormat2D3DAttrString() {
  return "data_format: { 'NHWC', 'NCHW', 'NDHWC', 'NCDHW' } = 'NHWC' ";
}
inline std::string GetConvnetFilterFormatAttrString() {
  return "filter_format: { 'HWIO', 'OIHW' } = 'HWIO' ";
}
inline std::string GetConvnet3dFilterFormatAttrString() {
  return "filter_format: { 'DHWIO', 'OIDHW' } = 'DHWIO' ";
}

// ---- Images ----

inline int GetTensorSpatialDims(int num_dims, TensorFormat format) {
  return num_dims - compat_internal::OtherDims(format);
}
inline int GetTensorDimsFromSpatialDims(int num_spatial_dims, TensorFormat format) {
  return num_spatial_dims + compat_internal::OtherDims(format);
}
inline int GetTensorBatchDimIndex(int num_dims, TensorFormat format) {
  return compat_internal::DimIndexOf(format, num_dims, 'N');
}
inline int GetTensorFeatureDimIndex(int num_dims, TensorFormat format) {
  return compat_internal::DimIndexOf(format, num_dims, 'C');
}
inline int GetTensorInnerFeatureDimIndex(int num_dims, TensorFormat) { return num_dims - 1; }
inline int GetTensorInnerWidthDimIndex(int num_dims, TensorFormat) { return num_dims - 1; }
// Aborts if the dimension does not exist.
inline int GetTensorSpatialDimIndex(int num_dims, TensorFormat format, int spatial_dim) {
  CHECK(spatial_dim >= 0 && spatial_dim < GetTensorSpatialDims(num_dims, format))
      << "spatial dimension " << spatial_dim << " of " << num_dims << " dimensions";
  return compat_internal::DimIndexOf(format, num_dims, static_cast<char>('0' + spatial_dim));
}

// Return the index of dimension 'N', 'C', 'D', 'H' or 'W' ('0', '1', ... for spatial dimensions).
// The tensor has the given number of spatial dimensions, or of all dimensions. Abort for other
// letters.
template <int NUM_SPATIAL_DIMS>
int GetTensorDimIndex(TensorFormat format, char dimension) {
  return compat_internal::DimIndex(format, NUM_SPATIAL_DIMS, dimension);
}
inline int GetTensorDimIndex(TensorFormat format, char dimension) {
  return GetTensorDimIndex<2>(format, dimension);
}
inline int GetTensorDimIndex(TensorFormat format, char dimension, int num_total_dims) {
  return compat_internal::DimIndexOf(format, num_total_dims, dimension);
}

// Return the size of a dimension.
inline int64 GetTensorDim(absl::Span<const int64> sizes, TensorFormat format, char dimension) {
  const int i = GetTensorDimIndex(format, dimension, static_cast<int>(sizes.size()));
  return sizes[i];
}
template <typename T>
T GetTensorDim(const std::vector<T>& sizes, TensorFormat format, char dimension) {
  const int i = GetTensorDimIndex(format, dimension, static_cast<int>(sizes.size()));
  return sizes[i];
}
inline int64 GetTensorDim(const TensorShape& shape, TensorFormat format, char dimension) {
  return GetTensorDim(shape.dim_sizes(), format, dimension);
}
inline int64 GetTensorDim(const Tensor& tensor, TensorFormat format, char dimension) {
  return GetTensorDim(tensor.shape(), format, dimension);
}
// Stores the explicit padding of a dimension. REQUIRES: `explicit_paddings` has two numbers per
// dimension
inline void GetExplicitPaddingForDim(const std::vector<int64_t>& explicit_paddings,
                                     TensorFormat format, char dimension, int64_t* padding_before,
                                     int64_t* padding_after) {
  const int i =
      GetTensorDimIndex(format, dimension, static_cast<int>(explicit_paddings.size() / 2));
  *padding_before = explicit_paddings[2 * i];
  *padding_after = explicit_paddings[2 * i + 1];
}

// ---- Filters ----

inline int GetFilterTensorSpatialDims(int num_dims, FilterTensorFormat format) {
  return num_dims - compat_internal::OtherDims(format);
}
inline int GetFilterTensorDimsFromSpatialDims(int num_spatial_dims, FilterTensorFormat format) {
  return num_spatial_dims + compat_internal::OtherDims(format);
}
inline int GetFilterTensorInputChannelsDimIndex(int num_dims, FilterTensorFormat format) {
  return compat_internal::DimIndexOf(format, num_dims, 'I');
}
inline int GetFilterTensorOutputChannelsDimIndex(int num_dims, FilterTensorFormat format) {
  return compat_internal::DimIndexOf(format, num_dims, 'O');
}
// Returns the index of the inner vector of 4 input channels in FORMAT_OIHW_VECT_I.
inline int GetFilterTensorInnerInputChannelsDimIndex(int num_dims, FilterTensorFormat) {
  return num_dims - 1;
}
// Aborts if the dimension does not exist.
inline int GetFilterTensorSpatialDimIndex(int num_dims, FilterTensorFormat format, int dim) {
  CHECK(dim >= 0 && dim < GetFilterTensorSpatialDims(num_dims, format))
      << "spatial dimension " << dim << " of " << num_dims << " dimensions";
  return compat_internal::DimIndexOf(format, num_dims, static_cast<char>('0' + dim));
}
// Returns the index of dimension 'I', 'O', 'D', 'H' or 'W'.
template <int NUM_SPATIAL_DIMS>
int GetFilterDimIndex(FilterTensorFormat format, char dimension) {
  return compat_internal::DimIndex(format, NUM_SPATIAL_DIMS, dimension);
}
inline int64 GetFilterDim(absl::Span<const int64> sizes, FilterTensorFormat format,
                          char dimension) {
  return sizes[compat_internal::DimIndexOf(format, static_cast<int>(sizes.size()), dimension)];
}
inline int64 GetFilterDim(const TensorShape& shape, FilterTensorFormat format, char dimension) {
  return GetFilterDim(shape.dim_sizes(), format, dimension);
}
inline int64 GetFilterDim(const Tensor& tensor, FilterTensorFormat format, char dimension) {
  return GetFilterDim(tensor.shape(), format, dimension);
}

// ---- Shapes ----

namespace compat_internal {

// Returns the dimension that the inner vector splits by a factor of 4, or 0.
inline char SplitOf(TensorFormat format) {
  return format == FORMAT_NCHW_VECT_C ? 'C' : format == FORMAT_NHWC_VECT_W ? 'W' : '\0';
}
inline char SplitOf(FilterTensorFormat format) { return format == FORMAT_OIHW_VECT_I ? 'I' : '\0'; }

// Stores the shape with these sizes: `spatial` for the spatial dimensions, and `first` and `second`
// for the two letters.
template <typename Format>
absl::Status MakeShape(Format format, const char (&letters)[3], absl::Span<const int64> spatial,
                       int64 first, int64 second, TensorShape* shape) {
  const int num_spatial = static_cast<int>(spatial.size());
  gtl::InlinedVector<int64, 6> sizes(static_cast<size_t>(num_spatial + OtherDims(format)), 4);
  for (int i = 0; i < num_spatial; ++i) {
    sizes[DimIndex(format, num_spatial, static_cast<char>('0' + i))] = spatial[i];
  }
  sizes[DimIndex(format, num_spatial, letters[0])] = first;
  sizes[DimIndex(format, num_spatial, letters[1])] = second;
  if (const char split = SplitOf(format); split != 0) {
    int64& size = sizes[DimIndex(format, num_spatial, split)];
    if (size % 4 != 0) {
      return errors::InvalidArgument("dimension ", std::string(1, split), " of ",
                                     LayoutOf(format).name, " is ", size,
                                     ", expected a multiple of 4");
    }
    size /= 4;
  }
  return TensorShapeUtils::MakeShape(sizes, shape);
}

// Converts the shape `source` from format `from` to format `to`.
template <typename Format>
absl::Status ConvertShape(Format to, const TensorShape& source, Format from,
                          const char (&letters)[3], TensorShape* shape) {
  if (to == from) {
    *shape = source;
    return absl::OkStatus();
  }
  // Digits name spatial dimensions, which limits their number.
  constexpr int kMaxSpatial = 10;
  constexpr int64 kMaxSplit = std::numeric_limits<int64>::max() / 4;
  const int num_spatial = source.dims() - OtherDims(from);
  const int min_spatial = SplitOf(from) == 'W' || SplitOf(to) == 'W' ? 1 : 0;
  const char split = SplitOf(from);
  if (num_spatial < min_spatial || num_spatial > kMaxSpatial ||
      (split != 0 && (source.dim_size(source.dims() - 1) != 4 ||
                      source.dim_size(DimIndex(from, num_spatial, split)) > kMaxSplit))) {
    return errors::InvalidArgument("a shape ", source.DebugString(), " is not ",
                                   LayoutOf(from).name);
  }
  const auto size = [&](char dimension) {
    const int i = DimIndex(from, num_spatial, dimension);
    const bool is_split = split != 0 && DimIndex(from, num_spatial, split) == i;
    return source.dim_size(i) * (is_split ? 4 : 1);
  };
  gtl::InlinedVector<int64, 6> spatial;
  for (int i = 0; i < num_spatial; ++i) spatial.push_back(size(static_cast<char>('0' + i)));
  return MakeShape(to, letters, spatial, size(letters[0]), size(letters[1]), shape);
}

}  // namespace compat_internal

// Return INVALID_ARGUMENT if a size is negative, or not a multiple of 4 where the format requires
// it.
inline absl::Status ShapeFromFormatWithStatus(TensorFormat format, int64 N,
                                              absl::Span<const int64> spatial, int64 C,
                                              TensorShape* shape) {
  return compat_internal::MakeShape(format, "NC", spatial, N, C, shape);
}
inline absl::Status ShapeFromFormatWithStatus(TensorFormat format, int64 N, int64 H, int64 W,
                                              int64 C, TensorShape* shape) {
  const int64 spatial[] = {H, W};
  return ShapeFromFormatWithStatus(format, N, spatial, C, shape);
}
inline absl::Status ShapeFromFormatWithStatus(TensorFormat dst_format, const TensorShape& src_shape,
                                              TensorFormat src_format, TensorShape* shape) {
  return compat_internal::ConvertShape(dst_format, src_shape, src_format, "NC", shape);
}
// Return the shape of a batch of images. Abort if it is invalid.
inline TensorShape ShapeFromFormat(TensorFormat format, int64 N, absl::Span<const int64> spatial,
                                   int64 C) {
  TensorShape shape;
  TF_CHECK_OK(ShapeFromFormatWithStatus(format, N, spatial, C, &shape));
  return shape;
}
inline TensorShape ShapeFromFormat(TensorFormat format, int64 N, int64 H, int64 W, int64 C) {
  const int64 spatial[] = {H, W};
  return ShapeFromFormat(format, N, spatial, C);
}
inline TensorShape ShapeFromFormat(TensorFormat dst_format, const TensorShape& src_shape,
                                   TensorFormat src_format) {
  TensorShape shape;
  TF_CHECK_OK(ShapeFromFormatWithStatus(dst_format, src_shape, src_format, &shape));
  return shape;
}
// Return the shape of a filter. Abort if it is invalid.
inline TensorShape ShapeFromFilterTensorFormat(FilterTensorFormat format,
                                               absl::Span<const int64> spatial, int64 I, int64 O) {
  TensorShape shape;
  TF_CHECK_OK(compat_internal::MakeShape(format, "IO", spatial, I, O, &shape));
  return shape;
}
inline TensorShape ShapeFromFilterTensorFormat(FilterTensorFormat format, int64 H, int64 W, int64 I,
                                               int64 O) {
  const int64 spatial[] = {H, W};
  return ShapeFromFilterTensorFormat(format, spatial, I, O);
}
inline TensorShape ShapeFromFilterFormat(FilterTensorFormat dst_filter_format,
                                         const TensorShape& src_shape,
                                         FilterTensorFormat src_filter_format) {
  TensorShape shape;
  TF_CHECK_OK(
      compat_internal::ConvertShape(dst_filter_format, src_shape, src_filter_format, "IO", &shape));
  return shape;
}

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_TENSOR_FORMAT_H_
