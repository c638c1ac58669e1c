// Random numbers for benchmarks.
#ifndef GRADFLOW_BENCHMARKS_FILL_NORMAL_H_
#define GRADFLOW_BENCHMARKS_FILL_NORMAL_H_

#include <cstdint>

namespace gradflow::benchmarks {

// Fills `values` with normally distributed floats with the given mean and a stddev of 1. Every call
// with the same arguments gives the same floats.
void FillNormal(float* values, int64_t count, uint32_t seed, float mean = 0);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_FILL_NORMAL_H_
