// Input checks that shape functions and kernels share, so that both return the same errors, such as
// "scale has shape [32], expected [64] (the channels of x [8,28,28,64], NHWC)".
#ifndef GRADFLOW_OPS_COMMON_INPUT_CHECKS_H_
#define GRADFLOW_OPS_COMMON_INPUT_CHECKS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/core/types.h"

namespace gradflow {

// Returns the INVALID_ARGUMENT error that input `name` has shape `found` instead of `expected`.
// `why` states the origin of `expected`.
absl::Status ShapeError(absl::string_view name, const PartialTensorShape& found,
                        const PartialTensorShape& expected, absl::string_view why);

// Returns INVALID_ARGUMENT unless the shape `found` has a single element. A partially known shape
// passes if it may have a single element.
absl::Status CheckOneElement(absl::string_view name, const PartialTensorShape& found);

// Returns INVALID_ARGUMENT unless the tensor is a scalar or a vector of size 1. Some
// TensorFlow kernels accept the vector although their shape functions do not.
absl::Status CheckScalarOrVector1(absl::string_view name, const TensorShape& found);

// Returns INVALID_ARGUMENT "data.shape = [3] does not start with indices.shape = [2]" unless
// `shape` may start with the dimensions of `prefix`.
absl::Status CheckPrefix(absl::string_view name, const PartialTensorShape& shape,
                         absl::string_view prefix_name, const PartialTensorShape& prefix);

// Returns INVALID_ARGUMENT unless input `name` of shape `shape` may broadcast to the shape `to` by
// NumPy's rules.
absl::Status CheckBroadcastsTo(absl::string_view name, const PartialTensorShape& shape,
                               const PartialTensorShape& to);

// Returns INVALID_ARGUMENT unless the inputs are initialized and have the given types. Kernels that
// read elements through pointers call this first.
absl::Status CheckInputTypes(const KernelContext& ctx, absl::Span<const DataType> types);
// Returns the types for CheckInputTypes, which a kernel stores when it is constructed.
DataTypeVector InputTypes(const KernelConstruction& construction);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_INPUT_CHECKS_H_
