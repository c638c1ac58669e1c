#include "gradflow/ops/math/small_types.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gradflow {
namespace {

// The format of a type. Types without infinity can represent larger numbers.
struct Format {
  int mantissa_bits;
  int bias;
  // If true, the largest exponent encodes infinity and NaN, as in IEEE 754.
  bool has_infinity;
  // If true, the code of -0 is the only NaN.
  bool nan_is_negative_zero;
};

Format FormatOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT8_E5M2:
      return {2, 15, true, false};
    case DT_FLOAT8_E4M3FN:
      return {3, 7, false, false};
    case DT_FLOAT8_E4M3FNUZ:
      return {3, 8, false, true};
    case DT_FLOAT8_E4M3B11FNUZ:
      return {3, 11, false, true};
    default:
      return {2, 16, false, true};
  }
}

}  // namespace

bool Float8::IsFloat8(DataType dtype) {
  return dtype == DT_FLOAT8_E5M2 || dtype == DT_FLOAT8_E4M3FN || dtype == DT_FLOAT8_E4M3FNUZ ||
         dtype == DT_FLOAT8_E4M3B11FNUZ || dtype == DT_FLOAT8_E5M2FNUZ;
}

Float8::Float8(DataType dtype) {
  const Format format = FormatOf(dtype);
  const int mantissas = 1 << format.mantissa_bits;
  for (int code = 0; code < 128; ++code) {
    const int exponent = code / mantissas;
    const int mantissa = code % mantissas;
    const double value =
        exponent == 0
            ? std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits)
            : std::ldexp(mantissas + mantissa, exponent - format.bias - format.mantissa_bits);
    values_[code] = static_cast<float>(value);
    values_[code + 128] = static_cast<float>(-value);
  }
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  has_negative_zero_ = !format.nan_is_negative_zero;
  if (format.has_infinity) {
    const int infinity = 128 - mantissas;
    values_[infinity] = std::numeric_limits<float>::infinity();
    values_[infinity + 128] = -std::numeric_limits<float>::infinity();
    for (int code = infinity + 1; code < 128; ++code) values_[code] = values_[code + 128] = kNan;
    max_ = infinity - 1;
    overflow_ = static_cast<uint8_t>(infinity);
    // The quiet NaN.
    nan_ = static_cast<uint8_t>(infinity + mantissas / 2);
  } else if (format.nan_is_negative_zero) {
    values_[128] = kNan;
    max_ = 127;
    overflow_ = nan_ = 128;
  } else {
    values_[127] = values_[255] = kNan;
    max_ = 126;
    overflow_ = nan_ = 127;
  }
}

uint8_t Float8::Encode(float x) const {
  const uint8_t sign = std::signbit(x) ? 128 : 0;
  if (std::isnan(x)) return has_negative_zero_ ? nan_ | sign : nan_;
  const float magnitude = std::abs(x);
  const float* const end = values_.data() + max_ + 1;
  const float* const above = std::upper_bound(values_.data(), end, magnitude);
  const int low = static_cast<int>(above - values_.data()) - 1;
  const float step = low == max_ ? values_[max_] - values_[max_ - 1] : *above - values_[low];
  const float rest = magnitude - values_[low];
  int code = low;
  if (rest > step / 2 || (rest == step / 2 && low % 2 != 0)) ++code;
  if (code > max_) return overflow_ == 128 ? overflow_ : overflow_ | sign;
  if (code == 0 && !has_negative_zero_) return 0;
  return static_cast<uint8_t>(code) | sign;
}

}  // namespace gradflow
