// The files of a SavedModel. Internal.
#ifndef GRADFLOW_SAVED_MODEL_FILES_H_
#define GRADFLOW_SAVED_MODEL_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace gradflow::internal {

inline constexpr char kSavedModelFile[] = "saved_model.pb";
inline constexpr char kSavedModelTextFile[] = "saved_model.pbtxt";
inline constexpr char kAssetsFolder[] = "assets";

// Returns true if there is a file or folder.
bool FileExists(const std::string& path);
// Returns access to the files of the model.
absl::StatusOr<FileAccess> FilesOf(const std::string& export_dir);
// Adds to PERMISSION_DENIED that the files of a SavedModel must be inside its folder.
absl::Status ExplainDenied(const absl::Status& status);
// Reads a message in binary form, or as text if the name ends in ".pbtxt". Errors name the file and
// the kind of the message, `kind`.
absl::Status ReadMessage(const std::string& path, const FileAccess& files, absl::string_view kind,
                         const GraphLimits& limits, google::protobuf::Message* message);

}  // namespace gradflow::internal

#endif  // GRADFLOW_SAVED_MODEL_FILES_H_
