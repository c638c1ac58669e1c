// A table has the exponentials of all differences of two integers, so that a row takes a look-up
// and an addition for each element. The exponentials are integers, whose sum is exact.
#include "gradflow/ops/nn/integer_softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

constexpr size_t kLevels = 256;

class IntegerSoftmax final : public OpKernel {
 public:
  explicit IntegerSoftmax(const IntegerFormKernel::Args& args)
      : factor_(args.factor / args.format.scale),
        lowest_(args.lowest),
        highest_(args.highest),
        zero_point_(args.format.zero_point) {
    for (size_t d = 0; d < kLevels; ++d) {
      constexpr double kOne = 1 << 30;
      exponentials_[d] = static_cast<uint32_t>(
          std::nearbyint(kOne * std::exp(-static_cast<double>(d) * args.inputs[0].scale)));
    }
  }

  absl::Status Compute(KernelContext& ctx) const override { return ForRows(ctx, *this); }

  // Computes a row of n elements.
  void Row(const uint8_t* x, int64_t n, uint8_t* y) const {
    const uint8_t max = *std::max_element(x, x + n);
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += exponentials_[max - x[i]];
    const double factor = factor_ / static_cast<double>(sum);
    if (n < static_cast<int64_t>(kLevels)) {
      for (int64_t i = 0; i < n; ++i) y[i] = Round(exponentials_[max - x[i]], factor);
      return;
    }
    uint8_t results[kLevels];
    for (size_t d = 0; d < kLevels; ++d) results[d] = Round(exponentials_[d], factor);
    for (int64_t i = 0; i < n; ++i) y[i] = results[max - x[i]];
  }

  // Calls softmax.Row() for all rows of input 0.
  template <typename Softmax>
  static absl::Status ForRows(KernelContext& ctx, const Softmax& softmax) {
    const Tensor& logits = ctx.input(0);
    if (logits.dtype() != DT_UINT8 || logits.dims() < 1) {
      return errors::InvalidArgument(
          "logits must be of type uint8 and of rank at least 1, but are ",
          DataTypeString(logits.dtype()), " ", logits.shape().DebugString());
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, logits.shape(), &output));
    if (logits.NumElements() == 0) return absl::OkStatus();
    const int64_t n = logits.dim_size(logits.dims() - 1);
    const auto* const x = static_cast<const uint8_t*>(logits.raw_data());
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    ParallelFor(ctx, logits.NumElements() / n, BlockSizeForCost(2 * static_cast<double>(n) + 10),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row)
                    softmax.Row(x + row * n, n, y + row * n);
                });
    return absl::OkStatus();
  }

 private:
  uint8_t Round(uint32_t exponential, double factor) const {
    // Adding this number rounds floats below 2^22, halves to even.
    constexpr float kRound = 0x1.8p23f;
    const auto value = static_cast<float>(exponential * factor);
    const float clamped = std::min(std::max(value, lowest_), highest_);
    return static_cast<uint8_t>(static_cast<int32_t>((clamped + kRound) - kRound) + zero_point_);
  }

  std::array<uint32_t, kLevels> exponentials_;
  const double factor_;
  const float lowest_;
  const float highest_;
  const int32_t zero_point_;
};

// The formula of TensorFlow Lite: exponentials in float, added in order.
class TfLiteSoftmax final : public OpKernel {
 public:
  explicit TfLiteSoftmax(const IntegerFormKernel::Args& args)
      : scale_(static_cast<float>(args.format.scale / args.factor)),
        lowest_(args.lowest),
        highest_(args.highest),
        zero_point_(args.format.zero_point) {
    for (size_t d = 0; d < kLevels; ++d) {
      exponentials_[d] = std::exp(-args.inputs[0].scale * static_cast<float>(d));
    }
  }

  absl::Status Compute(KernelContext& ctx) const override {
    return IntegerSoftmax::ForRows(ctx, *this);
  }

  void Row(const uint8_t* x, int64_t n, uint8_t* y) const {
    const uint8_t max = *std::max_element(x, x + n);
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += exponentials_[max - x[i]];
    const float factor = 1 / (sum * scale_);
    for (int64_t i = 0; i < n; ++i) {
      const float steps = std::round(exponentials_[max - x[i]] * factor);
      // The factor may be infinite, so that steps may be NaN.
      const float clamped = steps > lowest_ ? std::min(steps, highest_) : lowest_;
      y[i] = static_cast<uint8_t>(static_cast<int32_t>(clamped) + zero_point_);
    }
  }

 private:
  std::array<float, kLevels> exponentials_;
  const float scale_;
  const float lowest_;
  const float highest_;
  const int32_t zero_point_;
};

}  // namespace

std::shared_ptr<const OpKernel> MakeIntegerSoftmax(const IntegerFormKernel::Args& args) {
  if (args.tflite_rounding) return std::make_shared<TfLiteSoftmax>(args);
  return std::make_shared<IntegerSoftmax>(args);
}

}  // namespace gradflow
