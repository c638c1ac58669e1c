// Code that the kernels of recurrent cells share: inputs and outputs as float, tanh, loops over the
// elements of matrices, and sums of columns.
#ifndef GRADFLOW_OPS_NN_CELL_MATH_H_
#define GRADFLOW_OPS_NN_CELL_MATH_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/ops/linalg/product.h"

namespace gradflow {

// The maximum number of elements of a row that a loop processes at a time, in buffers on the stack.
inline constexpr int64_t kCellChunk = 256;

// Sets y[i] = tanh(x[i]) for i < n. `y` may be `x`. REQUIRES: n <= kCellChunk
void TanhChunk(const float* x, float* y, int64_t n);

// The inputs of a kernel from input `first` on, converted to float. Element i is input `first` + i.
class FloatInputs {
 public:
  absl::Status Convert(KernelContext& ctx, int first);
  const Tensor& operator[](int i) const { return tensors_[static_cast<size_t>(i)]; }
  const float* data(int i) const { return static_cast<const float*>((*this)[i].raw_data()); }

 private:
  std::vector<Tensor> tensors_;
};

// The outputs of a kernel as float. Round() converts them to the output types.
class FloatOutputs {
 public:
  explicit FloatOutputs(KernelContext* ctx) : ctx_(*ctx) {}
  // Allocates the next output.
  absl::Status Add(const TensorShape& shape);
  Tensor& operator[](int i) { return floats_[static_cast<size_t>(i)]; }
  float* data(int i) { return static_cast<float*>((*this)[i].raw_data()); }
  // Converts the results to the types of the outputs. Float outputs were written in place.
  void Round();

 private:
  KernelContext& ctx_;
  std::vector<Tensor> floats_;
};

// Returns rows [begin, end) of a tensor viewed as a matrix with `columns` columns. Shares the
// elements. REQUIRES: the matrix has these rows
Tensor RowsAsMatrix(const Tensor& tensor, int64_t begin, int64_t end, int64_t columns);

// Divides the rows of a matrix into chunks of at most kCellChunk elements, and calls
// fn(row, column, n) concurrently for each chunk, the elements [column, column + n) of a row. An
// element takes about `nanoseconds`.
template <typename F>
void ForEachRowChunk(const KernelContext& ctx, int64_t rows, int64_t columns, double nanoseconds,
                     const F& fn) {
  if (columns == 0) return;
  ParallelFor(ctx, rows * columns, BlockSizeForCost(nanoseconds), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t column = i % columns;
      const int64_t n = std::min({kCellChunk, columns - column, end - i});
      fn(i / columns, column, n);
      i += n;
    }
  });
}

// Sets sums[j] to the sum of term(i, j) over all rows i, in order and accumulated in double.
template <typename F>
void SumColumns(const KernelContext& ctx, int64_t rows, int64_t columns, float* sums,
                const F& term) {
  // At least one cache line of columns.
  const int64_t block =
      std::max<int64_t>(16, BlockSizeForCost(1.0 * static_cast<double>(rows) + 1));
  ParallelFor(ctx, columns, block, [&](int64_t begin, int64_t end) {
    double totals[kCellChunk];
    for (int64_t first = begin; first < end; first += kCellChunk) {
      const int64_t n = std::min(kCellChunk, end - first);
      std::fill_n(totals, n, 0.0);
      for (int64_t i = 0; i < rows; ++i) {
        if (i % 4096 == 4095 && ctx.ShouldStop()) return;
        for (int64_t j = 0; j < n; ++j) totals[j] += term(i, first + j);
      }
      for (int64_t j = 0; j < n; ++j) sums[first + j] = static_cast<float>(totals[j]);
    }
  });
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_NN_CELL_MATH_H_
