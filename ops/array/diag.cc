// Diag and DiagPart.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::diag {
namespace {

// Returns the shape [d0, d1, ..., d0, d1, ...].
absl::StatusOr<PartialTensorShape> DiagOf(const PartialTensorShape& diagonal) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("diagonal", diagonal, 1));
  DimVector dims(diagonal.dim_sizes().begin(), diagonal.dim_sizes().end());
  dims.insert(dims.end(), diagonal.dim_sizes().begin(), diagonal.dim_sizes().end());
  return PartialTensorShape::Make(dims);
}

absl::Status DiagShape(ShapeContext& c) {
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, DiagOf(c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Diag(KernelContext& ctx) {
  const Tensor& diagonal = ctx.input(0);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, DiagOf(diagonal.shape()));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(shape.dim_sizes()), &output));
  const int64_t size = diagonal.NumElements();
  SetZero(ctx.run(), output);
  CopyStrided(ctx.run(), {size}, diagonal, {0, {1}}, output, {0, {size + 1}});
  return absl::OkStatus();
}

// Returns the first half of the dimensions of `input`. Both halves must be equal.
absl::StatusOr<PartialTensorShape> DiagPartOf(const PartialTensorShape& input) {
  if (input.dims() == 0 || input.dims() % 2 != 0) {
    return errors::InvalidArgument("input must have an even rank, at least 2, but has shape ",
                                   input.DebugString());
  }
  const int half = input.dims() / 2;
  const PartialTensorShape first(input.dim_sizes().subspan(0, half));
  const PartialTensorShape second(input.dim_sizes().subspan(half));
  if (first.IsCompatibleWith(second)) return first.MergeWith(second);
  return errors::InvalidArgument("the first half of the dimensions of input, of shape ",
                                 input.DebugString(), ", must equal the second");
}

absl::Status DiagPartShape(ShapeContext& c) {
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, DiagPartOf(c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status DiagPart(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape part, DiagPartOf(ctx.input(0).shape()));
  const TensorShape shape(part.dim_sizes());
  const int64_t size = shape.num_elements();
  return OutputStrided(ctx, 0, shape, {size}, 0, {0, {size + 1}});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Diag")
      .Group("array_ops")
      .Input("diagonal: T")
      .Output("output: T")
      .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Shape(DiagShape)
      .Doc(R"(Returns a tensor with given elements on its diagonal, and zeros elsewhere.

diagonal: A tensor of at least one dimension.
output: A tensor whose shape is the shape of `diagonal`, twice. Its element [i, j, ..., i, j, ...]
  is element [i, j, ...] of `diagonal`.
T: The type of `diagonal`.)");
  registry.Kernel("Diag", MakeFunctionKernel<Diag>);

  registry.Op("DiagPart")
      .Group("array_ops")
      .Input("input: T")
      .Output("diagonal: T")
      .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Shape(DiagPartShape)
      .Doc(R"(Returns the diagonal of a tensor.

The inverse of `Diag`.

input: A tensor of even rank. The first half of its dimensions must equal the second.
diagonal: A tensor of half the rank: the elements of `input` at [i, j, ..., i, j, ...].
T: The type of `input`.)");
  registry.Kernel("DiagPart", MakeFunctionKernel<DiagPart>);
}

}  // namespace gradflow::diag
