#include "tensorflow/core/framework/tensor_shape.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"

namespace tensorflow {

bool TensorShapeUtils::StartsWith(const TensorShape& shape, const TensorShape& prefix) {
  const auto sizes = shape.dim_sizes();
  return shape.dims() >= prefix.dims() && sizes.subspan(0, prefix.dims()) == prefix.dim_sizes();
}

bool TensorShapeUtils::EndsWith(const TensorShape& shape, const TensorShape& suffix) {
  const int skip = shape.dims() - suffix.dims();
  return skip >= 0 && shape.dim_sizes().subspan(skip) == suffix.dim_sizes();
}

absl::Status TensorShapeUtils::MakeShape(gtl::ArraySlice<int64> dims, TensorShape* out) {
  GRADFLOW_ASSIGN_OR_RETURN(*out, TensorShape::Make(dims));
  return absl::OkStatus();
}

absl::Status TensorShapeUtils::MakeShape(gtl::ArraySlice<int32> dims, TensorShape* out) {
  return MakeShape(std::vector<int64>(dims.begin(), dims.end()), out);
}

absl::Status TensorShapeUtils::MakeShape(const int32* dims, int64 n, TensorShape* out) {
  return MakeShape(gtl::ArraySlice<int32>(dims, n), out);
}

absl::Status TensorShapeUtils::MakeShape(const int64* dims, int64 n, TensorShape* out) {
  return MakeShape(gtl::ArraySlice<int64>(dims, n), out);
}

std::string TensorShapeUtils::ShapeListString(gtl::ArraySlice<TensorShape> shapes) {
  return absl::StrJoin(shapes, ", ", [](std::string* text, const TensorShape& shape) {
    absl::StrAppend(text, shape.DebugString());
  });
}

}  // namespace tensorflow
