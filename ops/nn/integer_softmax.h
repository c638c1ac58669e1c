// Softmax of 8-bit integers.
#ifndef GRADFLOW_OPS_NN_INTEGER_SOFTMAX_H_
#define GRADFLOW_OPS_NN_INTEGER_SOFTMAX_H_

#include <memory>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"

namespace gradflow {

// Makes the kernel of a softmax along the last dimension of input 0.
std::shared_ptr<const OpKernel> MakeIntegerSoftmax(const IntegerFormKernel::Args& args);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_INTEGER_SOFTMAX_H_
