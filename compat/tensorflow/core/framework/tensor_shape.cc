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
  return TensorShape::BuildTensorShape(dims, out);
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

absl::Status TensorShapeUtils::MakeShape(gtl::ArraySlice<int64> dims, PartialTensorShape* out) {
  return PartialTensorShape::BuildPartialTensorShape(dims, out);
}

absl::Status TensorShapeUtils::MakeShape(gtl::ArraySlice<int32> dims, PartialTensorShape* out) {
  return MakeShape(std::vector<int64>(dims.begin(), dims.end()), out);
}

absl::Status TensorShapeUtils::MakeShape(const int32* dims, int64 n, PartialTensorShape* out) {
  return MakeShape(gtl::ArraySlice<int32>(dims, n), out);
}

absl::Status TensorShapeUtils::MakeShape(const int64* dims, int64 n, PartialTensorShape* out) {
  return MakeShape(gtl::ArraySlice<int64>(dims, n), out);
}

absl::Status TensorShapeUtils::NumElements(gtl::ArraySlice<int64> shape, int64* num_elements) {
  int64 product = 1;
  for (const int64 size : shape) {
    product = gradflow::MultiplyWithoutOverflow(product, size);
    if (product < 0) {
      return absl::InvalidArgumentError(absl::StrCat("Can't compute total size of shape [",
                                                     absl::StrJoin(shape, ","),
                                                     "]; product would overflow int64"));
    }
  }
  *num_elements = product;
  return absl::OkStatus();
}

namespace {

template <typename Shapes>
std::string ListString(const Shapes& shapes) {
  return absl::StrCat("[",
                      absl::StrJoin(shapes, ", ",
                                    [](std::string* text, const auto& shape) {
                                      absl::StrAppend(text, shape.DebugString());
                                    }),
                      "]");
}

}  // namespace

std::string TensorShapeUtils::ShapeListString(gtl::ArraySlice<TensorShape> shapes) {
  return ListString(shapes);
}

std::string PartialTensorShapeUtils::PartialShapeListString(
    gtl::ArraySlice<PartialTensorShape> shapes) {
  return ListString(shapes);
}

bool PartialTensorShapeUtils::AreIdentical(gtl::ArraySlice<PartialTensorShape> shapes0,
                                           gtl::ArraySlice<PartialTensorShape> shapes1) {
  return std::equal(shapes0.begin(), shapes0.end(), shapes1.begin(), shapes1.end());
}

bool PartialTensorShapeUtils::AreCompatible(gtl::ArraySlice<PartialTensorShape> shapes0,
                                            gtl::ArraySlice<PartialTensorShape> shapes1) {
  return std::equal(shapes0.begin(), shapes0.end(), shapes1.begin(), shapes1.end(),
                    [](const PartialTensorShape& a, const PartialTensorShape& b) {
                      return a.IsCompatibleWith(b);
                    });
}

}  // namespace tensorflow
