// The messages of tensor_bundle.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_PROTOBUF_TENSOR_BUNDLE_PB_H_
#define GRADFLOW_COMPAT_CORE_PROTOBUF_TENSOR_BUNDLE_PB_H_

#include "gradflow/proto/tensor_bundle.pb.h"

namespace tensorflow {

using gradflow::BundleEntryProto;
using gradflow::BundleHeaderProto;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PROTOBUF_TENSOR_BUNDLE_PB_H_
