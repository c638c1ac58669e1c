// VariantTensorData: the encoded form of a Variant.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_

#include "gradflow/core/variant_tensor_data.h"
#include "gradflow/proto/tensor.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/stringpiece.h"

namespace tensorflow {

using gradflow::VariantTensorData;
using gradflow::VariantTensorDataProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_TENSOR_DATA_H_
