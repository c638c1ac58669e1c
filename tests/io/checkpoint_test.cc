#include "gradflow/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"
#include "gradflow/io/file_reservation.h"
#include "gradflow/io/old_checkpoint.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"
#include "gradflow/proto/tensor_bundle.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/checkpoint_edits.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::DistinctTensor;
using ::gradflow::testing::Iota;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::MoveSlice;
using ::gradflow::testing::RandomTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorTypes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}
void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

// ---- Checksums ----

TEST(Crc32c, HasKnownValues) {
  // The values are from RFC 3720, B.4.
  EXPECT_EQ(internal::ExtendCrc32c(0, std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(internal::ExtendCrc32c(0, std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(internal::ExtendCrc32c(0, "123456789"), 0xe3069283u);
  EXPECT_EQ(internal::ExtendCrc32c(internal::ExtendCrc32c(0, "1234"), "56789"), 0xe3069283u);
  EXPECT_EQ(internal::UnmaskCrc(internal::MaskCrc(0xe3069283u)), 0xe3069283u);
  EXPECT_NE(internal::MaskCrc(0xe3069283u), 0xe3069283u);
}

TEST(Crc32c, PortableAgreesWithTheInstruction) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.push_back(static_cast<char>(i * 37));
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t size = 0; size < 40; ++size) {
      const auto part = absl::string_view(bytes).substr(begin, size);
      EXPECT_EQ(internal::ExtendCrc32c(7, part), internal::ExtendCrc32cPortable(7, part));
    }
  }
  // Sizes around multiples of the block that is computed in three parts.
  for (size_t i = 0; i < 20000; ++i) bytes.push_back(static_cast<char>(i * i * 31 >> 3));
  for (const size_t size : {3071, 3072, 3073, 3080, 6143, 6144, 6151, 9217, 20000}) {
    for (size_t begin = 0; begin < 4; ++begin) {
      const auto part = absl::string_view(bytes).substr(begin, size);
      EXPECT_EQ(internal::ExtendCrc32c(7, part), internal::ExtendCrc32cPortable(7, part)) << size;
    }
  }
}

// ---- Tables ----

// An allocator with a limit that counts the used bytes.
class SmallAllocator final : public Allocator {
 public:
  explicit SmallAllocator(size_t limit) : limit_(limit) {}
  void* Allocate(size_t bytes) override {
    return Reserve(bytes) ? SystemAllocator()->Allocate(bytes) : nullptr;
  }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
    Release(bytes);
  }
  bool Reserve(size_t bytes) override {
    if (bytes > limit_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void Release(size_t bytes) override { used_ -= bytes; }
  size_t used() const { return used_; }

 private:
  const size_t limit_;
  size_t used_ = 0;
};

absl::StatusOr<internal::TableEntries> ReadTable(absl::string_view bytes, int64_t max_bytes) {
  internal::FileReservation reservation(SystemAllocator().get());
  return internal::ReadTable(bytes, max_bytes, &reservation);
}

internal::TableEntries ManyEntries(int count) {
  internal::TableEntries entries;
  for (int i = 0; i < count; ++i) {
    entries["name/" + std::string(i % 40, 'x') + std::to_string(i)] = std::string(i % 700, 'v');
  }
  return entries;
}

TEST(Table, RoundTrips) {
  for (const int count : {0, 1, 15, 16, 17, 3000}) {
    const internal::TableEntries entries = ManyEntries(count);
    const auto read = ReadTable(internal::WriteTable(entries), 1 << 30);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, entries);
  }
}

TEST(Table, LimitsMemory) {
  const std::string table = internal::WriteTable({{"a", std::string(1000, 'x')}});
  EXPECT_THAT(ReadTable(table, 500), StatusIs(absl::StatusCode::kResourceExhausted));
}

std::string Fixed(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Blocks must not share bytes of the file, because reading them would take quadratic time.
TEST(Table, BlocksMustNotOverlap) {
  // The only block of a table without entries: a single restart, at 0.
  const std::string empty = internal::WriteTable({});
  constexpr char kBlockBytes = 8;
  for (const char second : {0, 1}) {
    std::string file = empty.substr(0, kBlockBytes + 5);
    // For each block, the last key, the position and the size; then the restarts.
    std::string index = {0, 1, 2, 'a', 0, kBlockBytes, 0, 1, 2, 'b', second, kBlockBytes};
    index += Fixed(0, 4) + Fixed(1, 4);
    std::string footer = {0, kBlockBytes, static_cast<char>(file.size()),
                          static_cast<char>(index.size())};
    index.push_back(0);
    file += index + Fixed(internal::MaskCrc(internal::ExtendCrc32c(0, index)), 4);
    footer.resize(40);
    file += footer + empty.substr(empty.size() - 8);
    EXPECT_THAT(ReadTable(file, 1 << 30),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("blocks overlap")));
  }
}

// Returns `block` with its compression type and its checksum, like in a table.
std::string Stored(const std::string& block, char compression) {
  std::string stored = block + compression;
  const uint32_t crc = internal::MaskCrc(internal::ExtendCrc32c(0, stored));
  for (int i = 0; i < 4; ++i) stored.push_back(static_cast<char>(crc >> (8 * i)));
  return stored;
}

// Returns a table with a single block, compressed by Snappy unless `compression` is 0.
std::string TableOfBlock(const std::string& block, char compression) {
  std::string handle;
  internal::AppendVarint(0, &handle);
  internal::AppendVarint(block.size(), &handle);
  const std::string restarts = std::string(4, '\0') + '\1' + std::string(3, '\0');
  const std::string index =
      std::string("\0\1", 2) + static_cast<char>(handle.size()) + 'a' + handle + restarts;
  std::string table = Stored(block, compression);
  std::string footer = handle;
  internal::AppendVarint(table.size(), &footer);
  internal::AppendVarint(index.size(), &footer);
  footer.resize(40);
  return table + Stored(index, 0) + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

absl::StatusOr<internal::TableEntries> ReadCompressed(const std::string& block, int64_t max_bytes) {
  internal::FileReservation reservation(SystemAllocator().get());
  const auto table = internal::ReadTable(TableOfBlock(block, 1), max_bytes, &reservation);
  size_t bytes = 0;
  for (const auto& [key, value] : table.ok() ? *table : internal::TableEntries()) {
    bytes += internal::TableEntryBytes(key, value);
  }
  // After the table has been read, only the entries are charged.
  if (table.ok()) {
    EXPECT_EQ(reservation.bytes(), bytes);
  }
  return table;
}

TEST(Table, ReadsSnappy) {
  // The key "a" with a value of 70 'v': a literal, copies of each kind, and a literal.
  const std::string copies = {'\x1d', 1, '\x96', 1, 0, '\x4f', 1, 0, 0, 0};
  const std::string begin = std::string("\x52\x10\0\1\x46", 5) + "av";
  const std::string end = std::string("\x1c\0\0\0\0\1\0\0\0", 9);
  const auto read = ReadCompressed(begin + copies + end, 1000);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, (internal::TableEntries{{"a", std::string(70, 'v')}}));
  const auto expect_damaged = [&](const std::string& block) {
    EXPECT_THAT(ReadCompressed(block, 1000), StatusIs(absl::StatusCode::kDataLoss));
  };
  const std::string block = begin + copies + end;
  for (size_t size = 0; size < block.size(); ++size) expect_damaged(block.substr(0, size));
  for (const size_t i : {0, 1, 8, 10, 11, 13, 14}) {
    std::string damaged = block;
    damaged[i] = '\x7f';
    expect_damaged(damaged);
  }
  EXPECT_THAT(ReadCompressed(block, 50), StatusIs(absl::StatusCode::kResourceExhausted));
}

// A compressed block may expand to 20 times its bytes.
TEST(Table, CountsTheMemoryOfBlocks) {
  constexpr size_t kBytes = 1 << 20;
  std::string block;
  internal::AppendVarint(kBytes, &block);
  // A literal of one byte, and copies of 64 bytes.
  block += std::string("\0\0", 2);
  for (size_t i = 1; i < kBytes; i += 64) {
    const size_t length = std::min<size_t>(64, kBytes - i);
    block += {static_cast<char>((length - 1) << 2 | 2), 1, 0};
  }
  const std::string table = TableOfBlock(block, 1);
  const auto read = [&](size_t limit) {
    SmallAllocator allocator(limit);
    absl::Status status;
    {
      internal::FileReservation reservation(&allocator);
      status = internal::ReadTable(table, 1 << 30, &reservation).status();
    }
    EXPECT_EQ(allocator.used(), 0u);
    return status;
  };
  // Zero bytes are entries with empty keys.
  EXPECT_THAT(read(2 * kBytes),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("its keys are not ascending")));
  EXPECT_THAT(read(kBytes / 2), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Each key is the previous key plus a character.
TEST(Table, LimitsTheExpansionOfKeys) {
  const auto read = [](size_t key_bytes, int entries) {
    std::string block;
    const auto append = [&](size_t shared, const std::string& rest) {
      internal::AppendVarint(shared, &block);
      internal::AppendVarint(rest.size(), &block);
      block += '\0';
      block += rest;
    };
    append(0, std::string(key_bytes, 'x'));
    for (int i = 1; i < entries; ++i) append(key_bytes + i - 1, "y");
    block += Fixed(0, 4) + Fixed(1, 4);
    const std::string table = TableOfBlock(block, 0);
    SmallAllocator allocator(size_t{4} << 30);
    internal::FileReservation reservation(&allocator);
    const auto result = internal::ReadTable(table, int64_t{1} << 30, &reservation);
    if (!result.ok()) {
      EXPECT_LE(reservation.bytes(), std::max<size_t>(16 << 20, 64 * table.size()) + table.size());
      EXPECT_THAT(result.status(),
                  StatusIs(absl::StatusCode::kResourceExhausted,
                           HasSubstr(absl::StrCat("the most for a table of ", table.size()))));
    }
    return result.ok();
  };
  EXPECT_TRUE(read(1000, 1000));
  EXPECT_TRUE(read(100000, 150));
  EXPECT_FALSE(read(100000, 200));
  EXPECT_FALSE(read(600000, 1500));
  StopToken stop;
  stop.Stop();
  internal::FileReservation reservation(SystemAllocator().get());
  EXPECT_THAT(
      internal::ReadTable(internal::WriteTable(ManyEntries(10)), 1 << 30, &reservation, &stop),
      StatusIs(absl::StatusCode::kCancelled));
}

// All damage is detected, because the checksums cover all blocks and the footer is checked.
TEST(Table, NoticesDamage) {
  const internal::TableEntries entries = ManyEntries(40);
  const std::string table = internal::WriteTable(entries);
  for (size_t size = 0; size < table.size(); ++size) {
    EXPECT_FALSE(ReadTable(absl::string_view(table).substr(0, size), 1 << 30).ok());
  }
  int unnoticed = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string damaged = table;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    const auto read = ReadTable(damaged, 1 << 30);
    if (!read.ok()) continue;
    // The padding and the position of the empty metaindex have no effect.
    EXPECT_EQ(*read, entries);
    ++unnoticed;
  }
  EXPECT_LT(unnoticed, 60);
}

TEST(Table, RoundTripsVarints) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, ~uint64_t{0}}) {
    std::string text;
    internal::AppendVarint(value, &text);
    absl::string_view left = text;
    uint64_t read = 1;
    EXPECT_TRUE(internal::TakeVarint(&left, &read));
    EXPECT_EQ(read, value);
    EXPECT_TRUE(left.empty());
  }
  absl::string_view endless = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f";
  uint64_t unused = 0;
  EXPECT_FALSE(internal::TakeVarint(&endless, &unused));
}

// ---- Slices ----

TEST(TensorSlice, ParsesTexts) {
  const auto part = internal::ParseShapeAndSlice("4 10 1,2:-");
  ASSERT_THAT(part, IsOk());
  EXPECT_EQ(part->shape, TensorShape({4, 10}));
  EXPECT_EQ(part->slice.Resolve(part->shape)->Shape(), TensorShape({2, 10}));
  for (const char* text :
       {"4", "4 ", "x -", "4 0,5", "4 4,1", "4 -:-", "-1 -", "4 1,-2", "4 1", "4 0,0",
        "4 9223372036854775807,9223372036854775807", "9999999999 9999999999 -:-"}) {
    EXPECT_THAT(internal::ParseShapeAndSlice(text), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  EXPECT_THAT(internal::ParseShapeAndSlice("\x1b[2J\xe4"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "shape_and_slice '\\x1b[2J\\xe4': expected the dimensions and a slice"));
}

TEST(TensorSlice, EncodesKeys) {
  using internal::EncodeSliceKey;
  using internal::TensorSlice;
  EXPECT_EQ(EncodeSliceKey("w", {{{0, 2}, {0, -1}}}),
            std::string("\0w\0\1\1\2\x80\x82\x80\x7f", 10));
  EXPECT_EQ(EncodeSliceKey(std::string("a\0b\xff", 4), {}), std::string("\0a\0\xff"
                                                                        "b\xff\0\0\1\0",
                                                                        10));
  // The numbers take several bytes.
  EXPECT_EQ(EncodeSliceKey("w", {{{64, 8191}}}), std::string("\0w\0\1\1\1\xc0\x40\xdf\xff", 10));
  EXPECT_EQ(EncodeSliceKey("w", {{{8192, int64_t{1} << 62}}}),
            std::string("\0w\0\1\1\1\xe0\x20\0\xff\xc0\x40\0\0\0\0\0\0\0", 19));
}

TEST(TensorSlice, CountsCommonElements) {
  using internal::NumCommonElements;
  using internal::TensorSlice;
  constexpr int64_t kHuge = int64_t{1} << 40;
  const TensorSlice a = {{{2, 3}, {0, 10}}};
  EXPECT_EQ(NumCommonElements(a, {{{4, 9}, {1, 4}}}), 4);
  EXPECT_EQ(NumCommonElements(a, {{{5, 9}, {1, 4}}}), 0);
  // There are no elements, although the product of the first dimensions exceeds int64.
  const TensorSlice none = {{{0, kHuge}, {0, kHuge}, {0, 0}}};
  EXPECT_EQ(NumCommonElements(none, none), 0);
}

using Slices = std::vector<internal::TensorSlice>;

TEST(TensorSlice, DebugStringShowsExtents) {
  EXPECT_EQ((internal::TensorSlice{{{0, 2}, {0, -1}}}).DebugString(), "0,2:-");
  EXPECT_LT(internal::TensorSlice::Full(254).DebugString().size(), 250u);
}

TEST(TensorSlice, NamesOverlapsAndGaps) {
  using internal::CheckDisjoint;
  using internal::CheckTiling;
  const auto invalid = [](absl::string_view text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, std::string(text));
  };
  const internal::TensorSlice whole = {{{0, 4}}};
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}}}, {{{2, 2}}}}, whole), IsOk());
  // The overlap is as large as the gap.
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}}}, {{{1, 2}}}}, whole),
              invalid("slices '0,2' and '1,2' overlap"));
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}}}, {{{3, 1}}}}, whole),
              invalid("the slices do not cover element [2]"));
  EXPECT_THAT(CheckTiling(Slices{}, whole), invalid("the slices do not cover element [0]"));
  EXPECT_THAT(CheckDisjoint(Slices{{{{0, 2}}}, {{{3, 1}}}}), IsOk());
  EXPECT_THAT(CheckDisjoint(Slices{{{{0, 2}}}, {{{0, 2}}}}),
              invalid("slices '0,2' and '0,2' overlap"));
  // The whole is part of the tensor. Slices outside of the whole are ignored.
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}}}, {{{2, 2}}}}, {{{1, 2}}}), IsOk());
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}}}, {{{3, 1}}}}, {{{0, 2}}}), IsOk());
  // Two dimensions: the overlap [1,1] and the gap [0,2].
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}, {0, 2}}}, {{{1, 1}, {1, 2}}}}, {{{0, 2}, {0, 3}}}),
              invalid("slices '0,2:0,2' and '1,1:1,2' overlap"));
  EXPECT_THAT(CheckTiling(Slices{{{{0, 2}, {0, 2}}}, {{{1, 1}, {2, 1}}}}, {{{0, 2}, {0, 3}}}),
              invalid("the slices do not cover element [0,2]"));
  // Scalars, and slices without elements.
  EXPECT_THAT(CheckTiling(Slices{{}}, {}), IsOk());
  EXPECT_THAT(CheckTiling(Slices{{}, {}}, {}), invalid("slices '' and '' overlap"));
  EXPECT_THAT(CheckTiling(Slices{{{{0, 0}}}, {{{0, 0}}}}, {{{0, 0}}}), IsOk());
  // The sizes are near the largest int64.
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(CheckTiling(Slices{{{{0, 1}}}, {{{2, kHuge - 2}}}}, {{{0, kHuge}}}),
              invalid("the slices do not cover element [1]"));
}

// Cuts [0,size) of each dimension into random parts until there are `count` slices.
Slices RandomTiling(std::mt19937* random, int dims, int64_t size, size_t count) {
  const auto below = [&](int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(*random);
  };
  Slices slices = {{std::vector<internal::TensorSlice::Extent>(dims, {0, size})}};
  while (slices.size() < count) {
    internal::TensorSlice& slice = slices[below(static_cast<int64_t>(slices.size()))];
    const int64_t d = below(dims);
    internal::TensorSlice::Extent& extent = slice.extents[d];
    if (extent.length == 1) continue;
    const int64_t first = 1 + below(extent.length - 1);
    internal::TensorSlice rest = slice;
    rest.extents[d] = {extent.start + first, extent.length - first};
    extent.length = first;
    slices.push_back(std::move(rest));
  }
  std::shuffle(slices.begin(), slices.end(), *random);
  return slices;
}

// Returns, for each element of a tensor with `size` elements in each dimension, the number of
// slices that contain it.
std::vector<int> CountCovers(const Slices& slices, int dims, int64_t size) {
  std::vector<int> covers(static_cast<size_t>(std::llround(std::pow(size, dims))));
  for (const internal::TensorSlice& slice : slices) {
    const int64_t count = slice.Shape().num_elements();
    for (int64_t i = 0; i < count; ++i) {
      int64_t index = 0;
      int64_t stride = 1;
      int64_t rest = i;
      for (int d = dims - 1; d >= 0; --d, stride *= size) {
        const auto [start, length] = slice.extents[d];
        index += (start + rest % length) * stride;
        rest /= length;
      }
      ++covers[index];
    }
  }
  return covers;
}

// The reference checks each element.
TEST(TensorSlice, TilingAgreesWithElements) {
  std::mt19937 random(1);
  int tilings = 0;
  int overlaps = 0;
  int gaps = 0;
  for (int round = 0; round < 600; ++round) {
    const int dims = 1 + round % 4;
    // Large sets use another search than small sets.
    const bool is_large = round >= 560;
    constexpr int64_t kSizes[] = {100, 12, 6, 6};
    constexpr int64_t kLargeSizes[] = {5000, 100, 20, 10};
    const int64_t size = is_large ? kLargeSizes[dims - 1] : kSizes[dims - 1];
    Slices slices =
        RandomTiling(&random, dims, size, is_large ? 1001 + random() % 2000 : 2 + random() % 80);
    // Every third tiling is complete. In the others, a slice is moved or removed.
    internal::TensorSlice& changed = slices[random() % slices.size()];
    internal::TensorSlice::Extent& extent = changed.extents[random() % dims];
    if (round % 3 == 1 && extent.start > 0) --extent.start;
    if (round % 3 == 2) slices.pop_back();
    const std::vector<int> covers = CountCovers(slices, dims, size);
    const auto [least, most] = std::minmax_element(covers.begin(), covers.end());
    const internal::TensorSlice whole = {
        std::vector<internal::TensorSlice::Extent>(dims, {0, size})};
    const absl::Status disjoint = internal::CheckDisjoint(slices);
    const absl::Status tiling = internal::CheckTiling(slices, whole);
    EXPECT_EQ(disjoint.ok(), *most <= 1) << disjoint;
    EXPECT_EQ(tiling.ok(), *least == 1 && *most == 1) << tiling;
    if (tiling.ok()) ++tilings;
    if (!disjoint.ok()) ++overlaps;
    if (disjoint.ok() && !tiling.ok()) {
      ++gaps;
      // Finds the first uncovered element.
      const int64_t first = std::find(covers.begin(), covers.end(), 0) - covers.begin();
      std::string element = "]";
      for (int64_t d = 0, rest = first; d < dims; ++d, rest /= size) {
        element = absl::StrCat(d + 1 < dims ? "," : "[", rest % size, element);
      }
      EXPECT_EQ(tiling.message(), "the slices do not cover element " + element);
    }
  }
  EXPECT_GT(tilings, 150);
  EXPECT_GT(overlaps, 100);
  EXPECT_GT(gaps, 150);
}

// A grid of 100,000 slices in 8 dimensions, and one additional slice.
TEST(TensorSlice, ChecksManySlices) {
  constexpr int kDims = 8;
  Slices slices;
  // The product is 5^5 * 4^2 * 2 parts.
  const int64_t parts[kDims] = {5, 4, 5, 2, 5, 4, 5, 5};
  internal::TensorSlice slice = {std::vector<internal::TensorSlice::Extent>(kDims, {0, 3})};
  internal::TensorSlice whole = slice;
  for (int d = 0; d < kDims; ++d) whole.extents[d].length = 3 * parts[d];
  for (;;) {
    slices.push_back(slice);
    int d = kDims - 1;
    for (; d >= 0; --d) {
      slice.extents[d].start += 3;
      if (slice.extents[d].start < whole.extents[d].length) break;
      slice.extents[d].start = 0;
    }
    if (d < 0) break;
  }
  ASSERT_EQ(slices.size(), 100000u);
  EXPECT_THAT(internal::CheckTiling(slices, whole), IsOk());
  const internal::TensorSlice last = slices.back();
  slices.pop_back();
  std::string element = "[";
  for (int d = 0; d < kDims; ++d) {
    absl::StrAppend(&element, last.extents[d].start, d + 1 < kDims ? "," : "]");
  }
  EXPECT_THAT(internal::CheckTiling(slices, whole),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(element)));
  slices.push_back(slices.front());
  EXPECT_THAT(internal::CheckTiling(slices, whole),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overlap")));
}

// Slices that are long in one dimension and short in the others. Each cut crosses many slices, and
// the search gives up early.
TEST(TensorSlice, BoundsItsTime) {
  constexpr int64_t kLength = 100000;
  for (const int dims : {3, 8}) {
    for (const int64_t count : {1000, 100000}) {
      Slices slices;
      std::mt19937 random(1);
      for (int64_t i = 0; i < count; ++i) {
        internal::TensorSlice slice;
        // Slices of different directions share no position.
        for (int d = 0; d < dims; ++d) {
          const auto position = static_cast<int64_t>(random() % kLength);
          slice.extents.push_back({position / dims * dims + i % dims, 1});
        }
        slice.extents[i % dims] = {0, kLength};
        slices.push_back(std::move(slice));
      }
      const absl::Status status = internal::CheckDisjoint(slices);
      if (count == 1000) {
        EXPECT_THAT(status, IsOk());
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                                     "its 100000 slices are too many to compare"));
      }
    }
  }
}

// ---- Checkpoints ----

class CheckpointTest : public testing::FolderFixture {
 protected:
  // Changes the records of an index, or of a file of the old format.
  template <typename F>
  void Edit(const std::string& path, const F& edit) {
    auto table = ReadTable(ReadAll(path), 1 << 30);
    ASSERT_THAT(table, IsOk());
    edit(*table);
    WriteAll(path, internal::WriteTable(*table));
  }
};

TEST_F(CheckpointTest, RoundTripsAllTypes) {
  std::vector<CheckpointTensor> tensors;
  for (const DataType dtype : TensorTypes()) {
    tensors.push_back({"t/" + DataTypeString(dtype), DistinctTensor(dtype, {3, 5}), ""});
    tensors.push_back({"empty/" + DataTypeString(dtype), Tensor(dtype, {0, 2}), ""});
    tensors.push_back({"scalar/" + DataTypeString(dtype), DistinctTensor(dtype, {}), ""});
  }
  const std::string prefix = File("a/new/folder/ckpt");
  ASSERT_THAT(WriteCheckpoint(prefix, tensors), IsOk());
  const auto checkpoint = Checkpoint::Open(prefix);
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_EQ(checkpoint->Names().size(), tensors.size());
  for (const CheckpointTensor& tensor : tensors) {
    EXPECT_THAT(checkpoint->Read(tensor.name), TensorEq(tensor.tensor)) << tensor.name;
  }
  EXPECT_THAT(checkpoint->Read("none"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("'none'")));
  EXPECT_THAT(checkpoint->Read(""), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointTest, ReadsTensorFlowsCheckpoints) {
  const std::string folder = GRADFLOW_TEST_DATA_DIR "/checkpoints/";
  const auto checkpoint = Checkpoint::Open(folder + "tensorflow");
  ASSERT_THAT(checkpoint, IsOk());
  const auto old = [&](absl::string_view name, absl::string_view slice = "") {
    return ReadOldCheckpoint(folder + "tensorflow_o*", name, slice);
  };
  const Tensor f = AsTensor<float>({0, 0.25f, 0.5f, 0.75f, 1, 1.25f}, {2, 3});
  const std::map<std::string, Tensor> expected = {
      {"float", f},
      {"half", AsTensor<half>({0, 0.25f, 0.5f, 0.75f, 1, 1.25f}, {2, 3})},
      {"strings", AsTensor<tstring>({"one", "", "three", std::string(300, 'x')}, {2, 2})},
      {"int64", AsScalar<int64_t>(-5)},
      {"bool", AsTensor<bool>({true, false, true})},
      {"empty", Tensor(DT_FLOAT, {3, 0})},
      {"complex128", AsTensor<complex128>({complex128(1, 2)})},
      {"uint8", AsTensor<uint8_t>({1, 255})},
      {"a/long/name", AsScalar<double>(2.5)},
      {"qint8", AsTensor<qint8>({-1, 2})},
      {"sliced", Iota<int32_t>({4, 10})},
  };
  for (const auto& [name, tensor] : expected) {
    EXPECT_THAT(checkpoint->Read(name), TensorEq(tensor)) << name;
    EXPECT_THAT(old(name), TensorEq(tensor)) << name;
  }
  EXPECT_THAT(checkpoint->Read("bfloat16"),
              TensorEq(AsTensor<bfloat16>({0, 0.25f, 0.5f, 0.75f, 1, 1.25f}, {2, 3})));
  // The slices are not tensors.
  EXPECT_EQ(checkpoint->Names().size(), expected.size() + 1);
  const Tensor part = AsTensor<int32_t>({13, 14, 23, 24}, {2, 2});
  EXPECT_THAT(checkpoint->Read("sliced", "4 10 1,2:3,2"), TensorEq(part));
  EXPECT_THAT(old("sliced", "4 10 1,2:3,2"), TensorEq(part));
  EXPECT_THAT(checkpoint->Read("float", "2 3 1,1:-"),
              TensorEq(AsTensor<float>({0.75f, 1, 1.25f}, {1, 3})));
  EXPECT_THAT(checkpoint->Read("strings", "2 2 -:0,1"),
              TensorEq(AsTensor<tstring>({"one", "three"}, {2, 1})));
  EXPECT_THAT(checkpoint->Read("float", "2 4 -:-"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has shape [2,3]")));
  EXPECT_THAT(old("none"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadOldCheckpoint(folder + "nothing", "float"),
              StatusIs(absl::StatusCode::kNotFound));
}

// Tensors from TensorFlow's files are written again with the same names and values.
TEST_F(CheckpointTest, RewritesTensorFlowsCheckpoints) {
  const std::string folder = GRADFLOW_TEST_DATA_DIR "/checkpoints/";
  const auto checkpoint = Checkpoint::Open(folder + "tensorflow");
  ASSERT_THAT(checkpoint, IsOk());
  std::vector<CheckpointTensor> tensors;
  for (const std::string& name : checkpoint->Names()) {
    if (name != "sliced") tensors.push_back({name, *checkpoint->Read(name), ""});
  }
  for (const char* slice : {"4 10 0,2:-", "4 10 2,2:-"}) {
    tensors.push_back({"sliced", *checkpoint->Read("sliced", slice), slice});
  }
  ASSERT_THAT(WriteCheckpoint(File("ours"), tensors), IsOk());
  const auto again = Checkpoint::Open(File("ours"));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->Names(), checkpoint->Names());
  for (const std::string& name : checkpoint->Names()) {
    EXPECT_THAT(again->Read(name), TensorEq(*checkpoint->Read(name))) << name;
  }
}

TEST_F(CheckpointTest, RoundTripsTheOldFormat) {
  std::vector<CheckpointTensor> tensors;
  for (const DataType dtype : TensorTypes()) {
    tensors.push_back({DataTypeString(dtype), DistinctTensor(dtype, {3, 5}), ""});
  }
  tensors.push_back({"scalar", AsScalar<float>(1), ""});
  tensors.push_back({"slices", Iota<float>({2, 3}), "4 3 0,2:-"});
  ASSERT_THAT(WriteOldCheckpoint(File("old-1"), tensors), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("old-2"), {{"slices", Iota<float>({2, 3}, 6), "4 3 2,2:-"}}),
              IsOk());
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name == "slices") continue;
    EXPECT_THAT(ReadOldCheckpoint(File("old-?"), tensor.name), TensorEq(tensor.tensor))
        << tensor.name;
  }
  EXPECT_THAT(ReadOldCheckpoint(File("old-?"), "slices"), TensorEq(Iota<float>({4, 3})));
  const auto listed = ListOldCheckpoint(File("old-?"));
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(listed->at("slices").dtype, DT_FLOAT);
  EXPECT_EQ(listed->at("slices").shape, TensorShape({4, 3}));
  EXPECT_EQ(listed->count(tensors[0].name), 1);
  EXPECT_THAT(ListOldCheckpoint(File("nothing")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ReadOldCheckpoint(File("old-1"), "slices"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("do not cover")));
  EXPECT_THAT(ReadOldCheckpoint(File("old-1"), "slices", "4 3 1,1:-"),
              TensorEq(Iota<float>({1, 3}, 3)));
}

TEST_F(CheckpointTest, ReportsErrorsOfWriting) {
  const Tensor t = AsScalar<float>(1);
  EXPECT_THAT(WriteCheckpoint(File("c"), {{"", t, ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty")));
  EXPECT_THAT(WriteCheckpoint(File("c"), {{"a", t, ""}, {"a", t, ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a' is given twice")));
  EXPECT_THAT(WriteCheckpoint(File("c"), {{"a", t, "4 0,2"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("its slice has [2]")));
  EXPECT_FALSE(std::filesystem::exists(File("c.index")));
  EXPECT_FALSE(std::filesystem::exists(File("c.data-00000-of-00001")));
  EXPECT_THAT(WriteCheckpoint("/proc/none/c", {{"a", t, ""}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/proc/none/c.data")));
  EXPECT_THAT(WriteOldCheckpoint(File("c"), {{"a", t, ""}, {"a", t, ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given twice")));
  // A file has the name of a folder.
  WriteAll(File("file"), "");
  EXPECT_THAT(WriteCheckpoint(File("file/c"), {{"a", t, ""}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot make the folder")));
  ASSERT_THAT(WriteCheckpoint(File("c"), {{"a", t, ""}}), IsOk());
  EXPECT_THAT(MergeCheckpoints({File("c")}, File("file/c")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot make the folder")));
}

// Each flipped byte and each truncation is an error or has no effect.
TEST_F(CheckpointTest, NoticesDamage) {
  std::vector<CheckpointTensor> tensors;
  for (int i = 0; i < 20; ++i) {
    const DataType dtype = i % 3 == 0 ? DT_STRING : i % 3 == 1 ? DT_FLOAT : DT_INT8;
    tensors.push_back({"tensor" + std::to_string(i), DistinctTensor(dtype, {i % 4, 2}), ""});
  }
  tensors.push_back({"sliced", Iota<float>({1, 3}), "2 3 0,1:-"});
  tensors.push_back({"sliced", Iota<float>({1, 3}, 3), "2 3 1,1:-"});
  ASSERT_THAT(WriteCheckpoint(File("c"), tensors), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("old"), tensors), IsOk());
  // Reads the tensors from the damaged file `name`.
  const auto check = [&](const std::string& name, const char* what, size_t at) {
    const bool is_old = name == "old";
    const auto checkpoint = Checkpoint::Open(File("c"));
    if (absl::string_view(what) == "whole") {
      ASSERT_THAT(checkpoint, IsOk());
    }
    if (!is_old && !checkpoint.ok()) return;
    for (size_t t = is_old ? 17 : 0; t < tensors.size(); ++t) {
      const Tensor expected = tensors[t].name == "sliced" ? Iota<float>({2, 3}) : tensors[t].tensor;
      const auto read = is_old ? ReadOldCheckpoint(File("old"), tensors[t].name)
                               : checkpoint->Read(tensors[t].name);
      if (absl::string_view(what) == "whole") {
        ASSERT_THAT(read, IsOk()) << name;
      }
      if (read.ok()) {
        EXPECT_THAT(*read, TensorEq(expected)) << name << what << at;
      } else {
        EXPECT_NE(read.status().message(), "");
      }
    }
  };
  for (const std::string name : {"c.index", "c.data-00000-of-00001", "old"}) {
    check(name, "whole", 0);
    const std::string path = File(name);
    const std::string whole = ReadAll(path);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
      WriteAll(path, damaged);
      check(name, "byte ", i);
      WriteAll(path, whole.substr(0, i));
      check(name, "length ", i);
    }
    WriteAll(path, whole);
  }
}

// Two writers of the same prefix may leave the index of the first and the data of the second. Each
// tensor that can be read must come completely from a single writer.
TEST_F(CheckpointTest, TwoWritersNeverMixValues) {
  constexpr int kWrites = 150;
  constexpr int kTensors = 8;
  constexpr int64_t kSize = 500;
  std::atomic<int> writing{2};
  const auto write = [&](int writer) {
    for (int i = 0; i < kWrites; ++i) {
      std::vector<CheckpointTensor> tensors;
      for (int t = 0; t < kTensors; ++t) {
        Tensor tensor(DT_INT32, {kSize});
        // The value encodes the writer, the time and the tensor.
        tensor.flat<int32_t>().setConstant(100 * (2 * i + writer) + t);
        tensors.push_back({absl::StrCat("t", t), tensor, ""});
      }
      EXPECT_THAT(WriteCheckpoint(File("c"), tensors), IsOk());
    }
    --writing;
  };
  std::thread first(write, 0);
  std::thread second(write, 1);
  int whole = 0;
  while (writing > 0) {
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(File("c"));
    if (!checkpoint.ok()) {
      // The first write has not ended yet.
      EXPECT_THAT(checkpoint.status(), StatusIs(absl::StatusCode::kNotFound));
      continue;
    }
    int version = -1;
    for (int t = 0; t < kTensors; ++t) {
      const absl::StatusOr<Tensor> read = checkpoint->Read(absl::StrCat("t", t));
      if (!read.ok()) {
        EXPECT_THAT(read.status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
        continue;
      }
      const int value = read->flat<int32_t>()(0);
      EXPECT_THAT(read->span<int32_t>(), ::testing::Each(value));
      EXPECT_EQ(value % 100, t);
      if (version < 0) version = value / 100;
      EXPECT_EQ(value / 100, version);
      ++whole;
    }
  }
  first.join();
  second.join();
  EXPECT_GT(whole, 0);
  // The writers leave no temporary files.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 2);
}

// The slices of an index may require any amount of memory and time, so all of them are checked
// first.
TEST_F(CheckpointTest, SlicesAreCheckedBeforeTheyAreRead) {
  const auto allocator = std::make_shared<SmallAllocator>(1 << 20);
  const Tensor two = AsTensor<float>({1, 2});
  // The whole tensor would take 4 TiB.
  const char* const kHuge = "1099511627776 0,2";
  ASSERT_THAT(WriteCheckpoint(File("huge"), {{"s", two, kHuge}}), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("old_huge"), {{"s", two, kHuge}}), IsOk());
  const auto huge = Checkpoint::Open(File("huge"));
  ASSERT_THAT(huge, IsOk());
  EXPECT_THAT(huge->Read("s", "", allocator),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("do not cover")));
  EXPECT_THAT(ReadOldCheckpoint(File("old_huge"), "s", "", allocator),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("do not cover")));
  EXPECT_THAT(huge->Read("s", kHuge, allocator), TensorEq(two));

  const std::vector<CheckpointTensor> slices = {{"s", two, "4 0,2"}, {"s", two, "4 2,2"}};
  ASSERT_THAT(WriteCheckpoint(File("c"), slices), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("old"), slices), IsOk());
  const std::string index = ReadAll(File("c.index"));
  const auto read = [&] {
    const auto checkpoint = Checkpoint::Open(File("c"));
    EXPECT_THAT(checkpoint, IsOk());
    return checkpoint->Read("s", "", allocator);
  };
  // A slice that is listed twice is not read twice.
  Edit(File("c.index"), [](internal::TableEntries& table) {
    BundleEntryProto entry;
    ASSERT_TRUE(entry.ParseFromString(table["s"]));
    const TensorSliceProto first = entry.slices(0);
    *entry.add_slices() = first;
    table["s"] = entry.SerializeAsString();
  });
  EXPECT_THAT(read(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("slices '0,2' and '0,2' overlap")));
  Edit(File("old"), [](internal::TableEntries& table) {
    SavedTensorSlices contents;
    ASSERT_TRUE(contents.ParseFromString(table[""]));
    SavedSliceMeta& meta = *contents.mutable_meta()->mutable_tensor(0);
    const TensorSliceProto first = meta.slice(0);
    *meta.add_slice() = first;
    table[""] = contents.SerializeAsString();
  });
  EXPECT_THAT(ReadOldCheckpoint(File("old"), "s"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("slices '0,2' and '0,2' overlap")));
  // All slices refer to the only bytes of the file.
  ASSERT_THAT(WriteCheckpoint(File("c"), slices), IsOk());
  WriteAll(File("c.data-00000-of-00001"), ReadAll(File("c.data-00000-of-00001")).substr(0, 8));
  Edit(File("c.index"), [](internal::TableEntries& table) {
    for (auto& [key, value] : table) {
      if (key.empty() || key[0] != '\0') continue;
      BundleEntryProto entry;
      ASSERT_TRUE(entry.ParseFromString(value));
      entry.set_offset(0);
      value = entry.SerializeAsString();
    }
  });
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("have more bytes")));
  // A slice lies after the end of its file.
  WriteAll(File("c.index"), index);
  EXPECT_THAT(read(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("are not in the file")));
  EXPECT_EQ(allocator->used(), 0u);
}

// The slices have as many elements as the tensor, so an overlap hides a gap.
TEST_F(CheckpointTest, SlicesThatOverlapAreNotRead) {
  const std::vector<CheckpointTensor> slices = {{"s", AsTensor<float>({1, 2}), "4 0,2"},
                                                {"s", AsTensor<float>({3, 4}), "4 2,2"}};
  ASSERT_THAT(WriteCheckpoint(File("c"), slices), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("o"), slices), IsOk());
  MoveSlice(File("c.index"), "s", 2, 1);
  MoveSlice(File("o"), "s", 2, 1);
  const auto checkpoint = Checkpoint::Open(File("c"));
  ASSERT_THAT(checkpoint, IsOk());
  const auto expect = [&](absl::string_view slice, const auto& matcher) {
    EXPECT_THAT(checkpoint->Read("s", slice), matcher) << slice;
    EXPECT_THAT(ReadOldCheckpoint(File("o"), "s", slice), matcher) << slice;
  };
  const auto overlap = StatusIs(absl::StatusCode::kDataLoss,
                                HasSubstr("tensor 's': slices '0,2' and '1,2' overlap"));
  expect("", overlap);
  expect("4 -", overlap);
  expect("4 1,3", overlap);
  expect("4 2,2", StatusIs(absl::StatusCode::kDataLoss,
                           HasSubstr("tensor 's': the slices do not cover element [3]")));
  // A part within a single slice can be read.
  expect("4 0,1", TensorEq(AsTensor<float>({1})));
  expect("4 2,1", TensorEq(AsTensor<float>({4})));
}

// A writer may write a part of a tensor, but not an element twice.
TEST_F(CheckpointTest, SlicesThatOverlapAreNotWritten) {
  const Tensor two = AsTensor<float>({1, 2});
  const Tensor rows = Iota<float>({2, 3});
  const struct {
    std::vector<CheckpointTensor> tensors;
    std::string text;
  } faults[] = {
      {{{"s", two, "4 0,2"}, {"s", two, "4 1,2"}}, "tensor 's': slices '0,2' and '1,2' overlap"},
      // The same slice in two notations.
      {{{"s", rows, "4 3 0,2:-"}, {"s", rows, "4 3 0,2:0,3"}},
       "tensor 's': slices '0,2:0,3' and '0,2:0,3' overlap"},
  };
  for (const auto& fault : faults) {
    const auto invalid = StatusIs(absl::StatusCode::kInvalidArgument, fault.text);
    EXPECT_THAT(WriteCheckpoint(File("c"), fault.tensors), invalid);
    EXPECT_THAT(WriteOldCheckpoint(File("o"), fault.tensors), invalid);
  }
  const std::vector<CheckpointTensor> whole_and_slice = {{"s", two, ""}, {"s", two, "4 1,2"}};
  EXPECT_THAT(
      WriteCheckpoint(File("c"), whole_and_slice),
      StatusIs(absl::StatusCode::kInvalidArgument, "tensor 's' is given whole and in slices"));
  EXPECT_THAT(
      WriteOldCheckpoint(File("o"), {{"s", two, "2 0,2"}, {"s", two, ""}}),
      StatusIs(absl::StatusCode::kInvalidArgument, "tensor 's': slices '0,2' and '0,2' overlap"));
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
  const std::vector<CheckpointTensor> part = {{"s", two, "5 0,2"}, {"s", two, "5 3,2"}};
  EXPECT_THAT(WriteCheckpoint(File("c"), part), IsOk());
  EXPECT_THAT(WriteOldCheckpoint(File("o"), part), IsOk());
}

// A merge must produce each element once. Otherwise no file is renamed.
TEST_F(CheckpointTest, MergedSlicesMustCoverTheTensor) {
  const Tensor two = AsTensor<float>({1, 2});
  ASSERT_THAT(WriteCheckpoint(File("a"), {{"s", two, "4 0,2"}}), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("b"), {{"s", two, "4 1,2"}}), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("c"), {{"s", AsTensor<float>({3}), "4 3,1"}}), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("d"), {{"s", AsTensor<float>({3, 4}), "4 2,2"}}), IsOk());
  EXPECT_THAT(
      MergeCheckpoints({File("a"), File("b")}, File("m")),
      StatusIs(absl::StatusCode::kInvalidArgument, "tensor 's': slices '0,2' and '1,2' overlap"));
  EXPECT_THAT(MergeCheckpoints({File("a"), File("c")}, File("m")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "tensor 's': the slices do not cover element [2]"));
  EXPECT_FALSE(std::filesystem::exists(File("m.index")));
  ASSERT_THAT(MergeCheckpoints({File("a"), File("d")}, File("m")), IsOk());
  const auto merged = Checkpoint::Open(File("m"));
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(merged->Read("s"), TensorEq(AsTensor<float>({1, 2, 3, 4})));
  // A missing checkpoint may have contained the rest of the tensor, but an element must not occur
  // twice.
  MergeCheckpointsOptions options;
  options.allow_missing_files = true;
  EXPECT_THAT(MergeCheckpoints({File("b"), File("c"), File("none")}, File("n"), options), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("b"), {{"s", two, "4 1,2"}}), IsOk());
  EXPECT_THAT(MergeCheckpoints({File("n"), File("b"), File("none")}, File("o"), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is in several")));
}

// A tensor without elements has no slice whose type could be checked.
TEST_F(CheckpointTest, SlicesMustHaveASupportedType) {
  ASSERT_THAT(WriteCheckpoint(File("c"), {{"s", AsTensor<float>({1, 2}), "4 0,2"}}), IsOk());
  Edit(File("c.index"), [](internal::TableEntries& table) {
    BundleEntryProto entry;
    ASSERT_TRUE(entry.ParseFromString(table["s"]));
    entry.set_dtype(DT_RESOURCE);
    entry.mutable_shape()->mutable_dim(0)->set_size(0);
    entry.clear_slices();
    entry.add_slices()->add_extent();
    table["s"] = entry.SerializeAsString();
  });
  const auto checkpoint = Checkpoint::Open(File("c"));
  ASSERT_THAT(checkpoint, IsOk());
  EXPECT_THAT(checkpoint->Read("s"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("tensor 's': type resource is not supported")));
}

TEST_F(CheckpointTest, ReadsManyTensorsOfTheOldFormat) {
  ASSERT_THAT(WriteOldCheckpoint(File("o-1"), {{"b", Iota<float>({2, 3}), "4 3 0,2:-"},
                                               {"a", AsScalar<int32_t>(7), ""}}),
              IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("o-2"), {{"b", Iota<float>({2, 3}, 6), "4 3 2,2:-"}}),
              IsOk());
  const auto tensors = ReadOldCheckpoint(
      File("o-?"), std::vector<OldCheckpointRead>{
                       {"b", ""}, {"a", ""}, {"b", "4 3 1,2:0,1"}, {"b", "4 3 3,1:-"}});
  ASSERT_THAT(tensors, IsOk());
  EXPECT_THAT(*tensors, ElementsAre(TensorEq(Iota<float>({4, 3})), TensorEq(AsScalar<int32_t>(7)),
                                    TensorEq(AsTensor<float>({3, 6}, {2, 1})),
                                    TensorEq(Iota<float>({1, 3}, 9))));
  EXPECT_THAT(ReadOldCheckpoint(File("o-?"), std::vector<OldCheckpointRead>{{"a", ""}, {"c", ""}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no tensor 'c'")));
}

TEST_F(CheckpointTest, StopsWithTheRun) {
  const std::vector<CheckpointTensor> tensors = {{"a", AsTensor<float>({1, 2}), ""},
                                                 {"s", AsTensor<float>({1, 2}), "4 0,2"},
                                                 {"t", AsTensor<tstring>({"x"}), ""}};
  ASSERT_THAT(WriteCheckpoint(File("c"), tensors), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("o"), tensors), IsOk());
  StopToken stop;
  stop.Stop();
  EXPECT_THAT(Checkpoint::Open(File("c"), SystemAllocator(), FileAccess::All(), &stop),
              StatusIs(absl::StatusCode::kCancelled));
  const auto checkpoint = Checkpoint::Open(File("c"));
  ASSERT_THAT(checkpoint, IsOk());
  for (const char* const name : {"a", "s", "t"}) {
    EXPECT_THAT(checkpoint->Read(name, "", SystemAllocator(), &stop),
                StatusIs(absl::StatusCode::kCancelled));
  }
  EXPECT_THAT(ReadOldCheckpoint(File("o"), "a", "", SystemAllocator(), &stop),
              StatusIs(absl::StatusCode::kCancelled));
  // The pattern matches no file, but the search does not begin.
  EXPECT_THAT(ReadOldCheckpoint(File("none/*"), "a", "", SystemAllocator(), &stop),
              StatusIs(absl::StatusCode::kCancelled));
}

// Empty strings take two bytes of a file each.
TEST_F(CheckpointTest, CountsTheMemoryOfOldRecords) {
  constexpr int kStrings = 100000;
  ASSERT_THAT(WriteOldCheckpoint(File("o"), {{"t", AsTensor<tstring>({"a"}), ""}}), IsOk());
  Edit(File("o"), [](internal::TableEntries& table) {
    for (auto& [key, value] : table) {
      if (key.empty()) continue;
      std::string strings;
      for (int i = 0; i < kStrings; ++i) strings += std::string("\x42\0", 2);
      const auto field = [](char number, const std::string& content) {
        std::string bytes(1, static_cast<char>(number << 3 | 2));
        internal::AppendVarint(content.size(), &bytes);
        return bytes + content;
      };
      // The name is not valid UTF-8, so parsing the record would fail with DATA_LOSS.
      value = field(2, field(1, "\xff") + field(3, strings));
    }
  });
  const auto limit = [](size_t bytes) { return std::make_shared<SmallAllocator>(bytes); };
  EXPECT_THAT(ReadOldCheckpoint(File("o"), "t", "", limit(2 << 20)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ReadOldCheckpoint(File("o"), "t", "", limit(64 << 20)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is not valid")));
  // A record of numbers is not charged like strings.
  const Tensor numbers = RandomTensor(DT_FLOAT, {kStrings});
  ASSERT_THAT(WriteOldCheckpoint(File("n"), {{"t", numbers, ""}}), IsOk());
  EXPECT_THAT(ReadOldCheckpoint(File("n"), "t", "", limit(8 * numbers.TotalBytes())),
              TensorEq(numbers));
}

TEST_F(CheckpointTest, CountsTheMemoryOfPaths) {
  for (int i = 0; i < 500; ++i) {
    WriteAll(File(std::string(100, 'x') + std::to_string(i)), "");
  }
  const auto small = std::make_shared<SmallAllocator>(20000);
  EXPECT_THAT(ReadOldCheckpoint(File("*"), "t", "", small),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ReadOldCheckpoint(File("*7"), "t", "", small),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("too short")));
  EXPECT_EQ(small->used(), 0u);
}

TEST_F(CheckpointTest, CountsItsMemory) {
  std::vector<CheckpointTensor> tensors;
  for (int i = 0; i < 1000; ++i) {
    tensors.push_back({"tensor" + std::to_string(i), AsScalar<float>(1), ""});
  }
  tensors.push_back({"text", AsTensor<tstring>({std::string(100000, 'x')}), ""});
  const auto small = std::make_shared<SmallAllocator>(50000);
  const auto enough = std::make_shared<SmallAllocator>(10 << 20);
  const auto kExhausted = absl::StatusCode::kResourceExhausted;
  EXPECT_THAT(WriteCheckpoint(File("c"), tensors, small), StatusIs(kExhausted));
  EXPECT_THAT(WriteOldCheckpoint(File("o"), tensors, small), StatusIs(kExhausted));
  EXPECT_FALSE(std::filesystem::exists(File("c.index")));
  ASSERT_THAT(WriteCheckpoint(File("c"), tensors, enough), IsOk());
  ASSERT_THAT(WriteOldCheckpoint(File("o"), tensors, enough), IsOk());
  EXPECT_THAT(Checkpoint::Open(File("c"), small).status(), StatusIs(kExhausted));
  EXPECT_THAT(ReadOldCheckpoint(File("o"), "tensor1", "", small), StatusIs(kExhausted));
  EXPECT_THAT(MergeCheckpoints({File("c")}, File("merged"), {}, small), StatusIs(kExhausted));
  EXPECT_EQ(enough->used(), 0u);
  {
    const auto checkpoint = Checkpoint::Open(File("c"), enough);
    ASSERT_THAT(checkpoint, IsOk());
    // There are a thousand entries.
    EXPECT_GT(enough->used(), 100000u);
    EXPECT_LT(enough->used(), 1000000u);
    EXPECT_THAT(checkpoint->Read("text", "", small), StatusIs(kExhausted));
    EXPECT_THAT(checkpoint->Read("tensor1", "", small), TensorEq(AsScalar<float>(1)));
  }
  EXPECT_THAT(ReadOldCheckpoint(File("o"), "text", "", enough), TensorEq(tensors.back().tensor));
  EXPECT_EQ(small->used(), 0u);
  EXPECT_EQ(enough->used(), 0u);
}

// Protobuf does not write messages of 2 GiB. The elements are never read.
TEST_F(CheckpointTest, OldRecordsAreLimited) {
  constexpr int64_t kBytes = int64_t{1} << 31;
  for (const Tensor& large : {Tensor(DT_UINT8, {kBytes}), Tensor(DT_FLOAT, {kBytes / 4})}) {
    EXPECT_THAT(WriteOldCheckpoint(File("large"), {{"a", large, ""}}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("tensor 'a' is too large for a record of 2147483647 bytes")));
  }
  EXPECT_FALSE(std::filesystem::exists(File("large")));
}

// The data file of a checkpoint must not change if its index cannot be written.
TEST_F(CheckpointTest, WritesBothFilesOrNone) {
  const Tensor a = AsScalar<float>(1);
  ASSERT_THAT(WriteCheckpoint(File("c"), {{"a", a, ""}}), IsOk());
  const std::string data = ReadAll(File("c.data-00000-of-00001"));
  std::filesystem::remove(File("c.index"));
  std::filesystem::create_directory(File("c.index"));
  EXPECT_THAT(WriteCheckpoint(File("c"), {{"a", AsScalar<float>(2), ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("c.index")));
  EXPECT_EQ(ReadAll(File("c.data-00000-of-00001")), data);
}

TEST_F(CheckpointTest, MergesAllOrNothing) {
  const Tensor a = AsScalar<float>(1);
  const Tensor b = AsScalar<float>(2);
  ASSERT_THAT(WriteCheckpoint(File("p1/c"), {{"b", b, ""}}), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("p2/c"), {{"a", a, ""}}), IsOk());
  const auto unchanged = [&] {
    for (const auto& [file, name, value] :
         {std::make_tuple("p1/c", "b", b), std::make_tuple("p2/c", "a", a)}) {
      const auto checkpoint = Checkpoint::Open(File(file));
      ASSERT_THAT(checkpoint, IsOk());
      EXPECT_THAT(checkpoint->Read(name), TensorEq(value));
    }
  };
  // The second data file cannot be renamed.
  const std::string second = File("all.data-00001-of-00002");
  std::filesystem::create_directories(second + "/x");
  EXPECT_THAT(MergeCheckpoints({File("p1/c"), File("p2/c")}, File("all")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cannot rename")));
  unchanged();
  std::filesystem::remove_all(second);
  // The index cannot be written.
  std::filesystem::create_directory(File("all.index"));
  EXPECT_THAT(MergeCheckpoints({File("p1/c"), File("p2/c")}, File("all")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("all.index")));
  unchanged();
  std::filesystem::remove(File("all.index"));
  // A data file is missing.
  std::filesystem::rename(File("p2/c.data-00000-of-00001"), File("p2/away"));
  EXPECT_THAT(MergeCheckpoints({File("p1/c"), File("p2/c")}, File("all")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("p2/c.data-00000-of-00001")));
  std::filesystem::rename(File("p2/away"), File("p2/c.data-00000-of-00001"));
  unchanged();
  ASSERT_THAT(MergeCheckpoints({File("p1/c"), File("p2/c")}, File("all")), IsOk());
  // "a" is in the second file. It would have to be in the first file, because it is the first
  // tensor.
  EXPECT_THAT(MergeCheckpoints({File("all")}, File("all")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("which is another data file of this merge")));
  const auto merged = Checkpoint::Open(File("all"));
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(merged->Read("a"), TensorEq(a));
  EXPECT_THAT(merged->Read("b"), TensorEq(b));
  Edit(File("all.index"), [](internal::TableEntries& table) {
    BundleEntryProto entry;
    ASSERT_TRUE(entry.ParseFromString(table["a"]));
    entry.set_shard_id(2);
    table["a"] = entry.SerializeAsString();
  });
  EXPECT_THAT(
      MergeCheckpoints({File("all")}, File("again")),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the index refers to data file 2 of 2")));
}

// A file may have several names.
TEST_F(CheckpointTest, MergesInPlaceUnderAnotherName) {
  const Tensor a = AsScalar<float>(1);
  const Tensor b = AsScalar<float>(2);
  const auto expect_both = [&](const std::string& prefix) {
    const auto checkpoint = Checkpoint::Open(prefix);
    ASSERT_THAT(checkpoint, IsOk());
    EXPECT_THAT(checkpoint->Read("a"), TensorEq(a));
    EXPECT_THAT(checkpoint->Read("b"), TensorEq(b));
  };
  ASSERT_THAT(WriteCheckpoint(File("d/c"), {{"a", a, ""}, {"b", b, ""}}), IsOk());
  ASSERT_THAT(MergeCheckpoints({File("./d/c")}, File("d/c")), IsOk());
  expect_both(File("d/c"));
  std::filesystem::create_directory_symlink(File("d"), File("link"));
  ASSERT_THAT(MergeCheckpoints({File("d/c")}, File("link/c")), IsOk());
  expect_both(File("d/c"));
  // The data files would swap their places.
  ASSERT_THAT(WriteCheckpoint(File("p1"), {{"b", b, ""}}), IsOk());
  ASSERT_THAT(WriteCheckpoint(File("p2"), {{"a", a, ""}}), IsOk());
  ASSERT_THAT(MergeCheckpoints({File("p1"), File("p2")}, File("d/all")), IsOk());
  EXPECT_THAT(MergeCheckpoints({File("link/all")}, File("d/all")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("which is another data file of this merge")));
  expect_both(File("d/all"));
  // Renaming a link to its own target would lose both.
  ASSERT_THAT(WriteCheckpoint(File("c"), {{"a", a, ""}, {"b", b, ""}}), IsOk());
  std::filesystem::copy(File("c.index"), File("x.index"));
  std::filesystem::create_symlink(File("c.data-00000-of-00001"), File("x.data-00000-of-00001"));
  EXPECT_THAT(MergeCheckpoints({File("x")}, File("c")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but is a link to it")));
  expect_both(File("c"));
  expect_both(File("x"));
}

TEST_F(CheckpointTest, MergesCheckpoints) {
  const Tensor a = RandomTensor(DT_FLOAT, {3});
  const Tensor b = AsTensor<tstring>({"x", "y"});
  ASSERT_THAT(
      WriteCheckpoint(File("part1/c"), {{"a", a, ""}, {"s", Iota<float>({1, 2}), "2 2 0,1:-"}}),
      IsOk());
  ASSERT_THAT(
      WriteCheckpoint(File("part2/c"), {{"b", b, ""}, {"s", Iota<float>({1, 2}, 2), "2 2 1,1:-"}}),
      IsOk());
  EXPECT_THAT(MergeCheckpoints({File("part1/c"), File("none/c")}, File("all")),
              StatusIs(absl::StatusCode::kNotFound));
  MergeCheckpointsOptions options;
  options.allow_missing_files = true;
  ASSERT_THAT(
      MergeCheckpoints({File("part1/c"), File("none/c"), File("part2/c")}, File("all"), options),
      IsOk());
  const auto merged = Checkpoint::Open(File("all"));
  ASSERT_THAT(merged, IsOk());
  EXPECT_THAT(merged->Names(), ElementsAre("a", "b", "s"));
  EXPECT_THAT(merged->Read("a"), TensorEq(a));
  EXPECT_THAT(merged->Read("b"), TensorEq(b));
  EXPECT_THAT(merged->Read("s"), TensorEq(Iota<float>({2, 2})));
  EXPECT_FALSE(std::filesystem::exists(File("part1")));
  EXPECT_TRUE(std::filesystem::exists(File("all.data-00001-of-00002")));
  EXPECT_THAT(MergeCheckpoints({File("none/c")}, File("all"), options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("none of the 1 checkpoints")));
  ASSERT_THAT(WriteCheckpoint(File("x"), {{"a", a, ""}}), IsOk());
  EXPECT_THAT(
      MergeCheckpoints({File("all"), File("x")}, File("y")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a' is in several checkpoints")));
}

}  // namespace
}  // namespace gradflow
