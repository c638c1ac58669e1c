// The messages of summary.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_SUMMARY_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_SUMMARY_PB_H_

#include "gradflow/proto/summary.pb.h"

namespace tensorflow {

using gradflow::HistogramProto;
using gradflow::Summary;
using gradflow::SummaryDescription;
using gradflow::SummaryMetadata;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_SUMMARY_PB_H_
