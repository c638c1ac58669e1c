#include "gradflow/ops/common/input_checks.h"

#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow {

absl::Status ShapeError(absl::string_view name, const PartialTensorShape& found,
                        const PartialTensorShape& expected, absl::string_view why) {
  return errors::InvalidArgument(name, " has shape ", found.DebugString(), ", expected ",
                                 expected.DebugString(), " (", why, ")");
}

absl::Status CheckOneElement(absl::string_view name, const PartialTensorShape& found) {
  if (found.num_elements() == 1 || !found.IsFullyDefined()) return absl::OkStatus();
  return errors::InvalidArgument(name, " must have one element, but has shape ",
                                 found.DebugString());
}

absl::Status CheckScalarOrVector1(absl::string_view name, const TensorShape& found) {
  if (found.dims() <= 1 && found.num_elements() == 1) return absl::OkStatus();
  return errors::InvalidArgument(name, " must be a scalar, but has shape ", found.DebugString());
}

absl::Status CheckPrefix(absl::string_view name, const PartialTensorShape& shape,
                         absl::string_view prefix_name, const PartialTensorShape& prefix) {
  if (shape.unknown_rank() || prefix.unknown_rank()) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast(name, shape, prefix.dims()));
  for (int d = 0; d < prefix.dims(); ++d) {
    GRADFLOW_RETURN_IF_ERROR(MergeDims(name, shape, d, prefix_name, prefix, d).status());
  }
  return absl::OkStatus();
}

absl::Status CheckBroadcastsTo(absl::string_view name, const PartialTensorShape& shape,
                               const PartialTensorShape& to) {
  const absl::StatusOr<PartialTensorShape> both = BroadcastShapes(shape, to);
  if (both.ok() && both->IsCompatibleWith(to)) return absl::OkStatus();
  return errors::InvalidArgument(name, " has shape ", shape.DebugString(),
                                 ", which cannot be broadcast to shape ", to.DebugString());
}

absl::Status CheckInputTypes(const KernelContext& ctx, absl::Span<const DataType> types) {
  if (ctx.num_inputs() != static_cast<int>(types.size())) {
    return errors::InvalidArgument("the node has ", ctx.num_inputs(), " inputs, expected ",
                                   types.size());
  }
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.input_dtype(i) != types[i]) {
      return errors::InvalidArgument("input ", i, " has type ", DataTypeString(ctx.input_dtype(i)),
                                     ", expected ", DataTypeString(types[i]));
    }
    if (!ctx.input(i).IsInitialized()) {
      return errors::InvalidArgument("input ", i, " is not initialized");
    }
  }
  return absl::OkStatus();
}

DataTypeVector InputTypes(const KernelConstruction& construction) {
  DataTypeVector types;
  for (int i = 0; i < construction.num_inputs(); ++i) types.push_back(construction.input_type(i));
  return types;
}

}  // namespace gradflow
