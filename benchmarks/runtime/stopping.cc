// The latency of cancelling a run with long kernels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kStopping[] = "stopping";

// Runs a matrix product and the gradient of a batch norm in parallel for about half a second, and
// cancels each run after 0.5 to 20.4 ms.
void Stop(benchmark::State& state, int stops) {
  const Scope scope = Scope::NewRootScope();
  const auto placeholder = [&](const char* name) {
    return ops::Placeholder(scope.WithOpName(name), DT_FLOAT);
  };
  const Output a = placeholder("a");
  const Output x = placeholder("x");
  const Output scale = placeholder("scale");
  ops::MatMul(scope.WithOpName("product"), a, a);
  Output dy = x;
  for (int i = 0; i < 20; ++i) {
    dy = ops::FusedBatchNormGrad(scope, dy, x, scale, scale, scale).x_backprop;
  }
  ops::Identity(scope.WithOpName("gradient"), dy);
  GraphDef def;
  Check(scope.ToGraphDef(&def));
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  Check(session->Create(def));

  std::vector<std::pair<std::string, Tensor>> feeds = {{"a", Tensor(DT_FLOAT, {3072, 3072})},
                                                       {"x", Tensor(DT_FLOAT, {32, 56, 56, 64})},
                                                       {"scale", Tensor(DT_FLOAT, {64})}};
  for (auto& [name, value] : feeds) value.flat<float>().setConstant(1);
  double worst = 0;
  for (auto _ : state) {
    double total = 0;
    for (int i = 0; i < stops; ++i) {
      CancellationToken token;
      Clock::time_point cancelled;
      std::thread canceller([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(500 + 100 * (i % 200)));
        cancelled = Clock::now();
        token.Cancel();
      });
      std::vector<Tensor> outputs;
      const absl::Status status =
          session->Run({}, feeds, {"product", "gradient"}, {}, &outputs, nullptr, token);
      const Clock::time_point end = Clock::now();
      canceller.join();
      if (!absl::IsCancelled(status)) Check(absl::InternalError("the run was not cancelled"));
      const double took = std::chrono::duration<double>(end - cancelled).count();
      total += took;
      worst = std::max(worst, took);
    }
    state.SetIterationTime(total / stops);
  }
  state.counters["worst"] = worst;
}

}  // namespace

void RegisterStoppingCases(int stops) {
  benchmark::RegisterBenchmark(kStopping, [stops](benchmark::State& state) { Stop(state, stops); })
      ->UseManualTime()
      ->Iterations(1)
      ->Repetitions(1);
}

void PrintStoppingCases(const Medians& medians, Table* table) {
  const double mean = medians.Nanoseconds(kStopping) * 1e-6;
  if (mean == 0) return;
  const double worst = medians.Counter(kStopping, "worst") * 1e3;
  table->Add("a run of long kernels stops after", "all", mean, "ms");
  table->Add("  the slowest of them", "all", worst, "ms");
  table->Expect(worst, Table::kAtMost, 20);
}

}  // namespace gradflow::benchmarks
