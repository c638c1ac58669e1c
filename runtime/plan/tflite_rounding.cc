#include "gradflow/runtime/plan/tflite_rounding.h"

#include <algorithm>
#include <cmath>

#include "gradflow/core/fixed_point.h"

namespace gradflow {

double RangeScale(const IntegerFormat& format) {
  if (!(format.min < format.max)) return format.scale;
  return (static_cast<double>(format.max) - format.min) / format.highest;
}

IntegerFormat TfLiteFormat(const IntegerFormat& format) {
  IntegerFormat result = format;
  if (!(format.min < format.max)) return result;
  const double scale = RangeScale(format);
  // TensorFlow Lite's levels are `first` to 255, where `first` is 1 for narrow ranges. Those of
  // IntegerFormat begin at 0. Either end of the range gives a zero point. The difference of the
  // smaller numbers is more exact.
  constexpr int kLevels = 255;
  const double first = kLevels - format.highest;
  const double last = kLevels;
  const double steps_of_min = format.min / scale;
  const double steps_of_max = format.max / scale;
  const bool from_min =
      std::abs(first) + std::abs(steps_of_min) < std::abs(last) + std::abs(steps_of_max);
  const double zero_point = from_min ? first - steps_of_min : last - steps_of_max;
  result.scale = static_cast<float>(scale);
  result.zero_point = static_cast<int32_t>(std::clamp(std::round(zero_point), first, last) - first);
  return result;
}

int32_t TfLiteSteps(double number, double scale, const IntegerFormat& format) {
  const double steps = std::round(number / scale);
  if (std::isnan(steps)) return 0;
  return static_cast<int32_t>(
      std::clamp<double>(steps, -format.zero_point, format.highest - format.zero_point));
}

IntegerTable TfLiteRequantize(const IntegerFormat& from, const IntegerFormat& to, double factor,
                              float lowest, float highest) {
  const FixedPoint fixed = ToFixedPoint(factor);
  IntegerTable table;
  for (size_t q = 0; q < table.size(); ++q) {
    const int32_t steps = Multiply(static_cast<int32_t>(q) - from.zero_point, fixed);
    table[q] = static_cast<uint8_t>(
        std::clamp(steps, static_cast<int32_t>(lowest), static_cast<int32_t>(highest)) +
        to.zero_point);
  }
  return table;
}

IntegerTable TfLiteRequantize(const IntegerFormat& from, const IntegerFormat& to) {
  return TfLiteRequantize(from, to, static_cast<double>(from.scale) / to.scale,
                          static_cast<float>(-to.zero_point),
                          static_cast<float>(to.highest - to.zero_point));
}

IntegerFormat TfLiteSigmoidFormat() {
  IntegerFormat format;
  format.scale = 1.0f / 256;
  return format;
}

IntegerFormat TfLiteTanhFormat() {
  IntegerFormat format;
  format.scale = 1.0f / 128;
  format.zero_point = 128;
  return format;
}

IntegerTable TfLiteTable(absl::Span<const float> numbers, const IntegerFormat& format) {
  const float inverse = 1 / format.scale;
  IntegerTable table;
  for (size_t q = 0; q < table.size(); ++q) {
    table[q] =
        static_cast<uint8_t>(TfLiteSteps(numbers[q] * inverse, 1, format) + format.zero_point);
  }
  return table;
}

}  // namespace gradflow
