// The messages of step_stats.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_STEP_STATS_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_STEP_STATS_PB_H_

#include "gradflow/proto/step_stats.pb.h"

namespace tensorflow {

using gradflow::DeviceStepStats;
using gradflow::NodeExecStats;
using gradflow::StepStats;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_STEP_STATS_PB_H_
