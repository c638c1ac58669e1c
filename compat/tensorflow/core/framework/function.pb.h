// The messages of function.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_PB_H_

#include "gradflow/proto/function.pb.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace tensorflow {

using gradflow::FunctionDef;
using gradflow::FunctionDefLibrary;
using gradflow::GradientDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FUNCTION_PB_H_
