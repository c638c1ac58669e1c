// CreateSummaryFileWriter, at its path of TensorFlow 1.x.
#ifndef GRADFLOW_COMPAT_CONTRIB_TENSORBOARD_DB_SUMMARY_FILE_WRITER_H_
#define GRADFLOW_COMPAT_CONTRIB_TENSORBOARD_DB_SUMMARY_FILE_WRITER_H_

#include "tensorflow/core/summary/summary_file_writer.h"

#endif  // GRADFLOW_COMPAT_CONTRIB_TENSORBOARD_DB_SUMMARY_FILE_WRITER_H_
