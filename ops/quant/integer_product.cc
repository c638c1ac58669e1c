#include "gradflow/ops/quant/integer_product.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

constexpr int64_t kMaxInput = 255;

int64_t Blocks(int64_t channels) { return NumBlocks(channels, kIntegerBlock); }

// The inputs and results of tiles of rows stay in the L2 cache.
constexpr int64_t kTileBytes = 64 << 10;
constexpr int64_t kMaxTileRows = 64 * kIntegerRows;
// A task has about this many products, if the sizes allow.
constexpr double kTaskProducts = 2e6;
// Channels are divided only if there are fewer tiles of rows, and into at least this many channels.
constexpr int64_t kFewTiles = 8;
constexpr int64_t kMinTileChannels = 64;

class IntegerMatMul final : public OpKernel {
 public:
  explicit IntegerMatMul(IntegerMatrix matrix, bool is_float)
      : matrix_(std::move(matrix)), is_float_(is_float) {}

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "a", 2));
    if (x.dtype() != DT_UINT8) {
      return errors::InvalidArgument("a must be of type uint8, but is ", DataTypeString(x.dtype()));
    }
    const int64_t rows = x.dim_size(0);
    const int64_t inner = x.dim_size(1);
    const int64_t channels = matrix_.channels();
    if (inner != matrix_.inner()) {
      return errors::InvalidArgument("a has ", inner, " columns, but the weights have ",
                                     matrix_.inner(), " rows");
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {rows, channels}, &output));
    if (rows == 0) return absl::OkStatus();
    Tensor padded = x;
    if (inner != matrix_.padded_inner()) {
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_UINT8, {rows, matrix_.padded_inner()}, &padded));
      const auto* const from = static_cast<const uint8_t*>(x.raw_data());
      auto* const to = static_cast<uint8_t*>(padded.raw_data());
      ParallelFor(ctx, rows, BlockSizeForCost(static_cast<double>(inner) / 8 + 5),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      uint8_t* const row = to + i * matrix_.padded_inner();
                      std::memcpy(row, from + i * inner, static_cast<size_t>(inner));
                      std::fill(row + inner, row + matrix_.padded_inner(), uint8_t{0});
                    }
                  });
    }
    const auto* const from = static_cast<const uint8_t*>(padded.raw_data());
    const IntegerTiles tiles(rows, matrix_.padded_inner(), channels, kMaxTileRows);
    ParallelFor(ctx, tiles.row_tiles * tiles.channel_tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / tiles.channel_tiles * tiles.tile_rows;
        const int64_t channel = i % tiles.channel_tiles * tiles.tile_channels;
        const int64_t first = row * channels + channel;
        void* const y = is_float_
                            ? static_cast<void*>(static_cast<float*>(output->raw_data()) + first)
                            : static_cast<uint8_t*>(output->raw_data()) + first;
        matrix_.Multiply(from + row * matrix_.padded_inner(), matrix_.padded_inner(),
                         std::min(tiles.tile_rows, rows - row), channel,
                         std::min(tiles.tile_channels, channels - channel), y, channels);
      }
    });
    return absl::OkStatus();
  }

 private:
  const IntegerMatrix matrix_;
  const bool is_float_;
};

}  // namespace

IntegerTiles::IntegerTiles(int64_t rows, int64_t inner, int64_t channels, int64_t max_rows) {
  const double row_products = static_cast<double>(inner) * static_cast<double>(channels);
  const auto for_task = static_cast<int64_t>(std::min(kTaskProducts / row_products + 1, 1e9));
  const int64_t most = std::min({max_rows, kTileBytes / std::max<int64_t>(inner, 1), for_task});
  tile_rows = std::min(rows, std::max<int64_t>(NumBlocks(most, kIntegerRows), 2) * kIntegerRows);
  row_tiles = NumBlocks(rows, tile_rows);
  const int64_t wanted = std::clamp<int64_t>(
      std::min(kFewTiles / row_tiles,
               static_cast<int64_t>(row_products * static_cast<double>(tile_rows) /
                                    (kTaskProducts / 4))),
      1, NumBlocks(channels, kMinTileChannels));
  tile_channels = NumBlocks(NumBlocks(channels, wanted), kMinTileChannels) * kMinTileChannels;
  channel_tiles = NumBlocks(channels, tile_channels);
}

IntegerCoefficients::IntegerCoefficients(const IntegerResult& result, int64_t first,
                                         int64_t channels)
    : sum_offset(static_cast<size_t>(Blocks(channels) * kIntegerBlock)),
      multiplier_(sum_offset.size()),
      offset_(sum_offset.size()),
      lowest_(result.lowest),
      highest_(result.highest),
      zero_point_(result.zero_point),
      is_float_(result.is_float),
      rounds_once_(result.rounds_once) {
  const auto element = [&](const auto& values, int64_t c) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(first + c)];
  };
  if (!result.fixed.empty()) fixed_.resize(sum_offset.size());
  for (int64_t c = 0; c < channels; ++c) {
    multiplier_[static_cast<size_t>(c)] = element(result.multiplier, c);
    offset_[static_cast<size_t>(c)] = element(result.offset, c);
    if (fixed_.empty()) continue;
    fixed_[static_cast<size_t>(c)] = element(result.fixed, c);
    AddToSum(c, element(result.fixed_offset, c));
  }
}

IntegerStore IntegerCoefficients::store() const {
  IntegerStore store;
  store.sum_offset = sum_offset.data();
  store.row_factor = row_factor.empty() ? nullptr : row_factor.data();
  store.multiplier = multiplier_.data();
  store.offset = offset_.data();
  store.fixed = fixed_.empty() ? nullptr : fixed_.data();
  store.rounds_once = rounds_once_;
  store.lowest = lowest_;
  store.highest = highest_;
  store.zero_point = zero_point_;
  store.is_float = is_float_;
  return store;
}

absl::Status CheckIntegerSums(const IntegerWeights& weights, const IntegerResult& result,
                              int64_t first_channel) {
  const std::vector<int32_t>& offsets = result.fixed_offset;
  for (int64_t c = 0; c < weights.channels; ++c) {
    int64_t sum = 0;
    for (int64_t k = 0; k < weights.inner; ++k) {
      sum += std::abs(weights.data[k * weights.inner_stride + c * weights.channel_stride]);
    }
    int64_t most = std::numeric_limits<int32_t>::max();
    if (!offsets.empty()) {
      most -= std::abs(
          int64_t{offsets[offsets.size() == 1 ? 0 : static_cast<size_t>(first_channel + c)]});
    }
    if (sum > most / kMaxInput) {
      return errors::InvalidArgument("a sum of ", weights.inner, " products may exceed 32 bits");
    }
  }
  return absl::OkStatus();
}

IntegerMatrix::IntegerMatrix(int64_t inner, int64_t channels, IntegerCoefficients coefficients)
    : inner_(inner),
      channels_(channels),
      groups_(NumBlocks(inner, kIntegerGroup)),
      weights_(static_cast<size_t>(Blocks(channels) * kIntegerBlock * groups_ * kIntegerGroup)),
      coefficients_(std::move(coefficients)) {}

absl::StatusOr<IntegerMatrix> IntegerMatrix::Pack(const IntegerWeights& weights, int32_t zero_point,
                                                  const IntegerResult& result,
                                                  int64_t first_channel) {
  GRADFLOW_RETURN_IF_ERROR(CheckIntegerSums(weights, result, first_channel));
  IntegerMatrix matrix(weights.inner, weights.channels,
                       IntegerCoefficients(result, first_channel, weights.channels));
  std::vector<int32_t> factors(matrix.coefficients_.sum_offset.size());
  for (int64_t c = 0; c < weights.channels; ++c) {
    const auto weight = [&](int64_t k) {
      return int32_t{weights.data[k * weights.inner_stride + c * weights.channel_stride]};
    };
    int32_t lowest = 0;
    int32_t highest = 0;
    int64_t sum = 0;
    for (int64_t k = 0; k < weights.inner; ++k) {
      lowest = std::min(lowest, weight(k));
      highest = std::max(highest, weight(k));
      sum += weight(k);
    }
    // Moves the weights of asymmetric ranges into the range of a signed byte. The sum of the
    // inputs, times the factor, then completes the sum of products.
    constexpr int32_t kLowest = std::numeric_limits<int8_t>::min();
    constexpr int32_t kHighest = std::numeric_limits<int8_t>::max();
    int32_t factor = 0;
    if (lowest < kLowest || highest > kHighest) factor = highest - kHighest;
    if (lowest - factor < kLowest) {
      return errors::InvalidArgument("the weights of a channel have more than 256 levels");
    }
    factors[static_cast<size_t>(c)] = factor;
    matrix.coefficients_.AddToSum(c, -zero_point * sum);
    for (int64_t k = 0; k < weights.inner; ++k) {
      matrix.weights_[matrix.IndexOf(k, c)] = static_cast<int8_t>(weight(k) - factor);
    }
  }
  if (std::any_of(factors.begin(), factors.end(), [](int32_t factor) { return factor != 0; })) {
    matrix.coefficients_.row_factor = std::move(factors);
  }
  return matrix;
}

size_t IntegerMatrix::IndexOf(int64_t k, int64_t channel) const {
  const int64_t group = channel / kIntegerBlock * groups_ + k / kIntegerGroup;
  return static_cast<size_t>((group * kIntegerBlock + channel % kIntegerBlock) * kIntegerGroup +
                             k % kIntegerGroup);
}

int16_t IntegerMatrix::Weight(int64_t k, int64_t channel) const {
  const std::vector<int32_t>& factors = coefficients_.row_factor;
  const int32_t factor = factors.empty() ? 0 : factors[static_cast<size_t>(channel)];
  return static_cast<int16_t>(weights_[IndexOf(k, channel)] + factor);
}

void IntegerMatrix::Multiply(const uint8_t* x, int64_t x_stride, int64_t rows, int64_t channel,
                             int64_t channels, void* y, int64_t y_stride) const {
  const IntegerStore store = coefficients_.store();
  IntegerProductTile tile;
  tile.x_stride = x_stride;
  tile.row_sums = nullptr;
  tile.groups = groups_;
  tile.weights = weights_.data();
  tile.channel = channel;
  tile.channels = channels;
  tile.y_stride = y_stride;
  if (store.row_factor == nullptr) {
    tile.x = x;
    tile.rows = rows;
    tile.y = y;
    return MultiplyIntegers(tile, store);
  }
  int32_t sums[16 * kIntegerRows];
  tile.row_sums = sums;
  constexpr int64_t kMost = std::size(sums);
  for (int64_t row = 0; row < rows; row += kMost) {
    tile.rows = std::min(kMost, rows - row);
    tile.x = x + row * x_stride;
    const int64_t first = row * y_stride;
    tile.y = store.is_float ? static_cast<void*>(static_cast<float*>(y) + first)
                            : static_cast<uint8_t*>(y) + first;
    for (int64_t i = 0; i < tile.rows; ++i) {
      const uint8_t* const from = tile.x + i * x_stride;
      int32_t sum = 0;
      for (int64_t k = 0; k < inner_; ++k) sum += from[k];
      sums[i] = sum;
    }
    MultiplyIntegers(tile, store);
  }
}

absl::StatusOr<std::shared_ptr<const OpKernel>> MakeIntegerMatMul(const IntegerWeights& weights,
                                                                  const IntegerProductArgs& args) {
  GRADFLOW_ASSIGN_OR_RETURN(IntegerMatrix matrix,
                            IntegerMatrix::Pack(weights, args.zero_point, args.result, 0));
  return std::make_shared<IntegerMatMul>(std::move(matrix), args.result.is_float);
}

}  // namespace gradflow
