// Checks of inputs that shape functions and kernels make with the same words:
// "scale has shape [32], expected [64] (the channels of x [8,28,28,64], NHWC)".
#ifndef GRADFLOW_OPS_INPUT_CHECKS_H_
#define GRADFLOW_OPS_INPUT_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow {

// INVALID_ARGUMENT: input `name` has shape `found` but must have shape `expected`; `why` says where
// that comes from.
absl::Status ShapeError(absl::string_view name, const PartialTensorShape& found,
                        const PartialTensorShape& expected, absl::string_view why);

// INVALID_ARGUMENT unless a tensor of this shape has one element, or may have if it is not known.
absl::Status CheckOneElement(absl::string_view name, const PartialTensorShape& found);

// INVALID_ARGUMENT unless the inputs of a run are there and have these types. A kernel that reads
// elements through pointers starts with this.
absl::Status CheckInputTypes(const KernelContext& ctx, absl::Span<const DataType> types);
// The types for CheckInputTypes, which a kernel keeps.
DataTypeVector InputTypes(const KernelConstruction& construction);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_INPUT_CHECKS_H_
