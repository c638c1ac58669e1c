// Ops that save and restore checkpoints in the current and in the old format.
#include "gradflow/io/checkpoint.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file_access.h"
#include "gradflow/io/old_checkpoint.h"
#include "gradflow/io/tensor_slice.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::checkpoint {
namespace {

// Returns INVALID_ARGUMENT unless input i may be a vector of `count` elements.
absl::Status CheckNames(ShapeContext& c, int i, int count) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  return CheckDim(c, i, 0, count);
}

absl::Status SaveShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  const int fixed = c.def().op() == "Save" ? 2 : 3;
  for (int i = 1; i < fixed; ++i) {
    GRADFLOW_RETURN_IF_ERROR(CheckNames(c, i, c.num_inputs() - fixed));
  }
  return absl::OkStatus();
}

// Sets the shape of output i from the text of a shape and slice, if the text is not empty.
absl::Status SetSliceShape(ShapeContext& c, int i, const tstring& text) {
  if (text.empty()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const internal::ShapeAndSlice part, internal::ParseShapeAndSlice(text));
  GRADFLOW_ASSIGN_OR_RETURN(const internal::TensorSlice slice, part.slice.Resolve(part.shape));
  c.set_output(i, slice.Shape());
  return absl::OkStatus();
}

absl::Status RestoreV2Shape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  for (int i = 1; i < 3; ++i) GRADFLOW_RETURN_IF_ERROR(CheckNames(c, i, c.num_outputs()));
  const Tensor* slices = c.input_tensor(2);
  // Nodes that were imported without shapes may have a known value with any shape.
  if (slices == nullptr || slices->dims() != 1) return absl::OkStatus();
  const auto texts = slices->span<tstring>();
  for (int i = 0; i < c.num_outputs() && i < static_cast<int>(texts.size()); ++i) {
    GRADFLOW_RETURN_IF_ERROR(SetSliceShape(c, i, texts[i]));
  }
  return absl::OkStatus();
}

absl::Status MergeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  return c.CheckRank(1, 0);
}

absl::Status RestoreShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  const Tensor* slice = c.num_inputs() < 3 ? nullptr : c.input_tensor(2);
  // The shape is unknown without a slice.
  if (slice == nullptr || slice->dims() != 0) return absl::OkStatus();
  return SetSliceShape(c, 0, slice->scalar<tstring>()());
}

// Returns the string of input i, which must be a scalar.
absl::StatusOr<std::string> Text(const KernelContext& ctx, int i, absl::string_view name) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  return std::string(ctx.input(i).scalar<tstring>()());
}

absl::Status CheckCount(const KernelContext& ctx, int i, absl::string_view name, int count) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(i, name));
  if (ctx.input(i).NumElements() == count) return absl::OkStatus();
  return errors::InvalidArgument(name, " must have ", count, " elements, but has ",
                                 ctx.input(i).NumElements());
}

// ---- SaveV2, Save and SaveSlices ----

class SaveKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    const OpDef& def = construction.op_def();
    old_ = def.name() != "SaveV2";
    fixed_ = def.input_arg_size() - 1;
    for (int i = 0; i < fixed_; ++i) names_.push_back(def.input_arg(i).name());
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string path, Text(ctx, 0, names_[0]));
    const int count = ctx.num_inputs() - fixed_;
    for (int i = 1; i < fixed_; ++i) {
      // For a single tensor, the kernels of the old format accept a scalar. Shape functions do not.
      if (old_ && count == 1 && ctx.input(i).dims() == 0) continue;
      GRADFLOW_RETURN_IF_ERROR(CheckCount(ctx, i, names_[i], count));
    }
    std::vector<CheckpointTensor> tensors(count);
    for (int i = 0; i < count; ++i) {
      tensors[i].name = ctx.input(1).span<tstring>()[i];
      tensors[i].tensor = ctx.input(fixed_ + i);
      if (fixed_ == 3) tensors[i].shape_and_slice = ctx.input(2).span<tstring>()[i];
    }
    return old_ ? WriteOldCheckpoint(path, tensors, ctx.allocator(), FileAccessOf(ctx))
                : WriteCheckpoint(path, tensors, ctx.allocator(), FileAccessOf(ctx));
  }

 private:
  bool old_ = false;
  // The number of inputs before the tensors, and the names of these inputs.
  int fixed_ = 0;
  std::vector<std::string> names_;
};

// ---- RestoreV2, Restore and RestoreSlice ----

absl::Status SetRestored(KernelContext& ctx, int i, absl::string_view name, Tensor tensor) {
  if (tensor.dtype() != ctx.expected_output_dtype(i)) {
    return errors::InvalidArgument("tensor '", errors::Printable(name), "' has type ",
                                   DataTypeString(tensor.dtype()), ", expected ",
                                   DataTypeString(ctx.expected_output_dtype(i)));
  }
  ctx.set_output(i, std::move(tensor));
  return absl::OkStatus();
}

// Reads the outputs from a file in the old format.
absl::Status RestoreOld(KernelContext& ctx, const std::string& path) {
  std::vector<OldCheckpointRead> reads(ctx.num_outputs());
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    reads[i] = {ctx.input(1).span<tstring>()[i], ctx.input(2).span<tstring>()[i]};
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      std::vector<Tensor> tensors,
      ReadOldCheckpoint(path, reads, ctx.allocator(), ctx.run().stop, FileAccessOf(ctx)));
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    GRADFLOW_RETURN_IF_ERROR(SetRestored(ctx, i, reads[i].name, std::move(tensors[i])));
  }
  return absl::OkStatus();
}

absl::Status RestoreV2(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string prefix, Text(ctx, 0, "prefix"));
  GRADFLOW_RETURN_IF_ERROR(CheckCount(ctx, 1, "tensor_names", ctx.num_outputs()));
  GRADFLOW_RETURN_IF_ERROR(CheckCount(ctx, 2, "shape_and_slices", ctx.num_outputs()));
  const auto names = ctx.input(1).span<tstring>();
  const auto slices = ctx.input(2).span<tstring>();
  const absl::StatusOr<Checkpoint> checkpoint =
      Checkpoint::Open(prefix, ctx.allocator(), FileAccessOf(ctx), ctx.run().stop);
  if (absl::IsNotFound(checkpoint.status())) {
    // The prefix may be the path of a file in the old format.
    const absl::Status status = RestoreOld(ctx, prefix);
    if (!absl::IsNotFound(status)) return status;
    return errors::NotFound(status.message(), "; ", checkpoint.status().message());
  }
  if (!checkpoint.ok()) return checkpoint.status();
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    // Checks the type before reading the elements.
    GRADFLOW_ASSIGN_OR_RETURN(const Checkpoint::Info info, checkpoint->Find(names[i]));
    if (info.dtype != ctx.expected_output_dtype(i)) {
      return errors::InvalidArgument("tensor '", errors::Printable(names[i]), "' has type ",
                                     DataTypeString(info.dtype), ", expected ",
                                     DataTypeString(ctx.expected_output_dtype(i)));
    }
    GRADFLOW_ASSIGN_OR_RETURN(
        Tensor tensor, checkpoint->Read(names[i], slices[i], ctx.allocator(), ctx.run().stop));
    GRADFLOW_RETURN_IF_ERROR(SetRestored(ctx, i, names[i], std::move(tensor)));
  }
  return absl::OkStatus();
}

absl::Status Restore(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string pattern, Text(ctx, 0, "file_pattern"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(ctx, 1, "tensor_name"));
  std::string slice;
  if (ctx.num_inputs() > 2) {
    GRADFLOW_ASSIGN_OR_RETURN(slice, Text(ctx, 2, "shape_and_slice"));
  }
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, ReadOldCheckpoint(pattern, name, slice, ctx.allocator(),
                                                             ctx.run().stop, FileAccessOf(ctx)));
  return SetRestored(ctx, 0, name, std::move(tensor));
}

// ---- MergeV2Checkpoints ----

class MergeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("delete_old_dirs", &options_.delete_old_dirs));
    return construction.GetAttr("allow_missing_files", &options_.allow_missing_files);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "checkpoint_prefixes"));
    GRADFLOW_ASSIGN_OR_RETURN(const std::string prefix, Text(ctx, 1, "destination_prefix"));
    const auto texts = ctx.input(0).span<tstring>();
    return MergeCheckpoints(std::vector<std::string>(texts.begin(), texts.end()), prefix, options_,
                            ctx.allocator(), FileAccessOf(ctx));
  }

 private:
  MergeCheckpointsOptions options_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("SaveV2")
      .Group("io_ops")
      .Input("prefix: string")
      .Input("tensor_names: string")
      .Input("shape_and_slices: string")
      .Input("tensors: dtypes")
      .Attr("dtypes: list(type) >= 1")
      .Stateful()
      .Shape(SaveShape)
      .Doc(R"(Writes tensors to a checkpoint.

Each file appears whole or not at all, the data before the index.

prefix: A scalar: the path of the files, without their endings.
tensor_names: A vector: the name of each tensor.
shape_and_slices: A vector: "" for a whole tensor. Otherwise the shape of the whole tensor and the
  slice that is written, such as "3 4 0,2:-" for the first two rows of a tensor of shape [3,4].
tensors: The tensors.
dtypes: The types of the tensors.)");
  registry.Kernel("SaveV2", MakeKernel<SaveKernel>);

  registry.Op("RestoreV2")
      .Group("io_ops")
      .Input("prefix: string")
      .Input("tensor_names: string")
      .Input("shape_and_slices: string")
      .Output("tensors: dtypes")
      .Attr("dtypes: list(type) >= 1")
      .Stateful()
      .Shape(RestoreV2Shape)
      .Doc(R"(Reads tensors from a checkpoint.

Also reads files of the old format, which `Save` writes. A damaged file is an error.

prefix: A scalar: the path of the files, without their endings.
tensor_names: A vector: the name of each tensor.
shape_and_slices: A vector: "" for a whole tensor. Otherwise the shape of the whole tensor and the
  slice that is read, such as "3 4 0,2:-" for the first two rows of a tensor of shape [3,4].
tensors: The tensors.
dtypes: The types that the tensors must have.)");
  registry.Kernel("RestoreV2", MakeFunctionKernel<RestoreV2>);

  registry.Op("MergeV2Checkpoints")
      .Group("io_ops")
      .Input("checkpoint_prefixes: string")
      .Input("destination_prefix: string")
      .Attr("delete_old_dirs: bool = true")
      .Attr("allow_missing_files: bool = false")
      .Stateful()
      .Shape(MergeShape)
      .Doc(R"(Merges several checkpoints into one, by renaming their data files.

checkpoint_prefixes: A vector: the prefixes of the checkpoints.
destination_prefix: A scalar: the prefix of the result.
delete_old_dirs: If true, removes the folders of the old checkpoints if the merge leaves them empty.
allow_missing_files: If true, skips checkpoints that do not exist. At least one must exist.)");
  registry.Kernel("MergeV2Checkpoints", MakeKernel<MergeKernel>);

  registry.Op("Save")
      .Group("io_ops")
      .Input("filename: string")
      .Input("tensor_names: string")
      .Input("data: T")
      .Attr("T: list(type) >= 1")
      .Stateful()
      .Shape(SaveShape)
      .Doc(R"(Writes tensors to a file, in the old format of checkpoints.

filename: A scalar: the path of the file.
tensor_names: A vector: the name of each tensor.
data: The tensors.
T: The types of the tensors.)");
  registry.Kernel("Save", MakeKernel<SaveKernel>);

  registry.Op("SaveSlices")
      .Group("io_ops")
      .Input("filename: string")
      .Input("tensor_names: string")
      .Input("shapes_and_slices: string")
      .Input("data: T")
      .Attr("T: list(type) >= 1")
      .Stateful()
      .Shape(SaveShape)
      .Doc(R"(Writes slices of tensors to a file, in the old format of checkpoints.

filename: A scalar: the path of the file.
tensor_names: A vector: the name of each tensor.
shapes_and_slices: A vector: the shape of each whole tensor and the slice that is written, such as
  "3 4 0,2:-" for the first two rows of a tensor of shape [3,4]; "" for a whole tensor.
data: The slices.
T: The types of the tensors.)");
  registry.Kernel("SaveSlices", MakeKernel<SaveKernel>);

  registry.Op("Restore")
      .Group("io_ops")
      .Input("file_pattern: string")
      .Input("tensor_name: string")
      .Output("tensor: dt")
      .Attr("dt: type")
      .Attr("preferred_shard: int = -1")
      .Stateful()
      .Shape(RestoreShape)
      .Doc(R"(Reads a tensor from files in the old format of checkpoints.

file_pattern: A scalar: the path of the files, which may have wildcards.
tensor_name: A scalar: the name of the tensor.
tensor: The tensor.
dt: The type that the tensor must have.
preferred_shard: Has no effect: all files are searched.)");
  registry.Kernel("Restore", MakeFunctionKernel<Restore>);

  registry.Op("RestoreSlice")
      .Group("io_ops")
      .Input("file_pattern: string")
      .Input("tensor_name: string")
      .Input("shape_and_slice: string")
      .Output("tensor: dt")
      .Attr("dt: type")
      .Attr("preferred_shard: int = -1")
      .Stateful()
      .Shape(RestoreShape)
      .Doc(R"(Reads a slice of a tensor from files in the old format of checkpoints.

file_pattern: A scalar: the path of the files, which may have wildcards.
tensor_name: A scalar: the name of the tensor.
shape_and_slice: A scalar: the shape of the whole tensor and the slice that is read, such as
  "3 4 0,2:-" for the first two rows of a tensor of shape [3,4]; "" for the whole tensor.
tensor: The slice.
dt: The type that the tensor must have.
preferred_shard: Has no effect: all files are searched.)");
  registry.Kernel("RestoreSlice", MakeFunctionKernel<Restore>);
}

}  // namespace gradflow::checkpoint
