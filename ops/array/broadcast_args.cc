// BroadcastArgs, BroadcastGradientArgs and UnravelIndex.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow::broadcast_args {
namespace {

// Two shapes. The shape with fewer dimensions is padded with leading ones.
struct Shapes {
  DimVector s0;
  DimVector s1;
};

absl::StatusOr<Shapes> ReadShapes(const KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "s0"));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "s1"));
  Shapes shapes;
  GRADFLOW_ASSIGN_OR_RETURN(shapes.s0, ctx.Ints(0, "s0"));
  GRADFLOW_ASSIGN_OR_RETURN(shapes.s1, ctx.Ints(1, "s1"));
  const Shapes given = shapes;
  const size_t rank = std::max(shapes.s0.size(), shapes.s1.size());
  for (DimVector* shape : {&shapes.s0, &shapes.s1}) {
    shape->insert(shape->begin(), rank - shape->size(), 1);
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t a = shapes.s0[d];
    const int64_t b = shapes.s1[d];
    if (a >= 0 && b >= 0 && (a == b || a == 1 || b == 1)) continue;
    return errors::InvalidArgument("shapes [", absl::StrJoin(given.s0, ","), "] and [",
                                   absl::StrJoin(given.s1, ","), "] cannot be broadcast together");
  }
  return shapes;
}

absl::Status OutputVector(KernelContext& ctx, int i, absl::Span<const int64_t> values) {
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i, {static_cast<int64_t>(values.size())}, &output));
  for (size_t k = 0; k < values.size(); ++k) WriteIndex(output, k, values[k]);
  return absl::OkStatus();
}

absl::Status CheckVectors(const ShapeContext& c) {
  for (int i = 0; i < 2; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 1));
  return absl::OkStatus();
}

absl::Status BroadcastArgsShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckVectors(c));
  const int64_t a = c.Dim(0, 0);
  const int64_t b = c.Dim(1, 0);
  c.set_output(0, {a < 0 || b < 0 ? -1 : std::max(a, b)});
  return absl::OkStatus();
}

absl::Status BroadcastArgs(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const Shapes shapes, ReadShapes(ctx));
  DimVector result;
  for (size_t d = 0; d < shapes.s0.size(); ++d) {
    result.push_back(shapes.s0[d] == 1 ? shapes.s1[d] : shapes.s0[d]);
  }
  return OutputVector(ctx, 0, result);
}

absl::Status GradientArgsShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckVectors(c));
  c.set_output(0, {-1});
  c.set_output(1, {-1});
  return absl::OkStatus();
}

absl::Status BroadcastGradientArgs(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const Shapes shapes, ReadShapes(ctx));
  // Equal shapes need no reduction, although reducing dimensions of size 1 would be harmless.
  const bool equal =
      ctx.input(0).NumElements() == ctx.input(1).NumElements() && shapes.s0 == shapes.s1;
  DimVector r0;
  DimVector r1;
  for (size_t d = 0; d < shapes.s0.size() && !equal; ++d) {
    if (shapes.s0[d] == 1) r0.push_back(static_cast<int64_t>(d));
    if (shapes.s1[d] == 1) r1.push_back(static_cast<int64_t>(d));
  }
  GRADFLOW_RETURN_IF_ERROR(OutputVector(ctx, 0, r0));
  return OutputVector(ctx, 1, r1);
}

// ---- UnravelIndex ----

absl::Status CheckUnravelShapes(const PartialTensorShape& indices, const PartialTensorShape& dims) {
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtMost("indices", indices, 1));
  return CheckRank("dims", dims, 1);
}

absl::Status UnravelIndexShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckUnravelShapes(c.input(0), c.input(1)));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  if (c.input(0).dims() == 0) {
    c.set_output(0, {c.Dim(1, 0)});
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                              PartialTensorShape::Make({c.Dim(1, 0), c.Dim(0, 0)}));
    c.set_output(0, std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status UnravelIndex(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckUnravelShapes(indices.shape(), ctx.input(1).shape()));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ctx.Ints(1, "dims"));
  int64_t size = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 1) {
      return errors::InvalidArgument("dims[", d, "] must be positive, but is ", dims[d]);
    }
    size = MultiplyWithoutOverflow(size, dims[d]);
    if (size < 0) return errors::InvalidArgument("the product of dims is more than 2^63 - 1");
  }
  TensorShape shape = indices.shape();
  shape.InsertDim(0, static_cast<int64_t>(dims.size()));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  const IndexReader reader(indices);
  const int64_t count = indices.NumElements();
  for (int64_t i = 0; i < count; ++i) {
    if (i % 4096 == 0 && ctx.ShouldStop()) return absl::CancelledError("the run is stopped");
    int64_t rest = reader[i];
    if (rest < 0 || rest >= size) {
      return errors::InvalidArgument(ElementName("indices", indices.shape(), i), " = ", rest,
                                     " is not in [0, ", size, "), the product of dims");
    }
    for (size_t d = dims.size(); d-- > 0;) {
      WriteIndex(output, static_cast<int64_t>(d) * count + i, rest % dims[d]);
      rest /= dims[d];
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("BroadcastArgs")
      .Group("array_ops")
      .Alias("BroadcastDynamicShape")
      .Input("s0: T")
      .Input("s1: T")
      .Output("r0: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(BroadcastArgsShape)
      .Doc(R"(Returns the shape that two shapes broadcast to.

s0: A vector: the first shape.
s1: A vector: the second shape.
r0: The shape that both shapes broadcast to by NumPy's rules.
T: The type of the shapes.)");
  registry.Kernel("BroadcastArgs", MakeFunctionKernel<BroadcastArgs>);

  registry.Op("BroadcastGradientArgs")
      .Group("array_ops")
      .Input("s0: T")
      .Input("s1: T")
      .Output("r0: T")
      .Output("r1: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(GradientArgsShape)
      .Doc(R"(Returns the axes over which gradients of broadcast tensors are to be summed.

s0: A vector: the first shape.
s1: A vector: the second shape.
r0: The axes of the broadcast shape along which the first shape has size 1; none if the shapes are
  equal.
r1: The axes along which the second shape has size 1.
T: The type of the shapes.)");
  registry.Kernel("BroadcastGradientArgs", MakeFunctionKernel<BroadcastGradientArgs>);

  registry.Op("UnravelIndex")
      .Group("array_ops")
      .Input("indices: Tidx")
      .Input("dims: Tidx")
      .Output("output: Tidx")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(UnravelIndexShape)
      .Doc(R"(Converts positions in a flattened tensor to indices in each dimension.

indices: A scalar or vector of positions.
dims: A vector: the shape of the tensor.
output: The indices: row d has the indices in dimension d. A vector if `indices` is a scalar.
Tidx: The type of the indices.)");
  registry.Kernel("UnravelIndex", MakeFunctionKernel<UnravelIndex>);
}

}  // namespace gradflow::broadcast_args
