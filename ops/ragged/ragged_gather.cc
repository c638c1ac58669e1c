// RaggedGather.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/ragged/ragged_splits.h"

namespace gradflow::ragged_gather {
namespace {

absl::Status GatherShape(ShapeContext& c) {
  const int splits = c.num_inputs() - 2;
  const PartialTensorShape& values = c.input(splits);
  const PartialTensorShape& indices = c.input(splits + 1);
  for (int i = 0; i < splits; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(splits, 1));
  const int outputs = c.num_outputs() - 1;
  if (!indices.unknown_rank() && outputs != splits + indices.dims() - 1) {
    return errors::InvalidArgument("OUTPUT_RAGGED_RANK must be ", splits + indices.dims() - 1,
                                   " for indices of rank ", indices.dims(), ", but is ", outputs);
  }
  for (int i = 0; i < outputs; ++i) c.set_output(i, PartialTensorShape({-1}));
  if (!values.unknown_rank()) {
    PartialTensorShape out = values;
    out.set_dim(0, -1);
    c.set_output(outputs, std::move(out));
  }
  return absl::OkStatus();
}

absl::Status Gather(KernelContext& ctx) {
  const int levels = ctx.num_inputs() - 2;
  const Tensor& values = ctx.input(levels);
  const Tensor& indices = ctx.input(levels + 1);
  const int outputs = ctx.num_outputs() - 1;
  if (levels == 0 || outputs != levels + indices.dims() - 1) {
    return errors::InvalidArgument("OUTPUT_RAGGED_RANK must be ", levels + indices.dims() - 1,
                                   " for indices of rank ", indices.dims(), ", but is ", outputs);
  }
  GRADFLOW_RETURN_IF_ERROR(CheckNestedSplits(ctx, "params_nested_splits", 0, levels));
  GRADFLOW_RETURN_IF_ERROR(CheckIndices(ctx.run(), indices, ctx.input(0).NumElements() - 1));
  if (ctx.ShouldStop()) return StoppedError();
  const int64_t count = indices.NumElements();
  GRADFLOW_RETURN_IF_ERROR(WriteUniformSplits(ctx, indices.shape()));
  // Each index stands for a range of rows of the next level.
  Tensor ranges;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {count, 2}, &ranges));
  const auto range = ranges.span<int64_t>();
  const IndexReader index(indices);
  for (int64_t i = 0; i < count; ++i) {
    range[2 * i] = index[i];
    range[2 * i + 1] = index[i] + 1;
  }
  for (int level = 0; level < levels; ++level) {
    const IndexReader splits(ctx.input(level));
    // A scalar index removes the outermost dimension.
    const int output = indices.dims() - 1 + level;
    if (output >= 0) {
      int64_t total_rows = 0;
      for (int64_t i = 0; i < count; ++i) total_rows += range[2 * i + 1] - range[2 * i];
      Tensor* out = nullptr;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(output, {total_rows + 1}, &out));
      int64_t next = 0;
      int64_t length = 0;
      WriteIndex(out, 0, 0);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t row = range[2 * i]; row < range[2 * i + 1]; ++row) {
          if ((next & 0xffff) == 0xffff && ctx.ShouldStop()) return StoppedError();
          const int64_t size = splits[row + 1] - splits[row];
          if (size > LargestSplit(out->dtype()) - length) {
            return errors::InvalidArgument("the splits of the result exceed ",
                                           DataTypeString(out->dtype()));
          }
          length += size;
          WriteIndex(out, ++next, length);
        }
      }
    }
    for (int64_t i = 0; i < 2 * count; ++i) range[i] = splits[range[i]];
  }
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += range[2 * i + 1] - range[2 * i];
  TensorShape shape = values.shape();
  GRADFLOW_RETURN_IF_ERROR(shape.SetDimWithStatus(0, total));
  const int64_t width = values.dim_size(0) == 0 ? 0 : values.NumElements() / values.dim_size(0);
  if (values.dtype() == DT_STRING) {
    double bytes = 0;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = range[2 * i] * width; k < range[2 * i + 1] * width; ++k) {
        bytes += static_cast<double>(values.span<tstring>()[k].size());
      }
    }
    ctx.ExpectStringBytes(bytes);
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(outputs, shape, &output));
  int64_t to = 0;
  for (int64_t i = 0; i < count; ++i) {
    if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
    const int64_t size = range[2 * i + 1] - range[2 * i];
    CopyElements(values, range[2 * i] * width, size * width, output, to * width);
    to += size;
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("RaggedGather")
      .Group("array_ops")
      .Input("params_nested_splits: PARAMS_RAGGED_RANK * Tsplits")
      .Input("params_dense_values: Tvalues")
      .Input("indices: Tindices")
      .Output("output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits")
      .Output("output_dense_values: Tvalues")
      .Attr("Tvalues: type")
      .Attr("Tindices: {int32, int64}")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Attr("PARAMS_RAGGED_RANK: int >= 1")
      .Attr("OUTPUT_RAGGED_RANK: int >= 0")
      .Shape(GatherShape)
      .Doc(R"(Gathers rows of a ragged tensor.

params_nested_splits: The splits of the ragged tensor, from the outermost dimension on.
params_dense_values: Its values.
indices: The rows to gather, of any shape.
output_nested_splits: The splits of the result, a ragged tensor.
output_dense_values: The values of the result.
Tvalues: The type of the values.
Tindices: The type of `indices`.
Tsplits: The type of the splits.
PARAMS_RAGGED_RANK: The number of ragged dimensions of the tensor.
OUTPUT_RAGGED_RANK: The number of ragged dimensions of the result: one less than
  `PARAMS_RAGGED_RANK` and the rank of `indices` together.)");
  registry.Kernel("RaggedGather", MakeFunctionKernel<Gather>).Types("Tvalues", AllDataTypes());
}

}  // namespace gradflow::ragged_gather
