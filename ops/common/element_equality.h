// Equality and hashes of the elements of tensors of any type, for ops that look elements up.
#ifndef GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_
#define GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_

#include <cstddef>
#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// Equality as of operator==: -0 equals 0, and NaN equals nothing. Elements of types without
// arithmetic are equal if their bits are.
struct ElementEquality {
  // Element i of the elements from `a` on, and element j of those from `b` on.
  bool (*equal)(const void* a, int64_t i, const void* b, int64_t j);
  // Returns a hash of element i. Equal elements have the same. Hashes differ between processes, so
  // that no input can have many collisions.
  size_t (*hash)(const void* a, int64_t i);
};

// Returns the functions for any type that tensors can have.
ElementEquality FindElementEquality(DataType dtype);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_
