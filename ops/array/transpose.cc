// Transpose, ConjugateTranspose and InvertPermutation.
#include <complex>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::transpose {
namespace {

// Returns `perm` if it is a permutation of [0, rank). Unlike the axes of other ops, its elements
// must not be negative.
absl::StatusOr<std::vector<int>> Permutation(absl::Span<const int64_t> perm, int rank) {
  if (perm.size() != static_cast<size_t>(rank)) {
    return errors::InvalidArgument("perm must have ", rank, " elements, one for each dimension of ",
                                   "x, but has ", perm.size());
  }
  std::vector<int> axes;
  std::vector<bool> seen(rank);
  for (const int64_t value : perm) {
    if (value < 0 || value >= rank) {
      return errors::InvalidArgument("perm ", value, " is out of range [0, ", rank, ")");
    }
    const int axis = static_cast<int>(value);
    if (seen[axis]) return errors::InvalidArgument("perm names dimension ", axis, " twice");
    seen[axis] = true;
    axes.push_back(axis);
  }
  return axes;
}

absl::Status TransposeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  std::vector<int64_t> perm;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &perm));
  const int64_t length = c.Dim(1, 0);
  PartialTensorShape x = c.input(0);
  if (x.unknown_rank()) {
    if (length < 0 || length > kMaxDims) return absl::OkStatus();
    x = PartialTensorShape::UnknownOfRank(static_cast<int>(length));
  }
  if (length >= 0 && length != x.dims()) {
    return errors::InvalidArgument("perm must have one element for each dimension of x, of shape ",
                                   x.DebugString(), ", but has ", length);
  }
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(x.dims());
  if (known) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> axes, Permutation(perm, x.dims()));
    for (int d = 0; d < x.dims(); ++d) shape.set_dim(d, x.dim_size(axes[d]));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status Transpose(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "perm"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector perm, ctx.Ints(1, "perm"));
  const TensorShape& x = ctx.input(0).shape();
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<int> axes, Permutation(perm, x.dims()));
  const DimVector strides = RowMajorStrides(x.dim_sizes());
  DimVector dims;
  DimVector from;
  for (const int axis : axes) {
    dims.push_back(x.dim_size(axis));
    from.push_back(strides[axis]);
  }
  return OutputStrided(ctx, 0, TensorShape(dims), dims, 0, {0, from});
}

// ---- ConjugateTranspose ----

template <typename T>
void Conjugate(const RunContext& run, Tensor* tensor) {
  const auto values = tensor->flat<T>();
  ParallelFor(run, values.size(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) values(i) = std::conj(values(i));
  });
}

absl::Status ConjugateTranspose(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(Transpose(ctx));
  if (!DataTypeIsComplex(ctx.input_dtype(0))) return absl::OkStatus();
  if (ctx.mutable_output(0)->SharesBufferWith(ctx.input(0))) {
    const Tensor shared = std::move(*ctx.mutable_output(0));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shared.shape(), &output));
    const DimVector strides = RowMajorStrides(shared.shape().dim_sizes());
    CopyStrided(ctx.run(), shared.shape().dim_sizes(), shared, {0, strides}, output, {0, strides});
  }
  if (ctx.input_dtype(0) == DT_COMPLEX64) {
    Conjugate<complex64>(ctx.run(), ctx.mutable_output(0));
  } else {
    Conjugate<complex128>(ctx.run(), ctx.mutable_output(0));
  }
  return absl::OkStatus();
}

// ---- InvertPermutation ----

absl::Status InvertPermutationShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  c.set_output(0, c.input(0).unknown_rank() ? PartialTensorShape::UnknownOfRank(1) : c.input(0));
  return absl::OkStatus();
}

absl::Status InvertPermutation(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "x"));
  const int64_t size = ctx.input(0).NumElements();
  if (size > std::numeric_limits<int32_t>::max() && ctx.input_dtype(0) == DT_INT32) {
    return errors::InvalidArgument("x has ", size, " elements, more than fit in an int32");
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
  const IndexReader x(ctx.input(0));
  const IndexReader y(*output);
  for (int64_t i = 0; i < size; ++i) WriteIndex(output, i, -1);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t value = x[i];
    if (value < 0 || value >= size) {
      return errors::InvalidArgument("x[", i, "] = ", value, " is not in [0, ", size, ")");
    }
    if (y[value] != -1) {
      return errors::InvalidArgument("x must be a permutation, but x[", y[value], "] and x[", i,
                                     "] are both ", value);
    }
    WriteIndex(output, value, i);
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Transpose")
      .Group("array_ops")
      .Input("x: T")
      .Input("perm: Tperm")
      .Output("y: T")
      .Attr("T: type")
      .Attr("Tperm: {int32, int64} = DT_INT32")
      .Shape(TransposeShape)
      .Doc(R"(Permutes the dimensions of a tensor.

x: The tensor.
perm: A vector: a permutation of the dimensions of `x`.
y: The tensor whose dimension i is dimension `perm[i]` of `x`.
T: The type of the tensor.
Tperm: The type of `perm`.)");
  registry.Kernel("Transpose", MakeFunctionKernel<Transpose>).Types("T", AllDataTypes());

  registry.Op("ConjugateTranspose")
      .Group("array_ops")
      .Input("x: T")
      .Input("perm: Tperm")
      .Output("y: T")
      .Attr("T: type")
      .Attr("Tperm: {int32, int64} = DT_INT32")
      .Shape(TransposeShape)
      .Doc(R"(Permutes the dimensions of a tensor, and conjugates complex numbers.

x: The tensor.
perm: A vector: a permutation of the dimensions of `x`.
y: The conjugate of the tensor whose dimension i is dimension `perm[i]` of `x`.
T: The type of the tensor.
Tperm: The type of `perm`.)");
  registry.Kernel("ConjugateTranspose", MakeFunctionKernel<ConjugateTranspose>)
      .Types("T", AllDataTypes());

  registry.Op("InvertPermutation")
      .Group("array_ops")
      .Input("x: T")
      .Output("y: T")
      .Attr("T: {int32, int64} = DT_INT32")
      .Shape(InvertPermutationShape)
      .Doc(R"(Returns the inverse of a permutation.

x: A vector: a permutation of its indices.
y: The permutation with `y[x[i]] = i`.
T: The type of `x`.)");
  registry.Kernel("InvertPermutation", MakeFunctionKernel<InvertPermutation>);
}

}  // namespace gradflow::transpose
