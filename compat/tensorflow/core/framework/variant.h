// Variant: a value of any copyable type, the element of tensors of type DT_VARIANT.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_

#include "gradflow/core/variant.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace tensorflow {

using gradflow::DebugStringVariant;
using gradflow::DecodeVariant;
using gradflow::EncodeVariant;
using gradflow::TypeNameVariant;
using gradflow::Variant;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_H_
