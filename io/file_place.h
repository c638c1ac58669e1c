// FilePlace: finds a file that a graph may touch. Every file access goes through this class; see
// file_access.h. Internal.
#ifndef GRADFLOW_IO_FILE_PLACE_H_
#define GRADFLOW_IO_FILE_PLACE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_access.h"

namespace gradflow::internal {

// A file, or a name for one, for calls of the system such as openat().
class FilePlace {
 public:
  // The purpose of a place.
  struct Options {
    FileAccess::Use use = FileAccess::Use::kRead;
    // If true and the last part of the path is a link, the place is the link instead of its target.
    bool is_link = false;
    // If true, makes missing folders of the path.
    bool makes_folders = false;
  };

  // Returns PERMISSION_DENIED if `access` excludes the path. Also returns system errors, such as
  // NOT_FOUND for a missing folder. If `access` allows all files, the place is the unchanged path.
  static absl::StatusOr<FilePlace> Find(const FileAccess& access, const std::string& path,
                                        const Options& options);

  // Returns the folder. The descriptor is not open if the folder is AT_FDCWD.
  FileDescriptor TakeFolder() && { return std::move(folder_); }
  // The folder, or AT_FDCWD, and the path from there.
  int folder() const;
  const std::string& name() const { return name_; }
  // Return O_NOFOLLOW and AT_SYMLINK_NOFOLLOW if the file must not be a link.
  int open_flags() const;
  int stat_flags() const;

 private:
  FilePlace(FileDescriptor folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}

  // Closed if the folder is AT_FDCWD.
  FileDescriptor folder_;
  std::string name_;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_FILE_PLACE_H_
