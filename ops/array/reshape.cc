// Reshape, ExpandDims and Squeeze.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::reshape {
namespace {

// Sets output 0 to input 0 with shape `shape`, sharing its memory.
absl::Status OutputReshaped(KernelContext& ctx, const TensorShape& shape) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor reshaped, ctx.input(0).Reshaped(shape));
  ctx.set_output(0, std::move(reshaped));
  return absl::OkStatus();
}

absl::Status ReshapeShape(ShapeContext& c) {
  std::vector<int64_t> dims;
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &dims));
  if (TensorShape input; known && c.input(0).AsTensorShape(&input)) {
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ResolveReshape(input, dims));
    c.set_output(0, shape);
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, c.ShapeFromInput(1, true));
  if (std::count(dims.begin(), dims.end(), -1) > 1) {
    return errors::InvalidArgument("shape ", shape.DebugString(),
                                   " must have at most one unknown dimension (-1)");
  }
  // A single unknown dimension follows from the other dimensions, unless one of them is 0.
  const absl::Span<const int64_t> sizes = shape.dim_sizes();
  if (TensorShape input; c.input(0).AsTensorShape(&input) &&
                         std::count(sizes.begin(), sizes.end(), -1) == 1 &&
                         std::count(sizes.begin(), sizes.end(), 0) == 0) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, ResolveReshape(input, sizes));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Reshape(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(1, "shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, ResolveReshape(ctx.input(0).shape(), dims));
  return OutputReshaped(ctx, shape);
}

absl::Status QuantizedReshapeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 2, 2));
  return ReshapeShape(c);
}

class QuantizedReshapeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 2);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    GRADFLOW_RETURN_IF_ERROR(Reshape(ctx));
    return OutputRange(ctx, 1, ranges[0]);
  }
  bool IsCheap() const override { return true; }

 private:
  RangeInputs ranges_;
};

absl::StatusOr<PartialTensorShape> ExpandShape(const PartialTensorShape& input, int64_t dim) {
  GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("dim", dim, input.dims() + 1));
  DimVector dims(input.dim_sizes().begin(), input.dim_sizes().end());
  dims.insert(dims.begin() + axis, 1);
  return PartialTensorShape::Make(dims);
}

absl::Status ExpandDimsShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("dim", c.input(1)));
  std::vector<int64_t> dim;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &dim));
  const PartialTensorShape& input = c.input(0);
  if (input.unknown_rank()) return absl::OkStatus();
  if (!known) {
    c.set_output(0, PartialTensorShape::UnknownOfRank(input.dims() + 1));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, ExpandShape(input, dim[0]));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ExpandDims(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(CheckOneElement("dim", ctx.input(1).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dim, ctx.Ints(1, "dim"));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                            ExpandShape(ctx.input(0).shape(), dim[0]));
  return OutputReshaped(ctx, TensorShape(shape.dim_sizes()));
}

// Returns the shape of `input` squeezed over `axes`. The rank of the result is unknown if it
// depends on unknown dimensions. REQUIRES: the rank of `input` is known
absl::StatusOr<PartialTensorShape> SqueezeShape(const PartialTensorShape& input,
                                                const std::vector<int64_t>& axes) {
  std::vector<bool> squeezed(input.dims());
  for (const int64_t axis : axes) {
    GRADFLOW_ASSIGN_OR_RETURN(const int d, CanonicalAxis("squeeze_dims", axis, input.dims()));
    if (input.dim_size(d) >= 0 && input.dim_size(d) != 1) {
      return errors::InvalidArgument("squeeze_dims names dimension ", d, " of shape ",
                                     input.DebugString(), ", which must be 1");
    }
    squeezed[d] = true;
  }
  DimVector dims;
  for (int d = 0; d < input.dims(); ++d) {
    const int64_t size = input.dim_size(d);
    if (axes.empty() && size < 0) return PartialTensorShape();
    if (axes.empty() ? size != 1 : !squeezed[d]) dims.push_back(size);
  }
  return PartialTensorShape(dims);
}

absl::Status SqueezeShapeFn(ShapeContext& c) {
  std::vector<int64_t> axes;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("squeeze_dims", &axes));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, SqueezeShape(c.input(0), axes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

class SqueezeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("squeeze_dims", &axes_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              SqueezeShape(ctx.input(0).shape(), axes_));
    return OutputReshaped(ctx, TensorShape(shape.dim_sizes()));
  }
  bool IsCheap() const override { return true; }

 private:
  std::vector<int64_t> axes_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("Reshape")
      .Group("array_ops")
      .Input("tensor: T")
      .Input("shape: Tshape")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(ReshapeShape)
      .Doc(R"(Changes the shape of a tensor, keeping its elements in row-major order.

The elements are not copied.

tensor: Any tensor.
shape: A vector: the new shape, for the same number of elements as `tensor`. One dimension may be
  -1: its size is inferred. If another dimension is 0, the size is inferred from the products of the
  dimensions of both shapes that are not 0.
output: The reshaped tensor.
T: The type of `tensor`.
Tshape: The type of `shape`.)");
  registry.Kernel("Reshape", MakeFunctionKernel<Reshape, /*Cheap=*/true>)
      .Types("T", AllDataTypes());

  registry.Op("QuantizedReshape")
      .Group("array_ops")
      .Input("tensor: T")
      .Input("shape: Tshape")
      .Input("input_min: float")
      .Input("input_max: float")
      .Output("output: T")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr("T: type")
      .Attr("Tshape: {int32, int64} = DT_INT32")
      .Shape(QuantizedReshapeShape)
      .Doc(R"(Changes the shape of a quantized tensor, as `Reshape` does.

The elements are not copied.

tensor: Integers.
shape: A vector: the new shape. One dimension may be -1: its size is inferred.
input_min: A scalar: the number of the lowest integer of `tensor`.
input_max: A scalar: the number of the highest integer of `tensor`.
output: The reshaped tensor.
output_min: `input_min`.
output_max: `input_max`.
T: The type of `tensor`.
Tshape: The type of `shape`.)");
  registry.Kernel("QuantizedReshape", MakeKernel<QuantizedReshapeKernel>)
      .Types("T", DataTypesOf(QuantizedTypes()));

  registry.Op("ExpandDims")
      .Group("array_ops")
      .Rename("dim", "axis")
      .Input("input: T")
      .Input("dim: Tdim")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tdim: {int32, int64} = DT_INT32")
      .Shape(ExpandDimsShape)
      .Doc(R"(Inserts a dimension of size 1 into the shape of a tensor.

The elements are not copied.

input: Any tensor.
dim: One integer: the index of the new dimension in the result. Negative values count from the end:
  -1 is the last dimension.
output: The tensor with one more dimension.
T: The type of `input`.
Tdim: The type of `dim`.)");
  registry.Kernel("ExpandDims", MakeFunctionKernel<ExpandDims, /*Cheap=*/true>)
      .Types("T", AllDataTypes());

  registry.Op("Squeeze")
      .Group("array_ops")
      .Rename("squeeze_dims", "axis")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("squeeze_dims: list(int) >= 0 = []")
      .Shape(SqueezeShapeFn)
      .Doc(R"(Removes dimensions of size 1 from the shape of a tensor.

The elements are not copied.

input: Any tensor.
output: The tensor with fewer dimensions.
T: The type of `input`.
squeeze_dims: The dimensions to remove, each of size 1. Negative values count from the end. If
  empty, removes all dimensions of size 1.)");
  registry.Kernel("Squeeze", MakeKernel<SqueezeKernel>).Types("T", AllDataTypes());
}

}  // namespace gradflow::reshape
