// The ops of the benchmark, and their peers.
#ifndef GRADFLOW_BENCHMARKS_OPS_CASES_H_
#define GRADFLOW_BENCHMARKS_OPS_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/table.h"
#include "benchmarks/workload.h"

namespace gradflow::benchmarks {

struct OpCase {
  using Make = std::function<Runner(int threads)>;

  std::string name;
  Make ours;
  // "copy", "triad", "read", "C library", "BLAS" or "libtorch".
  std::string peer_name;
  Make peer;
  // The target: the time of the op relative to the peer (kAtMost), or the time of the peer relative
  // to the op (kAtLeast).
  Table::Bound bound;
  double target;
};

std::vector<OpCase> Cases();

// libtorch's ops, with the inputs of the case of the same name. Null if libtorch is not built in.
Runner TorchUnique(const Tensor& x, int threads);
Runner TorchSegmentSum(const Tensor& data, const Tensor& ids, int64_t segments, int threads);
Runner TorchNormal(int64_t count, int threads);
Runner TorchTopK(const Tensor& x, int k, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_OPS_CASES_H_
