// CaseFolder: writes files of a golden case, all or none, and nowhere else. Not for users.
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

// A case may come from anywhere, and names of its nodes become names of files. Every folder below
// the case is opened relative to the one above it, without following links.
class CaseFolder {
 public:
  // Opens the folder `path`, which may be a link.
  static absl::StatusOr<CaseFolder> Open(const std::string& path);
  CaseFolder(CaseFolder&&) noexcept = default;
  CaseFolder& operator=(CaseFolder&&) = delete;
  // Removes the files that have not been committed.
  ~CaseFolder();

  // Writes the concatenation of `parts` to a new file that Commit renames to `name`, such as
  // "expected/layer/grad.npy", and makes the folders that do not exist. INVALID_ARGUMENT if a part
  // of the name is empty, "." or "..", or names a link or something else that is not a folder.
  absl::Status Stage(const std::string& name, absl::Span<const absl::string_view> parts);
  // Gives all staged files their names.
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
