#include "tests/testing/checkpoint_edits.h"

#include <gtest/gtest.h>

#include <utility>

#include "gradflow/core/allocator.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"
#include "gradflow/proto/tensor_bundle.pb.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace testing {
namespace {

// Moves the slice in the message, and the record of the slice in the table.
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
  internal::FileCharge charge(SystemAllocator().get());
  absl::StatusOr<internal::TableEntries> table =
      internal::ReadTable(ReadFile(path), int64_t{1} << 30, &charge);
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

}  // namespace testing
}  // namespace gradflow
