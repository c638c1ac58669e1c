// CaseFolder: writes files of a golden case, only inside its folder. No file changes unless all
// files could be written. Internal.
#ifndef GRADFLOW_TESTING_CASE_FOLDER_H_
#define GRADFLOW_TESTING_CASE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/io/file.h"

namespace gradflow::testing {

// Cases are untrusted, and node names become file names. Every folder below the case is opened
// relative to its parent folder, without following links.
class CaseFolder {
 public:
  // Opens the folder `path`, which may be a link.
  static absl::StatusOr<CaseFolder> Open(const std::string& path);
  CaseFolder(CaseFolder&&) noexcept = default;
  CaseFolder& operator=(CaseFolder&&) = delete;
  // Removes files that were not committed.
  ~CaseFolder();

  // Writes the concatenation of `parts` to a new file, which Commit renames to `name`, such as
  // "expected/layer/grad.npy". Creates missing folders. Returns INVALID_ARGUMENT if a part of the
  // name is empty, "." or "..", if a part before the last exists and is not a folder, or if the
  // last part exists and is neither a regular file nor a link.
  absl::Status Stage(const std::string& name, absl::Span<const absl::string_view> parts);
  // Gives all staged files their final names. After an error, some files have their final names.
  absl::Status Commit();

 private:
  struct Staged {
    std::string name;
    internal::FileDescriptor folder;
    std::string temporary;
    std::string target;
  };

  explicit CaseFolder(internal::FileDescriptor folder) : folder_(std::move(folder)) {}

  internal::FileDescriptor folder_;
  std::vector<Staged> staged_;
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTING_CASE_FOLDER_H_
