// Convolutions as matrix products. Each product reads a block of patches (im2col), or writes a
// block of gradients of patches. Blocks depend only on the sizes, and each sum is computed within
// one block or over several blocks in order, so the bits do not depend on the number of threads.
// Depthwise convolutions use loops instead of products. A tap is a spatial position of the filter.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/linalg/blas.h"
#include "gradflow/ops/nn/conv_engine.h"

namespace gradflow {
namespace {

// The maximum number of elements of a block of patches. Such a block stays in the L2 cache.
constexpr int64_t kPatchElements = 65536;
constexpr int64_t kMaxRows = 1024;
// The maximum number of multiplications of a block. A run can be stopped between blocks.
constexpr double kBlockProducts = 1 << 28;

// The number of rows of a block of patches. A patch has `columns` elements, each multiplied `width`
// times.
int64_t PatchRows(int64_t columns, int64_t width) {
  const double products = static_cast<double>(columns) * static_cast<double>(width);
  const auto most = static_cast<int64_t>(std::max(1.0, kBlockProducts / products));
  return std::clamp<int64_t>(kPatchElements / columns, 1, std::min(kMaxRows, most));
}

template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a, BlasMatrix<const T> b,
              BlasMatrix<T> c, bool add) {
  if constexpr (std::is_floating_point_v<T>) {
    BlasGemm(m, n, k, a, b, c, add);
  } else {
    for (int64_t i = 0; i < m; ++i) {
      T* const row = c.data + i * c.stride;
      if (!add) std::fill_n(row, n, T(0));
      for (int64_t p = 0; p < k; ++p) {
        const T factor = *a.Block(i, p).data;
        const T* const elements = b.Block(p, 0).data;
        const int64_t stride = b.transposed ? b.stride : 1;
        for (int64_t j = 0; j < n; ++j) row[j] += factor * elements[j * stride];
      }
    }
  }
}

// A position in a batch of volumes.
struct Position {
  int64_t batch;
  ConvSizes at;

  Position(int64_t index, const ConvSizes& sizes) {
    for (size_t s = kConvSpatial; s-- > 0;) {
      at[s] = index % sizes[s];
      index /= sizes[s];
    }
    batch = index;
  }
  void Next(const ConvSizes& sizes) {
    for (size_t s = kConvSpatial; s-- > 0;) {
      if (++at[s] < sizes[s]) return;
      at[s] = 0;
    }
    ++batch;
  }
};

// A range of an axis.
struct AxisRange {
  int64_t begin;
  int64_t size;
};

template <typename T>
class Gemms {
 public:
  Gemms(KernelContext& ctx, const ConvGeometry& geometry, const ConvTensors& tensors)
      : ctx_(ctx),
        g_(geometry),
        a_(static_cast<const T*>(tensors.a.raw_data())),
        b_(static_cast<const T*>(tensors.b.raw_data())),
        out_(static_cast<T*>(tensors.out->raw_data())),
        dtype_(tensors.out->dtype()),
        positions_(geometry.batch * geometry.out_volume()),
        in_group_(geometry.group_in_depth()),
        out_group_(geometry.group_out_depth()) {}

  absl::Status Forward() {
    if (IsDepthwise()) return DepthwiseForward();
    const int64_t columns = g_.taps() * in_group_;
    const bool pointwise = g_.IsPointwise();
    const int64_t rows = PatchRows(columns, out_group_);
    const int64_t blocks = NumBlocks(positions_, rows);
    const double products =
        static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(out_group_);
    return ForBlocks(
        blocks * g_.groups, products, pointwise ? 0 : std::min(rows, positions_) * columns,
        [&](int64_t task, T* patches) {
          const int64_t group = task % g_.groups;
          const int64_t begin = task / g_.groups * rows;
          const AxisRange block = {begin, std::min(rows, positions_ - begin)};
          const AxisRange depth = {group * in_group_, in_group_};
          BlasMatrix<const T> x = {a_ + begin * g_.in_depth + depth.begin, g_.in_depth};
          if (!pointwise) {
            GatherPatches(block, {0, g_.taps()}, depth, patches);
            x = {patches, columns};
          }
          Multiply<T>(block.size, out_group_, columns, x, {b_ + group * out_group_, g_.out_depth},
                      {out_ + begin * g_.out_depth + group * out_group_, g_.out_depth},
                      /*add=*/false);
        });
  }

  // Computes the gradients of patches, one tap at a time, and adds them to the gradient of the
  // input.
  absl::Status InputGradient() {
    if (IsDepthwise()) return DepthwiseInputGradient();
    // A task computes a range of channels of an image. If there are few images, the ranges are
    // narrower.
    const int64_t wanted = NumBlocks(in_group_, std::max<int64_t>(1, 16 / (g_.batch * g_.groups)));
    const int64_t width = std::min(in_group_, std::clamp<int64_t>(wanted, 32, 256));
    const int64_t blocks_across = NumBlocks(in_group_, width);
    const int64_t volume = g_.out_volume();
    const int64_t rows = std::min(PatchRows(width, out_group_), volume);
    const double products = static_cast<double>(volume) * static_cast<double>(g_.taps()) *
                            static_cast<double>(out_group_) * static_cast<double>(width);
    return ForBlocks(
        g_.batch * g_.groups * blocks_across, products, rows * width,
        [&](int64_t task, T* patches) {
          const int64_t image = task / (g_.groups * blocks_across);
          const int64_t group = task / blocks_across % g_.groups;
          const int64_t first = task % blocks_across * width;
          const AxisRange depth = {group * in_group_ + first, std::min(width, in_group_ - first)};
          Clear(image, depth);
          for (int64_t begin = 0; begin < volume && !ctx_.ShouldStop(); begin += rows) {
            const AxisRange block = {image * volume + begin, std::min(rows, volume - begin)};
            const BlasMatrix<const T> dy = {a_ + block.begin * g_.out_depth + group * out_group_,
                                            g_.out_depth};
            for (int64_t tap = 0; tap < g_.taps(); ++tap) {
              if (tap % 16 == 0 && ctx_.ShouldStop()) return;
              const BlasMatrix<const T> filter = {
                  b_ + (tap * in_group_ + first) * g_.out_depth + group * out_group_, g_.out_depth,
                  /*transposed=*/true};
              Multiply<T>(block.size, depth.size, out_group_, dy, filter, {patches, depth.size},
                          /*add=*/false);
              AddTap(block, tap, depth, patches);
            }
          }
        });
  }

  // Each task computes a block of the filter's gradient: the rows are taps and input channels, the
  // columns are output channels. A task visits all output positions.
  absl::Status FilterGradient() {
    if (IsDepthwise()) return DepthwiseFilterGradient();
    constexpr int64_t kRows = 128;
    constexpr int64_t kColumns = 256;
    const int64_t taps_per_task = in_group_ >= kRows ? 1 : std::min(kRows / in_group_, g_.taps());
    const int64_t tap_blocks = NumBlocks(g_.taps(), taps_per_task);
    const int64_t depth_blocks = NumBlocks(in_group_, kRows);
    const int64_t column_blocks = NumBlocks(out_group_, kColumns);
    const int64_t width = taps_per_task * std::min(in_group_, kRows);
    const int64_t rows = std::min(PatchRows(width, kColumns), positions_);
    const double products = static_cast<double>(positions_) * static_cast<double>(width) *
                            static_cast<double>(std::min(out_group_, kColumns));
    return ForBlocks(
        g_.groups * tap_blocks * depth_blocks * column_blocks, products, rows * width,
        [&](int64_t task, T* patches) {
          const int64_t column = task % column_blocks * kColumns;
          task /= column_blocks;
          const int64_t first = task % depth_blocks * kRows;
          task /= depth_blocks;
          const int64_t tap = task % tap_blocks * taps_per_task;
          const int64_t group = task / tap_blocks;
          const AxisRange taps = {tap, std::min(taps_per_task, g_.taps() - tap)};
          const AxisRange depth = {group * in_group_ + first, std::min(kRows, in_group_ - first)};
          const int64_t columns = std::min(kColumns, out_group_ - column);
          const int64_t offset = group * out_group_ + column;
          const BlasMatrix<T> out = {out_ + (tap * in_group_ + first) * g_.out_depth + offset,
                                     g_.out_depth};
          const int64_t size = taps.size * depth.size;
          for (int64_t begin = 0; begin < positions_ && !ctx_.ShouldStop(); begin += rows) {
            const AxisRange block = {begin, std::min(rows, positions_ - begin)};
            GatherPatches(block, taps, depth, patches);
            Multiply<T>(size, columns, block.size, {patches, size, /*transposed=*/true},
                        {b_ + begin * g_.out_depth + offset, g_.out_depth}, out,
                        /*add=*/begin > 0);
          }
        });
  }

 private:
  // True if each group has one input channel. Matrix products would then be too small.
  bool IsDepthwise() const { return in_group_ == 1 && g_.groups > 1; }

  // Calls fn(task, scratch) concurrently for all tasks. `scratch` has `scratch_size` elements.
  template <typename F>
  absl::Status ForBlocks(int64_t tasks, double products, int64_t scratch_size, const F& fn) {
    const double nanoseconds = (std::is_floating_point_v<T> ? 0.02 * sizeof(T) : 0.5) * products;
    const int64_t block = BlockSizeForCost(nanoseconds + 500);
    SharedStatus status;
    ParallelFor(std::is_floating_point_v<T> && !GemmIsConcurrent<T>() ? SerialLoops(ctx_.run())
                                                                      : ctx_.run(),
                tasks, block, [&](int64_t begin, int64_t end) {
                  Tensor scratch;
                  if (scratch_size > 0) {
                    auto allocated = Tensor::Allocate(ctx_.allocator(), dtype_, {scratch_size});
                    if (!allocated.ok()) return status.Update(allocated.status());
                    scratch = *std::move(allocated);
                  }
                  for (int64_t task = begin; task < end && !ctx_.ShouldStop(); ++task) {
                    fn(task, static_cast<T*>(scratch.raw_data()));
                  }
                });
    return status.Get();
  }

  // Returns the input position that `tap` of the window at output position `out` reads; -1 if it is
  // in the padding.
  int64_t InputIndex(const Position& out, int64_t tap) const {
    ConvSizes k;
    for (size_t s = kConvSpatial; s-- > 0;) {
      k[s] = tap % g_.filter[s];
      tap /= g_.filter[s];
    }
    int64_t index = out.batch;
    for (size_t s = 0; s < kConvSpatial; ++s) {
      const int64_t i = out.at[s] * g_.stride[s] + k[s] * g_.dilation[s] - g_.pad[s];
      if (i < 0 || i >= g_.in[s]) return -1;
      index = index * g_.in[s] + i;
    }
    return index;
  }

  // Copies the patches of the input to patches[position][tap][channel].
  void GatherPatches(AxisRange positions, AxisRange taps, AxisRange depth, T* patches) const {
    const size_t bytes = static_cast<size_t>(depth.size) * sizeof(T);
    Position position(positions.begin, g_.out);
    for (int64_t p = 0; p < positions.size; ++p, position.Next(g_.out)) {
      for (int64_t tap = taps.begin; tap < taps.begin + taps.size; ++tap, patches += depth.size) {
        const int64_t index = InputIndex(position, tap);
        if (index < 0) {
          std::memset(patches, 0, bytes);
        } else {
          std::memcpy(patches, a_ + index * g_.in_depth + depth.begin, bytes);
        }
      }
    }
  }

  // Adds gradients[position][channel] to the gradient of the input, at the positions that `tap`
  // reads.
  void AddTap(AxisRange positions, int64_t tap, AxisRange depth, const T* gradients) const {
    Position position(positions.begin, g_.out);
    for (int64_t p = 0; p < positions.size; ++p, position.Next(g_.out), gradients += depth.size) {
      const int64_t index = InputIndex(position, tap);
      if (index < 0) continue;
      T* const to = out_ + index * g_.in_depth + depth.begin;
      for (int64_t i = 0; i < depth.size; ++i) to[i] += gradients[i];
    }
  }

  // Sets a range of channels of an image of the input's gradient to 0.
  void Clear(int64_t image, AxisRange depth) const {
    const int64_t volume = g_.in_volume();
    T* to = out_ + image * volume * g_.in_depth + depth.begin;
    for (int64_t i = 0; i < volume; ++i, to += g_.in_depth) std::fill_n(to, depth.size, T(0));
  }

  // ---- Depthwise convolutions ----
  //
  // Input channel c produces output channels [c * out_group_, (c + 1) * out_group_).

  // Calls fn(c, j) for the input channels c in [begin, end) and each of their output channels j.
  template <typename F>
  void ForChannels(int64_t begin, int64_t end, const F& fn) const {
    if (out_group_ == 1) {
      for (int64_t c = begin; c < end; ++c) fn(c, c);
      return;
    }
    for (int64_t c = begin; c < end; ++c) {
      for (int64_t j = c * out_group_; j < (c + 1) * out_group_; ++j) fn(c, j);
    }
  }

  double DepthwiseProducts() const {
    return 10.0 * static_cast<double>(g_.taps()) * static_cast<double>(g_.out_depth);
  }

  absl::Status DepthwiseForward() {
    return ForBlocks(positions_, DepthwiseProducts(), 0, [&](int64_t task, T*) {
      T* const y = out_ + task * g_.out_depth;
      std::fill_n(y, g_.out_depth, T(0));
      const Position position(task, g_.out);
      for (int64_t tap = 0; tap < g_.taps(); ++tap) {
        const int64_t index = InputIndex(position, tap);
        if (index < 0) continue;
        const T* const x = a_ + index * g_.in_depth;
        const T* const f = b_ + tap * g_.out_depth;
        ForChannels(0, g_.in_depth, [&](int64_t c, int64_t j) { y[j] += x[c] * f[j]; });
      }
    });
  }

  absl::Status DepthwiseInputGradient() {
    return ForBlocks(g_.batch * g_.in_volume(), DepthwiseProducts(), 0, [&](int64_t task, T*) {
      T* const dx = out_ + task * g_.in_depth;
      std::fill_n(dx, g_.in_depth, T(0));
      const Position position(task, g_.in);
      for (int64_t tap = 0; tap < g_.taps(); ++tap) {
        const int64_t index = OutputIndex(position, tap);
        if (index < 0) continue;
        const T* const dy = a_ + index * g_.out_depth;
        const T* const f = b_ + tap * g_.out_depth;
        ForChannels(0, g_.in_depth, [&](int64_t c, int64_t j) { dx[c] += dy[j] * f[j]; });
      }
    });
  }

  // Returns the output position whose `tap` reads input position `in`; -1 if there is none.
  int64_t OutputIndex(const Position& in, int64_t tap) const {
    ConvSizes k;
    for (size_t s = kConvSpatial; s-- > 0;) {
      k[s] = tap % g_.filter[s];
      tap /= g_.filter[s];
    }
    int64_t index = in.batch;
    for (size_t s = 0; s < kConvSpatial; ++s) {
      const int64_t i = in.at[s] + g_.pad[s] - k[s] * g_.dilation[s];
      if (i < 0 || i % g_.stride[s] != 0 || i / g_.stride[s] >= g_.out[s]) return -1;
      index = index * g_.out[s] + i / g_.stride[s];
    }
    return index;
  }

  // Each task computes a range of channels of the gradient of one tap.
  absl::Status DepthwiseFilterGradient() {
    constexpr int64_t kChannels = 64;
    const int64_t blocks = NumBlocks(g_.in_depth, kChannels);
    const double products = 4.0 * static_cast<double>(positions_) *
                            static_cast<double>(std::min(kChannels, g_.in_depth) * out_group_);
    return ForBlocks(g_.taps() * blocks, products, 0, [&](int64_t task, T*) {
      const int64_t tap = task / blocks;
      const int64_t begin = task % blocks * kChannels;
      const int64_t end = std::min(g_.in_depth, begin + kChannels);
      T* const df = out_ + tap * g_.out_depth;
      std::fill(df + begin * out_group_, df + end * out_group_, T(0));
      Position position(0, g_.out);
      for (int64_t p = 0; p < positions_; ++p, position.Next(g_.out)) {
        const int64_t index = InputIndex(position, tap);
        if (index < 0) continue;
        const T* const x = a_ + index * g_.in_depth;
        const T* const dy = b_ + p * g_.out_depth;
        ForChannels(begin, end, [&](int64_t c, int64_t j) { df[j] += x[c] * dy[j]; });
      }
    });
  }

  KernelContext& ctx_;
  const ConvGeometry& g_;
  const T* const a_;
  const T* const b_;
  T* const out_;
  const DataType dtype_;
  // The number of output positions in all images.
  const int64_t positions_;
  // The number of input channels and of output channels of a group.
  const int64_t in_group_;
  const int64_t out_group_;
};

}  // namespace

absl::Status ConvByGemm(KernelContext& ctx, ConvPass pass, const ConvGeometry& geometry,
                        const ConvTensors& tensors) {
  absl::Status status =
      errors::Unimplemented("no convolution of type ", DataTypeString(tensors.out->dtype()));
  DispatchType(TypeList<float, double, int32_t>(), tensors.out->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Gemms<std::conditional_t<std::is_integral_v<T>, uint32_t, T>> products(ctx, geometry, tensors);
    status = pass == ConvPass::kForward         ? products.Forward()
             : pass == ConvPass::kInputGradient ? products.InputGradient()
                                                : products.FilterGradient();
  });
  return status;
}

}  // namespace gradflow
