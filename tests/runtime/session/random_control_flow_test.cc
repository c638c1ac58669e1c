// Compares random graphs of version 1 control flow, Switch, Merge and loops of Enter and Exit, with
// a plain interpreter, on several numbers of threads, and runs random mutations of them. The
// environment variable GRADFLOW_RANDOM_CONTROL_FLOW sets the number of graphs.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/runtime/session/cancellation.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/runtime/graph_maker.h"
#include "tests/runtime/random_programs.h"
#include "tests/testing/mutate.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AttrOf;
using ::gradflow::testing::BinaryOp;
using ::gradflow::testing::GraphMaker;
using ::gradflow::testing::MutationRandom;
using ::gradflow::testing::Numbers;
using ::gradflow::testing::NumPrograms;
using ::gradflow::testing::OptionsFor;

enum class Op { kConst, kBinary, kCond, kCase, kLoop };

struct Block;

// A statement. It appends its results to the values in scope.
struct Step {
  Op op;
  // A constant, or the number of iterations.
  int64_t number = 0;
  // Indexes of the values in scope that it reads. The first value of kCond and kCase selects the
  // branch. kLoop has its first values here.
  std::vector<int> inputs;
  // The branches, or the body of a loop.
  std::vector<Block> blocks;
  BinaryOp binary = BinaryOp::kAdd;
};

// A block sees all values in scope, and in a loop the index of the iteration and the variables
// after them.
struct Block {
  std::vector<Step> steps;
  std::vector<int> results;
};

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {
    num_args_ = 1 + Random(3);
    program_ = MakeBlock(num_args_, 1 + Random(4), /*depth=*/0);
  }

  int num_args() const { return num_args_; }
  // The names of the results.
  std::vector<std::string> fetches() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < program_.results.size(); ++i) names.push_back(absl::StrCat("r", i));
    return names;
  }
  Numbers Interpret(const Numbers& args) const { return Interpret(program_, args); }

  // Adds the nodes. The results are nodes "r0", "r1", ...
  void Make(GraphMaker* maker) {
    maker_ = maker;
    contexts_.assign(1, Context());
    std::vector<Value> scope;
    for (int a = 0; a < num_args_; ++a) {
      const std::string name = absl::StrCat("x", a);
      maker_->main().AddPlaceholder(name);
      scope.push_back({name, 0});
    }
    const std::vector<Value> results = Emit(program_, scope, 0);
    for (size_t i = 0; i < results.size(); ++i) {
      maker_->main().Add(absl::StrCat("r", i), "Identity", {results[i].name});
    }
  }

 private:
  // ---- The program ----

  int Random(int bound) { return static_cast<int>(random_() % bound); }

  Block MakeBlock(int scope, int num_results, int depth) {
    Block block;
    const int count = 1 + Random(depth == 0 ? 6 : 3);
    for (int i = 0; i < count; ++i) {
      block.steps.push_back(MakeStep(scope, depth));
      scope += NumResults(block.steps.back());
    }
    for (int i = 0; i < num_results; ++i) block.results.push_back(Random(scope));
    return block;
  }

  static int NumResults(const Step& step) {
    return step.blocks.empty() ? 1 : static_cast<int>(step.blocks[0].results.size());
  }

  Step MakeStep(int scope, int depth) {
    const int kind = Random(depth < 3 ? 10 : 5);
    Step step;
    if (kind == 0) return {Op::kConst, static_cast<int64_t>(Random(21)) - 10, {}, {}};
    step.inputs = {Random(scope), Random(scope)};
    if (kind < 5) {
      step.op = Op::kBinary;
      step.binary = static_cast<BinaryOp>(kind - 1);
      return step;
    }
    const int results = 1 + Random(3);
    if (kind < 8) {
      step.op = kind == 7 ? Op::kCase : Op::kCond;
      step.inputs.resize(1);
      const int branches = kind == 7 ? 1 + Random(3) : 2;
      for (int i = 0; i < branches; ++i) {
        step.blocks.push_back(MakeBlock(scope, results, depth + 1));
      }
      return step;
    }
    step.op = Op::kLoop;
    step.number = Random(4);
    step.inputs.clear();
    for (int i = 0; i < results; ++i) step.inputs.push_back(Random(scope));
    step.blocks.push_back(MakeBlock(scope + 1 + results, results, depth + 1));
    return step;
  }

  static Numbers Interpret(const Block& block, Numbers values) {
    for (const Step& step : block.steps) {
      Numbers in;
      for (const int i : step.inputs) in.push_back(values[i]);
      Numbers out;
      switch (step.op) {
        case Op::kConst:
          out = {step.number};
          break;
        case Op::kBinary:
          out = {testing::Compute(step.binary, in[0], in[1])};
          break;
        case Op::kCond:
          out = Interpret(step.blocks[in[0] > 0 ? 0 : 1], values);
          break;
        case Op::kCase: {
          const auto last = static_cast<int64_t>(step.blocks.size()) - 1;
          out = Interpret(step.blocks[in[0] < 0 || in[0] > last ? last : in[0]], values);
          break;
        }
        case Op::kLoop:
          out = in;
          for (int64_t i = 0; i < step.number; ++i) {
            Numbers scope = values;
            scope.push_back(i);
            scope.insert(scope.end(), out.begin(), out.end());
            out = Interpret(step.blocks[0], scope);
          }
          break;
      }
      values.insert(values.end(), out.begin(), out.end());
    }
    Numbers results;
    for (const int i : block.results) results.push_back(values[i]);
    return results;
  }

  // ---- The graph ----

  // A branch or the body of a loop, with what it reads from outside.
  struct Context {
    int outer = -1;
    // The condition of a branch, in the outer context; empty in a loop.
    std::string condition;
    bool is_case = false;
    int branch = 0;
    int num_branches = 2;
    std::string frame;
    // A node that constants wait for.
    std::string pivot;
    std::map<std::pair<std::string, int>, std::string> imported;
  };
  // An output of a node, and the context of the node.
  struct Value {
    std::string name;
    int context;
  };

  std::string NewName() { return absl::StrCat("n", next_++); }
  GraphMaker::Body& main() { return maker_->main(); }

  // Returns the name that stands for a value in a context within the value's context.
  std::string Import(const Value& value, int context) {
    if (value.context == context) return value.name;
    const auto key = std::make_pair(value.name, value.context);
    const auto found = contexts_[context].imported.find(key);
    if (found != contexts_[context].imported.end()) return found->second;
    const std::string outer = Import(value, contexts_[context].outer);
    const std::string name = NewName();
    std::string result = name;
    Context& c = contexts_[context];
    if (c.condition.empty()) {
      AddEnter(name, outer, c.frame, true);
    } else {
      AddSwitch(name, outer, c);
      result = absl::StrCat(name, ":", c.branch);
    }
    contexts_[context].imported.emplace(key, result);
    return result;
  }

  void AddEnter(const std::string& name, const std::string& input, const std::string& frame,
                bool is_constant) {
    main().Add(name, "Enter", {input},
               {{"frame_name", AttrOf(frame.c_str())}, {"is_constant", AttrOf(is_constant)}});
  }

  void AddSwitch(const std::string& name, const std::string& data, const Context& c,
                 DataType dtype = DT_INT64) {
    if (c.is_case) {
      main().Add(
          name, "_SwitchN", {data, c.condition},
          {{"T", AttrOf(dtype)}, {"num_outs", AttrOf(static_cast<int64_t>(c.num_branches))}});
    } else {
      main().Add(name, "Switch", {data, c.condition}, {{"T", AttrOf(dtype)}});
    }
  }

  void AddMerge(const std::string& name, const std::vector<std::string>& inputs) {
    main().Add(name, "Merge", inputs, {{"N", AttrOf(static_cast<int64_t>(inputs.size()))}});
  }

  std::string AddConst(int64_t number, int context) {
    const std::string name = NewName();
    main().AddConst(name, number);
    const std::string& pivot = contexts_[context].pivot;
    if (!pivot.empty()) {
      maker_->mutable_graph()->mutable_node()->rbegin()->add_input("^" + pivot);
    }
    return name;
  }

  std::vector<Value> Emit(const Block& block, std::vector<Value> scope, int context) {
    for (const Step& step : block.steps) {
      std::vector<std::string> in;
      for (const int i : step.inputs) in.push_back(Import(scope[i], context));
      std::vector<std::string> out;
      switch (step.op) {
        case Op::kConst:
          out = {AddConst(step.number, context)};
          break;
        case Op::kBinary:
          out = {NewName()};
          main().Add(out[0], testing::NameOf(step.binary), in);
          break;
        case Op::kCond:
        case Op::kCase:
          out = EmitBranches(step, in[0], scope, context);
          break;
        case Op::kLoop:
          out = EmitLoop(step, in, scope, context);
          break;
      }
      for (std::string& name : out) scope.push_back({std::move(name), context});
    }
    std::vector<Value> results;
    for (const int i : block.results) results.push_back({Import(scope[i], context), context});
    return results;
  }

  std::vector<std::string> EmitBranches(const Step& step, const std::string& selector,
                                        const std::vector<Value>& scope, int context) {
    const bool is_case = step.op == Op::kCase;
    const std::string condition = NewName();
    if (is_case) {
      const std::string low = AddConst(-1, context);
      const std::string high = AddConst(100, context);
      main().Add(condition + "/low", "Maximum", {selector, low});
      main().Add(condition + "/high", "Minimum", {condition + "/low", high});
      main().Add(condition, "Cast", {condition + "/high"},
                 {{"SrcT", AttrOf(DT_INT64)}, {"DstT", AttrOf(DT_INT32)}});
    } else {
      main().Add(condition, "Greater", {selector, AddConst(0, context)});
    }
    const auto branches = static_cast<int>(step.blocks.size());
    std::vector<std::vector<std::string>> results(step.blocks[0].results.size());
    for (int b = 0; b < branches; ++b) {
      Context c;
      c.outer = context;
      c.condition = condition;
      c.is_case = is_case;
      // Block 0 is the branch for true.
      c.branch = is_case ? b : 1 - b;
      c.num_branches = branches;
      c.pivot = NewName();
      const std::string pivot_switch = c.pivot + "/switch";
      AddSwitch(pivot_switch, selector, c);
      main().Add(c.pivot, "Identity", {absl::StrCat(pivot_switch, ":", c.branch)});
      const std::string pivot = c.pivot;
      contexts_.push_back(c);
      const auto inner = static_cast<int>(contexts_.size()) - 1;
      // Fails if the branch runs although it is not taken.
      std::string control;
      if (!is_case) {
        std::string taken = pivot + "/taken";
        AddSwitch(taken, condition, contexts_[inner], DT_BOOL);
        taken = absl::StrCat(taken, ":", contexts_[inner].branch);
        if (contexts_[inner].branch == 0) {
          main().Add(pivot + "/not", "LogicalNot", {taken});
          taken = pivot + "/not";
        }
        main().Add(pivot + "/assert", "Assert", {taken, pivot},
                   {{"T", AttrOf(DataTypeVector{DT_INT64})}, {"summarize", AttrOf(int64_t{3})}});
        control = "^" + pivot + "/assert";
      }
      const std::vector<Value> values = Emit(step.blocks[b], scope, inner);
      for (size_t i = 0; i < values.size(); ++i) {
        results[i].push_back(values[i].name);
        if (control.empty()) continue;
        results[i].back() = NewName();
        main().Add(results[i].back(), "Identity", {values[i].name, control});
      }
    }
    std::vector<std::string> out;
    for (const std::vector<std::string>& inputs : results) {
      out.push_back(NewName());
      AddMerge(out.back(), inputs);
    }
    return out;
  }

  std::vector<std::string> EmitLoop(const Step& step, const std::vector<std::string>& first,
                                    const std::vector<Value>& scope, int context) {
    const std::string loop = NewName();
    Context c;
    c.outer = context;
    // Some loops have the same name, also within each other.
    c.frame = random_() % 3 == 0 ? "frame" : loop;
    std::vector<std::string> names = {loop + "/i"};
    std::vector<std::string> inputs = {AddConst(0, context)};
    for (size_t i = 0; i < first.size(); ++i) {
      names.push_back(absl::StrCat(loop, "/v", i));
      inputs.push_back(first[i]);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      AddEnter(names[i] + "/enter", inputs[i], c.frame, false);
      AddMerge(names[i], {names[i] + "/enter", names[i] + "/next"});
    }
    main().AddConst(loop + "/limit", step.number);
    maker_->mutable_graph()->mutable_node()->rbegin()->add_input("^" + names[0]);
    main().Add(loop + "/less", "Less", {names[0], loop + "/limit"});
    main().Add(loop + "/cond", "LoopCond", {loop + "/less"});
    for (const std::string& name : names) {
      main().Add(name + "/switch", "Switch", {name, loop + "/cond"});
      main().Add(name + "/body", "Identity", {name + "/switch:1"});
      main().Add(name + "/exit", "Exit", {name + "/switch"});
    }
    c.pivot = names[0] + "/body";
    contexts_.push_back(c);
    const auto inner = static_cast<int>(contexts_.size()) - 1;
    std::vector<Value> body = scope;
    for (const std::string& name : names) body.push_back({name + "/body", inner});
    const std::string one = AddConst(1, inner);
    main().Add(loop + "/plus", "AddV2", {names[0] + "/body", one});
    main().Add(names[0] + "/next", "NextIteration", {loop + "/plus"});
    const std::vector<Value> next = Emit(step.blocks[0], body, inner);
    std::vector<std::string> out;
    for (size_t i = 0; i < next.size(); ++i) {
      main().Add(names[i + 1] + "/next", "NextIteration", {next[i].name});
      out.push_back(names[i + 1] + "/exit");
    }
    return out;
  }

  std::minstd_rand random_;
  int num_args_ = 0;
  Block program_;
  GraphMaker* maker_ = nullptr;
  std::vector<Context> contexts_;
  int next_ = 0;
};

constexpr char kNumGraphs[] = "GRADFLOW_RANDOM_CONTROL_FLOW";

// The parameter is the number of threads.
class RandomControlFlowTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomControlFlowTest, AgreesWithAnInterpreter) {
  std::minstd_rand random(GetParam());
  const int num_graphs = NumPrograms(kNumGraphs, 500);
  for (int i = 0; i < num_graphs && !HasFailure(); ++i) {
    const auto seed = static_cast<uint32_t>(1 + i * 8 + GetParam());
    SCOPED_TRACE(seed);
    RandomGraph graph(seed);
    GraphMaker maker;
    graph.Make(&maker);
    testing::ExpectAgrees(
        maker.graph(), GetParam(), graph.num_args(), graph.fetches(),
        [&](const Numbers& args) { return graph.Interpret(args); }, &random);
  }
}

TEST_P(RandomControlFlowTest, MutatedGraphsEndWithAStatusThatNamesANode) {
  const google::protobuf::LogSilencer silencer;
  const int num_graphs = NumPrograms(kNumGraphs, 500);
  int ran = 0;
  int refused = 0;
  for (int i = 0; i < num_graphs && !HasFailure(); ++i) {
    const auto seed = static_cast<uint32_t>(1 + i * 8 + GetParam());
    SCOPED_TRACE(seed);
    MutationRandom random(seed);
    RandomGraph graph(seed / 4);
    GraphMaker maker;
    graph.Make(&maker);
    GraphDef graph_def = maker.graph();
    for (int64_t m = random.Below(3); m >= 0; --m) {
      gradflow::testing::MutateGraph(&random, &graph_def);
    }
    SessionOptions options = OptionsFor(GetParam());
    options.tensor_memory_limit_bytes = 1 << 20;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Make(options));
    if (!session->Create(std::move(graph_def)).ok()) {
      ++refused;
      continue;
    }
    Numbers args;
    for (int a = 0; a < graph.num_args(); ++a) args.push_back(random.Below(9) - 4);
    RunOptions run_options;
    // Ends loops that a mutation has made endless.
    run_options.set_timeout_in_ms(300);
    std::vector<Tensor> outputs;
    const absl::Status status =
        session->Run(run_options, testing::FeedsOf(args), graph.fetches(), {}, &outputs, nullptr);
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << status;
    status.ok() ? ++ran : ++refused;
    // Feeds and fetches may be missing.
    const bool names = status.ok() || absl::StrContains(status.message(), "node ") ||
                       absl::StrContains(status.message(), "feed ") ||
                       absl::StrContains(status.message(), "fetch ");
    EXPECT_TRUE(names) << status;
  }
  EXPECT_GT(ran, 0);
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, RandomControlFlowTest, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace gradflow
