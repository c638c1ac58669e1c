#include "gradflow/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow::internal {
namespace {

// Rejects directories, and pipes, which could block forever.
absl::Status CheckRegularFile(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return errors::InvalidArgument("expected a regular file, but found a ",
                                 S_ISDIR(info.st_mode)    ? "directory"
                                 : S_ISFIFO(info.st_mode) ? "pipe"
                                                          : "device or socket");
}

absl::Status WriteBytes(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

absl::Status Sync(int fd) {
  // File systems that cannot wait return EINVAL.
  while (fsync(fd) != 0) {
    if (errno == EINVAL) return absl::OkStatus();
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "cannot write to the disk");
  }
  return absl::OkStatus();
}

absl::Status SyncPath(const std::string& path, int flags) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot open");
  return Sync(file.get());
}

// Creates a file in `folder` with permissions `mode` minus the umask. Returns a negative number,
// with errno set, on failure.
int CreateTemporary(const std::string& folder, mode_t mode, std::string* name) {
  static std::atomic<uint32_t> counter{0};
  for (;;) {
    *name = absl::StrCat(folder, ".gradflow-", getpid(), "-", counter.fetch_add(1), ".tmp");
    const int fd = open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

bool FileDescriptor::Close() { return close(std::exchange(fd_, -1)) == 0; }

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, size_t* size) {
  // O_NONBLOCK: opening a pipe must not block until it has a writer.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot open");
  struct stat info;
  if (fstat(file.get(), &info) != 0) return absl::ErrnoToStatus(errno, "cannot read");
  GRADFLOW_RETURN_IF_ERROR(CheckRegularFile(info));
  *size = info.st_size;
  return file;
}

absl::Status ReadAt(int fd, size_t offset, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = pread(fd, to, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot read");
    if (n == 0) return errors::InvalidArgument("the file was truncated while it was read");
    to += n;
    offset += n;
    size -= n;
  }
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, absl::Span<const absl::string_view> parts) {
  for (const absl::string_view part : parts) GRADFLOW_RETURN_IF_ERROR(WriteBytes(fd, part));
  return absl::OkStatus();
}

absl::StatusOr<StagedFile> StagedFile::Write(const std::string& path,
                                             absl::Span<const absl::string_view> parts, bool sync) {
  struct stat info;
  const bool replaces = stat(path.c_str(), &info) == 0;
  if (replaces) GRADFLOW_RETURN_IF_ERROR(CheckRegularFile(info));
  std::string target = path;
  if (char* const real = realpath(path.c_str(), nullptr)) {
    target = real;
    std::free(real);
  }
  std::string temporary;
  // The prefix through the last '/', or "": npos + 1 is 0.
  const std::string folder = target.substr(0, target.rfind('/') + 1);
  const mode_t mode = replaces ? info.st_mode & 0777 : 0666;
  FileDescriptor file(CreateTemporary(folder, mode, &temporary));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot write");
  StagedFile staged(std::move(temporary), std::move(target));
  // Restores permissions that the umask removed. Ignores errors of file systems without
  // permissions.
  if (replaces) (void)fchmod(file.get(), mode);
  GRADFLOW_RETURN_IF_ERROR(WriteAll(file.get(), parts));
  if (sync) GRADFLOW_RETURN_IF_ERROR(Sync(file.get()));
  if (!file.Close()) return absl::ErrnoToStatus(errno, "cannot write");
  return staged;
}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status StagedFile::Commit() {
  if (rename(temporary_.c_str(), target_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write");
  }
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts,
                       bool sync) {
  GRADFLOW_ASSIGN_OR_RETURN(StagedFile file, StagedFile::Write(path, parts, sync));
  return file.Commit();
}

absl::Status SyncFile(const std::string& path) { return SyncPath(path, 0); }

absl::Status SyncFolder(const std::string& path) {
  return SyncPath(path.empty() ? "." : path, O_DIRECTORY);
}

}  // namespace gradflow::internal
