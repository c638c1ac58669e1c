// Compares random graphs with a sequential evaluator that makes no plans: values, errors and
// cancellations, in the executor and in sessions with concurrent runs. The environment variables
// GRADFLOW_RANDOM_GRAPHS and GRADFLOW_RANDOM_SEED set the number of graphs and the first seed.
#include <tbb/global_control.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/runtime/executor/executor.h"
#include "gradflow/runtime/memory/pool_allocator.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/toy_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::Int;
using ::gradflow::testing::ToyAttrs;
using ::gradflow::testing::ToyCancelled;
using ::gradflow::testing::ToyCounter;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyRegistry;

struct RandomNode {
  std::string op;
  // For each data input, the node and its output.
  std::vector<std::pair<int, int>> inputs;
  std::vector<int> control_inputs;
  // The value, if the node is a Const.
  int64_t value = 0;
};

int NumOutputs(const RandomNode& node) { return node.op == "NoOp" ? 0 : node.op == "Mix" ? 2 : 1; }

using Random = std::mt19937_64;
int Pick(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// A node and one of its outputs.
using OutputOf = std::pair<int, int>;
std::string Name(const OutputOf& output) {
  return absl::StrCat("n", output.first, ":", output.second);
}

// Nodes are in topological order.
class RandomGraph {
 public:
  explicit RandomGraph(Random& random) {
    const int size = Pick(random, 2, 60);
    for (int i = 0; i < size; ++i) AddNode(random);
  }

  const std::vector<RandomNode>& nodes() const { return nodes_; }

  GraphDef Def() const {
    GraphDef graph;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const RandomNode& node = nodes_[i];
      std::vector<std::string> inputs;
      for (const auto& input : node.inputs) inputs.push_back(Name(input));
      for (int control : node.control_inputs) inputs.push_back(absl::StrCat("^n", control));
      ToyAttrs attrs;
      if (node.op == "Placeholder") attrs = {{"dtype", DT_INT64}};
      if (node.op == "Const") attrs = {{"dtype", DT_INT64}, {"value", Int(node.value)}};
      if (node.op == "Identity" || node.op == "Neg" || node.op == "Add") attrs = {{"T", DT_INT64}};
      if (node.op == "AddN") attrs = {{"N", static_cast<int>(node.inputs.size())}};
      if (node.op == "Tick") attrs = {{"counter", static_cast<int>(i)}};
      *graph.add_node() = ToyNode(absl::StrCat("n", i), node.op, inputs, attrs);
    }
    return graph;
  }

  OutputOf PickOutput(Random& random) const {
    for (;;) {
      // Prefers late nodes, for depth.
      const int last = static_cast<int>(nodes_.size()) - 1;
      const int node = std::max(Pick(random, 0, last), Pick(random, 0, last));
      if (const int outputs = NumOutputs(nodes_[node]); outputs > 0) {
        return {node, Pick(random, 0, outputs - 1)};
      }
    }
  }

  // Resets the counters of all Tick nodes.
  void ResetCounters() const {
    for (size_t i = 0; i < nodes_.size(); ++i) ToyCounter(static_cast<int>(i)) = 0;
  }

 private:
  void AddNode(Random& random) {
    RandomNode node;
    const int kind = nodes_.empty() ? 0 : Pick(random, 0, 19);
    int inputs = 1;
    if (kind < 2) {
      node.op = Pick(random, 0, 2) == 0 ? "Const" : "Placeholder";
      node.value = Pick(random, -1000000, 1000000);
      inputs = 0;
    } else if (kind < 3) {
      node.op = "Later";
    } else if (kind < 4) {
      node.op = "Identity";
    } else if (kind < 7) {
      node.op = "Neg";
    } else if (kind < 11) {
      node.op = "Add";
      inputs = 2;
    } else if (kind < 14) {
      node.op = "Mix";
      inputs = 2;
    } else if (kind < 16) {
      node.op = "AddN";
      inputs = Pick(random, 1, 12);
    } else if (kind < 18) {
      node.op = "Tick";
    } else if (kind < 19 || Pick(random, 0, 2) > 0) {
      node.op = "NoOp";
      inputs = 0;
    } else if (Pick(random, 0, 1) == 0) {
      node.op = "Cancel";
    } else {
      node.op = "Fail";
    }
    for (int i = 0; i < inputs; ++i) node.inputs.push_back(PickOutput(random));
    for (int i = Pick(random, 0, 5); i > 3 && !nodes_.empty(); --i) {
      const int control = Pick(random, 0, static_cast<int>(nodes_.size()) - 1);
      auto& controls = node.control_inputs;
      if (std::find(controls.begin(), controls.end(), control) == controls.end()) {
        controls.push_back(control);
      }
    }
    nodes_.push_back(std::move(node));
  }

  std::vector<RandomNode> nodes_;
};

// The feeds, fetches and targets of a run, and its expected outcome.
class RandomRun {
 public:
  // If `cancels`, Cancel nodes cancel the run.
  RandomRun(const RandomGraph& graph, bool cancels, Random& random) : nodes_(graph.nodes()) {
    const int size = static_cast<int>(nodes_.size());
    const bool wild = Pick(random, 0, 1) == 1;
    for (int i = 0; i < size; ++i) {
      for (int output = 0; output < NumOutputs(nodes_[i]); ++output) {
        if (nodes_[i].op == "Placeholder" || (wild && Pick(random, 0, 9) == 0)) {
          feeds_.emplace_back(i, output);
          fed_values_.push_back(Int(Pick(random, -1000000, 1000000)));
        }
      }
    }
    for (int i = Pick(random, 1, 5); i > 0; --i) fetches_.push_back(graph.PickOutput(random));
    for (int i = Pick(random, 0, 2); i > 0; --i) targets_.push_back(Pick(random, 0, size - 1));
    Evaluate(cancels);
  }

  PlanNames Names() const {
    PlanNames names;
    for (const auto& feed : feeds_) names.feeds.push_back(Name(feed));
    for (const auto& fetch : fetches_) names.fetches.push_back(Name(fetch));
    for (int target : targets_) names.targets.push_back(absl::StrCat("n", target));
    return names;
  }
  const std::vector<Tensor>& fed_values() const { return fed_values_; }
  bool Runs(size_t node) const { return runs_[node]; }

  // Checks the result of a run. If `may_be_cancelled`, the caller may cancel the run at any time.
  void Check(const absl::Status& status, const std::vector<Tensor>& outputs,
             bool may_be_cancelled) const {
    const bool ends_early = !failures_.empty() || !cancels_.empty();
    if (absl::IsCancelled(status)) {
      EXPECT_TRUE(may_be_cancelled || !cancels_.empty()) << status;
      // Errors that occur before a plan exists name no node.
      EXPECT_TRUE(absl::StartsWith(status.message(), "node 'n") ||
                  status.message() == "the run was cancelled")
          << status;
    } else if (ends_early) {
      EXPECT_TRUE(std::any_of(failures_.begin(), failures_.end(), [&](int node) {
        return absl::StartsWith(status.message(), absl::StrCat("node 'n", node, "' (Fail): "));
      })) << status;
    } else {
      GRADFLOW_ASSERT_OK(status);
      ASSERT_EQ(outputs.size(), fetches_.size());
      for (size_t i = 0; i < fetches_.size(); ++i) {
        EXPECT_EQ(outputs[i].scalar<int64_t>()(), Value(fetches_[i])) << Name(fetches_[i]);
      }
    }
  }

 private:
  bool IsFed(const OutputOf& output) const {
    return std::find(feeds_.begin(), feeds_.end(), output) != feeds_.end();
  }
  bool IsFedPlaceholder(int node) const {
    return nodes_[node].op == "Placeholder" && IsFed({node, 0});
  }

  int64_t Value(const OutputOf& output) const {
    for (size_t i = 0; i < feeds_.size(); ++i) {
      if (feeds_[i] == output) return fed_values_[i].scalar<int64_t>()();
    }
    return values_[output.first][output.second];
  }

  // Computes which nodes run, which nodes may fail first, and the values of all nodes.
  void Evaluate(bool cancels) {
    runs_.assign(nodes_.size(), false);
    for (const OutputOf& fetch : fetches_) {
      if (!IsFed(fetch)) runs_[fetch.first] = true;
    }
    for (int target : targets_) {
      if (!IsFedPlaceholder(target)) runs_[target] = true;
    }
    for (size_t i = nodes_.size(); i-- > 0;) {
      if (!runs_[i]) continue;
      for (const OutputOf& input : nodes_[i].inputs) {
        if (!IsFed(input)) runs_[input.first] = true;
      }
      for (int control : nodes_[i].control_inputs) {
        if (!IsFedPlaceholder(control)) runs_[control] = true;
      }
    }
    values_.assign(nodes_.size(), {0, 0});
    std::vector<bool> fails(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!runs_[i]) continue;
      const RandomNode& node = nodes_[i];
      std::vector<uint64_t> in;
      for (const OutputOf& input : node.inputs) {
        if (!IsFed(input) && fails[input.first]) fails[i] = true;
        in.push_back(static_cast<uint64_t>(Value(input)));
      }
      for (int control : node.control_inputs) {
        if (!IsFedPlaceholder(control) && fails[control]) fails[i] = true;
      }
      if (node.op == "Fail") {
        if (!fails[i]) failures_.push_back(static_cast<int>(i));
        fails[i] = true;
        continue;
      }
      std::vector<uint64_t> out(2, 0);
      if (node.op == "Identity" || node.op == "Later" || node.op == "Tick" || node.op == "Cancel")
        out[0] = in[0];
      if (node.op == "Cancel" && cancels && !fails[i]) {
        cancels_.push_back(static_cast<int>(i));
        fails[i] = true;
      }
      if (node.op == "Const") out[0] = static_cast<uint64_t>(node.value);
      if (node.op == "Neg") out[0] = -in[0];
      if (node.op == "Add") out[0] = in[0] + in[1];
      if (node.op == "Mix") out = {3 * in[0] - in[1], in[0] ^ in[1]};
      if (node.op == "AddN") {
        for (uint64_t x : in) out[0] += x;
      }
      values_[i] = {static_cast<int64_t>(out[0]), static_cast<int64_t>(out[1])};
    }
  }

  const std::vector<RandomNode>& nodes_;
  std::vector<OutputOf> feeds_;
  std::vector<Tensor> fed_values_;
  std::vector<OutputOf> fetches_;
  std::vector<int> targets_;
  // Indexed by node.
  std::vector<bool> runs_;
  std::vector<std::vector<int64_t>> values_;
  // Nodes that fail although all of their inputs succeed. One of them must end the run.
  std::vector<int> failures_;
  // Nodes that cancel the run although all of their inputs succeed.
  std::vector<int> cancels_;
};

// Expects that each Tick ran once for each run that needs it. Failed runs may skip it. `ok` states
// for each run whether it succeeded.
void CheckCounters(const RandomGraph& graph, const std::vector<const RandomRun*>& runs,
                   const std::vector<bool>& ok) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].op != "Tick") continue;
    int least = 0;
    int most = 0;
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!runs[r]->Runs(i)) continue;
      ++most;
      if (ok[r]) ++least;
    }
    const int count = ToyCounter(static_cast<int>(i));
    EXPECT_TRUE(least <= count && count <= most)
        << "n" << i << " ran " << count << " times, expected " << least << " to " << most;
  }
}

uint64_t FromEnvironment(const char* name, uint64_t value) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return value;
  EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << name << "=" << text;
  return value;
}

TEST(ExecutorRandom, AgreesWithASequentialEvaluator) {
  const uint64_t graphs = FromEnvironment("GRADFLOW_RANDOM_GRAPHS", 2000);
  const uint64_t first_seed = FromEnvironment("GRADFLOW_RANDOM_SEED", 1);
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 8);
  const auto pool = std::make_shared<PoolAllocator>();
  std::vector<std::unique_ptr<Executor>> executors;
  for (const int threads : {1, 2, 3, 8}) {
    executors.push_back(std::make_unique<Executor>(threads, pool));
  }
  for (uint64_t seed = first_seed; seed < first_seed + graphs && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const RandomGraph random_graph(random);
    const RandomRun run(random_graph, /*cancels=*/true, random);
    Graph graph(ToyRegistry());
    const GraphDef def = random_graph.Def();
    for (const NodeDef& node : def.node()) {
      GRADFLOW_ASSERT_OK(graph.AddNode(NodeDef(node)).status());
    }
    KernelCache kernels;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph, run.Names(), &kernels));
    std::vector<const Tensor*> feeds;
    for (const Tensor& value : run.fed_values()) feeds.push_back(&value);
    for (const auto& executor : executors) {
      SCOPED_TRACE(absl::StrCat(executor->threads(), " threads"));
      // The third time, the caller cancels the run in flight.
      for (const bool cancel : {false, false, true}) {
        random_graph.ResetCounters();
        ToyCancelled() = std::make_unique<CancelFlag>();
        RunLimits limits;
        limits.cancelled = ToyCancelled().get();
        std::vector<Tensor> outputs;
        std::thread canceller;
        if (cancel) canceller = std::thread([] { ToyCancelled()->Raise(); });
        const absl::Status status = executor->Run(plan, feeds, limits, &outputs);
        if (cancel) canceller.join();
        run.Check(status, outputs, cancel);
        CheckCounters(random_graph, {&run}, {status.ok()});
        outputs.clear();
        ::gradflow::testing::ToyWaitForLater();
        EXPECT_EQ(pool->GetStats().bytes_in_use, 0);
      }
    }
  }
}

// One of several concurrent runs of a session.
struct SessionRun {
  const RandomRun* run;
  // True if another thread cancels the run.
  bool is_cancelled;
  CancellationToken token;
  absl::Status status;
  std::vector<Tensor> outputs;
};

void RunIn(Session* session, SessionRun* run) {
  const PlanNames names = run->run->Names();
  std::vector<std::pair<std::string, Tensor>> feeds;
  for (size_t i = 0; i < names.feeds.size(); ++i) {
    feeds.emplace_back(names.feeds[i], run->run->fed_values()[i]);
  }
  run->status =
      session->Run({}, feeds, names.fetches, names.targets, &run->outputs, nullptr, run->token);
}

// Several threads each run one session a few times, with equal or different feeds and fetches. Each
// thread also cancels some of the runs of the next thread.
TEST(SessionRandom, AgreesWithASequentialEvaluatorWhenRunsOverlap) {
  constexpr int kRounds = 3;
  const uint64_t graphs = FromEnvironment("GRADFLOW_RANDOM_GRAPHS", 2000) / 2;
  const uint64_t first_seed = FromEnvironment("GRADFLOW_RANDOM_SEED", 1);
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, 8);
  for (uint64_t seed = first_seed; seed < first_seed + graphs && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const RandomGraph graph(random);
    std::vector<RandomRun> requests;
    for (int i = Pick(random, 1, 3); i > 0; --i) {
      requests.emplace_back(graph, /*cancels=*/false, random);
    }
    // Indexed by thread and round.
    std::vector<std::vector<SessionRun>> runs(Pick(random, 2, 4));
    for (std::vector<SessionRun>& of_thread : runs) {
      for (int round = 0; round < kRounds; ++round) {
        const int request = Pick(random, 0, static_cast<int>(requests.size()) - 1);
        of_thread.push_back({&requests[request], Pick(random, 0, 3) == 0, {}, {}, {}});
      }
    }
    SessionOptions options;
    options.config.set_inter_op_parallelism_threads(Pick(random, 1, 4));
    options.config.set_intra_op_parallelism_threads(Pick(random, 1, 4));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                                  Session::Make(options, ToyRegistry()));
    GRADFLOW_ASSERT_OK(session->Create(graph.Def()));
    graph.ResetCounters();
    std::vector<std::thread> threads;
    for (size_t t = 0; t < runs.size(); ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < kRounds; ++round) {
          const SessionRun& next = runs[(t + 1) % runs.size()][round];
          if (next.is_cancelled) next.token.Cancel();
          RunIn(session.get(), &runs[t][round]);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<const RandomRun*> all;
    std::vector<bool> ok;
    for (std::vector<SessionRun>& of_thread : runs) {
      for (SessionRun& run : of_thread) {
        run.run->Check(run.status, run.outputs, run.is_cancelled);
        all.push_back(run.run);
        ok.push_back(run.status.ok());
        run.outputs.clear();
      }
    }
    CheckCounters(graph, all, ok);
    ::gradflow::testing::ToyWaitForLater();
    EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
  }
}

}  // namespace
}  // namespace gradflow
