// Random graphs against a sequential evaluator that knows nothing of plans: values, errors,
// cancellations. The environment may say how many (GRADFLOW_RANDOM_GRAPHS) and from which seed on
// (GRADFLOW_RANDOM_SEED).
#include <tbb/global_control.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gradflow/runtime/executor.h"
#include "gradflow/runtime/pool_allocator.h"
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
  // Of each data input: the node and its output.
  std::vector<std::pair<int, int>> inputs;
  std::vector<int> control_inputs;
};

int NumOutputs(const RandomNode& node) { return node.op == "NoOp" ? 0 : node.op == "Mix" ? 2 : 1; }

// A graph, and what to feed, fetch and run. Nodes are numbered so that each comes after its inputs.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed) {
    const int size = Pick(2, 60);
    for (int i = 0; i < size; ++i) AddNode();
    const bool wild = Pick(0, 1) == 1;
    for (int i = 0; i < size; ++i) {
      for (int output = 0; output < NumOutputs(nodes_[i]); ++output) {
        if (nodes_[i].op == "Placeholder" || (wild && Pick(0, 9) == 0)) Feed(i, output);
      }
    }
    for (int i = Pick(1, 5); i > 0; --i) fetches_.push_back(PickOutput());
    for (int i = Pick(0, 2); i > 0; --i) targets_.push_back(Pick(0, size - 1));
    Evaluate();
  }

  void AddTo(Graph* graph) const {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const RandomNode& node = nodes_[i];
      std::vector<std::string> inputs;
      for (const auto& input : node.inputs) inputs.push_back(Name(input));
      for (int control : node.control_inputs) inputs.push_back(absl::StrCat("^n", control));
      ToyAttrs attrs;
      if (node.op == "Placeholder") attrs = {{"dtype", DT_INT64}};
      if (node.op == "Identity" || node.op == "Neg" || node.op == "Add") attrs = {{"T", DT_INT64}};
      if (node.op == "AddN") attrs = {{"N", static_cast<int>(node.inputs.size())}};
      if (node.op == "Tick") attrs = {{"counter", static_cast<int>(i)}};
      GRADFLOW_ASSERT_OK(graph->AddNode(ToyNode(absl::StrCat("n", i), node.op, inputs, attrs)));
    }
  }

  PlanNames Names() const {
    PlanNames names;
    for (const auto& feed : feeds_) names.feeds.push_back(Name(feed));
    for (const auto& fetch : fetches_) names.fetches.push_back(Name(fetch));
    for (int target : targets_) names.targets.push_back(absl::StrCat("n", target));
    return names;
  }
  const std::vector<Tensor>& fed_values() const { return fed_values_; }

  // Empties the counters of all Tick nodes.
  void ResetCounters() const {
    for (size_t i = 0; i < nodes_.size(); ++i) ToyCounter(static_cast<int>(i)) = 0;
  }

  // `may_be_cancelled`: by the caller, at any time.
  void Check(const absl::Status& status, const std::vector<Tensor>& outputs,
             bool may_be_cancelled) const {
    const bool ends_early = !failures_.empty() || !cancels_.empty();
    if (absl::IsCancelled(status)) {
      EXPECT_TRUE(may_be_cancelled || !cancels_.empty()) << status;
      EXPECT_TRUE(absl::StartsWith(status.message(), "node 'n")) << status;
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
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].op != "Tick") continue;
      const int count = ToyCounter(static_cast<int>(i));
      const int expected = runs_[i] ? 1 : 0;
      EXPECT_TRUE(status.ok() ? count == expected : count <= expected)
          << "n" << i << " ran " << count << " times, expected " << expected;
    }
  }

 private:
  using OutputOf = std::pair<int, int>;

  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  static std::string Name(const OutputOf& output) {
    return absl::StrCat("n", output.first, ":", output.second);
  }
  OutputOf PickOutput() {
    for (;;) {
      // Rather a late node than an early one, for depth.
      const int last = static_cast<int>(nodes_.size()) - 1;
      const int node = std::max(Pick(0, last), Pick(0, last));
      if (const int outputs = NumOutputs(nodes_[node]); outputs > 0) {
        return {node, Pick(0, outputs - 1)};
      }
    }
  }

  void AddNode() {
    RandomNode node;
    const int kind = nodes_.empty() ? 0 : Pick(0, 19);
    int inputs = 1;
    if (kind < 2) {
      node.op = "Placeholder";
      inputs = 0;
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
      inputs = Pick(1, 12);
    } else if (kind < 18) {
      node.op = "Tick";
    } else if (kind < 19 || Pick(0, 2) > 0) {
      node.op = "NoOp";
      inputs = 0;
    } else if (Pick(0, 1) == 0) {
      node.op = "Cancel";
    } else {
      node.op = "Fail";
    }
    for (int i = 0; i < inputs; ++i) node.inputs.push_back(PickOutput());
    for (int i = Pick(0, 5); i > 3 && !nodes_.empty(); --i) {
      const int control = Pick(0, static_cast<int>(nodes_.size()) - 1);
      auto& controls = node.control_inputs;
      if (std::find(controls.begin(), controls.end(), control) == controls.end()) {
        controls.push_back(control);
      }
    }
    nodes_.push_back(std::move(node));
  }

  void Feed(int node, int output) {
    feeds_.emplace_back(node, output);
    fed_values_.push_back(Int(Pick(-1000000, 1000000)));
  }

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

  // Which nodes run, which of them are the first to fail, and the values of all.
  void Evaluate() {
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
      if (node.op == "Identity" || node.op == "Tick" || node.op == "Cancel") out[0] = in[0];
      if (node.op == "Cancel" && !fails[i]) {
        cancels_.push_back(static_cast<int>(i));
        fails[i] = true;
      }
      if (node.op == "Neg") out[0] = -in[0];
      if (node.op == "Add") out[0] = in[0] + in[1];
      if (node.op == "Mix") out = {3 * in[0] - in[1], in[0] ^ in[1]};
      if (node.op == "AddN") {
        for (uint64_t x : in) out[0] += x;
      }
      values_[i] = {static_cast<int64_t>(out[0]), static_cast<int64_t>(out[1])};
    }
  }

  std::mt19937_64 random_;
  std::vector<RandomNode> nodes_;
  std::vector<OutputOf> feeds_;
  std::vector<Tensor> fed_values_;
  std::vector<OutputOf> fetches_;
  std::vector<int> targets_;
  // By node.
  std::vector<bool> runs_;
  std::vector<std::vector<int64_t>> values_;
  // Nodes that fail although all that they need succeeds: one of them must end the run.
  std::vector<int> failures_;
  // The same for nodes that cancel the run.
  std::vector<int> cancels_;
};

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
    const RandomRun run(seed);
    Graph graph(ToyRegistry());
    run.AddTo(&graph);
    KernelCache kernels;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto plan, Plan::Make(graph, run.Names(), &kernels));
    std::vector<const Tensor*> feeds;
    for (const Tensor& value : run.fed_values()) feeds.push_back(&value);
    for (const auto& executor : executors) {
      SCOPED_TRACE(absl::StrCat(executor->threads(), " threads"));
      // The last time, the caller cancels the run while it is in flight.
      for (const bool cancel : {false, false, true}) {
        run.ResetCounters();
        ToyCancelled() = false;
        RunLimits limits;
        limits.cancelled = &ToyCancelled();
        std::vector<Tensor> outputs;
        std::thread canceller;
        if (cancel) canceller = std::thread([] { ToyCancelled() = true; });
        const absl::Status status = executor->Run(*plan, feeds, limits, &outputs);
        if (cancel) canceller.join();
        run.Check(status, outputs, cancel);
        outputs.clear();
        EXPECT_EQ(pool->GetStats().bytes_in_use, 0);
      }
    }
  }
}

}  // namespace
}  // namespace gradflow
