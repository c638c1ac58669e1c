// The positions of the maxima of pooling windows.
#ifndef GRADFLOW_OPS_NN_POOL_ARGMAX_H_
#define GRADFLOW_OPS_NN_POOL_ARGMAX_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/ops/nn/pool_rows.h"
#include "gradflow/ops/nn/pool_simd.h"
#include "gradflow/ops/nn/pool_windows.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow {

// Finds the maxima of rows of windows. The first of equal elements, in the order of planes, rows
// and columns, is the maximum, as in TensorFlow. NaN is the maximum if it comes first.
template <typename C>
class RowArgmax {
 public:
  RowArgmax(const PoolGeometry& g, const Tensor& input)
      : g_(g), by_column_(g.depth == 1 && !g.HasSparseColumns()), reader_(input) {
    if (std::is_same_v<C, float> && g.depth >= kMinPoolVector) windows_ = ColumnWindows(g);
  }

  // The size of the scratch buffer of a row, in bytes.
  int64_t ScratchBytes() const { return PaddedBytes<C>(g_.in_row()); }
  // The approximate cost of a row of windows.
  double Nanoseconds() const {
    return 0.5 * g_.window_rows() * static_cast<double>(std::min(g_.size[2], g_.in[2])) *
           static_cast<double>(g_.out_row());
  }

  // Sets the values and positions of row `row` of the output. A position is the index of a pixel
  // within its image; -1 if the window is empty. Returns early if the run is stopped.
  void Run(const KernelContext& ctx, int64_t row, char* scratch, C* values,
           int32_t* positions) const {
    const PoolRange planes = g_.Window(0, row / g_.out[1] % g_.out[0]);
    const PoolRange rows = g_.Window(1, row % g_.out[1]);
    const int64_t batch = row / g_.out[1] / g_.out[0];
    const int64_t n = g_.in_row();
    if constexpr (std::is_same_v<C, float>) {
      if (!windows_.empty()) {
        return VectorRows(ctx, batch, rows, reinterpret_cast<float*>(scratch), values, positions);
      }
    }
    std::fill_n(values, g_.out_row(), PoolMax<C>::Initial());
    std::fill_n(positions, g_.out_row(), -1);
    for (int64_t p = planes.begin; p < planes.end; ++p) {
      for (int64_t r = rows.begin; r < rows.end && !ctx.ShouldStop(); ++r) {
        const int64_t image_row = p * g_.in[1] + r;
        const C* const x = reader_.Read((batch * g_.in[0] * g_.in[1] + image_row) * n, n,
                                        reinterpret_cast<C*>(scratch));
        AddRow(ctx, x, static_cast<uint32_t>(image_row * g_.in[2]), values, positions);
      }
    }
  }

 private:
  // Run() with vectors, for images.
  void VectorRows(const KernelContext& ctx, int64_t batch, const PoolRange& rows, float* scratch,
                  float* values, int32_t* positions) const {
    // Rows that need no conversion are contiguous, so one call merges several of them.
    const int64_t most = RowsAtATime(reader_.converts(), std::min(g_.size[2], g_.in[2]));
    const int64_t n = g_.in_row();
    int64_t r = rows.begin;
    do {
      const int64_t some = std::min(rows.end - r, most);
      const float* const x = reader_.Read((batch * g_.in[1] + r) * n, some > 0 ? n : 0, scratch);
      ForPixels(ctx, g_.out[2], [&](int64_t o, int64_t pixels) {
        MergeMaxima(x, n, some, windows_.data() + o, pixels, g_.depth,
                    static_cast<int32_t>(r * g_.in[2]), static_cast<int32_t>(g_.in[2]),
                    r > rows.begin, values + o * g_.depth, positions + o * g_.depth);
      });
      r += most;
    } while (r < rows.end && !ctx.ShouldStop());
  }
  void AddRow(const KernelContext& ctx, const C* x, uint32_t first_position, C* values,
              int32_t* positions) const {
    const int64_t depth = g_.depth;
    if (by_column_) {
      const PoolRange used = g_.UsedColumns();
      for (int64_t k = used.begin; k < used.end; ++k) {
        if (k % 64 == 0 && ctx.ShouldStop()) return;
        const PoolRange windows = g_.WindowsWithColumn(k);
        const int64_t column = windows.begin * g_.stride[2] - g_.padding[2] + k;
        WithConstantStride(g_.stride[2], [&](auto stride) {
          Merge(x + column, stride, first_position + static_cast<uint32_t>(column),
                static_cast<uint32_t>(stride), windows.size(), values + windows.begin,
                positions + windows.begin);
        });
      }
      return;
    }
    for (int64_t o = 0; o < g_.out[2]; ++o) {
      if (o % 64 == 0 && ctx.ShouldStop()) return;
      const PoolRange window = g_.Window(2, o);
      for (int64_t c = window.begin; c < window.end; ++c) {
        Merge(x + c * depth, std::integral_constant<int64_t, 1>(),
              first_position + static_cast<uint32_t>(c), 0, depth, values + o * depth,
              positions + o * depth);
      }
    }
  }

  // Merges n elements that are `stride` apart. Their positions are position, position + step, ...
  // All of these fit int32, but the next one may not.
  template <typename Stride>
  static void Merge(const C* x, Stride stride, uint32_t position, uint32_t step, int64_t n,
                    C* values, int32_t* positions) {
    for (int64_t i = 0; i < n; ++i) {
      const C value = x[i * stride];
      // Written without branches so that gcc vectorizes the loop.
      const bool is_new = (value > values[i]) | (positions[i] < 0);
      values[i] = is_new ? value : values[i];
      positions[i] = is_new ? static_cast<int32_t>(position) : positions[i];
      position += step;
    }
  }

  const PoolGeometry& g_;
  // True if loops run over the columns of windows instead of over windows.
  const bool by_column_;
  const RowReader<C> reader_;
  // The windows' columns, for each column of the output. Empty unless pixels are computed with
  // vectors.
  std::vector<PoolRange> windows_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_ARGMAX_H_
