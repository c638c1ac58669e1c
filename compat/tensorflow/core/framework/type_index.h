// TypeIndex: identifies a C++ type.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_

#include <string>

#include "gradflow/core/type_index.h"

namespace tensorflow {

using gradflow::TypeIndex;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_
