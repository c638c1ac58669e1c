// What a call of Run costs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session.h"

namespace gradflow::benchmarks {
namespace {

// A session of the graph x -> Neg "y", and one way to run it.
class NegSession {
 public:
  NegSession() {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
    ops::Neg(scope.WithOpName("y"), x);
    GraphDef def;
    Check(scope.ToGraphDef(&def));
    session_.reset(NewSession(SessionOptions()));
    Check(session_->Create(def));
    CallableOptions options;
    options.add_feed("x");
    options.add_fetch("y");
    Check(session_->MakeCallable(options, &callable_));
    RunByNames();
    RunCallable();
  }

  void RunByNames() const {
    std::vector<Tensor> outputs;
    Check(session_->Run(feeds_, fetches_, {}, &outputs));
    benchmark::DoNotOptimize(outputs);
  }
  void RunCallable() const {
    std::vector<Tensor> outputs;
    Check(session_->RunCallable(callable_, fed_, &outputs, nullptr));
    benchmark::DoNotOptimize(outputs);
  }

 private:
  std::unique_ptr<Session> session_;
  Session::CallableHandle callable_ = 0;
  const std::vector<Tensor> fed_ = {Tensor(1.0f)};
  const std::vector<std::pair<std::string, Tensor>> feeds_ = {{"x", Tensor(1.0f)}};
  const std::vector<std::string> fetches_ = {"y"};
};

constexpr int kManyThreads = 8;
constexpr int kRunsPerThread = 4000;

// kRunsPerThread runs on each of `threads` threads at once.
void RunOnThreads(benchmark::State& state, int threads) {
  const NegSession session;
  for (auto _ : state) {
    std::atomic<int> waiting{threads};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        waiting.fetch_sub(1);
        while (waiting.load() > 0) std::this_thread::yield();
        for (int k = 0; k < kRunsPerThread; ++k) session.RunByNames();
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
}

}  // namespace

void RegisterCallCases() {
  benchmark::RegisterBenchmark("calls/names", [](benchmark::State& state) {
    const NegSession session;
    for (auto _ : state) session.RunByNames();
  })->UseRealTime();
  benchmark::RegisterBenchmark("calls/callable", [](benchmark::State& state) {
    const NegSession session;
    for (auto _ : state) session.RunCallable();
  })->UseRealTime();
  for (const int threads : {1, kManyThreads}) {
    benchmark::RegisterBenchmark(
        absl::StrCat("calls/threads/", threads).c_str(),
        [threads](benchmark::State& state) { RunOnThreads(state, threads); })
        ->UseRealTime();
  }
}

void PrintCallCases(const Medians& medians, Table* table) {
  const double names = medians.Nanoseconds("calls/names") * 1e-3;
  table->Add("Run of one node by names", "all", names, "us");
  table->Expect(names, Table::kAtMost, 2.5);

  const double callable = medians.Nanoseconds("calls/callable") * 1e-3;
  table->Add("  through a callable", "all", callable, "us");
  table->Expect(callable, Table::kAtMost, 1);

  const double one = medians.Nanoseconds("calls/threads/1");
  const double many = medians.Nanoseconds(absl::StrCat("calls/threads/", kManyThreads));
  const auto cores = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  const double throughput = many == 0 ? 0 : kManyThreads * kRunsPerThread / many * 1e3;
  table->Add("Runs of one session from several threads", absl::StrCat(kManyThreads), throughput,
             "runs a us");
  table->Compare("one thread's", many == 0 ? 0 : kManyThreads * one / many, 1, Table::kAtLeast,
                 std::min<double>(cores, kManyThreads));
}

}  // namespace gradflow::benchmarks
