// FileAccess: the files that the ops of a graph may touch.
//
//   SessionOptions options;
//   options.file_access = FileAccess::None();
//   // Or: files below data/ may be read, files below out/ may be written.
//   GRADFLOW_ASSIGN_OR_RETURN(options.file_access, FileAccess::Below({"data"}, {"out"}));
//
// Symbolic links and ".." in a path are resolved before the path is compared. The file is then
// opened part by part from the allowed folder, and no part may be a link. If a link appears after
// the comparison, opening the file therefore fails. A hard link is treated like the file.
//
// Thread safety: constant. Copies are cheap.
#ifndef GRADFLOW_IO_FILE_ACCESS_H_
#define GRADFLOW_IO_FILE_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/core/op_kernel.h"

#pragma GCC visibility push(default)
namespace gradflow {

namespace internal {
struct FileFolders;
}  // namespace internal

class FileAccess {
 public:
  // The use of a file. Renaming, replacing and removing a file count as writing.
  enum class Use { kRead, kWrite };

  // Access to every file that the process may touch.
  FileAccess() = default;
  static const FileAccess& All();
  // Access to no file.
  static const FileAccess& None();
  // Access to the files below folders, at any depth. Files below `write` may be written but not
  // read, unless `read` also has their folder. Returns an error if a folder cannot be opened.
  static absl::StatusOr<FileAccess> Below(const std::vector<std::string>& read,
                                          const std::vector<std::string>& write);

  // Returns this access, extended by reading the files below a folder.
  absl::StatusOr<FileAccess> AlsoReading(const std::string& folder) const;

  // Returns PERMISSION_DENIED unless the path may be used. Kernels of plugins call this before they
  // open a file. The file need not exist.
  absl::Status Check(const std::string& path, Use use) const;

  // For the library: null for all files.
  const internal::FileFolders* folders() const { return folders_.get(); }

 private:
  std::shared_ptr<const internal::FileFolders> folders_;
};

// Returns the files that a kernel may touch in this run. Outside of a session, it may touch no
// files.
inline const FileAccess& FileAccessOf(const KernelContext& context) {
  return context.run().files != nullptr ? *context.run().files : FileAccess::None();
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_FILE_ACCESS_H_
