// The ops of the benchmark, and what each is compared with.
#ifndef GRADFLOW_BENCHMARKS_OPS_CASES_H_
#define GRADFLOW_BENCHMARKS_OPS_CASES_H_

#include <functional>
#include <string>
#include <vector>

#include "benchmarks/table.h"
#include "benchmarks/workload.h"

namespace gradflow::benchmarks {

struct Case {
  using Make = std::function<Runner(int threads)>;

  std::string name;
  Make ours;
  // "copy", "std::exp", "BLAS".
  std::string peer_name;
  Make peer;
  // The wanted time of an op as a multiple of its peer's (kAtMost), or the peer's time as a
  // multiple of the op's (kAtLeast).
  Table::Bound bound;
  double target;
};

std::vector<Case> Cases();

// libtorch's ops, of the inputs of the case of the same name. Null where libtorch is not built in.
Runner TorchUnique(const Tensor& x, int threads);
Runner TorchSegmentSum(const Tensor& data, const Tensor& ids, int64_t segments, int threads);
Runner TorchNormal(int64_t count, int threads);
Runner TorchTopK(const Tensor& x, int k, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_OPS_CASES_H_
