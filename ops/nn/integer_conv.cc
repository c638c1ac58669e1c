// Convolutions as products of patches (im2col) and weights. Padding has the zero point, which
// stands for 0. Depthwise convolutions use loops over the taps, the spatial positions of the
// filter.
#include "gradflow/ops/nn/integer_conv.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gradflow/core/mutex.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/nn/conv_engine.h"
#include "gradflow/ops/quant/integer_product.h"

namespace gradflow {
namespace {

// An output position.
struct IntegerConvPosition {
  IntegerConvPosition(const ConvGeometry& g, int64_t index) {
    for (size_t s = kConvSpatial; s-- > 0;) {
      at[s] = index % g.out[s];
      index /= g.out[s];
    }
    batch = index;
  }
  void Next(const ConvGeometry& g) {
    for (size_t s = kConvSpatial; s-- > 0;) {
      if (++at[s] < g.out[s]) return;
      at[s] = 0;
    }
    ++batch;
  }

  int64_t batch;
  ConvSizes at;
};

class IntegerConv final : public OpKernel {
 public:
  // A matrix for each group, [inputs of a patch, channels of the group].
  using Groups = std::vector<IntegerMatrix>;

  static absl::StatusOr<std::shared_ptr<const OpKernel>> Make(const ConvAttrs& attrs,
                                                              const IntegerProductArgs& args) {
    auto conv = std::shared_ptr<IntegerConv>(new IntegerConv(attrs, args));
    const TensorShape& filter = args.weights.shape();
    const auto* const weights = static_cast<const int16_t*>(args.weights.raw_data());
    const int64_t out_depth = conv->out_depth_;
    const int64_t inner = filter.num_elements() / out_depth;
    const bool are_bytes = std::all_of(weights, weights + filter.num_elements(),
                                       [](int16_t w) { return w >= -128 && w <= 127; });
    if (attrs.depthwise && filter.dim_size(filter.dims() - 1) == 1 && are_bytes) {
      GRADFLOW_RETURN_IF_ERROR(
          CheckIntegerSums({weights, inner, out_depth, out_depth, 1}, args.result, 0));
      conv->depthwise_weights_.assign(weights, weights + filter.num_elements());
      conv->depthwise_.emplace_back(args.result, 0, out_depth);
      for (int64_t c = 0; c < out_depth; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += weights[k * out_depth + c];
        conv->depthwise_[0].AddToSum(c, -args.zero_point * sum);
      }
      return conv;
    }
    // The input's depth decides the number of groups of Conv2D. There is usually one.
    const int64_t groups =
        attrs.depthwise ? filter.dim_size(filter.dims() - 2) : std::max<int64_t>(attrs.groups, 1);
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const Groups> packed,
                              conv->PackGroups(weights, inner, groups));
    const MutexLock lock(&conv->mutex_);
    conv->groups_ = std::move(packed);
    return conv;
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.dtype() != DT_UINT8) {
      return errors::InvalidArgument("input must be of type uint8, but is ",
                                     DataTypeString(x.dtype()));
    }
    ConvGeometry g;
    PartialTensorShape inferred;
    GRADFLOW_RETURN_IF_ERROR(InferConv(attrs_, x.shape(), filter_, &g, &inferred));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(inferred.dim_sizes()));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (!depthwise_.empty()) return MultiplyTaps(ctx, g, x, output);
    GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const Groups> groups, FindGroups(g.groups));
    return MultiplyPatches(ctx, g, *groups, x, output);
  }

 private:
  IntegerConv(const ConvAttrs& attrs, const IntegerProductArgs& args)
      : attrs_(attrs),
        filter_(args.weights.shape()),
        out_depth_(attrs.depthwise
                       ? filter_.dim_size(filter_.dims() - 1) * filter_.dim_size(filter_.dims() - 2)
                       : filter_.dim_size(filter_.dims() - 1)),
        zero_point_(static_cast<uint8_t>(args.zero_point)),
        result_(args.result) {}

  // Packs the weights [inner, out_depth_] of each group.
  absl::StatusOr<std::shared_ptr<const Groups>> PackGroups(const int16_t* weights, int64_t inner,
                                                           int64_t groups) const {
    auto packed = std::make_shared<Groups>();
    const int64_t channels = out_depth_ / groups;
    for (int64_t first = 0; first < out_depth_; first += channels) {
      GRADFLOW_ASSIGN_OR_RETURN(
          IntegerMatrix matrix,
          IntegerMatrix::Pack({weights + first, inner, channels, out_depth_, 1}, zero_point_,
                              result_, first));
      packed->push_back(std::move(matrix));
    }
    return packed;
  }

  // Returns the weights for this number of groups, and packs them again if necessary.
  absl::StatusOr<std::shared_ptr<const Groups>> FindGroups(int64_t groups) const {
    MutexLock lock(&mutex_);
    const int64_t found = static_cast<int64_t>(groups_->size());
    if (found == groups) return groups_;
    const int64_t inner = (*groups_)[0].inner();
    const int64_t channels = out_depth_ / found;
    std::vector<int16_t> weights(static_cast<size_t>(inner * out_depth_));
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t c = 0; c < out_depth_; ++c) {
        weights[static_cast<size_t>(k * out_depth_ + c)] =
            (*groups_)[static_cast<size_t>(c / channels)].Weight(k, c % channels);
      }
    }
    GRADFLOW_ASSIGN_OR_RETURN(groups_, PackGroups(weights.data(), inner, groups));
    return groups_;
  }

  void* At(Tensor* output, int64_t i) const {
    return result_.is_float ? static_cast<void*>(static_cast<float*>(output->raw_data()) + i)
                            : static_cast<uint8_t*>(output->raw_data()) + i;
  }

  // Returns the index of the input position that tap `t` of an output position reads, or -1 in the
  // padding.
  static int64_t InputIndex(const ConvGeometry& g, const IntegerConvPosition& position,
                            const ConvSizes& tap) {
    int64_t index = position.batch;
    for (size_t s = 0; s < kConvSpatial; ++s) {
      const int64_t at = position.at[s] * g.stride[s] - g.pad[s] + tap[s] * g.dilation[s];
      if (at < 0 || at >= g.in[s]) return -1;
      index = index * g.in[s] + at;
    }
    return index;
  }

  // Writes the patch of a group: its inputs in the order of the weights.
  void CopyPatch(const ConvGeometry& g, const IntegerConvPosition& position, const uint8_t* x,
                 int64_t group, uint8_t* to) const {
    const int64_t depth = g.group_in_depth();
    // A row of taps is contiguous in the input.
    const bool contiguous = g.groups == 1 && g.dilation[2] == 1;
    const int64_t first = position.at[2] * g.stride[2] - g.pad[2];
    const bool inside = first >= 0 && first + g.filter[2] <= g.in[2];
    ConvSizes tap = {0, 0, 0};
    for (tap[0] = 0; tap[0] < g.filter[0]; ++tap[0]) {
      for (tap[1] = 0; tap[1] < g.filter[1]; ++tap[1]) {
        if (contiguous && inside) {
          tap[2] = 0;
          Copy(x, InputIndex(g, position, tap), g.in_depth, 0, g.filter[2] * depth, to);
          to += g.filter[2] * depth;
          continue;
        }
        for (tap[2] = 0; tap[2] < g.filter[2]; ++tap[2], to += depth) {
          Copy(x, InputIndex(g, position, tap), g.in_depth, group * depth, depth, to);
        }
      }
    }
  }

  // Copies the inputs of a position, or of consecutive positions.
  void Copy(const uint8_t* x, int64_t index, int64_t in_depth, int64_t offset, int64_t n,
            uint8_t* to) const {
    if (index < 0) {
      std::memset(to, zero_point_, static_cast<size_t>(n));
      return;
    }
    const uint8_t* const from = x + index * in_depth + offset;
    // A call would take longer than copying a few bytes.
    constexpr int64_t kFew = 32;
    if (n > kFew) {
      std::memcpy(to, from, static_cast<size_t>(n));
      return;
    }
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) std::memcpy(to + i, from + i, 8);
    for (; i < n; ++i) to[i] = from[i];
  }

  absl::Status MultiplyPatches(KernelContext& ctx, const ConvGeometry& g, const Groups& matrices,
                               const Tensor& input, Tensor* output) const {
    const auto* const x = static_cast<const uint8_t*>(input.raw_data());
    const int64_t inner = matrices[0].padded_inner();
    const int64_t channels = matrices[0].channels();
    const int64_t positions = g.batch * g.out_volume();
    // The input itself is the matrix of patches.
    const bool direct = g.IsPointwise() && inner == matrices[0].inner();
    constexpr int64_t kMaxRows = 384;
    const IntegerTiles tiles(positions, inner, channels, kMaxRows);
    const int64_t tiles_of_group = tiles.row_tiles * tiles.channel_tiles;
    SharedStatus status;
    ParallelFor(ctx, g.groups * tiles_of_group, 1, [&](int64_t begin, int64_t end) {
      Tensor buffer;
      if (!direct) {
        auto allocated = Tensor::Allocate(ctx.allocator(), DT_UINT8, {tiles.tile_rows * inner});
        if (!allocated.ok()) return status.Update(allocated.status());
        buffer = *std::move(allocated);
      }
      auto* const patches = static_cast<uint8_t*>(buffer.raw_data());
      for (int64_t i = begin; i < end; ++i) {
        // Tiles of the same rows are computed one after the other.
        const int64_t row = i / (g.groups * tiles.channel_tiles) * tiles.tile_rows;
        const int64_t group = i / tiles.channel_tiles % g.groups;
        const int64_t channel = i % tiles.channel_tiles * tiles.tile_channels;
        const int64_t rows = std::min(tiles.tile_rows, positions - row);
        const uint8_t* from = x + (row * g.groups + group) * inner;
        int64_t stride = g.groups * inner;
        if (!direct) {
          IntegerConvPosition position(g, row);
          for (int64_t r = 0; r < rows; ++r, position.Next(g)) {
            CopyPatch(g, position, x, group, patches + r * inner);
            std::fill(patches + r * inner + matrices[0].inner(), patches + (r + 1) * inner,
                      uint8_t{0});
          }
          from = patches;
          stride = inner;
        }
        matrices[static_cast<size_t>(group)].Multiply(
            from, stride, rows, channel, std::min(tiles.tile_channels, channels - channel),
            At(output, row * out_depth_ + group * channels + channel), out_depth_);
      }
    });
    return status.Get();
  }

  absl::Status MultiplyTaps(KernelContext& ctx, const ConvGeometry& g, const Tensor& input,
                            Tensor* output) const {
    const auto* const x = static_cast<const uint8_t*>(input.raw_data());
    const std::vector<uint8_t> padding(static_cast<size_t>(g.in_depth), zero_point_);
    const IntegerStore store = depthwise_[0].store();
    const int64_t positions = g.batch * g.out_volume();
    // The columns whose taps are all inside of the image.
    const int64_t first = std::min(g.out[2], NumBlocks(g.pad[2], g.stride[2]));
    const int64_t span = (g.filter[2] - 1) * g.dilation[2];
    const int64_t reach = g.in[2] - 1 - span + g.pad[2];
    const int64_t last = std::clamp(reach < 0 ? 0 : reach / g.stride[2] + 1, first, g.out[2]);
    const double nanoseconds = 0.1 * static_cast<double>(g.taps() * g.in_depth) + 10;
    ParallelFor(ctx, positions, BlockSizeForCost(nanoseconds), [&](int64_t begin, int64_t end) {
      std::vector<const uint8_t*> taps(static_cast<size_t>(g.taps()));
      DepthwiseRun run;
      run.taps = taps.data();
      run.num_taps = g.taps();
      run.weights = depthwise_weights_.data();
      run.channels = g.in_depth;
      run.step = g.stride[2] * g.in_depth;
      for (int64_t p = begin; p < end; p += run.positions) {
        const IntegerConvPosition position(g, p);
        const int64_t column = position.at[2];
        run.positions = column >= first && column < last ? std::min(last - column, end - p) : 1;
        // Rows of padding do not move with the positions.
        bool has_padding = false;
        size_t t = 0;
        ConvSizes tap;
        for (tap[0] = 0; tap[0] < g.filter[0]; ++tap[0]) {
          for (tap[1] = 0; tap[1] < g.filter[1]; ++tap[1]) {
            for (tap[2] = 0; tap[2] < g.filter[2]; ++tap[2]) {
              const int64_t index = InputIndex(g, position, tap);
              has_padding = has_padding || index < 0;
              taps[t++] = index < 0 ? padding.data() : x + index * g.in_depth;
            }
          }
        }
        if (has_padding) run.positions = 1;
        DepthwiseIntegers(run, store, At(output, p * g.in_depth));
      }
    });
    return absl::OkStatus();
  }

  const ConvAttrs attrs_;
  const TensorShape filter_;
  const int64_t out_depth_;
  const uint8_t zero_point_;
  const IntegerResult result_;
  mutable Mutex mutex_;
  // Null for depthwise convolutions by taps.
  mutable std::shared_ptr<const Groups> groups_ ABSL_GUARDED_BY(mutex_);
  // [taps, depth], and the coefficients, for depthwise convolutions by taps.
  std::vector<int16_t> depthwise_weights_;
  std::vector<IntegerCoefficients> depthwise_;
};

}  // namespace

absl::StatusOr<IntegerProductKernel::Channels> IntegerConvChannels(const ConvAttrs& attrs,
                                                                   const TensorShape& filter) {
  if (!attrs.channels_last) {
    return errors::Unimplemented("the channels are not the last dimension");
  }
  if (attrs.batch_dims != 1) return errors::Unimplemented("there are several batch dimensions");
  if (filter.dims() != attrs.filter_rank() || filter.num_elements() == 0) {
    return errors::Unimplemented("the filter has shape ", filter.DebugString());
  }
  IntegerProductKernel::Channels channels;
  channels.count = filter.dim_size(filter.dims() - 1);
  if (attrs.depthwise) channels.count *= filter.dim_size(filter.dims() - 2);
  if (!attrs.depthwise && attrs.groups > 0 && channels.count % attrs.groups != 0) {
    return errors::Unimplemented("the filter does not fit the number of groups");
  }
  channels.rank = attrs.input_rank();
  return channels;
}

absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerConv(const ConvAttrs& attrs,
                                                                const IntegerProductArgs& args) {
  return IntegerConv::Make(attrs, args);
}

}  // namespace gradflow
