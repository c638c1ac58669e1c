// FileAccess: the files that the ops of a graph may touch.
//
//   SessionOptions options;
//   options.file_access = FileAccess::None();
//   // Or: files below data/ may be read, files below out/ may be written.
//   GRADFLOW_ASSIGN_OR_RETURN(options.file_access, FileAccess::Below({"data"}, {"out"}));
//
// A path is compared after its symbolic links and its parts ".." have been resolved. The file is
// then opened part by part from the allowed folder, and no part may be a link, so a link that
// appears in between leads nowhere. A hard link to a file is that file.
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
  // The use of a file. Renaming, replacing and removing a file are writing.
  enum class Use { kRead, kWrite };

  // Access to every file that the process may touch.
  FileAccess() = default;
  static const FileAccess& All();
  // Access to no file.
  static const FileAccess& None();
  // Access to the files below folders, at any depth. Files below `write` may be written, not read,
  // unless `read` has their folder too. Returns the error of a folder that cannot be opened.
  static absl::StatusOr<FileAccess> Below(const std::vector<std::string>& read,
                                          const std::vector<std::string>& write);

  // Returns PERMISSION_DENIED unless the path may be used. Kernels of plugins call this before they
  // open a file. The file need not exist.
  absl::Status Check(const std::string& path, Use use) const;

  // For the library: null for all files.
  const internal::FileFolders* folders() const { return folders_.get(); }

 private:
  std::shared_ptr<const internal::FileFolders> folders_;
};

// Returns the files that a kernel may touch in this run: none outside of a session.
inline const FileAccess& FileAccessOf(const KernelContext& context) {
  return context.run().files != nullptr ? *context.run().files : FileAccess::None();
}

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_FILE_ACCESS_H_
