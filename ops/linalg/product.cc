// Products are computed in blocks that depend only on the shapes. Each block is computed by calls
// of the BLAS or oneDNN (blas.h), so the bits are the same for any number of threads. Both
// libraries select their code by processor, so the last bits may differ between processors.
#include "gradflow/ops/linalg/product.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/clones.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/linalg/blas.h"
#include "gradflow/ops/linalg/plain_product.h"
#include "gradflow/ops/linalg/register_product.h"

namespace gradflow {
namespace {

// The sizes of a product [m, k] * [k, n].
struct GemmSizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

// Batches of matrices to multiply, and the locations of the matrices.
template <typename T>
struct MatrixBatches {
  const RunContext& run;
  GemmSizes sizes;
  int64_t count;
  BlasMatrix<const T> x;
  BlasMatrix<const T> y;
  BlasMatrix<T> out;
  // The offsets of the matrices of a batch, as a loop over the batch dimensions.
  DimVector dims;
  DimVector x_strides;
  DimVector y_strides;
  const FusedSteps* steps = nullptr;

  void Move(int64_t batch, BlasMatrix<const T>* x_at, BlasMatrix<const T>* y_at,
            BlasMatrix<T>* out_at) const {
    *x_at = x;
    *y_at = y;
    *out_at = out;
    out_at->data += batch * sizes.m * sizes.n;
    for (size_t d = dims.size(); d-- > 0 && batch > 0;) {
      x_at->data += batch % dims[d] * x_strides[d];
      y_at->data += batch % dims[d] * y_strides[d];
      batch /= dims[d];
    }
  }
};

// ---- Small products ----

// Products with fewer multiplications are faster without a call of the BLAS, which packs its
// operands.
constexpr int64_t kSmallProduct = 8192;
// Vectors of fewer columns would be mostly empty.
constexpr int64_t kMinRegisterColumns = 3;
// Smaller products are faster in plain loops.
constexpr int64_t kMinRegisterProduct = 64;

// ---- Products with the BLAS ----

// The part of a product that one call of the BLAS computes.
struct GemmBlock {
  int64_t rows;
  int64_t columns;
  // The number of elements of a row of x. It limits a call to a few milliseconds, because a run can
  // be stopped only between calls.
  int64_t inner;
};

// The side of a block. It is doubled if enough blocks remain for many threads, because each call of
// the BLAS packs its operands again.
constexpr int64_t kBlockSide = 256;
constexpr int64_t kEnoughBlocks = 8;

// Block sizes for oneDNN, largest first. The first size that leaves enough blocks is used. oneDNN's
// code computes 48 columns at a time. A small number of rows is not divided, because each call
// packs its part of y again.
constexpr GemmBlock kFloatBlocks[] = {{512, 576, 1024}, {512, 384, 1536}, {512, 288, 2048},
                                      {256, 288, 4096}, {128, 288, 4096}, {128, 192, 4096},
                                      {128, 96, 4096},  {64, 96, 4096}};
// The overhead of a call would dominate for smaller blocks.
constexpr double kMinProducts = 2e6;

GemmBlock FloatBlockOf(const GemmSizes& sizes) {
  GemmBlock chosen = kFloatBlocks[0];
  for (const GemmBlock& block : kFloatBlocks) {
    const double products = static_cast<double>(std::min(sizes.m, block.rows)) *
                            static_cast<double>(std::min(sizes.n, block.columns)) *
                            static_cast<double>(sizes.k);
    if (products < kMinProducts) break;
    chosen = block;
    if (NumBlocks(sizes.m, block.rows) * NumBlocks(sizes.n, block.columns) >= kEnoughBlocks) break;
  }
  return chosen;
}

// Returns blocks with few enough rows to split small matrices into several blocks of a few million
// operations, and enough rows for the BLAS to be efficient.
GemmBlock BlockOf(const GemmSizes& sizes, int64_t element_size) {
  GemmBlock block = {kBlockSide, kBlockSide, 16384 / element_size};
  const auto count = [&](int64_t rows, int64_t columns) {
    return NumBlocks(sizes.m, rows) * NumBlocks(sizes.n, columns);
  };
  constexpr int64_t kTwice = 2 * kBlockSide;
  if (sizes.m >= kTwice && sizes.n >= kTwice && count(kTwice, kTwice) >= kEnoughBlocks) {
    return {kTwice, kTwice, block.inner / 4};
  }
  if (sizes.m >= kTwice && count(kTwice, kBlockSide) >= kEnoughBlocks) {
    return {kTwice, kBlockSide, block.inner / 2};
  }
  const int64_t row = std::min(sizes.n, kBlockSide) * sizes.k;
  block.rows = std::clamp<int64_t>(NumBlocks(NumBlocks(4000000, row), 32) * 32, 32, kBlockSide);
  return block;
}

template <typename T>
void Multiply(const MatrixBatches<T>& batches) {
  const GemmSizes& sizes = batches.sizes;
  const RunContext& run = batches.run;
  const bool by_onednn = std::is_same_v<T, float> && OneDnnHasFastGemm();
  const GemmBlock block = by_onednn ? FloatBlockOf(sizes) : BlockOf(sizes, sizeof(T));
  const int64_t blocks_across = NumBlocks(sizes.n, block.columns);
  // A double, because the product of the sizes may overflow.
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  const bool small = product(sizes.m, sizes.n, sizes.k) <= kSmallProduct;
  // A small product is a single block.
  const int64_t blocks = small ? 1 : NumBlocks(sizes.m, block.rows) * blocks_across;
  const double products =
      small ? product(sizes.m, sizes.n, sizes.k)
            : product(std::min(sizes.m, block.rows), std::min(sizes.n, block.columns), sizes.k);
  const auto multiply_blocks = [&](int64_t begin, int64_t end) {
    BlasMatrix<const T> x;
    BlasMatrix<const T> y;
    BlasMatrix<T> out;
    std::vector<T> scratch;
    for (int64_t task = begin; task < end; ++task) {
      batches.Move(task / blocks, &x, &y, &out);
      // Called with the rows and columns of the product that are complete.
      const auto finish = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
        if constexpr (std::is_same_v<T, float>) {
          if (batches.steps == nullptr) return;
          batches.steps->Apply({out.Block(row, column).data, out.stride,
                                task / blocks * sizes.m + row, rows, column, columns});
        }
      };
      if (small) {
        if (sizes.n >= kMinRegisterColumns && products >= kMinRegisterProduct) {
          MultiplyInRegisters(sizes.m, sizes.n, sizes.k, x, y, out, /*add=*/false, &scratch);
        } else {
          MultiplySmall(sizes.m, sizes.n, sizes.k, x, y, out);
        }
        finish(0, sizes.m, 0, sizes.n);
        continue;
      }
      const int64_t row = task % blocks / blocks_across * block.rows;
      const int64_t column = task % blocks_across * block.columns;
      for (int64_t p = 0; p < sizes.k && (p == 0 || !run.ShouldStop()); p += block.inner) {
        BlasGemm(std::min(block.rows, sizes.m - row), std::min(block.columns, sizes.n - column),
                 std::min(block.inner, sizes.k - p), x.Block(row, p), y.Block(p, column),
                 out.Block(row, column), /*add=*/p > 0);
      }
      finish(row, std::min(block.rows, sizes.m - row), column,
             std::min(block.columns, sizes.n - column));
    }
  };
  const double nanoseconds = small ? 0.25 * products + 20 : 0.02 * sizeof(T) * products + 500;
  ParallelFor(small || GemmIsConcurrent<T>() ? run : SerialLoops(run), batches.count * blocks,
              BlockSizeForCost(nanoseconds), multiply_blocks);
}

// ---- Products of integers, which wrap around ----

// The number of bytes of a result row that are accumulated at a time. They stay in the L1 cache.
constexpr int64_t kSumBytes = 16384;
// The number of products between checks for a stop of the run. If y is transposed, it is read with
// a stride and products take longer.
constexpr int64_t kInnerProducts = int64_t{1} << 17;

// Adds factor * from[j * stride] to to[j] for j < n.
template <typename T>
GRADFLOW_CLONES void AddIntegerMultiple(T factor, const T* from, int64_t stride, int64_t n, T* to) {
  if (stride == 1) {
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(to[j] + 1u * factor * from[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] = static_cast<T>(to[j] + 1u * factor * from[j * stride]);
  }
}

// Multiplies blocks of rows by columns that fit a vector.
template <typename T>
void MultiplyIntegerBlocks(const MatrixBatches<T>& batches) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kColumns = RegisterColumns<T>();
  const GemmSizes& sizes = batches.sizes;
  const RunContext& run = batches.run;
  const int64_t rows = std::min(sizes.m, kRows);
  // Small matrices are single tasks.
  const int64_t columns =
      static_cast<double>(rows) * sizes.n * static_cast<double>(sizes.k) <= kInnerProducts
          ? sizes.n
          : kColumns;
  const int64_t block_inner = kInnerProducts / (rows * kColumns);
  const int64_t blocks_across = NumBlocks(sizes.n, columns);
  const int64_t blocks = NumBlocks(sizes.m, kRows) * blocks_across;
  const double block_nanoseconds =
      0.1 * static_cast<double>(rows * columns) * static_cast<double>(sizes.k) + 20;
  ParallelFor(run, batches.count * blocks, BlockSizeForCost(block_nanoseconds),
              [&](int64_t begin, int64_t end) {
                BlasMatrix<const T> x;
                BlasMatrix<const T> y;
                BlasMatrix<T> out;
                std::vector<T> scratch;
                for (int64_t task = begin; task < end; ++task) {
                  batches.Move(task / blocks, &x, &y, &out);
                  const int64_t row = task % blocks / blocks_across * kRows;
                  const int64_t column = task % blocks_across * columns;
                  for (int64_t p = 0; p < sizes.k && (p == 0 || !run.ShouldStop());
                       p += block_inner) {
                    MultiplyInRegisters<T>(std::min(kRows, sizes.m - row),
                                           std::min(columns, sizes.n - column),
                                           std::min(block_inner, sizes.k - p), x.Block(row, p),
                                           y.Block(p, column), out.Block(row, column),
                                           /*add=*/p > 0, &scratch);
                  }
                }
              });
}

template <typename T>
void MultiplyIntegers(const MatrixBatches<T>& batches) {
  // A few long rows are multiplied in the order of memory.
  constexpr int64_t kFewRows = 4;
  if (batches.sizes.m >= kFewRows && batches.sizes.n >= kMinRegisterColumns) {
    return MultiplyIntegerBlocks(batches);
  }
  constexpr int64_t block_columns = kSumBytes / static_cast<int64_t>(sizeof(T));
  const GemmSizes& sizes = batches.sizes;
  const RunContext& run = batches.run;
  const int64_t most_columns = std::min(sizes.n, block_columns);
  const int64_t block_inner = std::max<int64_t>(1, kInnerProducts / most_columns);
  const int64_t blocks_across = NumBlocks(sizes.n, block_columns);
  const int64_t blocks = sizes.m * blocks_across;
  const double block_nanoseconds = 0.5 * static_cast<double>(most_columns) * sizes.k + 5;
  const auto multiply_blocks = [&](int64_t begin, int64_t end) {
    BlasMatrix<const T> x;
    BlasMatrix<const T> y;
    BlasMatrix<T> out;
    for (int64_t task = begin; task < end; ++task) {
      batches.Move(task / blocks, &x, &y, &out);
      const int64_t i = task % blocks / blocks_across;
      const int64_t column = task % blocks_across * block_columns;
      const int64_t columns = std::min(block_columns, sizes.n - column);
      T* row = out.data + i * out.stride + column;
      std::fill_n(row, columns, T(0));
      for (int64_t start = 0; start < sizes.k && (start == 0 || !run.ShouldStop());
           start += block_inner) {
        const int64_t stop = std::min(block_inner, sizes.k - start) + start;
        for (int64_t p = start; p < stop; ++p) {
          const T factor = *x.Block(i, p).data;
          AddIntegerMultiple(factor, y.Block(p, column).data, y.transposed ? y.stride : 1, columns,
                             row);
        }
      }
    }
  };
  ParallelFor(run, batches.count * blocks, BlockSizeForCost(block_nanoseconds), multiply_blocks);
}

// ---- Any type ----

template <typename T>
BlasMatrix<const T> MatrixOf(const Tensor& tensor, ProductForm form) {
  return {static_cast<const T*>(tensor.raw_data()), tensor.dim_size(tensor.dims() - 1),
          form.transposed, form.conjugated};
}

// Returns the strides of the batch dimensions of `tensor` when broadcast to `batch_dims`.
DimVector BatchStrides(const Tensor& tensor, absl::Span<const int64_t> batch_dims) {
  const absl::Span<const int64_t> dims = tensor.shape().dim_sizes();
  DimVector strides = BroadcastStrides(dims.first(dims.size() - 2), batch_dims);
  for (int64_t& stride : strides) stride *= dims[dims.size() - 2] * dims[dims.size() - 1];
  return strides;
}

// Calls fn(TypeTag<T>()) with the type that computes products of `dtype`.
template <typename F>
void DispatchProductType(DataType dtype, F&& fn) {
  using Types = TypeList<float, double, complex64, complex128, int8_t, int16_t, int32_t, int64_t,
                         uint8_t, uint16_t, uint32_t, uint64_t>;
  DispatchType(Types(), dtype,
               [&](auto tag) { fn(TypeTag<WrappingType<typename decltype(tag)::type>>()); });
}

template <typename From, typename To>
inline constexpr bool kConverts = (kIsComplex<To> || !kIsComplex<From>)&&(!std::is_integral_v<To> ||
                                                                          std::is_integral_v<From>);

// REQUIRES: `dtype` is DT_HALF or DT_BFLOAT16
ElementType Float16Type(DataType dtype) {
  return dtype == DT_HALF ? ElementType::kHalf : ElementType::kBfloat16;
}

// Converts n elements.
template <typename From, typename To>
void CastElements(const From* from, int64_t n, To* to) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kIsComplex<To> && !kIsComplex<From>) {
      to[i] = To(static_cast<typename To::value_type>(from[i]));
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

}  // namespace

DataType ProductType(DataType dtype) {
  return dtype == DT_HALF || dtype == DT_BFLOAT16 ? DT_FLOAT : dtype;
}

bool CanConvertElements(DataType from, DataType to) {
  if (DataTypeIsComplex(from)) return DataTypeIsComplex(to);
  return DataTypeIsInteger(from) || !DataTypeIsInteger(to);
}

absl::Status ConvertElements(KernelContext& ctx, const Tensor& from, DataType to, Tensor* out) {
  if (from.dtype() == to) {
    *out = from;
    return absl::OkStatus();
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(to, from.shape(), out));
  if (to == DT_FLOAT && (from.dtype() == DT_HALF || from.dtype() == DT_BFLOAT16)) {
    const ElementType type = Float16Type(from.dtype());
    const auto* const x = static_cast<const uint16_t*>(from.raw_data());
    auto* const y = static_cast<float*>(out->raw_data());
    ParallelFor(ctx, from.NumElements(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
      Float16ToFloat(type, x + begin, y + begin, end - begin);
    });
    return absl::OkStatus();
  }
  absl::Status status = errors::Unimplemented("no conversion from ", DataTypeString(from.dtype()),
                                              " to ", DataTypeString(to));
  DispatchType(NumberTypes(), from.dtype(), [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    DispatchProductType(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      if constexpr (kConverts<From, To>) {
        const From* x = static_cast<const From*>(from.raw_data());
        To* y = static_cast<To*>(out->raw_data());
        ParallelFor(ctx, from.NumElements(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
          CastElements(x + begin, end - begin, y + begin);
        });
        status = absl::OkStatus();
      }
    });
  });
  return status;
}

void RoundElements(KernelContext& ctx, const Tensor& from, Tensor* to) {
  const auto* const x = static_cast<const float*>(from.raw_data());
  auto* const y = static_cast<uint16_t*>(to->raw_data());
  const ElementType type = Float16Type(to->dtype());
  ParallelFor(ctx, from.NumElements(), BlockSizeForCost(0.5), [&](int64_t begin, int64_t end) {
    FloatToFloat16(type, x + begin, y + begin, end - begin, /*non_temporal=*/false);
  });
}

absl::Status MultiplyBatches(KernelContext& ctx, const Tensor& x, ProductForm x_form,
                             const Tensor& y, ProductForm y_form, Tensor* out,
                             const FusedSteps* steps) {
  const int rank = out->dims();
  const DataType type = ProductType(out->dtype());
  GemmSizes sizes = {out->dim_size(rank - 2), out->dim_size(rank - 1),
                     x.dim_size(x.dims() - (x_form.transposed ? 2 : 1))};
  if (out->NumElements() == 0) return absl::OkStatus();
  if (sizes.k == 0) {
    SetZero(ctx.run(), out);
    return absl::OkStatus();
  }
  const int64_t largest =
      std::max({sizes.k, x.dim_size(x.dims() - 1), y.dim_size(y.dims() - 1), sizes.n});
  if (largest > std::numeric_limits<int>::max() && !DataTypeIsInteger(type)) {
    return errors::InvalidArgument("dimensions must be less than 2147483648, but a has shape ",
                                   x.shape().DebugString(), ", b has shape ",
                                   y.shape().DebugString());
  }
  Tensor wide_x;
  Tensor wide_y;
  Tensor wide = *out;
  GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, x, type, &wide_x));
  GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, y, type, &wide_y));
  if (type != out->dtype()) {
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(type, out->shape(), &wide));
  }
  const absl::Span<const int64_t> batch_dims = out->shape().dim_sizes().first(rank - 2);
  const int64_t x_matrices = x.NumElements() / (sizes.m * sizes.k);
  const int64_t y_matrices = y.NumElements() / (sizes.n * sizes.k);
  int64_t count = out->NumElements() / (sizes.m * sizes.n);
  const bool one_matrix = y_matrices == 1 && x_matrices == count && !x_form.transposed;
  if (one_matrix) {
    // The rows of all batches are treated as the rows of one matrix.
    sizes.m *= count;
    count = 1;
  }
  DispatchProductType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MatrixBatches<T> batches = {ctx.run(),
                                sizes,
                                count,
                                MatrixOf<T>(wide_x, x_form),
                                MatrixOf<T>(wide_y, y_form),
                                {static_cast<T*>(wide.raw_data()), sizes.n},
                                {},
                                {},
                                {},
                                steps};
    if (!one_matrix) {
      batches.dims.assign(batch_dims.begin(), batch_dims.end());
      batches.x_strides = BatchStrides(x, batch_dims);
      batches.y_strides = BatchStrides(y, batch_dims);
    }
    if constexpr (std::is_integral_v<T>) {
      MultiplyIntegers(batches);
    } else {
      Multiply(batches);
    }
  });
  if (type != out->dtype()) RoundElements(ctx, wide, out);
  return absl::OkStatus();
}

absl::Status MultiplyFused(KernelContext& ctx, ProductForm x_form, ProductForm y_form,
                           const absl::StatusOr<TensorShape>& shape, FusedSteps* steps,
                           bool* done) {
  *done = false;
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (!shape.ok() || x.dtype() != DT_FLOAT || y.dtype() != DT_FLOAT || x.NumElements() == 0 ||
      y.NumElements() == 0 || shape->num_elements() == 0 || !steps->Prepare(*shape)) {
    return absl::OkStatus();
  }
  *done = true;
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, *shape, &out));
  return MultiplyBatches(ctx, x, x_form, y, y_form, out, steps);
}

}  // namespace gradflow
