// SpaceToDepth and DepthToSpace.
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::space_to_depth {
namespace {

// The rank of images in a data format, and the indices of their dimensions. "NCHW_VECT_C" has
// vectors of 4 channels as the last dimension.
struct ImageDims {
  int rank = 4;
  int height = 1;
  int width = 2;
  int depth = 3;
};

struct Blocks {
  int64_t size = 0;
  ImageDims layout;

  template <typename Source>
  absl::Status Read(const Source& source) {
    std::string data_format;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("block_size", &size));
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("data_format", &data_format));
    if (data_format != "NHWC") layout = {data_format == "NCHW" ? 4 : 5, 2, 3, 1};
    return absl::OkStatus();
  }
};

// Returns the shape of the output for images of shape `input`.
absl::StatusOr<PartialTensorShape> MovedShape(const Blocks& blocks, bool to_depth,
                                              const PartialTensorShape& input) {
  const auto [rank, height, width, depth] = blocks.layout;
  GRADFLOW_RETURN_IF_ERROR(CheckRank("input", input, rank));
  if (rank == 5 && input.dim_size(4) >= 0 && input.dim_size(4) != 4) {
    return errors::InvalidArgument("the last dimension of input, of shape ", input.DebugString(),
                                   ", must be 4 for NCHW_VECT_C");
  }
  PartialTensorShape shape = input;
  const auto multiply = [&](int d, int64_t factor) -> absl::Status {
    const int64_t size = shape.dim_size(d);
    if (size < 0) return absl::OkStatus();
    shape.set_dim(d, MultiplyWithoutOverflow(size, factor));
    if (shape.dim_size(d) >= 0) return absl::OkStatus();
    return errors::InvalidArgument("dimension ", d, " of input, of shape ", input.DebugString(),
                                   ", times ", factor, " is more than 2^63 - 1");
  };
  const auto divide = [&](int d, int64_t divisor) -> absl::Status {
    const int64_t size = shape.dim_size(d);
    if (size < 0) return absl::OkStatus();
    if (size % divisor != 0) {
      return errors::InvalidArgument("dimension ", d, " of input, of shape ", input.DebugString(),
                                     ", must be a multiple of ", divisor);
    }
    shape.set_dim(d, size / divisor);
    return absl::OkStatus();
  };
  const int64_t positions = MultiplyWithoutOverflow(blocks.size, blocks.size);
  if (blocks.size < 2 || positions < 0) {
    return errors::InvalidArgument("block_size must be at least 2, and its square less than 2^63, ",
                                   "but is ", blocks.size);
  }
  for (const int d : {height, width}) {
    GRADFLOW_RETURN_IF_ERROR(to_depth ? divide(d, blocks.size) : multiply(d, blocks.size));
  }
  GRADFLOW_RETURN_IF_ERROR(to_depth ? multiply(depth, positions) : divide(depth, positions));
  if (rank == 5) shape.set_dim(4, 4);
  return PartialTensorShape::Make(shape.dim_sizes());
}

template <bool ToDepth>
absl::Status MovedShapeFn(ShapeContext& c) {
  Blocks blocks;
  GRADFLOW_RETURN_IF_ERROR(blocks.Read(c));
  if (c.input(0).unknown_rank()) {
    c.set_output(0, PartialTensorShape::UnknownOfRank(blocks.layout.rank));
    return absl::OkStatus();
  }
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MovedShape(blocks, ToDepth, c.input(0)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Transposes images. Height and width are split into blocks and positions within blocks; the depth
// is split into positions and channels.
template <bool ToDepth>
class MovedKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) { return blocks_.Read(construction); }

  absl::Status Compute(KernelContext& ctx) const override {
    const TensorShape& input = ctx.input(0).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape moved, MovedShape(blocks_, ToDepth, input));
    const TensorShape output(moved.dim_sizes());
    const auto [rank, height, width, depth] = blocks_.layout;
    const TensorShape& deep = ToDepth ? output : input;
    const TensorShape& flat = ToDepth ? input : output;
    const DimVector strides = RowMajorStrides(input.dim_sizes());
    const int64_t channels = flat.dim_size(depth);
    const int64_t block = blocks_.size;
    // The dimensions of the output, from first to last.
    DimVector dims;
    DimVector from;
    const auto add = [&](int64_t size, int64_t stride) {
      dims.push_back(size);
      from.push_back(stride);
    };
    for (int d = 0; d < rank; ++d) {
      if (d == 0 || d == 4) {
        add(input.dim_size(d), strides[d]);
      } else if (ToDepth && d == depth) {
        add(block, strides[height]);
        add(block, strides[width]);
        add(channels, strides[depth]);
      } else if (ToDepth) {
        add(deep.dim_size(d), strides[d] * block);
      } else if (d == depth) {
        add(channels, strides[depth]);
      } else {
        add(deep.dim_size(d), strides[d]);
        add(block, strides[depth] * channels * (d == height ? block : 1));
      }
    }
    return OutputStrided(ctx, 0, output, dims, 0, {0, from});
  }

 private:
  Blocks blocks_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("SpaceToDepth")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("block_size: int >= 2")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Shape(MovedShapeFn<true>)
      .Doc(R"(Moves the positions within square blocks of images to the depth.

input: Images. Their height and width must be multiples of `block_size`.
output: Images of 1 / `block_size` of the height and width, with block_size^2 times as many
  channels: the channels of the first element of the block, then the channels of the element to its
  right, and so on by rows.
T: The type of `input`.
block_size: The height and width of a block.
data_format: The order of the dimensions: "NHWC", "NCHW", or "NCHW_VECT_C" for [batch, depth / 4,
  height, width, 4].)");
  registry.Kernel("SpaceToDepth", MakeKernel<MovedKernel<true>>).Types("T", AllDataTypes());

  registry.Op("DepthToSpace")
      .Group("array_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: type")
      .Attr("block_size: int >= 2")
      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
      .Shape(MovedShapeFn<false>)
      .Doc(R"(Moves groups of channels of images to positions within square blocks.

The inverse of `SpaceToDepth`.

input: Images. The number of channels must be a multiple of block_size^2.
output: Images of `block_size` times the height and width.
T: The type of `input`.
block_size: The height and width of a block.
data_format: The order of the dimensions: "NHWC", "NCHW", or "NCHW_VECT_C" for [batch, depth / 4,
  height, width, 4].)");
  registry.Kernel("DepthToSpace", MakeKernel<MovedKernel<false>>).Types("T", AllDataTypes());
}

}  // namespace gradflow::space_to_depth
