// Google Benchmark, with a helper that does nothing: BENCHMARK registers a benchmark, and programs
// of tests do not run them. The targets link it if it is installed.
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_

#if !__has_include(<benchmark/benchmark.h>)
#error "tensorflow/core/platform/test_benchmark.h needs Google Benchmark (Debian: libbenchmark-dev)"
#endif

#include <benchmark/benchmark.h>

#include <string>

#include "tensorflow/core/platform/types.h"

namespace testing {
namespace benchmark = ::benchmark;
}  // namespace testing

namespace tensorflow {
namespace testing {

namespace benchmark = ::benchmark;

using ::benchmark::DoNotOptimize;

// Do nothing: benchmarks take time by their state. For those written before.
inline void StartTiming() {}
inline void StopTiming() {}
inline void BytesProcessed(int64) {}
inline void ItemsProcessed(int64) {}
inline void UseRealTime() {}
inline void SetLabel(const std::string&) {}
inline void RunBenchmarks() { ::benchmark::RunSpecifiedBenchmarks(); }
inline void InitializeBenchmarks(int* argc, char** argv) { ::benchmark::Initialize(argc, argv); }

}  // namespace testing
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_
