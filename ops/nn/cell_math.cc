#include "gradflow/ops/nn/cell_math.h"

#include <utility>

#include "gradflow/ops/common/elementary_simd.h"

namespace gradflow {

void TanhChunk(const float* x, float* y, int64_t n) { ApplyElementary(Elementary::kTanh, x, y, n); }

absl::Status FloatInputs::Convert(KernelContext& ctx, int first) {
  for (int i = first; i < ctx.num_inputs(); ++i) {
    Tensor tensor;
    GRADFLOW_RETURN_IF_ERROR(ConvertElements(ctx, ctx.input(i), DT_FLOAT, &tensor));
    tensors_.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status FloatOutputs::Add(const TensorShape& shape) {
  Tensor* output = nullptr;
  const int i = static_cast<int>(floats_.size());
  GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateOutput(i, shape, &output));
  Tensor floats = *output;
  if (output->dtype() != DT_FLOAT) {
    GRADFLOW_RETURN_IF_ERROR(ctx_.AllocateTemp(DT_FLOAT, shape, &floats));
  }
  floats_.push_back(std::move(floats));
  return absl::OkStatus();
}

void FloatOutputs::Round() {
  for (size_t i = 0; i < floats_.size(); ++i) {
    Tensor* const output = ctx_.mutable_output(static_cast<int>(i));
    if (output->dtype() != DT_FLOAT) RoundElements(ctx_, floats_[i], output);
  }
}

Tensor RowsAsMatrix(const Tensor& tensor, int64_t begin, int64_t end, int64_t columns) {
  Tensor matrix;
  if (tensor.NumElements() == 0) {
    matrix.CopyFrom(tensor, {end - begin, columns});
    return matrix;
  }
  matrix.CopyFrom(tensor, {tensor.NumElements() / columns, columns});
  return matrix.Slice(begin, end);
}

}  // namespace gradflow
