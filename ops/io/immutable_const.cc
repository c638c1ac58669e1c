// ImmutableConst: a constant whose value is in a file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_access.h"

namespace gradflow::immutable_const {
namespace {

class ImmutableConstKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("memory_region_name", &path_));
    PartialTensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shape", &shape));
    if (!shape.AsTensorShape(&shape_)) {
      return errors::InvalidArgument("shape must be known, but is ", shape.DebugString());
    }
    if (path_.find('\0') != std::string::npos) {
      return errors::InvalidArgument("memory_region_name must not have a zero byte");
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const auto at_path = [&](const absl::Status& status) {
      return errors::Prefix(absl::StrCat("'", errors::Printable(path_), "': "), status);
    };
    size_t size = 0;
    const absl::StatusOr<internal::FileDescriptor> file =
        internal::OpenFile(path_, &size, FileAccessOf(ctx));
    if (!file.ok()) return at_path(file.status());
    const DataType dtype = ctx.expected_output_dtype(0);
    const int64_t bytes = MultiplyWithoutOverflow(shape_.num_elements(), DataTypeSize(dtype));
    // Checked before allocation, so that no tensor is allocated that cannot be filled.
    if (bytes < 0 || size < static_cast<size_t>(bytes)) {
      return at_path(errors::InvalidArgument("expected as many bytes as ", DataTypeString(dtype),
                                             " ", shape_.DebugString(), " has, but found ", size));
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape_, &output));
    char* const to = static_cast<char*>(output->raw_data());
    // Reads in parts, because the run can be stopped between parts.
    constexpr int64_t kPart = int64_t{1} << 24;
    for (int64_t at = 0; at < bytes && !ctx.ShouldStop(); at += kPart) {
      const absl::Status status =
          internal::ReadAt(file->get(), at, to + at, std::min(kPart, bytes - at));
      if (!status.ok()) return at_path(status);
    }
    return absl::OkStatus();
  }

 private:
  std::string path_;
  TensorShape shape_;
};

absl::Status ImmutableConstShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ImmutableConst")
      .Group("array_ops")
      .Output("tensor: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Attr("memory_region_name: string")
      .Shape(ImmutableConstShape)
      .Doc(R"(Returns a constant that a file holds.

The file is read when the graph runs. There are no kernels for strings, bools, handles and variants.

tensor: The first bytes of the file, as a tensor in row-major order.
dtype: The type of the tensor.
shape: The shape of the tensor, which must be fully known.
memory_region_name: The path of a regular file with at least the bytes of the tensor.)");
  DataTypeVector types;
  for (const DataType dtype : AllDataTypes()) {
    if (DataTypeCanBeTensor(dtype) && dtype != DT_STRING && dtype != DT_BOOL &&
        dtype != DT_RESOURCE && dtype != DT_VARIANT) {
      types.push_back(dtype);
    }
  }
  registry.Kernel("ImmutableConst", MakeKernel<ImmutableConstKernel>).Types("dtype", types);
}

}  // namespace gradflow::immutable_const
