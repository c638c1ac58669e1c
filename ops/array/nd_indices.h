// Tuples of indices that select slices, for GatherNd and the scatter ops.
#ifndef GRADFLOW_OPS_ARRAY_ND_INDICES_H_
#define GRADFLOW_OPS_ARRAY_ND_INDICES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow {

// Returns the last dimension of `indices`; -1 if unknown. Returns INVALID_ARGUMENT if `indices` is
// a scalar or if the depth exceeds the rank of the indexed tensor, which is called `name`.
absl::StatusOr<int64_t> NdIndexDepth(const PartialTensorShape& indices, absl::string_view name,
                                     const PartialTensorShape& indexed);

// Returns the shape of the slices that `indices` selects: indices[:-1] + indexed[depth:]. Unknown
// if a rank or the depth is unknown. Returns the errors of NdIndexDepth().
absl::StatusOr<PartialTensorShape> NdSlicesShape(const PartialTensorShape& indices,
                                                 absl::string_view name,
                                                 const PartialTensorShape& indexed);

// Sets *ignores to true if the attribute bad_indices_policy ignores tuples that are out of range.
// Returns INVALID_ARGUMENT if the policy is unknown. Source is KernelConstruction.
absl::Status ParseBadIndicesPolicy(absl::string_view policy, bool* ignores);
template <typename Source>
absl::Status ReadIgnoresBadIndices(const Source& source, bool* ignores) {
  std::string policy;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("bad_indices_policy", &policy));
  return ParseBadIndicesPolicy(policy, ignores);
}

// Returns INVALID_ARGUMENT unless `updates` may have the shape indices[:-1] + output[depth:].
absl::Status CheckScatterUpdates(const PartialTensorShape& indices,
                                 const PartialTensorShape& updates, absl::string_view name,
                                 const PartialTensorShape& output);

// Accumulates each slice of `updates` into `output` at its tuple of `indices`, in order. A scalar
// `updates` is used for all slices. Returns INVALID_ARGUMENT, calling the output `name`, if a tuple
// is out of range. Other slices may then already be accumulated. REQUIRES: CheckScatterUpdates() is
// OK, or `updates` is a scalar
absl::Status ScatterSlices(const RunContext& run, AccumulateFn accumulate, const Tensor& indices,
                           const Tensor& updates, bool ignores_bad_indices, absl::string_view name,
                           Tensor* output);
// Returns INVALID_ARGUMENT if a tuple of `indices` is out of range of `output`. Returns an error if
// the run is stopped.
absl::Status CheckNdIndices(const RunContext& run, const Tensor& indices, const TensorShape& output,
                            absl::string_view name);

// The tuples in the last dimension of a tensor, as offsets of the slices that they select.
class NdIndices {
 public:
  // Does not copy the tensors. REQUIRES: NdIndexDepth() is OK
  NdIndices(const Tensor& indices, const TensorShape& indexed);

  // The number of tuples, and the number of elements of a slice. size() is 0 if both the tuples and
  // the slices are empty.
  int64_t size() const { return size_; }
  int64_t slice_size() const { return slice_size_; }
  // Returns the offset of the first element of the slice that tuple i selects; -1 if an index is
  // out of range.
  int64_t Offset(int64_t i) const {
    int64_t offset = 0;
    for (int64_t k = 0; k < depth_; ++k) {
      const int64_t index = reader_[i * depth_ + k];
      if (index < 0 || index >= indexed_.dim_size(static_cast<int>(k))) return -1;
      offset += index * strides_[k];
    }
    return offset;
  }
  // Returns an error: tuple i is out of range of `name`.
  absl::Status Error(int64_t i, absl::string_view name) const;

 private:
  const Tensor& indices_;
  const TensorShape& indexed_;
  const IndexReader reader_;
  DimVector strides_;
  int64_t depth_;
  int64_t size_ = 1;
  int64_t slice_size_ = 1;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_ARRAY_ND_INDICES_H_
