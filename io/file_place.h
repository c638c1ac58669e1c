// Where a file is, as far as a graph may touch it. Every access to a file goes through here; see
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
    // If the last part of the path is a link, the place is the link itself.
    bool is_link = false;
    // Makes the folders on the way that do not exist.
    bool makes_folders = false;
  };

  // Returns PERMISSION_DENIED if `access` excludes the path, and otherwise errors of the system,
  // such as NOT_FOUND for a folder that does not exist. With access to all files, returns the path
  // as it is.
  static absl::StatusOr<FilePlace> Find(const FileAccess& access, const std::string& path,
                                        const Options& options);

  // Returns the folder, closed for AT_FDCWD.
  FileDescriptor TakeFolder() && { return std::move(folder_); }
  // The folder, or AT_FDCWD, and the path from there.
  int folder() const;
  const std::string& name() const { return name_; }
  // O_NOFOLLOW if the file must not be a link, and AT_SYMLINK_NOFOLLOW.
  int open_flags() const;
  int stat_flags() const;

 private:
  FilePlace(FileDescriptor folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}

  // Closed for AT_FDCWD.
  FileDescriptor folder_;
  std::string name_;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_IO_FILE_PLACE_H_
