// The messages of allocation_description.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATION_DESCRIPTION_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATION_DESCRIPTION_PB_H_

#include "gradflow/proto/allocation_description.pb.h"

namespace tensorflow {

using gradflow::AllocationDescription;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATION_DESCRIPTION_PB_H_
