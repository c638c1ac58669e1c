// Benchmarks of TensorFlow 1.x.
#include <gmock/gmock.h>

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

TEST(BenchmarkTest, RunsLongEnoughWithEachArgument) {
  ::testing::internal::CaptureStdout();
  testing::RunBenchmarks();
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ::testing::HasSubstr("BM_Add/800/0"));
  EXPECT_THAT(sizes, ::testing::ElementsAre(10, 100, 800, 1000));
  EXPECT_GT(most_iterations, 8);
}

}  // namespace
}  // namespace tensorflow
