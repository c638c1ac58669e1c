// libtorch's fake quantization and batch normalization.
#include "benchmarks/kernels/runners.h"
#include "benchmarks/torch_tensors.h"

namespace gradflow::benchmarks {
namespace {

at::Tensor Normal(const TensorShape& shape, uint32_t seed) {
  return TorchTensor(NormalTensor(shape, seed));
}

// Returns images in libtorch's form: indexed as NCHW, in the memory order of the case.
at::Tensor Images(const KernelCase& c, uint32_t seed) {
  at::Tensor images = Normal(c.shape, seed);
  return c.channels_first ? images : images.permute({0, 3, 1, 2});
}

}  // namespace

Runner Torch(const KernelCase& c, int threads) {
  constexpr double kEpsilon = 1e-3;
  const TensorShape vector({c.channels()});
  switch (c.op) {
    case Op::kFakeQuant: {
      const at::Tensor x = Normal(c.shape, 1);
      return WithThreads(threads,
                         [=] { at::fake_quantize_per_tensor_affine(x, 2.0 / 255, 128, 0, 255); });
    }
    case Op::kFakeQuantPerChannel: {
      const at::Tensor x = Normal(c.shape, 1);
      const at::Tensor scale = at::full({c.channels()}, 2.0 / 255);
      const at::Tensor zero = at::full({c.channels()}, 128, at::kFloat);
      return WithThreads(threads, [=] {
        at::fake_quantize_per_channel_affine(x, scale, zero, x.dim() - 1, 0, 255);
      });
    }
    case Op::kFakeQuantGradient: {
      // Uses the learnable form, because it computes gradients of the range, as our op does.
      const at::Tensor g = Normal(c.shape, 1), x = Normal(c.shape, 2);
      const at::Tensor scale = at::full({1}, 2.0 / 255), zero = at::full({1}, 128.0);
      return WithThreads(threads, [=] {
        at::_fake_quantize_learnable_per_tensor_affine_backward(g, x, scale, zero, 0, 255);
      });
    }
    case Op::kFakeQuantPerChannelGradient: {
      const at::Tensor g = Normal(c.shape, 1), x = Normal(c.shape, 2);
      const at::Tensor scale = at::full({c.channels()}, 2.0 / 255);
      const at::Tensor zero = at::full({c.channels()}, 128.0);
      return WithThreads(threads, [=] {
        at::_fake_quantize_learnable_per_channel_affine_backward(g, x, scale, zero, g.dim() - 1, 0,
                                                                 255);
      });
    }
    case Op::kBatchNormInference:
    case Op::kBatchNormTraining: {
      const at::Tensor x = Images(c, 1), scale = Normal(vector, 2), offset = Normal(vector, 3);
      const at::Tensor mean = Normal(vector, 4), variance = at::ones({c.channels()});
      const bool training = c.op == Op::kBatchNormTraining;
      return WithThreads(threads, [=] {
        at::native_batch_norm(x, scale, offset, mean, variance, training, 0.0, kEpsilon);
      });
    }
    case Op::kBatchNormGradInference:
    case Op::kBatchNormGradTraining: {
      const at::Tensor g = Images(c, 1), x = Images(c, 2), scale = Normal(vector, 3);
      const at::Tensor mean = Normal(vector, 4), variance = at::ones({c.channels()});
      const bool training = c.op == Op::kBatchNormGradTraining;
      return WithThreads(threads, [=] {
        at::native_batch_norm_backward(g, x, scale, mean, variance, mean, variance, training,
                                       kEpsilon, {true, true, true});
      });
    }
  }
  return nullptr;
}

}  // namespace gradflow::benchmarks
