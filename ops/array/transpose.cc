#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::transpose {
namespace {

// Returns `perm` if it is a permutation of [0, rank). Unlike axes of other ops, its elements must
// not be negative.
absl::StatusOr<std::vector<int>> Permutation(absl::Span<const int64_t> perm, int rank) {
  if (perm.size() != static_cast<size_t>(rank)) {
    return errors::InvalidArgument("perm must have ", rank, " elements, one for each dimension of ",
                                   "x, but has ", perm.size());
  }
  std::vector<int> axes;
  std::vector<bool> seen(rank);
  for (const int64_t value : perm) {
    if (value < 0 || value >= rank) {
      return errors::InvalidArgument("perm ", value, " is out of range [0, ", rank, ")");
    }
    const int axis = static_cast<int>(value);
    if (seen[axis]) return errors::InvalidArgument("perm names dimension ", axis, " twice");
    seen[axis] = true;
    axes.push_back(axis);
  }
  return axes;
}

absl::Status TransposeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  std::vector<int64_t> perm;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &perm));
  const int64_t length = c.Dim(1, 0);
  PartialTensorShape x = c.input(0);
  if (x.unknown_rank()) {
    if (length < 0 || length > kMaxDims) return absl::OkStatus();
    x = PartialTensorShape::UnknownOfRank(static_cast<int>(length));
  }
  if (length >= 0 && length != x.dims()) {
    return errors::InvalidArgument("perm must have one element for each dimension of x, of shape ",
                                   x.DebugString(), ", but has ", length);
  }
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(x.dims());
  if (known) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> axes, Permutation(perm, x.dims()));
    for (int d = 0; d < x.dims(); ++d) shape.set_dim(d, x.dim_size(axes[d]));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Transpose(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "perm"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector perm, ctx.Ints(1, "perm"));
  const TensorShape& x = ctx.input(0).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> axes, Permutation(perm, x.dims()));
  const DimVector strides = RowMajorStrides(x.dim_sizes());
  DimVector dims;
  DimVector from;
  for (const int axis : axes) {
    dims.push_back(x.dim_size(axis));
    from.push_back(strides[axis]);
  }
  return OutputStrided(ctx, 0, TensorShape(dims), dims, 0, {0, from});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Transpose")
      .Group("array_ops")
      .Input("x: T")
      .Input("perm: Tperm")
      .Output("y: T")
      .Attr("T: type")
      .Attr("Tperm: {int32, int64} = DT_INT32")
      .Shape(TransposeShape)
      .Doc(R"(Permutes the dimensions of a tensor.

x: The tensor.
perm: A vector: a permutation of the dimensions of `x`.
y: The tensor whose dimension i is dimension `perm[i]` of `x`.
T: The type of the tensor.
Tperm: The type of `perm`.)");
  registry.Kernel("Transpose", MakeFunctionKernel<Transpose>);
}

}  // namespace gradflow::transpose
