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
#include "gradflow/core/allocator.h"
#include "gradflow/core/charge.h"

namespace gradflow {
class RunStop;
}  // namespace gradflow

#pragma GCC visibility push(default)
namespace gradflow::internal {

using TableEntries = std::map<std::string, std::string, std::less<>>;

// The memory of the decoded contents of a file, charged in steps that grow with it.
class FileCharge {
 public:
  // `allocator` is borrowed.
  explicit FileCharge(Allocator* allocator) : charge_(allocator) {}

  // Returns RESOURCE_EXHAUSTED if the sum exceeds the limit of the allocator.
  absl::Status Add(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= charge_.bytes()) return absl::OkStatus();
    return charge_.Set(1.125 * static_cast<double>(bytes_), "the contents of a file");
  }
  // REQUIRES: `bytes` have been added
  void Remove(size_t bytes) { bytes_ -= bytes; }
  // Releases the memory that the steps charged in advance.
  void Trim() { charge_.Set(bytes_); }
  size_t bytes() const { return bytes_; }

 private:
  Charge charge_;
  size_t bytes_ = 0;
};

// The memory of a message for each of its bytes, at most: a message of two bytes takes 80.
inline constexpr size_t kParsedBytes = 40;

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

// Appends the lowest `bytes` bytes of a number, least first.
void AppendFixed(uint64_t value, int bytes, std::string* out);
// Appends a number in 7 bits a byte, least first.
void AppendVarint(uint64_t value, std::string* out);
// Removes such a number from the front of *in. Returns false if there is none.
bool TakeVarint(absl::string_view* in, uint64_t* value);

}  // namespace gradflow::internal
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_TABLE_H_
