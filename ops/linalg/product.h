// Products of batches of matrices of any numeric type, for MatMul, BatchMatMul and Einsum.
#ifndef GRADFLOW_OPS_LINALG_PRODUCT_H_
#define GRADFLOW_OPS_LINALG_PRODUCT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// The changes to the matrices of an input before a product.
struct ProductForm {
  bool transposed = false;
  bool conjugated = false;
};

// Returns the type that computes products with a result of `dtype`: float for half and bfloat16,
// otherwise `dtype`.
DataType ProductType(DataType dtype);

// Returns true if ConvertElements can convert elements of type `from` to type `to`. It cannot
// convert complex numbers to real numbers, or floating-point numbers to integers.
bool CanConvertElements(DataType from, DataType to);
// Sets *out to `from` converted to `to`, a result of ProductType; to `from` itself if it already
// has this type.
absl::Status ConvertElements(KernelContext& ctx, const Tensor& from, DataType to, Tensor* out);
// Rounds the elements of `from`, which have type ProductType(to->dtype()), to the type of `to`.
void RoundElements(KernelContext& ctx, const Tensor& from, Tensor* to);

// Sets `out` [batch dimensions..., m, n] to x [..., m, k] times y [..., k, n], in the given forms.
// Broadcasts the batch dimensions of x and y to the batch dimensions of `out`. Integers wrap
// around. Computes in ProductType(out->dtype()), in blocks that depend only on the shapes. Applies
// `steps` to `out` unless it is null. Returns INVALID_ARGUMENT for dimensions that are too large
// for the BLAS.
// REQUIRES: the shapes match, and the types of x and y can be converted to the type of the product;
// with steps, all tensors are float and not empty
absl::Status MultiplyBatches(KernelContext& ctx, const Tensor& x, ProductForm x_form,
                             const Tensor& y, ProductForm y_form, Tensor* out,
                             const FusedSteps* steps = nullptr);
// Computes the product and applies the steps like FusibleKernel::ComputeFused(). `shape` is the
// shape of output 0, or an error if the shapes of the inputs do not match.
absl::Status MultiplyFused(KernelContext& ctx, ProductForm x_form, ProductForm y_form,
                           const absl::StatusOr<TensorShape>& shape, FusedSteps* steps, bool* done);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_PRODUCT_H_
