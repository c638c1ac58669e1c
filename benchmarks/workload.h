// Workloads of benchmark programs: an op in a session, and plain memory loops for comparison.
#ifndef GRADFLOW_BENCHMARKS_WORKLOAD_H_
#define GRADFLOW_BENCHMARKS_WORKLOAD_H_

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_shape.h"
#include "gradflow/graph/scope.h"

namespace gradflow::benchmarks {

// Each call is one run. Null if there is nothing to run.
using Runner = std::function<void()>;

// Returns a tensor in the same kind of memory that sessions use: huge pages if the system has them.
Tensor NewTensor(DataType dtype, const TensorShape& shape);
// Returns normally distributed floats, the same on every call.
Tensor NormalTensor(const TensorShape& shape, uint32_t seed);

// Runs the node "op" of a graph through a session in steady state, on `threads` threads. Kernels
// compute all outputs, even outputs that are not fetched.
Runner InSession(const Scope& scope, std::vector<std::pair<std::string, Tensor>> feeds,
                 int threads);

// Runs fn(begin, end) over [0, count) on `threads` threads, in about four parts per thread.
template <typename F>
Runner InParts(int64_t count, int threads, F fn) {
  if (threads == 1) return [=] { fn(0, count); };
  const auto arena = std::make_shared<tbb::task_arena>(threads);
  return [=] {
    arena->execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<int64_t>(0, count, count / threads / 4 + 1),
          [&](const tbb::blocked_range<int64_t>& range) { fn(range.begin(), range.end()); });
    });
  };
}

// Computes a = b + s * c over arrays of `count` floats.
Runner Triad(int64_t count, int threads);
// Computes a = b over arrays of `count` floats.
Runner Copy(int64_t count, int threads);
// Reads an array of `count` floats.
Runner Read(int64_t count, int threads);

}  // namespace gradflow::benchmarks

#endif  // GRADFLOW_BENCHMARKS_WORKLOAD_H_
