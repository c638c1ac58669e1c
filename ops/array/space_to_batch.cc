// SpaceToBatch, SpaceToBatchND, BatchToSpace and BatchToSpaceND.
#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/array/paddings.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::space_to_batch {
namespace {

// The ops move elements between a batch of images, [batch, space..., rest...], and a larger batch
// of smaller images, [blocks * batch, space / block..., rest...]. Small image (i, b) consists of
// every block-th element of image b, starting at position i of each block.

// Checks the block sizes. Returns their product.
absl::StatusOr<int64_t> NumPositions(absl::string_view name, absl::Span<const int64_t> blocks) {
  int64_t product = 1;
  for (size_t d = 0; d < blocks.size(); ++d) {
    if (blocks[d] < 1) {
      return errors::InvalidArgument(name, "[", d, "] must be positive, but is ", blocks[d]);
    }
    product = MultiplyWithoutOverflow(product, blocks[d]);
    if (product < 0) {
      return errors::InvalidArgument("the product of ", name, " is more than 2^63 - 1");
    }
  }
  return product;
}

// The direction of an op, which determines the name of its argument with two columns.
struct Direction {
  bool to_batch;
  const char* pads() const { return to_batch ? "paddings" : "crops"; }
};

// Returns the shape of the output for an input of known rank.
absl::StatusOr<PartialTensorShape> MovedShape(Direction direction, const PartialTensorShape& input,
                                              absl::Span<const int64_t> blocks,
                                              const Paddings& pads) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t positions, NumPositions("block_shape", blocks));
  DimVector dims(input.dim_sizes().begin(), input.dim_sizes().end());
  if (dims[0] >= 0 && direction.to_batch) {
    dims[0] = MultiplyWithoutOverflow(dims[0], positions);
    if (dims[0] < 0) {
      return errors::InvalidArgument("the batch of input, of shape ", input.DebugString(),
                                     ", times the product of block_shape is more than 2^63 - 1");
    }
  } else if (dims[0] >= 0) {
    if (dims[0] % positions != 0) {
      return errors::InvalidArgument("the batch of input, of shape ", input.DebugString(),
                                     ", must be a multiple of ", positions,
                                     ", the product of block_shape");
    }
    dims[0] /= positions;
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    int64_t& size = dims[i + 1];
    if (size < 0) continue;
    const auto [before, after] = pads[i];
    if (direction.to_batch) {
      if (__builtin_add_overflow(size, before, &size) ||
          __builtin_add_overflow(size, after, &size)) {
        return errors::InvalidArgument("dimension ", i + 1, " of input, of shape ",
                                       input.DebugString(),
                                       ", with paddings is more than 2^63 - 1");
      }
      if (size % blocks[i] != 0) {
        return errors::InvalidArgument(
            "dimension ", i + 1, " of input, of shape ", input.DebugString(), ", with paddings is ",
            size, ", which must be a multiple of block_shape[", i, "] = ", blocks[i]);
      }
      size /= blocks[i];
      continue;
    }
    size = MultiplyWithoutOverflow(size, blocks[i]);
    if (size < 0 || before > size || after > size - before) {
      return errors::InvalidArgument(
          "dimension ", i + 1, " of input, of shape ", input.DebugString(), ", times block_shape[",
          i, "] = ", blocks[i], size < 0 ? " is more than 2^63 - 1" : " is less than its crops, ",
          size < 0 ? "" : absl::StrCat(before, " and ", after));
    }
    size -= before + after;
  }
  return PartialTensorShape::Make(dims);
}

absl::Status CheckInputRank(const PartialTensorShape& input, int64_t spatial) {
  if (input.unknown_rank() || input.dims() > spatial) return absl::OkStatus();
  return errors::InvalidArgument("input must have rank at least ", spatial + 1,
                                 ", a batch and the ", spatial,
                                 " dimensions of block_shape, but has shape ", input.DebugString());
}

// ---- The n-dimensional ops ----

template <bool ToBatch>
absl::Status NdShape(ShapeContext& c) {
  constexpr Direction kDirection = {ToBatch};
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  const int64_t spatial = c.Dim(1, 0);
  if (spatial > kMaxDims) {
    return errors::InvalidArgument("block_shape must have at most ", kMaxDims,
                                   " elements, but has ", spatial);
  }
  const PartialTensorShape rows =
      spatial < 0 ? PartialTensorShape() : PartialTensorShape::UnknownOfRank(spatial);
  GRADFLOW_RETURN_IF_ERROR(CheckPaddingsShape(kDirection.pads(), c.input(2), "block_shape", rows));
  GRADFLOW_RETURN_IF_ERROR(CheckInputRank(c.input(0), spatial));
  std::vector<int64_t> blocks;
  std::vector<int64_t> values;
  GRADFLOW_ASSIGN_OR_RETURN(const bool blocks_known, c.IntsFromInput(1, &blocks));
  GRADFLOW_ASSIGN_OR_RETURN(const bool pads_known, c.IntsFromInput(2, &values));
  GRADFLOW_ASSIGN_OR_RETURN(const Paddings pads, MakePaddings(kDirection.pads(), values));
  const PartialTensorShape& input = c.input(0);
  if (input.unknown_rank()) return absl::OkStatus();
  if (blocks_known && pads_known) {
    GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape,
                              MovedShape(kDirection, input, blocks, pads));
    c.set_output(0, std::move(shape));
    return absl::OkStatus();
  }
  // The dimensions after the spatial dimensions are unchanged.
  PartialTensorShape shape = PartialTensorShape::UnknownOfRank(input.dims());
  if (spatial >= 0) {
    for (int d = static_cast<int>(spatial) + 1; d < input.dims(); ++d) {
      shape.set_dim(d, input.dim_size(d));
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The output positions of a dimension that have an element of the input, and the first of these
// elements. Position o of the small image, at position `at` within the block, is element o * block
// + at - before of the large image.
struct CoveredRange {
  int64_t small = 0;
  int64_t large = 0;
  int64_t count = 0;
};
CoveredRange Overlap(int64_t small_size, int64_t large_size, int64_t block, int64_t at,
                     int64_t before) {
  CoveredRange range;
  const int64_t shift = before - at;
  // The first o with o * block >= shift, and the first o with o * block - shift >= large_size.
  range.small = shift <= 0 ? 0 : NumBlocks(shift, block);
  const int64_t limit = large_size + shift <= 0 ? 0 : NumBlocks(large_size + shift, block);
  range.count = std::max<int64_t>(0, std::min(limit, small_size) - range.small);
  range.large = range.small * block - shift;
  return range;
}

absl::Status Move(KernelContext& ctx, Direction direction, const DimVector& blocks,
                  const Paddings& pads) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape moved,
                            MovedShape(direction, input.shape(), blocks, pads));
  const TensorShape shape(moved.dim_sizes());
  const bool pads_any = std::any_of(pads.begin(), pads.end(),
                                    [](const Padding& p) { return p.before + p.after > 0; });
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t positions, NumPositions("block_shape", blocks));
  if (positions == 1 && !pads_any) {
    ctx.set_output(0, input);
    return absl::OkStatus();
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  if (shape.num_elements() == 0) return absl::OkStatus();
  if (pads_any && direction.to_batch && DataTypeIsPlainBytes(input.dtype())) {
    SetZero(ctx.run(), output);
  }
  if (input.NumElements() == 0) return absl::OkStatus();

  const TensorShape& large = direction.to_batch ? input.shape() : shape;
  const TensorShape& small = direction.to_batch ? shape : input.shape();
  const DimVector large_strides = RowMajorStrides(large.dim_sizes());
  const DimVector small_strides = RowMajorStrides(small.dim_sizes());
  const int spatial = static_cast<int>(blocks.size());
  for (int64_t position = 0; position < positions && !ctx.ShouldStop(); ++position) {
    DimVector dims(large.dim_sizes().begin(), large.dim_sizes().end());
    StridedLoop::Operand in_large = {0, large_strides};
    StridedLoop::Operand in_small = {position * dims[0] * small_strides[0], small_strides};
    int64_t rest = position;
    for (int i = spatial - 1; i >= 0; --i) {
      const int64_t at = rest % blocks[i];
      rest /= blocks[i];
      const CoveredRange range =
          Overlap(small.dim_size(i + 1), large.dim_size(i + 1), blocks[i], at, pads[i].before);
      dims[i + 1] = range.count;
      in_small.offset += range.small * small_strides[i + 1];
      in_large.offset += range.large * large_strides[i + 1];
      // The stride of a single element is not used and may overflow.
      in_large.strides[i + 1] = range.count > 1 ? large_strides[i + 1] * blocks[i] : 0;
    }
    if (direction.to_batch) {
      CopyStrided(ctx.run(), dims, input, std::move(in_large), output, std::move(in_small));
    } else {
      CopyStrided(ctx.run(), dims, input, std::move(in_small), output, std::move(in_large));
    }
  }
  return absl::OkStatus();
}

template <bool ToBatch>
absl::Status MoveNd(KernelContext& ctx) {
  constexpr Direction kDirection = {ToBatch};
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "block_shape"));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector blocks, ctx.Ints(1, "block_shape"));
  const int spatial = static_cast<int>(blocks.size());
  GRADFLOW_RETURN_IF_ERROR(CheckPaddingsShape(kDirection.pads(), ctx.input(2).shape(),
                                              "block_shape",
                                              PartialTensorShape::UnknownOfRank(spatial)));
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("input", ctx.input(0).shape(), 1));
  GRADFLOW_RETURN_IF_ERROR(CheckInputRank(ctx.input(0).shape(), spatial));
  GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, ctx.Ints(2, kDirection.pads()));
  GRADFLOW_ASSIGN_OR_RETURN(const Paddings pads, MakePaddings(kDirection.pads(), values));
  return Move(ctx, kDirection, blocks, pads);
}

// ---- The ops on images, with square blocks ----

absl::Status CheckImagePads(Direction direction, const PartialTensorShape& pads) {
  return CheckPaddingsShape(direction.pads(), pads, "an image", {-1, -1});
}

template <bool ToBatch>
absl::Status ImagesShape(ShapeContext& c) {
  constexpr Direction kDirection = {ToBatch};
  int64_t block;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("block_size", &block));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 4));
  GRADFLOW_RETURN_IF_ERROR(CheckImagePads(kDirection, c.input(1)));
  std::vector<int64_t> values;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &values));
  GRADFLOW_ASSIGN_OR_RETURN(const Paddings pads, MakePaddings(kDirection.pads(), values));
  PartialTensorShape shape = {-1, -1, -1, c.Dim(0, 3)};
  if (known && !c.input(0).unknown_rank()) {
    GRADFLOW_ASSIGN_OR_RETURN(shape, MovedShape(kDirection, c.input(0), {block, block}, pads));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <bool ToBatch>
class ImagesKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("block_size", &block_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    constexpr Direction kDirection = {ToBatch};
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "input", 4));
    GRADFLOW_RETURN_IF_ERROR(CheckImagePads(kDirection, ctx.input(1).shape()));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector values, ctx.Ints(1, kDirection.pads()));
    GRADFLOW_ASSIGN_OR_RETURN(const Paddings pads, MakePaddings(kDirection.pads(), values));
    return Move(ctx, kDirection, {block_, block_}, pads);
  }

 private:
  int64_t block_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("SpaceToBatchND")
      .Group("array_ops")
      .Input("input: T")
      .Input("block_shape: Tblock_shape")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tblock_shape: {int32, int64} = DT_INT32")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Shape(NdShape<true>)
      .Doc(R"(Moves the positions within blocks of space to the batch.

The dimensions of space follow the first dimension. There is one for each element of `block_shape`.
They are padded with zeros and divided into blocks. For each position within a block, the result has
a batch of the elements at this position of all blocks.

input: A tensor of shape [batch, space..., rest...].
block_shape: A vector: the size of the blocks in each dimension of space.
paddings: A matrix with a row [before, after] for each dimension of space: the number of zeros to
  add. The padded size must be a multiple of the size of the blocks.
output: A tensor of shape [positions * batch, padded space / blocks..., rest...].
T: The type of `input`.
Tblock_shape: The type of `block_shape`.
Tpaddings: The type of `paddings`.)");
  registry.Kernel("SpaceToBatchND", MakeFunctionKernel<MoveNd<true>>);

  registry.Op("BatchToSpaceND")
      .Group("array_ops")
      .Input("input: T")
      .Input("block_shape: Tblock_shape")
      .Input("crops: Tcrops")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tblock_shape: {int32, int64} = DT_INT32")
      .Attr("Tcrops: {int32, int64} = DT_INT32")
      .Shape(NdShape<false>)
      .Doc(R"(Moves parts of the batch to positions within blocks of space.

The inverse of `SpaceToBatchND`.

input: A tensor of shape [positions * batch, space..., rest...].
block_shape: A vector: the size of the blocks in each dimension of space. Their product is the
  number of positions.
crops: A matrix with a row [before, after] for each dimension of space: the number of elements to
  remove from the result.
output: A tensor of shape [batch, space * blocks - crops..., rest...].
T: The type of `input`.
Tblock_shape: The type of `block_shape`.
Tcrops: The type of `crops`.)");
  registry.Kernel("BatchToSpaceND", MakeFunctionKernel<MoveNd<false>>);

  registry.Op("SpaceToBatch")
      .Group("array_ops")
      .Input("input: T")
      .Input("paddings: Tpaddings")
      .Output("output: T")
      .Attr("T: type")
      .Attr("Tpaddings: {int32, int64} = DT_INT32")
      .Attr("block_size: int >= 2")
      .Shape(ImagesShape<true>)
      .Doc(R"(Moves the positions within square blocks of images to the batch.

`SpaceToBatchND` for images.

input: Images of shape [batch, height, width, depth].
paddings: A matrix of rows [before, after] for height and width: the number of zeros to add. The
  padded sizes must be multiples of `block_size`.
output: Images of shape [block_size^2 * batch, padded height / block_size, padded width /
  block_size, depth].
T: The type of `input`.
Tpaddings: The type of `paddings`.
block_size: The height and width of a block.)");
  registry.Kernel("SpaceToBatch", MakeKernel<ImagesKernel<true>>);

  registry.Op("BatchToSpace")
      .Group("array_ops")
      .Input("input: T")
      .Input("crops: Tidx")
      .Output("output: T")
      .Attr("T: type")
      .Attr("block_size: int >= 2")
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(ImagesShape<false>)
      .Doc(R"(Moves parts of a batch of images to positions within square blocks.

The inverse of `SpaceToBatch`.

input: Images of shape [block_size^2 * batch, height, width, depth].
crops: A matrix of rows [before, after] for height and width: the number of elements to remove from
  the result.
output: Images of shape [batch, height * block_size - crops, width * block_size - crops, depth].
T: The type of `input`.
block_size: The height and width of a block.
Tidx: The type of `crops`.)");
  registry.Kernel("BatchToSpace", MakeKernel<ImagesKernel<false>>);
}

}  // namespace gradflow::space_to_batch
