// The ranges of quantized tensors: a tensor of integers comes with two scalars, the numbers that
// its lowest and its highest integer stand for. The ops that take such tensors share the checks and
// conversions here.
//
// TensorFlow converts in three ways, whose roundings differ: in double (one integer), in float
// (elements), and in fixed point (elements from qint32 to quint8). Results equal TensorFlow's bits.
#ifndef GRADFLOW_OPS_QUANT_QUANTIZED_RANGE_H_
#define GRADFLOW_OPS_QUANT_QUANTIZED_RANGE_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/types.h"

namespace gradflow {

struct QuantizedRange {
  float min = 0;
  float max = 0;
};

// ---- Inputs and outputs ----

// Returns INVALID_ARGUMENT unless the inputs [first, first + count) may be scalars. Makes all
// outputs but output 0 scalars.
absl::Status CheckRangeShapes(ShapeContext& c, int first, int count);

// The ranges among the inputs of a kernel: scalars (min, max) in the inputs [first, first + 2 *
// count).
class RangeInputs {
 public:
  // Reads the names and types of the inputs.
  void Init(const KernelConstruction& construction, int first, int count = 1);
  // Returns the ranges, or INVALID_ARGUMENT unless all inputs have the node's types and all bounds
  // are finite scalars.
  absl::StatusOr<std::vector<QuantizedRange>> Read(const KernelContext& ctx) const;
  // Read() for ops that need ranges with more than one number.
  absl::StatusOr<std::vector<QuantizedRange>> ReadNonempty(const KernelContext& ctx) const;

 private:
  int first_ = 0;
  std::vector<std::string> names_;
  DataTypeVector types_;
};

// Returns the element of input i, or INVALID_ARGUMENT unless it is a finite scalar. REQUIRES: its
// type is float
absl::StatusOr<float> FiniteScalar(const KernelContext& ctx, int i, absl::string_view name);
// Sets outputs i and i + 1 to the bounds of a range.
absl::Status OutputRange(KernelContext& ctx, int i, const QuantizedRange& range);

// ---- Conversions ----

// The integers of a quantized type that is stored as Q.
template <typename Q>
struct QuantizedLimits {
  static constexpr int64_t kLowest = std::numeric_limits<Q>::min();
  static constexpr int64_t kHighest = std::numeric_limits<Q>::max();
  // The number of integers.
  static constexpr double kCount = static_cast<double>(kHighest - kLowest + 1);
  // The ratio of two sizes of a range with the same step: kCount steps, and the steps between the
  // lowest and the highest integer.
  static constexpr double kAdjust = kCount / (kCount - 1);

  static Q Clamped(int64_t value) { return static_cast<Q>(std::clamp(value, kLowest, kHighest)); }
};

// Converts to int64, clamped to 2^62 on both sides. NaN becomes 0.
int64_t SaturatedInt64(double value);
// Returns a * b modulo 2^64.
inline int64_t WrappedProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// Returns a + b modulo 2^32.
inline int32_t WrappedSum(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// Returns the integer of a number, which may be out of the range of Q.
template <typename Q>
int64_t QuantizeUnclamped(float x, const QuantizedRange& range) {
  using L = QuantizedLimits<Q>;
  if (range.min == range.max) return L::kLowest;
  const double size = (range.max - range.min) * L::kAdjust;
  const double scale = L::kCount / size;
  return SaturatedInt64(std::round(x * scale) - std::round(range.min * scale)) + L::kLowest;
}
template <typename Q>
Q QuantizeNumber(float x, const QuantizedRange& range) {
  return QuantizedLimits<Q>::Clamped(QuantizeUnclamped<Q>(x, range));
}

// Returns the number that an integer stands for.
template <typename Q>
float DequantizeNumber(Q q, const QuantizedRange& range) {
  using L = QuantizedLimits<Q>;
  if (range.min == range.max) return range.min;
  const double step = (range.max - range.min) * L::kAdjust / L::kCount;
  const auto rounded_step = static_cast<float>(step);
  const double first = std::round(range.min / rounded_step) * rounded_step;
  return static_cast<float>(first + (static_cast<double>(q) - L::kLowest) * step);
}

// Converts the integers of one range and type to integers of another range and type, in float.
template <typename From, typename To>
class FloatRequantizer {
 public:
  FloatRequantizer(const QuantizedRange& from, const QuantizedRange& to) {
    using F = QuantizedLimits<From>;
    using T = QuantizedLimits<To>;
    step_ = static_cast<float>((from.max - from.min) / (F::kCount - 1));
    const float first = from.max == from.min ? from.min : std::round(from.min / step_) * step_;
    zero_ = first - static_cast<float>(F::kLowest) * step_;
    scale_ = to.max == to.min ? 0 : static_cast<float>((T::kCount - 1) / (to.max - to.min));
    first_ = std::round(to.min * scale_) - static_cast<float>(T::kLowest);
  }

  To operator()(From q) const {
    using T = QuantizedLimits<To>;
    // The largest float that fits int32.
    constexpr float kLargest = 2147483520.0f;
    constexpr float kHighest = std::min(static_cast<float>(T::kHighest), kLargest);
    const float y = std::round((zero_ + static_cast<float>(q) * step_) * scale_) - first_;
    if (!(y > static_cast<float>(T::kLowest))) return std::numeric_limits<To>::min();
    return static_cast<To>(static_cast<int32_t>(std::min(y, kHighest)));
  }

 private:
  float step_;
  float zero_;
  float scale_;
  float first_;
};

// Converts qint32 to quint8 with 16 bits after the binary point.
class FixedPointRequantizer {
 public:
  FixedPointRequantizer(const QuantizedRange& from, const QuantizedRange& to);
  uint8_t operator()(int32_t q) const {
    // TensorFlow rounds the integer to float.
    const auto rounded = static_cast<int64_t>(static_cast<float>(q));
    const auto fixed =
        static_cast<int64_t>(static_cast<uint64_t>(WrappedProduct(rounded, factor_) >> 32) +
                             static_cast<uint64_t>(offset_));
    return QuantizedLimits<uint8_t>::Clamped(fixed >> kBits);
  }

 private:
  static constexpr int kBits = 16;

  int64_t factor_;
  int64_t offset_;
};

// ---- Products ----

// Returns the number that one step of a range stands for.
template <typename Q>
float QuantizedStep(const QuantizedRange& range) {
  using L = QuantizedLimits<Q>;
  return (range.max - range.min) / static_cast<float>(L::kHighest - L::kLowest);
}
// Returns the range of int32 products of integers of two ranges.
template <typename A, typename B>
QuantizedRange ProductRange(const QuantizedRange& a, const QuantizedRange& b) {
  using L = QuantizedLimits<int32_t>;
  const float step = QuantizedStep<A>(a) * QuantizedStep<B>(b);
  return {step * static_cast<float>(L::kLowest), step * static_cast<float>(L::kHighest)};
}
// Returns the integer of 0. It may be out of the range of Q. Wraps around modulo 2^32.
template <typename Q>
int32_t ZeroPoint(const QuantizedRange& range) {
  return static_cast<int32_t>(QuantizeUnclamped<Q>(0, range));
}

// The types that the attributes of the ops allow.
inline constexpr char kQuantizedTypes[] = "{qint8, quint8, qint32, qint16, quint16}";

}  // namespace gradflow

#endif  // GRADFLOW_OPS_QUANT_QUANTIZED_RANGE_H_
