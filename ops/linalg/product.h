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

// How an input's matrices enter a product.
struct ProductForm {
  bool transposed = false;
  bool conjugated = false;
};

// Returns the type in which products whose result is `dtype` are computed: float for half and
// bfloat16, otherwise `dtype`.
DataType ProductType(DataType dtype);

// Returns true if elements of type `from` can be converted to type `to` by ConvertElements: not
// complex numbers to real ones, and not floating-point numbers to integers.
bool CanConvertElements(DataType from, DataType to);
// Sets *out to `from`, converted to a type that ProductType returns; to `from` itself if it has
// that type.
absl::Status ConvertElements(KernelContext& ctx, const Tensor& from, DataType to, Tensor* out);
// Rounds the elements of `from`, of ProductType(to->dtype()), to those of `to`.
void RoundElements(KernelContext& ctx, const Tensor& from, Tensor* to);

// Sets `out` [batch dimensions..., m, n] to x [..., m, k] times y [..., k, n], in these forms. The
// batch dimensions of x and y are broadcast to those of `out`. Integers wrap around. The result is
// computed in ProductType(out->dtype()), in blocks that depend on the shapes alone. Returns
// INVALID_ARGUMENT for dimensions that are too large for the BLAS. Applies `steps` to `out`, if not
// null.
// REQUIRES: the shapes agree, and the types of x and y can be converted to that of the product;
// with steps, all are float and not empty
absl::Status MultiplyBatches(KernelContext& ctx, const Tensor& x, ProductForm x_form,
                             const Tensor& y, ProductForm y_form, Tensor* out,
                             const FusedSteps* steps = nullptr);
// Computes the product, and applies the steps, as FusibleKernel::ComputeFused() does. `shape` is
// that of output 0, an error if the shapes of the inputs do not agree.
absl::Status MultiplyFused(KernelContext& ctx, ProductForm x_form, ProductForm y_form,
                           const absl::StatusOr<TensorShape>& shape, FusedSteps* steps, bool* done);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_PRODUCT_H_
