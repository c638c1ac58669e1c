// Reading and writing of GraphDefs as bytes, text and files; see import.h and export.h.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/text_format.h"
#include "gradflow/graph/wire_check.h"
#include "gradflow/io/file.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {
namespace {

// The limit of protobuf.
constexpr size_t kMaxBytes = std::numeric_limits<int>::max();

bool IsTextName(absl::string_view path) { return absl::EndsWith(path, ".pbtxt"); }
bool IsBinaryName(absl::string_view path) { return absl::EndsWith(path, ".pb"); }

// Returns true if the bytes are text. In the binary form, the tag of a node's op is a control
// character.
bool LooksLikeText(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
    return (c >= ' ' && c != 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
}

absl::Status CheckSize(size_t size, const GraphLimits& limits) {
  const auto limit = static_cast<size_t>(
      std::clamp<int64_t>(limits.max_file_bytes, 0, static_cast<int64_t>(kMaxBytes)));
  if (size <= limit) return absl::OkStatus();
  return errors::InvalidArgument("expected a GraphDef of at most ", limit,
                                 " bytes (GraphLimits::max_file_bytes), but found ", size);
}

absl::StatusOr<std::string> ReadBytes(const std::string& path, const GraphLimits& limits) {
  size_t size;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
  if (size == 0) return errors::InvalidArgument("expected a GraphDef, but the file is empty");
  GRADFLOW_RETURN_IF_ERROR(CheckSize(size, limits));
  std::string bytes(size, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, bytes.data(), size));
  return bytes;
}

// Returns an error if the file, or the folder, is a SavedModel.
absl::Status NotASavedModel(bool is_saved_model) {
  if (!is_saved_model) return absl::OkStatus();
  return errors::InvalidArgument(
      "expected a GraphDef, but found a SavedModel; load its folder with LoadSavedModel() "
      "(gradflow/saved_model/loader.h)");
}

// A SavedModel begins with the field of its version, which is 1, and its first graph.
bool LooksLikeSavedModel(absl::string_view bytes) {
  return absl::StartsWith(bytes, "\x08\x01\x12") ||
         absl::StartsWith(bytes, "saved_model_schema_version");
}

absl::StatusOr<GraphDef> ReadFile(const std::string& path, const GraphLimits& limits) {
  std::error_code unknown;
  GRADFLOW_RETURN_IF_ERROR(
      NotASavedModel(std::filesystem::exists(path + "/saved_model.pb", unknown) ||
                     std::filesystem::exists(path + "/saved_model.pbtxt", unknown)));
  GRADFLOW_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path, limits));
  GRADFLOW_RETURN_IF_ERROR(NotASavedModel(LooksLikeSavedModel(bytes)));
  const bool text = IsTextName(path) || (!IsBinaryName(path) && LooksLikeText(bytes));
  return text ? ParseGraphDefText(bytes, limits) : ParseGraphDef(bytes, limits);
}

absl::Status WriteBytes(const std::string& path, const GraphDef& graph_def) {
  std::string bytes;
  if (IsTextName(path)) {
    // The bound allows for a list of booleans, whose text is much longer than its bytes, especially
    // if it is deeply nested.
    constexpr size_t kMaxExpansion = 64;
    constexpr size_t kSmallText = size_t{1} << 20;
    GRADFLOW_ASSIGN_OR_RETURN(
        bytes,
        internal::MessageToText(graph_def, kSmallText + kMaxExpansion * graph_def.ByteSizeLong()));
  } else if (IsBinaryName(path)) {
    GRADFLOW_ASSIGN_OR_RETURN(bytes, SerializeGraphDef(graph_def));
  } else {
    return errors::InvalidArgument("expected a name that ends in .pb (binary) or .pbtxt (text)");
  }
  const absl::string_view parts[] = {bytes};
  return internal::WriteFile(path, parts);
}

std::string FilePrefix(const std::string& path) { return absl::StrCat("'", path, "': "); }

}  // namespace

absl::StatusOr<GraphDef> ParseGraphDef(absl::string_view bytes, const GraphLimits& limits) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(bytes.size(), limits));
  GraphDef graph_def;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(internal::CheckWire(bytes, graph_def, limits));
    // Keeps protobuf from writing the fault to standard error; the status states it.
    const google::protobuf::LogSilencer silencer;
    if (graph_def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return absl::OkStatus();
    }
    GRADFLOW_RETURN_IF_ERROR(internal::ExplainWire(bytes, graph_def, limits));
    return errors::InvalidArgument("found ", bytes.size(), " other bytes");
  });
  if (!status.ok()) return errors::Prefix("expected a binary GraphDef: ", status);
  return graph_def;
}

absl::StatusOr<GraphDef> ParseGraphDefText(absl::string_view text, const GraphLimits& limits) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(text.size(), limits));
  GraphDef graph_def;
  const absl::Status status =
      CallSafely([&] { return internal::MessageFromText(text, limits, &graph_def); });
  if (!status.ok()) return errors::Prefix("expected a GraphDef as text: ", status);
  return graph_def;
}

absl::StatusOr<GraphDef> ReadGraphDef(const std::string& path, const GraphLimits& limits) {
  GraphDef graph_def;
  const absl::Status status = CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(graph_def, ReadFile(path, limits));
    return absl::OkStatus();
  });
  if (!status.ok()) return errors::Prefix(FilePrefix(path), status);
  return graph_def;
}

absl::StatusOr<std::string> SerializeGraphDef(const GraphDef& graph_def) {
  const size_t size = graph_def.ByteSizeLong();
  if (size > kMaxBytes) {
    return errors::InvalidArgument("the graph has ", size,
                                   " bytes, but a GraphDef has less than 2 GiB");
  }
  std::string bytes;
  bytes.reserve(size);
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    // Sorts maps.
    coded.SetSerializationDeterministic(true);
    if (!graph_def.SerializeToCodedStream(&coded)) {
      return errors::Internal("the graph cannot be serialized");
    }
  }
  return bytes;
}

std::string GraphDefToText(const GraphDef& graph_def) {
  return internal::MessageToText(graph_def, std::numeric_limits<size_t>::max()).value_or("");
}

absl::Status WriteGraphDef(const std::string& path, const GraphDef& graph_def) {
  return errors::Prefix(FilePrefix(path), WriteBytes(path, graph_def));
}

}  // namespace gradflow
