#include "tensorflow/core/platform/env.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "tensorflow/core/lib/io/path.h"

namespace tensorflow {
namespace {

namespace fs = std::filesystem;

absl::Status FileError(const std::string& path, absl::string_view what, std::error_code error) {
  const std::string text = absl::StrCat("'", path, "': ", what, ": ", error.message());
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return absl::NotFoundError(text);
  }
  if (error == std::errc::file_exists) return absl::AlreadyExistsError(text);
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted) {
    return absl::PermissionDeniedError(text);
  }
  if (error == std::errc::directory_not_empty || error == std::errc::is_a_directory) {
    return absl::FailedPreconditionError(text);
  }
  return absl::UnknownError(text);
}

absl::Status LastError(const std::string& path, absl::string_view what) {
  return FileError(path, what, std::error_code(errno, std::generic_category()));
}

}  // namespace

namespace io::internal {

std::string JoinPathImpl(std::initializer_list<StringPiece> parts) {
  std::string path;
  for (StringPiece part : parts) {
    if (part.empty()) continue;
    if (path.empty()) {
      path = std::string(part);
      continue;
    }
    while (!part.empty() && part.front() == '/') part.remove_prefix(1);
    if (path.back() != '/') path += '/';
    path.append(part.data(), part.size());
  }
  return path;
}

}  // namespace io::internal

Env* Env::Default() {
  static Env* env = new Env;
  return env;
}

Status Env::FileExists(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::no_such_file_or_directory);
  return FileError(path, "cannot be found", error);
}

Status Env::GetFileSize(const std::string& path, uint64* size) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return FileError(path, "has no size", error);
  *size = bytes;
  return absl::OkStatus();
}

Status Env::DeleteFile(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    error = std::make_error_code(std::errc::is_a_directory);
  } else if (fs::remove(path, error)) {
    return absl::OkStatus();
  } else if (!error) {
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  }
  return FileError(path, "cannot be deleted", error);
}

Status Env::RenameFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return FileError(from, absl::StrCat("cannot be renamed to '", to, "'"), error);
  return absl::OkStatus();
}

Status Env::CreateDir(const std::string& path) {
  std::error_code error;
  if (fs::create_directory(path, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::file_exists);
  return FileError(path, "cannot be created", error);
}

Status Env::RecursivelyCreateDir(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FileError(path, "cannot be created", error);
  return absl::OkStatus();
}

Status Env::DeleteDir(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  } else if (fs::remove(path, error)) {
    return absl::OkStatus();
  }
  return FileError(path, "cannot be deleted", error);
}

Status Env::IsDirectory(const std::string& path) {
  TF_RETURN_IF_ERROR(FileExists(path));
  std::error_code error;
  if (fs::is_directory(path, error)) return absl::OkStatus();
  return errors::FailedPrecondition("'", path, "': is not a directory");
}

Status Env::GetChildren(const std::string& dir, std::vector<std::string>* result) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator i(dir, error), end; !error && i != end; i.increment(error)) {
    names.push_back(i->path().filename().string());
  }
  if (error) return FileError(dir, "cannot be listed", error);
  std::sort(names.begin(), names.end());
  *result = std::move(names);
  return absl::OkStatus();
}

uint64 Env::NowMicros() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Status ReadFileToString(Env* env, const std::string& path, std::string* data) {
  uint64 size = 0;
  TF_RETURN_IF_ERROR(env->GetFileSize(path, &size));
  std::ifstream file(path, std::ios::binary);
  if (!file) return LastError(path, "cannot be opened");
  std::string content(size, '\0');
  file.read(content.data(), static_cast<std::streamsize>(size));
  if (!file) return errors::DataLoss("'", path, "': cannot be read to its end");
  *data = std::move(content);
  return absl::OkStatus();
}

Status WriteStringToFile(Env*, const std::string& path, const StringPiece& data) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return LastError(path, "cannot be opened");
  file.write(data.data(), static_cast<std::streamsize>(data.size()));
  file.close();
  if (!file) return LastError(path, "cannot be written");
  return absl::OkStatus();
}

Status ReadBinaryProto(Env* env, const std::string& path, protobuf::MessageLite* proto) {
  std::string data;
  TF_RETURN_IF_ERROR(ReadFileToString(env, path, &data));
  if (proto->ParseFromString(data)) return absl::OkStatus();
  return errors::DataLoss("'", path, "': is no ", proto->GetTypeName());
}

Status WriteBinaryProto(Env* env, const std::string& path, const protobuf::MessageLite& proto) {
  std::string data;
  if (!proto.SerializeToString(&data)) {
    return errors::InvalidArgument("'", path, "': a ", proto.GetTypeName(),
                                   " of 2 GiB or more cannot be written");
  }
  return WriteStringToFile(env, path, data);
}

Status ReadTextProto(Env* env, const std::string& path, protobuf::Message* proto) {
  std::string data;
  TF_RETURN_IF_ERROR(ReadFileToString(env, path, &data));
  if (protobuf::TextFormat::ParseFromString(data, proto)) return absl::OkStatus();
  return errors::DataLoss("'", path, "': is no text of a ", proto->GetTypeName());
}

Status WriteTextProto(Env* env, const std::string& path, const protobuf::Message& proto) {
  std::string data;
  if (!protobuf::TextFormat::PrintToString(proto, &data)) {
    return errors::InvalidArgument("'", path, "': a ", proto.GetTypeName(),
                                   " cannot be written as text");
  }
  return WriteStringToFile(env, path, data);
}

}  // namespace tensorflow
