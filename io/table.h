// Sorted tables of strings in LevelDB's format: the index of a checkpoint. Internal.
//
// A table is a sequence of blocks of sorted entries, an index block with the last key and the
// position of each of them, and a footer with the position of the index. Each block has a masked
// CRC-32C. Blocks may be compressed by Snappy; those that WriteTable() writes are not.
#ifndef GRADFLOW_IO_TABLE_H_
#define GRADFLOW_IO_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/io/file_charge.h"

namespace gradflow {
class RunStop;
}  // namespace gradflow

#pragma GCC visibility push(default)
namespace gradflow::internal {

using TableEntries = std::map<std::string, std::string, std::less<>>;

// Returns the bytes of a table.
std::string WriteTable(const TableEntries& entries);

// The memory of the entries of a table for each of its bytes, at most, and for a small table. Keys
// share their beginnings in a file, so that it may stand for any amount of memory. An entry takes
// 20 bytes in the files of TensorFlow, and names of hundreds of characters stay below the limit.
inline constexpr int64_t kMaxTableExpansion = 64;
inline constexpr int64_t kMinTableLimit = int64_t{16} << 20;

// Reads a whole table. The positions, lengths and checksums of all blocks are checked before use,
// and blocks and keys must be ascending. Returns DATA_LOSS if the bytes are not a valid table,
// UNIMPLEMENTED if a block is compressed otherwise; RESOURCE_EXHAUSTED if the entries would take
// more than max_bytes, than kMaxTableExpansion allows, or than *charge allows; CANCELLED soon after
// `stop`, which may be null, has been stopped.
absl::StatusOr<TableEntries> ReadTable(absl::string_view bytes, int64_t max_bytes,
                                       FileCharge* charge, RunStop* stop = nullptr);
// Returns the approximate memory of an entry.
inline size_t TableEntryBytes(absl::string_view key, absl::string_view value) {
  constexpr size_t kNodeBytes = 128;
  return kNodeBytes + key.size() + value.size();
}

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_TABLE_H_
