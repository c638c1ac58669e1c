// Networks in libtorch.
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "benchmarks/models/networks.h"
#include "benchmarks/torch_tensors.h"

namespace gradflow::benchmarks {
namespace {

// Creates the weights in the first run, and uses them in the same order in later runs. Images are
// [batch, channels, rows, columns], libtorch's default.
class TorchBackend {
 public:
  using Value = at::Tensor;

  explicit TorchBackend(bool training) : training_(training) {}
  void Begin() { next_ = 0; }
  const std::vector<at::Tensor>& weights() const { return weights_; }

  Value Conv(const Value& x, int64_t in, int64_t out, int64_t size, int64_t stride) {
    return Conv(x, in, out, size, stride, size / 2);
  }
  Value Conv(const Value& x, int64_t in, int64_t out, int64_t size, int64_t stride,
             int64_t padding) {
    const Value& w = Weight([&] {
      return TorchTensor(source_.Filter({size, size, in, out}, size * size * in))
          .permute({3, 2, 0, 1});
    });
    return at::conv2d(x, w, {}, {stride, stride}, {padding, padding});
  }
  Value Depthwise(const Value& x, int64_t channels, int64_t stride) {
    const Value& w = Weight([&] {
      return TorchTensor(source_.Filter({3, 3, channels, 1}, 9)).permute({2, 3, 0, 1});
    });
    return at::conv2d(x, w, {}, {stride, stride}, {1, 1}, {1, 1}, channels);
  }
  Value Norm(const Value& x, int64_t channels) {
    Value parts[4];
    const float means[] = {1, 0, 0, 1};
    for (int i = 0; i < 4; ++i) {
      parts[i] = Weight([&] { return TorchTensor(source_.Vector(channels, means[i])); }, i < 2);
    }
    return at::batch_norm(x, parts[0], parts[1], parts[2], parts[3], training_, 0, 1e-3, false);
  }
  Value Relu(const Value& x) { return at::relu(x); }
  Value Relu6(const Value& x) { return at::hardtanh(x, 0, 6); }
  Value Add(const Value& x, const Value& y) { return at::add(x, y); }
  Value MaxPool(const Value& x) { return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1}); }
  Value MaxPoolValid(const Value& x) { return at::max_pool2d(x, {3, 3}, {2, 2}); }
  Value AveragePool(const Value& x) {
    return at::avg_pool2d(x, {3, 3}, {1, 1}, {1, 1}, false, /*count_include_pad=*/false);
  }
  Value Concat(const std::vector<Value>& parts) { return at::cat(parts, 1); }
  Value Average(const Value& x) { return at::mean(x, {2, 3}); }
  Value Dense(const Value& x, int64_t in, int64_t out) {
    const Value w = Weight([&] { return TorchTensor(source_.Filter({in, out}, in)); });
    const Value b = Weight([&] { return TorchTensor(source_.Vector(out, 0)); });
    return at::addmm(b, x, w);
  }
  Value Lstm(const Value& x, int64_t cells) {
    const int64_t in = x.size(2);
    // The gates are in the order of BlockLSTMV2.
    const Tensor w =
        source_is_needed() ? source_.Filter({in + cells, 4 * cells}, in + cells) : Tensor();
    const auto rows = [&](int64_t begin, int64_t end) {
      return TorchTensor(w).slice(0, begin, end).t();
    };
    const Value w_x = Weight([&] { return rows(0, in); });
    const Value w_h = Weight([&] { return rows(in, in + cells); });
    const Value bias = Weight([&] { return TorchTensor(source_.Vector(4 * cells, 0)); });
    const Value zeros = at::zeros({1, x.size(1), cells});
    const Value no_bias = at::zeros({4 * cells});
    return std::get<0>(at::lstm(x, {zeros, zeros}, {w_x, w_h, bias, no_bias}, true, 1, 0.0,
                                training_, false, false));
  }
  Value Reshape(const Value& x, const std::vector<int64_t>& dims) { return x.reshape(dims); }
  Value Transpose(const Value& x, const std::vector<int64_t>& order) { return x.permute(order); }
  Value BatchMatMul(const Value& x, const Value& y, bool transposed) {
    return at::matmul(x, transposed ? y.transpose(-1, -2) : y);
  }
  Value Scale(const Value& x, float factor) { return at::mul(x, factor); }
  Value Softmax(const Value& x) { return at::softmax(x, -1); }
  Value LayerNorm(const Value& x, int64_t size) {
    const Value scale = Weight([&] { return TorchTensor(source_.Vector(size, 1)); });
    const Value offset = Weight([&] { return TorchTensor(source_.Vector(size, 0)); });
    return at::layer_norm(x, {size}, scale, offset, 1e-6);
  }
  Value Gelu(const Value& x) { return at::gelu(x); }

 private:
  bool source_is_needed() const { return next_ == weights_.size(); }
  template <typename F>
  const at::Tensor& Weight(const F& make, bool trainable = true) {
    if (next_ == weights_.size()) {
      weights_.push_back(make().contiguous().clone());
      weights_.back().set_requires_grad(training_ && trainable);
    }
    return weights_[next_++];
  }

  const bool training_;
  WeightSource source_;
  std::vector<at::Tensor> weights_;
  size_t next_ = 0;
};

void Store(const at::Tensor& value, Tensor* output) {
  const at::Tensor dense = value.detach().contiguous();
  TensorShape shape;
  for (const int64_t size : dense.sizes()) shape.AddDim(size);
  *output = Tensor(DT_FLOAT, shape);
  std::memcpy(output->raw_data(), dense.data_ptr<float>(), output->TotalBytes());
}

}  // namespace

Runner TorchNetwork(Network network, const Tensor& input, bool training, int threads,
                    Tensor* output) {
  const auto backend = std::make_shared<TorchBackend>(training);
  at::Tensor x = TorchTensor(input);
  if (x.dim() == 4) x = x.permute({0, 3, 1, 2}).contiguous();
  const int64_t batch = network == Network::kBertLayer ? x.size(0) / kBertLength : x.size(0);
  const auto forward = [=] {
    backend->Begin();
    return MakeNetwork(network, batch, *backend, x);
  };
  if (!training) {
    return WithThreads(threads, [=] {
      const at::Tensor y = forward();
      if (output != nullptr) Store(y, output);
    });
  }
  return [=] {
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    const at::Tensor y = forward();
    (0.5 * (y * y).sum()).backward();
    for (const at::Tensor& weight : backend->weights()) weight.mutable_grad() = at::Tensor();
    if (output != nullptr) Store(y, output);
  };
}

}  // namespace gradflow::benchmarks
