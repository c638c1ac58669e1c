#include "gradflow/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gradflow/io/crc32c.h"
#include "gradflow/io/old_checkpoint.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::DistinctTensor;
using ::gradflow::testing::Iota;
using ::gradflow::testing::IsOk;
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

TEST(Crc32c, KnownValues) {
  // RFC 3720, B.4.
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
}

// ---- Tables ----

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
    const auto read = internal::ReadTable(internal::WriteTable(entries), 1 << 30);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, entries);
  }
}

TEST(Table, LimitsMemory) {
  const std::string table = internal::WriteTable({{"a", std::string(1000, 'x')}});
  EXPECT_THAT(internal::ReadTable(table, 500), StatusIs(absl::StatusCode::kResourceExhausted));
}

// Returns `block` as a table stores it, with its type of compression and its checksum.
std::string Stored(const std::string& block, char compression) {
  std::string stored = block + compression;
  const uint32_t crc = internal::MaskCrc(internal::ExtendCrc32c(0, stored));
  for (int i = 0; i < 4; ++i) stored.push_back(static_cast<char>(crc >> (8 * i)));
  return stored;
}

// Returns a table of one block, compressed by Snappy.
std::string CompressedTable(const std::string& block) {
  std::string handle;
  internal::AppendVarint(0, &handle);
  internal::AppendVarint(block.size(), &handle);
  const std::string restarts = std::string(4, '\0') + '\1' + std::string(3, '\0');
  const std::string index =
      std::string("\0\1", 2) + static_cast<char>(handle.size()) + 'a' + handle + restarts;
  std::string table = Stored(block, 1);
  std::string footer = handle;
  internal::AppendVarint(table.size(), &footer);
  internal::AppendVarint(index.size(), &footer);
  footer.resize(40);
  return table + Stored(index, 0) + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

TEST(Table, ReadsSnappy) {
  // The key "a" with a value of 70 'v': a literal, copies of each kind, and a literal.
  const std::string copies = {'\x1d', 1, '\x96', 1, 0, '\x4f', 1, 0, 0, 0};
  const std::string begin = std::string("\x52\x10\0\1\x46", 5) + "av";
  const std::string end = std::string("\x1c\0\0\0\0\1\0\0\0", 9);
  const auto read = internal::ReadTable(CompressedTable(begin + copies + end), 1000);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, (internal::TableEntries{{"a", std::string(70, 'v')}}));
  const auto expect_damaged = [&](const std::string& block) {
    EXPECT_THAT(internal::ReadTable(CompressedTable(block), 1000),
                StatusIs(absl::StatusCode::kDataLoss));
  };
  const std::string block = begin + copies + end;
  for (size_t size = 0; size < block.size(); ++size) expect_damaged(block.substr(0, size));
  for (const size_t i : {0, 1, 8, 10, 11, 13, 14}) {
    std::string damaged = block;
    damaged[i] = '\x7f';
    expect_damaged(damaged);
  }
  EXPECT_THAT(internal::ReadTable(CompressedTable(block), 50),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

// Every damage is an error: the checksums cover all blocks, and the footer is checked.
TEST(Table, NoticesDamage) {
  const internal::TableEntries entries = ManyEntries(40);
  const std::string table = internal::WriteTable(entries);
  for (size_t size = 0; size < table.size(); ++size) {
    EXPECT_FALSE(internal::ReadTable(absl::string_view(table).substr(0, size), 1 << 30).ok());
  }
  int unnoticed = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string damaged = table;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    const auto read = internal::ReadTable(damaged, 1 << 30);
    if (!read.ok()) continue;
    // The padding and the position of the empty metaindex say nothing.
    EXPECT_EQ(*read, entries);
    ++unnoticed;
  }
  EXPECT_LT(unnoticed, 60);
}

TEST(Table, Varints) {
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
}

TEST(TensorSlice, EncodesKeys) {
  using internal::EncodeSliceKey;
  using internal::TensorSlice;
  EXPECT_EQ(EncodeSliceKey("w", {{{0, 2}, {0, -1}}}),
            std::string("\0w\0\1\1\2\x80\x82\x80\x7f", 10));
  EXPECT_EQ(EncodeSliceKey(std::string("a\0b\xff", 4), {}), std::string("\0a\0\xff"
                                                                        "b\xff\0\0\1\0",
                                                                        10));
  // Numbers of several bytes.
  EXPECT_EQ(EncodeSliceKey("w", {{{64, 8191}}}), std::string("\0w\0\1\1\1\xc0\x40\xdf\xff", 10));
  EXPECT_EQ(EncodeSliceKey("w", {{{8192, int64_t{1} << 62}}}),
            std::string("\0w\0\1\1\1\xe0\x20\0\xff\xc0\x40\0\0\0\0\0\0\0", 19));
}

// ---- Checkpoints ----

class CheckpointTest : public testing::FolderFixture {};

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

TEST_F(CheckpointTest, ReadsTensorFlows) {
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

// The files are those that TensorFlow writes, byte by byte.
TEST_F(CheckpointTest, WritesTheBytesOfTensorFlow) {
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
  EXPECT_THAT(ReadOldCheckpoint(File("old-1"), "slices"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("do not cover")));
  EXPECT_THAT(ReadOldCheckpoint(File("old-1"), "slices", "4 3 1,1:-"),
              TensorEq(Iota<float>({1, 3}, 3)));
}

TEST_F(CheckpointTest, ErrorsOfWriting) {
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
}

// Each flipped byte and each truncation is an error, or changes nothing.
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
  // Reads the tensors from `name`, which is damaged.
  const auto check = [&](const std::string& name, const char* what, size_t at) {
    const bool is_old = name == "old";
    const auto checkpoint = Checkpoint::Open(File("c"));
    if (!is_old && !checkpoint.ok()) return;
    for (size_t t = is_old ? 17 : 0; t < tensors.size(); ++t) {
      const Tensor expected = tensors[t].name == "sliced" ? Iota<float>({2, 3}) : tensors[t].tensor;
      const auto read = is_old ? ReadOldCheckpoint(File("old"), tensors[t].name)
                               : checkpoint->Read(tensors[t].name);
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
      if (i % 7 != 0) continue;
      WriteAll(path, whole.substr(0, i));
      check(name, "length ", i);
    }
    WriteAll(path, whole);
  }
}

TEST_F(CheckpointTest, Merges) {
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
