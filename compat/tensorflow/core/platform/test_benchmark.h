// Benchmarks: Google Benchmark, as in current TensorFlow. Test programs register benchmarks but do
// not run them. The targets link Google Benchmark if it is installed.
//
// In TensorFlow 1.x programs, a benchmark is a function of the number of iterations and up to two
// arguments: BENCHMARK(BM_Add)->Arg(10).
#ifndef GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_
#define GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_

#include <string>

#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/types.h"

#ifdef GRADFLOW_TENSORFLOW_V1

#include <chrono>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

namespace tensorflow {
namespace testing {

// A registered benchmark and the arguments of its runs.
class Benchmark {
 public:
  Benchmark(const char* name, void (*fn)(int))
      : Benchmark(name, 0, [fn](int n, int, int) { fn(n); }) {}
  Benchmark(const char* name, void (*fn)(int, int))
      : Benchmark(name, 1, [fn](int n, int a, int) { fn(n, a); }) {}
  Benchmark(const char* name, void (*fn)(int, int, int)) : Benchmark(name, 2, fn) {}

  Benchmark* Arg(int x) { return ArgPair(x, 0); }
  Benchmark* ArgPair(int x, int y) { return runs_.emplace_back(x, y), this; }
  // Adds lo, hi, and the powers of 8 in between.
  Benchmark* Range(int lo, int hi) {
    for (const int x : Sizes(lo, hi)) Arg(x);
    return this;
  }
  Benchmark* RangePair(int lo1, int hi1, int lo2, int hi2) {
    for (const int x : Sizes(lo1, hi1)) {
      for (const int y : Sizes(lo2, hi2)) ArgPair(x, y);
    }
    return this;
  }

  // The time of the current benchmark, without the time after StopTiming().
  struct Clock {
    std::chrono::steady_clock::time_point start;
    std::chrono::steady_clock::duration total{};
    bool runs = false;
  };
  static Clock& clock() {
    static Clock clock;
    return clock;
  }
  // Runs all benchmarks, and prints the time per iteration of each.
  static void RunAll() {
    for (const Benchmark* benchmark : All()) benchmark->Run();
  }

 private:
  Benchmark(const char* name, int num_args, std::function<void(int, int, int)> fn)
      : name_(name), num_args_(num_args), fn_(std::move(fn)) {
    All().push_back(this);
  }
  static std::vector<Benchmark*>& All() {
    static auto* const all = new std::vector<Benchmark*>;
    return *all;
  }
  static std::vector<int> Sizes(int lo, int hi) {
    std::vector<int> sizes = {lo};
    for (int64 x = 1; x < hi; x *= 8) {
      if (x > lo) sizes.push_back(static_cast<int>(x));
    }
    if (hi > lo) sizes.push_back(hi);
    return sizes;
  }
  void Run() const {
    auto runs = runs_;
    if (num_args_ == 0) runs = {{0, 0}};
    for (const auto& [a, b] : runs) {
      std::chrono::steady_clock::duration time{};
      int iterations = 1;
      for (; iterations < (1 << 28) && time < std::chrono::milliseconds(100); iterations *= 2) {
        clock() = {std::chrono::steady_clock::now(), {}, true};
        fn_(iterations, a, b);
        if (clock().runs) clock().total += std::chrono::steady_clock::now() - clock().start;
        time = clock().total;
      }
      std::printf("%s/%d/%d %14.1f ns\n", name_, a, b,
                  std::chrono::duration<double, std::nano>(time).count() / (iterations / 2));
    }
  }

  const char* const name_;
  const int num_args_;
  const std::function<void(int, int, int)> fn_;
  std::vector<std::pair<int, int>> runs_;
};

inline void RunBenchmarks() { Benchmark::RunAll(); }
inline void StartTiming() {
  Benchmark::clock().start = std::chrono::steady_clock::now();
  Benchmark::clock().runs = true;
}
inline void StopTiming() {
  if (!Benchmark::clock().runs) return;
  Benchmark::clock().total += std::chrono::steady_clock::now() - Benchmark::clock().start;
  Benchmark::clock().runs = false;
}
// No effect: only times are printed.
inline void BytesProcessed(int64) {}
inline void ItemsProcessed(int64) {}
inline void SetLabel(const std::string&) {}
inline void UseRealTime() {}

}  // namespace testing
}  // namespace tensorflow

#define BENCHMARK(function) GRADFLOW_COMPAT_BENCHMARK(__COUNTER__, function)
#define GRADFLOW_COMPAT_BENCHMARK(counter, function) \
  GRADFLOW_COMPAT_BENCHMARK_IMPL(counter, function)
#define GRADFLOW_COMPAT_BENCHMARK_IMPL(counter, function)                     \
  static ::tensorflow::testing::Benchmark* const gradflow_benchmark_##counter \
      TF_ATTRIBUTE_UNUSED = (new ::tensorflow::testing::Benchmark(#function, (function)))

#else

#if !__has_include(<benchmark/benchmark.h>)
#error "tensorflow/core/platform/test_benchmark.h needs Google Benchmark (Debian: libbenchmark-dev)"
#endif

#include <benchmark/benchmark.h>

namespace testing {
namespace benchmark = ::benchmark;
}  // namespace testing

namespace tensorflow {
namespace testing {

namespace benchmark = ::benchmark;

using ::benchmark::DoNotOptimize;
inline void RunBenchmarks() { ::benchmark::RunSpecifiedBenchmarks(); }
inline void InitializeBenchmarks(int* argc, char** argv) { ::benchmark::Initialize(argc, argv); }

}  // namespace testing
}  // namespace tensorflow

#endif

#endif  // GRADFLOW_COMPAT_CORE_PLATFORM_TEST_BENCHMARK_H_
