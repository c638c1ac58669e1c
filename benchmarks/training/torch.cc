// The network in libtorch.
#include <cmath>
#include <memory>
#include <vector>

#include "benchmarks/torch_tensors.h"
#include "benchmarks/training/networks.h"
#include "examples/qat_fashion_mnist/network.h"

namespace gradflow::benchmarks {
namespace {

// The weights and Adam's moments.
class TorchTrainer {
 public:
  TorchTrainer() {
    int64_t in = 1;
    for (const qat::Layer& layer : qat::kLayers) {
      Add(at::randn({layer.filters, in, 3, 3}) * std::sqrt(2.0 / static_cast<double>(9 * in)));
      Add(at::ones({layer.filters}));
      Add(at::zeros({layer.filters}));
      statistics_.push_back(at::zeros({layer.filters}));
      statistics_.push_back(at::ones({layer.filters}));
      in = layer.filters;
    }
    Add(at::randn({qat::kClasses, in * 3 * 3}) * std::sqrt(2.0 / static_cast<double>(9 * in)));
    Add(at::zeros({qat::kClasses}));
  }

  void Step(const at::Tensor& images, const at::Tensor& labels) {
    at::Tensor x = images.unsqueeze(1).to(at::kFloat) * qat::kPixelStep;
    size_t next = 0;
    size_t statistic = 0;
    for (const qat::Layer& layer : qat::kLayers) {
      x = at::conv2d(x, weights_[next], {}, {1, 1}, {1, 1});
      x = at::batch_norm(x, weights_[next + 1], weights_[next + 2], statistics_[statistic],
                         statistics_[statistic + 1], /*training=*/true, /*momentum=*/0.02,
                         qat::kEpsilon, /*cudnn_enabled=*/false);
      x = at::relu(x);
      if (layer.pools) x = at::max_pool2d(x, {2, 2}, {2, 2});
      next += 3;
      statistic += 2;
    }
    const at::Tensor logits = at::linear(x.flatten(1), weights_[next], weights_[next + 1]);
    at::nll_loss(at::log_softmax(logits, 1), labels).backward();
    Update();
  }

 private:
  void Add(const at::Tensor& weight) {
    weights_.push_back(weight.detach().clone());
    weights_.back().set_requires_grad(true);
    means_.push_back(at::zeros_like(weight));
    squares_.push_back(at::zeros_like(weight));
  }
  // The operations of torch::optim::Adam.
  void Update() {
    const at::NoGradGuard no_grad;
    constexpr double kBeta1 = 0.9;
    constexpr double kBeta2 = 0.999;
    constexpr double kRate = 1e-3;
    ++steps_;
    const double correction = std::sqrt(1 - std::pow(kBeta2, steps_));
    const double rate = kRate / (1 - std::pow(kBeta1, steps_));
    for (size_t i = 0; i < weights_.size(); ++i) {
      const at::Tensor gradient = weights_[i].grad();
      means_[i].mul_(kBeta1).add_(gradient, 1 - kBeta1);
      squares_[i].mul_(kBeta2).addcmul_(gradient, gradient, 1 - kBeta2);
      const at::Tensor root = (squares_[i].sqrt() / correction).add_(1e-8);
      weights_[i].addcdiv_(means_[i], root, -rate);
      weights_[i].mutable_grad() = at::Tensor();
    }
  }

  std::vector<at::Tensor> weights_;
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
  std::vector<at::Tensor> statistics_;
  int steps_ = 0;
};

}  // namespace

Runner TorchStep(const Tensor& images, const Tensor& labels, int threads) {
  const auto trainer = std::make_shared<TorchTrainer>();
  const auto view = [](const Tensor& tensor, at::ScalarType type) {
    const auto sizes = tensor.shape().dim_sizes();
    return at::from_blob(
        const_cast<void*>(tensor.raw_data()), at::IntArrayRef(sizes.data(), sizes.size()),
        [tensor](void*) {}, type);
  };
  const at::Tensor x = view(images, at::kByte);
  const at::Tensor y = view(labels, at::kLong);
  return [=] {
    if (at::get_num_threads() != threads) at::set_num_threads(threads);
    trainer->Step(x, y);
  };
}

}  // namespace gradflow::benchmarks
