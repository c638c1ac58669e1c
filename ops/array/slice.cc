// Slice.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::slice {
namespace {

// The elements of an input, if they are known.
using KnownInts = std::optional<absl::Span<const int64_t>>;

// Returns "in [0, 3]" for limit 3, or "at least 0" if the limit is unknown.
std::string UpTo(int64_t limit, bool known) {
  return known ? absl::StrCat("in [0, ", limit, "]") : "at least 0";
}

absl::StatusOr<PartialTensorShape> SliceShape(const PartialTensorShape& input, KnownInts begin,
                                              KnownInts size) {
  for (const auto& [name, values] : {std::pair("begin", begin), std::pair("size", size)}) {
    if (values.has_value() && values->size() != static_cast<size_t>(input.dims())) {
      return errors::InvalidArgument(name, " must have one element for each dimension of input, ",
                                     "of shape ", input.DebugString(), ", but has ",
                                     values->size());
    }
  }
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(input.dims());
  for (int d = 0; d < input.dims(); ++d) {
    const int64_t dim = input.dim_size(d);
    const int64_t start = begin.has_value() ? (*begin)[d] : 0;
    if (start < 0 || (dim >= 0 && start > dim)) {
      return errors::InvalidArgument("begin[", d, "] must be ", UpTo(dim, dim >= 0), ", but is ",
                                     start);
    }
    if (!size.has_value()) continue;
    const int64_t wanted = (*size)[d];
    if (wanted < -1 || (dim >= 0 && wanted > dim - start)) {
      return errors::InvalidArgument("size[", d, "] must be ", UpTo(dim - start, dim >= 0),
                                     ", or -1, but is ", wanted);
    }
    if (wanted >= 0) {
      shape.set_dim(d, wanted);
    } else if (dim >= 0 && begin.has_value()) {
      shape.set_dim(d, dim - start);
    }
  }
  return PartialTensorShape::Make(shape.dim_sizes());
}

absl::Status SliceShapeFn(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  std::vector<int64_t> begin;
  std::vector<int64_t> size;
  GRADFLOW_ASSIGN_OR_RETURN(const bool begin_known, c.IntsFromInput(1, &begin));
  GRADFLOW_ASSIGN_OR_RETURN(const bool size_known, c.IntsFromInput(2, &size));

  PartialTensorShape input = c.input(0);
  for (int i = 1; i <= 2; ++i) {
    const int64_t rank = c.Dim(i, 0);
    if (rank < 0) continue;
    if (rank > kMaxDims || (!input.unknown_rank() && input.dims() != rank)) {
      return errors::InvalidArgument(c.input_name(i), " has ", rank,
                                     " elements, one for each dimension, but input has shape ",
                                     input.DebugString());
    }
    if (input.unknown_rank()) input = PartialTensorShape::UnknownOfRank(static_cast<int>(rank));
  }
  if (input.unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                            SliceShape(input, begin_known ? KnownInts(begin) : std::nullopt,
                                       size_known ? KnownInts(size) : std::nullopt));
  if (const PartialTensorShape sizes = c.input_as_shape(2);
      !size_known && sizes.dims() == shape.dims()) {
    shape = sizes;
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Slice(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "begin"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "size"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector begin, ctx.Ints(1, "begin"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector size, ctx.Ints(2, "size"));
  const TensorShape& input = ctx.input(0).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape sliced, SliceShape(input, begin, size));
  const TensorShape shape(sliced.dim_sizes());
  StridedLoop::Operand from = {0, RowMajorStrides(input.dim_sizes())};
  for (int d = 0; d < input.dims(); ++d) from.offset += begin[d] * from.strides[d];
  return OutputStrided(ctx, 0, shape, shape.dim_sizes(), 0, std::move(from));
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Slice")
      .Group("array_ops")
      .Input("input: T")
      .Input("begin: Index")
      .Input("size: Index")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Index: {int32, int64}")
      .Shape(SliceShapeFn)
      .Doc(R"(Returns a slice of a tensor.

input: The tensor.
begin: A vector: the first index of the slice in each dimension.
size: A vector: the size of the slice in each dimension, or -1 for all remaining elements. The slice
  must lie within `input`.
output: The slice.
T: The type of `input`.
Index: The type of `begin` and `size`.)");
  registry.Kernel("Slice", MakeFunctionKernel<Slice>).Types("T", AllDataTypes());
}

}  // namespace gradflow::slice
