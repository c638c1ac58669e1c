// Checks the accuracy of kernels on every float and on sums of 10^8 elements. Exits with 1 if a
// result is less accurate than promised.
//
//   accuracy [--small]
#include <cstdio>
#include <cstring>

#include "benchmarks/accuracy/checks.h"

int main(int argc, char** argv) {
  const bool small = argc == 2 && std::strcmp(argv[1], "--small") == 0;
  if (argc > 1 && !small) {
    std::fprintf(stderr, "usage: %s [--small]\n", argv[0]);
    return 2;
  }
  const bool sums_good = gradflow::benchmarks::CheckSums(small);
  const bool elementary_good = gradflow::benchmarks::SweepElementary(small);
  const bool sweep_good = gradflow::benchmarks::SweepAllFloats(small);
  return sums_good && elementary_good && sweep_good ? 0 : 1;
}
