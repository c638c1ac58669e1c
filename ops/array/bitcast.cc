// Bitcast.
#include <cstring>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"

namespace gradflow::bitcast {
namespace {

// Returns the shape of a tensor of shape `shape` after its elements change from `from_type` to
// `to_type`.
absl::StatusOr<PartialTensorShape> BitcastShape(const PartialTensorShape& shape, DataType from_type,
                                                DataType to_type) {
  const int from = DataTypeSize(from_type);
  const int to = DataTypeSize(to_type);
  if (from == to || shape.dims() < 0) return shape;
  DimVector dims(shape.dim_sizes().begin(), shape.dim_sizes().end());
  if (from > to) {
    dims.push_back(from / to);
    return PartialTensorShape::Make(dims);
  }
  const int last = shape.dims() - 1;
  if (last < 0 || (shape.dim_size(last) >= 0 && shape.dim_size(last) != to / from)) {
    return errors::InvalidArgument("input has shape ", shape.DebugString(),
                                   ", expected a last dimension of ", to / from, " to bitcast ",
                                   DataTypeString(from_type), " to ", DataTypeString(to_type));
  }
  dims.pop_back();
  return PartialTensorShape::Make(dims);
}

absl::Status Shape(ShapeContext& c) {
  DataType from;
  DataType to;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("T", &from));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("type", &to));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BitcastShape(c.input(0), from, to));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Bitcast(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const DataType dtype = ctx.expected_output_dtype(0);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial,
                            BitcastShape(PartialTensorShape(input.shape()), input.dtype(), dtype));
  const TensorShape shape(partial.dim_sizes());
  Tensor output;
  if (output.BitcastFrom(input, dtype, shape).ok()) {
    ctx.set_output(0, std::move(output));
    return absl::OkStatus();
  }
  // A slice may not be aligned for the type.
  Tensor* copy = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &copy));
  if (input.TotalBytes() != copy->TotalBytes()) {
    return errors::InvalidArgument("cannot bitcast ", DataTypeString(input.dtype()), " to ",
                                   DataTypeString(dtype));
  }
  const auto bytes = static_cast<int64_t>(input.TotalBytes());
  ParallelFor(ctx, bytes, BlockSizeForCost(0.1), [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(copy->raw_data()) + begin,
                static_cast<const char*>(input.raw_data()) + begin,
                static_cast<size_t>(end - begin));
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Bitcast")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: type")
      .Attr(
          "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, "
          "int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
      .Attr(
          "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, "
          "int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
      .Shape(Shape)
      .Doc(R"(Takes the bytes of a tensor as elements of another type.

If elements of `type` are smaller, each element of `input` becomes several elements, in a new last
dimension. If they are larger, the elements of the last dimension become one element and the
dimension is removed; its size must be the ratio of the element sizes. The output shares the memory
of the input if the memory is aligned for `type`. Bytes are in little-endian order.

input: A tensor.
output: The elements.
T: The type of `input`.
type: The type of `output`.)");
  registry.Kernel("Bitcast", MakeFunctionKernel<Bitcast, /*Cheap=*/false>);
}

}  // namespace gradflow::bitcast
