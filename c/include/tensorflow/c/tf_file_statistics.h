// TF_FileStatistics: the size and time of a file.
#ifndef GRADFLOW_C_TF_FILE_STATISTICS_H_
#define GRADFLOW_C_TF_FILE_STATISTICS_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// `mtime_nsec` is the time of the last change, in nanoseconds since 1970.
typedef struct TF_FileStatistics {
  int64_t length;
  int64_t mtime_nsec;
  bool is_directory;
} TF_FileStatistics;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_TF_FILE_STATISTICS_H_
