#include "gradflow/io/table.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"

namespace gradflow::internal {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57u;
constexpr size_t kFooterBytes = 48;
// The type of compression and the checksum that follow a block.
constexpr size_t kTrailerBytes = 5;
// TensorFlow's sizes.
constexpr size_t kBlockBytes = 256 << 10;
constexpr int kRestartInterval = 16;

uint64_t Fixed(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Collects the entries of a block.
class BlockWriter {
 public:
  void Add(absl::string_view key, absl::string_view value) {
    size_t shared = 0;
    if (count_ % kRestartInterval == 0) {
      restarts_.push_back(text_.size());
    } else {
      const size_t most = std::min(last_key_.size(), key.size());
      while (shared < most && last_key_[shared] == key[shared]) ++shared;
    }
    AppendVarint(shared, &text_);
    AppendVarint(key.size() - shared, &text_);
    AppendVarint(value.size(), &text_);
    absl::StrAppend(&text_, key.substr(shared), value);
    last_key_ = std::string(key);
    ++count_;
  }
  bool empty() const { return count_ == 0; }
  size_t size() const { return text_.size(); }
  const std::string& last_key() const { return last_key_; }

  // Appends the block to *file and begins a new block. Returns the handle of the appended block:
  // its offset and size, encoded as in an index.
  std::string Finish(std::string* file) {
    if (restarts_.empty()) restarts_.push_back(0);
    for (const size_t restart : restarts_) AppendFixed(restart, 4, &text_);
    AppendFixed(restarts_.size(), 4, &text_);
    std::string handle;
    AppendVarint(file->size(), &handle);
    AppendVarint(text_.size(), &handle);
    text_.push_back(0);  // not compressed
    const uint32_t crc = ExtendCrc32c(0, text_);
    file->append(text_);
    AppendFixed(MaskCrc(crc), 4, file);
    *this = BlockWriter();
    return handle;
  }

 private:
  std::string text_;
  std::string last_key_;
  std::vector<size_t> restarts_;
  int count_ = 0;
};

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the table is damaged: ", what));
}

// Removes a little-endian number of `bytes` bytes from the front of *in. Returns false if *in is
// shorter.
bool TakeFixed(absl::string_view* in, size_t bytes, uint64_t* value) {
  if (in->size() < bytes) return false;
  *value = Fixed(in->substr(0, bytes));
  in->remove_prefix(bytes);
  return true;
}

// A string that is overwritten repeatedly. Its memory is charged.
class Scratch {
 public:
  explicit Scratch(FileReservation* reservation) : reservation_(*reservation) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { reservation_.Remove(charged_); }

  std::string& text() { return text_; }
  // Makes room for `size` characters.
  absl::Status Reserve(size_t size) {
    if (size <= text_.capacity()) return absl::OkStatus();
    // Doubles the capacity, so that a growing string is copied only a few times.
    const size_t capacity = std::max(size, 2 * text_.capacity());
    GRADFLOW_RETURN_IF_ERROR(reservation_.Add(capacity - charged_));
    charged_ = capacity;
    text_.reserve(capacity);
    return absl::OkStatus();
  }

 private:
  FileReservation& reservation_;
  std::string text_;
  size_t charged_ = 0;
};

// Decompresses a block in Snappy's format: the length of the result, then literals and copies of
// earlier bytes.
absl::Status Decompress(absl::string_view block, int64_t max_bytes, Scratch* scratch) {
  uint64_t size = 0;
  if (!TakeVarint(&block, &size)) return Damaged("a compressed block has no length");
  // A tag of 3 bytes can copy at most 64 bytes, so each compressed byte yields less than 32 bytes.
  if (size / 32 > block.size()) return Damaged("the length of a compressed block is not valid");
  if (size > static_cast<uint64_t>(max_bytes)) {
    return errors::ResourceExhausted("the table has a block of ", size, " bytes, expected at most ",
                                     max_bytes);
  }
  std::string* const out = &scratch->text();
  out->clear();
  GRADFLOW_RETURN_IF_ERROR(scratch->Reserve(size));
  while (!block.empty()) {
    const auto tag = static_cast<unsigned char>(block.front());
    block.remove_prefix(1);
    uint64_t length = (tag >> 2) + 1;
    uint64_t offset = 0;
    bool valid = true;
    switch (tag & 3) {
      case 0:
        if (length > 60) {
          valid = TakeFixed(&block, length - 60, &length);
          ++length;
        }
        if (!valid || length > block.size()) return Damaged("a literal is not in its block");
        absl::StrAppend(out, block.substr(0, length));
        block.remove_prefix(length);
        break;
      case 1:
        length = (tag >> 2 & 7) + 4;
        valid = TakeFixed(&block, 1, &offset);
        offset |= static_cast<uint64_t>(tag >> 5) << 8;
        break;
      case 2:
        valid = TakeFixed(&block, 2, &offset);
        break;
      default:
        valid = TakeFixed(&block, 4, &offset);
        break;
    }
    if ((tag & 3) != 0) {
      if (!valid || offset == 0 || offset > out->size() || length > size - out->size()) {
        return Damaged("a copy is not in its block");
      }
      // The source may overlap the appended bytes.
      for (uint64_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - offset]);
    }
    if (out->size() > size) break;
  }
  return out->size() == size ? absl::OkStatus()
                             : Damaged("a compressed block does not have its stated length");
}

// Removes the offset and the size of a block from *handle and returns the contents of the block.
// *scratch holds the contents if the block is compressed. The block must not begin before
// *position. Sets *position to the end of the block's trailer. `position` may be null.
absl::StatusOr<absl::string_view> ReadBlock(absl::string_view file, int64_t max_bytes,
                                            absl::string_view* handle, Scratch* scratch,
                                            uint64_t* position) {
  uint64_t offset = 0;
  uint64_t size = 0;
  if (!TakeVarint(handle, &offset) || !TakeVarint(handle, &size)) {
    return Damaged("the position of a block has no end");
  }
  if (offset > file.size() || size > file.size() - offset ||
      file.size() - offset - size < kTrailerBytes) {
    return Damaged("a block is not in the file");
  }
  if (position != nullptr) {
    if (offset < *position) return Damaged("blocks overlap");
    *position = offset + size + kTrailerBytes;
  }
  const absl::string_view text = file.substr(offset, size + 1);
  const auto stored = static_cast<uint32_t>(Fixed(file.substr(offset + size + 1, 4)));
  if (MaskCrc(ExtendCrc32c(0, text)) != stored) return Damaged("the checksum of a block differs");
  if (text.back() == 0) return text.substr(0, size);
  if (text.back() != 1) {
    return absl::UnimplementedError(absl::StrCat("a block has compression ", int{text.back()},
                                                 ", expected 0 (none) or 1 (Snappy)"));
  }
  GRADFLOW_RETURN_IF_ERROR(Decompress(text.substr(0, size), max_bytes, scratch));
  return absl::string_view(scratch->text());
}

// Calls fn(key, value) for each entry of a block.
template <typename F>
absl::Status ForEachEntry(absl::string_view block, FileReservation* reservation, F fn) {
  if (block.size() < 4) return Damaged("a block is too short");
  const uint64_t restarts = Fixed(block.substr(block.size() - 4));
  if (restarts > (block.size() - 4) / 4) return Damaged("a block has too many restarts");
  absl::string_view left = block.substr(0, block.size() - 4 - 4 * restarts);
  Scratch scratch(reservation);
  std::string& key = scratch.text();
  while (!left.empty()) {
    uint64_t shared = 0;
    uint64_t rest = 0;
    uint64_t size = 0;
    if (!TakeVarint(&left, &shared) || !TakeVarint(&left, &rest) || !TakeVarint(&left, &size) ||
        shared > key.size() || rest > left.size() || size > left.size() - rest) {
      return Damaged("an entry is not in its block");
    }
    key.resize(shared);
    GRADFLOW_RETURN_IF_ERROR(scratch.Reserve(shared + rest));
    absl::StrAppend(&key, left.substr(0, rest));
    GRADFLOW_RETURN_IF_ERROR(fn(key, left.substr(rest, size)));
    left.remove_prefix(rest + size);
  }
  return absl::OkStatus();
}

}  // namespace

std::string WriteTable(const TableEntries& entries) {
  std::string file;
  BlockWriter block;
  BlockWriter index;
  const auto flush = [&] {
    const std::string last_key = block.last_key();
    index.Add(last_key, block.Finish(&file));
  };
  for (const auto& [key, value] : entries) {
    block.Add(key, value);
    if (block.size() >= kBlockBytes) flush();
  }
  if (!block.empty()) flush();
  BlockWriter meta_index;
  std::string footer = meta_index.Finish(&file);
  footer.append(index.Finish(&file));
  footer.resize(kFooterBytes - 8);
  AppendFixed(kTableMagic, 8, &footer);
  return file.append(footer);
}

absl::StatusOr<TableEntries> ReadTable(absl::string_view bytes, int64_t max_bytes,
                                       FileReservation* reservation, StopToken* stop) {
  if (bytes.size() < kFooterBytes) return Damaged("it is too short");
  absl::string_view footer = bytes.substr(bytes.size() - kFooterBytes);
  if (Fixed(footer.substr(kFooterBytes - 8)) != kTableMagic) return Damaged("it is not a table");
  footer.remove_suffix(8);
  uint64_t unused = 0;
  if (!TakeVarint(&footer, &unused) || !TakeVarint(&footer, &unused)) {
    return Damaged("the footer is not valid");
  }
  // The decompressed blocks.
  Scratch index_scratch(reservation);
  Scratch block_scratch(reservation);
  GRADFLOW_ASSIGN_OR_RETURN(const absl::string_view index,
                            ReadBlock(bytes, max_bytes, &footer, &index_scratch, nullptr));
  TableEntries entries;
  const int64_t limit = std::min(
      max_bytes, std::max(kMinTableLimit, kMaxTableExpansion * static_cast<int64_t>(bytes.size())));
  int64_t left = limit;
  const auto add = [&](const std::string& key, absl::string_view value) -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
    const size_t size = TableEntryBytes(key, value);
    left -= static_cast<int64_t>(size);
    if (left < 0) {
      return errors::ResourceExhausted("the entries of the table take more than ", limit,
                                       " bytes, the most for a table of ", bytes.size());
    }
    GRADFLOW_RETURN_IF_ERROR(reservation->Add(size));
    if (!entries.empty() && key <= entries.rbegin()->first) {
      return Damaged("its keys are not ascending");
    }
    entries.emplace_hint(entries.end(), key, std::string(value));
    return absl::OkStatus();
  };
  // Blocks that overlap would make the time quadratic.
  uint64_t position = 0;
  GRADFLOW_RETURN_IF_ERROR(ForEachEntry(
      index, reservation, [&](const std::string&, absl::string_view handle) -> absl::Status {
        GRADFLOW_ASSIGN_OR_RETURN(const absl::string_view block,
                                  ReadBlock(bytes, max_bytes, &handle, &block_scratch, &position));
        return ForEachEntry(block, reservation, add);
      }));
  return entries;
}

}  // namespace gradflow::internal
