#include "gradflow/ops/random/parameters.h"

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow {

Parameter::Parameter(const Tensor& tensor, const TensorShape& batches)
    : data_(tensor.raw_data()), is_whole_(tensor.shape() == batches) {
  DispatchType(SampleTypes(), tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    read_ = [](const void* data, int64_t i) {
      return static_cast<double>(static_cast<const T*>(data)[i]);
    };
  });
  if (is_whole_) return;
  const DimVector strides = BroadcastStrides(tensor.shape().dim_sizes(), batches.dim_sizes());
  sizes_.assign(batches.dim_sizes().begin(), batches.dim_sizes().end());
  strides_.assign(strides.begin(), strides.end());
}

int64_t Parameter::IndexOf(int64_t batch) const {
  if (is_whole_) return batch;
  int64_t index = 0;
  for (size_t d = sizes_.size(); d-- > 0;) {
    index += batch % sizes_[d] * strides_[d];
    batch /= sizes_[d];
  }
  return index;
}

absl::StatusOr<TensorShape> BatchShape(const KernelContext& ctx, const TensorShape& shape,
                                       int begin, int end, int64_t* samples) {
  TensorShape batches = ctx.input(begin).shape();
  for (int i = begin + 1; i < end; ++i) {
    GRADFLOW_ASSIGN_OR_RETURN(batches, BroadcastShapes(batches, ctx.input(i).shape()));
  }
  const int outer = shape.dims() - batches.dims();
  if (outer < 0 || shape.dim_sizes().subspan(outer) != batches.dim_sizes()) {
    return errors::InvalidArgument("shape must end with the shape of the parameters, but they are ",
                                   shape.DebugString(), " and ", batches.DebugString());
  }
  // The product of the outer dimensions may overflow if another dimension is 0.
  *samples = shape.num_elements() == 0 ? 0 : shape.num_elements() / batches.num_elements();
  return batches;
}

}  // namespace gradflow
