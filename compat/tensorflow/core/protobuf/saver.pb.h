// The messages of saver.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_SAVER_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_SAVER_PB_H_

#include "gradflow/proto/saver.pb.h"

namespace tensorflow {

using gradflow::SaverDef;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_SAVER_PB_H_
