// Files, time, threads and shared libraries.
#include "tensorflow/c/env.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/c/status.h"
#include "gradflow/graph/node_checks.h"

struct TF_WritableFileHandle {
  std::FILE* file;
};

struct TF_StringStream {
  std::vector<std::string> strings;
  size_t next = 0;
};

struct TF_Thread {
  pthread_t thread;
  void (*work)(void*);
  void* param;
};

namespace gradflow::capi {
namespace {

namespace fs = std::filesystem;

absl::Status IoError(int error, const char* path) {
  return absl::ErrnoToStatus(error, internal::Quoted(OrEmpty(path)));
}
absl::Status IoError(const std::error_code& error, const char* path) {
  return IoError(error.value(), path);
}

uint64_t Now(uint64_t per_second) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return static_cast<uint64_t>(nanos) / (1000000000 / per_second);
}

void* RunThread(void* thread) {
  const auto* const started = static_cast<TF_Thread*>(thread);
  started->work(started->param);
  return nullptr;
}

// Deletes a folder's content, then the folder. Counts the files and folders that could not be
// deleted.
void DeleteTree(const fs::path& path, int64_t* files, int64_t* dirs) {
  std::error_code error;
  if (fs::is_directory(fs::symlink_status(path, error))) {
    std::vector<fs::path> children;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      children.push_back(it->path());
    }
    for (const fs::path& child : children) DeleteTree(child, files, dirs);
    if (!fs::remove(path, error) || error) ++*dirs;
  } else if (!fs::remove(path, error) || error) {
    ++*files;
  }
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::IoError;
using gradflow::capi::OrEmpty;
namespace fs = std::filesystem;

// ---- Folders and files ----

void TF_CreateDir(const char* dirname, TF_Status* status) {
  Call(status, [&] {
    return mkdir(OrEmpty(dirname), 0755) == 0 ? absl::OkStatus() : IoError(errno, dirname);
  });
}

void TF_DeleteDir(const char* dirname, TF_Status* status) {
  Call(status,
       [&] { return rmdir(OrEmpty(dirname)) == 0 ? absl::OkStatus() : IoError(errno, dirname); });
}

void TF_DeleteRecursively(const char* dirname, int64_t* undeleted_file_count,
                          int64_t* undeleted_dir_count, TF_Status* status) {
  *undeleted_file_count = 0;
  *undeleted_dir_count = 0;
  Call(status, [&]() -> absl::Status {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(OrEmpty(dirname), error))) {
      *undeleted_dir_count = 1;
      return IoError(ENOENT, dirname);
    }
    gradflow::capi::DeleteTree(OrEmpty(dirname), undeleted_file_count, undeleted_dir_count);
    if (*undeleted_file_count + *undeleted_dir_count == 0) return absl::OkStatus();
    return gradflow::errors::FailedPrecondition(
        gradflow::internal::Quoted(OrEmpty(dirname)), ": ", *undeleted_file_count, " files and ",
        *undeleted_dir_count, " folders could not be deleted");
  });
}

void TF_FileStat(const char* filename, TF_FileStatistics* stats, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    struct stat found;
    if (stat(OrEmpty(filename), &found) != 0) return IoError(errno, filename);
    stats->length = found.st_size;
    stats->mtime_nsec = found.st_mtim.tv_sec * int64_t{1000000000} + found.st_mtim.tv_nsec;
    stats->is_directory = S_ISDIR(found.st_mode);
    return absl::OkStatus();
  });
}

void TF_NewWritableFile(const char* filename, TF_WritableFileHandle** handle, TF_Status* status) {
  *handle = nullptr;
  Call(status, [&]() -> absl::Status {
    std::FILE* const file = std::fopen(OrEmpty(filename), "wb");
    if (file == nullptr) return IoError(errno, filename);
    *handle = new TF_WritableFileHandle{file};
    return absl::OkStatus();
  });
}

void TF_CloseWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  Call(status, [&] {
    const std::unique_ptr<TF_WritableFileHandle> owned(handle);
    return std::fclose(handle->file) == 0 ? absl::OkStatus() : IoError(errno, "a file");
  });
}

void TF_FlushWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  Call(status, [&] {
    return std::fflush(handle->file) == 0 ? absl::OkStatus() : IoError(errno, "a file");
  });
}

void TF_SyncWritableFile(TF_WritableFileHandle* handle, TF_Status* status) {
  Call(status, [&] {
    const bool ok = std::fflush(handle->file) == 0 && fsync(fileno(handle->file)) == 0;
    return ok ? absl::OkStatus() : IoError(errno, "a file");
  });
}

void TF_AppendWritableFile(TF_WritableFileHandle* handle, const char* data, size_t length,
                           TF_Status* status) {
  Call(status, [&] {
    return std::fwrite(data, 1, length, handle->file) == length ? absl::OkStatus()
                                                                : IoError(errno, "a file");
  });
}

void TF_DeleteFile(const char* filename, TF_Status* status) {
  Call(status, [&] {
    return unlink(OrEmpty(filename)) == 0 ? absl::OkStatus() : IoError(errno, filename);
  });
}

// ---- Lists ----

bool TF_StringStreamNext(TF_StringStream* list, const char** result) {
  if (list == nullptr || list->next >= list->strings.size()) {
    *result = nullptr;
    return false;
  }
  *result = list->strings[list->next++].c_str();
  return true;
}

void TF_StringStreamDone(TF_StringStream* list) { delete list; }

TF_StringStream* TF_GetChildren(const char* filename, TF_Status* status) {
  TF_StringStream* result = nullptr;
  Call(status, [&]() -> absl::Status {
    auto list = std::make_unique<TF_StringStream>();
    std::error_code error;
    for (fs::directory_iterator it(OrEmpty(filename), error), end; !error && it != end;
         it.increment(error)) {
      list->strings.push_back(it->path().filename().string());
    }
    if (error) return IoError(error, filename);
    result = list.release();
    return absl::OkStatus();
  });
  return result;
}

TF_StringStream* TF_GetLocalTempDirectories(void) {
  return CallOr<TF_StringStream*>(nullptr, [] {
    auto list = std::make_unique<TF_StringStream>();
    for (const char* name : {"TEST_TMPDIR", "TMPDIR", "TMP"}) {
      const char* const path = std::getenv(name);
      std::error_code error;
      if (path != nullptr && fs::is_directory(path, error)) list->strings.emplace_back(path);
    }
    list->strings.emplace_back("/tmp");
    return list.release();
  });
}

char* TF_GetTempFileName(const char* extension) {
  return CallOr<char*>(nullptr, [&]() -> char* {
    const std::unique_ptr<TF_StringStream> folders(TF_GetLocalTempDirectories());
    const std::string suffix = *OrEmpty(extension) == '\0' ? "" : absl::StrCat(".", extension);
    std::string path = absl::StrCat(folders->strings[0], "/tmp_file_XXXXXX", suffix);
    const int file = mkstemps(path.data(), static_cast<int>(suffix.size()));
    if (file < 0) return nullptr;
    close(file);
    return strdup(path.c_str());
  });
}

// ---- Time, threads, libraries ----

uint64_t TF_NowNanos(void) { return gradflow::capi::Now(1000000000); }
uint64_t TF_NowMicros(void) { return gradflow::capi::Now(1000000); }
uint64_t TF_NowSeconds(void) { return gradflow::capi::Now(1); }

void TF_DefaultThreadOptions(TF_ThreadOptions* options) { *options = {0, 0, -1}; }

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char*, void (*work_func)(void*),
                          void* param) {
  return CallOr<TF_Thread*>(nullptr, [&]() -> TF_Thread* {
    auto thread = std::make_unique<TF_Thread>(TF_Thread{{}, work_func, param});
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (options->stack_size > 0) pthread_attr_setstacksize(&attributes, options->stack_size);
    if (options->guard_size > 0) pthread_attr_setguardsize(&attributes, options->guard_size);
    const int error =
        pthread_create(&thread->thread, &attributes, &gradflow::capi::RunThread, thread.get());
    pthread_attr_destroy(&attributes);
    return error == 0 ? thread.release() : nullptr;
  });
}

void TF_JoinThread(TF_Thread* thread) {
  if (thread == nullptr) return;
  pthread_join(thread->thread, nullptr);
  delete thread;
}

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  void* result = nullptr;
  Call(status, [&]() -> absl::Status {
    result = dlopen(OrEmpty(library_filename), RTLD_NOW | RTLD_LOCAL);
    if (result != nullptr) return absl::OkStatus();
    return gradflow::errors::NotFound(gradflow::errors::Printable(dlerror()));
  });
  return result;
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  void* result = nullptr;
  Call(status, [&]() -> absl::Status {
    result = dlsym(handle, OrEmpty(symbol_name));
    if (result != nullptr) return absl::OkStatus();
    return gradflow::errors::NotFound("there is no symbol ",
                                      gradflow::internal::Quoted(OrEmpty(symbol_name)));
  });
  return result;
}
