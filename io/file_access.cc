#include "gradflow/io/file_access.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_place.h"

namespace gradflow {
namespace internal {

// The folders whose files may be read and written.
struct FileFolders {
  struct Folder {
    // Without links and without a slash at the end; "" for the root.
    std::string path;
    std::shared_ptr<const FileDescriptor> file;
  };
  std::vector<Folder> read;
  std::vector<Folder> write;

  const std::vector<Folder>& For(FileAccess::Use use) const {
    return use == FileAccess::Use::kRead ? read : write;
  }
};

namespace {

constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

absl::Status Denied(FileAccess::Use use) {
  return absl::PermissionDeniedError(
      use == FileAccess::Use::kRead
          ? "graphs may read files only below the folders of --allow-read, or of "
            "SessionOptions::file_access"
          : "graphs may write files only below the folders of --allow-write, or of "
            "SessionOptions::file_access");
}

// Resolves all links of a path. Returns false, with errno set, if there is no such file.
bool Resolve(const std::string& path, std::string* resolved) {
  char* const real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return false;
  *resolved = real;
  std::free(real);
  return true;
}

// Resolves the longest existing part of a path. Does not resolve the last part if `is_link`.
// Returns false if the rest could lead elsewhere.
bool ResolveExisting(const std::string& path, bool is_link, std::string* resolved) {
  if (!is_link && Resolve(path, resolved)) return true;
  absl::string_view folder = path;
  std::string rest;
  for (;;) {
    while (absl::ConsumeSuffix(&folder, "/")) {
    }
    const size_t slash = folder.rfind('/');
    const absl::string_view name = folder.substr(slash + 1);
    if (name.empty() || name == "." || name == "..") return false;
    rest = rest.empty() ? std::string(name) : absl::StrCat(name, "/", rest);
    folder = folder.substr(0, slash + 1);
    if (slash == absl::string_view::npos) folder = ".";
    if (!Resolve(std::string(folder), resolved)) continue;
    absl::StrAppend(resolved, absl::EndsWith(*resolved, "/") ? "" : "/", rest);
    return true;
  }
}

}  // namespace

absl::StatusOr<FilePlace> FilePlace::Find(const FileAccess& access, const std::string& path,
                                          const Options& options) {
  if (access.folders() == nullptr) return FilePlace(FileDescriptor(), path);
  const std::vector<FileFolders::Folder>& folders = access.folders()->For(options.use);
  std::string resolved;
  // Touches no file if there are no allowed folders.
  if (folders.empty() || path.empty() || path.size() >= PATH_MAX ||
      path.find('\0') != std::string::npos || !ResolveExisting(path, options.is_link, &resolved)) {
    return Denied(options.use);
  }
  for (const FileFolders::Folder& folder : folders) {
    absl::string_view below = resolved;
    if (!absl::ConsumePrefix(&below, folder.path) || (!below.empty() && below[0] != '/')) continue;
    FileDescriptor at(openat(folder.file->get(), ".", kFolderFlags));
    if (at.get() < 0) return absl::ErrnoToStatus(errno, "cannot open");
    std::vector<std::string> parts = absl::StrSplit(below, '/', absl::SkipEmpty());
    if (parts.empty()) parts.push_back(".");
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const char* const part = parts[i].c_str();
      if (options.makes_folders && mkdirat(at.get(), part, 0777) != 0 && errno != EEXIST) {
        return absl::ErrnoToStatus(errno, "cannot make the folder");
      }
      // ELOOP or ENOTDIR: the part has become a link since it was resolved.
      FileDescriptor next(openat(at.get(), part, kFolderFlags | O_NOFOLLOW));
      if (next.get() < 0) return absl::ErrnoToStatus(errno, "cannot open");
      at = std::move(next);
    }
    return FilePlace(std::move(at), parts.back());
  }
  return Denied(options.use);
}

int FilePlace::folder() const { return folder_.get() < 0 ? AT_FDCWD : folder_.get(); }
int FilePlace::open_flags() const { return folder_.get() < 0 ? 0 : O_NOFOLLOW; }
int FilePlace::stat_flags() const { return folder_.get() < 0 ? 0 : AT_SYMLINK_NOFOLLOW; }

}  // namespace internal

const FileAccess& FileAccess::All() {
  static const auto& all = *new FileAccess();
  return all;
}

const FileAccess& FileAccess::None() {
  static const auto& none = *[] {
    auto* const access = new FileAccess();
    access->folders_ = std::make_shared<const internal::FileFolders>();
    return access;
  }();
  return none;
}

absl::StatusOr<FileAccess> FileAccess::Below(const std::vector<std::string>& read,
                                             const std::vector<std::string>& write) {
  const auto folders = std::make_shared<internal::FileFolders>();
  const auto open_all = [](const std::vector<std::string>& paths,
                           std::vector<internal::FileFolders::Folder>* to) -> absl::Status {
    for (const std::string& path : paths) {
      internal::FileFolders::Folder folder;
      if (internal::Resolve(path, &folder.path)) {
        folder.file = std::make_shared<const internal::FileDescriptor>(
            open(folder.path.c_str(), internal::kFolderFlags | O_NOFOLLOW));
      }
      if (folder.file == nullptr || folder.file->get() < 0) {
        return errors::Prefix(absl::StrCat("'", errors::Printable(path), "': "),
                              absl::ErrnoToStatus(errno, "cannot open the folder"));
      }
      if (folder.path == "/") folder.path.clear();
      to->push_back(std::move(folder));
    }
    return absl::OkStatus();
  };
  GRADFLOW_RETURN_IF_ERROR(open_all(read, &folders->read));
  GRADFLOW_RETURN_IF_ERROR(open_all(write, &folders->write));
  FileAccess access;
  access.folders_ = folders;
  return access;
}

absl::StatusOr<FileAccess> FileAccess::AlsoReading(const std::string& folder) const {
  if (folders_ == nullptr) return *this;
  GRADFLOW_ASSIGN_OR_RETURN(const FileAccess added, Below({folder}, {}));
  const auto folders = std::make_shared<internal::FileFolders>(*folders_);
  folders->read.push_back(added.folders_->read[0]);
  FileAccess access;
  access.folders_ = folders;
  return access;
}

absl::Status FileAccess::Check(const std::string& path, Use use) const {
  if (folders_ == nullptr) return absl::OkStatus();
  const absl::Status status = internal::FilePlace::Find(*this, path, {use}).status();
  // Other errors mean that the file or its folder does not exist.
  return absl::IsPermissionDenied(status) ? status : absl::OkStatus();
}

}  // namespace gradflow
