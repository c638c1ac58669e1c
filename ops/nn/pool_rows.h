// Pooling of one row of windows. Windows are combined in two steps: over their rows, for all
// columns, and then over their columns. Small windows of float images with many channels are
// combined in one step if this reads fewer elements. All loops run over contiguous elements.
#ifndef GRADFLOW_OPS_NN_POOL_ROWS_H_
#define GRADFLOW_OPS_NN_POOL_ROWS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/nn/pool_simd.h"
#include "gradflow/ops/nn/pool_windows.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow {

// Calls loop(stride). Small strides are passed as constants so that the compiler vectorizes the
// loop.
template <typename Loop>
void WithConstantStride(int64_t stride, const Loop& loop) {
  switch (stride) {
    case 1:
      return loop(std::integral_constant<int64_t, 1>());
    case 2:
      return loop(std::integral_constant<int64_t, 2>());
    default:
      return loop(stride);
  }
}

// The maximum of a window. Ignores NaN: the maximum of a window of NaN is -infinity.
template <typename C>
struct PoolMax {
  // The type of partial results.
  using Accumulator = C;
  static constexpr PoolKind kKind = PoolKind::kMax;
  static C Initial() {
    using Limits = std::numeric_limits<C>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  static C Combine(C a, C x) { return x > a ? x : a; }
  static C Finish(C a, int64_t) { return a; }
};

// The mean of the elements of a window that lie within the input. Accumulates in A.
template <typename A>
struct PoolMean {
  using Accumulator = A;
  static constexpr PoolKind kKind = PoolKind::kMean;
  static A Initial() { return 0; }
  static A Combine(A a, A x) { return a + x; }
  static A Finish(A a, int64_t count) { return a / static_cast<A>(count); }
};

// Returns the input columns of the window of each output column.
inline std::vector<PoolRange> ColumnWindows(const PoolGeometry& g) {
  std::vector<PoolRange> windows;
  windows.reserve(static_cast<size_t>(g.out[2]));
  for (int64_t o = 0; o < g.out[2]; ++o) windows.push_back(g.Window(2, o));
  return windows;
}

// Calls fn(o, count) for chunks of up to 64 pixels. Returns false if the run has been stopped.
template <typename F>
bool ForPixels(const KernelContext& ctx, int64_t pixels, const F& fn) {
  constexpr int64_t kPixels = 64;
  for (int64_t o = 0; o < pixels; o += kPixels) {
    if (ctx.ShouldStop()) return false;
    fn(o, std::min(kPixels, pixels - o));
  }
  return true;
}

// The maximum number of elements of a window that are combined between two checks for a stop.
inline constexpr int64_t kMaxWindowElements = 64;

// Returns the number of rows that a vector loop combines at a time, for windows of `columns`
// columns. The run can be stopped only between calls of the vector loop, so a call combines few
// rows of wide windows. Rows that must be converted are combined one at a time.
inline int64_t RowsAtATime(bool converts, int64_t columns) {
  constexpr int64_t kMaxRows = 8;
  return converts ? 1 : std::clamp<int64_t>(kMaxWindowElements / columns, 1, kMaxRows);
}

// Pools inputs whose elements are computed as C.
template <typename C, typename Op>
class RowPooler {
 public:
  using A = typename Op::Accumulator;

  RowPooler(const PoolGeometry& g, const Tensor& input, Tensor* output)
      : g_(g),
        by_column_(g.depth == 1 && !g.HasSparseColumns()),
        reader_(input),
        writer_(output, input, g.depth) {
    if (kIsFloat && g.depth >= kMinPoolVector) windows_ = ColumnWindows(g);
    // Per pixel, a single step reads `elements` elements, and two steps read `separate`.
    const double columns = static_cast<double>(std::min(g.size[2], g.in[2]));
    const double elements = g.window_rows() * columns;
    const double separate = (g.window_rows() + 1) * static_cast<double>(g.stride[2]) + columns + 1;
    in_one_step_ = !windows_.empty() && !reader_.converts() && g.in[0] == 1 &&
                   elements <= separate && elements <= kMaxWindowElements;
  }

  // Pools all rows.
  absl::Status Run(KernelContext& ctx) const {
    const int64_t bytes = PaddedBytes<C>(g_.in_row()) + PaddedBytes<A>(g_.in_row()) +
                          PaddedBytes<A>(AccumulatorSize()) +
                          (writer_.converts() ? PaddedBytes<C>(g_.out_row()) : 0);
    const double cost = 0.3 * sizeof(C) / 4 *
                        (static_cast<double>(g_.in_row()) * g_.window_rows() +
                         static_cast<double>(g_.out_row()) * std::min(g_.size[2], g_.in[2]));
    return ForEachPoolRow(ctx, g_.out_rows(), cost, bytes,
                          [&](int64_t row, char* scratch) { PoolRow(ctx, row, scratch); });
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<C, float> && std::is_same_v<A, float>;

  int64_t AccumulatorSize() const { return g_.depth == 1 ? g_.out[2] : g_.depth; }

  void PoolRow(const KernelContext& ctx, int64_t row, char* scratch) const {
    C* const read = reinterpret_cast<C*>(scratch);
    scratch += PaddedBytes<C>(g_.in_row());
    A* const columns = reinterpret_cast<A*>(scratch);
    scratch += PaddedBytes<A>(g_.in_row());
    A* const sums = reinterpret_cast<A*>(scratch);
    scratch += PaddedBytes<A>(AccumulatorSize());
    C* const y = writer_.Place(row * g_.out_row(), reinterpret_cast<C*>(scratch));

    const PoolRange planes = g_.Window(0, row / g_.out[1] % g_.out[0]);
    const PoolRange rows = g_.Window(1, row % g_.out[1]);
    const int64_t batch = row / g_.out[1] / g_.out[0];
    const int64_t n = g_.in_row();
    if constexpr (kIsFloat) {
      if (in_one_step_) {
        const C* const x = reader_.Read((batch * g_.in[1] + rows.begin) * n, n, read);
        ForPixels(ctx, g_.out[2], [&](int64_t o, int64_t pixels) {
          PoolWindows(Op::kKind, x, n, rows.size(), windows_.data() + o, pixels, g_.depth,
                      rows.size(), writer_.non_temporal(), y + o * g_.depth);
        });
        return;
      }
    }
    bool is_first = true;
    for (int64_t p = planes.begin; p < planes.end; ++p) {
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        if (r % 64 == 0 && ctx.ShouldStop()) return;
        const C* const x = reader_.Read(((batch * g_.in[0] + p) * g_.in[1] + r) * n, n, read);
        if constexpr (kIsFloat) {
          if (!windows_.empty()) {
            // Rows that need no conversion are contiguous: combine all rows up to the next check
            // for a stop.
            const int64_t some = x == read ? 1 : std::min(rows.end - r, 64 - r % 64);
            PoolRows(Op::kKind, x, n, some, is_first, n, columns);
            r += some - 1;
            is_first = false;
            continue;
          }
        }
        if (is_first) {
          for (int64_t i = 0; i < n; ++i) columns[i] = Op::Combine(Op::Initial(), x[i]);
        } else {
          for (int64_t i = 0; i < n; ++i) columns[i] = Op::Combine(columns[i], x[i]);
        }
        is_first = false;
      }
    }
    if (is_first) std::fill_n(columns, n, Op::Initial());
    const int64_t count = planes.size() * rows.size();
    if constexpr (kIsFloat) {
      if (!windows_.empty()) {
        if (!ForPixels(ctx, g_.out[2], [&](int64_t o, int64_t pixels) {
              PoolWindows(Op::kKind, columns, n, 1, windows_.data() + o, pixels, g_.depth, count,
                          writer_.non_temporal(), y + o * g_.depth);
            })) {
          return;
        }
        return writer_.Write(y, row * g_.out_row(), g_.out_row());
      }
    }
    if (by_column_) {
      PoolColumns(ctx, columns, count, sums, y);
    } else {
      for (int64_t o = 0; o < g_.out[2]; ++o) {
        if (o % 64 == 0 && ctx.ShouldStop()) return;
        PoolPixel(columns, count, o, sums, y + o * g_.depth);
      }
    }
    writer_.Write(y, row * g_.out_row(), g_.out_row());
  }

  // Combines the columns of the window of one pixel.
  void PoolPixel(const A* columns, int64_t count, int64_t o, A* sums, C* y) const {
    const int64_t depth = g_.depth;
    const PoolRange window = g_.Window(2, o);
    std::fill_n(sums, depth, Op::Initial());
    for (int64_t c = window.begin; c < window.end; ++c) {
      const A* const x = columns + c * depth;
      for (int64_t d = 0; d < depth; ++d) sums[d] = Op::Combine(sums[d], x[d]);
    }
    count *= window.size();
    for (int64_t d = 0; d < depth; ++d) y[d] = static_cast<C>(Op::Finish(sums[d], count));
  }

  // Combines the columns of the windows of a row with depth 1.
  void PoolColumns(const KernelContext& ctx, const A* columns, int64_t count, A* sums, C* y) const {
    std::fill_n(sums, g_.out[2], Op::Initial());
    const PoolRange used = g_.UsedColumns();
    for (int64_t k = used.begin; k < used.end; ++k) {
      if (k % 64 == 0 && ctx.ShouldStop()) return;
      const PoolRange windows = g_.WindowsWithColumn(k);
      const A* const x = columns + windows.begin * g_.stride[2] - g_.padding[2] + k;
      A* const to = sums + windows.begin;
      WithConstantStride(g_.stride[2], [&](auto stride) {
        for (int64_t i = 0; i < windows.size(); ++i) to[i] = Op::Combine(to[i], x[i * stride]);
      });
    }
    for (int64_t o = 0; o < g_.out[2]; ++o) {
      y[o] = static_cast<C>(Op::Finish(sums[o], count * g_.Window(2, o).size()));
    }
  }

  const PoolGeometry& g_;
  // True if loops run over the columns of windows instead of over windows.
  const bool by_column_;
  const RowReader<C> reader_;
  const RowWriter<C> writer_;
  // True if the elements of a window are combined in one step.
  bool in_one_step_ = false;
  // The windows' columns, for each column of the output. Empty unless pixels are computed with
  // vectors.
  std::vector<PoolRange> windows_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_POOL_ROWS_H_
