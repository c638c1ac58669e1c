// Conversions between 4-bit and 8-bit types without arithmetic and the types that loops see: 8-bit
// floats become float, 4-bit integers become 8-bit integers.
#ifndef GRADFLOW_OPS_MATH_SMALL_TYPES_H_
#define GRADFLOW_OPS_MATH_SMALL_TYPES_H_

#include <array>
#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// The 8-bit float types.
class Float8 {
 public:
  // REQUIRES: IsFloat8(dtype)
  explicit Float8(DataType dtype);
  static bool IsFloat8(DataType dtype);

  float Decode(uint8_t code) const { return values_[code]; }
  // Rounds to the nearest number, and halves to the even code. A number that is too large becomes
  // infinity, or NaN if the type has no infinity.
  uint8_t Encode(float x) const;

 private:
  // The value of each code.
  std::array<float, 256> values_;
  // The code of the largest finite number, the code of larger numbers, and the code of NaN.
  int max_;
  uint8_t overflow_;
  uint8_t nan_;
  // True if code 128 is -0. If false, code 128 is NaN.
  bool has_negative_zero_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SMALL_TYPES_H_
