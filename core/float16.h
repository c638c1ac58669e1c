// The two 16-bit floating-point types of TensorFlow: half (IEEE 754 binary16, DT_HALF) and
// bfloat16 (the upper half of a float, DT_BFLOAT16).
//
// They are storage types: arithmetic converts to float, which is exact, and rounds the result to
// nearest, ties to even. Conversions from double and from integers also round only once. NaNs stay
// NaNs and become quiet.
#ifndef GRADFLOW_CORE_FLOAT16_H_
#define GRADFLOW_CORE_FLOAT16_H_

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#pragma GCC visibility push(default)
namespace gradflow {
namespace internal {

inline uint32_t FloatBits(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof(u));
  return u;
}
inline float BitsToFloat(uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof(f));
  return f;
}

// Rounds `value` to a float such that rounding the float to a narrower type equals rounding `value`
// directly. An inexact value rounds to the neighboring float whose last bit is 1 (rounding to odd).
// This float is never a tie between two narrower numbers; the nearest float may be a tie, which
// would be rounded twice.
template <typename T>
float RoundToOdd(T value) {
  const float nearest = static_cast<float>(value);
  if constexpr (std::numeric_limits<T>::digits <= std::numeric_limits<float>::digits) {
    return nearest;
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::numeric_limits<T>::digits > std::numeric_limits<double>::digits) {
      // Rounds the low bits that a double cannot represent to odd.
      constexpr T kLow = 0x7ff;
      if ((nearest >= 0x1p53f || nearest <= -0x1p53f) && (value & kLow) != 0) {
        value = (value & ~kLow) | (kLow + 1);
      }
    }
    return RoundToOdd(static_cast<double>(value));
  } else {
    if (nearest == value || value != value) return nearest;
    const bool is_beyond = (nearest > value) == (value > 0);
    return BitsToFloat((FloatBits(nearest) - is_beyond) | 1);
  }
}

inline uint16_t FloatToHalfBits(float f) {
  const uint32_t bits = FloatBits(f);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinity or NaN
    return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal or zero: adding 0.5 aligns the last places of the result and the sum, so that the
    // addition rounds to nearest even.
    const float sum = BitsToFloat(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (FloatBits(sum) - 0x3f000000u));
  }
  const uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float HalfBitsToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) return BitsToFloat(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  // A half's exponent and mantissa, shifted to their position in a float, represent 2^-112 times
  // the value. The product is exact, even for subnormals.
  const float value = BitsToFloat(magnitude << 13) * 0x1p112f;
  return BitsToFloat(sign | FloatBits(value));
}

inline uint16_t FloatToBfloat16Bits(float f) {
  const uint32_t bits = FloatBits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x0040u);  // keep NaN, made quiet
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float Bfloat16BitsToFloat(uint16_t b) { return BitsToFloat(static_cast<uint32_t>(b) << 16); }

}  // namespace internal

// A 16-bit float with the given conversions. Trivially copyable.
template <uint16_t (*FromFloat)(float), float (*ToFloat)(uint16_t)>
struct Float16 {
  // The bits, sign first.
  uint16_t bits;

  Float16() = default;
  // Rounds to the nearest value, ties to even.
  template <typename T, typename = decltype(static_cast<float>(T()))>
  explicit Float16(T value) : bits(FromFloat(internal::RoundToOdd(value))) {}
  // Returns the value with the given bits.
  static constexpr Float16 FromBits(uint16_t bits) { return Float16(bits, 0); }

  // Converts to float exactly.
  operator float() const { return ToFloat(bits); }  // NOLINT: exact, as in TensorFlow

  // Compute in float and round.
  Float16& operator+=(Float16 other) { return *this = Float16(float{*this} + float{other}); }
  Float16& operator-=(Float16 other) { return *this = Float16(float{*this} - float{other}); }
  Float16& operator*=(Float16 other) { return *this = Float16(float{*this} * float{other}); }
  Float16& operator/=(Float16 other) { return *this = Float16(float{*this} / float{other}); }

 private:
  constexpr Float16(uint16_t b, int) : bits(b) {}
};

// IEEE 754 binary16, and the upper half of a float.
using half = Float16<internal::FloatToHalfBits, internal::HalfBitsToFloat>;
using bfloat16 = Float16<internal::FloatToBfloat16Bits, internal::Bfloat16BitsToFloat>;

}  // namespace gradflow
#pragma GCC visibility pop

template <>
class std::numeric_limits<gradflow::half> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 11;
  static constexpr gradflow::half min() { return gradflow::half::FromBits(0x0400); }
  static constexpr gradflow::half max() { return gradflow::half::FromBits(0x7bff); }
  static constexpr gradflow::half lowest() { return gradflow::half::FromBits(0xfbff); }
  static constexpr gradflow::half infinity() { return gradflow::half::FromBits(0x7c00); }
  static constexpr gradflow::half quiet_NaN() { return gradflow::half::FromBits(0x7e00); }
  static constexpr gradflow::half epsilon() { return gradflow::half::FromBits(0x1400); }
};

template <>
class std::numeric_limits<gradflow::bfloat16> {
 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr int digits = 8;
  static constexpr gradflow::bfloat16 min() { return gradflow::bfloat16::FromBits(0x0080); }
  static constexpr gradflow::bfloat16 max() { return gradflow::bfloat16::FromBits(0x7f7f); }
  static constexpr gradflow::bfloat16 lowest() { return gradflow::bfloat16::FromBits(0xff7f); }
  static constexpr gradflow::bfloat16 infinity() { return gradflow::bfloat16::FromBits(0x7f80); }
  static constexpr gradflow::bfloat16 quiet_NaN() { return gradflow::bfloat16::FromBits(0x7fc0); }
  static constexpr gradflow::bfloat16 epsilon() { return gradflow::bfloat16::FromBits(0x3c00); }
};

#endif  // GRADFLOW_CORE_FLOAT16_H_
