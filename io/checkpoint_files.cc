#include "gradflow/io/checkpoint_files.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gradflow::internal {

std::string IndexFile(absl::string_view prefix) { return absl::StrCat(prefix, ".index"); }

std::string DataFile(absl::string_view prefix, int shard, int num_shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, num_shards);
}

namespace {

// Returns true for names of the form DataFile(base, shard, num_shards).
bool IsDataFile(const std::string& base, absl::string_view name) {
  absl::string_view numbers = name;
  if (!absl::ConsumePrefix(&numbers, base + ".data-")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(numbers, "-of-");
  int shard = 0;
  int num_shards = 0;
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &shard) &&
         absl::SimpleAtoi(parts[1], &num_shards) && name == DataFile(base, shard, num_shards);
}

}  // namespace

void RemoveCheckpoint(const std::string& prefix) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Removes the index first: data without an index are not a checkpoint, but an index without data
  // is a damaged checkpoint.
  fs::remove(IndexFile(prefix), error);
  if (error) return;
  const fs::path path = prefix;
  const std::string base = path.filename().string();
  std::vector<fs::path> files;
  auto entry = fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error);
  while (!error && entry != fs::directory_iterator()) {
    if (IsDataFile(base, entry->path().filename().string())) files.push_back(entry->path());
    entry.increment(error);
  }
  for (const fs::path& file : files) fs::remove(file, error);
}

}  // namespace gradflow::internal
