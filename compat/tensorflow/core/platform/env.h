// Env: files, as far as programs that load and save graphs need them; and protobuf messages in
// files.
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

  // NOT_FOUND if there is none.
  virtual Status FileExists(const std::string& path);
  virtual Status GetFileSize(const std::string& path, uint64* size);
  virtual Status DeleteFile(const std::string& path);
  virtual Status RenameFile(const std::string& from, const std::string& to);
  virtual Status CreateDir(const std::string& path);
  virtual Status RecursivelyCreateDir(const std::string& path);
  virtual Status DeleteDir(const std::string& path);
  // FAILED_PRECONDITION if it is something else.
  virtual Status IsDirectory(const std::string& path);
  // The names in a folder, in alphabetical order.
  virtual Status GetChildren(const std::string& dir, std::vector<std::string>* result);
  // The time since 1970.
  virtual uint64 NowMicros() const;
};

Status ReadFileToString(Env* env, const std::string& path, std::string* data);
Status WriteStringToFile(Env* env, const std::string& path, const StringPiece& data);

// A message in a file: what the system says if it cannot be opened (NOT_FOUND, PERMISSION_DENIED),
// INVALID_ARGUMENT for what is no file, DATA_LOSS if it does not parse or has 2 GiB or more. Files
// are written whole or not at all.
Status ReadBinaryProto(Env* env, const std::string& path, protobuf::MessageLite* proto);
Status WriteBinaryProto(Env* env, const std::string& path, const protobuf::MessageLite& proto);
Status ReadTextProto(Env* env, const std::string& path, protobuf::Message* proto);
Status WriteTextProto(Env* env, const std::string& path, const protobuf::Message& proto);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_ENV_H_
