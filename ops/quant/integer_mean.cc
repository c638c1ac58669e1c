#include "gradflow/ops/quant/integer_mean.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

class IntegerMeanKernel final : public OpKernel {
 public:
  IntegerMeanKernel(const IntegerFormKernel::Args& args, bool keep_dims)
      : mean_(args, /*is_pool=*/false), keep_dims_(keep_dims) {}

  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_UINT8) {
      return errors::InvalidArgument("input must be of type uint8, but is ",
                                     DataTypeString(input.dtype()));
    }
    constexpr absl::string_view kAxes = "reduction_indices";
    GRADFLOW_RETURN_IF_ERROR(CheckReductionAxes(kAxes, ctx.input(1).shape(), input.dims()));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector axes, ctx.Ints(1, kAxes));
    std::vector<bool> reduced;
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector dims, ReducedDims(kAxes, input.shape().dim_sizes(),
                                                                axes, keep_dims_, &reduced));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const int64_t elements = output->NumElements();
    if (elements == 0) return absl::OkStatus();
    Tensor sums;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {elements}, &sums));
    auto* const totals = static_cast<int64_t*>(sums.raw_data());
    std::fill_n(totals, elements, 0);
    if (input.NumElements() > 0) AddAll(ctx, input, reduced, totals);
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    const int64_t count = input.NumElements() / elements;
    ParallelFor(ctx, elements, BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
      mean_.Round(totals + begin, end - begin, count, y + begin);
    });
    return absl::OkStatus();
  }

 private:
  // Adds the elements of the input to the elements of the output. Splits the loop along the first
  // dimension if it remains.
  static void AddAll(KernelContext& ctx, const Tensor& input, const std::vector<bool>& reduced,
                     int64_t* totals) {
    // Merges adjacent dimensions of the same kind.
    std::vector<int64_t> sizes;
    std::vector<bool> kinds;
    for (int d = 0; d < input.dims(); ++d) {
      if (!sizes.empty() && kinds.back() == reduced[static_cast<size_t>(d)]) {
        sizes.back() *= input.dim_size(d);
      } else {
        sizes.push_back(input.dim_size(d));
        kinds.push_back(reduced[static_cast<size_t>(d)]);
      }
    }
    if (sizes.empty() || kinds[0]) {
      sizes.insert(sizes.begin(), 1);
      kinds.insert(kinds.begin(), false);
    }
    if (kinds.back()) {
      sizes.push_back(1);
      kinds.push_back(false);
    }
    // The dimensions alternate now: remaining, reduced, …, remaining.
    const auto* const x = static_cast<const uint8_t*>(input.raw_data());
    const int64_t volume = input.NumElements() / sizes[0];
    int64_t kept = 1;
    for (size_t d = 2; d < sizes.size(); d += 2) kept *= sizes[d];
    ParallelFor(ctx, sizes[0], BlockSizeForCost(0.1 * static_cast<double>(volume)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    Add(x + i * volume, sizes, 1, totals + i * kept);
                  }
                });
  }

  // Adds x, with the dimensions `sizes` from the reduced dimension d on.
  static void Add(const uint8_t* x, const std::vector<int64_t>& sizes, size_t d, int64_t* totals) {
    if (d >= sizes.size()) {
      *totals += *x;
      return;
    }
    int64_t volume = 1;
    int64_t kept = 1;
    for (size_t e = d + 2; e < sizes.size(); ++e) {
      volume *= sizes[e];
      if ((e - d) % 2 == 1) kept *= sizes[e];
    }
    const int64_t rows = sizes[d];
    const int64_t remaining = sizes[d + 1];
    if (d + 2 == sizes.size()) {
      return AddIntegerRows(x, rows, remaining, remaining, totals);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < remaining; ++i) {
        Add(x + (r * remaining + i) * volume, sizes, d + 2, totals + i * kept);
      }
    }
  }

  const IntegerMean mean_;
  const bool keep_dims_;
};

}  // namespace

IntegerMean::IntegerMean(const IntegerFormKernel::Args& args, bool is_pool)
    : from_(args.inputs[0]),
      zero_point_(args.format.zero_point),
      scale_(args.factor * static_cast<double>(from_.scale) / args.format.scale),
      lowest_(args.lowest),
      highest_(args.highest),
      tflite_rounding_(args.tflite_rounding),
      is_pool_(is_pool),
      same_format_(from_ == args.format && args.factor == 1),
      fixed_(ToFixedPoint(scale_)) {}

void IntegerMean::Round(const int64_t* sums, int64_t n, int64_t count, uint8_t* y) const {
  if (count == 0) {
    std::fill_n(y, n, static_cast<uint8_t>(zero_point_));
    return;
  }
  if (tflite_rounding_) {
    return is_pool_ ? RoundLikeTfLitePool(sums, n, count, y) : RoundLikeTfLite(sums, n, count, y);
  }
  const auto factor = static_cast<float>(scale_ / static_cast<double>(count));
  const int64_t offset = count * from_.zero_point;
  for (int64_t i = 0; i < n; ++i) {
    // Adding this number rounds floats below 2^22, halves to even.
    constexpr float kRound = 0x1.8p23f;
    const float value =
        std::min(std::max(static_cast<float>(sums[i] - offset) * factor, lowest_), highest_);
    y[i] = static_cast<uint8_t>(static_cast<int32_t>((value + kRound) - kRound) + zero_point_);
  }
}

// Rounds the mean of the signed integers, halves away from 0, and then converts it.
void IntegerMean::RoundLikeTfLitePool(const int64_t* sums, int64_t n, int64_t count,
                                      uint8_t* y) const {
  constexpr int64_t kSignedLowest = -128;
  const int64_t lowest = kSignedLowest + 255 - from_.highest;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t sum = sums[i] + count * lowest;
    const int64_t mean = (sum > 0 ? sum + count / 2 : sum - count / 2) / count - lowest;
    int32_t steps = static_cast<int32_t>(mean) - from_.zero_point;
    if (!same_format_) steps = Multiply(steps, fixed_);
    y[i] = static_cast<uint8_t>(
        std::clamp(steps, static_cast<int32_t>(lowest_), static_cast<int32_t>(highest_)) +
        zero_point_);
  }
}

// Divides the factor by the count and rounds once.
void IntegerMean::RoundLikeTfLite(const int64_t* sums, int64_t n, int64_t count, uint8_t* y) const {
  constexpr int kMaxShift = 31;
  int shift = 0;
  while (shift < kMaxShift && (int64_t{2} << shift) <= count) ++shift;
  shift = std::max(0, std::min(shift, kMaxShift + fixed_.shift));
  FixedPoint factor;
  // Factors may be negative, which a shift would not allow.
  factor.multiplier = static_cast<int32_t>(fixed_.multiplier * (int64_t{1} << shift) / count);
  factor.shift = fixed_.shift - shift;
  for (int64_t i = 0; i < n; ++i) {
    const auto sum = static_cast<int32_t>(sums[i] - count * from_.zero_point);
    y[i] = static_cast<uint8_t>(std::clamp(Multiply(sum, factor), static_cast<int32_t>(lowest_),
                                           static_cast<int32_t>(highest_)) +
                                zero_point_);
  }
}

void AddIntegerRows(const uint8_t* x, int64_t rows, int64_t stride, int64_t n, int64_t* sums) {
  // Sums of 32 bits take half the time.
  constexpr int64_t kColumns = 256;
  constexpr int64_t kMaxRows = int64_t{1} << 22;
  for (int64_t column = 0; column < n; column += kColumns) {
    const int64_t columns = std::min(kColumns, n - column);
    for (int64_t first = 0; first < rows; first += kMaxRows) {
      int32_t partial[kColumns] = {};
      const int64_t last = std::min(rows, first + kMaxRows);
      for (int64_t row = first; row < last; ++row) {
        const uint8_t* const from = x + row * stride + column;
        for (int64_t i = 0; i < columns; ++i) partial[i] += from[i];
      }
      for (int64_t i = 0; i < columns; ++i) sums[column + i] += partial[i];
    }
  }
}

std::shared_ptr<const OpKernel> MakeIntegerMean(const IntegerFormKernel::Args& args,
                                                bool keep_dims) {
  return std::make_shared<IntegerMeanKernel>(args, keep_dims);
}

}  // namespace gradflow
