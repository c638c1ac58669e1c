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
#include "gradflow/io/file_access.h"
#include "gradflow/io/file_place.h"

namespace gradflow::internal {
namespace {

// Rejects directories and pipes. A pipe could block forever.
absl::Status CheckRegularFile(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return absl::OkStatus();
  return errors::InvalidArgument("expected a regular file, but found a ",
                                 S_ISDIR(info.st_mode)    ? "directory"
                                 : S_ISFIFO(info.st_mode) ? "pipe"
                                 : S_ISLNK(info.st_mode)  ? "symbolic link"
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

// Returns true if CreateTemporary() makes such names.
bool IsTemporaryName(absl::string_view name) {
  return absl::ConsumePrefix(&name, kTemporaryPrefix) &&
         absl::ConsumeSuffix(&name, kTemporarySuffix) && !name.empty() &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isdigit(c) || c == '-'; });
}

// Locks an open file or folder. Returns false with errno set on failure. The system unlocks it when
// its last descriptor is closed, even if the process is killed.
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

// Creates a file in the folder `prefix`, "" or a path with a slash at the end, relative to the open
// folder `at`. Its permissions are `mode` minus the umask. Locks it. Returns a negative number,
// with errno set, on failure.
FileDescriptor CreateTemporary(int at, const std::string& prefix, mode_t mode, std::string* name) {
  static std::atomic<uint32_t> counter{0};
  // File systems may miscount the names of a file, so the number of attempts is limited.
  int removed = 16;
  for (;;) {
    *name = absl::StrCat(prefix, kTemporaryPrefix, getpid(), "-", counter.fetch_add(1),
                         kTemporarySuffix);
    FileDescriptor file(openat(at, name->c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0 && errno != EEXIST) return file;
    if (file.get() < 0) continue;
    if (!Lock(file.get(), LOCK_EX)) return file;
    // RemoveStaleFiles() may have removed the file before it was locked.
    struct stat info;
    if (fstat(file.get(), &info) != 0 || info.st_nlink > 0 || --removed == 0) return file;
  }
}

// For calls that change a name in a folder instead of the file that the name links to.
FilePlace::Options EntryToChange() {
  FilePlace::Options options;
  options.use = FileAccess::Use::kWrite;
  options.is_link = true;
  return options;
}

absl::Status Remove(const std::string& path, const FileAccess& access, int flags) {
  GRADFLOW_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::Find(access, path, EntryToChange()));
  if (unlinkat(place.folder(), place.name().c_str(), flags) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot remove");
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

bool FileDescriptor::Close() { return close(std::exchange(fd_, -1)) == 0; }

const FileAccess& AllFiles() { return FileAccess::All(); }

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, size_t* size,
                                        const FileAccess& access) {
  GRADFLOW_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::Find(access, path, {}));
  // O_NONBLOCK: opening a pipe must not block until it has a writer.
  FileDescriptor file(openat(place.folder(), place.name().c_str(),
                             O_RDONLY | O_CLOEXEC | O_NONBLOCK | place.open_flags()));
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
                                             absl::Span<const absl::string_view> parts, bool sync,
                                             const FileAccess& access) {
  FilePlace::Options use;
  use.use = FileAccess::Use::kWrite;
  GRADFLOW_ASSIGN_OR_RETURN(FilePlace place, FilePlace::Find(access, path, use));
  struct stat info;
  const bool replaces =
      fstatat(place.folder(), place.name().c_str(), &info, place.stat_flags()) == 0;
  if (replaces) GRADFLOW_RETURN_IF_ERROR(CheckRegularFile(info));
  std::string target = place.name();
  if (place.folder() == AT_FDCWD) {
    if (char* const real = realpath(path.c_str(), nullptr)) {
      target = real;
      std::free(real);
    }
  }
  std::string temporary;
  // The prefix through the last '/', or "": npos + 1 is 0.
  const std::string prefix = target.substr(0, target.rfind('/') + 1);
  const mode_t mode = replaces ? info.st_mode & 0777 : 0666;
  FileDescriptor file = CreateTemporary(place.folder(), prefix, mode, &temporary);
  if (file.get() < 0) return absl::ErrnoToStatus(errno, "cannot write");
  const int fd = file.get();
  StagedFile staged(std::move(file), std::move(place).TakeFolder(), std::move(temporary),
                    std::move(target));
  // Restores permissions that the umask removed. Ignores errors of file systems without
  // permissions.
  if (replaces) (void)fchmod(fd, mode);
  GRADFLOW_RETURN_IF_ERROR(WriteAll(fd, parts));
  if (sync) GRADFLOW_RETURN_IF_ERROR(Sync(fd));
  // File systems may report errors when a descriptor is closed, so a copy is closed. The original
  // descriptor keeps the lock.
  FileDescriptor copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0 || !copy.Close()) return absl::ErrnoToStatus(errno, "cannot write");
  return staged;
}

StagedFile::~StagedFile() {
  if (!temporary_.empty()) unlinkat(folder(), temporary_.c_str(), 0);
}

int StagedFile::folder() const { return folder_.get() < 0 ? AT_FDCWD : folder_.get(); }

absl::Status StagedFile::Commit() {
  if (renameat(folder(), temporary_.c_str(), folder(), target_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, "cannot write");
  }
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> parts,
                       bool sync, const FileAccess& access) {
  GRADFLOW_ASSIGN_OR_RETURN(StagedFile file, StagedFile::Write(path, parts, sync, access));
  return file.Commit();
}

absl::Status RenameFile(const std::string& from, const std::string& to, const FileAccess& access) {
  GRADFLOW_ASSIGN_OR_RETURN(const FilePlace source, FilePlace::Find(access, from, EntryToChange()));
  GRADFLOW_ASSIGN_OR_RETURN(const FilePlace target, FilePlace::Find(access, to, EntryToChange()));
  if (renameat(source.folder(), source.name().c_str(), target.folder(), target.name().c_str()) ==
      0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "cannot rename");
}

absl::Status RemoveFile(const std::string& path, const FileAccess& access) {
  return Remove(path, access, 0);
}
absl::Status RemoveFolder(const std::string& path, const FileAccess& access) {
  return Remove(path, access, AT_REMOVEDIR);
}

absl::Status MakeFolders(const std::string& path, const FileAccess& access) {
  FilePlace::Options use;
  use.use = FileAccess::Use::kWrite;
  use.makes_folders = true;
  GRADFLOW_ASSIGN_OR_RETURN(const FilePlace place, FilePlace::Find(access, path, use));
  // Find() has made the folders if access is limited.
  if (place.folder() != AT_FDCWD) return absl::OkStatus();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), "cannot make the folder");
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
    // The process that made the file may have renamed it in the meantime.
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
