// The messages of verifier_config.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_VERIFIER_CONFIG_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_VERIFIER_CONFIG_PB_H_

#include "gradflow/proto/verifier_config.pb.h"

namespace tensorflow {

using gradflow::VerifierConfig;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_VERIFIER_CONFIG_PB_H_
