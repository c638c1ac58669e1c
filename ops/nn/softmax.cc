// Softmax and LogSoftmax.
//
// The maximum of a row is subtracted first, so that exponentials do not overflow. Sums are
// accumulated in double. Short rows are processed in groups; one call computes the exponentials of
// a group.
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/nn/integer_softmax.h"
#include "gradflow/ops/nn/softmax_rows.h"

namespace gradflow::softmax {
namespace {

absl::Status SoftmaxShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  return UnchangedShape(c);
}

template <typename C, bool kLog>
class Softmax {
 public:
  Softmax(const Tensor& logits, int64_t columns, Tensor* output)
      : columns_(columns), in_(logits), out_(output, logits) {}

  void ComputeRows(int64_t begin, int64_t end) const {
    if (columns_ > kRowChunk) {
      for (int64_t row = begin; row < end; ++row) LongRow(row * columns_);
      return;
    }
    if (columns_ >= kMinSimdElements) {
      for (int64_t row = begin; row < end; ++row) Row(row * columns_);
      if (out_.non_temporal()) hwy::FlushStream();
      return;
    }
    const int64_t group = kRowChunk / columns_;
    for (int64_t row = begin; row < end; row += group) {
      ShortRows(row * columns_, std::min(group, end - row));
    }
  }

 private:
  // Computes the row that begins at element `offset`, in one chunk.
  void Row(int64_t offset) const {
    alignas(64) C source[kRowChunk];
    alignas(64) C exponentials[kRowChunk];
    const C* const x = in_.Read(offset, columns_, source);
    C* const out = out_.Place(offset, exponentials);
    RowMax<C> row_max;
    row_max.Add(x, columns_);
    const C max = row_max.Result();
    const C* const next[2] = {x + columns_, exponentials};
    RowSum row_sum;
    row_sum.AddExponentials(x, max, columns_, next, exponentials);
    const double sum = row_sum.Result();
    if (kLog) {
      SubtractNumbers(x, max, static_cast<C>(std::log(sum)), columns_, out_.non_temporal(), out);
    } else {
      DivideByNumber(exponentials, static_cast<C>(sum), columns_, out_.non_temporal(), out);
    }
    out_.Write(out, offset, columns_);
  }

  // Computes `rows` rows, starting at element `offset`.
  void ShortRows(int64_t offset, int64_t rows) const {
    alignas(64) C source[kRowChunk];
    alignas(64) C shifted[kRowChunk];
    alignas(64) C exponentials[kRowChunk];
    const int64_t n = rows * columns_;
    const C* const x = in_.Read(offset, n, source);
    for (int64_t i = 0; i < n; i += columns_) {
      RowMax<C> max;
      max.Add(x + i, columns_);
      SubtractNumber(x + i, max.Result(), columns_, shifted + i);
    }
    ApplyElementary(Elementary::kExp, shifted, exponentials, n);
    for (int64_t i = 0; i < n; i += columns_) {
      RowSum sum;
      sum.Add(exponentials + i, columns_);
      if (kLog) {
        SubtractNumber(shifted + i, static_cast<C>(std::log(sum.Result())), columns_, shifted + i);
      } else {
        DivideByNumber(exponentials + i, static_cast<C>(sum.Result()), columns_,
                       /*non_temporal=*/false, exponentials + i);
      }
    }
    out_.Write(kLog ? shifted : exponentials, offset, n);
  }

  void LongRow(int64_t offset) const {
    alignas(64) C source[kRowChunk];
    alignas(64) C scratch[kRowChunk];
    RowMax<C> row_max;
    for (int64_t i = 0; i < columns_; i += kRowChunk) {
      const int64_t n = std::min(kRowChunk, columns_ - i);
      row_max.Add(in_.Read(offset + i, n, source), n);
    }
    const C max = row_max.Result();
    // Exponentials are stored in the output unless this would round them.
    const bool keeps = !kLog && !out_.converts();
    RowSum row_sum;
    for (int64_t i = 0; i < columns_; i += kRowChunk) {
      const int64_t n = std::min(kRowChunk, columns_ - i);
      C* const e = keeps ? out_.Place(offset + i, scratch) : scratch;
      const C* const x = in_.Read(offset + i, n, source);
      const C* const next[2] = {x + n, e};
      row_sum.AddExponentials(x, max, n, next, e);
    }
    const C sum = static_cast<C>(kLog ? std::log(row_sum.Result()) : row_sum.Result());
    for (int64_t i = 0; i < columns_; i += kRowChunk) {
      const int64_t n = std::min(kRowChunk, columns_ - i);
      C* const e = out_.Place(offset + i, scratch);
      if (!keeps) SubtractNumber(in_.Read(offset + i, n, source), max, n, e);
      if (kLog) {
        SubtractNumber(e, sum, n, e);
      } else {
        if (!keeps) ApplyElementary(Elementary::kExp, e, e, n);
        DivideByNumber(e, sum, n, /*non_temporal=*/false, e);
      }
      out_.Write(e, offset + i, n);
    }
  }

  const int64_t columns_;
  const RowReader<C> in_;
  const RowWriter<C> out_;
};

template <typename C, bool kLog>
absl::Status Compute(KernelContext& ctx) {
  const Tensor& logits = ctx.input(0);
  if (logits.dtype() != ctx.expected_output_dtype(0)) {
    return errors::InvalidArgument("logits has type ", DataTypeString(logits.dtype()),
                                   ", expected ", DataTypeString(ctx.expected_output_dtype(0)));
  }
  GRADFLOW_RETURN_IF_ERROR(CheckRankAtLeast("logits", logits.shape(), 1));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(0, 0, logits.shape(), &output));
  if (logits.NumElements() == 0) return absl::OkStatus();
  const int64_t columns = logits.dim_size(logits.dims() - 1);
  const Softmax<C, kLog> softmax(logits, columns, output);
  ParallelFor(ctx, logits.NumElements() / columns,
              BlockSizeForCost(2.0 * sizeof(C) / sizeof(float) * static_cast<double>(columns) + 20),
              [&](int64_t begin, int64_t end) { softmax.ComputeRows(begin, end); });
  return absl::OkStatus();
}

class FloatSoftmax final : public OpKernel, public IntegerFormKernel {
 public:
  absl::Status Init(const KernelConstruction&) { return absl::OkStatus(); }
  absl::Status Compute(KernelContext& ctx) const override {
    return softmax::Compute<float, false>(ctx);
  }
  bool HasTfLiteSigmoidFormat() const override { return true; }
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerForm(const Args& args) const override {
    return MakeIntegerSoftmax(args);
  }
};

template <bool kLog>
void RegisterKernels(Registry& registry, absl::string_view op) {
  if constexpr (kLog) {
    registry.Kernel(op, MakeFunctionKernel<Compute<float, true>>)
        .Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  } else {
    registry.Kernel(op, MakeKernel<FloatSoftmax>).Types("T", {DT_FLOAT, DT_HALF, DT_BFLOAT16});
  }
  registry.Kernel(op, MakeFunctionKernel<Compute<double, kLog>>).Types("T", {DT_DOUBLE});
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("Softmax")
      .Group("nn_ops")
      .Input("logits: T")
      .Output("softmax: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(SoftmaxShape)
      .Doc(R"(Computes softmax along the last dimension.

Each row x of the last dimension becomes e^x / sum(e^x). Does not overflow for finite elements. A
row with NaN or infinity is NaN.

logits: A tensor of rank 1 at least.
softmax: The probabilities, of the shape of `logits`.
T: The type of both.)");
  registry.Op("LogSoftmax")
      .Group("nn_ops")
      .Input("logits: T")
      .Output("logsoftmax: T")
      .Attr("T: {half, bfloat16, float, double}")
      .Shape(SoftmaxShape)
      .Doc(R"(Computes the logarithm of softmax along the last dimension.

Each row x of the last dimension becomes x - log(sum(e^x)). Does not overflow for finite elements. A
row with NaN or infinity is NaN.

logits: A tensor of rank 1 at least.
logsoftmax: The logarithms of the probabilities, of the shape of `logits`.
T: The type of both.)");
  RegisterKernels<false>(registry, "Softmax");
  RegisterKernels<true>(registry, "LogSoftmax");
}

}  // namespace gradflow::softmax
