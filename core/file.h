// Reading and writing of whole files. Not for users.
//
// Errors say what failed and why ("cannot open: No such file or directory"), not which file: the
// caller adds it.
#ifndef GRADFLOW_CORE_FILE_H_
#define GRADFLOW_CORE_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow::internal {

// Owns an open file.
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
  // False, with errno set, if what was written could not be kept.
  bool Close();

 private:
  int fd_;
};

// Opens a file for reading and gives its size. INVALID_ARGUMENT for what is no regular file (a
// directory, a pipe).
absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, size_t* size);
absl::Status ReadAt(int fd, size_t offset, char* to, size_t size);

// A file that is written, but not yet in its place.
class StagedFile {
 public:
  // Writes `parts`, one after the other, to a new file beside `path`. Where `path` is a link, what
  // it points to is to be replaced; the new file has the permissions of the old one.
  // INVALID_ARGUMENT if there is something else than a regular file at `path`.
  static absl::StatusOr<StagedFile> Write(const std::string& path,
                                          absl::Span<const absl::string_view> parts);
  StagedFile(StagedFile&& other) noexcept
      : temporary_(std::exchange(other.temporary_, "")), target_(std::move(other.target_)) {}
  StagedFile& operator=(StagedFile&& other) noexcept {
    std::swap(temporary_, other.temporary_);
    std::swap(target_, other.target_);
    return *this;
  }
  // Removes the new file unless it has been put in place.
  ~StagedFile();
  // Puts it in place. To be called once.
  absl::Status Commit();

 private:
  StagedFile(std::string temporary, std::string target)
      : temporary_(std::move(temporary)), target_(std::move(target)) {}

  std::string temporary_;
  std::string target_;
};

// Both at once: the file appears whole or not at all.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_FILE_H_
