// Tests of version 1 control flow in a session: Switch, Merge, and loops of Enter and Exit nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/variable.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/graph_maker.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AttrOf;
using ::gradflow::testing::GraphMaker;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::NodeAttrs;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Names = std::vector<std::string>;

// The parameter is the number of threads.
class ControlFlowTest : public ::testing::TestWithParam<int> {
 protected:
  GraphMaker::Body& main() { return maker_.main(); }

  // ---- Branches ----

  // Adds a Switch of `data`, and its outputs as Identity nodes "name/f" and "name/t".
  void AddSwitch(const std::string& name, const std::string& data, const std::string& pred,
                 DataType dtype = DT_INT64) {
    main().Add(name, "Switch", {data, pred}, {{"T", AttrOf(dtype)}});
    main().Add(name + "/f", "Identity", {name}, {{"T", AttrOf(dtype)}});
    main().Add(name + "/t", "Identity", {name + ":1"}, {{"T", AttrOf(dtype)}});
  }
  void AddMerge(const std::string& name, const Names& inputs) {
    Names data;
    for (const std::string& input : inputs) {
      if (input[0] != '^') data.push_back(input);
    }
    main().Add(name, "Merge", inputs, {{"N", AttrOf(static_cast<int64_t>(data.size()))}});
  }
  void AddConstAfter(const std::string& name, int64_t value, const std::string& control) {
    main().AddConst(name, value);
    maker_.mutable_graph()->mutable_node()->rbegin()->add_input("^" + control);
  }

  // ---- Loops ----

  void AddEnter(const std::string& name, const std::string& input, const std::string& frame,
                bool is_constant = false) {
    main().Add(name, "Enter", {input},
               {{"frame_name", AttrOf(frame.c_str())}, {"is_constant", AttrOf(is_constant)}});
  }
  // Adds the variable `name` of a loop, whose first value is `input`: the nodes name/enter,
  // name/merge, name/switch, name/body (an Identity), name/next and name/exit. `next` is the name
  // of the value of the next iteration.
  void AddVariable(const std::string& name, const std::string& input, const std::string& frame,
                   const std::string& cond, const std::string& next) {
    AddEnter(name + "/enter", input, frame);
    AddMerge(name + "/merge", {name + "/enter", name + "/next"});
    main().Add(name + "/switch", "Switch", {name + "/merge", cond});
    main().Add(name + "/body", "Identity", {name + "/switch:1"});
    main().Add(name + "/next", "NextIteration", {next});
    main().Add(name + "/exit", "Exit", {name + "/switch"});
  }
  // Adds a condition name/cond: value < limit.
  void AddLess(const std::string& name, const std::string& value, const std::string& limit) {
    main().Add(name + "/less", "Less", {value, limit});
    main().Add(name + "/cond", "LoopCond", {name + "/less"});
  }
  // Adds a loop that adds 1 to `i` while it is less than `limit`, and doubles `x`.
  void AddDoubling(const std::string& frame = "loop") {
    main().AddPlaceholder("x");
    main().AddPlaceholder("limit");
    main().AddConst("zero", 0);
    AddEnter("limit/enter", "limit", frame, true);
    AddVariable("i", "zero", frame, "loop/cond", "i/plus");
    AddVariable("v", "x", frame, "loop/cond", "v/twice");
    AddLess("loop", "i/merge", "limit/enter");
    AddConstAfter("one", 1, "i/body");
    main().Add("i/plus", "AddV2", {"i/body", "one"});
    main().Add("v/twice", "AddV2", {"v/body", "v/body"});
  }

  // Adds a function f(a0, a1), which doubles a0 while it is less than a1, and returns both.
  void AddFunctionWithLoop() {
    GraphMaker::Body& body = maker_.Function("f", {DT_INT64, DT_INT64}, {DT_INT64, DT_INT64});
    const auto enter = [&](const std::string& name, const std::string& input, bool is_constant) {
      body.Add(name, "Enter", {input},
               {{"frame_name", AttrOf("loop")}, {"is_constant", AttrOf(is_constant)}});
    };
    enter("limit", "a1", true);
    enter("enter", "a0", false);
    body.Add("merge", "Merge", {"enter", "a0"}, {{"N", AttrOf(int64_t{2})}});
    body.Add("less", "Less", {"merge", "limit"});
    body.Add("cond", "LoopCond", {"less"});
    body.Add("switch", "Switch", {"merge", "cond"});
    body.Add("twice", "AddV2", {"switch:1", "switch:1"});
    body.Add("next", "NextIteration", {"twice"});
    body.Add("exit", "Exit", {"switch"});
    body.Return({"exit", "a1"});
    for (NodeDef& node :
         *maker_.mutable_graph()->mutable_library()->mutable_function(0)->mutable_node_def()) {
      if (node.name() == "merge") node.set_input(1, "next:output:0");
    }
  }

  // ---- Variables ----

  static NodeAttrs ScalarVariable() {
    AttrValue scalar;
    scalar.mutable_shape();
    return {{"dtype", AttrOf(DT_INT64)}, {"shape", scalar}};
  }
  // Adds a variable "total", the target "init", which sets it to 100, and its "value".
  void AddTotal() {
    main().Add("total", "VarHandleOp", {}, ScalarVariable());
    main().AddConst("start", 100);
    main().Add("init", "AssignVariableOp", {"total", "start"}, {{"dtype", AttrOf(DT_INT64)}});
    main().Add("value", "ReadVariableOp", {"total"}, {{"dtype", AttrOf(DT_INT64)}});
  }

  absl::Status Start() {
    SessionOptions options;
    options.config.set_intra_op_parallelism_threads(GetParam());
    options.config.set_inter_op_parallelism_threads(GetParam());
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    return session_->Create(maker_.graph());
  }
  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& feeds, const Names& fetches,
                   const Names& targets = {}) {
    if (session_ == nullptr) {
      if (absl::Status status = Start(); !status.ok()) return status;
    }
    return session_->Run(feeds, fetches, targets, &outputs_);
  }
  // Runs and returns the fetched scalars of int64.
  std::vector<int64_t> RunInts(const std::vector<std::pair<std::string, Tensor>>& feeds,
                               const Names& fetches) {
    const absl::Status status = Run(feeds, fetches);
    EXPECT_THAT(status, IsOk());
    std::vector<int64_t> values;
    if (!status.ok()) return values;
    for (const Tensor& output : outputs_) values.push_back(output.scalar<int64_t>()());
    return values;
  }
  static std::pair<std::string, Tensor> Feed(const std::string& name, int64_t value) {
    return {name, AsScalar<int64_t>(value)};
  }
  static std::pair<std::string, Tensor> Bool(const std::string& name, bool value) {
    return {name, AsScalar<bool>(value)};
  }

  GraphMaker maker_;
  std::unique_ptr<Session> session_;
  std::vector<Tensor> outputs_;
};

TEST_P(ControlFlowTest, MergeReturnsTheBranchThatIsTaken) {
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "x", "p");
  main().Add("neg", "Neg", {"s/f"});
  main().Add("twice", "AddV2", {"s/t", "s/t"});
  AddMerge("m", {"neg", "twice"});
  main().Add("index", "Cast", {"m:1"}, {{"SrcT", AttrOf(DT_INT32)}, {"DstT", AttrOf(DT_INT64)}});
  main().Add("after", "AddV2", {"m", "x"});
  EXPECT_THAT(RunInts({Feed("x", 5), Bool("p", false)}, {"m", "index", "after"}),
              ElementsAre(-5, 0, 0));
  EXPECT_THAT(RunInts({Feed("x", 5), Bool("p", true)}, {"m", "index", "after"}),
              ElementsAre(10, 1, 15));
}

TEST_P(ControlFlowTest, ConstantsAndAssertsOfTheOtherBranchDoNotRun) {
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "p", "p", DT_BOOL);
  AddConstAfter("one", 1, "s/t");
  AddConstAfter("two", 2, "s/f");
  main().Add("sum", "AddV2", {"one", "one"});
  main().Add("fails", "Assert", {"s/f", "two"},
             {{"T", AttrOf(DataTypeVector{DT_INT64})}, {"summarize", AttrOf(int64_t{3})}});
  main().Add("checked", "Identity", {"two", "^fails"});
  AddMerge("m", {"checked", "sum"});
  EXPECT_THAT(RunInts({Bool("p", true)}, {"m"}), ElementsAre(2));
  EXPECT_THAT(Run({Bool("p", false)}, {"m"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'fails' (Assert)")));
}

TEST_P(ControlFlowTest, ControlEdgesCarryDeadnessThroughNodesWithoutOutputs) {
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "p", "p", DT_BOOL);
  main().Add("group", "NoOp", {"^s/t"});
  main().Add("group2", "NoOp", {"^group"});
  AddConstAfter("one", 1, "group2");
  AddConstAfter("two", 2, "s/f");
  AddMerge("m", {"two", "one"});
  // Runs in any case.
  main().Add("trigger", "ControlTrigger", {"^group", "^s/f"});
  AddConstAfter("three", 3, "trigger");
  EXPECT_THAT(RunInts({Bool("p", true)}, {"m", "three"}), ElementsAre(1, 3));
  EXPECT_THAT(RunInts({Bool("p", false)}, {"m", "three"}), ElementsAre(2, 3));
}

TEST_P(ControlFlowTest, FrozenVariablesOfTheOtherBranchAreNotRead) {
  AddTotal();
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "p", "p", DT_BOOL);
  main().Add("read", "ReadVariableOp", {"total", "^s/t"}, {{"dtype", AttrOf(DT_INT64)}});
  AddConstAfter("other", 2, "s/f");
  AddMerge("m", {"read", "other"});
  ASSERT_THAT(Run({}, {}, {"init"}), IsOk());
  const auto variable = session_->resources()->Lookup<Variable>("", "total");
  ASSERT_THAT(variable, IsOk());
  (*variable)->Freeze();
  EXPECT_THAT(RunInts({Bool("p", true)}, {"m", "value"}), ElementsAre(100, 100));
  EXPECT_THAT(RunInts({Bool("p", false)}, {"m", "value"}), ElementsAre(2, 100));
}

// If each Switch looked for its condition along the whole chain, this test would take far longer.
TEST_P(ControlFlowTest, LongChainsOfConditionsTakeLinearTime) {
  constexpr int kNodes = 50000;
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  std::string condition = "p";
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = absl::StrCat("p", i);
    main().Add(name, "Identity", {condition}, {{"T", AttrOf(DT_BOOL)}});
    condition = name;
  }
  Names taken;
  for (int i = 0; i < kNodes; ++i) {
    main().Add(absl::StrCat("s", i), "Switch", {"x", condition});
    taken.push_back(absl::StrCat("s", i, ":1"));
  }
  main().Add("sum", "AddN", taken, {{"N", AttrOf(int64_t{kNodes})}});
  EXPECT_THAT(RunInts({Feed("x", 2), Bool("p", true)}, {"sum"}), ElementsAre(2 * kNodes));
}

TEST_P(ControlFlowTest, FetchesOfTheOtherBranchAreErrors) {
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "x", "p");
  EXPECT_THAT(RunInts({Feed("x", 5), Bool("p", true)}, {"s/t"}), ElementsAre(5));
  for (const char* fetch : {"s/f", "s:0"}) {
    EXPECT_THAT(Run({Feed("x", 5), Bool("p", true)}, {fetch}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("it is in a branch that was not taken")));
  }
  EXPECT_THAT(Run({Feed("x", 5), Bool("p", true)}, {}, {"s/f"}), IsOk());
}

TEST_P(ControlFlowTest, BranchesMayBeNested) {
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  main().AddPlaceholder("q", DT_BOOL);
  AddSwitch("s", "x", "p");
  AddSwitch("q_in", "q", "p", DT_BOOL);
  AddSwitch("inner", "s/t", "q_in/t");
  AddConstAfter("ten", 10, "inner/f");
  main().Add("inner_sum", "AddV2", {"inner/f", "ten"});
  AddMerge("inner_m", {"inner_sum", "inner/t"});
  AddConstAfter("hundred", 100, "inner_m");
  main().Add("outer_sum", "AddV2", {"inner_m", "hundred"});
  AddMerge("m", {"s/f", "outer_sum"});
  AddConstAfter("after", 7, "m");
  for (const bool p : {false, true}) {
    for (const bool q : {false, true}) {
      const int64_t expected = !p ? 1 : q ? 101 : 111;
      EXPECT_THAT(RunInts({Feed("x", 1), Bool("p", p), Bool("q", q)}, {"m", "after"}),
                  ElementsAre(expected, 7));
    }
  }
}

TEST_P(ControlFlowTest, SwitchNTakesTheLastBranchForOtherIndexes) {
  main().AddPlaceholder("x");
  main().AddPlaceholder("i", DT_INT32);
  main().Add("s", "_SwitchN", {"x", "i"}, {{"num_outs", AttrOf(int64_t{3})}});
  main().Add("a", "Neg", {"s"});
  main().Add("b", "AddV2", {"s:1", "s:1"});
  main().Add("c", "Square", {"s:2"});
  AddMerge("m", {"a", "b", "c"});
  AddConstAfter("after", 7, "m");
  const auto run = [&](int32_t i) {
    return RunInts({Feed("x", 5), {"i", AsScalar<int32_t>(i)}}, {"m", "after"});
  };
  EXPECT_THAT(run(0), ElementsAre(-5, 7));
  EXPECT_THAT(run(1), ElementsAre(10, 7));
  EXPECT_THAT(run(2), ElementsAre(25, 7));
  EXPECT_THAT(run(3), ElementsAre(25, 7));
  EXPECT_THAT(run(-1), ElementsAre(25, 7));
}

TEST_P(ControlFlowTest, MergeTakesTheFirstOfSeveralValues) {
  main().AddConst("a", 1);
  main().AddConst("b", 2);
  AddMerge("m", {"a", "b", "a"});
  EXPECT_THAT(RunInts({}, {"m"}), ElementsAre(1));
}

TEST_P(ControlFlowTest, CallsInTheOtherBranchDoNotRun) {
  GraphMaker::Body& body = maker_.Function("f", {DT_INT64}, {DT_INT64});
  body.Add("no", "Less", {"a0", "a0"});
  body.Add("fails", "Assert", {"no", "a0"},
           {{"T", AttrOf(DataTypeVector{DT_INT64})}, {"summarize", AttrOf(int64_t{3})}});
  body.Return({"a0"}, {"fails"});
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "x", "p");
  main().AddCall("call", "f", {"s/f"});
  AddMerge("m", {"call", "s/t"});
  EXPECT_THAT(RunInts({Feed("x", 5), Bool("p", true)}, {"m"}), ElementsAre(5));
  EXPECT_THAT(Run({Feed("x", 5), Bool("p", false)}, {"m"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'call/fails' (Assert)")));
}

TEST_P(ControlFlowTest, LoopsRunWhileTheConditionIsTrue) {
  AddDoubling();
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 4)}, {"v/exit", "i/exit"}), ElementsAre(48, 4));
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 0)}, {"v/exit", "i/exit"}), ElementsAre(3, 0));
  // A variable without Exit.
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 1)}, {"v/exit"}), ElementsAre(6));
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 2)}, {"i/exit"}), ElementsAre(2));
}

TEST_P(ControlFlowTest, OtherNodesReadAndWaitForLoops) {
  AddDoubling();
  main().Add("sum", "AddV2", {"v/exit", "x"});
  AddConstAfter("after", 7, "i/exit");
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 4)}, {"sum", "after"}), ElementsAre(51, 7));
}

TEST_P(ControlFlowTest, LoopsMayBeNested) {
  // for (i = 0; i < limit; ++i) for (j = 0; j < i; ++j) sum += j;
  main().AddPlaceholder("limit");
  main().AddConst("zero", 0);
  AddEnter("limit/enter", "limit", "outer", true);
  AddVariable("i", "zero", "outer", "outer/cond", "i/plus");
  AddVariable("sum", "zero", "outer", "outer/cond", "inner_sum/exit");
  AddLess("outer", "i/merge", "limit/enter");
  AddConstAfter("one", 1, "i/body");
  main().Add("i/plus", "AddV2", {"i/body", "one"});
  AddConstAfter("inner_zero", 0, "i/body");
  AddEnter("i/in", "i/body", "inner", true);
  AddVariable("j", "inner_zero", "inner", "inner/cond", "j/plus");
  AddVariable("inner_sum", "sum/body", "inner", "inner/cond", "inner_sum/plus");
  AddLess("inner", "j/merge", "i/in");
  AddEnter("one/in", "one", "inner", true);
  main().Add("j/plus", "AddV2", {"j/body", "one/in"});
  main().Add("inner_sum/plus", "AddV2", {"inner_sum/body", "j/body"});
  EXPECT_THAT(RunInts({Feed("limit", 5)}, {"sum/exit"}), ElementsAre(10));
  EXPECT_THAT(RunInts({Feed("limit", 0)}, {"sum/exit"}), ElementsAre(0));
}

TEST_P(ControlFlowTest, BodiesMayHaveBranchesAndLoopsMayBeInBranches) {
  // if (p) for (i = 0; i < limit; ++i) x = x odd ? 3 * x + 1 : x / 2;
  main().AddPlaceholder("x");
  main().AddPlaceholder("limit");
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("x_in", "x", "p");
  AddSwitch("limit_in", "limit", "p");
  AddConstAfter("zero", 0, "x_in/t");
  AddEnter("limit/enter", "limit_in/t", "loop", true);
  AddVariable("i", "zero", "loop", "loop/cond", "i/plus");
  AddVariable("v", "x_in/t", "loop", "loop/cond", "v/m");
  AddLess("loop", "i/merge", "limit/enter");
  AddConstAfter("one", 1, "i/body");
  main().Add("i/plus", "AddV2", {"i/body", "one"});
  AddConstAfter("two", 2, "i/body");
  main().Add("rest", "FloorMod", {"v/body", "two"});
  main().Add("odd", "Equal", {"rest", "one"});
  AddSwitch("v_in", "v/body", "odd");
  AddConstAfter("three", 3, "v_in/t");
  AddConstAfter("plus", 1, "v_in/t");
  AddConstAfter("half", 2, "v_in/f");
  main().Add("times", "Mul", {"v_in/t", "three"});
  main().Add("odd_next", "AddV2", {"times", "plus"});
  main().Add("even_next", "FloorDiv", {"v_in/f", "half"});
  AddMerge("v/m", {"even_next", "odd_next"});
  AddMerge("result", {"x_in/f", "v/exit"});
  EXPECT_THAT(RunInts({Feed("x", 7), Feed("limit", 4), Bool("p", true)}, {"result"}),
              ElementsAre(17));
  EXPECT_THAT(RunInts({Feed("x", 7), Feed("limit", 4), Bool("p", false)}, {"result"}),
              ElementsAre(7));
}

TEST_P(ControlFlowTest, UnconnectedLoopsOfOneFrameAreSeparate) {
  AddDoubling();
  main().AddConst("ten", 10);
  AddEnter("ten/enter", "ten", "loop", true);
  AddVariable("k", "limit", "loop", "second/cond", "k/plus");
  AddLess("second", "k/merge", "ten/enter");
  AddEnter("one/enter", "zero", "loop", true);
  AddConstAfter("three", 3, "k/body");
  main().Add("k/plus", "AddV2", {"k/body", "three"});
  // A frame without a loop.
  AddEnter("once/enter", "x", "loop", true);
  main().Add("once", "Neg", {"once/enter"});
  main().Add("once/exit", "Exit", {"once"});
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 2)}, {"k/exit", "v/exit", "once/exit"}),
              ElementsAre(11, 12, -3));
}

TEST_P(ControlFlowTest, NodesAfterTheConditionRunAtTheEnd) {
  AddDoubling();
  main().Add("last", "Neg", {"v/switch"});
  main().Add("sum", "AddV2", {"last", "limit/enter"});
  main().Add("sum/exit", "Exit", {"sum"});
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 2)}, {"sum/exit", "v/exit"}),
              ElementsAre(-10, 12));
}

TEST_P(ControlFlowTest, LoopsOfFunctionsRun) {
  AddFunctionWithLoop();
  main().AddPlaceholder("x");
  main().AddPlaceholder("limit");
  main().AddCall("call", "f", {"x", "limit"});
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 40)}, {"call"}), ElementsAre(48));
}

TEST_P(ControlFlowTest, BodiesAndConditionsOfWhileMayHaveLoops) {
  // while (f(x, 100) < limit) x = f(x, limit);
  AddFunctionWithLoop();
  GraphMaker::Body& condition = maker_.Function("cond", {DT_INT64, DT_INT64}, {DT_BOOL});
  condition.AddConst("hundred", 100);
  condition.AddCall("f", "f", {"a0", "hundred"});
  condition.Add("less", "Less", {"f", "a1"});
  condition.Return({"less"});
  main().AddPlaceholder("x");
  main().AddPlaceholder("limit");
  main().AddWhile("while", "cond", "f", {"x", "limit"});
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 1000)}, {"while"}), ElementsAre(1536));
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 10)}, {"while"}), ElementsAre(3));
}

TEST_P(ControlFlowTest, LoopsChangeVariables) {
  main().Add("total", "VariableV2", {}, ScalarVariable());
  main().AddConst("start", 100);
  main().Add("init", "Assign", {"total", "start"});
  AddDoubling();
  main().Add("total/enter", "RefEnter", {"total"},
             {{"frame_name", AttrOf("loop")}, {"is_constant", AttrOf(true)}});
  main().Add("add", "AssignAdd", {"total/enter", "v/body"});
  // The value of the variable in the loop.
  main().Add("read", "Identity", {"total/enter", "^add"});
  AddVariable("last", "x", "loop", "loop/cond", "read");
  ASSERT_THAT(Run({}, {}, {"init"}), IsOk());
  EXPECT_THAT(RunInts({Feed("x", 3), Feed("limit", 3)}, {"last/exit"}), ElementsAre(121));
  EXPECT_THAT(RunInts({}, {"total"}), ElementsAre(121));
}

TEST_P(ControlFlowTest, FetchedReferencesWaitForTargetsOutsideOfBranches) {
  main().Add("total", "VariableV2", {}, ScalarVariable());
  main().AddConst("start", 100);
  main().Add("init", "Assign", {"total", "start"});
  main().AddPlaceholder("x");
  main().AddPlaceholder("p", DT_BOOL);
  AddSwitch("s", "x", "p");
  main().Add("late_0", "Neg", {"x"});
  for (int i = 1; i < 100; ++i) {
    main().Add(absl::StrCat("late_", i), "Neg", {absl::StrCat("late_", i - 1)});
  }
  main().Add("add", "AssignAdd", {"total", "late_99"});
  ASSERT_THAT(Run({}, {}, {"init"}), IsOk());
  // The branch "s/t" is not taken.
  ASSERT_THAT(Run({Feed("x", 5), Bool("p", false)}, {"total"}, {"add", "s/t"}), IsOk());
  EXPECT_EQ(outputs_[0].scalar<int64_t>()(), 105);
}

TEST_P(ControlFlowTest, EffectsOfLoopsRunAsTargets) {
  AddTotal();
  AddDoubling();
  main().Add(
      "total/enter", "Enter", {"total"},
      {{"T", AttrOf(DT_RESOURCE)}, {"frame_name", AttrOf("loop")}, {"is_constant", AttrOf(true)}});
  main().Add("add", "AssignAddVariableOp", {"total/enter", "v/body"},
             {{"dtype", AttrOf(DT_INT64)}});
  ASSERT_THAT(Run({}, {}, {"init"}), IsOk());
  ASSERT_THAT(Run({Feed("x", 3), Feed("limit", 3)}, {}, {"add"}), IsOk());
  EXPECT_THAT(RunInts({}, {"value"}), ElementsAre(121));
}

TEST_P(ControlFlowTest, EndlessLoopsEndAtTheirDeadline) {
  AddDoubling();
  // The counter does not change.
  AddVariable("k", "zero", "endless", "endless/cond", "k/body");
  AddEnter("limit/endless", "limit", "endless", true);
  AddLess("endless", "k/merge", "limit/endless");
  ASSERT_THAT(Start(), IsOk());
  // A slow machine may need more time to reach the loop.
  absl::Status status;
  for (int timeout = 20; timeout < 20000 && !absl::StrContains(status.message(), "node 'endless/");
       timeout *= 4) {
    RunOptions options;
    options.set_timeout_in_ms(timeout);
    status = session_->Run(options, {Feed("limit", 1)}, {"k/exit"}, {}, &outputs_, nullptr);
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("node 'endless/")));
}

TEST_P(ControlFlowTest, LoopsAreNested500DeepAtMost) {
  main().AddPlaceholder("x");
  std::string inner = "x";
  for (int i = 0; i <= 500; ++i) {
    AddEnter(absl::StrCat("e", i), inner, "f");
    inner = absl::StrCat("e", i);
  }
  const auto add_exits = [&](const std::string& name, const std::string& input, int count) {
    std::string value = input;
    for (int i = 0; i < count; ++i) {
      main().Add(absl::StrCat(name, i), "Exit", {value});
      value = absl::StrCat(name, i);
    }
  };
  add_exits("a", "e499", 500);
  add_exits("b", "e500", 501);
  EXPECT_THAT(RunInts({Feed("x", 3)}, {"a499"}), ElementsAre(3));
  EXPECT_THAT(Run({Feed("x", 3)}, {"b500"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 500 loops are nested within each other")));
}

TEST_P(ControlFlowTest, TracesNameTheNodesOfLoops) {
  AddDoubling();
  ASSERT_THAT(Start(), IsOk());
  RunOptions options;
  options.set_trace_level(RunOptions::FULL_TRACE);
  RunMetadata metadata;
  ASSERT_THAT(session_->Run(options, {Feed("x", 3), Feed("limit", 4)}, {"v/exit"}, {}, &outputs_,
                            &metadata),
              IsOk());
  std::map<std::string, int> counts;
  for (const NodeExecStats& node : metadata.step_stats().dev_stats(0).node_stats()) {
    ++counts[node.node_name()];
  }
  EXPECT_EQ(counts["v/twice"], 4);
  EXPECT_EQ(counts["loop/less"], 5);
  EXPECT_EQ(counts["loop/cond"], 1);
}

TEST_P(ControlFlowTest, LoopsThatAreNotWellFormedAreErrorsThatNameANode) {
  AddDoubling();
  main().Add("reads", "AddV2", {"v/body", "x"});
  main().Add("reads/exit", "Exit", {"v/body"});
  main().Add("index", "Identity", {"v/merge:1"}, {{"T", AttrOf(DT_INT32)}});
  main().Add("outside", "Exit", {"x"});
  AddEnter("alone", "x", "other");
  AddMerge("alone/merge", {"alone", "alone/next"});
  main().Add("alone/next", "NextIteration", {"alone/merge"});
  main().Add("alone/exit", "Exit", {"alone/merge"});
  const struct {
    const char* fetch;
    const char* error;
  } cases[] = {
      {"reads",
       "node 'reads' (AddV2): it has inputs from different frames: 'x:0' is outside of all "
       "loops, but 'v/body' is in loop 'loop'"},
      {"reads/exit", "node 'reads/exit' (Exit): an Exit must read the false output"},
      {"v/body", "node 'v/body' (Identity): output 0 cannot be fetched: it is in loop 'loop'"},
      {"v/enter", "node 'v/enter' (Enter): output 0 cannot be fetched: it is in loop 'loop'"},
      {"outside", "node 'outside' (Exit): the node is outside of all loops"},
      {"alone/exit", "no LoopCond is connected with the node in loop 'other'"},
  };
  for (const auto& test : cases) {
    EXPECT_THAT(Run({Feed("x", 3), Feed("limit", 4)}, {test.fetch}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.error)))
        << test.fetch;
  }
}

TEST_P(ControlFlowTest, FeedsInLoopsAreErrors) {
  AddDoubling();
  EXPECT_THAT(
      Run({Feed("x", 3), Feed("limit", 4), Feed("v/twice", 4)}, {"v/exit"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node 'v/next' (NextIteration)")));
}

INSTANTIATE_TEST_SUITE_P(Threads, ControlFlowTest, ::testing::Values(1, 4));

}  // namespace
}  // namespace gradflow
