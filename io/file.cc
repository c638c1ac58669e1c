#include "gradflow/io/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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

constexpr absl::string_view kTemporaryPrefix = ".gradflow-";
constexpr absl::string_view kTemporarySuffix = ".tmp";

// Returns true for the names of CreateTemporary().
bool IsTemporaryName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kTemporaryPrefix) &&
         absl::ConsumeSuffix(&name, kTemporarySuffix) && !name.empty() &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isdigit(c) || c == '-'; });
}

// Locks an open file or folder. Returns false, with errno set, if it is not locked. The system
// unlocks it when its last descriptor is closed, also that of a killed process.
bool Lock(int fd, int operation) {
  while (flock(fd, operation) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Returns true if `path` is a name of the open file.
bool IsNameOf(const std::string& path, int fd) {
  struct stat named;
  struct stat opened;
  return lstat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

// Creates a file in `folder` with permissions `mode` minus the umask, and locks it. Returns a
// negative number, with errno set, on failure.
FileDescriptor CreateTemporary(const std::string& folder, mode_t mode, std::string* name) {
  static std::atomic<uint32_t> counter{0};
  // File systems may miscount the names of a file, which must not make this endless.
  int removed = 16;
  for (;;) {
    *name = absl::StrCat(folder, kTemporaryPrefix, getpid(), "-", counter.fetch_add(1),
                         kTemporarySuffix);
    FileDescriptor file(open(name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0 && errno != EEXIST) return file;
    if (file.get() < 0) continue;
    if (!Lock(file.get(), LOCK_EX)) return file;
    // RemoveStaleFiles() may have removed the file before it was locked.
    struct stat info;
    if (fstat(file.get(), &info) != 0 || info.st_nlink > 0 || --removed == 0) return file;
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
  FileDescriptor file = CreateTemporary(folder, mode, &temporary);
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot write");
  const int fd = file.get();
  StagedFile staged(std::move(file), std::move(temporary), std::move(target));
  // Restores permissions that the umask removed. Ignores errors of file systems without
  // permissions.
  if (replaces) (void)fchmod(fd, mode);
  GRADFLOW_RETURN_IF_ERROR(WriteAll(fd, parts));
  if (sync) GRADFLOW_RETURN_IF_ERROR(Sync(fd));
  // File systems may report errors when a descriptor is closed. The other one keeps the lock.
  FileDescriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0 || !copy.Close()) return absl::ErrnoToStatus(errno, "cannot write");
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

void RemoveStaleFiles(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> paths;
  auto entry = fs::directory_iterator(folder.empty() ? "." : folder, error);
  while (!error && entry != fs::directory_iterator()) {
    if (IsTemporaryName(entry->path().filename().string())) paths.push_back(entry->path().string());
    entry.increment(error);
  }
  for (const std::string& path : paths) {
    const FileDescriptor file(
        open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
    struct stat info;
    if (file.get() < 0 || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    // Its process may have renamed it since.
    if (Lock(file.get(), LOCK_EX | LOCK_NB) && IsNameOf(path, file.get())) unlink(path.c_str());
  }
}

absl::StatusOr<FileDescriptor> LockFolder(const std::string& path) {
  FileDescriptor folder(
      open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (folder.get() < 0) return absl::ErrnoToStatus(errno, "cannot open");
  // File systems without locks return various errors.
  (void)Lock(folder.get(), LOCK_EX);
  return folder;
}

absl::Status SyncFile(const std::string& path) { return SyncPath(path, 0); }

absl::Status SyncFolder(const std::string& path) {
  return SyncPath(path.empty() ? "." : path, O_DIRECTORY);
}

}  // namespace gradflow::internal
