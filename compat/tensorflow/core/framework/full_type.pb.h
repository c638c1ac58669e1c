// The messages of full_type.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_

#include "gradflow/proto/full_type.pb.h"

namespace tensorflow {

using gradflow::FullTypeDef;
using gradflow::FullTypeId;
using gradflow::FullTypeId_Name;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_
