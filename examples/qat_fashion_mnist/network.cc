#include "examples/qat_fashion_mnist/network.h"

#include "absl/strings/str_cat.h"
#include "gradflow/ops/standard_ops.h"

namespace qat {

using gradflow::Output;
using gradflow::Scope;
namespace ops = gradflow::ops;
namespace training = gradflow::training;

Output Images(const Scope& scope) {
  return ops::Placeholder(scope.WithOpName("images"), gradflow::DT_UINT8,
                          ops::Placeholder::Shape({-1, kHeight, kWidth}));
}

Output Mirrored(const Scope& scope, const Output& images, const Output& step, int64_t seed) {
  const Output seeds = ops::Stack(scope, {step, ops::Const(scope, seed)});
  const Output count = ops::Slice(scope, ops::Shape(scope, images), {0}, {1});
  const Output chance = ops::StatelessRandomUniform(scope, count, seeds);
  const Output is_mirrored = ops::Reshape(scope, ops::Less(scope, chance, 0.5f), {-1, 1, 1});
  return ops::SelectV2(scope, is_mirrored, ops::ReverseV2(scope, images, {2}), images);
}

Output Pixels(const Scope& scope, const Output& images) {
  const Output scaled = ops::Mul(scope, ops::Cast(scope, images, gradflow::DT_FLOAT), kPixelStep);
  return ops::Reshape(scope.WithOpName("pixels"), scaled, {-1, kHeight, kWidth, 1});
}

Output Pool(const Scope& scope, const Output& x) {
  return ops::MaxPool(scope, x, {1, 2, 2, 1}, {1, 2, 2, 1}, "VALID");
}

Output Network(const Scope& scope, training::Model* model, const Output& images, bool quantize,
               bool training) {
  const auto options =
      training::LayerOptions().WeightBits(quantize ? 8 : 0).KernelInitializer(training::HeNormal);
  Output x = Pixels(scope, images);
  for (const ConvLayer& layer : kLayers) {
    x = training::Conv2D(scope, model, layer.name, x, layer.filters, options.UseBias(false));
    x = training::BatchNorm(
        scope, model, absl::StrCat(layer.name, "_norm"), x,
        training::BatchNormOptions().Training(training).Momentum(0.98f).Epsilon(kEpsilon));
    x = ops::Relu(scope, x);
    // Rounding keeps the order of values, so it may follow pooling, which leaves fewer values.
    if (layer.pools) x = Pool(scope, x);
    if (quantize) {
      x = training::FakeQuant(
          scope, model, absl::StrCat(layer.name, "_range"), x,
          training::FakeQuantOptions().Training(training).Nonnegative(true).PowerOfTwo(true));
    }
  }
  return training::Dense(scope, model, "dense", training::Flatten(scope, x), kClasses, options);
}

}  // namespace qat
