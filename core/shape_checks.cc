#include "gradflow/core/shape_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

// "logits has shape [3]"
std::string Facts(absl::string_view name, const PartialTensorShape& shape) {
  return absl::StrCat(name, " has shape ", shape.DebugString());
}

// "keys has shape [1], and values has shape [2]"
std::string Facts(absl::string_view name_a, const PartialTensorShape& a, absl::string_view name_b,
                  const PartialTensorShape& b) {
  return absl::StrCat(Facts(name_a, a), ", and ", Facts(name_b, b));
}

int64_t SizeOf(const PartialTensorShape& shape, int d) {
  if (shape.unknown_rank()) return -1;
  if (d < 0) d += shape.dims();
  return d >= 0 && d < shape.dims() ? shape.dim_size(d) : -1;
}

}  // namespace

absl::Status CheckRank(absl::string_view name, const PartialTensorShape& shape, int rank) {
  if (shape.unknown_rank() || shape.dims() == rank) return absl::OkStatus();
  return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", shape.dims(), ": ",
                                 Facts(name, shape));
}

absl::Status CheckRankAtLeast(absl::string_view name, const PartialTensorShape& shape, int rank) {
  if (shape.unknown_rank() || shape.dims() >= rank) return absl::OkStatus();
  return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ",
                                 shape.dims(), ": ", Facts(name, shape));
}

absl::Status CheckRankAtMost(absl::string_view name, const PartialTensorShape& shape, int rank) {
  if (shape.unknown_rank() || shape.dims() <= rank) return absl::OkStatus();
  return errors::InvalidArgument("Shape must be at most rank ", rank, " but is rank ", shape.dims(),
                                 ": ", Facts(name, shape));
}

absl::Status CheckDim(absl::string_view name, const PartialTensorShape& shape, int d,
                      int64_t size) {
  const int64_t found = SizeOf(shape, d);
  if (found < 0 || found == size) return absl::OkStatus();
  return errors::InvalidArgument("Dimension must be ", size, " but is ", found, ": dimension ",
                                 d < 0 ? d + shape.dims() : d, " of ", name, ", which has shape ",
                                 shape.DebugString());
}

absl::StatusOr<int64_t> MergeDims(absl::string_view name_a, const PartialTensorShape& a, int d_a,
                                  absl::string_view name_b, const PartialTensorShape& b, int d_b) {
  const int64_t size_a = SizeOf(a, d_a);
  const int64_t size_b = SizeOf(b, d_b);
  if (size_a < 0) return size_b;
  if (size_b < 0 || size_a == size_b) return size_a;
  return errors::InvalidArgument("Dimensions must be equal, but are ", size_a, " and ", size_b,
                                 ": ", Facts(name_a, a, name_b, b));
}

absl::StatusOr<PartialTensorShape> MergeShapes(absl::string_view name_a,
                                               const PartialTensorShape& a,
                                               absl::string_view name_b,
                                               const PartialTensorShape& b) {
  if (a.unknown_rank()) return b;
  if (b.unknown_rank()) return a;
  if (a.dims() != b.dims()) {
    return errors::InvalidArgument("Shapes must be equal rank, but are ", a.dims(), " and ",
                                   b.dims(), ": ", Facts(name_a, a, name_b, b));
  }
  for (int d = 0; d < a.dims(); ++d) {
    const int64_t size_a = a.dim_size(d);
    const int64_t size_b = b.dim_size(d);
    if (size_a < 0 || size_b < 0 || size_a == size_b) continue;
    return errors::InvalidArgument("Dimension ", d, " in both shapes must be equal, but are ",
                                   size_a, " and ", size_b, ": ", Facts(name_a, a, name_b, b));
  }
  return a.MergeWith(b);
}

absl::Status CheckRankAtMost(const ShapeContext& c, int i, int rank) {
  const PartialTensorShape& shape = c.input(i);
  if (shape.unknown_rank() || shape.dims() <= rank) return absl::OkStatus();
  return CheckRankAtMost(c.input_name(i), shape, rank);
}

absl::Status CheckDim(const ShapeContext& c, int i, int d, int64_t size) {
  const int64_t found = c.Dim(i, d);
  if (found < 0 || found == size) return absl::OkStatus();
  return CheckDim(c.input_name(i), c.input(i), d, size);
}

absl::StatusOr<int64_t> MergeDims(const ShapeContext& c, int i, int d_i, int j, int d_j) {
  const int64_t a = c.Dim(i, d_i);
  const int64_t b = c.Dim(j, d_j);
  if (a < 0) return b;
  if (b < 0 || a == b) return a;
  return MergeDims(c.input_name(i), c.input(i), d_i, c.input_name(j), c.input(j), d_j);
}

absl::StatusOr<PartialTensorShape> MergeInputs(const ShapeContext& c, int i, int j) {
  if (c.input(i).unknown_rank()) return c.input(j);
  if (c.input(j).unknown_rank()) return c.input(i);
  if (c.input(i).IsCompatibleWith(c.input(j))) return c.input(i).MergeWith(c.input(j));
  return MergeShapes(c.input_name(i), c.input(i), c.input_name(j), c.input(j));
}

}  // namespace gradflow
