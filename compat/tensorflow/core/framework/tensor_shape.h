// TensorShape, PartialTensorShape and TensorShapeUtils.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/tensor_shape.h"
#include "tensorflow/core/framework/tensor_types.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace gradflow {

// For LOG, CHECK_EQ and GoogleTest.
inline std::ostream& operator<<(std::ostream& os, const TensorShape& shape) {
  return os << shape.DebugString();
}
inline std::ostream& operator<<(std::ostream& os, const PartialTensorShape& shape) {
  return os << shape.DebugString();
}

namespace internal {

#ifdef GRADFLOW_EIGEN_VIEWS
// TensorShape::AsEigenDSizes().
template <int N, typename Index>
struct EigenSizes {
  using Sizes = Eigen::DSizes<Index, N>;

  static Sizes Make(const TensorShape& shape) {
    Sizes sizes;
    TF_CHECK_OK(Make(shape, &sizes));
    return sizes;
  }
  static Sizes MakePadded(const TensorShape& shape) {
    Sizes sizes;
    TF_CHECK_OK(MakePadded(shape, &sizes));
    return sizes;
  }
  static absl::Status Make(const TensorShape& shape, Sizes* sizes) {
    if (shape.dims() == N) return MakePadded(shape, sizes);
    return absl::InternalError(absl::StrCat(
        "Asking for tensor of ", N, " dimensions from a tensor of ", shape.dims(), " dimensions"));
  }
  static absl::Status MakePadded(const TensorShape& shape, Sizes* sizes) {
    if (shape.dims() > N) {
      return absl::InternalError(absl::StrCat("Asking for tensor of at most ", N,
                                              " dimensions from a tensor of ", shape.dims(),
                                              " dimensions"));
    }
    for (int d = 0; d < N; ++d) {
      (*sizes)[d] = d < shape.dims() ? static_cast<Index>(shape.dim_size(d)) : 1;
    }
    return absl::OkStatus();
  }
};
#endif

}  // namespace internal
}  // namespace gradflow

namespace tensorflow {

using gradflow::PartialTensorShape;
using gradflow::TensorShape;
template <class Shape>
using TensorShapeBase = gradflow::internal::ShapeInterface<Shape>;
template <class Shape>
using TensorShapeIter = typename TensorShapeBase<Shape>::Iterator;
// A dimension, in a loop over a shape.
using TensorShapeDim = gradflow::TensorShape::Dim;

class TensorShapeUtils {
 public:
  static bool IsScalar(const TensorShape& shape) { return shape.dims() == 0; }
  static bool IsVector(const TensorShape& shape) { return shape.dims() == 1; }
  static bool IsVectorOrHigher(const TensorShape& shape) { return shape.dims() >= 1; }
  static bool IsMatrix(const TensorShape& shape) { return shape.dims() == 2; }
  static bool IsMatrixOrHigher(const TensorShape& shape) { return shape.dims() >= 2; }
  static bool IsSquareMatrix(const TensorShape& shape) {
    return shape.dims() == 2 && shape.dim_size(0) == shape.dim_size(1);
  }
  static bool StartsWith(const TensorShape& shape, const TensorShape& prefix);
  static bool EndsWith(const TensorShape& shape, const TensorShape& suffix);
  // Return INVALID_ARGUMENT if the dimensions are invalid.
  static absl::Status MakeShape(gtl::ArraySlice<int32> dims, TensorShape* out);
  static absl::Status MakeShape(gtl::ArraySlice<int64> dims, TensorShape* out);
  static absl::Status MakeShape(const int32* dims, int64 n, TensorShape* out);
  static absl::Status MakeShape(const int64* dims, int64 n, TensorShape* out);
  static absl::Status MakeShape(gtl::ArraySlice<int32> dims, PartialTensorShape* out);
  static absl::Status MakeShape(gtl::ArraySlice<int64> dims, PartialTensorShape* out);
  static absl::Status MakeShape(const int32* dims, int64 n, PartialTensorShape* out);
  static absl::Status MakeShape(const int64* dims, int64 n, PartialTensorShape* out);
  // Stores the product of the sizes. Returns INVALID_ARGUMENT if it exceeds int64.
  static absl::Status NumElements(gtl::ArraySlice<int64> shape, int64* num_elements);
  // Returns "[[2,3], []]".
  static std::string ShapeListString(gtl::ArraySlice<TensorShape> shapes);
};

class PartialTensorShapeUtils {
 public:
  // Returns "[[2,?], <unknown>]".
  static std::string PartialShapeListString(gtl::ArraySlice<PartialTensorShape> shapes);
  // Return true if both lists have the same length, and their shapes are equal (compatible).
  static bool AreIdentical(gtl::ArraySlice<PartialTensorShape> shapes0,
                           gtl::ArraySlice<PartialTensorShape> shapes1);
  static bool AreCompatible(gtl::ArraySlice<PartialTensorShape> shapes0,
                            gtl::ArraySlice<PartialTensorShape> shapes1);
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_
