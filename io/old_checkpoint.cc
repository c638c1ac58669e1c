#include "gradflow/io/old_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/io/checkpoint_files.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_pattern.h"
#include "gradflow/io/file_reservation.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"

namespace gradflow {
namespace {

using internal::FileReservation;
using internal::IsStored;
using internal::kParsedBytes;
using internal::ShapeAndSlice;
using internal::TableEntries;
using internal::TensorSlice;

constexpr int kOldVersion = 1;
// Larger files are not read, because the whole file is read into memory.
constexpr int64_t kMaxOldFileBytes = int64_t{4} << 30;

std::string OldQuoted(absl::string_view name) {
  return absl::StrCat("'", absl::CEscape(name.substr(0, 200)), "'");
}

// Returns the paths of the files in alphabetical order.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& pattern,
                                                 FileReservation* reservation, StopToken* stop,
                                                 const FileAccess& files) {
  std::vector<std::string> paths;
  const auto should_stop = [&] { return IsStopped(stop); };
  GRADFLOW_RETURN_IF_ERROR(
      internal::MatchingPaths(pattern, should_stop, reservation, &paths, files));
  GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
  if (paths.empty()) return errors::NotFound("no file matches ", OldQuoted(pattern));
  std::sort(paths.begin(), paths.end());
  return paths;
}

absl::StatusOr<TableEntries> ReadFileTable(const std::string& path, FileReservation* reservation,
                                           const FileAccess& files, StopToken* stop) {
  size_t size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file,
                            internal::OpenFile(path, &size, files));
  if (static_cast<int64_t>(size) > kMaxOldFileBytes) {
    return errors::ResourceExhausted("the file has ", size, " bytes, expected at most ",
                                     kMaxOldFileBytes);
  }
  GRADFLOW_RETURN_IF_ERROR(reservation->Add(size));
  std::string bytes(size, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, bytes.data(), size));
  absl::StatusOr<TableEntries> table =
      internal::ReadTable(bytes, kMaxOldFileBytes, reservation, stop);
  reservation->Remove(size);
  return table;
}

// Returns an upper bound on the memory of a record, a SavedTensorSlices, as a parsed message.
// Numbers in lists take much less than kParsedBytes per byte. Returns nullopt if the fields are not
// valid.
std::optional<size_t> RecordBytes(absl::string_view record) {
  // kPath has the numbers of the fields that lead to the elements: SavedTensorSlices.data and
  // SavedSlice.data. The other lists have the numbers of fields of TensorProto: lists of numbers
  // that take the size of their elements, and lists of strings.
  constexpr uint64_t kPath[] = {2, 3};
  constexpr uint64_t kNumbers[] = {5, 6, 9, 12};
  constexpr uint64_t kStrings[] = {4, 8};
  constexpr size_t kStringBytes = 64;
  const auto has = [](const auto& list, uint64_t number) {
    return std::find(std::begin(list), std::end(list), number) != std::end(list);
  };
  size_t bytes = 1024;
  // The bytes of messages on the path, and their depths.
  std::vector<std::pair<absl::string_view, size_t>> messages = {{record, 0}};
  while (!messages.empty()) {
    auto [left, depth] = messages.back();
    messages.pop_back();
    while (!left.empty()) {
      const size_t begin = left.size();
      uint64_t tag = 0;
      uint64_t length = 0;
      if (!internal::TakeVarint(&left, &tag)) return std::nullopt;
      switch (tag & 7) {
        case 0:
          if (!internal::TakeVarint(&left, &length)) return std::nullopt;
          length = 0;
          break;
        case 1:
          length = 8;
          break;
        case 2:
          if (!internal::TakeVarint(&left, &length)) return std::nullopt;
          break;
        case 5:
          length = 4;
          break;
        default:
          return std::nullopt;
      }
      if (length > left.size()) return std::nullopt;
      const absl::string_view content = left.substr(0, length);
      left.remove_prefix(length);
      const uint64_t number = tag >> 3;
      if ((tag & 7) != 2) {
        bytes += kParsedBytes * (begin - left.size());
      } else if (depth < std::size(kPath)) {
        if (number == kPath[depth]) {
          // The bytes after the message are processed later.
          messages.emplace_back(left, depth);
          left = content;
          ++depth;
        } else {
          bytes += kStringBytes + kParsedBytes * length;
        }
      } else if (has(kStrings, number)) {
        bytes += kStringBytes + length;
      } else if (has(kNumbers, number)) {
        bytes += 2 * length;
      } else {
        bytes += kStringBytes + kParsedBytes * length;
      }
    }
  }
  return bytes;
}

// Collects the part of a tensor that is to be read from the files.
class OldReader {
 public:
  OldReader(const OldCheckpointRead& read, const std::shared_ptr<Allocator>& allocator,
            StopToken* stop)
      : name_(read.name),
        shape_and_slice_(read.shape_and_slice),
        allocator_(allocator),
        stop_(stop),
        reservation_(allocator.get()) {}

  const std::string& name() const { return name_; }

  // Adds the slices of a file. `meta` comes from the table of contents of the file.
  absl::Status Add(const TableEntries& table, const SavedSliceMeta& meta) {
    GRADFLOW_RETURN_IF_ERROR(Begin(meta));
    for (const TensorSliceProto& proto : meta.slice()) {
      GRADFLOW_RETURN_IF_ERROR(CheckStop(stop_));
      GRADFLOW_RETURN_IF_ERROR(AddSlice(table, proto));
    }
    return absl::OkStatus();
  }

  // Joins the slices, and checks that the files have all elements.
  absl::StatusOr<Tensor> Finish() {
    if (!found_) return errors::NotFound("there is no tensor ", OldQuoted(name_));
    const TensorShape shape = wanted_.Shape();
    GRADFLOW_RETURN_IF_ERROR(CheckSlices());
    if (parts_.size() == 1 && parts_[0].shape() == shape) return std::move(parts_[0]);
    GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(allocator_, dtype_, shape));
    for (size_t i = 0; i < parts_.size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckStop(stop_));
      internal::CopySlice(parts_[i], slices_[i], wanted_, &tensor);
      parts_[i] = Tensor();
    }
    GRADFLOW_RETURN_IF_ERROR(tensor.ChargeStrings());
    return tensor;
  }

 private:
  // Returns DATA_LOSS unless the slices cover the wanted part without overlapping.
  absl::Status CheckSlices() const {
    absl::Status status = internal::CheckTiling(slices_, wanted_);
    if (absl::IsInvalidArgument(status)) status = absl::DataLossError(status.message());
    return errors::Prefix(absl::StrCat("tensor ", OldQuoted(name_), ": "), status);
  }

  absl::Status Bad(absl::string_view what, absl::string_view fault) const {
    return absl::DataLossError(absl::StrCat(what, " of tensor ", OldQuoted(name_), " ", fault));
  }

  absl::Status Begin(const SavedSliceMeta& meta) {
    GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, TensorShape::Make(meta.shape()));
    if (found_) {
      if (shape == shape_ && meta.type() == dtype_) return absl::OkStatus();
      return absl::DataLossError(
          absl::StrCat("files state different types or shapes of tensor ", OldQuoted(name_)));
    }
    if (!IsStored(meta.type())) {
      return absl::UnimplementedError(absl::StrCat("tensor ", OldQuoted(name_), " has type ",
                                                   DataTypeString(meta.type()),
                                                   ", which is not supported"));
    }
    shape_ = std::move(shape);
    TensorSlice slice = TensorSlice::Full(shape_.dims());
    if (!shape_and_slice_.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(ShapeAndSlice part, internal::ParseShapeAndSlice(shape_and_slice_));
      if (part.shape != shape_) {
        return errors::InvalidArgument("tensor ", OldQuoted(name_), " has shape ",
                                       shape_.DebugString(), ", but shape_and_slice states ",
                                       part.shape.DebugString());
      }
      slice = std::move(part.slice);
    }
    GRADFLOW_ASSIGN_OR_RETURN(wanted_, slice.Resolve(shape_));
    dtype_ = meta.type();
    found_ = true;
    return absl::OkStatus();
  }

  absl::Status AddSlice(const TableEntries& table, const TensorSliceProto& proto) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::FromProto(proto));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(shape_));
    const int64_t common = internal::NumCommonElements(resolved, wanted_);
    if (common == 0) return absl::OkStatus();
    const auto record = table.find(internal::EncodeSliceKey(name_, slice));
    if (record == table.end()) return Bad("a slice", "is missing");
    GRADFLOW_RETURN_IF_ERROR(reservation_.Add(internal::TensorSliceBytes(shape_.dims())));
    slices_.push_back(resolved);
    // Each element takes at least a byte. A record must not state more elements than it has.
    const TensorShape shape = resolved.Shape();
    if (shape.num_elements() > static_cast<int64_t>(record->second.size())) {
      return Bad("a slice", "has too few elements");
    }
    // Checks early, so that overlapping slices are not read without limit.
    elements_ += common;
    if (elements_ > wanted_.Shape().num_elements()) return CheckSlices();
    FileReservation parsed(allocator_.get());
    const std::optional<size_t> most = RecordBytes(record->second);
    if (!most.has_value()) return Bad("a slice", "is not valid");
    GRADFLOW_RETURN_IF_ERROR(parsed.Add(*most));
    SavedTensorSlices saved;
    if (!saved.ParseFromString(record->second)) return Bad("a slice", "is not valid");
    parsed.Remove(*most - std::min(*most, saved.SpaceUsedLong()));
    parsed.Trim();
    TensorProto& data = *saved.mutable_data()->mutable_data();
    data.set_dtype(dtype_);
    shape.AsProto(data.mutable_tensor_shape());
    GRADFLOW_ASSIGN_OR_RETURN(parts_.emplace_back(), TensorFromProto(data, allocator_, stop_));
    return absl::OkStatus();
  }

  const std::string name_;
  const std::string shape_and_slice_;
  const std::shared_ptr<Allocator>& allocator_;
  StopToken* const stop_;
  bool found_ = false;
  DataType dtype_ = DT_INVALID;
  TensorShape shape_;
  TensorSlice wanted_;
  // The slices that have elements of `wanted_`, their values, and the number of their elements in
  // `wanted_`.
  std::vector<TensorSlice> slices_;
  std::vector<Tensor> parts_;
  int64_t elements_ = 0;
  FileReservation reservation_;
};

// Returns the table of contents of a file. Charges its memory to `reservation`.
absl::StatusOr<SavedTensorSlices> ReadContents(const TableEntries& table,
                                               FileReservation* reservation) {
  const auto first = table.find("");
  if (first == table.end()) return absl::DataLossError("the file has no table of contents");
  const size_t most = kParsedBytes * first->second.size();
  GRADFLOW_RETURN_IF_ERROR(reservation->Add(most));
  SavedTensorSlices contents;
  if (!contents.ParseFromString(first->second)) {
    return absl::DataLossError("the file has no table of contents");
  }
  if (contents.meta().versions().min_consumer() > kOldVersion) {
    return absl::UnimplementedError("the file needs a newer reader");
  }
  reservation->Remove(most);
  GRADFLOW_RETURN_IF_ERROR(reservation->Add(contents.SpaceUsedLong()));
  reservation->Trim();
  return contents;
}

// Adds the contents of a file to the readers, which are sorted by tensor name.
absl::Status AddFile(const std::string& path, absl::Span<OldReader* const> readers,
                     const std::shared_ptr<Allocator>& allocator, StopToken* stop,
                     const FileAccess& files) {
  GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
  FileReservation reservation(allocator.get());
  GRADFLOW_ASSIGN_OR_RETURN(const TableEntries table,
                            ReadFileTable(path, &reservation, files, stop));
  GRADFLOW_ASSIGN_OR_RETURN(const SavedTensorSlices contents, ReadContents(table, &reservation));
  for (const SavedSliceMeta& meta : contents.meta().tensor()) {
    GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
    auto reader = std::lower_bound(
        readers.begin(), readers.end(), meta.name(),
        [](const OldReader* a, const std::string& name) { return a->name() < name; });
    for (; reader != readers.end() && (*reader)->name() == meta.name(); ++reader) {
      GRADFLOW_RETURN_IF_ERROR((*reader)->Add(table, meta));
    }
  }
  return absl::OkStatus();
}

// Adds the tensors of a file to *tensors.
absl::Status AddInfo(const std::string& path, const std::shared_ptr<Allocator>& allocator,
                     std::map<std::string, Checkpoint::Info>* tensors) {
  FileReservation reservation(allocator.get());
  GRADFLOW_ASSIGN_OR_RETURN(const TableEntries table,
                            ReadFileTable(path, &reservation, FileAccess::All(), /*stop=*/nullptr));
  GRADFLOW_ASSIGN_OR_RETURN(const SavedTensorSlices contents, ReadContents(table, &reservation));
  for (const SavedSliceMeta& meta : contents.meta().tensor()) {
    Checkpoint::Info info;
    info.dtype = meta.type();
    GRADFLOW_ASSIGN_OR_RETURN(info.shape, TensorShape::Make(meta.shape()));
    const auto [it, added] = tensors->try_emplace(meta.name(), info);
    if (!added && (it->second.dtype != info.dtype || it->second.shape != info.shape)) {
      return absl::DataLossError(absl::StrCat("the type or the shape of tensor ",
                                              OldQuoted(meta.name()), " differs among the files"));
    }
  }
  return absl::OkStatus();
}

// The maximum memory of the message of a tensor: numbers in growing lists, and strings as objects
// on the heap.
size_t MessageBytes(const Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.NumElements());
  if (tensor.dtype() == DT_STRING) return 64 * count + tensor.StringBytes();
  return 2 * std::max<size_t>(8, DataTypeSize(tensor.dtype())) * count;
}

// Messages and therefore records must be smaller than this.
constexpr int64_t kMaxRecordBytes = std::numeric_limits<int32_t>::max();

absl::Status TooLarge(absl::string_view name) {
  return errors::InvalidArgument("tensor ", OldQuoted(name), " is too large for a record of ",
                                 kMaxRecordBytes, " bytes");
}

absl::Status FileTooLarge() {
  return errors::InvalidArgument("the file would have more than ", kMaxOldFileBytes, " bytes");
}

// Returns INVALID_ARGUMENT if the record of a tensor is certainly too large.
absl::Status CheckRecordSize(const CheckpointTensor& tensor) {
  int64_t bytes = tensor.tensor.NumElements();
  switch (tensor.tensor.dtype()) {
    case DT_FLOAT:
    case DT_DOUBLE:
    case DT_COMPLEX64:
    case DT_COMPLEX128:
      bytes = static_cast<int64_t>(tensor.tensor.TotalBytes());
      break;
    case DT_STRING:
      // Each string takes a tag and a length.
      bytes = 2 * bytes + static_cast<int64_t>(tensor.tensor.StringBytes());
      break;
    default:
      // Each element takes at least a byte.
      break;
  }
  return bytes >= kMaxRecordBytes ? TooLarge(tensor.name) : absl::OkStatus();
}

}  // namespace

absl::Status WriteOldCheckpoint(const std::string& path, absl::Span<const CheckpointTensor> tensors,
                                const std::shared_ptr<Allocator>& allocator,
                                const FileAccess& files) {
  FileReservation reservation(allocator.get());
  int64_t file_bytes = 0;
  // Keyed by name.
  std::map<std::string, SavedSliceMeta> metas;
  std::map<std::string, std::vector<TensorSlice>> slices;
  TableEntries table;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name.empty()) return errors::InvalidArgument("the name of a tensor is empty");
    if (!IsStored(tensor.tensor.dtype())) {
      return errors::Unimplemented("tensor ", OldQuoted(tensor.name), " has type ",
                                   DataTypeString(tensor.tensor.dtype()),
                                   ", which checkpoints do not store");
    }
    ShapeAndSlice part = {tensor.tensor.shape(), TensorSlice::Full(tensor.tensor.dims())};
    if (!tensor.shape_and_slice.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(part, internal::ParseShapeAndSlice(tensor.shape_and_slice));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, part.slice.Resolve(part.shape));
    if (resolved.Shape() != tensor.tensor.shape()) {
      return errors::InvalidArgument("tensor ", OldQuoted(tensor.name), " has shape ",
                                     tensor.tensor.shape().DebugString(), ", but its slice has ",
                                     resolved.Shape().DebugString());
    }
    GRADFLOW_RETURN_IF_ERROR(CheckRecordSize(tensor));
    // Covers the entry in the table of contents.
    constexpr size_t kMetaBytes = 1024;
    GRADFLOW_RETURN_IF_ERROR(reservation.Add(kMetaBytes + 8 * tensor.name.size() +
                                             256 * static_cast<size_t>(part.shape.dims())));
    SavedSliceMeta& meta = metas[tensor.name];
    TensorShapeProto shape;
    part.shape.AsProto(&shape);
    if (meta.name().empty()) {
      meta.set_name(tensor.name);
      meta.set_type(tensor.tensor.dtype());
      *meta.mutable_shape() = shape;
    } else if (meta.type() != tensor.tensor.dtype() ||
               meta.shape().SerializeAsString() != shape.SerializeAsString()) {
      return errors::InvalidArgument("the slices of tensor ", OldQuoted(tensor.name),
                                     " differ in type or shape");
    }
    part.slice.ToProto(meta.add_slice());
    slices[tensor.name].push_back(resolved);
    SavedTensorSlices record;
    record.mutable_data()->set_name(tensor.name);
    part.slice.ToProto(record.mutable_data()->mutable_slice());
    TensorProto& data = *record.mutable_data()->mutable_data();
    const size_t message_bytes = MessageBytes(tensor.tensor);
    GRADFLOW_RETURN_IF_ERROR(reservation.Add(message_bytes));
    tensor.tensor.AsProtoField(&data);
    data.clear_dtype();
    data.clear_tensor_shape();
    const size_t size = record.ByteSizeLong();
    if (size >= static_cast<size_t>(kMaxRecordBytes)) return TooLarge(tensor.name);
    std::string key = internal::EncodeSliceKey(tensor.name, part.slice);
    // Covers the record and its copies in the block and the file, which grow by doubling.
    GRADFLOW_RETURN_IF_ERROR(reservation.Add(5 * (key.size() + size)));
    file_bytes += static_cast<int64_t>(key.size() + size);
    if (file_bytes > kMaxOldFileBytes) return FileTooLarge();
    if (!table.emplace(std::move(key), record.SerializeAsString()).second) {
      return errors::InvalidArgument("tensor ", OldQuoted(tensor.name), " is given twice");
    }
    reservation.Remove(message_bytes);
  }
  // Other files may have the rest of a tensor.
  for (const auto& [name, of_tensor] : slices) {
    GRADFLOW_RETURN_IF_ERROR(errors::Prefix(absl::StrCat("tensor ", OldQuoted(name), ": "),
                                            internal::CheckDisjoint(of_tensor)));
  }
  SavedTensorSlices contents;
  contents.mutable_meta()->mutable_versions()->set_producer(kOldVersion);
  for (auto& [name, meta] : metas) *contents.mutable_meta()->add_tensor() = std::move(meta);
  if (contents.ByteSizeLong() >= static_cast<size_t>(kMaxRecordBytes)) return FileTooLarge();
  table.emplace("", contents.SerializeAsString());
  const std::string bytes = internal::WriteTable(table);
  if (static_cast<int64_t>(bytes.size()) > kMaxOldFileBytes) return FileTooLarge();
  const absl::Status status = internal::WriteFile(path, {bytes}, /*sync=*/false, files);
  return status.ok() ? status : errors::Prefix(absl::StrCat(OldQuoted(path), ": "), status);
}

absl::StatusOr<std::map<std::string, Checkpoint::Info>> ListOldCheckpoint(
    const std::string& pattern, const std::shared_ptr<Allocator>& allocator) {
  FileReservation reservation(allocator.get());
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                            FilesOf(pattern, &reservation, /*stop=*/nullptr, FileAccess::All()));
  std::map<std::string, Checkpoint::Info> tensors;
  for (const std::string& path : paths) {
    const absl::Status status = AddInfo(path, allocator, &tensors);
    if (!status.ok()) return errors::Prefix(absl::StrCat(OldQuoted(path), ": "), status);
  }
  return tensors;
}

absl::StatusOr<std::vector<Tensor>> ReadOldCheckpoint(const std::string& pattern,
                                                      absl::Span<const OldCheckpointRead> reads,
                                                      const std::shared_ptr<Allocator>& allocator,
                                                      StopToken* stop, const FileAccess& files) {
  FileReservation reservation(allocator.get());
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                            FilesOf(pattern, &reservation, stop, files));
  std::vector<std::unique_ptr<OldReader>> readers;
  std::vector<OldReader*> sorted;
  for (const OldCheckpointRead& read : reads) {
    readers.push_back(std::make_unique<OldReader>(read, allocator, stop));
    sorted.push_back(readers.back().get());
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OldReader* a, const OldReader* b) { return a->name() < b->name(); });
  for (const std::string& path : paths) {
    const absl::Status status = AddFile(path, sorted, allocator, stop, files);
    if (!status.ok()) return errors::Prefix(absl::StrCat(OldQuoted(path), ": "), status);
  }
  std::vector<Tensor> tensors;
  for (const std::unique_ptr<OldReader>& reader : readers) {
    absl::StatusOr<Tensor> tensor = reader->Finish();
    if (!tensor.ok()) {
      return errors::Prefix(absl::StrCat(OldQuoted(pattern), ": "), tensor.status());
    }
    tensors.push_back(*std::move(tensor));
  }
  return tensors;
}

absl::StatusOr<Tensor> ReadOldCheckpoint(const std::string& pattern, absl::string_view name,
                                         absl::string_view shape_and_slice,
                                         const std::shared_ptr<Allocator>& allocator,
                                         StopToken* stop, const FileAccess& files) {
  const OldCheckpointRead read = {std::string(name), std::string(shape_and_slice)};
  absl::StatusOr<std::vector<Tensor>> tensors =
      ReadOldCheckpoint(pattern, {read}, allocator, stop, files);
  if (!tensors.ok()) return tensors.status();
  return std::move(tensors->front());
}

}  // namespace gradflow
