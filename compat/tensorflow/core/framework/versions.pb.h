// The messages of versions.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VERSIONS_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VERSIONS_PB_H_

#include "gradflow/proto/versions.pb.h"

namespace tensorflow {

using gradflow::VersionDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VERSIONS_PB_H_
