// Checks of the kernels' accuracy on very many numbers, which take too long for a unit test.
#ifndef GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
#define GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_

namespace gradflow::benchmarks {

// Each prints a line per case and returns true if all cases passed. `small` checks a sample only.

// Checks the elementwise results of the fake-quant ops against their formulas in float, bit by bit
// (except the bits of a NaN), for every float.
bool SweepAllFloats(bool small);
// Checks the elementary functions of float against those of double, for every float.
bool SweepElementary(bool small);
// Checks the float ops' sums over 10^8 elements against float64. The error must be at most 4 *
// 2^-24 of the sum of magnitudes, also for a mean of 10^4 and a stddev of 1.
bool CheckSums(bool small);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
