#include "gradflow/testing/case_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"

namespace gradflow::testing {
namespace {

using ::gradflow::internal::FileDescriptor;

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

absl::Status Fault(absl::string_view name, const absl::Status& status) {
  return errors::Prefix(absl::StrCat("'", errors::Printable(name), "': "), status);
}

// Opens the folder `name` in the folder `above`. Creates it if it does not exist.
absl::StatusOr<FileDescriptor> OpenFolder(int above, const std::string& name) {
  if (mkdirat(above, name.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, "cannot write");
  }
  FileDescriptor folder(openat(above, name.c_str(), kFolder | O_NOFOLLOW));
  if (folder.get() >= 0) return folder;
  if (errno == ELOOP || errno == ENOTDIR) {
    return errors::InvalidArgument("expected a folder, but found a link or a file");
  }
  return absl::ErrnoToStatus(errno, "cannot write");
}

}  // namespace

absl::StatusOr<CaseFolder> CaseFolder::Open(const std::string& path) {
  FileDescriptor folder(open(path.c_str(), kFolder));
  if (folder.get() < 0) return absl::ErrnoToStatus(errno, "cannot open the folder");
  return CaseFolder(std::move(folder));
}

CaseFolder::~CaseFolder() {
  for (const Staged& staged : staged_) unlinkat(staged.folder.get(), staged.temporary.c_str(), 0);
}

absl::Status CaseFolder::Stage(const std::string& name, absl::Span<const absl::string_view> parts) {
  const std::vector<std::string> steps = absl::StrSplit(name, '/');
  for (const std::string& step : steps) {
    if (!step.empty() && step != "." && step != "..") continue;
    return Fault(name, errors::InvalidArgument("a part of the name is '", step,
                                               "', which would lead out of the folder"));
  }
  FileDescriptor folder(fcntl(folder_.get(), F_DUPFD_CLOEXEC, 0));
  if (folder.get() < 0) return Fault(name, absl::ErrnoToStatus(errno, "cannot write"));
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    absl::StatusOr<FileDescriptor> next = OpenFolder(folder.get(), steps[i]);
    if (!next.ok()) return Fault(name, next.status());
    folder = *std::move(next);
  }
  struct stat info;
  if (fstatat(folder.get(), steps.back().c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
    return Fault(name, errors::InvalidArgument("expected a regular file, but found another"));
  }
  std::string temporary = absl::StrCat(".gradflow-", getpid(), "-", staged_.size(), ".tmp");
  FileDescriptor file(openat(folder.get(), temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) return Fault(name, absl::ErrnoToStatus(errno, "cannot write"));
  staged_.push_back({name, std::move(folder), std::move(temporary), steps.back()});
  absl::Status status = internal::WriteAll(file.get(), parts);
  if (status.ok() && !file.Close()) status = absl::ErrnoToStatus(errno, "cannot write");
  return Fault(name, status);
}

absl::Status CaseFolder::Commit() {
  while (!staged_.empty()) {
    const Staged& last = staged_.back();
    // Replaces a link itself instead of its target.
    if (renameat(last.folder.get(), last.temporary.c_str(), last.folder.get(),
                 last.target.c_str()) != 0) {
      return Fault(last.name, absl::ErrnoToStatus(errno, "cannot write"));
    }
    staged_.pop_back();
  }
  return absl::OkStatus();
}

}  // namespace gradflow::testing
