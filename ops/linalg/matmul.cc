// MatMul.
//
// The product is computed in blocks that depend on the shapes alone, each by calls of the BLAS, so
// that it has the same bits on any number of threads. The BLAS selects its code by processor: the
// last bits may differ between processors.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/linalg/blas.h"

namespace gradflow::matmul {
namespace {

// The sizes of a product [m, k] * [k, n].
struct Sizes {
  int64_t m;
  int64_t n;
  int64_t k;
};

absl::Status InnerDimensionsDiffer(absl::string_view a_shape, bool transpose_a,
                                   absl::string_view b_shape, bool transpose_b) {
  return errors::InvalidArgument("inner dimensions must match: a has shape ", a_shape,
                                 transpose_a ? " (transposed)" : "", ", b has shape ", b_shape,
                                 transpose_b ? " (transposed)" : "");
}

absl::Status MatMulShape(ShapeContext& c) {
  bool transpose_a = false;
  bool transpose_b = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("transpose_a", &transpose_a));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("transpose_b", &transpose_b));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 2));
  const int64_t a_inner = c.Dim(0, transpose_a ? 0 : 1);
  const int64_t b_inner = c.Dim(1, transpose_b ? 1 : 0);
  if (a_inner >= 0 && b_inner >= 0 && a_inner != b_inner) {
    return InnerDimensionsDiffer(c.input(0).DebugString(), transpose_a, c.input(1).DebugString(),
                                 transpose_b);
  }
  c.set_output(0, {c.Dim(0, transpose_a ? 1 : 0), c.Dim(1, transpose_b ? 0 : 1)});
  return absl::OkStatus();
}

// ---- Products by the BLAS ----

constexpr int64_t kBlockColumns = 256;
// Bytes of a row per call of the BLAS. Limits a call to a few milliseconds; a run can be stopped
// between calls.
constexpr int64_t kBlockInnerBytes = 16384;

// Returns the number of rows of a block: few enough to split small matrices into several blocks of
// a few million operations, and enough for the BLAS to be efficient.
int64_t BlockRows(const Sizes& sizes) {
  const int64_t row = std::min(sizes.n, kBlockColumns) * sizes.k;
  return std::clamp<int64_t>(NumBlocks(NumBlocks(4000000, row), 32) * 32, 32, 256);
}

template <typename T>
void Multiply(const RunContext& run, const Sizes& sizes, BlasMatrix<const T> a,
              BlasMatrix<const T> b, BlasMatrix<T> c) {
  constexpr int64_t block_inner = kBlockInnerBytes / static_cast<int64_t>(sizeof(T));
  const int64_t block_rows = BlockRows(sizes);
  const int64_t blocks_across = NumBlocks(sizes.n, kBlockColumns);
  const int64_t blocks = NumBlocks(sizes.m, block_rows) * blocks_across;
  const auto multiply_blocks = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t row = block / blocks_across * block_rows;
      const int64_t column = block % blocks_across * kBlockColumns;
      for (int64_t p = 0; p < sizes.k && (p == 0 || !run.ShouldStop()); p += block_inner) {
        BlasGemm(std::min(block_rows, sizes.m - row), std::min(kBlockColumns, sizes.n - column),
                 std::min(block_inner, sizes.k - p), a.Block(row, p), b.Block(p, column),
                 c.Block(row, column), /*add=*/p > 0);
      }
    }
  };
  ParallelFor(BlasIsConcurrent() ? run : SerialLoops(run), blocks, 1, multiply_blocks);
}

// ---- Products of integers, with wrap-around ----

// Bytes of a row of the result that are accumulated at a time. They stay in the L1 cache.
constexpr int64_t kSumBytes = 16384;
// Number of products between checks of whether the run is stopped: 0.1 ms, or 1 ms if b is
// transposed and read with a stride.
constexpr int64_t kInnerProducts = int64_t{1} << 17;

template <typename T>
void MultiplyIntegers(const RunContext& run, const Sizes& sizes, BlasMatrix<const T> a,
                      BlasMatrix<const T> b, BlasMatrix<T> c) {
  constexpr int64_t block_columns = kSumBytes / static_cast<int64_t>(sizeof(T));
  const auto product = [](T x, T y) { return static_cast<T>(1u * x * y); };
  const int64_t most_columns = std::min(sizes.n, block_columns);
  const int64_t block_inner = std::max<int64_t>(1, kInnerProducts / most_columns);
  const int64_t blocks_across = NumBlocks(sizes.n, block_columns);
  const double block_nanoseconds = 0.5 * static_cast<double>(most_columns) * sizes.k;
  const auto multiply_blocks = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t i = block / blocks_across;
      const int64_t column = block % blocks_across * block_columns;
      const int64_t columns = std::min(block_columns, sizes.n - column);
      T* row = c.data + i * c.stride + column;
      std::fill_n(row, columns, T(0));
      for (int64_t start = 0; start < sizes.k && (start == 0 || !run.ShouldStop());
           start += block_inner) {
        const int64_t stop = std::min(block_inner, sizes.k - start) + start;
        for (int64_t p = start; p < stop; ++p) {
          const T x = *a.Block(i, p).data;
          const T* y = b.Block(p, column).data;
          const int64_t y_stride = b.transposed ? b.stride : 1;
          for (int64_t j = 0; j < columns; ++j) {
            row[j] = static_cast<T>(row[j] + product(x, y[j * y_stride]));
          }
        }
      }
    }
  };
  ParallelFor(run, sizes.m * blocks_across, BlockSizeForCost(block_nanoseconds), multiply_blocks);
}

// ---- The kernel ----

// Converts input i to float, in a temporary tensor.
template <typename T>
absl::Status ToFloat(KernelContext& ctx, int i, Tensor* out) {
  const Tensor& input = ctx.input(i);
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, input.shape(), out));
  const T* from = input.flat<T>().data();
  float* to = out->flat<float>().data();
  ParallelFor(ctx, input.NumElements(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) to[j] = static_cast<float>(from[j]);
  });
  return absl::OkStatus();
}

// T is unsigned for integers (see WrappingType).
template <typename T>
class MatMulKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("transpose_a", &transpose_a_));
    return construction.GetAttr("transpose_b", &transpose_b_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "a", 2));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(1, "b", 2));
    const DataType type = ctx.expected_output_dtype(0);
    if (a.dtype() != type || b.dtype() != type) {
      return errors::InvalidArgument("a and b must be of type ", DataTypeString(type), ", but are ",
                                     DataTypeString(a.dtype()), " and ", DataTypeString(b.dtype()));
    }
    const Sizes sizes = {a.dim_size(transpose_a_ ? 1 : 0), b.dim_size(transpose_b_ ? 0 : 1),
                         a.dim_size(transpose_a_ ? 0 : 1)};
    if (b.dim_size(transpose_b_ ? 1 : 0) != sizes.k) {
      return InnerDimensionsDiffer(a.shape().DebugString(), transpose_a_, b.shape().DebugString(),
                                   transpose_b_);
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make({sizes.m, sizes.n}));
    Tensor* product = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &product));
    if (product->NumElements() == 0) return absl::OkStatus();
    if (sizes.k == 0) {
      T* elements = static_cast<T*>(product->raw_data());
      ParallelFor(
          ctx, product->NumElements(), BlockSizeForCost(0.05 * sizeof(T)),
          [&](int64_t begin, int64_t end) { std::fill(elements + begin, elements + end, T(0)); });
      return absl::OkStatus();
    }
    return Product(ctx, sizes, product);
  }

 private:
  template <typename E>
  BlasMatrix<const E> Matrix(const Tensor& tensor, bool transpose) const {
    return {static_cast<const E*>(tensor.raw_data()), tensor.dim_size(1), transpose};
  }
  template <typename E>
  BlasMatrix<E> Result(Tensor* tensor) const {
    return {static_cast<E*>(tensor->raw_data()), tensor->dim_size(1)};
  }

  absl::Status Product(KernelContext& ctx, const Sizes& sizes, Tensor* product) const {
    const Tensor& a = ctx.input(0);
    const Tensor& b = ctx.input(1);
    if constexpr (std::is_integral_v<T>) {
      MultiplyIntegers(ctx.run(), sizes, Matrix<T>(a, transpose_a_), Matrix<T>(b, transpose_b_),
                       Result<T>(product));
      return absl::OkStatus();
    } else {
      const int64_t largest = std::max({sizes.k, a.dim_size(1), b.dim_size(1), sizes.n});
      if (largest > std::numeric_limits<int>::max()) {
        return errors::InvalidArgument("dimensions must be less than 2147483648, but a has shape ",
                                       a.shape().DebugString(), ", b has shape ",
                                       b.shape().DebugString());
      }
      if constexpr (kIsFloat16<T>) {
        // Computes in float and rounds once.
        Tensor wide_a;
        Tensor wide_b;
        Tensor wide;
        GRADFLOW_RETURN_IF_ERROR(ToFloat<T>(ctx, 0, &wide_a));
        GRADFLOW_RETURN_IF_ERROR(ToFloat<T>(ctx, 1, &wide_b));
        GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, product->shape(), &wide));
        Multiply(ctx.run(), sizes, Matrix<float>(wide_a, transpose_a_),
                 Matrix<float>(wide_b, transpose_b_), Result<float>(&wide));
        const float* from = wide.flat<float>().data();
        T* to = product->flat<T>().data();
        ParallelFor(ctx, wide.NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
          for (int64_t j = begin; j < end; ++j) to[j] = static_cast<T>(from[j]);
        });
      } else {
        Multiply(ctx.run(), sizes, Matrix<T>(a, transpose_a_), Matrix<T>(b, transpose_b_),
                 Result<T>(product));
      }
      return absl::OkStatus();
    }
  }

  bool transpose_a_ = false;
  bool transpose_b_ = false;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatMul")
      .Group("math_ops")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr(
          "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, "
          "uint32, uint64, "
          "complex64, complex128}")
      .Attr("grad_a: bool = false")
      .Attr("grad_b: bool = false")
      .Shape(MatMulShape)
      .Doc(R"(Multiplies matrix a by matrix b.

Half and bfloat16 are computed in float and rounded once. Integers wrap around. If the inner
dimension is 0, the product is zeros.

a: A matrix.
b: A matrix with as many rows as `a` has columns.
product: The product, with the rows of `a` and the columns of `b`.
transpose_a: If true, transposes `a` before multiplication, without conjugation.
transpose_b: If true, transposes `b` before multiplication, without conjugation.
T: The type of the inputs and the output.
grad_a: Has no effect.
grad_b: Has no effect.)");
  using Types = TypeList<bfloat16, half, float, double, int32_t, int64_t, uint8_t, uint16_t,
                         uint32_t, uint64_t, complex64, complex128>;
  ForEachType(Types(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    registry.Kernel("MatMul", MakeKernel<MatMulKernel<WrappingType<T>>>).template Type<T>("T");
  });
}

}  // namespace gradflow::matmul
