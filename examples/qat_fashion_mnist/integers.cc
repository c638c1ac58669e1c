#include "examples/qat_fashion_mnist/integers.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "examples/qat_fashion_mnist/network.h"

namespace qat {
namespace {

// An image of activations, [height, width, channels].
struct Activations {
  int height;
  int width;
  int channels;
  // From 0 to 255. 16 bits, like the weights, because compilers vectorize products of 16 bits.
  std::vector<int16_t> values;
};

// Computes a layer for one image at a time.
class Runner {
 public:
  explicit Runner(const FrozenLayer& layer)
      : layer_(layer),
        outputs_(static_cast<int>(layer.weights.dim_size(layer.weights.dims() - 1))),
        weights_(layer.weights.span<int8_t>().begin(), layer.weights.span<int8_t>().end()) {}

  // Returns the sums of a layer, [height, width, outputs]. The last layer is a filter of the size
  // of its input.
  std::vector<int32_t> Sums(const Activations& x) {
    const bool is_dense = layer_.weights.dims() == 2;
    const int height = is_dense ? 1 : x.height;
    const int width = is_dense ? 1 : x.width;
    const int rows = is_dense ? x.height : 3;
    const int columns = is_dense ? x.width : 3;
    const int padding = is_dense ? 0 : 1;
    std::vector<int32_t> sums(static_cast<size_t>(height) * width * outputs_);
    for (int i = 0; i < height * width; ++i) {
      int32_t* const sum = &sums[static_cast<size_t>(i) * outputs_];
      for (int f = 0; f < rows * columns; ++f) {
        const int row = i / width + f / columns - padding;
        const int column = i % width + f % columns - padding;
        if (row < 0 || row >= x.height || column < 0 || column >= x.width) continue;
        const int16_t* const in = &x.values[(row * x.width + column) * x.channels];
        for (int k = 0; k < x.channels; ++k) {
          if (in[k] == 0) continue;
          const int16_t* const w = &weights_[static_cast<size_t>(f * x.channels + k) * outputs_];
          for (int c = 0; c < outputs_; ++c) sum[c] += static_cast<int32_t>(in[k]) * w[c];
        }
      }
    }
    for (const int32_t sum : sums) largest_ = std::max(largest_, std::abs(sum));
    return sums;
  }

  float Scaled(int32_t sum, int c) const {
    return static_cast<float>(sum) * layer_.input_step * layer_.scale[c] + layer_.offset[c];
  }

  // Returns the activations after ReLU, pooling and rounding.
  Activations Run(const Activations& x) {
    const std::vector<int32_t> sums = Sums(x);
    const int size = layer_.pools ? 2 : 1;
    Activations y = {x.height / size, x.width / size, outputs_, {}};
    for (int row = 0; row < y.height; ++row) {
      for (int column = 0; column < y.width; ++column) {
        for (int c = 0; c < outputs_; ++c) {
          float most = 0;
          for (int p = 0; p < size * size; ++p) {
            const int at = (size * row + p / size) * x.width + size * column + p % size;
            most = std::max(most, Scaled(sums[static_cast<size_t>(at) * outputs_ + c], c));
          }
          const float clamped = std::min(most, 255 * layer_.output_step);
          y.values.push_back(
              static_cast<int16_t>(std::floor(clamped * (1 / layer_.output_step) + 0.5f)));
        }
      }
    }
    return y;
  }

  int Best(const Activations& x) {
    const std::vector<int32_t> sums = Sums(x);
    int best = 0;
    for (int c = 1; c < outputs_; ++c) {
      if (Scaled(sums[c], c) > Scaled(sums[best], best)) best = c;
    }
    return best;
  }

  int32_t largest() const { return largest_; }

 private:
  const FrozenLayer& layer_;
  const int outputs_;
  const std::vector<int16_t> weights_;
  int32_t largest_ = 0;
};

}  // namespace

Prediction Classify(const std::vector<FrozenLayer>& layers, const gradflow::Tensor& images) {
  const int count = static_cast<int>(images.dim_size(0));
  Prediction prediction;
  prediction.classes.resize(count);
  std::vector<int32_t> largest(std::max(1u, std::thread::hardware_concurrency()));
  std::atomic<int> next{0};
  const auto work = [&](int32_t* most) {
    std::vector<Runner> runners(layers.begin(), layers.end());
    for (int n; (n = next++) < count;) {
      const uint8_t* const pixels =
          &images.span<uint8_t>()[static_cast<size_t>(n) * kHeight * kWidth];
      Activations x = {kHeight, kWidth, 1, {pixels, pixels + kHeight * kWidth}};
      for (size_t i = 0; i + 1 < layers.size(); ++i) x = runners[i].Run(x);
      prediction.classes[n] = runners.back().Best(x);
    }
    for (const Runner& runner : runners) *most = std::max(*most, runner.largest());
  };
  std::vector<std::thread> threads;
  for (int32_t& most : largest) threads.emplace_back(work, &most);
  for (std::thread& thread : threads) thread.join();
  prediction.largest_sum = *std::max_element(largest.begin(), largest.end());
  return prediction;
}

}  // namespace qat
