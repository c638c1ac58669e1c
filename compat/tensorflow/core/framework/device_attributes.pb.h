// The messages of device_attributes.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_ATTRIBUTES_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_ATTRIBUTES_PB_H_

#include "gradflow/proto/device_attributes.pb.h"

namespace tensorflow {

using gradflow::DeviceAttributes;
using gradflow::DeviceLocality;
using gradflow::InterconnectLink;
using gradflow::LocalLinks;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_DEVICE_ATTRIBUTES_PB_H_
