// Network layers as ops of a Scope.
#ifndef GRADFLOW_BENCHMARKS_MODELS_SCOPE_BACKEND_H_
#define GRADFLOW_BENCHMARKS_MODELS_SCOPE_BACKEND_H_

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "benchmarks/models/networks.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/rnn_ops.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow::benchmarks {

// Weights are constants. In training, which would change them, they are placeholders that each run
// feeds.
class ScopeBackend {
 public:
  using Value = Output;
  using Dims = std::vector<int64_t>;

  ScopeBackend(const Scope& scope, bool training) : scope_(scope), training_(training) {}
  const std::vector<std::pair<Output, Tensor>>& weights() const { return weights_; }
  // The trainable weights.
  const std::vector<Output>& trainable() const { return trainable_; }

  Value Conv(const Value& x, int64_t in, int64_t out, int64_t size, int64_t stride) {
    return Conv(x, in, out, size, stride, size / 2);
  }
  Value Conv(const Value& x, int64_t in, int64_t out, int64_t size, int64_t stride,
             int64_t padding) {
    const Output w = Weight(source_.Filter({size, size, in, out}, size * size * in));
    const int s = static_cast<int>(stride);
    if (padding == 0) return ops::Conv2D(scope_, x, w, {1, s, s, 1}, "VALID");
    return ops::Conv2D(scope_, x, w, {1, s, s, 1}, "EXPLICIT",
                       ops::Conv2D::ExplicitPaddings(Padding(padding)));
  }
  Value Depthwise(const Value& x, int64_t channels, int64_t stride) {
    const Output w = Weight(source_.Filter({3, 3, channels, 1}, 9));
    const int s = static_cast<int>(stride);
    return ops::DepthwiseConv2dNative(scope_, x, w, {1, s, s, 1}, "EXPLICIT",
                                      ops::DepthwiseConv2dNative::ExplicitPaddings(Padding(1)));
  }
  Value Norm(const Value& x, int64_t channels) {
    const Output scale = Weight(source_.Vector(channels, 1));
    const Output offset = Weight(source_.Vector(channels, 0));
    Output mean = Weight(source_.Vector(channels, 0), false);
    Output variance = Weight(source_.Vector(channels, 1), false);
    if (training_) mean = variance = ops::Const(scope_, Tensor(DT_FLOAT, {0}));
    return ops::FusedBatchNormV3(scope_, x, scale, offset, mean, variance,
                                 ops::FusedBatchNormV3::Epsilon(1e-3f).IsTraining(training_))
        .y;
  }
  Value Relu(const Value& x) { return ops::Relu(scope_, x); }
  Value Relu6(const Value& x) { return ops::Relu6(scope_, x); }
  Value Add(const Value& x, const Value& y) { return ops::AddV2(scope_, x, y); }
  Value MaxPool(const Value& x) {
    return ops::MaxPool(scope_, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "EXPLICIT",
                        ops::MaxPool::ExplicitPaddings(Padding(1)));
  }
  Value MaxPoolValid(const Value& x) {
    return ops::MaxPool(scope_, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "VALID");
  }
  Value AveragePool(const Value& x) {
    return ops::AvgPool(scope_, x, {1, 3, 3, 1}, {1, 1, 1, 1}, "SAME");
  }
  Value Concat(const std::vector<Value>& parts) { return ops::Concat(scope_, parts, 3); }
  Value Average(const Value& x) { return ops::Mean(scope_, x, {1, 2}); }
  Value Dense(const Value& x, int64_t in, int64_t out) {
    const Output w = Weight(source_.Filter({in, out}, in));
    return ops::BiasAdd(scope_, ops::MatMul(scope_, x, w), Weight(source_.Vector(out, 0)));
  }
  Value Lstm(const Value& x, int64_t cells) {
    const int64_t in = kLstmCells;
    const Output w = Weight(source_.Filter({in + cells, 4 * cells}, in + cells));
    const Output bias = Weight(source_.Vector(4 * cells, 0));
    const Output peephole = ops::Const(scope_, 0.0f, TensorShape({cells}));
    const Output batch = ops::Slice(scope_, ops::Shape(scope_, x), {1}, {1});
    const Output shape =
        ops::Concat(scope_, {batch, ops::Const(scope_, {static_cast<int>(cells)})}, 0);
    const Output state = ops::Fill(scope_, shape, 0.0f);
    const Output steps = ops::Const(scope_, int64_t{kLstmSteps});
    return ops::BlockLSTMV2(scope_, steps, x, state, state, w, peephole, peephole, peephole, bias)
        .h;
  }
  Value Reshape(const Value& x, const Dims& dims) {
    return ops::Reshape(scope_, x, ops::Const(scope_, Ints(dims)));
  }
  Value Transpose(const Value& x, const Dims& order) {
    return ops::Transpose(scope_, x, ops::Const(scope_, Ints(order)));
  }
  Value BatchMatMul(const Value& x, const Value& y, bool transposed) {
    return ops::BatchMatMulV2(scope_, x, y, ops::BatchMatMulV2::AdjY(transposed));
  }
  Value Scale(const Value& x, float factor) { return ops::Mul(scope_, x, factor); }
  Value Softmax(const Value& x) { return ops::Softmax(scope_, x); }
  Value LayerNorm(const Value& x, int64_t size) {
    const Output scale = Weight(source_.Vector(size, 1));
    const Output offset = Weight(source_.Vector(size, 0));
    const Output mean = ops::Mean(scope_, x, -1, ops::Mean::KeepDims(true));
    const Output variance =
        ops::Mean(scope_, ops::SquaredDifference(scope_, x, mean), -1, ops::Mean::KeepDims(true));
    const Output factor =
        ops::Mul(scope_, ops::Rsqrt(scope_, ops::AddV2(scope_, variance, 1e-6f)), scale);
    const Output shift = ops::Sub(scope_, offset, ops::Mul(scope_, mean, factor));
    return ops::AddV2(scope_, ops::Mul(scope_, x, factor), shift);
  }
  Value Gelu(const Value& x) {
    const Output erf = ops::Erf(scope_, ops::Mul(scope_, x, std::sqrt(0.5f)));
    return ops::Mul(scope_, ops::Mul(scope_, x, 0.5f), ops::AddV2(scope_, erf, 1.0f));
  }

 private:
  static std::vector<int> Padding(int64_t padding) {
    const int n = static_cast<int>(padding);
    return {0, 0, n, n, n, n, 0, 0};
  }
  static Tensor Ints(const Dims& values) {
    Tensor tensor(DT_INT32, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) {
      tensor.flat<int32_t>()(static_cast<int64_t>(i)) = static_cast<int32_t>(values[i]);
    }
    return tensor;
  }
  Output Weight(const Tensor& value, bool trainable = true) {
    if (!training_) return ops::Const(scope_, value);
    weights_.emplace_back(
        ops::Placeholder(scope_, DT_FLOAT, ops::Placeholder::Shape(value.shape())), value);
    if (trainable) trainable_.push_back(weights_.back().first);
    return weights_.back().first;
  }

  const Scope& scope_;
  const bool training_;
  WeightSource source_;
  std::vector<std::pair<Output, Tensor>> weights_;
  std::vector<Output> trainable_;
};

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_MODELS_SCOPE_BACKEND_H_
