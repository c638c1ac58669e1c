// ExtractImagePatches and ExtractVolumePatches.
#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::extract_patches {
namespace {

// Images are volumes with one plane: [batch, planes, rows, columns, depth].
constexpr int kSpatial = 3;
using Sizes = std::array<int64_t, kSpatial>;

struct Patches {
  Sizes size = {1, 1, 1};
  Sizes stride = {1, 1, 1};
  // The distance between the elements of a patch.
  Sizes rate = {1, 1, 1};
  bool same_padding = false;
  // The rank of the input, 4 or 5.
  int rank = 4;

  template <typename Source>
  absl::Status Read(const Source& source, int input_rank) {
    rank = input_rank;
    GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, "ksizes", &size));
    GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, "strides", &stride));
    if (rank == 4) GRADFLOW_RETURN_IF_ERROR(ReadSizes(source, "rates", &rate));
    std::string padding;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr("padding", &padding));
    same_padding = padding == "SAME";
    return absl::OkStatus();
  }

 private:
  template <typename Source>
  absl::Status ReadSizes(const Source& source, const char* name, Sizes* sizes) const {
    std::vector<int64_t> values;
    GRADFLOW_RETURN_IF_ERROR(source.GetAttr(name, &values));
    if (static_cast<int>(values.size()) != rank || values.front() != 1 || values.back() != 1) {
      return errors::InvalidArgument(name, " must have ", rank, " elements, the first and last 1, ",
                                     "but is [", absl::StrJoin(values, ","), "]");
    }
    for (int d = 1; d + 1 < rank; ++d) {
      // Far larger than any image, and small enough that products do not overflow.
      constexpr int64_t kLimit = int64_t{1} << 31;
      if (values[d] < 1 || values[d] >= kLimit) {
        return errors::InvalidArgument(name, "[", d, "] must be positive and less than 2^31, but ",
                                       "is ", values[d]);
      }
      (*sizes)[d - 1 + (5 - rank)] = values[d];
    }
    return absl::OkStatus();
  }
};

// The number of output positions along a dimension, and the position of the first patch.
struct PatchExtent {
  int64_t count = -1;
  int64_t begin = 0;
};

absl::StatusOr<PatchExtent> PatchExtentOf(const Patches& patches, int s, int64_t size) {
  if (size < 0) return PatchExtent();
  const int64_t span = (patches.size[s] - 1) * patches.rate[s] + 1;
  const int64_t stride = patches.stride[s];
  PatchExtent extent;
  if (patches.same_padding) {
    extent.count = NumBlocks(size, stride);
    const int64_t padding = std::max<int64_t>(0, (extent.count - 1) * stride - size + span);
    extent.begin = -(padding / 2);
    return extent;
  }
  // TensorFlow's check: the quotient is rounded towards zero before its sign is tested.
  if ((size - span + stride) / stride < 0) {
    return errors::InvalidArgument("patches span ", span, " elements, more than the ", size,
                                   " of the images, whose padding is VALID");
  }
  extent.count = size < span ? 0 : (size - span) / stride + 1;
  return extent;
}

// Returns the shape of the patches of images of shape `input`. Sets *extents to the positions of
// the patches.
absl::StatusOr<PartialTensorShape> PatchesShape(const Patches& patches,
                                                const PartialTensorShape& input,
                                                std::array<PatchExtent, kSpatial>* extents) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("input", input, patches.rank));
  DimVector dims(input.dim_sizes().begin(), input.dim_sizes().end());
  (*extents)[0] = {1, 0};
  for (int d = 1; d + 1 < patches.rank; ++d) {
    const int s = d - 1 + (5 - patches.rank);
    GRADFLOW_ASSIGN_OR_RETURN((*extents)[s], PatchExtentOf(patches, s, dims[d]));
    dims[d] = (*extents)[s].count;
  }
  int64_t& depth = dims.back();
  for (const int64_t size : patches.size) {
    if (depth < 0) break;
    depth = MultiplyWithoutOverflow(depth, size);
    if (depth < 0) {
      return errors::InvalidArgument("the size of a patch of images of shape ", input.DebugString(),
                                     " is more than 2^63 - 1");
    }
  }
  return PartialTensorShape::Make(dims);
}

template <int Rank>
absl::Status PatchesShapeFn(ShapeContext& c) {
  Patches patches;
  GRADFLOW_RETURN_IF_ERROR(patches.Read(c, Rank));
  if (c.input(0).unknown_rank()) {
    c.set_output(0, PartialTensorShape::UnknownOfRank(Rank));
    return absl::OkStatus();
  }
  std::array<PatchExtent, kSpatial> extents;
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PatchesShape(patches, c.input(0), &extents));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <int Rank>
class PatchesKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return patches_.Read(construction, Rank);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    std::array<PatchExtent, kSpatial> extents;
    GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                              PatchesShape(patches_, input.shape(), &extents));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(shape.dim_sizes()), &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    Sizes sizes = {1, 1, 1};
    for (int d = 1; d + 1 < Rank; ++d) sizes[d - 1 + (5 - Rank)] = input.dim_size(d);
    DispatchElement(input.dtype(), [&](auto tag) {
      using E = typename decltype(tag)::type;
      if constexpr (!kIsObject<E>) {
        Copy<E>(ctx.run(), extents, sizes, input, output);
      }
    });
    return absl::OkStatus();
  }

 private:
  // A unit of work is a row of patches.
  template <typename E>
  void Copy(const RunContext& run, const std::array<PatchExtent, kSpatial>& extents,
            const Sizes& sizes, const Tensor& input, Tensor* output) const {
    const E* from = static_cast<const E*>(input.raw_data());
    E* to = static_cast<E*>(output->raw_data());
    const int64_t depth = input.dim_size(Rank - 1);
    const int64_t patch = patches_.size[0] * patches_.size[1] * patches_.size[2] * depth;
    const int64_t columns = extents[2].count;
    const double cost = static_cast<double>(columns) * patch *
                        (0.05 * sizeof(E) + 2.0 / std::max<int64_t>(1, depth));
    ParallelFor(run, output->NumElements() / (columns * patch), BlockSizeForCost(cost),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    const int64_t row = r % extents[1].count;
                    const int64_t plane = r / extents[1].count % extents[0].count;
                    const int64_t batch = r / extents[1].count / extents[0].count;
                    const E* volume = from + batch * sizes[0] * sizes[1] * sizes[2] * depth;
                    for (int64_t c = 0; c < columns && !run.ShouldStop(); ++c) {
                      CopyPatch(volume,
                                {extents[0].begin + plane * patches_.stride[0],
                                 extents[1].begin + row * patches_.stride[1],
                                 extents[2].begin + c * patches_.stride[2]},
                                sizes, depth, to + (r * columns + c) * patch);
                    }
                  }
                });
  }

  // Copies the patch that begins at `at`. Elements outside of the volume are zero.
  template <typename E>
  void CopyPatch(const E* volume, const Sizes& at, const Sizes& sizes, int64_t depth, E* to) const {
    const int64_t width = patches_.size[2] * depth;
    for (int64_t p = 0; p < patches_.size[0]; ++p) {
      const int64_t plane = at[0] + p * patches_.rate[0];
      for (int64_t q = 0; q < patches_.size[1]; ++q, to += width) {
        const int64_t row = at[1] + q * patches_.rate[1];
        if (plane < 0 || plane >= sizes[0] || row < 0 || row >= sizes[1]) {
          std::fill_n(to, width, E());
          continue;
        }
        const E* source = volume + (plane * sizes[1] + row) * sizes[2] * depth;
        const bool inside = at[2] >= 0 && at[2] + patches_.size[2] <= sizes[2];
        if (patches_.rate[2] == 1 && inside) {
          std::copy_n(source + at[2] * depth, width, to);
          continue;
        }
        for (int64_t k = 0; k < patches_.size[2]; ++k) {
          const int64_t column = at[2] + k * patches_.rate[2];
          if (column >= 0 && column < sizes[2]) {
            std::copy_n(source + column * depth, depth, to + k * depth);
          } else {
            std::fill_n(to + k * depth, depth, E());
          }
        }
      }
    }
  }

  Patches patches_;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("ExtractImagePatches")
      .Group("array_ops")
      .Input("images: T")
      .Output("patches: T")
      .Attr("ksizes: list(int) >= 4")
      .Attr("strides: list(int) >= 4")
      .Attr("rates: list(int) >= 4")
      .Attr(
          "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, "
          "uint64, complex64, complex128, bool}")
      .Attr("padding: {'SAME', 'VALID'}")
      .Shape(PatchesShapeFn<4>)
      .Doc(R"(Returns the patches of images, each as the channels of one pixel.

images: Images of shape [batch, height, width, depth].
patches: For each position, the elements of the patch by rows, columns and depth.
ksizes: The size of the patches: [1, height, width, 1].
strides: The distance between neighboring patches: [1, rows, columns, 1].
rates: The distance between neighboring elements of a patch: [1, rows, columns, 1].
T: The type of `images`.
padding: "SAME" pads the images with zeros, so that there is a patch at every stride. "VALID"
  returns the patches that lie within the images.)");
  registry.Kernel("ExtractImagePatches", MakeKernel<PatchesKernel<4>>);

  registry.Op("ExtractVolumePatches")
      .Group("array_ops")
      .Input("input: T")
      .Output("patches: T")
      .Attr("ksizes: list(int) >= 5")
      .Attr("strides: list(int) >= 5")
      .Attr(
          "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
          "uint64}")
      .Attr("padding: {'SAME', 'VALID'}")
      .Shape(PatchesShapeFn<5>)
      .Doc(R"(Returns the patches of volumes, each as the channels of one voxel.

input: Volumes of shape [batch, planes, rows, columns, depth].
patches: For each position, the elements of the patch by planes, rows, columns and depth.
ksizes: The size of the patches: [1, planes, rows, columns, 1].
strides: The distance between neighboring patches: [1, planes, rows, columns, 1].
T: The type of `input`.
padding: "SAME" pads the volumes with zeros, so that there is a patch at every stride. "VALID"
  returns the patches that lie within the volumes.)");
  registry.Kernel("ExtractVolumePatches", MakeKernel<PatchesKernel<5>>);
}

}  // namespace gradflow::extract_patches
