#include "benchmarks/workload.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "benchmarks/fill_normal.h"
#include "benchmarks/harness.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {

Tensor NewTensor(DataType dtype, const TensorShape& shape) {
  static const auto* const pool = new std::shared_ptr<Allocator>(std::make_shared<PoolAllocator>());
  return Tensor(*pool, dtype, shape);
}

Tensor NormalTensor(const TensorShape& shape, uint32_t seed) {
  Tensor tensor = NewTensor(DT_FLOAT, shape);
  FillNormal(tensor.flat<float>().data(), tensor.NumElements(), seed);
  return tensor;
}

Runner InSession(const Scope& scope, std::vector<std::pair<std::string, Tensor>> feeds,
                 int threads) {
  GraphDef graph;
  Check(scope.ToGraphDef(&graph));
  SessionOptions options;
  options.config.set_intra_op_parallelism_threads(threads);
  const std::shared_ptr<Session> session(NewSession(options));
  Check(session->Create(graph));
  return [session, feeds = std::move(feeds)] {
    std::vector<Tensor> outputs;
    Check(session->Run(feeds, {"op"}, {}, &outputs));
  };
}

Runner Triad(int64_t count, int threads) {
  Tensor a = NormalTensor({count}, 3);
  const Tensor b = NormalTensor({count}, 1);
  const Tensor d = NormalTensor({count}, 2);
  float* const out = a.flat<float>().data();
  const float* const x = b.flat<float>().data();
  const float* const y = d.flat<float>().data();
  return InParts(count, threads, [a, b, d, out, x, y](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = x[i] + 3.0f * y[i];
  });
}

Runner Copy(int64_t count, int threads) {
  Tensor a = NormalTensor({count}, 3);
  const Tensor b = NormalTensor({count}, 1);
  float* const out = a.flat<float>().data();
  const float* const x = b.flat<float>().data();
  return InParts(count, threads, [a, b, out, x](int64_t begin, int64_t end) {
    std::copy(x + begin, x + end, out + begin);
  });
}

Runner Read(int64_t count, int threads) {
  const Tensor a = NormalTensor({count}, 1);
  const char* const bytes = static_cast<const char*>(a.raw_data());
  return InParts(count, threads, [a, bytes](int64_t begin, int64_t end) {
    // Uses several sums, so that additions do not wait for each other.
    uint64_t sums[16] = {};
    for (int64_t i = begin; i + 32 <= end; i += 32) {
      uint64_t words[16];
      std::memcpy(words, bytes + 4 * i, sizeof(words));
      for (int k = 0; k < 16; ++k) sums[k] += words[k];
    }
    benchmark::DoNotOptimize(sums);
  });
}

}  // namespace gradflow::benchmarks
