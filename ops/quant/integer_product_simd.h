// The inner loops of products of unsigned and signed bytes. Sums are exact in int32, modulo 2^32.
// All results have the same bits on all processors.
#ifndef GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_SIMD_H_
#define GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_SIMD_H_

#include <cstdint>

#include "gradflow/core/fixed_point.h"

namespace gradflow {

// Weights are packed as [block of channels][group of inputs][channel of the block][input of the
// group]. Missing channels and inputs have the weight 0.
inline constexpr int64_t kIntegerBlock = 16;
inline constexpr int64_t kIntegerGroup = 4;
// Products are computed for this many rows at once on the fastest processors.
inline constexpr int64_t kIntegerRows = 6;

// The conversion of sums to results (IntegerResult). Arrays have an element for each channel of
// whole blocks.
struct IntegerStore {
  // sum_c = products_c + offset_c + row_factor_c * (sum of the row's inputs)
  const int32_t* sum_offset;
  // May be null.
  const int32_t* row_factor;
  const float* multiplier;
  const float* offset;
  // If not null, sums are multiplied in fixed point instead.
  const FixedPoint* fixed;
  bool rounds_once;
  float lowest;
  float highest;
  int32_t zero_point;
  bool is_float;
};

// Multiplies x[rows, 4 * groups] by the packed weights of channels [channel, channel + channels)
// and stores the results in y[rows, channels], uint8 or float. `channel` is a multiple of
// kIntegerBlock. `store` and `weights` begin at channel 0. `row_sums` has an element for each row;
// it may be null without row factors.
struct IntegerProductTile {
  const uint8_t* x;
  int64_t x_stride;
  const int32_t* row_sums;
  int64_t rows;
  int64_t groups;
  const int8_t* weights;
  int64_t channel;
  int64_t channels;
  void* y;
  // The distance of the rows of y, in elements.
  int64_t y_stride;
};
void MultiplyIntegers(const IntegerProductTile& tile, const IntegerStore& store);

// Consecutive output positions of a depthwise convolution. At position p, the inputs at
// taps[t] + p * step are multiplied by weights[t][channels]. The weights are between -128 and 127.
struct DepthwiseRun {
  const uint8_t* const* taps;
  int64_t num_taps;
  int64_t positions;
  int64_t step;
  const int16_t* weights;
  int64_t channels;
};
// Stores the results in y[positions, channels].
void DepthwiseIntegers(const DepthwiseRun& run, const IntegerStore& store, void* y);

// Converts the sums of channels [c, c + n) in fixed point, and stores the results in y.
void StoreFixedPoint(const int32_t* sums, int64_t c, int64_t n, const IntegerStore& store,
                     uint8_t* y);

// Returns true if products use the processor's instruction for dot products of bytes.
bool HasByteProducts();

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_SIMD_H_
