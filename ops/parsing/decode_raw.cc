// DecodeRaw and DecodePaddedRaw.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow::decode_raw {
namespace {

class RawKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    bool little_endian = true;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("little_endian", &little_endian));
    dtype_ = construction.output_type(0);
    // The parts of a complex number have their own order of bytes.
    swapped_ = little_endian ? 1 : DataTypeSize(dtype_) / (DataTypeIsComplex(dtype_) ? 2 : 1);
    return absl::OkStatus();
  }

 protected:
  DataType dtype() const { return dtype_; }

  // Copies the strings to rows of `row` bytes, and fills up with zeros.
  void CopyRows(const KernelContext& ctx, int64_t row, Tensor* output) const {
    const auto strings = ctx.input(0).span<tstring>();
    char* const bytes = static_cast<char*>(output->raw_data());
    if (row == 0) return;
    ParallelFor(ctx, static_cast<int64_t>(strings.size()),
                BlockSizeForCost(20 + static_cast<double>(row) * (swapped_ > 1 ? 1 : 0.1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    char* const to = bytes + i * row;
                    const auto size = std::min(row, static_cast<int64_t>(strings[i].size()));
                    std::memcpy(to, strings[i].data(), size);
                    std::memset(to + size, 0, row - size);
                    for (int64_t at = 0; swapped_ > 1 && at < row; at += swapped_) {
                      std::reverse(to + at, to + at + swapped_);
                    }
                    for (int64_t at = 0; dtype_ == DT_BOOL && at < row; ++at) {
                      to[at] = to[at] != 0 ? 1 : 0;
                    }
                  }
                });
  }

 private:
  DataType dtype_ = DT_INVALID;
  // The number of bytes to reverse; 1 for none.
  int64_t swapped_ = 1;
};

absl::Status CheckBytes(const KernelContext& ctx, const char* name) {
  if (ctx.input_dtype(0) == DT_STRING) return absl::OkStatus();
  return errors::InvalidArgument(name, " must be of type string, but is ",
                                 DataTypeString(ctx.input_dtype(0)));
}

class DecodeRawKernel final : public RawKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckBytes(ctx, "bytes"));
    const Tensor& input = ctx.input(0);
    const auto strings = input.span<tstring>();
    const int64_t row = strings.empty() ? 0 : static_cast<int64_t>(strings[0].size());
    for (size_t i = 0; i < strings.size(); ++i) {
      if (static_cast<int64_t>(strings[i].size()) == row) continue;
      return errors::InvalidArgument(
          "strings must have the same length, but ", ElementName("bytes", input.shape(), 0),
          " has ", row, " bytes, and ",
          ElementName("bytes", input.shape(), static_cast<int64_t>(i)), " has ", strings[i].size());
    }
    const int64_t size = DataTypeSize(dtype());
    if (row % size != 0) {
      return errors::InvalidArgument("strings have ", row, " bytes, expected a multiple of ", size,
                                     ", the size of ", DataTypeString(dtype()));
    }
    TensorShape shape = input.shape();
    GRADFLOW_RETURN_IF_ERROR(shape.AddDimWithStatus(row / size));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    CopyRows(ctx, row, output);
    return absl::OkStatus();
  }
};

absl::Status DecodeRawShape(ShapeContext& c) {
  c.set_output(0, c.input(0).Concatenate(-1));
  return absl::OkStatus();
}

absl::Status CheckLength(int64_t length, DataType dtype) {
  const int64_t size = DataTypeSize(dtype);
  if (length > 0 && length % size == 0) return absl::OkStatus();
  return errors::InvalidArgument("fixed_length must be a positive multiple of ", size,
                                 ", the size of ", DataTypeString(dtype), ", but is ", length);
}

class DecodePaddedRawKernel final : public RawKernel {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckBytes(ctx, "input_bytes"));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t length, ctx.ScalarInt(1, "fixed_length"));
    GRADFLOW_RETURN_IF_ERROR(CheckLength(length, dtype()));
    TensorShape shape = ctx.input(0).shape();
    GRADFLOW_RETURN_IF_ERROR(shape.AddDimWithStatus(length / DataTypeSize(dtype())));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    CopyRows(ctx, length, output);
    return absl::OkStatus();
  }
};

absl::Status DecodePaddedRawShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  DataType dtype = DT_INVALID;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("out_type", &dtype));
  int64_t size = -1;
  std::vector<int64_t> length;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &length));
  if (known && length.size() == 1) {
    GRADFLOW_RETURN_IF_ERROR(CheckLength(length[0], dtype));
    size = length[0] / DataTypeSize(dtype);
  }
  c.set_output(0, c.input(0).Concatenate(size));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("DecodeRaw")
      .Group("parsing_ops")
      .Input("bytes: string")
      .Output("output: out_type")
      .Attr(
          "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, "
          "complex128, bool, bfloat16}")
      .Attr("little_endian: bool = true")
      .Shape(DecodeRawShape)
      .Doc(R"(Reads the bytes of strings as numbers.

bytes: Strings of one length.
output: The numbers, of the shape of `bytes` and one more dimension.
out_type: The type of the numbers.
little_endian: The order of the bytes of a number.)");
  registry.Kernel("DecodeRaw", MakeKernel<DecodeRawKernel>);
  registry.Op("DecodePaddedRaw")
      .Group("parsing_ops")
      .Input("input_bytes: string")
      .Input("fixed_length: int32")
      .Output("output: out_type")
      .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, bfloat16}")
      .Attr("little_endian: bool = true")
      .Shape(DecodePaddedRawShape)
      .Doc(
          R"(Reads the bytes of strings as numbers. Cuts longer strings, and fills up shorter ones with 0.

input_bytes: Strings of any length.
fixed_length: The number of bytes to read of each string, a scalar.
output: The numbers, of the shape of `input_bytes` and one more dimension.
out_type: The type of the numbers.
little_endian: The order of the bytes of a number.)");
  registry.Kernel("DecodePaddedRaw", MakeKernel<DecodePaddedRawKernel>);
}

}  // namespace gradflow::decode_raw
