// test::Benchmark: runs a graph as a Google Benchmark benchmark.
#ifndef GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_KERNEL_BENCHMARK_TESTLIB_H_
#define GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_KERNEL_BENCHMARK_TESTLIB_H_

#include <memory>
#include <string>
#include <vector>

#include "gradflow/runtime/session/session.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/testlib.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/test_benchmark.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace test {

class Benchmark {
 public:
  // Takes ownership of the graphs. `init` runs once, first. Always uses the CPU.
  Benchmark(const std::string& device, Graph* g, const SessionOptions* options = nullptr,
            Graph* init = nullptr, void* rendezvous = nullptr, const char* executor_type = "",
            bool old_benchmark_api = false)
      : graph_(g), init_(init) {
    (void)device, (void)rendezvous, (void)executor_type, (void)old_benchmark_api;
    if (options != nullptr) options_ = *options;
  }
  Benchmark(const std::string& device, Graph* g, bool old_benchmark_api)
      : Benchmark(device, g, nullptr, nullptr, nullptr, "", old_benchmark_api) {}

  // Runs all nodes of the graph once per iteration.
#ifdef GRADFLOW_TENSORFLOW_V1
  void Run(int iterations) {
    testing::StopTiming();
    const auto session = MakeSession();
    const std::vector<std::string> targets = AllNodes(*graph_);
    testing::StartTiming();
    for (int i = 0; i < iterations; ++i) TF_CHECK_OK(session->Run({}, {}, targets, nullptr));
    testing::StopTiming();
  }
#else
  void Run(::benchmark::State& state) {
    const auto session = MakeSession();
    const std::vector<std::string> targets = AllNodes(*graph_);
    for (auto s : state) {
      (void)s;
      TF_CHECK_OK(session->Run({}, {}, targets, nullptr));
    }
  }
#endif

 private:
  // Creates a session with the graphs. Runs `init` if there is one.
  std::unique_ptr<gradflow::Session> MakeSession() const {
    auto made = gradflow::Session::Make(options_);
    TF_CHECK_OK(made.status());
    std::unique_ptr<gradflow::Session> session = *std::move(made);
    if (init_ == nullptr) {
      TF_CHECK_OK(session->Create(graph_->def()));
    } else {
      TF_CHECK_OK(session->Create(init_->def()));
      TF_CHECK_OK(session->Run({}, {}, AllNodes(*init_), nullptr));
      TF_CHECK_OK(session->Extend(graph_->def()));
    }
    return session;
  }
  static std::vector<std::string> AllNodes(const Graph& graph) {
    std::vector<std::string> names;
    for (int i = 0; i < graph.num_nodes(); ++i) names.push_back(graph.node(i)->name());
    return names;
  }

  const std::unique_ptr<Graph> graph_;
  const std::unique_ptr<Graph> init_;
  SessionOptions options_;
};

}  // namespace test
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_COMMON_RUNTIME_KERNEL_BENCHMARK_TESTLIB_H_
