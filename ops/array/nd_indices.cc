#include "gradflow/ops/array/nd_indices.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {

absl::StatusOr<int64_t> NdIndexDepth(const PartialTensorShape& indices, absl::string_view name,
                                     const PartialTensorShape& indexed) {
  if (indices.unknown_rank()) return -1;
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("indices", indices, 1));
  const int64_t depth = indices.dim_size(indices.dims() - 1);
  if (!indexed.unknown_rank() && depth > indexed.dims()) {
    return errors::InvalidArgument("the last dimension of indices, of shape ",
                                   indices.DebugString(), ", must be at most the rank of ", name,
                                   ", of shape ", indexed.DebugString());
  }
  return depth;
}

absl::StatusOr<PartialTensorShape> NdSlicesShape(const PartialTensorShape& indices,
                                                 absl::string_view name,
                                                 const PartialTensorShape& indexed) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t depth, NdIndexDepth(indices, name, indexed));
  if (depth < 0 || indexed.unknown_rank()) return PartialTensorShape();
  DimVector dims;
  for (int d = 0; d + 1 < indices.dims(); ++d) dims.push_back(indices.dim_size(d));
  for (int d = static_cast<int>(depth); d < indexed.dims(); ++d) {
    dims.push_back(indexed.dim_size(d));
  }
  return PartialTensorShape::Make(dims);
}

absl::Status ParseBadIndicesPolicy(absl::string_view policy, bool* ignores) {
  *ignores = policy == "IGNORE";
  if (*ignores || policy.empty() || policy == "DEFAULT" || policy == "ERROR") {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("bad_indices_policy must be \"\", \"DEFAULT\", \"ERROR\" or ",
                                 "\"IGNORE\", but is \"", policy, "\"");
}

NdIndices::NdIndices(const Tensor& indices, const TensorShape& indexed)
    : indices_(indices),
      indexed_(indexed),
      reader_(indices),
      strides_(RowMajorStrides(indexed.dim_sizes())),
      depth_(indices.dim_size(indices.dims() - 1)) {
  // Unsigned, because the product of some dimensions of an empty tensor may overflow. An overflowed
  // product is not used.
  uint64_t size = 1;
  for (int d = 0; d + 1 < indices.dims(); ++d) size *= indices.dim_size(d);
  uint64_t slice = 1;
  for (int d = static_cast<int>(depth_); d < indexed.dims(); ++d) slice *= indexed.dim_size(d);
  slice_size_ = static_cast<int64_t>(slice);
  // Tuples of depth 0 take no memory, so there can be any number of them.
  const bool nothing = indices.NumElements() == 0 && indexed.num_elements() == 0;
  size_ = nothing ? 0 : static_cast<int64_t>(size);
}

absl::Status NdIndices::Error(int64_t i, absl::string_view name) const {
  std::string tuple;
  for (int64_t k = 0; k < depth_; ++k) {
    absl::StrAppend(&tuple, k == 0 ? "" : ",", reader_[i * depth_ + k]);
  }
  TensorShape prefix = indices_.shape();
  prefix.RemoveDim(indices_.dims() - 1);
  return errors::InvalidArgument(ElementName("indices", prefix, i), " = [", tuple,
                                 "] does not index into ", name == "params" ? "param " : "",
                                 "shape ", indexed_.DebugString());
}

}  // namespace gradflow
