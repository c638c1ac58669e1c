// Scans along an axis: Cumsum, Cumprod and CumulativeLogsumexp.
//
// The input is viewed as [outer, n, inner] around the axis. Tiles of columns are scanned in
// parallel. If there are few tiles, the axis is split into blocks. The first pass reduces each
// block; the second pass scans each block, starting from the combination of the preceding blocks.
// Blocks depend only on the shape.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/common/tile_copy.h"
#include "gradflow/ops/math/reduction.h"
#include "gradflow/ops/math/row_reduction_simd.h"
#include "gradflow/ops/math/sum_policy.h"

namespace gradflow::scan {
namespace {

// The number of columns of a tile. Rows are read in long runs, and the accumulators stay in a fast
// cache.
constexpr int64_t kTile = 512;
// The number of lines along the last dimension that are scanned together, so that their additions
// overlap.
constexpr int kLines = 4;
// The number of rows to prefetch ahead. Prefetches beyond the last row have no effect.
constexpr int64_t kAhead = 4;
// With fewer tiles, the axis is split into blocks at the cost of a second pass.
constexpr int64_t kEnoughTasks = 8;
constexpr int64_t kMinBlockElements = 1 << 15;
constexpr int64_t kMaxBlocks = 256;
// The maximum size of an accumulator.
constexpr size_t kMaxAccumulatorSize = 16;

// log(sum(exp(x))), accumulated in double as the maximum and the sum of exp(x - max).
template <typename T>
struct LogSumExp {
  using Element = T;
  struct Accumulator {
    double max;
    double sum;
  };
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static Accumulator Nothing() { return {-kInfinity, 0}; }
  static void Add(T x, Accumulator* a) { Merge({static_cast<double>(x), 1}, a); }
  // If the maximum or the sum is NaN, the result is NaN.
  static void Merge(const Accumulator& from, Accumulator* a) {
    if (from.max > a->max) {
      *a = {from.max, a->sum * std::exp(a->max - from.max) + from.sum};
    } else if (from.max == a->max) {
      // Includes equal infinite maxima, whose difference is NaN.
      a->sum += from.sum;
    } else {
      a->sum += from.sum * std::exp(from.max - a->max);
    }
  }
  static T Finish(const Accumulator& a, int64_t) {
    // If all elements are -infinity, the sum is their number, and the result is -infinity.
    return static_cast<T>(a.max == -kInfinity && a.sum == a.sum ? a.max : a.max + std::log(a.sum));
  }
};

// A policy as functions on arrays.
struct Scanner {
  size_t element_size;
  size_t accumulator_size;
  // The number of parts of an element that are scanned independently: 2 for complex numbers.
  int parts;
  double nanoseconds;
  void (*clear)(int64_t n, void* accumulators);
  // Adds x[r * row_stride + j * stride] to accumulator j for all r in [0, rows), in order, and all
  // j in [0, n).
  void (*add)(const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
              void* accumulators);
  // Adds accumulator j of `from` to accumulator j.
  void (*merge)(const void* from, int64_t n, void* accumulators);
  // Adds like `add`. Sets out[r * row_stride + j * stride] to the result before the addition if
  // `exclusive` is true, otherwise after the addition. If `non_temporal` is true, rows of `out`
  // begin at cache lines and may be written with non-temporal stores.
  void (*scan)(const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
               bool exclusive, bool non_temporal, void* accumulators, void* out);
};

// Scans `n` columns. If kColumns is not 0, keeps kColumns accumulators in registers. If kColumns is
// 0, the stride is 1.
template <typename Policy, bool kExclusive, int kColumns>
void ScanColumns(const typename Policy::Element* x, int64_t rows, int64_t row_stride, int64_t n,
                 int64_t stride, typename Policy::Accumulator* accumulators,
                 typename Policy::Element* out) {
  typename Policy::Accumulator registers[kColumns > 0 ? kColumns : 1];
  auto* const a = kColumns > 0 ? registers : accumulators;
  const int64_t columns = kColumns > 0 ? kColumns : n;
  // A constant in the loop that the compiler should vectorize.
  const int64_t step = kColumns > 0 ? stride : 1;
  if (kColumns > 0) std::copy_n(accumulators, columns, a);
  for (int64_t r = 0; r < rows; ++r) {
    const auto* from = x + r * row_stride;
    auto* to = out + r * row_stride;
    if (kColumns == 0) internal::Prefetch(from + kAhead * row_stride, columns);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t j = 0; j < columns; ++j) {
      // Read before the output is written, because x and out may be the same memory.
      const auto element = from[j * step];
      if (kExclusive) to[j * step] = Policy::Finish(a[j], 1);
      Policy::Add(element, &a[j]);
      if (!kExclusive) to[j * step] = Policy::Finish(a[j], 1);
    }
  }
  if (kColumns > 0) std::copy_n(a, columns, accumulators);
}

template <typename Policy, bool kExclusive>
void ScanRows(const typename Policy::Element* x, int64_t rows, int64_t row_stride, int64_t n,
              int64_t stride, typename Policy::Accumulator* accumulators,
              typename Policy::Element* out) {
  if (stride == 1 && n > kLines) {
    ScanColumns<Policy, kExclusive, 0>(x, rows, row_stride, n, 1, accumulators, out);
    return;
  }
  int64_t j = 0;
  for (; j + kLines <= n; j += kLines) {
    ScanColumns<Policy, kExclusive, kLines>(x + j * stride, rows, row_stride, kLines, stride,
                                            accumulators + j, out + j * stride);
  }
  for (; j < n; ++j) {
    ScanColumns<Policy, kExclusive, 1>(x + j * stride, rows, row_stride, 1, stride,
                                       accumulators + j, out + j * stride);
  }
}

template <typename Policy>
Scanner MakeScanner(double nanoseconds, int parts = 1) {
  using Element = typename Policy::Element;
  using Accumulator = typename Policy::Accumulator;
  static_assert(sizeof(Accumulator) <= kMaxAccumulatorSize);
  return {sizeof(Element),
          sizeof(Accumulator),
          parts,
          nanoseconds,
          [](int64_t n, void* accumulators) {
            std::fill_n(static_cast<Accumulator*>(accumulators), n, Policy::Nothing());
          },
          [](const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
             void* accumulators) {
            const auto* elements = static_cast<const Element*>(x);
            auto* a = static_cast<Accumulator*>(accumulators);
            for (int64_t r = 0; r < rows; ++r) {
              for (int64_t j = 0; j < n; ++j) {
                Policy::Add(elements[r * row_stride + j * stride], &a[j]);
              }
            }
          },
          [](const void* from, int64_t n, void* accumulators) {
            const auto* b = static_cast<const Accumulator*>(from);
            auto* a = static_cast<Accumulator*>(accumulators);
            for (int64_t j = 0; j < n; ++j) Policy::Merge(b[j], &a[j]);
          },
          [](const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
             bool exclusive, bool, void* accumulators, void* out) {
            const auto scan = exclusive ? &ScanRows<Policy, true> : &ScanRows<Policy, false>;
            scan(static_cast<const Element*>(x), rows, row_stride, n, stride,
                 static_cast<Accumulator*>(accumulators), static_cast<Element*>(out));
          }};
}

// Scans sums of floats along adjacent columns with vectors.
void ScanFloatSums(const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                   bool exclusive, bool non_temporal, void* accumulators, void* out) {
  constexpr int64_t kMinColumns = 16;
  const auto* const from = static_cast<const float*>(x);
  auto* const sums = static_cast<double*>(accumulators);
  auto* const to = static_cast<float*>(out);
  if (stride == 1 && n >= kMinColumns) {
    return ScanSumRows(from, rows, row_stride, n, exclusive, non_temporal, sums, to);
  }
  const auto scan =
      exclusive ? &ScanRows<NarrowSum<float>, true> : &ScanRows<NarrowSum<float>, false>;
  scan(from, rows, row_stride, n, stride, sums, to);
}

// A scan of an input that is not empty.
class Scan {
 public:
  // The attributes of the op.
  struct Direction {
    bool exclusive;
    bool reverse;
  };

  Scan(const Scanner& scanner, Direction direction, int64_t outer, int64_t n, int64_t inner,
       const void* x, void* out)
      : scanner_(scanner),
        direction_(direction),
        n_(n),
        inner_(inner),
        x_(static_cast<const char*>(x)),
        out_(static_cast<char*>(out)) {
    row_stride_ = inner;
    stride_ = 1;
    if (inner == 1 && outer > 1) {
      // Lines of adjacent elements are the columns of the transpose.
      inner_ = outer;
      outer = 1;
      row_stride_ = 1;
      stride_ = n;
    }
    tile_ = std::min<int64_t>(inner_, stride_ == 1 ? kTile : kLines);
    tiles_per_row_ = NumBlocks(inner_, tile_);
    tiles_ = outer * tiles_per_row_;
    const int64_t row_bytes = inner_ * static_cast<int64_t>(scanner.element_size);
    non_temporal_ =
        stride_ == 1 && ShouldUseNonTemporalStores(out, out == x, outer * n * row_bytes, row_bytes);
    block_rows_ = n;
    if (tiles_ < kEnoughTasks) {
      block_rows_ =
          std::min(n, std::max(NumBlocks(kMinBlockElements, tile_), NumBlocks(n, kMaxBlocks)));
    }
    blocks_ = NumBlocks(n, block_rows_);
  }

  absl::Status Run(KernelContext& ctx) const {
    const int64_t tasks =
        BlockSizeForCost(scanner_.nanoseconds * static_cast<double>(tile_ * block_rows_) + 20);
    const auto scan = [&](int64_t tile, int64_t block, char* accumulators) {
      const Block b = BlockAt(tile, block);
      scanner_.scan(x_ + b.offset, b.rows, b.row_stride, b.columns, stride_, direction_.exclusive,
                    non_temporal_, accumulators, out_ + b.offset);
      if (non_temporal_) StoreFence();
    };
    if (blocks_ == 1) {
      ParallelFor(ctx, tiles_, tasks, [&](int64_t begin, int64_t end) {
        alignas(64) char accumulators[kTile * kMaxAccumulatorSize];
        for (int64_t tile = begin; tile < end; ++tile) {
          scanner_.clear(tile_, accumulators);
          scan(tile, 0, accumulators);
        }
      });
      return absl::OkStatus();
    }
    // Accumulators before each block: first the reduction of the previous block, then of all
    // previous blocks.
    const int64_t stride = tile_ * static_cast<int64_t>(scanner_.accumulator_size);
    Tensor temp;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT8, {tiles_ * blocks_ * stride}, &temp));
    char* before = static_cast<char*>(temp.raw_data());
    ParallelFor(ctx, tiles_ * blocks_, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        scanner_.clear(tile_, before + task * stride);
        if (task % blocks_ == 0) continue;
        const Block b = BlockAt(task / blocks_, task % blocks_ - 1);
        scanner_.add(x_ + b.offset, b.rows, b.row_stride, b.columns, stride_,
                     before + task * stride);
      }
    });
    ParallelFor(ctx, tiles_, BlockSizeForCost(static_cast<double>(tile_ * blocks_)),
                [&](int64_t begin, int64_t end) {
                  alignas(64) char sum[kTile * kMaxAccumulatorSize];
                  for (int64_t tile = begin; tile < end; ++tile) {
                    scanner_.clear(tile_, sum);
                    for (int64_t block = 0; block < blocks_; ++block) {
                      char* here = before + (tile * blocks_ + block) * stride;
                      scanner_.merge(here, tile_, sum);
                      std::copy_n(sum, stride, here);
                    }
                  }
                });
    ParallelFor(ctx, tiles_ * blocks_, tasks, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        scan(task / blocks_, task % blocks_, before + task * stride);
      }
    });
    return absl::OkStatus();
  }

 private:
  struct Block {
    // The offset in bytes of the block's first row in the direction of the scan.
    int64_t offset;
    int64_t rows;
    int64_t row_stride;
    int64_t columns;
  };

  // Returns block `block` of a tile, counted in the direction of the scan.
  Block BlockAt(int64_t tile, int64_t block) const {
    const int64_t first = block * block_rows_;
    const int64_t column = tile % tiles_per_row_ * tile_;
    const int64_t row = direction_.reverse ? n_ - 1 - first : first;
    const int64_t offset =
        tile / tiles_per_row_ * n_ * inner_ + row * row_stride_ + column * stride_;
    return {offset * static_cast<int64_t>(scanner_.element_size), std::min(block_rows_, n_ - first),
            direction_.reverse ? -row_stride_ : row_stride_, std::min(tile_, inner_ - column)};
  }

  const Scanner& scanner_;
  const Direction direction_;
  const int64_t n_;
  // The number of columns, and the strides between rows and between columns.
  int64_t inner_;
  int64_t row_stride_;
  int64_t stride_;
  // True if results are written with non-temporal stores.
  bool non_temporal_;
  const char* const x_;
  char* const out_;
  // The number of columns of a tile, and the numbers of tiles.
  int64_t tile_;
  int64_t tiles_per_row_;
  int64_t tiles_;
  // The number of rows of a block, and the number of blocks of a tile.
  int64_t block_rows_;
  int64_t blocks_;
};

template <Scanner (*Make)(DataType)>
class ScanKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    scanner_ = Make(construction.output_type(0));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("exclusive", &direction_.exclusive));
    return construction.GetAttr("reverse", &direction_.reverse);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.dtype() != ctx.expected_output_dtype(0)) {
      return errors::InvalidArgument("x must be of type ",
                                     DataTypeString(ctx.expected_output_dtype(0)), ", but is ",
                                     DataTypeString(x.dtype()));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t index, ctx.ScalarInt(1, "axis"));
    GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("axis", index, x.dims()));
    const TensorShape shape = x.shape();
    const void* elements = x.raw_data();
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, shape, &out));
    if (shape.num_elements() == 0) return absl::OkStatus();
    int64_t outer = 1;
    int64_t inner = scanner_.parts;
    for (int d = 0; d < axis; ++d) outer *= shape.dim_size(d);
    for (int d = axis + 1; d < shape.dims(); ++d) inner *= shape.dim_size(d);
    return Scan(scanner_, direction_, outer, shape.dim_size(axis), inner, elements, out->raw_data())
        .Run(ctx);
  }

 private:
  Scanner scanner_ = {};
  Scan::Direction direction_ = {};
};

Scanner SumScanner(DataType dtype) {
  Scanner scanner = {};
  if (dtype == DT_COMPLEX64) return MakeScanner<NarrowSum<float>>(1, 2);
  if (dtype == DT_COMPLEX128) return MakeScanner<DoubleSum>(2, 2);
  DispatchType(RealTypes(), dtype, [&](auto tag) {
    scanner = MakeScanner<SumPolicy<typename decltype(tag)::type>>(1);
  });
  if (dtype == DT_FLOAT) scanner.scan = ScanFloatSums;
  return scanner;
}

Scanner ProductScanner(DataType dtype) {
  Scanner scanner = {};
  DispatchType(NumberTypes(), dtype, [&](auto tag) {
    scanner = MakeScanner<ProductPolicy<typename decltype(tag)::type>>(1.5);
  });
  return scanner;
}

Scanner LogSumExpScanner(DataType dtype) {
  Scanner scanner = {};
  DispatchType(FloatingTypes(), dtype, [&](auto tag) {
    scanner = MakeScanner<LogSumExp<typename decltype(tag)::type>>(20);
  });
  return scanner;
}

absl::Status ScanShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  std::vector<int64_t> axis;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(1, &axis));
  if (known && !c.input(0).unknown_rank()) {
    GRADFLOW_RETURN_IF_ERROR(CanonicalAxis("axis", axis[0], c.input(0).dims()).status());
  }
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

void RegisterScan(Registry& registry, absl::string_view op, absl::string_view types,
                  absl::string_view doc) {
  registry.Op(op)
      .Group("math_ops")
      .Input("x: T")
      .Input("axis: Tidx")
      .Output("out: T")
      .Attr("exclusive: bool = false")
      .Attr("reverse: bool = false")
      .Attr(absl::StrCat("T: ", types))
      .Attr("Tidx: {int32, int64} = DT_INT32")
      .Shape(ScanShape)
      .Doc(absl::StrCat(doc, R"(

x: A tensor.
axis: A scalar: the axis, in [-rank(x), rank(x)).
out: The results, of the shape of `x`.
exclusive: If true, an element of `out` combines only the elements of `x` before its position.
reverse: If true, scans from the last element to the first.
T: The type of `x` and `out`.
Tidx: The type of `axis`.)"));
}

}  // namespace

void Register(Registry& registry) {
  RegisterScan(registry, "Cumsum", "numbertype",
               R"(Computes the cumulative sum of elements along an axis.

float, half and bfloat16 are summed in double, and double is summed with compensation. Every element
is rounded once. Integers wrap around.)");
  RegisterScan(registry, "Cumprod", "numbertype",
               R"(Computes the cumulative product of elements along an axis.

Floating-point and complex numbers are multiplied in double, and every element is rounded once.
Integers wrap around.)");
  RegisterScan(registry, "CumulativeLogsumexp", "{bfloat16, half, float, double}",
               R"(Computes the logarithm of the cumulative sum of exp(x) along an axis.

The sum is computed in double, relative to the largest element, and does not overflow. The result
for no elements is minus infinity. The results from a NaN on are NaN.)");
  registry.Kernel("Cumsum", MakeKernel<ScanKernel<SumScanner>>)
      .Types("T", DataTypesOf(NumberTypes()));
  registry.Kernel("Cumprod", MakeKernel<ScanKernel<ProductScanner>>)
      .Types("T", DataTypesOf(NumberTypes()));
  registry.Kernel("CumulativeLogsumexp", MakeKernel<ScanKernel<LogSumExpScanner>>)
      .Types("T", DataTypesOf(FloatingTypes()));
}

}  // namespace gradflow::scan
