#include "gradflow/io/file_pattern.h"

#include <fnmatch.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"

namespace gradflow::internal {
namespace {

// The memory of a path in a vector that grows.
size_t PathBytes(absl::string_view path) { return 128 + path.size(); }

}  // namespace

absl::Status MatchingPaths(absl::string_view pattern, absl::FunctionRef<bool()> should_stop,
                           FileCharge* charge, std::vector<std::string>* paths) {
  if (pattern.empty()) return absl::OkStatus();
  if (pattern.find('\0') != absl::string_view::npos) {
    return errors::InvalidArgument("the pattern has a character of code 0");
  }
  const std::vector<std::string> parts = absl::StrSplit(pattern, '/');
  // Prefixes that match the first parts, from which a match may follow.
  struct Prefix {
    std::string path;
    size_t part;
  };
  std::vector<Prefix> prefixes = {{"", 0}};
  GRADFLOW_RETURN_IF_ERROR(charge->Add(PathBytes("")));
  while (!prefixes.empty() && !should_stop()) {
    const Prefix prefix = std::move(prefixes.back());
    prefixes.pop_back();
    const std::string& part = parts[prefix.part];
    const bool is_last = prefix.part + 1 == parts.size();
    charge->Remove(PathBytes(prefix.path));
    const auto add = [&](absl::string_view name) {
      std::string path = absl::StrCat(prefix.path, name, is_last ? "" : "/");
      GRADFLOW_RETURN_IF_ERROR(charge->Add(PathBytes(path)));
      if (is_last) {
        paths->push_back(std::move(path));
      } else {
        prefixes.push_back({std::move(path), prefix.part + 1});
      }
      return absl::OkStatus();
    };
    std::error_code error;
    if (part.find_first_of("*?[\\") == std::string::npos) {
      // An empty part is a slash at the beginning or the end, or two in a row.
      if (!is_last || std::filesystem::exists(prefix.path + part, error)) {
        GRADFLOW_RETURN_IF_ERROR(add(part));
      }
      continue;
    }
    const std::string folder = prefix.path.empty() ? "." : prefix.path;
    auto entry = std::filesystem::directory_iterator(folder, error);
    while (!error && entry != std::filesystem::directory_iterator() && !should_stop()) {
      const std::string name = entry->path().filename().string();
      if (fnmatch(part.c_str(), name.c_str(), 0) == 0) {
        GRADFLOW_RETURN_IF_ERROR(add(name));
      }
      entry.increment(error);
    }
  }
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), "cannot make the folder");
}

}  // namespace gradflow::internal
