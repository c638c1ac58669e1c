// Equality and hashes of tensor elements of any type, for ops that look up elements.
#ifndef GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_
#define GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_

#include <cstddef>
#include <cstdint>

#include "gradflow/core/types.h"

namespace gradflow {

// Compares like operator==: -0 equals 0, and NaN equals nothing. Elements of types without
// arithmetic are equal if their bits are equal.
struct ElementEquality {
  // Compares element i of the array `a` with element j of the array `b`.
  bool (*equal)(const void* a, int64_t i, const void* b, int64_t j);
  // Returns a hash of element i. Equal elements have equal hashes. Hashes differ between processes,
  // so that no input can be constructed to have many collisions.
  size_t (*hash)(const void* a, int64_t i);
};

// Returns the functions for any type except resource and variant.
ElementEquality FindElementEquality(DataType dtype);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENT_EQUALITY_H_
