#include "gradflow/runtime/plan/integer_steps.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gradflow/core/fixed_point.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

constexpr int64_t kBlock = 32 * 1024;

absl::Status CheckType(const KernelContext& ctx, int i, DataType dtype) {
  if (ctx.input(i).dtype() == dtype && ctx.input(i).IsInitialized()) return absl::OkStatus();
  return errors::InvalidArgument("expected a tensor of type ", DataTypeString(dtype), ", found ",
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

// Computes each element of output 0 from the same element of input 0: apply(x, y, n).
template <typename From, typename To, typename Apply>
absl::Status MapElements(KernelContext& ctx, const Apply& apply) {
  GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, 0, DataTypeToEnum<From>::value));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, ctx.input(0).shape(), &output));
  const auto* const x = static_cast<const From*>(ctx.input(0).raw_data());
  auto* const y = static_cast<To*>(output->raw_data());
  ParallelFor(ctx, output->NumElements(), kBlock,
              [&](int64_t begin, int64_t end) { apply(x + begin, y + begin, end - begin); });
  return absl::OkStatus();
}

class LookUp final : public OpKernel {
 public:
  explicit LookUp(const IntegerTable& table) : table_(table) {}
  absl::Status Compute(KernelContext& ctx) const override {
    return MapElements<uint8_t, uint8_t>(ctx, [&](const uint8_t* x, uint8_t* y, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[i] = table_[x[i]];
    });
  }

 private:
  const IntegerTable table_;
};

class Dequantize final : public OpKernel {
 public:
  explicit Dequantize(const IntegerFormat& format) : format_(format) {}
  absl::Status Compute(KernelContext& ctx) const override {
    const int32_t zero_point = format_.zero_point;
    const float scale = format_.scale;
    return MapElements<uint8_t, float>(ctx, [=](const uint8_t* x, float* y, int64_t n) {
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - zero_point) * scale;
    });
  }

 private:
  const IntegerFormat format_;
};

class TfLiteQuantize final : public OpKernel {
 public:
  explicit TfLiteQuantize(const IntegerFormat& format) : format_(format) {}
  absl::Status Compute(KernelContext& ctx) const override {
    const auto lowest = static_cast<float>(-format_.zero_point);
    const auto highest = static_cast<float>(format_.highest - format_.zero_point);
    return MapElements<float, uint8_t>(ctx, [&](const float* x, uint8_t* y, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const float steps = std::round(x[i] / format_.scale);
        const float clamped = std::isnan(steps) ? 0 : Clamped(steps, lowest, highest);
        y[i] = static_cast<uint8_t>(static_cast<int32_t>(clamped) + format_.zero_point);
      }
    });
  }

 private:
  const IntegerFormat format_;
};

// ---- Pairs ----

// The float formulas of docs/quantization.md. Members are copies, which stores of bytes do not
// change, so that compilers vectorize the loops.
struct PairFormula {
  explicit PairFormula(const IntegerPair& pair)
      : zero_a(pair.formats[0].zero_point),
        zero_b(pair.formats[1].zero_point),
        zero_point(static_cast<float>(pair.format.zero_point)),
        lowest(pair.lowest),
        highest(pair.highest) {}
  uint8_t Round(float value) const { return Rounded(Clamped(value, lowest, highest), zero_point); }

  int32_t zero_a;
  int32_t zero_b;
  float zero_point;
  float lowest;
  float highest;
};

struct SumFormula : PairFormula {
  explicit SumFormula(const IntegerPair& pair)
      : PairFormula(pair),
        factor_a(static_cast<float>(pair.formats[0].scale / double{pair.format.scale})),
        factor_b(static_cast<float>(pair.formats[1].scale / double{pair.format.scale})) {}
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return Round(static_cast<float>(a - zero_a) * factor_a +
                 static_cast<float>(b - zero_b) * factor_b);
  }

  float factor_a;
  float factor_b;
};

struct ProductFormula : PairFormula {
  explicit ProductFormula(const IntegerPair& pair)
      : PairFormula(pair),
        factor(static_cast<float>(static_cast<double>(pair.formats[0].scale) *
                                  pair.formats[1].scale / pair.format.scale)) {}
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return Round(static_cast<float>((a - zero_a) * (b - zero_b)) * factor);
  }

  float factor;
};

// TensorFlow Lite's formulas.
struct TfLiteFormula {
  explicit TfLiteFormula(const IntegerPair& pair)
      : zero_a(pair.formats[0].zero_point),
        zero_b(pair.formats[1].zero_point),
        zero_point(pair.format.zero_point),
        lowest(static_cast<int32_t>(pair.lowest)),
        highest(static_cast<int32_t>(pair.highest)) {}
  uint8_t Clamp(int32_t steps) const {
    return static_cast<uint8_t>(std::clamp(steps, lowest, highest) + zero_point);
  }

  int32_t zero_a;
  int32_t zero_b;
  int32_t zero_point;
  int32_t lowest;
  int32_t highest;
};

// Both inputs are scaled to the larger scale, doubled, with 20 more bits.
struct TfLiteSumFormula : TfLiteFormula {
  static constexpr int32_t kMoreBits = 1 << 20;

  explicit TfLiteSumFormula(const IntegerPair& pair) : TfLiteFormula(pair) {
    const double common = 2.0 * std::max(pair.formats[0].scale, pair.formats[1].scale);
    factor_a = ToFixedPoint(pair.formats[0].scale / common);
    factor_b = ToFixedPoint(pair.formats[1].scale / common);
    factor = ToFixedPoint(common / (kMoreBits * static_cast<double>(pair.format.scale)));
  }
  uint8_t operator()(uint8_t a, uint8_t b) const {
    const int32_t sum =
        Multiply((a - zero_a) * kMoreBits, factor_a) + Multiply((b - zero_b) * kMoreBits, factor_b);
    return Clamp(Multiply(sum, factor));
  }

  FixedPoint factor_a;
  FixedPoint factor_b;
  FixedPoint factor;
};

struct TfLiteProductFormula : TfLiteFormula {
  explicit TfLiteProductFormula(const IntegerPair& pair)
      : TfLiteFormula(pair),
        factor(ToFixedPoint(static_cast<double>(pair.formats[0].scale) * pair.formats[1].scale /
                            pair.format.scale)) {}
  uint8_t operator()(uint8_t a, uint8_t b) const {
    return Clamp(Multiply((a - zero_a) * (b - zero_b), factor));
  }

  FixedPoint factor;
};

template <typename Formula>
class PairKernel final : public OpKernel {
 public:
  explicit PairKernel(const IntegerPair& pair) : formula_(pair) {}

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, 0, DT_UINT8));
    GRADFLOW_RETURN_IF_ERROR(CheckType(ctx, 1, DT_UINT8));
    const TensorShape& a_shape = ctx.input(0).shape();
    const TensorShape& b_shape = ctx.input(1).shape();
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, BroadcastShapes(a_shape, b_shape));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    const uint8_t* const a = Integers(ctx.input(0));
    const uint8_t* const b = Integers(ctx.input(1));
    auto* const y = static_cast<uint8_t*>(output->raw_data());
    if (a_shape == b_shape) {
      ParallelFor(ctx, output->NumElements(), kBlock, [&](int64_t begin, int64_t end) {
        Apply<1, 1>(a + begin, b + begin, y + begin, end - begin);
      });
      return absl::OkStatus();
    }
    if (output->NumElements() == 0) return absl::OkStatus();
    // The last dimension is a row. A single row of `a` or `b` may belong to several rows of y.
    const int64_t columns = shape.dim_size(shape.dims() - 1);
    const std::vector<int64_t> a_strides = Strides(a_shape, shape);
    const std::vector<int64_t> b_strides = Strides(b_shape, shape);
    ParallelFor(ctx, output->NumElements() / columns, NumBlocks(kBlock, columns),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    int64_t a_row = 0;
                    int64_t b_row = 0;
                    int64_t left = row;
                    for (int d = shape.dims() - 2; d >= 0; --d) {
                      const int64_t at = left % shape.dim_size(d);
                      left /= shape.dim_size(d);
                      a_row += at * a_strides[static_cast<size_t>(d)];
                      b_row += at * b_strides[static_cast<size_t>(d)];
                    }
                    ApplyRow(a + a_row, a_strides.back(), b + b_row, b_strides.back(),
                             y + row * columns, columns);
                  }
                });
    return absl::OkStatus();
  }

 private:
  // Returns the strides of a tensor that is broadcast: 0 for stretched dimensions.
  static std::vector<int64_t> Strides(const TensorShape& from, const TensorShape& to) {
    std::vector<int64_t> strides(static_cast<size_t>(to.dims()), 0);
    const auto missing = static_cast<size_t>(to.dims() - from.dims());
    int64_t stride = 1;
    for (int d = from.dims() - 1; d >= 0; --d) {
      if (from.dim_size(d) != 1) strides[missing + static_cast<size_t>(d)] = stride;
      stride *= from.dim_size(d);
    }
    return strides;
  }

  void ApplyRow(const uint8_t* a, int64_t a_stride, const uint8_t* b, int64_t b_stride, uint8_t* y,
                int64_t n) const {
    if (a_stride == 0) return Apply<0, 1>(a, b, y, b_stride == 0 ? 1 : n);
    if (b_stride == 0) return Apply<1, 0>(a, b, y, n);
    Apply<1, 1>(a, b, y, n);
  }

  template <int kAStride, int kBStride>
  void Apply(const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) const {
    const Formula formula = formula_;
    for (int64_t i = 0; i < n; ++i) y[i] = formula(a[kAStride * i], b[kBStride * i]);
  }

  const Formula formula_;
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

std::shared_ptr<const OpKernel> MakeTfLiteQuantize(const IntegerFormat& format) {
  return std::make_shared<TfLiteQuantize>(format);
}

std::shared_ptr<const OpKernel> MakeLookUp(const IntegerTable& table) {
  return std::make_shared<LookUp>(table);
}

std::shared_ptr<const OpKernel> MakeIntegerPair(const IntegerPair& pair) {
  if (pair.tflite_rounding) {
    if (pair.multiplies) return std::make_shared<PairKernel<TfLiteProductFormula>>(pair);
    return std::make_shared<PairKernel<TfLiteSumFormula>>(pair);
  }
  if (pair.multiplies) return std::make_shared<PairKernel<ProductFormula>>(pair);
  return std::make_shared<PairKernel<SumFormula>>(pair);
}

}  // namespace gradflow
