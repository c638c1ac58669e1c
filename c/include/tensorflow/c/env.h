// Files, time, threads and shared libraries.
#ifndef GRADFLOW_C_ENV_H_
#define GRADFLOW_C_ENV_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A file that is being written, a list of strings, and a thread.
typedef struct TF_WritableFileHandle TF_WritableFileHandle;
typedef struct TF_StringStream TF_StringStream;
typedef struct TF_Thread TF_Thread;

// Sizes in bytes; 0 means the default. `numa_node` has no effect.
typedef struct TF_ThreadOptions {
  size_t stack_size;
  size_t guard_size;
  int numa_node;
} TF_ThreadOptions;

// Creates a folder.
TF_CAPI_EXPORT void TF_CreateDir(const char* dirname, TF_Status* status);

// Deletes an empty folder.
TF_CAPI_EXPORT void TF_DeleteDir(const char* dirname, TF_Status* status);

// Deletes a file or a folder with its content. Counts what could not be deleted.
TF_CAPI_EXPORT void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                                         int64_t* undeleted_dir_count, TF_Status* status);

// Stores the size and time of a file.
TF_CAPI_EXPORT void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status);

// Creates a file, or empties an existing one.
TF_CAPI_EXPORT void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle,
                                       TF_Status* status);

// Closes the file and frees the handle.
TF_CAPI_EXPORT void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

// Write the buffered bytes: Sync to the device, Flush to the operating system.
TF_CAPI_EXPORT void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status);
TF_CAPI_EXPORT void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status);

// Appends bytes.
TF_CAPI_EXPORT void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data,
                                          size_t length, TF_Status* status);

// Deletes a file.
TF_CAPI_EXPORT void TF_DeleteFile(const char* filename, TF_Status* status);

// Stores the next string, which is valid until the list is freed. Returns false at the end.
TF_CAPI_EXPORT bool TF_StringStreamNext(TF_StringStream* list, const char** result);

// Frees the list.
TF_CAPI_EXPORT void TF_StringStreamDone(TF_StringStream* list);

// Returns the names in a folder.
TF_CAPI_EXPORT TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status);

// Returns folders for temporary files, the best first.
TF_CAPI_EXPORT TF_StringStream* TF_GetLocalTempDirectories(void);

// Returns the path of a new temporary file, which free() frees.
TF_CAPI_EXPORT char* TF_GetTempFileName(const char* extension);

// Return the time since 1970.
TF_CAPI_EXPORT uint64_t TF_NowNanos(void);
TF_CAPI_EXPORT uint64_t TF_NowMicros(void);
TF_CAPI_EXPORT uint64_t TF_NowSeconds(void);

// Sets the default options.
TF_CAPI_EXPORT void TF_DefaultThreadOptions(TF_ThreadOptions* options);

// Starts a thread that calls `work_func(param)`. Returns null on failure.
TF_CAPI_EXPORT TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                                         void (*work_func)(void*), void* param);

// Waits for the thread and frees it.
TF_CAPI_EXPORT void TF_JoinThread(TF_Thread* thread);

// Loads a shared library, and finds a symbol in it.
TF_CAPI_EXPORT void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status);
TF_CAPI_EXPORT void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name,
                                             TF_Status* status);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRADFLOW_C_ENV_H_
