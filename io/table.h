// Sorted tables of strings in LevelDB's format: the index of a checkpoint. Internal.
//
// A table is a sequence of blocks of sorted entries, an index block with the last key and the
// position of each block, and a footer with the position of the index. Each block has a masked
// CRC-32C. Blocks may be compressed by Snappy; WriteTable() does not compress them.
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
#include "gradflow/io/file_reservation.h"

namespace gradflow {
class StopToken;
}  // namespace gradflow

#pragma GCC visibility push(default)
namespace gradflow::internal {

using TableEntries = std::map<std::string, std::string, std::less<>>;

// Returns the bytes of a table.
std::string WriteTable(const TableEntries& entries);

// The entries of a table may take kMaxTableExpansion bytes of memory per byte of the table, or
// kMinTableLimit if that is more. Keys share prefixes in a file, so a small file could otherwise
// take any amount of memory. An entry takes 20 bytes in TensorFlow's files, so names of hundreds of
// characters stay below the limit.
inline constexpr int64_t kMaxTableExpansion = 64;
inline constexpr int64_t kMinTableLimit = int64_t{16} << 20;

// Reads a whole table. The positions, lengths and checksums of all blocks are checked before use,
// and the positions of blocks and the keys must be ascending. Returns DATA_LOSS if the bytes are
// not a valid table, and UNIMPLEMENTED if a block has a compression other than Snappy. Returns
// RESOURCE_EXHAUSTED if the entries would exceed max_bytes, kMaxTableExpansion, or the limit of
// *reservation. Returns CANCELLED soon after `stop` has been stopped; `stop` may be null.
absl::StatusOr<TableEntries> ReadTable(absl::string_view bytes, int64_t max_bytes,
                                       FileReservation* reservation, StopToken* stop = nullptr);
// Returns the approximate memory of an entry.
inline size_t TableEntryBytes(absl::string_view key, absl::string_view value) {
  constexpr size_t kNodeBytes = 128;
  return kNodeBytes + key.size() + value.size();
}

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_TABLE_H_
