// Products of matrices of 8-bit integers, in batches.
#ifndef GRADFLOW_OPS_LINALG_INTEGER_BATCH_MATMUL_H_
#define GRADFLOW_OPS_LINALG_INTEGER_BATCH_MATMUL_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow {

// Returns the shape of the product of inputs 0 and 1, or an error if their shapes do not match.
using IntegerProductShape = std::function<absl::StatusOr<TensorShape>(const KernelContext&)>;

// Makes the kernel of the product of inputs 0 and 1, [..., m, k] and [..., k, n], or their
// transposes. Their other dimensions broadcast. `rounds_once` is IntegerResult::rounds_once, for
// the rounding of TensorFlow Lite.
std::shared_ptr<const OpKernel> MakeIntegerBatchMatMul(const IntegerFormKernel::Args& args,
                                                       bool transpose_x, bool transpose_y,
                                                       bool rounds_once, IntegerProductShape shape);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_INTEGER_BATCH_MATMUL_H_
