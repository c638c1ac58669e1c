// Networks, written once for all libraries. A Backend creates the layers of one library, and takes
// their weights in order from a WeightSource.
#ifndef GRADFLOW_BENCHMARKS_MODELS_NETWORKS_H_
#define GRADFLOW_BENCHMARKS_MODELS_NETWORKS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/workload.h"
#include "gradflow/core/tensor.h"

namespace gradflow::benchmarks {

enum class Network { kResNet50, kMobileNetV2, kInceptionV3, kLstm, kBertLayer };
inline constexpr Network kNetworks[] = {Network::kResNet50, Network::kMobileNetV2,
                                        Network::kInceptionV3, Network::kLstm, Network::kBertLayer};

// Sizes that are used in more than one place.
inline constexpr int64_t kLstmSteps = 32;
inline constexpr int64_t kLstmCells = 512;
inline constexpr int64_t kBertLength = 128;
inline constexpr int64_t kBertSize = 768;

// Returns the name of a network. Its files have the same name.
const char* NameOf(Network network);
// Returns the shape of the network's input.
TensorShape InputShape(Network network, int64_t batch);

// Random weights, identical for all libraries.
class WeightSource {
 public:
  // Returns normally distributed numbers whose stddev preserves the scale of `fan_in` inputs.
  Tensor Filter(const TensorShape& shape, int64_t fan_in) {
    return Next(shape, 0, std::sqrt(2 / static_cast<float>(fan_in)));
  }
  // Returns numbers near `mean` with a stddev of 0.1.
  Tensor Vector(int64_t size, float mean) { return Next({size}, mean, 0.1f); }

 private:
  Tensor Next(const TensorShape& shape, float mean, float stddev) {
    Tensor tensor = NormalTensor(shape, ++seed_);
    float* const data = static_cast<float*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.NumElements(); ++i) {
      // Clamps, because variances must be positive.
      data[i] = mean + stddev * std::clamp(data[i], -3.0f, 3.0f);
    }
    return tensor;
  }

  uint32_t seed_ = 0;
};

// ---- The networks ----

// ResNet-50 v1.5, whose 3x3 convolutions have the strides.
template <typename B>
typename B::Value ResNet50(B& b, typename B::Value x) {
  x = b.MaxPool(b.Relu(b.Norm(b.Conv(x, 3, 64, 7, 2), 64)));
  int64_t in = 64;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t mid = int64_t{64} << stage;
    const int64_t out = 4 * mid;
    for (int64_t i = 0; i < blocks[stage]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      const auto shortcut = i == 0 ? b.Norm(b.Conv(x, in, out, 1, stride), out) : x;
      auto y = b.Relu(b.Norm(b.Conv(x, in, mid, 1, 1), mid));
      y = b.Relu(b.Norm(b.Conv(y, mid, mid, 3, stride), mid));
      y = b.Norm(b.Conv(y, mid, out, 1, 1), out);
      x = b.Relu(b.Add(y, shortcut));
      in = out;
    }
  }
  return b.Dense(b.Average(x), in, 1000);
}

template <typename B>
typename B::Value MobileNetV2(B& b, typename B::Value x) {
  struct Group {
    int64_t expansion;
    int64_t channels;
    int64_t repeats;
    int64_t stride;
  };
  const Group groups[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                          {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  x = b.Relu6(b.Norm(b.Conv(x, 3, 32, 3, 2), 32));
  int64_t in = 32;
  for (const Group& group : groups) {
    for (int64_t i = 0; i < group.repeats; ++i) {
      const int64_t stride = i == 0 ? group.stride : 1;
      const int64_t mid = in * group.expansion;
      auto y = x;
      if (group.expansion > 1) y = b.Relu6(b.Norm(b.Conv(y, in, mid, 1, 1), mid));
      y = b.Relu6(b.Norm(b.Depthwise(y, mid, stride), mid));
      y = b.Norm(b.Conv(y, mid, group.channels, 1, 1), group.channels);
      x = stride == 1 && in == group.channels ? b.Add(y, x) : y;
      in = group.channels;
    }
  }
  x = b.Relu6(b.Norm(b.Conv(x, in, 1280, 1, 1), 1280));
  return b.Dense(b.Average(x), 1280, 1000);
}

// The first half of Inception v3: up to the first 17 x 17 block, and the average of its output over
// the image.
template <typename B>
typename B::Value InceptionV3(B& b, typename B::Value x) {
  using Value = typename B::Value;
  const auto same = [&](const Value& y, int64_t in, int64_t out, int64_t size) {
    return b.Relu(b.Norm(b.Conv(y, in, out, size, 1), out));
  };
  const auto valid = [&](const Value& y, int64_t in, int64_t out, int64_t stride) {
    return b.Relu(b.Norm(b.Conv(y, in, out, 3, stride, 0), out));
  };
  x = same(valid(valid(x, 3, 32, 2), 32, 32, 1), 32, 64, 3);
  x = valid(same(b.MaxPoolValid(x), 64, 80, 1), 80, 192, 1);
  x = b.MaxPoolValid(x);
  int64_t in = 192;
  for (const int64_t pooled : {32, 64, 64}) {
    x = b.Concat({same(x, in, 64, 1), same(same(x, in, 48, 1), 48, 64, 5),
                  same(same(same(x, in, 64, 1), 64, 96, 3), 96, 96, 3),
                  same(b.AveragePool(x), in, pooled, 1)});
    in = 64 + 64 + 96 + pooled;
  }
  const Value narrow = valid(same(same(x, in, 64, 1), 64, 96, 3), 96, 96, 2);
  return b.Average(b.Concat({valid(x, in, 384, 2), narrow, b.MaxPoolValid(x)}));
}

// Two LSTM layers.
template <typename B>
typename B::Value TwoLstms(B& b, typename B::Value x) {
  return b.Lstm(b.Lstm(x, kLstmCells), kLstmCells);
}

// An encoder layer of BERT-base, on tokens [batch * length, size].
template <typename B>
typename B::Value BertLayer(B& b, typename B::Value x, int64_t batch) {
  constexpr int64_t kHeads = 12;
  constexpr int64_t kHeadSize = kBertSize / kHeads;
  const auto split = [&](const typename B::Value& y) {
    return b.Transpose(b.Reshape(y, {batch, kBertLength, kHeads, kHeadSize}), {0, 2, 1, 3});
  };
  const auto query = split(b.Dense(x, kBertSize, kBertSize));
  const auto key = split(b.Dense(x, kBertSize, kBertSize));
  const auto value = split(b.Dense(x, kBertSize, kBertSize));
  const float scale = 1 / std::sqrt(static_cast<float>(kHeadSize));
  const auto weights = b.Softmax(b.Scale(b.BatchMatMul(query, key, /*transposed=*/true), scale));
  const auto heads = b.Transpose(b.BatchMatMul(weights, value, false), {0, 2, 1, 3});
  const auto attention =
      b.Dense(b.Reshape(heads, {batch * kBertLength, kBertSize}), kBertSize, kBertSize);
  x = b.LayerNorm(b.Add(attention, x), kBertSize);
  const auto wide = b.Gelu(b.Dense(x, kBertSize, 4 * kBertSize));
  return b.LayerNorm(b.Add(b.Dense(wide, 4 * kBertSize, kBertSize), x), kBertSize);
}

template <typename B>
typename B::Value MakeNetwork(Network network, int64_t batch, B& b, typename B::Value x) {
  switch (network) {
    case Network::kResNet50:
      return ResNet50(b, x);
    case Network::kMobileNetV2:
      return MobileNetV2(b, x);
    case Network::kInceptionV3:
      return InceptionV3(b, x);
    case Network::kLstm:
      return TwoLstms(b, x);
    case Network::kBertLayer:
      return BertLayer(b, x, batch);
  }
  return x;
}

// ---- Libtorch ----

// Returns a runner of a network, or of a training step, on `input`. Returns null without libtorch.
// Each run stores the result in *output unless it is null.
Runner TorchNetwork(Network network, const Tensor& input, bool training, int threads,
                    Tensor* output);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_MODELS_NETWORKS_H_
