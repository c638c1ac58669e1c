#include "examples/qat_block/block.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/ops/standard_ops.h"

namespace qat_block {
namespace {

using namespace gradflow;       // NOLINT: customary with TensorFlow's C++ API
using namespace gradflow::ops;  // NOLINT

constexpr float kEpsilon = 1e-3f;

// Symmetric ranges whose bounds are 127 times a power of two: the narrow range of 8 bits (254
// steps) contains zero without nudging.
constexpr float kMax = 127.0f / 128;
constexpr float kMaxOfChannel[kChannels] = {127.0f / 128, 127.0f / 256, 127.0f / 128, 127.0f / 64};

// Converts uint8 [n, 28, 28] to float [n, 14, 14, 4] in [0, 1].
Output SpaceToDepth(const Scope& scope, const Output& images) {
  Output pixels = Mul(scope, Cast(scope, images, DT_FLOAT), 1.0f / 255);
  Output squares = Reshape(scope, pixels, {-1, kHeight / 2, 2, kWidth / 2, 2});
  Output channels_last = Transpose(scope, squares, {0, 1, 3, 2, 4});
  return Reshape(scope.WithOpName("x"), channels_last, {-1, kHeight / 2, kWidth / 2, kChannels});
}

// One gradient for each input of a branch.
const char* const kVariables[] = {"input", "scale", "offset", "min", "max"};

// Derives the gradients with respect to the inputs of a branch from the gradient of y.
void Derive(const Scope& scope, const Output& y, const std::vector<Output>& inputs,
            const Output& upstream) {
  std::vector<Output> gradients;
  scope.UpdateStatus(AddSymbolicGradients(scope, {y}, inputs, {upstream}, &gradients));
  for (size_t i = 0; i < gradients.size(); ++i) {
    Identity(scope.WithOpName(absl::StrCat("grad_", kVariables[i])), gradients[i]);
  }
}

// Adds the gradients op by op: from the quantizer's output back to the block's inputs.
template <typename QuantGradient>
void SpellOut(const Scope& scope, const FusedBatchNormV3& norm, const std::vector<Output>& inputs,
              const Output& upstream) {
  QuantGradient quant(scope.WithOpName("quant_grad"), upstream, norm.y, inputs[3], inputs[4],
                      QuantGradient::NarrowRange(true));
  FusedBatchNormGradV3 grad(scope.WithOpName("norm_grad"), quant.backprops_wrt_input, inputs[0],
                            inputs[1], norm.reserve_space_1, norm.reserve_space_2,
                            norm.reserve_space_3, FusedBatchNormGradV3::Epsilon(kEpsilon));
  const Output gradients[] = {grad.x_backprop, grad.scale_backprop, grad.offset_backprop,
                              quant.backprop_wrt_min, quant.backprop_wrt_max};
  for (size_t i = 0; i < std::size(gradients); ++i) {
    Identity(scope.WithOpName(absl::StrCat("grad_", kVariables[i])), gradients[i]);
  }
}

// Fake quantization is a step function, and its gradient op differentiates the clamp within it (the
// straight-through estimator). The loss for finite differences therefore clamps and does not
// quantize.
void ClampLoss(const Scope& scope, const Output& y, const Output& min, const Output& max,
               const Output& upstream) {
  Output clamped = Minimum(scope, Maximum(scope, y, min), max);
  // The loss is computed in double: float would round away the differences of single pixels.
  Output weighted = Mul(scope, Cast(scope, clamped, DT_DOUBLE), Cast(scope, upstream, DT_DOUBLE));
  Sum(scope.WithOpName("loss"), weighted, {0, 1, 2, 3});
}

}  // namespace

void BuildBlock(const Scope& scope) {
  Output images =
      Placeholder(scope.WithOpName("images"), DT_UINT8, Placeholder::Shape({-1, kHeight, kWidth}));
  Output upstream = Placeholder(scope.WithOpName("upstream"), DT_FLOAT,
                                Placeholder::Shape({-1, kHeight / 2, kWidth / 2, kChannels}));
  Output x = SpaceToDepth(scope, images);
  Output scale = Const(scope.WithOpName("scale"), {1.0f, 0.75f, 1.25f, 1.5f});
  Output offset = Const(scope.WithOpName("offset"), {-0.25f, 0.0f, -0.25f, 0.5f});
  // Unused in training, which uses the statistics of the batch.
  Output none = Const(scope.WithOpName("no_statistics"), Input::Initializer(Tensor(DT_FLOAT, {0})));
  FusedBatchNormV3 norm(scope.WithOpName("norm"), x, scale, offset, none, none,
                        FusedBatchNormV3::Epsilon(kEpsilon));

  const Scope per_tensor = scope.NewSubScope("per_tensor");
  {
    Output min = Const(per_tensor.WithOpName("min"), -kMax);
    Output max = Const(per_tensor.WithOpName("max"), kMax);
    Output y = FakeQuantWithMinMaxVars(per_tensor.WithOpName("y"), norm.y, min, max,
                                       FakeQuantWithMinMaxVars::NarrowRange(true));
    const std::vector<Output> inputs = {x, scale, offset, min, max};
    Derive(per_tensor, y, inputs, upstream);
    SpellOut<FakeQuantWithMinMaxVarsGradient>(per_tensor.NewSubScope("by_hand"), norm, inputs,
                                              upstream);
    ClampLoss(per_tensor.NewSubScope("clamp"), norm.y, min, max, upstream);
  }

  const Scope per_channel = scope.NewSubScope("per_channel");
  {
    Tensor highs(DT_FLOAT, {kChannels});
    Tensor lows(DT_FLOAT, {kChannels});
    for (int c = 0; c < kChannels; ++c) {
      highs.vec<float>()(c) = kMaxOfChannel[c];
      lows.vec<float>()(c) = -kMaxOfChannel[c];
    }
    Output min = Const(per_channel.WithOpName("min"), lows);
    Output max = Const(per_channel.WithOpName("max"), highs);
    Output y =
        FakeQuantWithMinMaxVarsPerChannel(per_channel.WithOpName("y"), norm.y, min, max,
                                          FakeQuantWithMinMaxVarsPerChannel::NarrowRange(true));
    const std::vector<Output> inputs = {x, scale, offset, min, max};
    Derive(per_channel, y, inputs, upstream);
    SpellOut<FakeQuantWithMinMaxVarsPerChannelGradient>(per_channel.NewSubScope("by_hand"), norm,
                                                        inputs, upstream);
    ClampLoss(per_channel.NewSubScope("clamp"), norm.y, min, max, upstream);
  }
}

std::vector<Gradient> Gradients() {
  std::vector<Gradient> gradients;
  for (const char* branch : {"per_tensor", "per_channel"}) {
    const std::string loss = absl::StrCat(branch, "/clamp/loss");
    const auto add = [&](const char* name, const std::string& variable) {
      gradients.push_back({absl::StrCat(branch, "/", name), absl::StrCat(branch, "/grad_", name),
                           absl::StrCat(branch, "/by_hand/grad_", name), variable, loss});
    };
    add("input", "x");
    add("scale", "scale");
    add("offset", "offset");
    add("min", absl::StrCat(branch, "/min"));
    add("max", absl::StrCat(branch, "/max"));
  }
  return gradients;
}

}  // namespace qat_block
