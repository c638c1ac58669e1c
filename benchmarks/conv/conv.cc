// Conv2D and its gradients on the 53 convolutions of ResNet-50, compared with direct calls of
// oneDNN.
//
// Each row is a shape, with the number of layers that have it. The first column is the time of a
// session in milliseconds. The other columns are multiples of that time: "plain" is oneDNN with
// plain formats (nhwc, hwio), and "own" is oneDNN with the filter in the format that oneDNN
// prefers. Filters are constants, so neither side reorders them. With one thread, times are CPU
// times, which other load of the machine disturbs less. --benchmark_out=FILE also writes the times
// in Google Benchmark's JSON format.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/conv/onednn.h"
#include "benchmarks/fill_normal.h"
#include "benchmarks/harness.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

// The convolutions of ResNet-50 v1.5, whose 3x3 convolutions have the strides.
const ConvCase kCases[] = {
    // size, input channels, output channels, filter, stride, layers
    {224, 3, 64, 7, 2, 1},    {56, 64, 64, 1, 1, 1},    {56, 64, 64, 3, 1, 3},
    {56, 64, 256, 1, 1, 4},   {56, 256, 64, 1, 1, 2},   {56, 256, 128, 1, 1, 1},
    {56, 128, 128, 3, 2, 1},  {28, 128, 512, 1, 1, 4},  {56, 256, 512, 1, 2, 1},
    {28, 512, 128, 1, 1, 3},  {28, 128, 128, 3, 1, 3},  {28, 512, 256, 1, 1, 1},
    {28, 256, 256, 3, 2, 1},  {14, 256, 1024, 1, 1, 6}, {28, 512, 1024, 1, 2, 1},
    {14, 1024, 256, 1, 1, 5}, {14, 256, 256, 3, 1, 5},  {14, 1024, 512, 1, 1, 1},
    {14, 512, 512, 3, 2, 1},  {7, 512, 2048, 1, 1, 3},  {14, 1024, 2048, 1, 2, 1},
    {7, 2048, 512, 1, 1, 2},  {7, 512, 512, 3, 1, 2},
};

Tensor Normal(const TensorShape& shape, uint32_t seed) {
  Tensor tensor(DT_FLOAT, shape);
  FillNormal(tensor.flat<float>().data(), tensor.NumElements(), seed);
  return tensor;
}

// Runs one pass through a session on `threads` threads.
std::function<void()> Ours(const ConvCase& c, Pass pass, int64_t batch, int threads) {
  using namespace ops;  // NOLINT: short
  const Tensor x = Normal({batch, c.size, c.size, c.in_depth}, 1);
  const Tensor f = Normal({c.filter, c.filter, c.in_depth, c.out_depth}, 2);
  const Tensor dy = Normal({batch, c.out(), c.out(), c.out_depth}, 3);
  const Scope scope = Scope::NewRootScope();
  const Output input = Placeholder(scope.WithOpName("x"), DT_FLOAT);
  const Output gradient = Placeholder(scope.WithOpName("dy"), DT_FLOAT);
  const Output filter = Const(scope, Input::Initializer(f));
  const std::vector<int> strides = {1, static_cast<int>(c.stride), static_cast<int>(c.stride), 1};
  const Scope named = scope.WithOpName("op");
  std::vector<std::pair<std::string, Tensor>> feeds;
  switch (pass) {
    case Pass::kForward:
      Conv2D(named, input, filter, strides, "SAME");
      feeds = {{"x", x}};
      break;
    case Pass::kInputGradient:
      Conv2DBackpropInput(named, Shape(scope, input), filter, gradient, strides, "SAME");
      feeds = {{"x", x}, {"dy", dy}};
      break;
    case Pass::kFilterGradient:
      Conv2DBackpropFilter(named, input, Shape(scope, filter), gradient, strides, "SAME");
      feeds = {{"x", x}, {"dy", dy}};
      break;
  }
  Check(scope.status());
  SessionOptions options;
  options.config.set_inter_op_parallelism_threads(threads);
  options.config.set_intra_op_parallelism_threads(threads);
  auto session = Session::Make(options);
  Check(session.status());
  GraphDef graph;
  Check(scope.ToGraphDef(&graph));
  Check((*session)->Create(graph));
  return [session = std::shared_ptr<Session>(*std::move(session)), feeds] {
    std::vector<Tensor> outputs;
    Check(session->Run(feeds, {"op"}, {}, &outputs));
  };
}

double Now(int threads) {
  timespec time;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// Returns the shortest run time of each contestant in milliseconds; 0 for null contestants. The
// contestants take turns.
std::vector<double> Measure(const std::vector<std::function<void()>>& contestants, int threads,
                            int repeats) {
  std::vector<double> best(contestants.size(), 1e30);
  // The first run creates primitives, and the second warms the caches.
  for (int i = 0; i < repeats + 2; ++i) {
    for (size_t k = 0; k < contestants.size(); ++k) {
      if (contestants[k] == nullptr) continue;
      const double start = Now(threads);
      contestants[k]();
      if (i >= 2) best[k] = std::min(best[k], Now(threads) - start);
    }
  }
  for (size_t k = 0; k < contestants.size(); ++k) {
    if (contestants[k] == nullptr) best[k] = 0;
  }
  return best;
}

int Main(int argc, char** argv) {
  Results results(&argc, argv);
  int64_t batch = 8;
  int threads = 1;
  int repeats = 20;
  size_t cases = std::size(kCases);
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (has_value && std::strcmp(argv[i], "--batch") == 0 &&
        absl::SimpleAtoi(argv[i + 1], &batch)) {
      ++i;
    } else if (has_value && std::strcmp(argv[i], "--threads") == 0 &&
               absl::SimpleAtoi(argv[i + 1], &threads)) {
      ++i;
    } else if (has_value && std::strcmp(argv[i], "--repeats") == 0 &&
               absl::SimpleAtoi(argv[i + 1], &repeats)) {
      ++i;
    } else if (std::strcmp(argv[i], "--small") == 0) {
      cases = 2;
      repeats = 1;
      batch = 1;
    } else {
      std::fprintf(stderr,
                   "usage: conv [--batch N] [--threads N] [--repeats N] [--small]\n"
                   "            [--benchmark_out=FILE]\n");
      return 2;
    }
  }
  std::printf("batch %lld, %d threads: ms of gradflow, and multiples of it\n%-26s",
              static_cast<long long>(batch), threads, "");
  const char* const contestants[] = {"ours", "oneDNN, plain", "oneDNN, own"};
  const char* const passes[] = {"forward", "input gradient", "filter gradient"};
  for (const char* const pass : passes) std::printf("%22s", pass);
  std::printf("\n%-26s", "shape");
  for (int p = 0; p < 3; ++p) std::printf("%10s%6s%6s", "ms", "plain", "own");
  std::printf("\n");
  double totals[3][3] = {};
  for (size_t i = 0; i < cases; ++i) {
    const ConvCase& c = kCases[i];
    const std::string name = c.DebugString();
    std::printf("%-26s", name.c_str());
    for (int p = 0; p < 3; ++p) {
      const Pass pass = static_cast<Pass>(p);
      const std::vector<double> times =
          Measure({Ours(c, pass, batch, threads), OneDnn(c, pass, batch, threads, true),
                   OneDnn(c, pass, batch, threads, false)},
                  threads, repeats);
      for (size_t k = 0; k < 3; ++k) {
        totals[p][k] += times[k] * static_cast<double>(c.layers);
        results.Add(absl::StrCat(name, ", ", passes[p], ", batch ", batch), threads, contestants[k],
                    times[k] * 1e-3);
      }
      std::printf("%10.3f%6.2f%6.2f", times[0], times[1] / times[0], times[2] / times[0]);
      std::fflush(stdout);
    }
    std::printf("\n");
  }
  std::printf("%-26s", "all layers");
  for (int p = 0; p < 3; ++p) {
    const auto& total = totals[p];
    std::printf("%10.3f%6.2f%6.2f", total[0], total[1] / total[0], total[2] / total[0]);
    for (size_t k = 0; cases == std::size(kCases) && k < 3; ++k) {
      results.Add(absl::StrCat("all layers, ", passes[p], ", batch ", batch), threads,
                  contestants[k], total[k] * 1e-3);
    }
  }
  std::printf("\n");
  results.Write();
  return 0;
}

}  // namespace
}  // namespace gradflow::benchmarks

int main(int argc, char** argv) { return gradflow::benchmarks::Main(argc, argv); }
