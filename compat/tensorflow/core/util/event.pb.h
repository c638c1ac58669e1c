// The messages of event.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_EVENT_PB_H_
#define GRADFLOW_COMPAT_CORE_UTIL_EVENT_PB_H_

#include "gradflow/proto/event.pb.h"
#include "tensorflow/core/framework/summary.pb.h"

namespace tensorflow {

using gradflow::Event;
using gradflow::LogMessage;
using gradflow::SessionLog;
using gradflow::SourceMetadata;
using gradflow::TaggedRunMetadata;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_EVENT_PB_H_
