// Env: files, threads and the clock. Also functions that read and write protobuf messages.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace google::protobuf {
class Message;
class MessageLite;
}  // namespace google::protobuf

namespace tensorflow {

namespace protobuf = ::google::protobuf;

// A file for reading at any position. Thread-safe.
class RandomAccessFile {
 public:
  RandomAccessFile() = default;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;
  virtual ~RandomAccessFile() = default;
  // Reads `n` bytes at `offset` into `scratch`, and sets *result to the bytes read. Returns
  // OUT_OF_RANGE if the file has fewer bytes.
  virtual absl::Status Read(uint64 offset, size_t n, absl::string_view* result,
                            char* scratch) const;
  // Reads as many bytes as `scratch` has.
  virtual absl::Status Read(uint64 offset, absl::string_view& result,
                            absl::Span<char> scratch) const {
    return Read(offset, scratch.size(), &result, scratch.data());
  }
  virtual absl::Status Name(absl::string_view* result) const;
};

// A file for writing or appending. Not thread-safe.
class WritableFile {
 public:
  WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;
  virtual ~WritableFile() = default;
  virtual absl::Status Append(absl::string_view data) = 0;
  virtual absl::Status Flush() = 0;
  // Writes the file to the disk.
  virtual absl::Status Sync() = 0;
  // Returns the errors of all writes. The destructor also closes the file.
  virtual absl::Status Close() = 0;
  virtual absl::Status Name(absl::string_view* result) const;
  // Returns the position of the next write.
  virtual absl::Status Tell(int64* position);
};

// The bytes of a file in memory.
class ReadOnlyMemoryRegion {
 public:
  ReadOnlyMemoryRegion() = default;
  virtual ~ReadOnlyMemoryRegion() = default;
  virtual const void* data() = 0;
  virtual uint64 length() = 0;
};

// The size, modification time and kind of a file.
struct FileStatistics {
  int64 length = -1;
  int64 mtime_nsec = 0;
  bool is_directory = false;
};

// A thread. The destructor waits for it.
class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  virtual ~Thread() = default;
};

// No effect: the system's defaults apply.
struct ThreadOptions {
  size_t stack_size = 0;
  size_t guard_size = 0;
  int numa_node = -1;
};

// The local file system. Errors name the file. Thread-safe.
class Env {
 public:
  static Env* Default();
  virtual ~Env() = default;

  // Returns NOT_FOUND if the file does not exist.
  virtual absl::Status FileExists(const std::string& path);
  virtual absl::Status GetFileSize(const std::string& path, uint64* size);
  virtual absl::Status DeleteFile(const std::string& path);
  virtual absl::Status RenameFile(const std::string& from, const std::string& to);
  virtual absl::Status CreateDir(const std::string& path);
  virtual absl::Status RecursivelyCreateDir(const std::string& path);
  virtual absl::Status DeleteDir(const std::string& path);
  // Returns FAILED_PRECONDITION if `path` exists and is not a directory.
  virtual absl::Status IsDirectory(const std::string& path);
  // Stores the names of the entries of a directory, sorted.
  virtual absl::Status GetChildren(const std::string& dir, std::vector<std::string>* result);
  // Stores the paths that match a pattern with *, ? and [...], sorted.
  virtual absl::Status GetMatchingPaths(const std::string& pattern,
                                        std::vector<std::string>* results);
  virtual absl::Status Stat(const std::string& path, FileStatistics* stat);
  virtual absl::Status CopyFile(const std::string& from, const std::string& to);
  // Deletes a directory and its contents. The counts are the numbers of files and directories that
  // could not be deleted.
  virtual absl::Status DeleteRecursively(const std::string& path, int64* undeleted_files,
                                         int64* undeleted_dirs);

  virtual absl::Status NewRandomAccessFile(const std::string& path,
                                           std::unique_ptr<RandomAccessFile>* result);
  // Truncates the file if it exists.
  virtual absl::Status NewWritableFile(const std::string& path,
                                       std::unique_ptr<WritableFile>* result);
  virtual absl::Status NewAppendableFile(const std::string& path,
                                         std::unique_ptr<WritableFile>* result);
  virtual absl::Status NewReadOnlyMemoryRegionFromFile(
      const std::string& path, std::unique_ptr<ReadOnlyMemoryRegion>* result);
  // Stores the name of a new file in the folder for temporary files. Returns false on failure.
  virtual bool LocalTempFilename(std::string* filename);

  // Return the time since the Unix epoch.
  virtual uint64 NowNanos() const;
  virtual uint64 NowMicros() const;
  virtual uint64 NowSeconds() const { return NowMicros() / 1000000; }
  virtual void SleepForMicroseconds(int64 micros);

  // Starts a thread. The caller owns it.
  virtual Thread* StartThread(const ThreadOptions& options, const std::string& name,
                              std::function<void()> fn);
  // Run `closure` on another thread. The second function waits for some time first.
  virtual void SchedClosure(std::function<void()> closure);
  virtual void SchedClosureAfter(int64 micros, std::function<void()> closure);
};

absl::Status ReadFileToString(Env* env, const std::string& path, std::string* data);
absl::Status WriteStringToFile(Env* env, const std::string& path, const absl::string_view& data);

// Read and write a message. Return the system's error if the file cannot be opened (NOT_FOUND,
// PERMISSION_DENIED), INVALID_ARGUMENT if it is not a regular file, and DATA_LOSS if it does not
// parse or has 2 GiB or more. Files are written completely or not at all.
absl::Status ReadBinaryProto(Env* env, const std::string& path, protobuf::MessageLite* proto);
absl::Status WriteBinaryProto(Env* env, const std::string& path,
                              const protobuf::MessageLite& proto);
absl::Status ReadTextProto(Env* env, const std::string& path, protobuf::Message* proto);
absl::Status WriteTextProto(Env* env, const std::string& path, const protobuf::Message& proto);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_
