// Variant and VariantTensorData.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_ENCODE_DECODE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_ENCODE_DECODE_H_

#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_ENCODE_DECODE_H_
