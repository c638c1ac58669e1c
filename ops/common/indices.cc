#include "gradflow/ops/common/indices.h"

#include "absl/strings/str_cat.h"

namespace gradflow {

std::string ElementName(absl::string_view name, const TensorShape& shape, int64_t i) {
  if (shape.dims() == 0) return std::string(name);
  std::string position;
  for (int d = shape.dims() - 1; d >= 0; --d) {
    position = absl::StrCat(i % shape.dim_size(d), position.empty() ? "" : ",", position);
    i /= shape.dim_size(d);
  }
  return absl::StrCat(name, "[", position, "]");
}

}  // namespace gradflow
