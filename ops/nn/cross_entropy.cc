// SoftmaxCrossEntropyWithLogits and SparseSoftmaxCrossEntropyWithLogits.
//
// The maximum of a row of logits is subtracted first, so that exponentials do not overflow. Sums
// are accumulated in double, and losses are rounded once.
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow::cross_entropy {
namespace {

// Returns the shape of features and labels broadcast to a matrix, if it is known.
absl::StatusOr<PartialTensorShape> MatrixShape(const PartialTensorShape& features,
                                               const PartialTensorShape& labels) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, BroadcastShapes(features, labels));
  const int rank = std::max(features.dims(), labels.dims());
  if (rank > 2 || (!shape.unknown_rank() && rank < 2)) {
    return errors::InvalidArgument("Shape must be broadcasted with rank 2 but is rank ", rank,
                                   ": features has shape ", features.DebugString(),
                                   ", and labels has shape ", labels.DebugString());
  }
  return shape.unknown_rank() ? PartialTensorShape::UnknownOfRank(2) : shape;
}

absl::Status DenseShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, MatrixShape(c.input(0), c.input(1)));
  c.set_output(0, {shape.dim_size(0)});
  c.set_output(1, std::move(shape));
  return absl::OkStatus();
}

// Checks the shapes of the sparse op. Returns the number of rows; -1 if unknown.
absl::StatusOr<int64_t> CheckSparseShapes(const PartialTensorShape& features,
                                          const PartialTensorShape& labels) {
  GRADFLOW_RETURN_IF_ERROR(CheckRank("features", features, 2));
  GRADFLOW_RETURN_IF_ERROR(CheckRank("labels", labels, 1));
  return MergeDims("features", features, 0, "labels", labels, 0);
}

absl::Status SparseShape(ShapeContext& c) {
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rows, CheckSparseShapes(c.input(0), c.input(1)));
  const int64_t classes = c.Dim(0, 1);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape,
                            PartialTensorShape::Make({rows, classes}));
  c.set_output(0, {rows});
  c.set_output(1, shape);
  return absl::OkStatus();
}

// Rows of a tensor that is broadcast to a matrix.
template <typename C>
class BroadcastRows {
 public:
  BroadcastRows(const Tensor& tensor, int64_t columns) : reader_(tensor) {
    const int rank = tensor.dims();
    const int64_t row_size = rank < 1 ? 1 : tensor.dim_size(rank - 1);
    const int64_t rows = rank < 2 ? 1 : tensor.dim_size(0);
    row_stride_ = rows == 1 ? 0 : row_size;
    repeats_ = row_size == 1 && columns > 1;
  }
  // Returns n elements of a row, starting at `column`.
  const C* Read(int64_t row, int64_t column, int64_t n, C* buffer) const {
    if (!repeats_) return reader_.Read(row * row_stride_ + column, n, buffer);
    C element;
    std::fill_n(buffer, n, *reader_.Read(row * row_stride_, 1, &element));
    return buffer;
  }
  // Returns the start of a row, or `buffer` if Read() writes the row there.
  const C* Place(int64_t row, const C* buffer) const {
    return repeats_ || reader_.converts() ? buffer : reader_.Read(row * row_stride_, 0, nullptr);
  }

 private:
  const RowReader<C> reader_;
  int64_t row_stride_;
  // True if rows repeat one element.
  bool repeats_;
};

// The softmax of a row of logits.
template <typename C>
class RowSoftmax {
 public:
  // Prefetches the first chunk from `next` on, which is read after this row.
  RowSoftmax(const BroadcastRows<C>& logits, int64_t row, int64_t columns, const C* next)
      : logits_(logits), row_(row), columns_(columns) {
    RowMax<C> max;
    ForEachChunk(
        [&](int64_t column, int64_t n) { max.Add(logits_.Read(row_, column, n, source_), n); });
    max_ = max.Result();
    RowSum sum;
    ForEachChunk([&](int64_t column, int64_t n) {
      const C* const x = logits_.Read(row_, column, n, source_);
      const C* const ahead[2] = {x + columns_, column == 0 ? next : x + columns_};
      sum.AddExponentials(x, max_, n, ahead, exponentials_);
    });
    sum_ = sum.Result();
  }

  // Calls fn(column, n) for the chunks of the row.
  template <typename F>
  void ForEachChunk(const F& fn) const {
    for (int64_t column = 0; column < columns_; column += kRowChunk) {
      fn(column, std::min(kRowChunk, columns_ - column));
    }
  }
  // Returns exp(logits - max) of a chunk. The constructor has already computed it if the row has a
  // single chunk.
  const C* Exponentials(int64_t column, int64_t n) {
    if (columns_ > kRowChunk) {
      SubtractNumber(Logits(column, n), max_, n, exponentials_);
      ApplyElementary(Elementary::kExp, exponentials_, exponentials_, n);
    }
    return exponentials_;
  }
  const C* Logits(int64_t column, int64_t n) { return logits_.Read(row_, column, n, source_); }
  double sum() const { return sum_; }
  C max() const { return max_; }

 private:
  const BroadcastRows<C>& logits_;
  const int64_t row_;
  const int64_t columns_;
  C max_;
  double sum_;
  alignas(64) C source_[kRowChunk];
  alignas(64) C exponentials_[kRowChunk];
};

template <typename C>
double RowNanoseconds(int64_t columns) {
  return 3.0 * sizeof(C) / sizeof(float) * static_cast<double>(columns) + 50;
}

// loss = sum(labels * (log(sum(e^x)) - x)), backprop = softmax - labels.
template <typename C>
absl::Status ComputeDense(KernelContext& ctx) {
  const DataType dtype = ctx.expected_output_dtype(0);
  GRADFLOW_RETURN_IF_ERROR(CheckInputTypes(ctx, {dtype, dtype}));
  const Tensor& features = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape partial,
                            MatrixShape(features.shape(), labels.shape()));
  TensorShape shape;
  partial.AsTensorShape(&shape);
  const int64_t rows = shape.dim_size(0);
  const int64_t columns = shape.dim_size(1);
  Tensor* loss = nullptr;
  Tensor* backprop = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows}, &loss));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, shape, &backprop));
  const BroadcastRows<C> logits(features, columns);
  const BroadcastRows<C> targets(labels, columns);
  const RowWriter<C> losses(loss, features);
  const RowWriter<C> gradients(backprop, features);
  ParallelFor(
      ctx, rows, BlockSizeForCost(RowNanoseconds<C>(columns)), [&](int64_t begin, int64_t end) {
        alignas(64) C buffer[kRowChunk];
        alignas(64) C result[kRowChunk];
        for (int64_t row = begin; row < end; ++row) {
          const C* const first_labels = targets.Read(row, 0, std::min(columns, kRowChunk), buffer);
          RowSoftmax<C> softmax(logits, row, columns, first_labels);
          const double log_sum = std::log(softmax.sum());
          const C sum = static_cast<C>(softmax.sum());
          RowSum total;
          softmax.ForEachChunk([&](int64_t column, int64_t n) {
            const C* const label = targets.Read(row, column, n, buffer);
            total.AddProducts(softmax.Logits(column, n), softmax.max(), label, log_sum, n);
            C* const out = gradients.Place(row * columns + column, result);
            DivideAndSubtract(softmax.Exponentials(column, n), sum, label, n,
                              gradients.non_temporal(), out);
            gradients.Write(out, row * columns + column, n);
          });
          const C row_loss = static_cast<C>(total.Result());
          losses.Write(&row_loss, row, 1);
        }
        if (gradients.non_temporal()) hwy::FlushStream();
      });
  return absl::OkStatus();
}

// Like ComputeDense(), for labels that are 1 for one class and 0 for the other classes.
template <typename C>
absl::Status ComputeSparse(KernelContext& ctx) {
  const Tensor& features = ctx.input(0);
  const Tensor& labels = ctx.input(1);
  if (features.dtype() != ctx.expected_output_dtype(0) ||
      (labels.dtype() != DT_INT32 && labels.dtype() != DT_INT64)) {
    return errors::InvalidArgument(
        "features and labels have types ", DataTypeString(features.dtype()), " and ",
        DataTypeString(labels.dtype()), ", expected ", DataTypeString(ctx.expected_output_dtype(0)),
        " and int32 or int64");
  }
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(features.shape(), labels.shape()).status());
  const int64_t rows = features.dim_size(0);
  const int64_t columns = features.dim_size(1);
  if (columns == 0) {
    return errors::InvalidArgument("features must have at least one class, but has shape ",
                                   features.shape().DebugString());
  }
  // Reads labels only once, because another thread may write to a fed tensor.
  Tensor classes;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {rows}, &classes));
  int64_t* const label = static_cast<int64_t*>(classes.raw_data());
  const IndexReader reader(labels);
  for (int64_t row = 0; row < rows; ++row) {
    label[row] = reader[row];
    if (label[row] < 0 || label[row] >= columns) {
      return errors::InvalidArgument("labels[", row, "] is ", label[row],
                                     ", expected a class in [0, ", columns, ")");
    }
  }
  Tensor* loss = nullptr;
  Tensor* backprop = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows}, &loss));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, features.shape(), &backprop));
  const BroadcastRows<C> logits(features, columns);
  const RowWriter<C> losses(loss, features);
  const RowWriter<C> gradients(backprop, features);
  ParallelFor(
      ctx, rows, BlockSizeForCost(RowNanoseconds<C>(columns)), [&](int64_t begin, int64_t end) {
        alignas(64) C result[kRowChunk];
        for (int64_t row = begin; row < end; ++row) {
          RowSoftmax<C> softmax(logits, row, columns, /*next=*/result);
          const C sum = static_cast<C>(softmax.sum());
          C logit;
          const C shifted = *logits.Read(row, label[row], 1, &logit) - softmax.max();
          const C row_loss = static_cast<C>(std::log(softmax.sum()) - static_cast<double>(shifted));
          softmax.ForEachChunk([&](int64_t column, int64_t n) {
            C* const out = gradients.Place(row * columns + column, result);
            const C* const e = softmax.Exponentials(column, n);
            const auto divide = [&](int64_t first, int64_t last) {
              DivideByNumber(e + first, sum, last - first, gradients.non_temporal(), out + first);
            };
            const int64_t at = label[row] - column;
            if (at >= 0 && at < n) {
              divide(0, at);
              out[at] = e[at] / sum - C(1);
              divide(at + 1, n);
            } else {
              divide(0, n);
            }
            gradients.Write(out, row * columns + column, n);
          });
          losses.Write(&row_loss, row, 1);
        }
        if (gradients.non_temporal()) hwy::FlushStream();
      });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("SoftmaxCrossEntropyWithLogits")
      .Group("nn_ops")
      .Input("features: T")
      .Input("labels: T")
      .Output("loss: T")
      .Output("backprop: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(DenseShape)
      .Doc(R"(Computes the cross entropy between softmax of logits and labels, row by row.

The loss of a row with labels p and logits x is sum(p * (log(sum(e^x)) - x)). Does not overflow for
finite logits. Without classes, losses are 0.

features: The logits, one row for each example.
labels: The probabilities of the classes; each row should sum to 1. Broadcasts with `features` to
  shape [rows, classes].
loss: The losses, of shape [rows].
backprop: The gradients of the losses with respect to the logits: softmax minus `labels`.
T: The type of the inputs and outputs.)");
  registry.Op("SparseSoftmaxCrossEntropyWithLogits")
      .Group("nn_ops")
      .Input("features: T")
      .Input("labels: Tlabels")
      .Output("loss: T")
      .Output("backprop: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Attr("Tlabels: {int32, int64} = DT_INT64")
      .Shape(SparseShape)
      .Doc(R"(Computes the cross entropy between softmax of logits and one class per row.

The loss of a row with class k and logits x is log(sum(e^x)) - x[k]. Does not overflow for finite
logits.

features: The logits, of shape [rows, classes], with at least one class.
labels: The classes, of shape [rows], each in [0, classes).
loss: The losses, of shape [rows].
backprop: The gradients of the losses with respect to the logits: softmax, minus 1 for the class.
T: The type of the logits and losses.
Tlabels: The type of `labels`.)");
  const auto add = [&](const char* op, KernelFactory of_float, KernelFactory of_double) {
    registry.Kernel(op, of_float).Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
    registry.Kernel(op, of_double).Types("T", {DT_DOUBLE});
  };
  add("SoftmaxCrossEntropyWithLogits", MakeFunctionKernel<ComputeDense<float>>,
      MakeFunctionKernel<ComputeDense<double>>);
  add("SparseSoftmaxCrossEntropyWithLogits", MakeFunctionKernel<ComputeSparse<float>>,
      MakeFunctionKernel<ComputeSparse<double>>);
}

}  // namespace gradflow::cross_entropy
