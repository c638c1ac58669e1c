// Philox over vectors of counters.
#ifndef GRADFLOW_OPS_RANDOM_PHILOX_SIMD_H_
#define GRADFLOW_OPS_RANDOM_PHILOX_SIMD_H_

#include <cstdint>

namespace gradflow {

// Stores the four numbers of each of `n` consecutive counters. `low` and `high` are the halves of
// the first counter. Gives the same numbers as n calls of Philox(key, low, high).Next().
void PhiloxNumbers(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t* numbers);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_RANDOM_PHILOX_SIMD_H_
