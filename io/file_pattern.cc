#include "gradflow/io/file_pattern.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file_place.h"

namespace gradflow::internal {
namespace {

// An upper bound on the memory of a path in a growing vector.
size_t PathBytes(absl::string_view path) { return 128 + path.size(); }

absl::StatusOr<bool> Exists(const std::string& path, const FileAccess& access) {
  const absl::StatusOr<FilePlace> place = FilePlace::Find(access, path, {});
  if (absl::IsPermissionDenied(place.status())) return place.status();
  struct stat info;
  return place.ok() &&
         fstatat(place->folder(), place->name().c_str(), &info, place->stat_flags()) == 0;
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

// Opens a folder, "" for the current one, to list it. Returns null if it cannot be read.
absl::StatusOr<Folder> OpenFolder(const std::string& path, const FileAccess& access) {
  const absl::StatusOr<FilePlace> place = FilePlace::Find(access, path.empty() ? "." : path, {});
  if (absl::IsPermissionDenied(place.status())) return place.status();
  if (!place.ok()) return nullptr;
  FileDescriptor file(openat(place->folder(), place->name().c_str(),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC | place->open_flags()));
  if (file.get() < 0) return nullptr;
  Folder folder(fdopendir(file.get()));
  if (folder != nullptr) (void)file.Release();
  return folder;
}

}  // namespace

absl::Status MatchingPaths(absl::string_view pattern, absl::FunctionRef<bool()> should_stop,
                           FileReservation* reservation, std::vector<std::string>* paths,
                           const FileAccess& access) {
  if (pattern.empty()) return absl::OkStatus();
  if (pattern.find('\0') != absl::string_view::npos) {
    return errors::InvalidArgument("the pattern has a character of code 0");
  }
  const std::vector<std::string> parts = absl::StrSplit(pattern, '/');
  // Existing prefixes that match the parts so far.
  struct Prefix {
    std::string path;
    size_t part;
  };
  std::vector<Prefix> prefixes = {{"", 0}};
  GRADFLOW_RETURN_IF_ERROR(reservation->Add(PathBytes("")));
  while (!prefixes.empty() && !should_stop()) {
    const Prefix prefix = std::move(prefixes.back());
    prefixes.pop_back();
    const std::string& part = parts[prefix.part];
    const bool is_last = prefix.part + 1 == parts.size();
    reservation->Remove(PathBytes(prefix.path));
    const auto add = [&](absl::string_view name) {
      std::string path = absl::StrCat(prefix.path, name, is_last ? "" : "/");
      GRADFLOW_RETURN_IF_ERROR(reservation->Add(PathBytes(path)));
      if (is_last) {
        paths->push_back(std::move(path));
      } else {
        prefixes.push_back({std::move(path), prefix.part + 1});
      }
      return absl::OkStatus();
    };
    if (part.find_first_of("*?[\\") == std::string::npos) {
      // An empty part is a slash at the beginning or the end, or two in a row.
      GRADFLOW_ASSIGN_OR_RETURN(const bool exists,
                                is_last ? Exists(prefix.path + part, access) : true);
      if (exists) GRADFLOW_RETURN_IF_ERROR(add(part));
      continue;
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Folder folder, OpenFolder(prefix.path, access));
    while (folder != nullptr && !should_stop()) {
      const dirent* const entry = readdir(folder.get());
      if (entry == nullptr) break;
      const absl::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (fnmatch(part.c_str(), entry->d_name, 0) == 0) GRADFLOW_RETURN_IF_ERROR(add(name));
    }
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
