// TensorShape, PartialTensorShape and TensorShapeUtils.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_

#include <ostream>
#include <string>

#include "gradflow/core/tensor_shape.h"
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

}  // namespace gradflow

namespace tensorflow {

using gradflow::PartialTensorShape;
using gradflow::TensorShape;

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
  // Return INVALID_ARGUMENT if the dimensions are not valid.
  static absl::Status MakeShape(gtl::ArraySlice<int32> dims, TensorShape* out);
  static absl::Status MakeShape(gtl::ArraySlice<int64> dims, TensorShape* out);
  static absl::Status MakeShape(const int32* dims, int64 n, TensorShape* out);
  static absl::Status MakeShape(const int64* dims, int64 n, TensorShape* out);
  // Returns "[2,3], []".
  static std::string ShapeListString(gtl::ArraySlice<TensorShape> shapes);
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_SHAPE_H_
