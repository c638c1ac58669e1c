#include "gradflow/io/checkpoint_files.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gradflow::internal {

std::string IndexFile(absl::string_view prefix) { return absl::StrCat(prefix, ".index"); }

std::string DataFile(absl::string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

void RemoveCheckpoint(const std::string& prefix) {
  namespace fs = std::filesystem;
  std::error_code error;
  // First, since data without an index are no checkpoint, but an index without data is a damaged
  // one.
  fs::remove(IndexFile(prefix), error);
  const fs::path path = prefix;
  const std::string data = path.filename().string() + ".data-";
  std::vector<fs::path> files;
  auto entry = fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error);
  while (!error && entry != fs::directory_iterator()) {
    if (absl::StartsWith(entry->path().filename().string(), data)) files.push_back(entry->path());
    entry.increment(error);
  }
  for (const fs::path& file : files) fs::remove(file, error);
}

}  // namespace gradflow::internal
