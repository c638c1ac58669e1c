// Log entries, on standard error and to the listener of TF_RegisterLogListener().
#ifndef GRADFLOW_C_LOGGING_H_
#define GRADFLOW_C_LOGGING_H_

#include "tensorflow/c/c_api_macros.h"

#ifdef __cplusplus
extern "C" {
#endif

// The severity of an entry.
typedef enum TF_LogLevel {
  TF_INFO = 0,
  TF_WARNING = 1,
  TF_ERROR = 2,
  TF_FATAL = 3,
} TF_LogLevel;

// Logs a text in the format of printf(). TF_FATAL ends the process.
TF_CAPI_EXPORT void TF_Log(TF_LogLevel level, const char* fmt, ...);

// Log details. Have an effect only if the environment variable TF_CPP_MAX_VLOG_LEVEL is at least
// `level`.
TF_CAPI_EXPORT void TF_VLog(int level, const char* fmt, ...);
TF_CAPI_EXPORT void TF_DVLog(int level, const char* fmt, ...);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_LOGGING_H_
