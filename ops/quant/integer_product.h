// Matrix products of 8-bit integers, packed for the loops of integer_product_simd.h.
#ifndef GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_H_
#define GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/ops/quant/integer_product_simd.h"

namespace gradflow {

// A view of integer weights, [inner, channels].
struct IntegerWeights {
  const int16_t* data;
  int64_t inner;
  int64_t channels;
  int64_t inner_stride;
  int64_t channel_stride;
};

// The coefficients of IntegerStore for some output channels.
class IntegerCoefficients {
 public:
  // Takes the channels [first, first + channels) of the result.
  IntegerCoefficients(const IntegerResult& result, int64_t first, int64_t channels);
  // Points to the members, beginning at channel 0.
  IntegerStore store() const;
  // Adds to sum_offset[channel], modulo 2^32.
  void AddToSum(int64_t channel, int64_t term) {
    int32_t& sum = sum_offset[static_cast<size_t>(channel)];
    sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(term));
  }
  std::vector<int32_t> sum_offset;
  // Empty if all factors are 0.
  std::vector<int32_t> row_factor;

 private:
  std::vector<float> multiplier_;
  std::vector<float> offset_;
  // Empty without fixed point.
  std::vector<FixedPoint> fixed_;
  float lowest_;
  float highest_;
  int32_t zero_point_;
  bool is_float_;
  bool rounds_once_;
};

// Returns an error if a sum of products with these weights, plus its offset in fixed point, may
// exceed 32 bits. The channels are the channels of `result` from `first_channel` on.
absl::Status CheckIntegerSums(const IntegerWeights& weights, const IntegerResult& result,
                              int64_t first_channel);

// Constant weights and the conversion of the sums. Immutable.
class IntegerMatrix {
 public:
  // Packs weights. The result has the channels [first_channel, first_channel + weights.channels) of
  // `result`. Returns an error if the weights of a channel have more than 256 levels or if a sum
  // may exceed 32 bits.
  static absl::StatusOr<IntegerMatrix> Pack(const IntegerWeights& weights, int32_t zero_point,
                                            const IntegerResult& result, int64_t first_channel);

  int64_t inner() const { return inner_; }
  // The number of bytes of a row of x: inner() rounded up. The bytes after inner() do not matter.
  int64_t padded_inner() const { return groups_ * kIntegerGroup; }
  int64_t channels() const { return channels_; }
  int16_t Weight(int64_t k, int64_t channel) const;

  // Sets y[rows, channels] to the results of channels [channel, channel + channels), for the rows
  // of `x`. `channel` is a multiple of kIntegerBlock. Strides count elements. Runs on the calling
  // thread.
  void Multiply(const uint8_t* x, int64_t x_stride, int64_t rows, int64_t channel, int64_t channels,
                void* y, int64_t y_stride) const;

 private:
  IntegerMatrix(int64_t inner, int64_t channels, IntegerCoefficients coefficients);
  // Returns the index of a weight in weights_.
  size_t IndexOf(int64_t k, int64_t channel) const;

  int64_t inner_;
  int64_t channels_;
  int64_t groups_;
  std::vector<int8_t> weights_;
  IntegerCoefficients coefficients_;
};

// A division of a product into tiles of rows and channels. It depends only on the sizes.
struct IntegerTiles {
  IntegerTiles(int64_t rows, int64_t inner, int64_t channels, int64_t max_rows);

  int64_t tile_rows;
  int64_t tile_channels;
  int64_t row_tiles;
  int64_t channel_tiles;
};

// Makes the kernel of a product of a matrix [rows, inner] and constant weights.
absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerMatMul(const IntegerWeights& weights,
                                                                  const IntegerProductArgs& args);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_INTEGER_PRODUCT_H_
