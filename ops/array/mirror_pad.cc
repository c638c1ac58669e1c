// MirrorPad and MirrorPadGrad.
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array/paddings.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::mirror_pad {
namespace {

// Reads the attribute mode. Sets *edge to 1 for REFLECT, which does not repeat the element at the
// edge, and to 0 for SYMMETRIC, which does.
template <typename Source>
absl::Status ReadMode(const Source& source, int64_t* edge) {
  std::string mode;
  GRADFLOW_RETURN_IF_ERROR(source.GetAttr("mode", &mode));
  *edge = mode == "REFLECT" ? 1 : 0;
  return absl::OkStatus();
}

// Returns INVALID_ARGUMENT unless each dimension of `shape`, the shape without padding, has enough
// elements to mirror.
absl::Status CheckMirrored(const PartialTensorShape& shape, const Paddings& paddings,
                           int64_t edge) {
  for (int d = 0; d < shape.dims(); ++d) {
    const int64_t size = shape.dim_size(d);
    const int64_t limit = size - edge;
    if (size < 0 || (paddings[d].before <= limit && paddings[d].after <= limit)) continue;
    return errors::InvalidArgument("paddings[", d, "] must be at most ", limit, ", as dimension ",
                                   d, " without padding has size ", size, ", but are ",
                                   paddings[d].before, " and ", paddings[d].after);
  }
  return absl::OkStatus();
}

// Returns the shape that becomes `padded` when it is padded by `paddings`.
absl::StatusOr<PartialTensorShape> UnpaddedShape(PartialTensorShape padded,
                                                 const Paddings& paddings) {
  for (int d = 0; d < padded.dims(); ++d) {
    const int64_t size = padded.dim_size(d);
    if (size < 0) continue;
    if (paddings[d].before > size || paddings[d].after > size - paddings[d].before) {
      return errors::InvalidArgument("paddings[", d, "] are ", paddings[d].before, " and ",
                                     paddings[d].after, ", but dimension ", d,
                                     " of input has size ", size);
    }
    padded.set_dim(d, size - paddings[d].before - paddings[d].after);
  }
  return padded;
}

// IsGradient is true for MirrorPadGrad.
template <bool IsGradient>
absl::Status MirrorPadShape(ShapeContext& c) {
  int64_t edge = 0;
  GRADFLOW_RETURN_IF_ERROR(ReadMode(c, &edge));
  GRADFLOW_ASSIGN_OR_RETURN(const KnownPaddings paddings, ReadPaddings(c, 1));
  const PartialTensorShape& input = paddings.input;
  if (input.unknown_rank()) return absl::OkStatus();
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(input.dims());
  if (paddings.known && IsGradient) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, UnpaddedShape(input, paddings.rows));
    GRADFLOW_RETURN_IF_ERROR(CheckMirrored(shape, paddings.rows, edge));
  } else if (paddings.known) {
    GRADFLOW_RETURN_IF_ERROR(CheckMirrored(input, paddings.rows, edge));
    GRADFLOW_ASSIGN_OR_RETURN(shape, PaddedShape(input, paddings.rows));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// A border of a dimension: `count` elements from position `offset` on. They mirror the elements
// from position `image` on, backwards.
struct Border {
  int64_t count;
  int64_t offset;
  int64_t image;
};

// Returns the borders before and after a dimension of `size` elements without padding. Positions
// are along this dimension.
std::pair<Border, Border> Borders(const Padding& padding, int64_t size, int64_t edge) {
  const int64_t end = padding.before + size;
  return {{padding.before, 0, 2 * padding.before - 1 + edge}, {padding.after, end, end - 1 - edge}};
}

StridedLoop::Operand Backwards(int64_t offset, DimVector strides, int d) {
  strides[d] = -strides[d];
  return {offset, std::move(strides)};
}

class MirrorPadKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return ReadMode(construction, &edge_);
  }

  // Copies the input to the interior of the output. Then processes the dimensions from last to
  // first: copies the borders of a dimension from its interior, which the later dimensions have
  // completed.
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const Paddings paddings, ReadPaddings(ctx, 1, "paddings"));
    GRADFLOW_RETURN_IF_ERROR(CheckMirrored(input.shape(), paddings, edge_));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape padded,
                              PaddedShape(input.shape(), paddings));
    const TensorShape shape(padded.dim_sizes());
    if (shape == input.shape()) {
      ctx.set_output(0, input);
      return absl::OkStatus();
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const DimVector strides = RowMajorStrides(shape.dim_sizes());
    DimVector dims(input.shape().dim_sizes().begin(), input.shape().dim_sizes().end());
    int64_t interior = 0;
    for (int d = 0; d < input.dims(); ++d) interior += paddings[d].before * strides[d];
    CopyStrided(ctx.run(), dims, input, {0, RowMajorStrides(dims)}, output, {interior, strides});
    for (int d = input.dims() - 1; d >= 0; --d) {
      interior -= paddings[d].before * strides[d];
      const auto [before, after] = Borders(paddings[d], dims[d], edge_);
      for (const Border& border : {before, after}) {
        dims[d] = border.count;
        CopyStrided(ctx.run(), dims, *output,
                    Backwards(interior + border.image * strides[d], strides, d), output,
                    {interior + border.offset * strides[d], strides});
      }
      dims[d] = shape.dim_size(d);
    }
    return absl::OkStatus();
  }

 private:
  int64_t edge_ = 0;
};

class MirrorPadGradKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    add_ = FindAccumulation(Accumulation::kAdd, construction.input_type(0));
    return ReadMode(construction, &edge_);
  }

  // Reverses MirrorPad: adds the borders to the interior, from the first dimension to the last.
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    GRADFLOW_ASSIGN_OR_RETURN(const Paddings paddings, ReadPaddings(ctx, 1, "paddings"));
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape unpadded,
                              UnpaddedShape(input.shape(), paddings));
    GRADFLOW_RETURN_IF_ERROR(CheckMirrored(unpadded, paddings, edge_));
    const TensorShape shape(unpadded.dim_sizes());
    if (shape == input.shape()) {
      ctx.set_output(0, input);
      return absl::OkStatus();
    }
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(input.dtype(), input.shape(), &sums));
    DimVector dims(input.shape().dim_sizes().begin(), input.shape().dim_sizes().end());
    const DimVector strides = RowMajorStrides(dims);
    CopyStrided(ctx.run(), dims, input, {0, strides}, &sums, {0, strides});
    int64_t interior = 0;
    for (int d = 0; d < input.dims(); ++d) {
      const auto [before, after] = Borders(paddings[d], shape.dim_size(d), edge_);
      for (const Border& border : {before, after}) {
        dims[d] = border.count;
        AccumulateStrided(ctx.run(), add_, dims, sums,
                          {interior + border.offset * strides[d], strides}, &sums,
                          Backwards(interior + border.image * strides[d], strides, d));
      }
      dims[d] = shape.dim_size(d);
      interior += paddings[d].before * strides[d];
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    CopyStrided(ctx.run(), dims, sums, {interior, strides}, output, {0, RowMajorStrides(dims)});
    return absl::OkStatus();
  }

 private:
  int64_t edge_ = 0;
  AccumulateFn add_ = nullptr;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("MirrorPad")
      .Group("array_ops")
      .Input("input: T")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Shape(MirrorPadShape<false>)
      .Doc(R"(Pads a tensor with mirror images of itself.

input: The tensor.
paddings: A matrix with a row [before, after] for each dimension: the number of elements to add
  before the first and after the last. Each number is at most the size of the dimension, less 1 for
  "REFLECT".
output: The padded tensor.
T: The type of `input`.
Tpaddings: The type of `paddings`.
mode: "REFLECT" mirrors at the first and last elements, which are not repeated: [1, 2, 3], padded by
  2 and 2, becomes [3, 2, 1, 2, 3, 2, 1]. "SYMMETRIC" mirrors at the borders: [2, 1, 1, 2, 3, 3,
  2].)");
  registry.Kernel("MirrorPad", MakeKernel<MirrorPadKernel>);

  registry.Op("MirrorPadGrad")
      .Group("array_ops")
      .Input("input: T")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Shape(MirrorPadShape<true>)
      .Doc(R"(Returns the gradient of `MirrorPad`: adds the padding to the elements that it mirrors.

input: The gradient of the padded tensor.
paddings: See `MirrorPad`.
output: The gradient of the tensor without padding.
T: The type of `input`, a number type.
Tpaddings: The type of `paddings`.
mode: See `MirrorPad`.)");
  registry.Kernel("MirrorPadGrad", MakeKernel<MirrorPadGradKernel>)
      .Types("T", AccumulationTypes(Accumulation::kAdd));
}

}  // namespace gradflow::mirror_pad
