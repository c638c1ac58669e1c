#include "gradflow/io/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/checkpoint_files.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_pattern.h"
#include "gradflow/io/file_reservation.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/tensor_bundle.pb.h"

namespace gradflow {
namespace {

using internal::DataFile;
using internal::FileReservation;
using internal::IndexFile;
using internal::IsStored;
using internal::kParsedBytes;
using internal::TableEntries;
using internal::TensorSlice;

// The version of TensorFlow's format.
constexpr int kVersion = 1;
// A larger index is not read.
constexpr int64_t kMaxIndexBytes = int64_t{1} << 30;

absl::Status AtFile(const std::string& path, const absl::Status& status) {
  return errors::Prefix(absl::StrCat("'", absl::CEscape(path.substr(0, 500)), "': "), status);
}
absl::Status DataLoss(absl::string_view text) { return absl::DataLossError(text); }

std::string Quoted(absl::string_view name) {
  return absl::StrCat("'", absl::CEscape(name.substr(0, 200)), "'");
}

// ---- Strings: the lengths, their checksum, the characters ----

std::string FixedCrc(uint32_t masked) {
  std::string bytes;
  internal::AppendFixed(masked, 4, &bytes);
  return bytes;
}

// Extends a checksum by the length of a string.
uint32_t ExtendByLength(uint32_t crc, uint64_t length) {
  std::string bytes;
  internal::AppendFixed(length, length > UINT32_MAX ? 8 : 4, &bytes);
  return internal::ExtendCrc32c(crc, bytes);
}

// Returns the lengths and their checksum, and extends *crc by them.
std::string EncodeLengths(const Tensor& tensor, uint32_t* crc) {
  std::string text;
  for (const tstring& s : tensor.span<tstring>()) {
    internal::AppendVarint(s.size(), &text);
    *crc = ExtendByLength(*crc, s.size());
  }
  const std::string checksum = FixedCrc(internal::MaskCrc(*crc));
  *crc = internal::ExtendCrc32c(*crc, checksum);
  return text + checksum;
}

// Adds the name of a tensor to an error.
absl::Status AtTensor(absl::string_view name, const absl::Status& status) {
  return errors::Prefix(absl::StrCat("tensor ", Quoted(name), ": "), status);
}

// ---- Writing ----

class Writer {
 public:
  explicit Writer(Allocator* allocator) : reservation_(allocator) {}

  absl::Status Add(const CheckpointTensor& tensor) {
    if (tensor.name.empty()) return errors::InvalidArgument("the name of a tensor is empty");
    // Covers the entries of the tensor and of a slice, their bytes in the table, and the index.
    constexpr size_t kEntryBytes = 1024;
    GRADFLOW_RETURN_IF_ERROR(
        reservation_.Add(kEntryBytes + 8 * (tensor.name.size() + tensor.shape_and_slice.size()) +
                         256 * static_cast<size_t>(tensor.tensor.dims())));
    if (tensor.shape_and_slice.empty()) return AddEntry(tensor.name, tensor.tensor);
    GRADFLOW_ASSIGN_OR_RETURN(const internal::ShapeAndSlice part,
                              internal::ParseShapeAndSlice(tensor.shape_and_slice));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, part.slice.Resolve(part.shape));
    if (resolved.Shape() != tensor.tensor.shape()) {
      return errors::InvalidArgument("tensor ", Quoted(tensor.name), " has shape ",
                                     tensor.tensor.shape().DebugString(), ", but its slice has ",
                                     resolved.Shape().DebugString());
    }
    if (resolved.IsFull(part.shape)) return AddEntry(tensor.name, tensor.tensor);
    BundleEntryProto& whole = entries_[tensor.name];
    TensorShapeProto shape;
    part.shape.AsProto(&shape);
    if (whole.dtype() == DT_INVALID) {
      whole.set_dtype(tensor.tensor.dtype());
      *whole.mutable_shape() = shape;
    } else if (whole.slices().empty()) {
      return errors::InvalidArgument("tensor ", Quoted(tensor.name),
                                     " is given whole and in slices");
    } else if (whole.dtype() != tensor.tensor.dtype() ||
               whole.shape().SerializeAsString() != shape.SerializeAsString()) {
      return errors::InvalidArgument("the slices of tensor ", Quoted(tensor.name),
                                     " differ in type or shape");
    }
    part.slice.ToProto(whole.add_slices());
    slices_[tensor.name].push_back(resolved);
    return AddEntry(internal::EncodeSliceKey(tensor.name, part.slice), tensor.tensor);
  }

  // Checks that no slices of a tensor overlap. Other checkpoints may have the rest of the tensor.
  absl::Status CheckSlices() const {
    for (const auto& [name, slices] : slices_) {
      GRADFLOW_RETURN_IF_ERROR(AtTensor(name, internal::CheckDisjoint(slices)));
    }
    return absl::OkStatus();
  }

  absl::Status Write(const std::string& prefix, const FileAccess& files) {
    GRADFLOW_RETURN_IF_ERROR(CheckSlices());
    const std::string data_path = DataFile(prefix, 0, 1);
    GRADFLOW_RETURN_IF_ERROR(AtFile(data_path, internal::MakeFolders(data_path, files)));
    absl::StatusOr<internal::StagedFile> data =
        internal::StagedFile::Write(data_path, parts_, /*sync=*/false, files);
    if (!data.ok()) return AtFile(data_path, data.status());
    BundleHeaderProto header;
    header.set_num_shards(1);
    header.set_endianness(BundleHeaderProto::LITTLE);
    header.mutable_version()->set_producer(kVersion);
    TableEntries table = {{"", header.SerializeAsString()}};
    for (const auto& [name, entry] : entries_) table.emplace(name, entry.SerializeAsString());
    const std::string index = internal::WriteTable(table);
    const std::string index_path = IndexFile(prefix);
    absl::StatusOr<internal::StagedFile> staged =
        internal::StagedFile::Write(index_path, {index}, /*sync=*/false, files);
    if (!staged.ok()) return AtFile(index_path, staged.status());
    if (const absl::Status status = data->Commit(); !status.ok()) return AtFile(data_path, status);
    const absl::Status status = staged->Commit();
    return status.ok() ? status : AtFile(index_path, status);
  }

 private:
  absl::Status AddEntry(const std::string& key, const Tensor& tensor) {
    if (!IsStored(tensor.dtype())) {
      return errors::Unimplemented("tensor ", Quoted(key), " has type ",
                                   DataTypeString(tensor.dtype()),
                                   ", which checkpoints do not store");
    }
    BundleEntryProto& entry = entries_[key];
    if (entry.dtype() != DT_INVALID) {
      return errors::InvalidArgument("tensor ", Quoted(key), " is given twice");
    }
    uint32_t crc = 0;
    const int64_t begin = offset_;
    if (tensor.dtype() == DT_STRING) {
      // Covers the encoded length of each string and its element of parts_, in vectors that grow.
      constexpr size_t kStringBytes = 64;
      GRADFLOW_RETURN_IF_ERROR(
          reservation_.Add(kStringBytes * static_cast<size_t>(tensor.NumElements())));
      texts_.push_back(std::make_unique<std::string>(EncodeLengths(tensor, &crc)));
      AddPart(*texts_.back());
      for (const tstring& s : tensor.span<tstring>()) {
        crc = internal::ExtendCrc32c(crc, s);
        AddPart(s);
      }
    } else {
      crc = internal::ExtendCrc32c(crc, tensor.tensor_data());
      AddPart(tensor.tensor_data());
    }
    tensors_.push_back(tensor);
    entry.set_dtype(tensor.dtype());
    tensor.shape().AsProto(entry.mutable_shape());
    entry.set_offset(begin);
    entry.set_size(offset_ - begin);
    entry.set_crc32c(internal::MaskCrc(crc));
    return absl::OkStatus();
  }
  void AddPart(absl::string_view part) {
    parts_.push_back(part);
    offset_ += static_cast<int64_t>(part.size());
  }

  std::map<std::string, BundleEntryProto> entries_;
  // The resolved slices, keyed by the name of the tensor. A resolved slice has a length for each
  // dimension.
  std::map<std::string, std::vector<TensorSlice>> slices_;
  // The data file, and the owners of its bytes.
  std::vector<absl::string_view> parts_;
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<std::string>> texts_;
  int64_t offset_ = 0;
  // Charges the memory of all members above and of the index.
  FileReservation reservation_;
};

// ---- Reading the index ----

struct Index {
  BundleHeaderProto header;
  std::map<std::string, BundleEntryProto, std::less<>> entries;
};

absl::StatusOr<Index> ParseIndex(absl::string_view bytes, FileReservation* reservation,
                                 StopToken* stop) {
  GRADFLOW_ASSIGN_OR_RETURN(TableEntries table,
                            internal::ReadTable(bytes, kMaxIndexBytes, reservation, stop));
  Index index;
  const auto header = table.find("");
  if (header == table.end()) return DataLoss("the index has no header");
  GRADFLOW_RETURN_IF_ERROR(reservation->Add(kParsedBytes * header->second.size()));
  if (!index.header.ParseFromString(header->second)) {
    return DataLoss("the header of the index is not valid");
  }
  if (index.header.endianness() != BundleHeaderProto::LITTLE) {
    return absl::UnimplementedError("checkpoints of big-endian machines are not supported");
  }
  if (index.header.num_shards() < 1) {
    return DataLoss(absl::StrCat("the index states ", index.header.num_shards(),
                                 " data files, expected 1 or more"));
  }
  if (index.header.version().min_consumer() > kVersion) {
    return absl::UnimplementedError(absl::StrCat("the checkpoint needs a reader of version ",
                                                 index.header.version().min_consumer(),
                                                 ", this is version ", kVersion));
  }
  table.erase(header);
  while (!table.empty()) {
    GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
    const TableEntries::iterator first = table.begin();
    const std::string& value = first->second;
    const size_t most = kParsedBytes * value.size();
    GRADFLOW_RETURN_IF_ERROR(reservation->Add(most));
    BundleEntryProto entry;
    if (!entry.ParseFromString(value)) {
      return DataLoss(absl::StrCat("the entry of ", Quoted(first->first), " is not valid"));
    }
    // The parsed entry replaces the serialized entry of the table.
    const size_t size = internal::TableEntryBytes(first->first, {}) + entry.SpaceUsedLong();
    GRADFLOW_RETURN_IF_ERROR(reservation->Add(size));
    reservation->Remove(most + internal::TableEntryBytes(first->first, value));
    index.entries.emplace_hint(index.entries.end(), first->first, std::move(entry));
    table.erase(first);
  }
  return index;
}

// Returns DATA_LOSS unless the number of the entry's data file is below the number of data files.
absl::Status CheckShard(const BundleHeaderProto& header, const BundleEntryProto& entry) {
  if (entry.shard_id() >= 0 && entry.shard_id() < header.num_shards()) return absl::OkStatus();
  return DataLoss(absl::StrCat("the index refers to data file ", entry.shard_id(), " of ",
                               header.num_shards()));
}

absl::StatusOr<Index> ReadIndex(const std::string& prefix, FileReservation* reservation,
                                const FileAccess& files, StopToken* stop) {
  const std::string path = IndexFile(prefix);
  const auto read = [&]() -> absl::StatusOr<Index> {
    size_t size = 0;
    GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file,
                              internal::OpenFile(path, &size, files));
    if (static_cast<int64_t>(size) > kMaxIndexBytes) {
      return errors::ResourceExhausted("the index has ", size, " bytes, expected at most ",
                                       kMaxIndexBytes);
    }
    GRADFLOW_RETURN_IF_ERROR(reservation->Add(size));
    std::string bytes(size, '\0');
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, bytes.data(), size));
    absl::StatusOr<Index> index = ParseIndex(bytes, reservation, stop);
    reservation->Remove(size);
    return index;
  };
  absl::StatusOr<Index> index = read();
  if (absl::IsCancelled(index.status())) return index.status();
  if (!index.ok()) return AtFile(path, index.status());
  reservation->Trim();
  return index;
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& prefix, absl::Span<const CheckpointTensor> tensors,
                             const std::shared_ptr<Allocator>& allocator, const FileAccess& files) {
  Writer writer(allocator.get());
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tensors[a].name < tensors[b].name; });
  for (const size_t i : order) GRADFLOW_RETURN_IF_ERROR(writer.Add(tensors[i]));
  return writer.Write(prefix, files);
}

namespace {

// The data files that a merge renames.
class Renames {
 public:
  explicit Renames(const FileAccess& files) : files_(files) {}

  void Add(std::string from, std::string to) {
    renames_.emplace_back(std::move(from), std::move(to));
  }
  // Checks that the sources exist, that sources and targets may be written, that no target is the
  // source of another rename, and that no source is a link to its target.
  absl::Status Check() const {
    for (const auto& [from, to] : renames_) {
      for (const std::string& path : {from, to}) {
        GRADFLOW_RETURN_IF_ERROR(AtFile(path, files_.Check(path, FileAccess::Use::kWrite)));
      }
    }
    // Compares device and inode instead of paths, because a file may have several paths.
    std::map<FileId, const std::string*> sources;
    for (const auto& [from, to] : renames_) {
      FileId id;
      if (!GetId(from, &id)) return AtFile(from, absl::ErrnoToStatus(errno, "cannot rename"));
      sources.emplace(id, &from);
    }
    for (const auto& [from, to] : renames_) {
      FileId id;
      if (!GetId(to, &id)) continue;
      const auto source = sources.find(id);
      if (source == sources.end()) continue;
      if (*source->second == from) {
        std::error_code error;
        if (from == to || !std::filesystem::is_symlink(from, error)) continue;
        return errors::InvalidArgument("data file ", Quoted(from), " must be renamed to ",
                                       Quoted(to), ", but is a link to it");
      }
      return errors::InvalidArgument("data file ", Quoted(from), " must be renamed to ", Quoted(to),
                                     ", which is another data file of this merge");
    }
    return absl::OkStatus();
  }
  // If a file cannot be renamed, restores the old names of the renamed files.
  absl::Status Apply() {
    for (; done_ < renames_.size(); ++done_) {
      const auto& [from, to] = renames_[done_];
      const absl::Status status = internal::RenameFile(from, to, files_);
      if (status.ok()) continue;
      Undo();
      return AtFile(from, status);
    }
    return absl::OkStatus();
  }
  void Undo() {
    while (done_ > 0) {
      --done_;
      const auto& [from, to] = renames_[done_];
      internal::RenameFile(to, from, files_).IgnoreError();
    }
  }

 private:
  // The device and the inode number of a file.
  using FileId = std::pair<dev_t, ino_t>;
  // Returns false, with errno set, if there is no file.
  static bool GetId(const std::string& path, FileId* id) {
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return false;
    *id = {info.st_dev, info.st_ino};
    return true;
  }

  const FileAccess& files_;
  // The old and the new path of each file.
  std::vector<std::pair<std::string, std::string>> renames_;
  size_t done_ = 0;
};

// Checks that the index has the slices of a tensor and that they do not overlap. With `cover`, also
// checks that they have all elements of the tensor.
absl::Status CheckMergedTensor(const Index& index, absl::string_view name,
                               const BundleEntryProto& entry, bool cover, Allocator* allocator) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(entry.shape()));
  FileReservation reservation(allocator);
  std::vector<TensorSlice> slices;
  for (const TensorSliceProto& proto : entry.slices()) {
    GRADFLOW_RETURN_IF_ERROR(reservation.Add(internal::TensorSliceBytes(shape.dims())));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::FromProto(proto));
    GRADFLOW_ASSIGN_OR_RETURN(slices.emplace_back(), slice.Resolve(shape));
    if (index.entries.count(internal::EncodeSliceKey(name, slice)) != 0) continue;
    return errors::InvalidArgument("slice '", slice.DebugString(), "' is missing");
  }
  if (!cover) return internal::CheckDisjoint(slices);
  GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice whole,
                            TensorSlice::Full(shape.dims()).Resolve(shape));
  return internal::CheckTiling(slices, whole);
}

}  // namespace

absl::Status MergeCheckpoints(absl::Span<const std::string> prefixes, const std::string& prefix,
                              const MergeCheckpointsOptions& options,
                              const std::shared_ptr<Allocator>& allocator,
                              const FileAccess& files) {
  FileReservation reservation(allocator.get());
  Index merged;
  // The new number of each data file, keyed by path.
  std::map<std::string, int> numbers;
  std::vector<std::string> merged_prefixes;
  for (const std::string& from : prefixes) {
    absl::StatusOr<Index> index = ReadIndex(from, &reservation, files, /*stop=*/nullptr);
    if (options.allow_missing_files && absl::IsNotFound(index.status())) continue;
    if (!index.ok()) return index.status();
    if (merged_prefixes.empty()) {
      merged.header = index->header;
    } else if (merged.header.version().SerializeAsString() !=
               index->header.version().SerializeAsString()) {
      return errors::InvalidArgument("checkpoints ", Quoted(merged_prefixes[0]), " and ",
                                     Quoted(from), " have different versions");
    }
    merged_prefixes.push_back(from);
    for (auto& [key, entry] : index->entries) {
      const auto found = merged.entries.find(key);
      if (found != merged.entries.end()) {
        BundleEntryProto& existing = found->second;
        if (existing.slices().empty() || entry.slices().empty() ||
            existing.dtype() != entry.dtype() ||
            existing.shape().SerializeAsString() != entry.shape().SerializeAsString()) {
          return errors::InvalidArgument("tensor ", Quoted(key), " is in several checkpoints");
        }
        existing.mutable_slices()->MergeFrom(entry.slices());
        continue;
      }
      if (entry.slices().empty()) {
        if (const absl::Status status = CheckShard(index->header, entry); !status.ok()) {
          return AtFile(IndexFile(from), status);
        }
        std::string data = DataFile(from, entry.shard_id(), index->header.num_shards());
        GRADFLOW_RETURN_IF_ERROR(reservation.Add(4 * data.size()));
        entry.set_shard_id(
            numbers.emplace(std::move(data), static_cast<int>(numbers.size())).first->second);
      }
      merged.entries.emplace(key, std::move(entry));
    }
  }
  if (merged_prefixes.empty()) {
    return errors::InvalidArgument("none of the ", prefixes.size(), " checkpoints exists");
  }
  // A missing checkpoint may have held the other slices of a tensor.
  const bool is_complete = merged_prefixes.size() == prefixes.size();
  for (const auto& [name, entry] : merged.entries) {
    if (entry.slices().empty()) continue;
    GRADFLOW_RETURN_IF_ERROR(
        AtTensor(name, CheckMergedTensor(merged, name, entry, is_complete, allocator.get())));
  }
  const std::string index_path = IndexFile(prefix);
  GRADFLOW_RETURN_IF_ERROR(AtFile(index_path, internal::MakeFolders(index_path, files)));
  const int total = static_cast<int>(numbers.size());
  Renames renames(files);
  for (const auto& [path, number] : numbers) renames.Add(path, DataFile(prefix, number, total));
  GRADFLOW_RETURN_IF_ERROR(renames.Check());
  merged.header.set_num_shards(std::max(total, 1));
  TableEntries table = {{"", merged.header.SerializeAsString()}};
  for (const auto& [key, entry] : merged.entries) {
    std::string value = entry.SerializeAsString();
    GRADFLOW_RETURN_IF_ERROR(reservation.Add(3 * internal::TableEntryBytes(key, value)));
    table.emplace(key, std::move(value));
  }
  const std::string bytes = internal::WriteTable(table);
  absl::StatusOr<internal::StagedFile> staged =
      internal::StagedFile::Write(index_path, {bytes}, /*sync=*/false, files);
  if (!staged.ok()) return AtFile(index_path, staged.status());
  GRADFLOW_RETURN_IF_ERROR(renames.Apply());
  if (const absl::Status status = staged->Commit(); !status.ok()) {
    renames.Undo();
    return AtFile(index_path, status);
  }
  for (const std::string& from : merged_prefixes) {
    const std::string old_index = IndexFile(from);
    std::error_code error;
    if (!std::filesystem::equivalent(old_index, index_path, error)) {
      internal::RemoveFile(old_index, files).IgnoreError();
    }
    const std::filesystem::path old = std::filesystem::path(from).parent_path();
    // Fails for folders that are not empty, such as the folder of the new index.
    if (options.delete_old_dirs && !old.empty()) {
      internal::RemoveFolder(old.string(), files).IgnoreError();
    }
  }
  return absl::OkStatus();
}

// ---- Checkpoint ----

struct Checkpoint::Impl {
  Impl(const std::shared_ptr<Allocator>& index_allocator, const FileAccess& file_access)
      : allocator(index_allocator), reservation(allocator.get()), files(file_access) {}

  // The allocator for a tensor that is read, and the token that stops the read.
  struct Target {
    const std::shared_ptr<Allocator>& allocator;
    StopToken* stop;

    absl::Status CheckStop() const { return gradflow::CheckStop(stop); }
  };

  // An open data file.
  struct Shard {
    internal::FileDescriptor file;
    size_t size = 0;
  };

  const std::shared_ptr<Allocator> allocator;
  // Charges the memory of the index.
  FileReservation reservation;
  const FileAccess files;
  std::string prefix;
  Index index;
  mutable Mutex mutex;
  mutable std::map<int, Shard> shards ABSL_GUARDED_BY(mutex);

  std::string DataPath(const BundleEntryProto& entry) const {
    return DataFile(prefix, entry.shard_id(), index.header.num_shards());
  }

  absl::StatusOr<const Shard*> Open(const BundleEntryProto& entry) const {
    GRADFLOW_RETURN_IF_ERROR(CheckShard(index.header, entry));
    MutexLock lock(&mutex);
    const auto [it, is_new] = shards.try_emplace(entry.shard_id());
    if (!is_new) return &it->second;
    absl::StatusOr<internal::FileDescriptor> file =
        internal::OpenFile(DataPath(entry), &it->second.size, files);
    if (!file.ok()) {
      shards.erase(it);
      return file.status();
    }
    it->second.file = *std::move(file);
    return &it->second;
  }

  absl::Status AtEntry(absl::string_view key, const BundleEntryProto& entry,
                       const absl::Status& status) const {
    if (status.ok() || absl::IsCancelled(status)) return status;
    return AtFile(DataPath(entry), AtTensor(key, status));
  }

  // Returns UNIMPLEMENTED unless checkpoints store elements of the entry's type.
  static absl::Status CheckType(const BundleEntryProto& entry) {
    if (IsStored(entry.dtype())) return absl::OkStatus();
    return errors::Unimplemented("type ", DataTypeString(entry.dtype()), " is not supported");
  }

  // For an entry without slices. Returns DATA_LOSS unless its bytes are within its file and match
  // its type and shape. Sets *shard to the file, and *shape to the shape.
  absl::Status CheckEntry(const BundleEntryProto& entry, const Shard** shard,
                          TensorShape* shape) const {
    GRADFLOW_ASSIGN_OR_RETURN(*shard, Open(entry));
    GRADFLOW_ASSIGN_OR_RETURN(*shape, TensorShape::Make(entry.shape()));
    GRADFLOW_RETURN_IF_ERROR(CheckType(entry));
    const auto file_size = static_cast<int64_t>((*shard)->size);
    if (entry.offset() < 0 || entry.size() < 0 || entry.offset() > file_size ||
        entry.size() > file_size - entry.offset()) {
      return DataLoss(absl::StrCat("bytes [", entry.offset(), ", ", entry.offset(), " + ",
                                   entry.size(), ") are not in the file of ", file_size, " bytes"));
    }
    const int64_t count = shape->num_elements();
    if (entry.dtype() == DT_STRING) {
      // Each length takes at least a byte; the checksum follows.
      if (count > entry.size() || entry.size() - count < (count > 0 ? 4 : 0)) {
        return DataLoss(absl::StrCat("there are ", entry.size(), " bytes for ", count, " strings"));
      }
      return absl::OkStatus();
    }
    const int64_t bytes = MultiplyWithoutOverflow(count, DataTypeSize(entry.dtype()));
    if (bytes != entry.size()) {
      return DataLoss(absl::StrCat("there are ", entry.size(), " bytes, expected ", bytes,
                                   " for shape ", shape->DebugString()));
    }
    return absl::OkStatus();
  }

  // Reads an entry without slices.
  absl::StatusOr<Tensor> ReadEntry(absl::string_view key, const BundleEntryProto& entry,
                                   const Target& target) const {
    absl::StatusOr<Tensor> tensor = ReadElements(entry, target);
    if (tensor.ok()) return tensor;
    return AtEntry(key, entry, tensor.status());
  }

  absl::StatusOr<Tensor> ReadElements(const BundleEntryProto& entry, const Target& target) const {
    const Shard* shard = nullptr;
    TensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(CheckEntry(entry, &shard, &shape));
    const int64_t count = shape.num_elements();
    const int fd = shard->file.get();
    if (entry.dtype() == DT_STRING) return ReadStrings(entry, shape, fd, target);
    const int64_t bytes = entry.size();
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor,
                              Tensor::Allocate(target.allocator, entry.dtype(), shape));
    // Reads in parts, so that a part is still in the cache when its checksum is computed.
    constexpr int64_t kPartBytes = 256 << 10;
    char* to = static_cast<char*>(tensor.raw_data());
    uint32_t crc = 0;
    for (int64_t at = 0; at < bytes; at += kPartBytes) {
      GRADFLOW_RETURN_IF_ERROR(target.CheckStop());
      const size_t part = std::min(kPartBytes, bytes - at);
      GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(fd, entry.offset() + at, to + at, part));
      crc = internal::ExtendCrc32c(crc, {to + at, part});
    }
    GRADFLOW_RETURN_IF_ERROR(CheckCrc(entry, crc));
    if (entry.dtype() == DT_BOOL) {
      // Maps all bytes other than 0 to 1, because another value in a bool is undefined behavior.
      for (int64_t i = 0; i < count; ++i) to[i] = to[i] != 0 ? 1 : 0;
    }
    return tensor;
  }

  static absl::Status CheckCrc(const BundleEntryProto& entry, uint32_t crc) {
    if (internal::MaskCrc(crc) == entry.crc32c()) return absl::OkStatus();
    return DataLoss(absl::StrFormat("the checksum is %08x, expected %08x", crc,
                                    internal::UnmaskCrc(entry.crc32c())));
  }

  static absl::StatusOr<Tensor> ReadStrings(const BundleEntryProto& entry, const TensorShape& shape,
                                            int fd, const Target& target) {
    const int64_t count = shape.num_elements();
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(target.allocator, DT_STRING, shape));
    GRADFLOW_RETURN_IF_ERROR(tensor.ChargeStrings(static_cast<size_t>(entry.size())));
    // Covers `bytes` and the lengths of the strings.
    MemoryReservation reservation(target.allocator.get());
    GRADFLOW_RETURN_IF_ERROR(
        reservation.Set(static_cast<double>(entry.size()) + 8.0 * static_cast<double>(count),
                        "the strings of a tensor"));
    GRADFLOW_RETURN_IF_ERROR(target.CheckStop());
    std::string bytes(static_cast<size_t>(entry.size()), '\0');
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(fd, entry.offset(), bytes.data(), bytes.size()));
    if (entry.size() == 0) return tensor;
    absl::string_view left = bytes;
    std::vector<uint64_t> lengths(count);
    uint32_t crc = 0;
    for (uint64_t& length : lengths) {
      if (!internal::TakeVarint(&left, &length))
        return DataLoss("the length of a string is damaged");
      crc = ExtendByLength(crc, length);
    }
    if (left.size() < 4) return DataLoss("the lengths of the strings have no checksum");
    if (left.substr(0, 4) != FixedCrc(internal::MaskCrc(crc))) {
      return DataLoss("the checksum of the lengths differs");
    }
    crc = internal::ExtendCrc32c(crc, left);
    left.remove_prefix(4);
    const auto strings = tensor.span<tstring>();
    for (int64_t i = 0; i < count; ++i) {
      if (lengths[i] > left.size()) return DataLoss("a string is longer than the bytes left");
      strings[i].assign(left.data(), lengths[i]);
      left.remove_prefix(lengths[i]);
    }
    GRADFLOW_RETURN_IF_ERROR(CheckCrc(entry, crc));
    GRADFLOW_RETURN_IF_ERROR(tensor.ChargeStrings());
    return tensor;
  }

  // Calls fn(key, stored entry, slice) for each slice of `entry` that has elements of `wanted`.
  // Calls it for the entry itself if the entry has no slices.
  template <typename F>
  absl::Status ForEachPart(absl::string_view name, const BundleEntryProto& entry,
                           const TensorShape& shape, const TensorSlice& wanted, const F& fn) const {
    if (entry.slices().empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice all,
                                TensorSlice::Full(shape.dims()).Resolve(shape));
      return fn(name, entry, all);
    }
    for (const TensorSliceProto& proto : entry.slices()) {
      GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::FromProto(proto));
      GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(shape));
      if (internal::NumCommonElements(resolved, wanted) == 0) continue;
      const std::string key = internal::EncodeSliceKey(name, slice);
      const auto stored = index.entries.find(key);
      if (stored == index.entries.end() || !stored->second.slices().empty()) {
        return Bad(name, "a slice", "is missing");
      }
      GRADFLOW_RETURN_IF_ERROR(fn(key, stored->second, resolved));
    }
    return absl::OkStatus();
  }

  absl::Status Bad(absl::string_view name, absl::string_view what, absl::string_view fault) const {
    return AtFile(IndexFile(prefix),
                  DataLoss(absl::StrCat(what, " of tensor ", Quoted(name), " ", fault)));
  }

  // Checks the stored parts of a slice of a tensor without reading them: each part is valid, parts
  // do not overlap, they are not larger than their files, and they cover `wanted`.
  absl::Status CheckParts(absl::string_view name, const BundleEntryProto& entry,
                          const TensorShape& shape, const TensorSlice& wanted,
                          const Target& target) const {
    // An empty slice has no parts, and the loop below checks types only of parts.
    if (const absl::Status status = CheckType(entry); !status.ok()) {
      return AtFile(IndexFile(prefix), AtTensor(name, status));
    }
    std::vector<TensorSlice> slices;
    std::set<const Shard*> files;
    FileReservation reservation(target.allocator.get());
    // double, because sizes that a file states may add up to more than int64 can hold.
    double file_bytes = 0;
    double part_bytes = 0;
    GRADFLOW_RETURN_IF_ERROR(ForEachPart(
        name, entry, shape, wanted,
        [&](absl::string_view key, const BundleEntryProto& stored,
            const TensorSlice& slice) -> absl::Status {
          GRADFLOW_RETURN_IF_ERROR(target.CheckStop());
          constexpr size_t kNodeBytes = 64;
          GRADFLOW_RETURN_IF_ERROR(
              reservation.Add(kNodeBytes + internal::TensorSliceBytes(shape.dims())));
          const Shard* shard = nullptr;
          TensorShape part;
          GRADFLOW_RETURN_IF_ERROR(AtEntry(key, stored, CheckEntry(stored, &shard, &part)));
          if (part != slice.Shape() || stored.dtype() != entry.dtype()) {
            return DataLoss(absl::StrCat(
                "a slice of tensor ", Quoted(name), " has type ", DataTypeString(stored.dtype()),
                " and shape ", part.DebugString(), ", expected ", DataTypeString(entry.dtype()),
                " and ", slice.Shape().DebugString()));
          }
          if (files.insert(shard).second) file_bytes += static_cast<double>(shard->size);
          part_bytes += static_cast<double>(stored.size());
          slices.push_back(slice);
          return absl::OkStatus();
        }));
    absl::Status tiling = internal::CheckTiling(slices, wanted);
    if (absl::IsInvalidArgument(tiling)) tiling = DataLoss(tiling.message());
    if (!tiling.ok()) return AtFile(IndexFile(prefix), AtTensor(name, tiling));
    // Rejects parts with more bytes in total than their files. Such parts share bytes, and would
    // take much more time and memory than the files justify.
    if (part_bytes <= file_bytes) return absl::OkStatus();
    return Bad(name, "the slices", "have more bytes than their files");
  }

  // Reads the slice `wanted` of a tensor. `wanted` has a length for each dimension.
  absl::StatusOr<Tensor> ReadSlice(absl::string_view name, const BundleEntryProto& entry,
                                   const TensorShape& shape, const TensorSlice& wanted,
                                   const Target& target) const {
    GRADFLOW_RETURN_IF_ERROR(CheckParts(name, entry, shape, wanted, target));
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor,
                              Tensor::Allocate(target.allocator, entry.dtype(), wanted.Shape()));
    GRADFLOW_RETURN_IF_ERROR(ForEachPart(name, entry, shape, wanted,
                                         [&](absl::string_view key, const BundleEntryProto& stored,
                                             const TensorSlice& slice) -> absl::Status {
                                           GRADFLOW_ASSIGN_OR_RETURN(
                                               const Tensor part, ReadEntry(key, stored, target));
                                           internal::CopySlice(part, slice, wanted, &tensor);
                                           return absl::OkStatus();
                                         }));
    GRADFLOW_RETURN_IF_ERROR(tensor.ChargeStrings());
    return tensor;
  }
};

Checkpoint::Checkpoint(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::Checkpoint(const Checkpoint&) = default;
Checkpoint& Checkpoint::operator=(const Checkpoint&) = default;
Checkpoint::~Checkpoint() = default;

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& prefix,
                                            const std::shared_ptr<Allocator>& allocator,
                                            const FileAccess& files, StopToken* stop) {
  auto impl = std::make_shared<Impl>(allocator, files);
  impl->prefix = prefix;
  GRADFLOW_ASSIGN_OR_RETURN(impl->index, ReadIndex(prefix, &impl->reservation, files, stop));
  return Checkpoint(std::move(impl));
}

std::vector<std::string> Checkpoint::Names() const {
  const std::vector<absl::string_view> names = NameViews();
  return std::vector<std::string>(names.begin(), names.end());
}

std::vector<absl::string_view> Checkpoint::NameViews() const {
  std::vector<absl::string_view> names;
  for (const auto& [key, entry] : impl_->index.entries) {
    // The keys of slices begin with NUL.
    if (key[0] != '\0') names.push_back(key);
  }
  return names;
}

absl::StatusOr<Checkpoint::Info> Checkpoint::Find(absl::string_view name) const {
  const auto it = impl_->index.entries.find(name);
  if (name.empty() || it == impl_->index.entries.end()) {
    return errors::NotFound("checkpoint ", Quoted(impl_->prefix), " has no tensor ", Quoted(name));
  }
  absl::StatusOr<TensorShape> shape = TensorShape::Make(it->second.shape());
  if (!shape.ok()) return AtFile(IndexFile(impl_->prefix), DataLoss(shape.status().message()));
  return Info{it->second.dtype(), *std::move(shape)};
}

absl::StatusOr<Tensor> Checkpoint::Read(absl::string_view name, absl::string_view shape_and_slice,
                                        const std::shared_ptr<Allocator>& allocator,
                                        StopToken* stop) const {
  const Impl::Target target = {allocator, stop};
  GRADFLOW_ASSIGN_OR_RETURN(const Info info, Find(name));
  const BundleEntryProto& entry = impl_->index.entries.find(name)->second;
  if (shape_and_slice.empty() && entry.slices().empty()) {
    return impl_->ReadEntry(name, entry, target);
  }
  TensorSlice slice = TensorSlice::Full(info.shape.dims());
  if (!shape_and_slice.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(internal::ShapeAndSlice part,
                              internal::ParseShapeAndSlice(shape_and_slice));
    if (part.shape != info.shape) {
      return errors::InvalidArgument("tensor ", Quoted(name), " has shape ",
                                     info.shape.DebugString(), ", but shape_and_slice states ",
                                     part.shape.DebugString());
    }
    slice = std::move(part.slice);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice wanted, slice.Resolve(info.shape));
  return impl_->ReadSlice(name, entry, info.shape, wanted, target);
}

}  // namespace gradflow
