// Reading and writing whole files. Internal.
//
// Error messages state the failure and its reason ("cannot open: No such file or directory"); the
// caller adds the path. Kernels pass FileAccessOf(context), the files that the graph may touch.
// Other callers act for the program, which may touch all files.
#ifndef GRADFLOW_IO_FILE_H_
#define GRADFLOW_IO_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow {
class FileAccess;
}  // namespace gradflow

namespace gradflow::internal {

// Access to all files, for default arguments.
const FileAccess& AllFiles();

// An owning file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  // Returns the descriptor and gives up its ownership.
  int Release() { return std::exchange(fd_, -1); }
  // Closes the file. Returns false, with errno set, if written data could not be stored.
  bool Close();

 private:
  int fd_;
};

// Opens a file for reading and stores its size in *size. Returns INVALID_ARGUMENT if it is not a
// regular file (a directory, a pipe).
absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, size_t* size,
                                        const FileAccess& access = AllFiles());
absl::Status ReadAt(int fd, size_t offset, char* to, size_t size);

// Writes the concatenation of `parts`.
absl::Status WriteAll(int fd, absl::Span<const absl::string_view> parts);

// A new file that has been written but not yet renamed to its path. It is open and locked against
// RemoveStaleFiles().
class StagedFile {
 public:
  // Writes the concatenation of `parts` to a temporary file in the directory of `path`. If `path`
  // is a symbolic link, its target will be replaced. The new file has the permissions of the file
  // that it replaces. Returns INVALID_ARGUMENT if `path` exists and is not a regular file. With
  // `sync`, waits until the bytes are on the disk.
  static absl::StatusOr<StagedFile> Write(const std::string& path,
                                          absl::Span<const absl::string_view> parts,
                                          bool sync = false, const FileAccess& access = AllFiles());
  StagedFile(StagedFile&& other) noexcept
      : file_(std::move(other.file_)),
        folder_(std::move(other.folder_)),
        temporary_(std::exchange(other.temporary_, "")),
        target_(std::move(other.target_)) {}
  StagedFile& operator=(StagedFile&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(folder_, other.folder_);
    std::swap(temporary_, other.temporary_);
    std::swap(target_, other.target_);
    return *this;
  }
  // Removes the temporary file unless it has been committed.
  ~StagedFile();
  // Renames the temporary file to its path. REQUIRES: not called before
  absl::Status Commit();

 private:
  StagedFile(FileDescriptor file, FileDescriptor folder, std::string temporary, std::string target)
      : file_(std::move(file)),
        folder_(std::move(folder)),
        temporary_(std::move(temporary)),
        target_(std::move(target)) {}
  // The folder that the names are relative to.
  int folder() const;

  FileDescriptor file_;
  // The folder of the target. Closed if this is the current folder.
  FileDescriptor folder_;
  std::string temporary_;
  std::string target_;
};

// Writes and commits a StagedFile: the file appears whole or not at all.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts,
                       bool sync = false, const FileAccess& access = AllFiles());

// Renames a file or a link. Replaces an existing file with the new name.
absl::Status RenameFile(const std::string& from, const std::string& to,
                        const FileAccess& access = AllFiles());
// Remove a file or a link, or an empty folder.
absl::Status RemoveFile(const std::string& path, const FileAccess& access = AllFiles());
absl::Status RemoveFolder(const std::string& path, const FileAccess& access = AllFiles());

// Makes the missing folders in the path of a file.
absl::Status MakeFolders(const std::string& path, const FileAccess& access = AllFiles());

// Removes temporary files that killed processes have left in a folder.
void RemoveStaleFiles(const std::string& folder);

// Waits until no other thread or process has locked a folder, and locks it. The lock ends with the
// descriptor, or with the process. On file systems without locks, locks nothing.
absl::StatusOr<FileDescriptor> LockFolder(const std::string& path);

// Waits until a file, or the names in a folder, are on the disk.
absl::Status SyncFile(const std::string& path);
absl::Status SyncFolder(const std::string& path);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_FILE_H_
