#include "gradflow/core/file.h"

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

// Reading a directory, or a pipe that nobody writes to, would not give bytes.
absl::Status CheckRegularFile(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return errors::InvalidArgument("expected a regular file, but found a ",
                                 S_ISDIR(info.st_mode)    ? "directory"
                                 : S_ISFIFO(info.st_mode) ? "pipe"
                                                          : "device or socket");
}

absl::Status WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write");
    bytes.remove_prefix(n);
  }
  return absl::OkStatus();
}

// A new file in `folder`, with the permissions that the user's mask gives to new files (mkstemp
// would keep it from everybody else). Negative, with errno set, if there cannot be one.
int CreateTemporary(const std::string& folder, std::string* name) {
  static std::atomic<uint32_t> counter{0};
  for (;;) {
    *name = absl::StrCat(folder, ".gradflow-", getpid(), "-", counter.fetch_add(1), ".tmp");
    const int fd = open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

bool FileDescriptor::Close() { return close(std::exchange(fd_, -1)) == 0; }

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, size_t* size) {
  // O_NONBLOCK so that opening a pipe does not wait for its writer.
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
    if (n == 0) return errors::InvalidArgument("the file became shorter while it was read");
    to += n;
    offset += n;
    size -= n;
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0) GRADFLOW_RETURN_IF_ERROR(CheckRegularFile(info));
  std::string target = path;
  if (char* const real = realpath(path.c_str(), nullptr)) {
    target = real;
    std::free(real);
  }
  std::string temporary;
  // Up to the last '/', or nothing: npos + 1 is 0.
  FileDescriptor file(CreateTemporary(target.substr(0, target.rfind('/') + 1), &temporary));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot write");
  absl::Status status;
  for (const absl::string_view part : parts) {
    if (status.ok()) status = WriteAll(file.get(), part);
  }
  if (!file.Close() && status.ok()) status = absl::ErrnoToStatus(errno, "cannot write");
  if (status.ok() && rename(temporary.c_str(), target.c_str()) != 0) {
    status = absl::ErrnoToStatus(errno, "cannot write");
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

}  // namespace gradflow::internal
