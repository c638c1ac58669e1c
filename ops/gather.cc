#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/strided_copy.h"

namespace gradflow {
namespace {

// Axis and number of batch dimensions, both from the front, checked against the ranks.
struct GatherAxes {
  int axis = 0;
  int batch_dims = 0;
};

// The number of batch dimensions, where a negative one counts from the rank of the indices.
absl::StatusOr<int> ResolveBatchDims(int64_t batch_dims, int indices_rank) {
  if (batch_dims < -indices_rank || batch_dims > indices_rank) {
    return errors::InvalidArgument("batch_dims ", batch_dims, " is out of range [", -indices_rank,
                                   ", ", indices_rank, "], by the rank of indices");
  }
  return static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
}

absl::StatusOr<GatherAxes> ResolveAxes(int params_rank, int indices_rank, int64_t axis,
                                       int64_t batch_dims) {
  GatherAxes axes;
  GRADFLOW_ASSIGN_OR_RETURN(axes.axis, CanonicalAxis("axis", axis, params_rank));
  GRADFLOW_ASSIGN_OR_RETURN(axes.batch_dims, ResolveBatchDims(batch_dims, indices_rank));
  if (axes.batch_dims > axes.axis) {
    return errors::InvalidArgument("batch_dims ", axes.batch_dims, " must be at most axis ",
                                   axes.axis);
  }
  return axes;
}

// params[:axis] + indices[batch_dims:] + params[axis + 1:]. REQUIRES: both ranks are known.
absl::StatusOr<PartialTensorShape> GatherShape(const PartialTensorShape& params,
                                               const PartialTensorShape& indices,
                                               const GatherAxes& axes) {
  DimVector dims;
  for (int d = 0; d < axes.batch_dims; ++d) {
    const int64_t a = params.dim_size(d);
    const int64_t b = indices.dim_size(d);
    if (a >= 0 && b >= 0 && a != b) {
      return errors::InvalidArgument("params, of shape ", params.DebugString(),
                                     ", and indices, of ", "shape ", indices.DebugString(),
                                     ", must agree in the first ", axes.batch_dims,
                                     " dimensions, the batch_dims");
    }
    dims.push_back(std::max(a, b));
  }
  for (int d = axes.batch_dims; d < axes.axis; ++d) dims.push_back(params.dim_size(d));
  for (int d = axes.batch_dims; d < indices.dims(); ++d) dims.push_back(indices.dim_size(d));
  for (int d = axes.axis + 1; d < params.dims(); ++d) dims.push_back(params.dim_size(d));
  return PartialTensorShape::Make(dims);
}

absl::Status GatherShapeFn(ShapeContext& c) {
  int64_t batch_dims;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("batch_dims", &batch_dims));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 0));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(2, &axis));
  const PartialTensorShape& params = c.input(0);
  const PartialTensorShape& indices = c.input(1);
  if (params.unknown_rank() || indices.unknown_rank()) return absl::OkStatus();
  if (!known) {
    GRADFLOW_ASSIGN_OR_RETURN(const int batch_rank, ResolveBatchDims(batch_dims, indices.dims()));
    const int rank = params.dims() + indices.dims() - 1 - batch_rank;
    // More batch dimensions than the axis allows are an error once that is known.
    if (rank <= kMaxDims) c.set_output(0, PartialTensorShape::UnknownOfRank(rank));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const GatherAxes axes,
                            ResolveAxes(params.dims(), indices.dims(), axis[0], batch_dims));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, GatherShape(params, indices, axes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The indices, each checked to be in [0, limit).
absl::StatusOr<DimVector> CheckedIndices(const KernelContext& ctx, int64_t limit) {
  GRADFLOW_ASSIGN_OR_RETURN(DimVector indices, ctx.Ints(1, "indices"));
  const TensorShape& shape = ctx.input(1).shape();
  for (int64_t i = 0; i < static_cast<int64_t>(indices.size()); ++i) {
    if (indices[i] >= 0 && indices[i] < limit) continue;
    // The position, dimension by dimension.
    std::string position;
    int64_t rest = i;
    for (int d = shape.dims() - 1; d >= 0; --d) {
      position = absl::StrCat(rest % shape.dim_size(d), position.empty() ? "" : ",", position);
      rest /= shape.dim_size(d);
    }
    return errors::InvalidArgument("indices", shape.dims() == 0 ? "" : "[", position,
                                   shape.dims() == 0 ? "" : "]", " = ", indices[i],
                                   " is not in [0, ", limit, ")");
  }
  return indices;
}

class GatherKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("batch_dims", &batch_dims_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& params = ctx.input(0);
    const TensorShape& params_shape = params.shape();
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t axis, ctx.ScalarInt(2, "axis"));
    if (params.dims() == 0) return errors::InvalidArgument("params must not be a scalar");
    GRADFLOW_ASSIGN_OR_RETURN(const GatherAxes axes,
                              ResolveAxes(params.dims(), ctx.input(1).dims(), axis, batch_dims_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape gathered,
                              GatherShape(params_shape, ctx.input(1).shape(), axes));
    const TensorShape shape(gathered.dim_sizes());
    const int64_t limit = params_shape.dim_size(axes.axis);
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector indices, CheckedIndices(ctx, limit));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();

    // params is [batch, outer, limit, inner], indices [batch, count], the output
    // [batch, outer, count, inner]. A unit of work is one run of `inner` elements.
    int64_t batch = 1;
    for (int d = 0; d < axes.batch_dims; ++d) batch *= params_shape.dim_size(d);
    int64_t inner = 1;
    for (int d = axes.axis + 1; d < params.dims(); ++d) inner *= params_shape.dim_size(d);
    const int64_t count = static_cast<int64_t>(indices.size()) / batch;
    const int64_t units = shape.num_elements() / inner;
    const int64_t outer = units / batch / count;
    DispatchElement(params.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      const E* from = static_cast<const E*>(params.raw_data());
      E* to = static_cast<E*>(output->raw_data());
      const double cost = 2 + inner * (std::is_same_v<E, tstring> ? 20 : 0.05 * sizeof(E));
      ParallelFor(units, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t row = unit / count;
          const int64_t index = indices[row / outer * count + unit % count];
          std::copy_n(from + (row * limit + index) * inner, inner, to + unit * inner);
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  int64_t batch_dims_ = 0;
};

}  // namespace

void RegisterGather(Registry& registry) {
  registry.Op("GatherV2")
      .Group("array_ops")
      .Input("params: Tparams")
      .Input("indices: Tindices")
      .Input("axis: Taxis")
      .Output("output: Tparams")
      .Attr("batch_dims: int = 0")
      .Attr("Tparams: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("Taxis: {int32, int64}")
      .Shape(GatherShapeFn)
      .Doc(R"(Picks slices of a tensor by their indices along one of its dimensions.

The shape of the result is that of `params` with dimension `axis` replaced by the dimensions of
`indices` (without the first `batch_dims`). An index that does not exist is an error.

params: The tensor to pick from, of at least one dimension.
indices: A tensor of indices, each at least 0 and less than the size of dimension `axis`.
axis: A scalar: the dimension; a negative one counts from the end.
output: The slices.
batch_dims: So many first dimensions are common to `params` and `indices`: indices pick within the
  batch that they are in. At most `axis`; a negative number counts from the rank of `indices`.
Tparams: The type of `params`.
Tindices: The type of `indices`.
Taxis: The type of `axis`.)");
  registry.Kernel("GatherV2", MakeKernel<GatherKernel>);
}

}  // namespace gradflow
