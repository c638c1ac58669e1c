#include "tests/testing/file_fuzz_targets.h"

#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/allocator.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/checkpoint_files.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"
#include "gradflow/io/file_reservation.h"
#include "gradflow/io/idx.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/io/old_checkpoint.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"
#include "gradflow/proto/tensor_bundle.pb.h"
#include "gradflow/proto/tensor_slice.pb.h"
#include "tests/testing/heap_meter.h"
#include "tests/testing/image_files.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

constexpr size_t kMaxMemory = 16 << 20;
// The maximum number of tensors that are read from a file.
constexpr size_t kMaxTensors = 8;

// An allocator with a total limit of kMaxMemory.
class LimitedAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (!Reserve(bytes)) return nullptr;
    return SystemAllocator()->Allocate(bytes);
  }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
    Release(bytes);
  }
  bool Reserve(size_t bytes) override {
    if (bytes > kMaxMemory || used_.fetch_add(bytes) + bytes <= kMaxMemory) {
      return bytes <= kMaxMemory;
    }
    used_ -= bytes;
    return false;
  }
  void Release(size_t bytes) override { used_ -= bytes; }
  size_t used() const { return used_; }

 private:
  std::atomic<size_t> used_{0};
};

// A temporary folder. The destructor removes the folder and its files.
class Folder {
 public:
  Folder() : path_(::testing::TempDir() + "/gradflow_fuzz_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.dtype() == DT_STRING) {
    const auto x = a.flat<tstring>();
    EXPECT_TRUE(std::equal(x.begin(), x.end(), b.flat<tstring>().begin()));
  } else {
    EXPECT_EQ(a.tensor_data(), b.tensor_data());
  }
}

void ExpectErrorOfFiles(const absl::Status& status) {
  using Code = absl::StatusCode;
  for (const Code code : {Code::kDataLoss, Code::kInvalidArgument, Code::kNotFound,
                          Code::kUnimplemented, Code::kResourceExhausted}) {
    if (status.code() == code) return;
  }
  ADD_FAILURE() << status;
}

// Returns the slice text of a tensor's first row.
std::string FirstRow(const TensorShape& shape) {
  std::string text = absl::StrCat(absl::StrJoin(shape.dim_sizes(), " "), " 0,1");
  for (int i = 1; i < shape.dims(); ++i) text += ":-";
  return text;
}

bool HasRows(const TensorShape& shape) {
  return shape.dims() > 0 && shape.dim_size(0) > 0 && shape.num_elements() > 0;
}

// ---- Tables ----

absl::StatusOr<internal::TableEntries> ParseTable(absl::string_view bytes) {
  internal::FileReservation reservation(SystemAllocator().get());
  return internal::ReadTable(bytes, kMaxMemory, &reservation);
}

// Mutates the bytes of the first block of a table that WriteTable() wrote, and corrects the
// checksum.
void MutateBlock(MutationRandom* random, std::string* table) {
  constexpr size_t kFooterBytes = 48;
  constexpr size_t kCrcBytes = 4;
  if (table->size() < kFooterBytes) return;
  absl::string_view footer = absl::string_view(*table).substr(table->size() - kFooterBytes);
  // The end of the first block is the position of the second block, the index of metadata.
  uint64_t end = 0;
  if (!internal::TakeVarint(&footer, &end) || end <= kCrcBytes || end > table->size()) return;
  std::string block = table->substr(0, end - kCrcBytes);
  const size_t size = block.size();
  MutateBytes(random, &block);
  block.resize(size);
  std::string crc;
  internal::AppendFixed(internal::MaskCrc(internal::ExtendCrc32c(0, block)), kCrcBytes, &crc);
  table->replace(0, end, block + crc);
}

template <typename Message>
void MutateValue(MutationRandom* random, std::string* value) {
  Message message;
  if (!message.ParseFromString(*value)) return;
  for (int64_t i = random->Below(3); i >= 0; --i) MutateMessage(random, &message);
  *value = message.SerializePartialAsString();
}

// Expects that the slices of a tensor in an index contain each element once, if there are slices.
// The reference checks each element of small tensors.
void ExpectTiled(absl::string_view index, const std::string& name) {
  const absl::StatusOr<internal::TableEntries> table = ParseTable(index);
  BundleEntryProto entry;
  if (!table.ok() || !entry.ParseFromString(table->at(name)) || entry.slices().empty()) return;
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(entry.shape());
  constexpr int64_t kMaxElements = 4096;
  if (!shape.ok() || shape->num_elements() > kMaxElements) return;
  for (int64_t i = 0; i < shape->num_elements(); ++i) {
    int covers = 0;
    for (const TensorSliceProto& slice : entry.slices()) {
      bool is_inside = true;
      int64_t rest = i;
      for (int d = shape->dims() - 1; d >= 0; --d) {
        const TensorSliceProto::Extent& extent = slice.extent(d);
        const int64_t position = rest % shape->dim_size(d);
        rest /= shape->dim_size(d);
        if (extent.has_length_case() != TensorSliceProto::Extent::kLength) continue;
        is_inside =
            is_inside && position >= extent.start() && position - extent.start() < extent.length();
      }
      covers += is_inside ? 1 : 0;
    }
    ASSERT_EQ(covers, 1) << "element " << i << " of tensor " << name;
  }
}

// Moves a slice of a tensor along a dimension, and its record in the table.
template <typename Slices>
void MoveASlice(MutationRandom* random, const std::string& name, Slices* slices,
                internal::TableEntries* entries) {
  if (slices->empty()) return;
  TensorSliceProto& slice = *slices->Mutable(static_cast<int>(random->Below(slices->size())));
  const auto key = [&]() -> std::string {
    const absl::StatusOr<internal::TensorSlice> parsed = internal::TensorSlice::FromProto(slice);
    return parsed.ok() ? internal::EncodeSliceKey(name, *parsed) : "";
  };
  const auto record = entries->find(key());
  if (record == entries->end() || slice.extent().empty()) return;
  const std::string value = record->second;
  TensorSliceProto::Extent& extent =
      *slice.mutable_extent(static_cast<int>(random->Below(slice.extent_size())));
  extent.set_start(random->Below(8));
  if (random->OneIn(2)) entries->erase(record);
  (*entries)[key()] = value;
}

// Mutates a key, or a value by `mutate_value(key, value)`, or removes or repeats an entry.
template <typename F>
void MutateEntries(MutationRandom* random, internal::TableEntries* entries, F mutate_value) {
  if (entries->empty()) return;
  const auto entry = std::next(entries->begin(), random->Below(entries->size()));
  std::string key = entry->first;
  switch (random->Below(8)) {
    case 0:
      entries->erase(entry);
      break;
    case 1:
      MutateBytes(random, &key);
      (*entries)[key] = entry->second;
      break;
    default:
      mutate_value(key, &entry->second);
  }
}

}  // namespace

// ---- Checkpoints ----

void RunCheckpoint(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  constexpr size_t kLengthBytes = 4;
  if (bytes.size() < kLengthBytes) return;
  size_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[i]);
  bytes.remove_prefix(kLengthBytes);
  length = std::min(length, bytes.size());
  const Folder folder;
  const std::string prefix = folder.File("c");
  WriteFile(internal::IndexFile(prefix), std::string(bytes.substr(0, length)));
  WriteFile(internal::DataFile(prefix, 0, 1), std::string(bytes.substr(length)));
  const auto allocator = std::make_shared<LimitedAllocator>();
  std::vector<CheckpointTensor> tensors;
  {
    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(prefix, allocator);
    if (!checkpoint.ok()) ExpectErrorOfFiles(checkpoint.status());
    if (!checkpoint.ok()) return;
    std::vector<std::string> names = checkpoint->Names();
    names.resize(std::min(names.size(), kMaxTensors));
    for (const std::string& name : names) {
      const absl::StatusOr<Tensor> tensor = checkpoint->Read(name, {}, allocator);
      if (!tensor.ok()) {
        ExpectErrorOfFiles(tensor.status());
        continue;
      }
      ExpectTiled(bytes.substr(0, length), name);
      const absl::StatusOr<Checkpoint::Info> info = checkpoint->Find(name);
      ASSERT_TRUE(info.ok()) << info.status();
      EXPECT_EQ(info->dtype, tensor->dtype());
      EXPECT_EQ(info->shape, tensor->shape());
      if (HasRows(tensor->shape())) {
        const absl::StatusOr<Tensor> row =
            checkpoint->Read(name, FirstRow(tensor->shape()), allocator);
        // If a tensor can be read, each of its slices can be read, but a slice may need more
        // memory.
        if (row.ok()) {
          ExpectSame(*row, tensor->Slice(0, 1));
        } else {
          EXPECT_TRUE(absl::IsResourceExhausted(row.status())) << row.status();
        }
      }
      tensors.push_back({name, *tensor, ""});
    }
    // Tensors that were read can be written and read again.
    const std::string copy = folder.File("copy");
    const absl::Status written = WriteCheckpoint(copy, tensors);
    ASSERT_TRUE(written.ok()) << written;
    const absl::StatusOr<Checkpoint> again = Checkpoint::Open(copy);
    ASSERT_TRUE(again.ok()) << again.status();
    for (const CheckpointTensor& tensor : tensors) {
      const absl::StatusOr<Tensor> value = again->Read(tensor.name);
      ASSERT_TRUE(value.ok()) << value.status();
      ExpectSame(*value, tensor.tensor);
    }
  }
  tensors.clear();
  EXPECT_EQ(allocator->used(), 0);
}

// Mutates entries of the index or bytes of the data, mostly correcting checksums.
bool MutateCheckpoint(MutationRandom* random, std::string* bytes) {
  const google::protobuf::LogSilencer silencer;
  constexpr size_t kLengthBytes = 4;
  if (bytes->size() < kLengthBytes) return false;
  size_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<uint8_t>((*bytes)[i]);
  if (length > bytes->size() - kLengthBytes) return false;
  std::string index = bytes->substr(kLengthBytes, length);
  std::string data = bytes->substr(kLengthBytes + length);
  absl::StatusOr<internal::TableEntries> entries = ParseTable(index);
  if (!entries.ok()) return false;
  if (random->OneIn(4)) {
    MutateBytes(random, &data);
  } else {
    MutateEntries(random, &*entries, [&](const std::string& key, std::string* value) {
      if (key.empty()) return MutateValue<BundleHeaderProto>(random, value);
      BundleEntryProto entry;
      if (random->OneIn(2) || !entry.ParseFromString(*value) || entry.slices().empty()) {
        return MutateValue<BundleEntryProto>(random, value);
      }
      MoveASlice(random, key, entry.mutable_slices(), &*entries);
      *value = entry.SerializePartialAsString();
    });
  }
  for (auto& [key, value] : *entries) {
    BundleEntryProto entry;
    if (key.empty() || random->OneIn(8) || !entry.ParseFromString(value)) continue;
    const auto size = static_cast<int64_t>(data.size());
    // Strings have another format.
    if (entry.dtype() == DT_STRING || entry.offset() < 0 || entry.size() < 0 ||
        entry.offset() > size || entry.size() > size - entry.offset()) {
      continue;
    }
    const absl::string_view part = absl::string_view(data).substr(entry.offset(), entry.size());
    entry.set_crc32c(internal::MaskCrc(internal::ExtendCrc32c(0, part)));
    value = entry.SerializePartialAsString();
  }
  index = internal::WriteTable(*entries);
  if (random->OneIn(8)) MutateBlock(random, &index);
  bytes->clear();
  internal::AppendFixed(index.size(), kLengthBytes, bytes);
  absl::StrAppend(bytes, index, data);
  return true;
}

void RunOldCheckpoint(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  const Folder folder;
  const std::string path = folder.File("c");
  WriteFile(path, std::string(bytes));
  const auto allocator = std::make_shared<LimitedAllocator>();
  std::vector<CheckpointTensor> tensors;
  const auto listed = ListOldCheckpoint(path, allocator);
  if (!listed.ok()) ExpectErrorOfFiles(listed.status());
  if (!listed.ok()) return;
  size_t reads = 0;
  for (const auto& [name, info] : *listed) {
    if (++reads > kMaxTensors) break;
    const absl::StatusOr<Tensor> tensor = ReadOldCheckpoint(path, name, {}, allocator);
    if (!tensor.ok()) {
      ExpectErrorOfFiles(tensor.status());
      continue;
    }
    EXPECT_EQ(info.dtype, tensor->dtype());
    EXPECT_EQ(info.shape, tensor->shape());
    if (!name.empty()) tensors.push_back({name, *tensor, ""});
  }
  const std::string copy = folder.File("copy");
  const absl::Status written = WriteOldCheckpoint(copy, tensors);
  ASSERT_TRUE(written.ok()) << written;
  for (const CheckpointTensor& tensor : tensors) {
    const absl::StatusOr<Tensor> again = ReadOldCheckpoint(copy, tensor.name);
    ASSERT_TRUE(again.ok()) << again.status();
    ExpectSame(*again, tensor.tensor);
  }
  tensors.clear();
  EXPECT_EQ(allocator->used(), 0);
}

bool MutateOldCheckpoint(MutationRandom* random, std::string* bytes) {
  const google::protobuf::LogSilencer silencer;
  absl::StatusOr<internal::TableEntries> entries = ParseTable(*bytes);
  if (!entries.ok()) return false;
  MutateEntries(random, &*entries, [&](const std::string&, std::string* value) {
    SavedTensorSlices contents;
    if (random->OneIn(2) || !contents.ParseFromString(*value) || contents.meta().tensor().empty()) {
      return MutateValue<SavedTensorSlices>(random, value);
    }
    auto& tensors = *contents.mutable_meta()->mutable_tensor();
    SavedSliceMeta& tensor = tensors[static_cast<int>(random->Below(tensors.size()))];
    MoveASlice(random, tensor.name(), tensor.mutable_slice(), &*entries);
    *value = contents.SerializePartialAsString();
  });
  *bytes = internal::WriteTable(*entries);
  if (random->OneIn(8)) MutateBlock(random, bytes);
  return true;
}

// ---- Arrays and images ----

void RunIdx(absl::string_view bytes) {
  const Folder folder;
  const std::string path = folder.File("x");
  WriteFile(path, std::string(bytes));
  const absl::StatusOr<Tensor> tensor = ReadIdx(path);
  if (!tensor.ok()) return ExpectErrorOfFiles(tensor.status());
  EXPECT_EQ(tensor->tensor_data().size(),
            tensor->NumElements() * static_cast<int64_t>(DataTypeSize(tensor->dtype())));
  EXPECT_FALSE(tensor->DebugString().empty());
}

// Mutates the type, the rank or a dimension of a plain file.
bool MutateIdx(MutationRandom* random, std::string* bytes) {
  constexpr size_t kHeaderBytes = 4;
  if (bytes->size() < kHeaderBytes || (*bytes)[0] != 0 || random->OneIn(4)) return false;
  const size_t dims = std::min<size_t>(static_cast<uint8_t>((*bytes)[3]), 8);
  const size_t header = std::min(bytes->size(), kHeaderBytes + 4 * dims);
  (*bytes)[random->Below(header)] = static_cast<char>(random->BoundaryInteger());
  return true;
}

void RunImage(absl::string_view bytes) {
  const internal::ImageFormat format = internal::ImageFormatOf(bytes);
  for (const int channels : {0, 1, 3}) {
    const HeapMeter meter;
    // The largest charge so far, and the decoded image.
    int64_t charged = 0;
    std::vector<char> image;
    const auto charge = [&](int64_t bytes) {
      EXPECT_GE(bytes, 0);
      charged = std::max(charged, bytes);
      return bytes <= static_cast<int64_t>(kMaxMemory)
                 ? absl::OkStatus()
                 : absl::ResourceExhaustedError("the image is large");
    };
    const auto allocate = [&](const internal::ImageSize& size) -> absl::StatusOr<void*> {
      // Elements have two bytes at most.
      const double count = 2.0 * static_cast<double>(size.frames) * static_cast<double>(size.rows) *
                           static_cast<double>(size.columns) * static_cast<double>(size.channels);
      EXPECT_GE(count, 0);
      if (count > kMaxMemory) return absl::ResourceExhaustedError("the image is large");
      image.assign(static_cast<size_t>(count), 1);
      return image.data();
    };
    const internal::ImageMemory memory = {charge, allocate};
    absl::Status status;
    switch (format) {
      case internal::ImageFormat::kPng:
        status = internal::DecodePng(bytes, channels, channels == 1 ? 16 : 8, memory);
        break;
      case internal::ImageFormat::kJpeg: {
        internal::JpegOptions options;
        options.channels = channels;
        options.recover_truncated = channels == 1;
        status = internal::DecodeJpeg(bytes, options, memory);
        break;
      }
      case internal::ImageFormat::kGif:
        status = internal::DecodeGif(bytes, channels == 3, memory);
        break;
      case internal::ImageFormat::kBmp:
        if (channels != 1) status = internal::DecodeBmp(bytes, channels, memory);
        break;
      case internal::ImageFormat::kWebP:
        if (channels != 1) status = internal::DecodeWebP(bytes, channels, true, memory);
        break;
      case internal::ImageFormat::kUnknown:
        return;
    }
    if (!status.ok()) ExpectErrorOfFiles(status);
    // Decoders read the size of an image before they charge memory.
    constexpr int64_t kUncharged = 4096;
    EXPECT_LE(meter.peak(), std::max(charged, internal::kDecoderBytes) + kUncharged +
                                static_cast<int64_t>(image.capacity()));
  }
}

namespace {

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

// Mutates a chunk of a PNG, and corrects its length and its checksum.
bool MutateImage(MutationRandom* random, std::string* bytes) {
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kWordBytes = 4;
  if (internal::ImageFormatOf(*bytes) != internal::ImageFormat::kPng || random->OneIn(4)) {
    return false;
  }
  // The types and contents of the chunks.
  std::vector<std::string> chunks;
  size_t at = kSignatureBytes;
  while (at < bytes->size() && bytes->size() - at >= 3 * kWordBytes) {
    const size_t length = BigEndian(absl::string_view(*bytes).substr(at, kWordBytes));
    if (length > bytes->size() - at - 3 * kWordBytes) break;
    chunks.push_back(bytes->substr(at + kWordBytes, kWordBytes + length));
    at += 3 * kWordBytes + length;
  }
  if (chunks.empty()) return false;
  std::string& chunk = chunks[random->Below(chunks.size())];
  const std::string type = chunk.substr(0, kWordBytes);
  MutateBytes(random, &chunk);
  if (chunk.size() < kWordBytes || !random->OneIn(8)) {
    chunk.resize(std::max(chunk.size(), kWordBytes));
    chunk.replace(0, kWordBytes, type);
  }
  bytes->resize(kSignatureBytes);
  for (const std::string& c : chunks) {
    absl::StrAppend(bytes, PngChunk(c.substr(0, kWordBytes), c.substr(kWordBytes)));
  }
  return true;
}

}  // namespace gradflow::testing
