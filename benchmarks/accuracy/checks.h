// What is too long for a unit test: the kernels' accuracy on very many numbers.
#ifndef GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
#define GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_

namespace gradflow::benchmarks {

// Each prints a line per case and returns whether all were good; `small` takes a sample only.

// The elementwise results of the fake-quant ops against their formulas in float, bit by bit (but
// for those of a NaN), for every float that there is.
bool SweepAllFloats(bool small);
// The float ops' sums over 10^8 elements against float64: the error must be at most 4 * 2^-24 of
// the sum of magnitudes, also where the mean is 10^4 and the deviation 1.
bool CheckSums(bool small);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_ACCURACY_CHECKS_H_
