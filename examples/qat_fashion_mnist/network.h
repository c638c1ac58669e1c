// The network of the example: three convolutions and a dense layer.
//
//   images -> conv -> norm -> relu -> pool -> quantize   [14, 14, 16]
//          -> conv -> norm -> relu -> pool -> quantize   [7, 7, 32]
//          -> conv -> norm -> relu -> pool -> quantize   [3, 3, 64]
//          -> dense -> logits
//
// Weights are rounded to 8 bits, with a scale for each channel. Activations are rounded to 8 bits,
// with a step that is a power of two, so that sums of products are exact in float.
#ifndef GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_NETWORK_H_
#define GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_NETWORK_H_

#include <cstdint>
#include <string>

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/training/layers.h"

namespace qat {

inline constexpr int kHeight = 28;
inline constexpr int kWidth = 28;
inline constexpr int kClasses = 10;
// Pixels are multiples of this value.
inline constexpr float kPixelStep = 1.0f / 256;
inline constexpr float kEpsilon = 1e-3f;

// A convolution with batch norm, ReLU and optionally pooling.
struct ConvLayer {
  const char* name;
  int filters;
  bool pools;
};
inline constexpr ConvLayer kLayers[] = {
    {"conv1", 16, true}, {"conv2", 32, true}, {"conv3", 64, true}};

// Adds a placeholder of images, uint8 [n, 28, 28].
gradflow::Output Images(const gradflow::Scope& scope);
// Mirrors each image at random. The choice depends only on the step and the seed, so that a resumed
// run makes the same choice.
gradflow::Output Mirrored(const gradflow::Scope& scope, const gradflow::Output& images,
                          const gradflow::Output& step, int64_t seed);
// Returns images as float [n, 28, 28, 1] in [0, 1).
gradflow::Output Pixels(const gradflow::Scope& scope, const gradflow::Output& images);
// Returns the logits of images. Training uses the statistics of the batch.
gradflow::Output Network(const gradflow::Scope& scope, gradflow::training::Model* model,
                         const gradflow::Output& images, bool quantize, bool training);
// Adds max pooling of 2 x 2 pixels.
gradflow::Output Pool(const gradflow::Scope& scope, const gradflow::Output& x);

}  // namespace qat

#endif  // GRADFLOW_EXAMPLES_QAT_FASHION_MNIST_NETWORK_H_
