#include "gradflow/io/old_checkpoint.h"

#include <glob.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/io/file.h"
#include "gradflow/io/table.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"

namespace gradflow {
namespace {

using internal::ShapeAndSlice;
using internal::TableEntries;
using internal::TensorSlice;

constexpr int kOldVersion = 1;
// A file of more bytes is not read: it is in memory as a whole.
constexpr int64_t kMaxOldFileBytes = int64_t{4} << 30;

std::string OldQuoted(absl::string_view name) {
  return absl::StrCat("'", absl::CEscape(name.substr(0, 200)), "'");
}

absl::StatusOr<std::vector<std::string>> MatchingPaths(const std::string& pattern) {
  glob_t found = {};
  const absl::Cleanup free = [&] { globfree(&found); };
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  if (result == GLOB_NOSPACE) return errors::ResourceExhausted("out of memory for names of files");
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  if (paths.empty()) return errors::NotFound("no file matches ", OldQuoted(pattern));
  return paths;
}

absl::StatusOr<TableEntries> ReadFileTable(const std::string& path) {
  size_t size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
  if (static_cast<int64_t>(size) > kMaxOldFileBytes) {
    return errors::ResourceExhausted("the file has ", size, " bytes, expected at most ",
                                     kMaxOldFileBytes);
  }
  std::string bytes(size, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, bytes.data(), size));
  return internal::ReadTable(bytes, kMaxOldFileBytes);
}

// Collects the part of a tensor that is to be read from the files.
class OldReader {
 public:
  OldReader(absl::string_view name, absl::string_view shape_and_slice,
            const std::shared_ptr<Allocator>& allocator)
      : name_(name), shape_and_slice_(shape_and_slice), allocator_(allocator) {}

  absl::Status AddFile(const std::string& path) {
    GRADFLOW_ASSIGN_OR_RETURN(const TableEntries table, ReadFileTable(path));
    const auto first = table.find("");
    SavedTensorSlices contents;
    if (first == table.end() || !contents.ParseFromString(first->second)) {
      return absl::DataLossError("the file has no table of contents");
    }
    if (contents.meta().versions().min_consumer() > kOldVersion) {
      return absl::UnimplementedError("the file needs a newer reader");
    }
    for (const SavedSliceMeta& meta : contents.meta().tensor()) {
      if (meta.name() != name_) continue;
      GRADFLOW_RETURN_IF_ERROR(Begin(meta));
      for (const TensorSliceProto& proto : meta.slice()) {
        GRADFLOW_RETURN_IF_ERROR(AddSlice(table, proto));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Finish() {
    if (!found_) return errors::NotFound("there is no tensor ", OldQuoted(name_));
    if (copied_ < tensor_.NumElements()) {
      return absl::DataLossError(
          absl::StrCat("the slices of tensor ", OldQuoted(name_), " do not cover what is read"));
    }
    GRADFLOW_RETURN_IF_ERROR(tensor_.ChargeStrings());
    return std::move(tensor_);
  }

 private:
  absl::Status Begin(const SavedSliceMeta& meta) {
    GRADFLOW_ASSIGN_OR_RETURN(TensorShape shape, TensorShape::Make(meta.shape()));
    if (found_) {
      if (shape == shape_ && meta.type() == tensor_.dtype()) return absl::OkStatus();
      return absl::DataLossError(
          absl::StrCat("files state different types or shapes of tensor ", OldQuoted(name_)));
    }
    if (!DataTypeCanBeTensor(meta.type())) {
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
    // The first slice allocates the tensor.
    tensor_ = Tensor(dtype_, TensorShape({0}));
    if (wanted_.Shape().num_elements() == 0) {
      GRADFLOW_ASSIGN_OR_RETURN(tensor_, Tensor::Allocate(allocator_, dtype_, wanted_.Shape()));
    }
    return absl::OkStatus();
  }

  absl::Status AddSlice(const TableEntries& table, const TensorSliceProto& proto) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::FromProto(proto));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, slice.Resolve(shape_));
    const auto record = table.find(internal::EncodeSliceKey(name_, slice));
    SavedTensorSlices saved;
    if (record == table.end() || !saved.ParseFromString(record->second)) {
      return absl::DataLossError(
          absl::StrCat("a slice of tensor ", OldQuoted(name_), " is missing"));
    }
    // Each element takes a byte at least. A record must not stand for more than it has.
    TensorProto& data = *saved.mutable_data()->mutable_data();
    const TensorShape shape = resolved.Shape();
    if (shape.num_elements() > static_cast<int64_t>(record->second.size())) {
      return absl::DataLossError(
          absl::StrCat("a slice of tensor ", OldQuoted(name_), " has too few elements"));
    }
    data.set_dtype(dtype_);
    shape.AsProto(data.mutable_tensor_shape());
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor part, TensorFromProto(data));
    const TensorShape wanted_shape = wanted_.Shape();
    if (tensor_.shape() != wanted_shape) {
      GRADFLOW_ASSIGN_OR_RETURN(tensor_, Tensor::Allocate(allocator_, dtype_, wanted_shape));
      if (dtype_ != DT_STRING && tensor_.raw_data() != nullptr) {
        std::fill_n(static_cast<char*>(tensor_.raw_data()), tensor_.TotalBytes(), '\0');
      }
    }
    if (wanted_shape.num_elements() > 0) {
      copied_ += internal::CopySlice(part, resolved, wanted_, &tensor_);
    }
    return absl::OkStatus();
  }

  const std::string name_;
  const std::string shape_and_slice_;
  const std::shared_ptr<Allocator>& allocator_;
  bool found_ = false;
  DataType dtype_ = DT_INVALID;
  TensorShape shape_;
  TensorSlice wanted_;
  Tensor tensor_;
  int64_t copied_ = 0;
};

}  // namespace

absl::Status WriteOldCheckpoint(const std::string& path,
                                absl::Span<const CheckpointTensor> tensors) {
  // By name.
  std::map<std::string, SavedSliceMeta> metas;
  TableEntries table;
  for (const CheckpointTensor& tensor : tensors) {
    if (tensor.name.empty()) return errors::InvalidArgument("the name of a tensor is empty");
    if (!DataTypeCanBeTensor(tensor.tensor.dtype())) {
      return errors::Unimplemented("tensor ", OldQuoted(tensor.name), " has type ",
                                   DataTypeString(tensor.tensor.dtype()),
                                   ", which checkpoints do not store");
    }
    ShapeAndSlice part = {tensor.tensor.shape(), TensorSlice::Full(tensor.tensor.dims())};
    if (!tensor.shape_and_slice.empty()) {
      GRADFLOW_ASSIGN_OR_RETURN(part, internal::ParseShapeAndSlice(tensor.shape_and_slice));
      GRADFLOW_ASSIGN_OR_RETURN(const TensorSlice resolved, part.slice.Resolve(part.shape));
      if (resolved.Shape() != tensor.tensor.shape()) {
        return errors::InvalidArgument("tensor ", OldQuoted(tensor.name), " has shape ",
                                       tensor.tensor.shape().DebugString(), ", but its slice has ",
                                       resolved.Shape().DebugString());
      }
    }
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
    SavedTensorSlices record;
    record.mutable_data()->set_name(tensor.name);
    part.slice.ToProto(record.mutable_data()->mutable_slice());
    TensorProto& data = *record.mutable_data()->mutable_data();
    tensor.tensor.AsProtoField(&data);
    data.clear_dtype();
    data.clear_tensor_shape();
    if (!table
             .emplace(internal::EncodeSliceKey(tensor.name, part.slice), record.SerializeAsString())
             .second) {
      return errors::InvalidArgument("tensor ", OldQuoted(tensor.name), " is given twice");
    }
  }
  SavedTensorSlices contents;
  contents.mutable_meta()->mutable_versions()->set_producer(kOldVersion);
  for (auto& [name, meta] : metas) *contents.mutable_meta()->add_tensor() = std::move(meta);
  table.emplace("", contents.SerializeAsString());
  const std::string bytes = internal::WriteTable(table);
  const absl::Status status = internal::WriteFile(path, {bytes});
  return status.ok() ? status : errors::Prefix(absl::StrCat(OldQuoted(path), ": "), status);
}

absl::StatusOr<Tensor> ReadOldCheckpoint(const std::string& pattern, absl::string_view name,
                                         absl::string_view shape_and_slice,
                                         const std::shared_ptr<Allocator>& allocator) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> paths, MatchingPaths(pattern));
  OldReader reader(name, shape_and_slice, allocator);
  for (const std::string& path : paths) {
    const absl::Status status = reader.AddFile(path);
    if (!status.ok()) return errors::Prefix(absl::StrCat(OldQuoted(path), ": "), status);
  }
  absl::StatusOr<Tensor> tensor = reader.Finish();
  if (!tensor.ok()) {
    return errors::Prefix(absl::StrCat(OldQuoted(pattern), ": "), tensor.status());
  }
  return tensor;
}

}  // namespace gradflow
