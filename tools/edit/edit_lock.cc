#include "tools/edit/edit_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"

namespace gradflow::tools {
namespace {

// Returns the folder of the locks, which only this user can access; "" if there is no such folder.
std::string LockFolder() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && runtime[0] == '/'
                                 ? absl::StrCat(runtime, "/gradflow")
                                 : absl::StrCat("/tmp/gradflow-", getuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  struct stat status;
  // Any user may make a folder with this name in /tmp.
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != getuid() || (status.st_mode & 0077) != 0) {
    return "";
  }
  return folder;
}

// FNV-1a.
uint64_t Hash(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

absl::StatusOr<EditLock> EditLock::Acquire(const std::string& path) {
  EditLock none{internal::FileDescriptor()};
  if (path.empty()) return none;
  std::error_code error;
  // All paths to a file have the same lock. The file need not exist.
  std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (!error) whole = std::filesystem::weakly_canonical(whole, error);
  const std::string folder = error ? "" : LockFolder();
  if (folder.empty()) return none;
  const std::string name = absl::StrFormat("%s/edit-%016x.lock", folder, Hash(whole.string()));
  internal::FileDescriptor file(
      open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return none;
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    // Removes the address of an editor that has ended.
    if (ftruncate(file.get(), 0) != 0) return none;
    return EditLock(std::move(file));
  }
  if (errno != EWOULDBLOCK) return none;
  char holder[200];
  const ssize_t size = pread(file.get(), holder, sizeof(holder), 0);
  return errors::FailedPrecondition(
      "'", path, "' is being edited",
      size > 0 ? absl::StrCat(" at ", errors::Printable(absl::string_view(holder, size))) : "");
}

absl::Status EditLock::Announce(absl::string_view address) const {
  if (file_.get() < 0) return absl::OkStatus();
  const std::string text = absl::StrCat(address, " (process ", getpid(), ")");
  return internal::WriteAll(file_.get(), {text});
}

}  // namespace gradflow::tools
