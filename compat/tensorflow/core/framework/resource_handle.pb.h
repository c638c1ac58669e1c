// The messages of resource_handle.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_PB_H_

#include "gradflow/proto/resource_handle.pb.h"

namespace tensorflow {

using gradflow::ResourceHandleProto;
using gradflow::ResourceHandleProto_DtypeAndShape;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_RESOURCE_HANDLE_PB_H_
