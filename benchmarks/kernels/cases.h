// The shapes for the kernel benchmarks.
#ifndef GRADFLOW_BENCHMARKS_KERNELS_CASES_H_
#define GRADFLOW_BENCHMARKS_KERNELS_CASES_H_

#include <vector>

#include "benchmarks/kernels/runners.h"

namespace gradflow::benchmarks {

// Returns a few cases of each kernel. With `all`, adds every batch norm of ResNet-50 and MobileNet
// at batch sizes 8 and 32.
std::vector<KernelCase> Cases(bool all);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_KERNELS_CASES_H_
