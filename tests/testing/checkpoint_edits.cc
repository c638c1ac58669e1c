#include "tests/testing/checkpoint_edits.h"

#include <gtest/gtest.h>

#include <utility>

#include "gradflow/core/allocator.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"
#include "gradflow/io/file_reservation.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"
#include "gradflow/proto/tensor_bundle.pb.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace testing {
namespace {

// Moves the slice in the message, and its record in the table.
void Move(absl::string_view name, int64_t to, TensorSliceProto* proto,
          internal::TableEntries* table) {
  const auto key = [&] {
    return internal::EncodeSliceKey(name, *internal::TensorSlice::FromProto(*proto));
  };
  const auto record = table->find(key());
  ASSERT_NE(record, table->end());
  std::string value = std::move(record->second);
  table->erase(record);
  proto->mutable_extent(0)->set_start(to);
  (*table)[key()] = std::move(value);
}

}  // namespace

void MoveSlice(const std::string& path, absl::string_view name, int64_t from, int64_t to) {
  internal::FileReservation reservation(SystemAllocator().get());
  absl::StatusOr<internal::TableEntries> table =
      internal::ReadTable(ReadFile(path), int64_t{1} << 30, &reservation);
  ASSERT_TRUE(table.ok()) << table.status();
  int moved = 0;
  const auto move = [&](auto* slices) {
    for (TensorSliceProto& slice : *slices) {
      if (slice.extent(0).start() != from) continue;
      Move(name, to, &slice, &*table);
      ++moved;
    }
  };
  const auto entry = table->find(name);
  if (entry != table->end()) {
    BundleEntryProto tensor;
    ASSERT_TRUE(tensor.ParseFromString(entry->second));
    move(tensor.mutable_slices());
    (*table)[std::string(name)] = tensor.SerializeAsString();
  } else {
    SavedTensorSlices contents;
    ASSERT_TRUE(contents.ParseFromString((*table)[""]));
    for (SavedSliceMeta& meta : *contents.mutable_meta()->mutable_tensor()) {
      if (meta.name() == name) move(meta.mutable_slice());
    }
    (*table)[""] = contents.SerializeAsString();
  }
  ASSERT_EQ(moved, 1);
  WriteFile(path, internal::WriteTable(*table));
}

void ExpandKeys(const std::string& path, int64_t key_bytes, int entries) {
  internal::FileReservation reservation(SystemAllocator().get());
  absl::StatusOr<internal::TableEntries> table =
      internal::ReadTable(ReadFile(path), int64_t{1} << 30, &reservation);
  ASSERT_TRUE(table.ok()) << table.status();
  const std::string header = table->begin()->second;
  const std::string value = table->rbegin()->second;
  std::string block;
  const auto append = [&](int64_t shared, const std::string& rest, const std::string& content) {
    internal::AppendVarint(shared, &block);
    internal::AppendVarint(rest.size(), &block);
    internal::AppendVarint(content.size(), &block);
    block += rest + content;
  };
  append(0, "", header);
  append(0, std::string(key_bytes, 'x'), value);
  for (int i = 1; i < entries; ++i) append(key_bytes + i - 1, "y", value);
  // The only restart point, the first entry.
  internal::AppendFixed(0, 4, &block);
  internal::AppendFixed(1, 4, &block);
  // The index has the last key, or a later one, and the position and the size of the block.
  std::string handle;
  internal::AppendVarint(0, &handle);
  internal::AppendVarint(block.size(), &handle);
  std::string index;
  internal::AppendVarint(0, &index);
  internal::AppendVarint(1, &index);
  internal::AppendVarint(handle.size(), &index);
  index += "z" + handle;
  internal::AppendFixed(0, 4, &index);
  internal::AppendFixed(1, 4, &index);
  const auto stored = [](std::string bytes) {
    bytes.push_back('\0');
    const uint32_t crc = internal::MaskCrc(internal::ExtendCrc32c(0, bytes));
    internal::AppendFixed(crc, 4, &bytes);
    return bytes;
  };
  std::string file = stored(block);
  std::string footer = handle;
  internal::AppendVarint(file.size(), &footer);
  internal::AppendVarint(index.size(), &footer);
  footer.resize(40);
  const std::string whole = ReadFile(path);
  WriteFile(path, file + stored(index) + footer + whole.substr(whole.size() - 8));
}

}  // namespace testing
}  // namespace gradflow
