// Convolutions of 8-bit integers.
#ifndef GRADFLOW_OPS_NN_INTEGER_CONV_H_
#define GRADFLOW_OPS_NN_INTEGER_CONV_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/ops/nn/conv_geometry.h"

namespace gradflow {

// Returns the channels of filters of this shape, or says why there is no kernel.
absl::StatusOr<IntegerProductKernel::Channels> IntegerConvChannels(const ConvAttrs& attrs,
                                                                   const TensorShape& filter);

// Makes the kernel. REQUIRES: IntegerConvChannels() has accepted the shape of the weights
absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerConv(const ConvAttrs& attrs,
                                                                const IntegerProductArgs& args);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_INTEGER_CONV_H_
