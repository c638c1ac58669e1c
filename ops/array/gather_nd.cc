// GatherNd and ResourceGatherNd.
#include <algorithm>
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/variable.h"
#include "gradflow/ops/array/nd_indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::gather_nd {
namespace {

absl::Status GatherNdShapeFn(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            NdSlicesShape(c.input(1), "params", c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ResourceGatherNdShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            NdSlicesShape(c.input(1), "params", c.variable_shape(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class GatherNdKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    if (construction.op_def().name() == "ResourceGatherNd") return absl::OkStatus();
    return ReadIgnoresBadIndices(construction, &ignores_bad_indices_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& params = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape gathered,
                              NdSlicesShape(ctx.input(1).shape(), "params", params.shape()));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(gathered.dim_sizes()));
    const NdIndices indices(ctx.input(1), params.shape());
    if (params.dtype() == DT_STRING) ctx.ExpectStringBytes(GatheredBytes(ctx, indices));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    FirstBadIndex bad;
    DispatchElement(params.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      const E* from = static_cast<const E*>(params.raw_data());
      E* to = static_cast<E*>(output->raw_data());
      const int64_t size = indices.slice_size();
      const double cost = 5.0 + size * CopyNanoseconds(params.dtype());
      ParallelFor(ctx, indices.size(), BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t offset = indices.Offset(i);
          if (offset >= 0) {
            std::copy_n(from + offset, size, to + i * size);
          } else {
            bad.Found(i);
            std::fill_n(to + i * size, size, E());
          }
        }
      });
    });
    if (bad.any() && !ignores_bad_indices_) return indices.Error(bad.first(), "params");
    return absl::OkStatus();
  }

 private:
  // Returns the total length of the selected strings, which may repeat a long string.
  static double GatheredBytes(const KernelContext& ctx, const NdIndices& indices) {
    const absl::Span<const tstring> strings = ctx.input(0).span<tstring>();
    double bytes = 0;
    for (int64_t i = 0; i < indices.size() && (i % 4096 != 0 || !ctx.ShouldStop()); ++i) {
      const int64_t offset = indices.Offset(i);
      if (offset < 0) continue;
      for (int64_t k = 0; k < indices.slice_size(); ++k) bytes += strings[offset + k].size();
    }
    return bytes;
  }

  bool ignores_bad_indices_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("GatherNd")
      .Group("array_ops")
      .Input("params: Tparams")
      .Input("indices: Tindices")
      .Output("output: Tparams")
      .Attr("Tparams: type")
      .Attr("Tindices: {int16, int32, int64}")
      .Attr("bad_indices_policy: string = ''")
      .Shape(GatherNdShapeFn)
      .Doc(R"(Gathers slices of a tensor by tuples of indices.

The last dimension of `indices` is the depth of the tuples. A tuple selects the slice
`params[i0, i1, ...]`: one element if the depth is the rank of `params`.

params: The tensor to gather from.
indices: The tuples, in the last dimension.
output: The slices, in the shape `indices.shape[:-1] + params.shape[depth:]`.
Tparams: The type of `params`.
Tindices: The type of `indices`.
bad_indices_policy: The treatment of tuples out of range: an error for "", "DEFAULT" and "ERROR";
  zeros for "IGNORE".)");
  registry.Kernel("GatherNd", MakeKernel<GatherNdKernel>).Types("Tparams", AllDataTypes());

  registry.Op("ResourceGatherNd")
      .Group("resource_variable_ops")
      .Input("resource: resource")
      .Input("indices: Tindices")
      .Output("output: dtype")
      .Attr("dtype: type")
      .Attr("Tindices: {int32, int64}")
      .Shape(ResourceGatherNdShape)
      .Doc(R"(Gathers slices of a variable by tuples of indices.

Like `GatherNd` of the variable's value. A tuple out of range is an error.

resource: The variable.
indices: The tuples, in the last dimension.
output: The slices, in the shape `indices.shape[:-1] + shape[depth:]`, where `shape` is the shape of
  the variable.
dtype: The type of the variable.
Tindices: The type of `indices`.)");
  registry.Kernel("ResourceGatherNd", MakeKernel<ReadingKernel<GatherNdKernel>>)
      .Types("dtype", AllDataTypes());
}

}  // namespace gradflow::gather_nd
