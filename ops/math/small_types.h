// Conversions between the types of 4 and 8 bits that have no arithmetic and those in which loops
// see them: 8-bit floats as float, 4-bit integers as integers of 8 bits.
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
  // Rounds to nearest, halves to the even code. A number that is too large becomes infinity, or NaN
  // if the type has no infinity.
  uint8_t Encode(float x) const;

 private:
  // By code.
  std::array<float, 256> values_;
  // The code of the largest finite number, and those of what is larger and of NaN.
  int max_;
  uint8_t overflow_;
  uint8_t nan_;
  // Codes with a sign and 0 for -0, or NaN there.
  bool has_negative_zero_;
};

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_SMALL_TYPES_H_
