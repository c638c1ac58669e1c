#include "benchmarks/kernels/cases.h"

namespace gradflow::benchmarks {
namespace {

// The distinct (height = width, channels) pairs of the batch norms in ResNet-50 and MobileNet.
constexpr int64_t kBatchNorms[][2] = {
    {112, 64}, {56, 64},  {56, 256}, {28, 128}, {28, 512}, {14, 256}, {14, 1024},
    {7, 512},  {7, 2048}, {112, 32}, {56, 128}, {28, 256}, {14, 512}, {7, 1024},
};

TensorShape ImageShape(int64_t batch, int64_t size, int64_t channels, bool channels_first) {
  return channels_first ? TensorShape({batch, channels, size, size})
                        : TensorShape({batch, size, size, channels});
}

}  // namespace

std::vector<KernelCase> Cases(bool all) {
  std::vector<KernelCase> cases = {
      {Op::kFakeQuantGradient, {1 << 24}},
      {Op::kFakeQuantGradient, {1 << 16}},
      {Op::kFakeQuantPerChannelGradient, {65536, 256}},
      {Op::kFakeQuantPerChannelGradient, {1000003, 3}},
      {Op::kFakeQuantPerChannelGradient, {4096, 1000}},
      {Op::kFakeQuantPerChannelGradient, {32, 56, 56, 64}},
      {Op::kFakeQuantPerChannelGradient, {4194304, 1}},
      {Op::kFakeQuantPerChannelGradient, {600000, 7}},
      {Op::kFakeQuantPerChannelGradient, {100, 100003}},
      {Op::kFakeQuantPerChannelGradient, {1, 100003}},
      {Op::kFakeQuant, {1 << 24}},
      {Op::kFakeQuantPerChannel, {65536, 256}},
      {Op::kFakeQuantPerChannel, {1000003, 3}},
      {Op::kFakeQuantPerChannel, {32, 56, 56, 64}},
  };
  const auto add = [&](Op op, int64_t batch, int64_t size, int64_t channels) {
    for (const bool channels_first : {false, true}) {
      cases.push_back({op, ImageShape(batch, size, channels, channels_first), channels_first});
    }
  };
  for (const Op op : {Op::kBatchNormGradTraining, Op::kBatchNormGradInference,
                      Op::kBatchNormTraining, Op::kBatchNormInference}) {
    add(op, 32, 56, 64);
    add(op, 8, 28, 512);
  }
  if (all) {
    for (const int64_t batch : {8, 32}) {
      for (const auto& [size, channels] : kBatchNorms) {
        add(Op::kBatchNormGradTraining, batch, size, channels);
        add(Op::kBatchNormTraining, batch, size, channels);
      }
    }
  }
  return cases;
}

}  // namespace gradflow::benchmarks
