// The cost of a call of Run.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "benchmarks/runtime/cases.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"

namespace gradflow::benchmarks {
namespace {

// A session of the graph x -> Neg "y".
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
  }

  Session& session() const { return *session_; }
  Session::CallableHandle callable() const { return callable_; }

 private:
  std::unique_ptr<Session> session_;
  Session::CallableHandle callable_ = 0;
};

// A caller of the session, with its own tensors to feed.
class Caller {
 public:
  explicit Caller(const NegSession& session) : session_(session) {}

  void RunByNames() const {
    std::vector<Tensor> outputs;
    Check(session_.session().Run(feeds_, fetches_, {}, &outputs));
    benchmark::DoNotOptimize(outputs);
  }
  void RunCallable() const {
    std::vector<Tensor> outputs;
    Check(session_.session().RunCallable(session_.callable(), fed_, &outputs, nullptr));
    benchmark::DoNotOptimize(outputs);
  }
  // Takes about as long as a run and shares nothing. This measures only how the cores scale.
  void Count() const {
    for (uint64_t i = 0; i < 1000; ++i) benchmark::DoNotOptimize(i);
  }

 private:
  const NegSession& session_;
  const std::vector<Tensor> fed_ = {Tensor(1.0f)};
  const std::vector<std::pair<std::string, Tensor>> feeds_ = {{"x", Tensor(1.0f)}};
  const std::vector<std::string> fetches_ = {"y"};
};

constexpr struct {
  const char* name;
  void (Caller::*run)() const;
} kWays[] = {
    {"names", &Caller::RunByNames}, {"callable", &Caller::RunCallable}, {"count", &Caller::Count}};

constexpr int kManyThreads = 8;
// Makes a measurement much longer than the scheduler's time slices.
constexpr int kRunsPerThread = 20000;

// Makes kRunsPerThread runs on each of `threads` threads concurrently.
void RunOnThreads(benchmark::State& state, int threads, void (Caller::*run)() const) {
  const NegSession session;
  for (auto _ : state) {
    std::atomic<int> waiting{threads};
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        const Caller caller(session);
        waiting.fetch_sub(1);
        while (waiting.load() > 0) std::this_thread::yield();
        for (int k = 0; k < kRunsPerThread; ++k) (caller.*run)();
      });
    }
    for (std::thread& worker : workers) worker.join();
  }
}

std::string ThreadsName(const char* way, int threads) {
  return absl::StrCat("calls/threads/", way, "/", threads);
}

}  // namespace

void RegisterCallCases() {
  for (const auto& [name, run] : kWays) {
    benchmark::RegisterBenchmark(absl::StrCat("calls/", name).c_str(),
                                 [run = run](benchmark::State& state) {
                                   const NegSession session;
                                   const Caller caller(session);
                                   for (auto _ : state) (caller.*run)();
                                 })
        ->UseRealTime();
    for (const int threads : {1, kManyThreads}) {
      benchmark::RegisterBenchmark(
          ThreadsName(name, threads).c_str(),
          [run = run, threads](benchmark::State& state) { RunOnThreads(state, threads, run); })
          ->UseRealTime();
    }
  }
}

void PrintCallCases(const Medians& medians, Table* table) {
  const double names = medians.Nanoseconds("calls/names") * 1e-3;
  table->Add("Run of one node by names", "all", names, "us");
  table->Expect(names, Table::kAtMost, 2.5);

  const double callable = medians.Nanoseconds("calls/callable") * 1e-3;
  table->Add("  through a callable", "all", callable, "us");
  table->Expect(callable, Table::kAtMost, 1);

  // Returns the throughput of many threads as a multiple of the throughput of one thread. The
  // counting loop shows what the cores allow.
  const auto scaling = [&](const char* way) {
    const double many = medians.Nanoseconds(ThreadsName(way, kManyThreads));
    return many == 0 ? 0 : kManyThreads * medians.Nanoseconds(ThreadsName(way, 1)) / many;
  };
  const double cores = scaling("count");
  for (const auto& [way, text] : {std::pair{"names", "Runs of one session from several threads"},
                                  std::pair{"callable", "  through a callable"}}) {
    const double many = medians.Nanoseconds(ThreadsName(way, kManyThreads));
    const double throughput = many == 0 ? 0 : kManyThreads * kRunsPerThread / many * 1e3;
    table->Add(text, absl::StrCat(kManyThreads), throughput, "runs a us");
    table->Compare("the cores' scaling", scaling(way), cores, Table::kAtLeast, 0.9);
  }
  table->Add("  a loop that counts", absl::StrCat(kManyThreads), cores, "x one thread's");
}

}  // namespace gradflow::benchmarks
