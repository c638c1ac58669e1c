// Accuracy checks on very many numbers, which would take too long in a unit test.
#ifndef GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
#define GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_

namespace gradflow::benchmarks {

// Each check prints a line per case and returns true if all cases passed. `small` only checks a
// sample.

// Checks the elementwise results of the fake-quant ops against their formulas in float, bit by bit
// (except the bits of a NaN), for every float.
bool SweepAllFloats(bool small);
// Checks float elementary functions against double, for every float.
bool SweepElementary(bool small);
// Checks the sums of float ops over 10^8 elements against float64. The error must be at most 4 *
// 2^-24 times the sum of magnitudes, even with a mean of 10^4 and a stddev of 1.
bool CheckSums(bool small);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
