// Tests of benchmarks of TensorFlow 1.x.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/kernel_benchmark_testlib.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/platform/test_benchmark.h"

namespace tensorflow {
namespace {

int most_iterations = 0;
std::vector<int> sizes;

void BM_Add(int iterations, int size) {
  testing::StopTiming();
  Graph* g = new Graph(OpRegistry::Global());
  Tensor data(DT_FLOAT, TensorShape({size}));
  data.flat<float>().setZero();
  Node* x = test::graph::Constant(g, data);
  test::graph::Add(g, x, x);
  most_iterations = std::max(most_iterations, iterations);
  if (iterations == 1) sizes.push_back(size);
  testing::StartTiming();
  test::Benchmark("cpu", g).Run(iterations);
}
BENCHMARK(BM_Add)->Arg(10)->Range(100, 1000);

std::vector<std::pair<int, int>> pairs;

void BM_Pairs(int iterations, int a, int b) {
  if (iterations == 1) pairs.emplace_back(a, b);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
}
BENCHMARK(BM_Pairs)->RangePair(0, 2, 8, 65);

TEST(BenchmarkTest, RunsLongEnoughWithEachArgument) {
  ::testing::internal::CaptureStdout();
  testing::RunBenchmarks();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ::testing::HasSubstr("BM_Add/512/0"));
  EXPECT_THAT(sizes, ::testing::ElementsAre(10, 100, 512, 1000));
  using Pair = std::pair<int, int>;
  EXPECT_THAT(pairs,
              ::testing::ElementsAre(Pair(0, 8), Pair(0, 64), Pair(0, 65), Pair(1, 8), Pair(1, 64),
                                     Pair(1, 65), Pair(2, 8), Pair(2, 64), Pair(2, 65)));
  EXPECT_GT(most_iterations, 8);
}

}  // namespace
}  // namespace tensorflow
