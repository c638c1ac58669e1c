// CreateSummaryFileWriter: creates a writer of an event file.
#ifndef GRADFLOW_COMPAT_CORE_SUMMARY_SUMMARY_FILE_WRITER_H_
#define GRADFLOW_COMPAT_CORE_SUMMARY_SUMMARY_FILE_WRITER_H_

#include <string>

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/kernels/summary_interface.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/lib/strings/str_util.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// Stores a writer for a new file "<logdir>/events.out.tfevents.<...><filename_suffix>". The caller
// owns a reference. The writer runs the kernels of ScalarSummary, HistogramSummary, ImageSummary
// and TensorSummaryV2, and may be called from any thread. WriteAudio returns UNIMPLEMENTED. Events
// are written immediately: `max_queue` and `flush_millis` have no effect.
absl::Status CreateSummaryFileWriter(int max_queue, int flush_millis, const std::string& logdir,
                                     const std::string& filename_suffix, Env* env,
                                     SummaryWriterInterface** result);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_SUMMARY_SUMMARY_FILE_WRITER_H_
