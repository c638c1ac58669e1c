// Env: file operations for programs that load and save graphs. Functions that read and write
// protobuf messages.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_

#include <string>
#include <vector>

#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/types.h"

namespace google::protobuf {
class Message;
class MessageLite;
}  // namespace google::protobuf

namespace tensorflow {

namespace protobuf = ::google::protobuf;

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
  // Returns the microseconds since the Unix epoch.
  virtual uint64 NowMicros() const;
};

absl::Status ReadFileToString(Env* env, const std::string& path, std::string* data);
absl::Status WriteStringToFile(Env* env, const std::string& path, const StringPiece& data);

// Read and write a message. Return the system's error if the file cannot be opened (NOT_FOUND,
// PERMISSION_DENIED), INVALID_ARGUMENT if it is not a regular file, DATA_LOSS if it does not parse
// or has 2 GiB or more. Files are written whole or not at all.
absl::Status ReadBinaryProto(Env* env, const std::string& path, protobuf::MessageLite* proto);
absl::Status WriteBinaryProto(Env* env, const std::string& path,
                              const protobuf::MessageLite& proto);
absl::Status ReadTextProto(Env* env, const std::string& path, protobuf::Message* proto);
absl::Status WriteTextProto(Env* env, const std::string& path, const protobuf::Message& proto);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_
