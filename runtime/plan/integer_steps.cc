#include "gradflow/runtime/plan/integer_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

constexpr int64_t kBlock = 32 * 1024;

absl::Status CheckUint8(const KernelContext& ctx, int i) {
  if (ctx.input(i).dtype() == DT_UINT8 && ctx.input(i).IsInitialized()) return absl::OkStatus();
  return errors::InvalidArgument("expected integers of type uint8, found ",
                                 DataTypeString(ctx.input(i).dtype()));
}

const uint8_t* Integers(const Tensor& tensor) {
  return static_cast<const uint8_t*>(tensor.raw_data());
}

// Returns the integer of a value in steps: rounded to the nearest integer, halves to even, plus the
// zero point. REQUIRES: the value is in the range of the format
inline uint8_t Rounded(float value, float zero_point) {
  // Adding this number rounds floats below 2^22.
  constexpr float kRound = 0x1.8p23f;
  return static_cast<uint8_t>(static_cast<int32_t>((value + kRound) - kRound + zero_point));
}

inline float Clamped(float value, float lowest, float highest) {
  value = value > lowest ? value : lowest;
  return value < highest ? value : highest;
}

class LookUp final : public OpKernel {
 public:
  explicit LookUp(const IntegerTable& table) : table_(table) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckUint8(ctx, 0));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const uint8_t* const x = Integers(ctx.input(0));
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = table_[x[i]];
    });
    return absl::OkStatus();
  }

 private:
  const IntegerTable table_;
};

class Dequantize final : public OpKernel {
 public:
  explicit Dequantize(const IntegerFormat& format) : format_(format) {}
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckUint8(ctx, 0));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const uint8_t* const x = Integers(ctx.input(0));
    float* const y = static_cast<float*>(output->raw_data());
    const int32_t zero_point = format_.zero_point;
    const float scale = format_.scale;
    ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(x[i] - zero_point) * scale;
    });
    return absl::OkStatus();
  }

 private:
  const IntegerFormat format_;
};

class PairKernel final : public OpKernel {
 public:
  explicit PairKernel(IntegerPair pair) : pair_(std::move(pair)) {}

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckUint8(ctx, 0));
    GRADFLOW_RETURN_IF_ERROR(CheckUint8(ctx, 1));
    if (ctx.input(0).shape() != ctx.input(1).shape()) return ComputeInFloat(ctx);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
    const uint8_t* const a = Integers(ctx.input(0));
    const uint8_t* const b = Integers(ctx.input(1));
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
      Apply(a + begin, b + begin, y + begin, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  void Apply(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) const {
    // Copies, which stores of bytes do not change, so that compilers vectorize the loops.
    const int32_t zero_a = pair_.formats[0].zero_point;
    const int32_t zero_b = pair_.formats[1].zero_point;
    const double step = pair_.format.scale;
    const auto factor_a = static_cast<float>(pair_.formats[0].scale / step);
    const auto factor_b = static_cast<float>(pair_.formats[1].scale / step);
    const auto factor = static_cast<float>(static_cast<double>(pair_.formats[0].scale) *
                                           pair_.formats[1].scale / step);
    const auto zero_point = static_cast<float>(pair_.format.zero_point);
    const float lowest = pair_.lowest;
    const float highest = pair_.highest;
    if (pair_.multiplies) {
      for (int64_t i = 0; i < n; ++i) {
        const float value = static_cast<float>((a[i] - zero_a) * (b[i] - zero_b)) * factor;
        y[i] = Rounded(Clamped(value, lowest, highest), zero_point);
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const float value = static_cast<float>(a[i] - zero_a) * factor_a +
                            static_cast<float>(b[i] - zero_b) * factor_b;
        y[i] = Rounded(Clamped(value, lowest, highest), zero_point);
      }
    }
  }

  // Computes the pair with the kernel of floats, for inputs of different shapes.
  absl::Status ComputeInFloat(KernelContext& ctx) const {
    std::vector<Tensor> inputs(2);
    for (int i = 0; i < 2; ++i) {
      Tensor& input = inputs[static_cast<size_t>(i)];
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, ctx.input(i).shape(), &input));
      const NumberTable numbers = NumbersOf(pair_.formats[i]);
      const uint8_t* const x = Integers(ctx.input(i));
      float* const to = static_cast<float*>(input.raw_data());
      ParallelFor(ctx, input.NumElements(), kBlock, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) to[k] = numbers[x[k]];
      });
    }
    std::vector<Tensor> outputs(1, Tensor(Tensor::Unset{}));
    constexpr DataType kTypes[] = {DT_FLOAT};
    KernelContext in_float(absl::MakeSpan(inputs), absl::MakeSpan(outputs), kTypes, ctx.run());
    GRADFLOW_RETURN_IF_ERROR(pair_.in_float->Compute(in_float));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, outputs[0].shape(), &output));
    const float* const x = static_cast<const float*>(outputs[0].raw_data());
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    const auto factor = static_cast<float>(1 / static_cast<double>(pair_.format.scale));
    const auto zero_point = static_cast<float>(pair_.format.zero_point);
    ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = Rounded(Clamped(x[i] * factor, pair_.lowest, pair_.highest), zero_point);
      }
    });
    return absl::OkStatus();
  }

  const IntegerPair pair_;
};

}  // namespace

NumberTable NumbersOf(const IntegerFormat& format) {
  NumberTable numbers;
  for (int32_t q = 0; q < static_cast<int32_t>(numbers.size()); ++q) {
    numbers[static_cast<size_t>(q)] = static_cast<float>(q - format.zero_point) * format.scale;
  }
  return numbers;
}

std::shared_ptr<const OpKernel> MakeDequantize(const IntegerFormat& format) {
  return std::make_shared<Dequantize>(format);
}

std::shared_ptr<const OpKernel> MakeLookUp(const IntegerTable& table) {
  return std::make_shared<LookUp>(table);
}

std::shared_ptr<const OpKernel> MakeIntegerPair(const IntegerPair& pair) {
  return std::make_shared<PairKernel>(pair);
}

}  // namespace gradflow
