#include "tensorflow/core/platform/env.h"

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <limits>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file.h"
#include "gradflow/proto/graph.pb.h"
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

}  // namespace

namespace io::internal {

std::string JoinPathImpl(std::initializer_list<absl::string_view> parts) {
  std::string path;
  for (absl::string_view part : parts) {
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

absl::Status Env::FileExists(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::no_such_file_or_directory);
  return FileError(path, "cannot be found", error);
}

absl::Status Env::GetFileSize(const std::string& path, uint64* size) {
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return FileError(path, "has no size", error);
  *size = bytes;
  return absl::OkStatus();
}

absl::Status Env::DeleteFile(const std::string& path) {
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

absl::Status Env::RenameFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return FileError(from, absl::StrCat("cannot be renamed to '", to, "'"), error);
  return absl::OkStatus();
}

absl::Status Env::CreateDir(const std::string& path) {
  std::error_code error;
  if (fs::create_directory(path, error)) return absl::OkStatus();
  if (!error) error = std::make_error_code(std::errc::file_exists);
  return FileError(path, "cannot be created", error);
}

absl::Status Env::RecursivelyCreateDir(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FileError(path, "cannot be created", error);
  return absl::OkStatus();
}

absl::Status Env::DeleteDir(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    error = std::make_error_code(std::errc::no_such_file_or_directory);
  } else if (fs::remove(path, error)) {
    return absl::OkStatus();
  }
  return FileError(path, "cannot be deleted", error);
}

absl::Status Env::IsDirectory(const std::string& path) {
  TF_RETURN_IF_ERROR(FileExists(path));
  std::error_code error;
  if (fs::is_directory(path, error)) return absl::OkStatus();
  return errors::FailedPrecondition("'", path, "': is not a directory");
}

absl::Status Env::GetChildren(const std::string& dir, std::vector<std::string>* result) {
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

namespace {

// Prepends the path, which the errors of gradflow's file functions omit.
absl::Status WithPath(const std::string& path, const absl::Status& status) {
  return gradflow::errors::Prefix(absl::StrCat("'", path, "': "), status);
}

absl::Status ReadFile(const std::string& path, size_t max_bytes, std::string* data) {
  size_t size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::internal::FileDescriptor file,
                            gradflow::internal::OpenFile(path, &size));
  if (size > max_bytes) {
    return errors::DataLoss("the file has ", size, " bytes, expected at most ", max_bytes);
  }
  try {
    data->resize(size);
  } catch (const std::exception&) {
    return errors::ResourceExhausted("out of memory for ", size, " bytes");
  }
  return gradflow::internal::ReadAt(file.get(), 0, data->data(), size);
}

// The maximum size of a message in protobuf, and the maximum nesting depth in text format.
constexpr size_t kMaxMessageBytes = std::numeric_limits<int>::max();
constexpr int kMaxTextDepth = 100;

// Reads a graph with gradflow's limits.
absl::Status TakeGraph(const std::string& path, absl::StatusOr<gradflow::GraphDef> read,
                       gradflow::GraphDef* graph) {
  if (absl::IsResourceExhausted(read.status())) return WithPath(path, read.status());
  if (!read.ok()) {
    return errors::DataLoss("'", path, "': is not a GraphDef: ", read.status().message());
  }
  *graph = *std::move(read);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadFileToString(Env*, const std::string& path, std::string* data) {
  return WithPath(path, ReadFile(path, std::numeric_limits<size_t>::max(), data));
}

absl::Status WriteStringToFile(Env*, const std::string& path, const absl::string_view& data) {
  return WithPath(path, gradflow::internal::WriteFile(path, {data}));
}

absl::Status ReadBinaryProto(Env*, const std::string& path, protobuf::MessageLite* proto) {
  std::string data;
  TF_RETURN_IF_ERROR(WithPath(path, ReadFile(path, kMaxMessageBytes, &data)));
  if (auto* const graph = dynamic_cast<gradflow::GraphDef*>(proto)) {
    return TakeGraph(path, gradflow::ParseGraphDef(data), graph);
  }
  return gradflow::CallSafely([&]() -> absl::Status {
    if (proto->ParseFromString(data)) return absl::OkStatus();
    return errors::DataLoss("'", path, "': is not a ", proto->GetTypeName());
  });
}

absl::Status WriteBinaryProto(Env* env, const std::string& path,
                              const protobuf::MessageLite& proto) {
  std::string data;
  if (!proto.SerializeToString(&data)) {
    return errors::InvalidArgument("'", path, "': a ", proto.GetTypeName(),
                                   " of 2 GiB or more cannot be written");
  }
  return WriteStringToFile(env, path, data);
}

absl::Status ReadTextProto(Env*, const std::string& path, protobuf::Message* proto) {
  std::string data;
  TF_RETURN_IF_ERROR(WithPath(path, ReadFile(path, kMaxMessageBytes, &data)));
  if (auto* const graph = dynamic_cast<gradflow::GraphDef*>(proto)) {
    return TakeGraph(path, gradflow::ParseGraphDefText(data), graph);
  }
  return gradflow::CallSafely([&]() -> absl::Status {
    protobuf::TextFormat::Parser parser;
    // Sets a limit, because the parser's default of unlimited recursion could overflow the stack.
    parser.SetRecursionLimit(kMaxTextDepth);
    if (parser.ParseFromString(data, proto)) return absl::OkStatus();
    return errors::DataLoss("'", path, "': is not the text of a ", proto->GetTypeName());
  });
}

absl::Status WriteTextProto(Env* env, const std::string& path, const protobuf::Message& proto) {
  std::string data;
  if (!protobuf::TextFormat::PrintToString(proto, &data)) {
    return errors::InvalidArgument("'", path, "': a ", proto.GetTypeName(),
                                   " cannot be written as text");
  }
  return WriteStringToFile(env, path, data);
}

}  // namespace tensorflow
