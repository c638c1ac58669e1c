// The messages of saved_model.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_SAVED_MODEL_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_SAVED_MODEL_PB_H_

#include "gradflow/proto/saved_model.pb.h"

namespace tensorflow {

using gradflow::SavedModel;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_SAVED_MODEL_PB_H_
