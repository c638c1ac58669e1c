#include "gradflow/core/blocked_layout.h"

#include <algorithm>

#include "gradflow/core/parallel.h"

namespace gradflow {
namespace {

// Calls fn(first, index, channels) for each block of channels of each image of the batch. The first
// element of the block is element `first` of the image and element `index` of the blocked image.
// fn() loops over the pixels.
template <typename F>
void ForEachBlock(const RunContext& run, const TensorShape& blocks, int64_t depth, const F& fn) {
  if (blocks.num_elements() == 0) return;
  const int64_t num_blocks = blocks.dim_size(1);
  const int64_t pixels = blocks.dim_size(2) * blocks.dim_size(3);
  const int64_t block = blocks.dim_size(4);
  const int64_t at_once = BlockSizeForCost(0.5 * static_cast<double>(pixels * block));
  ParallelFor(run, blocks.dim_size(0) * num_blocks, at_once, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t channel = b % num_blocks * block;
      fn(b / num_blocks * pixels * depth + channel, b * pixels * block,
         std::clamp<int64_t>(depth - channel, 0, block));
    }
  });
}

}  // namespace

TensorShape BlockedShape(const TensorShape& image, int64_t block) {
  return {image.dim_size(0), NumBlocks(image.dim_size(3), block), image.dim_size(1),
          image.dim_size(2), block};
}

TensorShape UnblockedShape(const TensorShape& blocks, int64_t depth) {
  return {blocks.dim_size(0), blocks.dim_size(2), blocks.dim_size(3), depth};
}

void CopyToBlocked(const RunContext& run, const Tensor& image, Tensor* to) {
  const int64_t depth = image.dim_size(3);
  const int64_t pixels = image.dim_size(1) * image.dim_size(2);
  const int64_t block = to->dim_size(4);
  const float* const elements = static_cast<const float*>(image.raw_data());
  float* const blocks = static_cast<float*>(to->raw_data());
  ForEachBlock(run, to->shape(), depth, [&](int64_t first, int64_t index, int64_t channels) {
    const float* from = elements + first;
    float* out = blocks + index;
    if (block == 1) {
      for (int64_t i = 0; i < pixels; ++i) out[i] = from[i * depth];
      return;
    }
    for (int64_t i = 0; i < pixels; ++i, from += depth, out += block) {
      for (int64_t c = 0; c < channels; ++c) out[c] = from[c];
      for (int64_t c = channels; c < block; ++c) out[c] = 0;
    }
  });
}

void CopyFromBlocked(const RunContext& run, const Tensor& blocks, Tensor* to) {
  const int64_t depth = to->dim_size(3);
  const int64_t pixels = to->dim_size(1) * to->dim_size(2);
  const int64_t block = blocks.dim_size(4);
  const float* const elements = static_cast<const float*>(blocks.raw_data());
  float* const image = static_cast<float*>(to->raw_data());
  ForEachBlock(run, blocks.shape(), depth, [&](int64_t first, int64_t index, int64_t channels) {
    const float* from = elements + index;
    float* out = image + first;
    for (int64_t i = 0; i < pixels; ++i, from += block, out += depth) {
      for (int64_t c = 0; c < channels; ++c) out[c] = from[c];
    }
  });
}

}  // namespace gradflow
