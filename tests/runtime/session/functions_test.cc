// Tests of calls of functions, branches and loops in a session.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/step_stats.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/graph_maker.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::AttrOf;
using ::gradflow::testing::GraphMaker;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::NodeAttrs;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The parameter is the number of threads.
class FunctionsTest : public ::testing::TestWithParam<int> {
 protected:
  GraphMaker::Body& main() { return maker_.main(); }
  GraphMaker::Body& Function(const std::string& name, int args, int results) {
    return maker_.Function(name, DataTypeVector(args, DT_INT64), DataTypeVector(results, DT_INT64));
  }
  // Adds `name`, which returns a0 < limit.
  void AddLess(const std::string& name, int args, int64_t limit) {
    GraphMaker::Body& body = maker_.Function(name, DataTypeVector(args, DT_INT64), {DT_BOOL});
    body.AddConst("limit", limit);
    body.Add("less", "Less", {"a0", "limit"});
    body.Return({"less"});
  }

  absl::Status Start() {
    SessionOptions options;
    options.tensor_memory_limit_bytes = memory_limit_;
    options.config.set_intra_op_parallelism_threads(GetParam());
    options.config.set_inter_op_parallelism_threads(GetParam());
    absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    return session_->Create(maker_.graph());
  }
  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& feeds,
                   const std::vector<std::string>& fetches,
                   const std::vector<std::string>& targets = {}) {
    if (session_ == nullptr) {
      if (absl::Status status = Start(); !status.ok()) return status;
    }
    return session_->Run(options_, feeds, fetches, targets, &outputs_, &metadata_);
  }
  // Runs and returns the fetched scalars of int64.
  std::vector<int64_t> RunInts(const std::vector<std::pair<std::string, int64_t>>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets = {}) {
    std::vector<std::pair<std::string, Tensor>> tensors;
    for (const auto& [name, value] : feeds) tensors.emplace_back(name, AsScalar<int64_t>(value));
    outputs_.clear();
    EXPECT_THAT(Run(tensors, fetches, targets), IsOk());
    std::vector<int64_t> values;
    for (const Tensor& output : outputs_) values.push_back(output.scalar<int64_t>()());
    return values;
  }
  // Adds a variable of int64, and targets "init" that set it to 0.
  void AddCounter() {
    main().Add("counter", "VarHandleOp", {},
               {{"dtype", AttrOf(DT_INT64)}, {"shape", AttrValue()}, {"shared_name", AttrOf("c")}});
    AttrValue scalar;
    scalar.mutable_shape();
    (*maker_.mutable_graph()
          ->mutable_node(maker_.graph().node_size() - 1)
          ->mutable_attr())["shape"] = scalar;
    main().AddConst("zero", 0);
    main().Add("init", "AssignVariableOp", {"counter", "zero"}, {{"dtype", AttrOf(DT_INT64)}});
    main().Add("count", "ReadVariableOp", {"counter"}, {{"dtype", AttrOf(DT_INT64)}});
  }
  // Adds a function of a resource and an int64, which adds `amount` to the variable and returns the
  // int64.
  void AddBump(const std::string& name, int64_t amount) {
    GraphMaker::Body& body = maker_.Function(name, {DT_RESOURCE, DT_INT64}, {DT_INT64});
    body.AddConst("amount", amount);
    body.Add("add", "AssignAddVariableOp", {"a0", "amount"}, {{"dtype", AttrOf(DT_INT64)}});
    body.Add("same", "Identity", {"a1"});
    body.Return({"same"}, {"add"});
  }

  GraphMaker maker_;
  int64_t memory_limit_ = 0;
  std::unique_ptr<Session> session_;
  RunOptions options_;
  RunMetadata metadata_;
  std::vector<Tensor> outputs_;
};

INSTANTIATE_TEST_SUITE_P(Threads, FunctionsTest, ::testing::Values(1, 2, 8));

// Tests of plans that take long to make.
class FunctionLimitsTest : public FunctionsTest {};

INSTANTIATE_TEST_SUITE_P(Threads, FunctionLimitsTest, ::testing::Values(2));

TEST_P(FunctionsTest, CallsThroughEveryOp) {
  GraphMaker::Body& f = Function("f", 2, 2);
  f.Add("difference", "Sub", {"a0", "a1"});
  f.Add("product", "Mul", {"a0", "a1"});
  f.Return({"difference", "product"});
  main().AddPlaceholder("x");
  main().AddPlaceholder("y");
  main().AddCall("stateful", "f", {"x", "y"});
  main().AddCall("stateless", "f", {"stateful:0", "stateful:1"}, "PartitionedCall");
  main().Add("named", "f", {"stateless:1", "y"});
  EXPECT_THAT(RunInts({{"x", 7}, {"y", 2}},
                      {"stateful:0", "stateful:1", "stateless", "stateless:1", "named:1"}),
              ElementsAre(5, 14, -9, 70, 140));
}

TEST_P(FunctionsTest, PassesArgumentsOn) {
  Function("swap", 2, 2).Return({"a1", "a0"});
  main().AddPlaceholder("x");
  main().AddPlaceholder("y");
  main().AddCall("swapped", "swap", {"x", "y"});
  main().AddCall("back", "swap", {"swapped:0", "swapped:1"});
  EXPECT_THAT(RunInts({{"x", 1}, {"y", 2}}, {"swapped:0", "swapped:1", "back:0", "back:1"}),
              ElementsAre(2, 1, 1, 2));
  // Fed outputs of a call replace the call.
  EXPECT_THAT(RunInts({{"swapped:0", 5}, {"swapped:1", 6}}, {"back:0"}), ElementsAre(6));
}

TEST_P(FunctionsTest, RunsEffectsThatNoResultNeeds) {
  AddCounter();
  AddBump("bump", 3);
  main().AddPlaceholder("x");
  main().AddCall("call", "bump", {"counter", "x"});
  main().AddCall("second", "bump", {"counter", "call"});
  RunInts({}, {}, {"init"});
  EXPECT_THAT(RunInts({{"x", 5}}, {"call"}), ElementsAre(5));
  EXPECT_THAT(RunInts({}, {"count"}), ElementsAre(3));
  EXPECT_THAT(RunInts({{"x", 5}}, {}, {"second"}), ElementsAre());
  EXPECT_THAT(RunInts({}, {"count"}), ElementsAre(9));
}

TEST_P(FunctionsTest, ControlEdgesOrderEffectsOfCalls) {
  AddCounter();
  AddBump("bump", 1);
  GraphMaker::Body& twice = maker_.Function("twice", {DT_RESOURCE, DT_INT64}, {DT_INT64});
  twice.Add("old", "ReadVariableOp", {"a0"}, {{"dtype", AttrOf(DT_INT64)}});
  twice.Add("double", "AddV2", {"old", "old"});
  twice.Add("assign", "AssignVariableOp", {"a0", "double"}, {{"dtype", AttrOf(DT_INT64)}});
  twice.Return({"a1"}, {"assign"});
  main().AddConst("x", 0);
  // (((0 + 1) * 2 + 1) * 2 + 1) * 2
  std::string last = "^init";
  for (int i = 0; i < 3; ++i) {
    const std::string bump = absl::StrCat("bump", i);
    main().AddCall(bump, "bump", {"counter", "x", last});
    const std::string twice = absl::StrCat("twice", i);
    main().AddCall(twice, "twice", {"counter", "x", "^" + bump});
    last = "^" + twice;
  }
  main().Add("end", "ReadVariableOp", {"counter", last}, {{"dtype", AttrOf(DT_INT64)}});
  for (int run = 0; run < 50; ++run) EXPECT_THAT(RunInts({}, {"end"}), ElementsAre(14));
}

TEST_P(FunctionsTest, IfRunsOneBranchOnly) {
  AddCounter();
  AddBump("one", 1);
  AddBump("hundred", 100);
  main().AddPlaceholder("x");
  main().AddPlaceholder("condition", DT_BOOL);
  main().AddIf("if", "one", "hundred", "condition", {"counter", "x"});
  RunInts({}, {}, {"init"});
  const Tensor x = AsScalar<int64_t>(8);
  for (const bool condition : {true, false, true}) {
    ASSERT_THAT(Run({{"x", x}, {"condition", AsScalar<bool>(condition)}}, {"if"}), IsOk());
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), 8);
  }
  EXPECT_THAT(RunInts({}, {"count"}), ElementsAre(102));
}

TEST_P(FunctionsTest, ConditionsMayHaveAnyType) {
  GraphMaker::Body& yes = Function("yes", 0, 1);
  yes.AddConst("one", 1);
  yes.Return({"one"});
  GraphMaker::Body& no = Function("no", 0, 1);
  no.AddConst("zero", 0);
  no.Return({"zero"});
  const std::vector<std::pair<Tensor, int>> cases = {
      {AsScalar<bool>(false), 0}, {AsScalar<int64_t>(-2), 1},   {AsScalar<float>(0), 0},
      {AsScalar<float>(0.5), 1},  {AsScalar<tstring>(""), 0},   {AsScalar<tstring>("no"), 1},
      {Tensor(DT_FLOAT, {0}), 0}, {AsTensor<bool>({false}), 1}, {AsTensor<int64_t>({0, 0}), 1},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string condition = absl::StrCat("condition", i);
    main().AddPlaceholder(condition, cases[i].first.dtype());
    main().AddIf(absl::StrCat("if", i), "yes", "no", condition, {});
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    ASSERT_THAT(Run({{absl::StrCat("condition", i), cases[i].first}}, {absl::StrCat("if", i)}),
                IsOk());
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), cases[i].second) << i;
  }
}

TEST_P(FunctionsTest, CaseRunsTheLastBranchForOtherIndexes) {
  for (int i = 0; i < 3; ++i) {
    GraphMaker::Body& branch = Function(absl::StrCat("branch", i), 1, 1);
    branch.AddConst("n", i + 1);
    branch.Add("product", "Mul", {"a0", "n"});
    branch.Return({"product"});
  }
  main().AddPlaceholder("x");
  main().AddPlaceholder("index", DT_INT32);
  main().AddCase("case", {"branch0", "branch1", "branch2"}, "index", {"x"});
  for (const auto& [index, value] : std::vector<std::pair<int, int>>{
           {0, 10}, {1, 20}, {2, 30}, {3, 30}, {-1, 30}, {1 << 30, 30}}) {
    ASSERT_THAT(Run({{"x", AsScalar<int64_t>(10)}, {"index", AsScalar<int32_t>(index)}}, {"case"}),
                IsOk());
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), value) << index;
  }
  EXPECT_THAT(
      Run({{"x", AsScalar<int64_t>(10)}, {"index", AsTensor<int32_t>({1})}}, {"case"}),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          "node 'case' (Case): Shape must be rank 0 but is rank 1: branch_index has shape [1]"));
}

TEST_P(FunctionsTest, WhileRepeatsUntilItsConditionIsFalse) {
  AddLess("less", 3, 10);
  GraphMaker::Body& body = Function("fibonacci", 3, 3);
  body.AddConst("one", 1);
  body.Add("i", "AddV2", {"a0", "one"});
  body.Add("next", "AddV2", {"a1", "a2"});
  body.Return({"i", "a2", "next"});
  main().AddPlaceholder("i");
  main().AddPlaceholder("a");
  main().AddPlaceholder("b");
  main().AddWhile("while", "less", "fibonacci", {"i", "a", "b"});
  const std::vector<std::string> fetches = {"while:0", "while:1", "while:2"};
  EXPECT_THAT(RunInts({{"i", 0}, {"a", 0}, {"b", 1}}, fetches), ElementsAre(10, 55, 89));
  EXPECT_THAT(RunInts({{"i", 9}, {"a", 3}, {"b", 4}}, fetches), ElementsAre(10, 4, 7));
  EXPECT_THAT(RunInts({{"i", 10}, {"a", 3}, {"b", 4}}, fetches), ElementsAre(10, 3, 4));
}

TEST_P(FunctionsTest, WhileMovesItsVariables) {
  // Swaps two variables, returns one twice, keeps one, and ignores one.
  AddLess("less", 6, 5);
  GraphMaker::Body& body = Function("body", 6, 6);
  body.AddConst("one", 1);
  body.Add("i", "AddV2", {"a0", "one"});
  body.Return({"i", "a2", "a1", "a3", "a5", "a5"});
  for (int i = 0; i < 6; ++i) main().AddPlaceholder(absl::StrCat("x", i));
  main().AddWhile("while", "less", "body", {"x0", "x1", "x2", "x3", "x4", "x5"});
  std::vector<std::pair<std::string, int64_t>> feeds;
  std::vector<std::string> fetches;
  for (int i = 0; i < 6; ++i) {
    feeds.emplace_back(absl::StrCat("x", i), i);
    fetches.push_back(absl::StrCat("while:", i));
  }
  EXPECT_THAT(RunInts(feeds, fetches), ElementsAre(5, 2, 1, 3, 5, 5));
  feeds[0].second = 4;
  EXPECT_THAT(RunInts(feeds, fetches), ElementsAre(5, 2, 1, 3, 5, 5));
  feeds[0].second = 1;
  EXPECT_THAT(RunInts(feeds, fetches), ElementsAre(5, 1, 2, 3, 5, 5));
  feeds[0].second = 5;
  EXPECT_THAT(RunInts(feeds, fetches), ElementsAre(5, 1, 2, 3, 4, 5));
}

TEST_P(FunctionsTest, TheConditionOfAWhileSeesTheEffectsOfTheBody) {
  AddCounter();
  GraphMaker::Body& condition = maker_.Function("condition", {DT_RESOURCE}, {DT_BOOL});
  condition.Add("count", "ReadVariableOp", {"a0"}, {{"dtype", AttrOf(DT_INT64)}});
  condition.AddConst("limit", 1000);
  condition.Add("less", "Less", {"count", "limit"});
  condition.Return({"less"});
  GraphMaker::Body& body = maker_.Function("body", {DT_RESOURCE}, {DT_RESOURCE});
  body.AddConst("seven", 7);
  body.Add("add", "AssignAddVariableOp", {"a0", "seven"}, {{"dtype", AttrOf(DT_INT64)}});
  body.Return({"a0"}, {"add"});
  main().AddWhile("while", "condition", "body", {"counter"});
  RunInts({}, {}, {"init"});
  RunInts({}, {}, {"while"});
  EXPECT_THAT(RunInts({}, {"count"}), ElementsAre(1001));
  RunInts({}, {}, {"while"});
  EXPECT_THAT(RunInts({}, {"count"}), ElementsAre(1001));
}

TEST_P(FunctionsTest, ForCountsUpAndDown) {
  GraphMaker::Body& body = maker_.Function("body", {DT_INT32, DT_INT64}, {DT_INT64});
  body.Add("i", "Cast", {"a0"}, {{"SrcT", AttrOf(DT_INT32)}, {"DstT", AttrOf(DT_INT64)}});
  body.AddConst("ten", 10);
  body.Add("shifted", "Mul", {"a1", "ten"});
  body.Add("sum", "AddV2", {"shifted", "i"});
  body.Return({"sum"});
  for (const char* const name : {"start", "limit", "delta"}) main().AddPlaceholder(name, DT_INT32);
  main().AddPlaceholder("x");
  main().AddFor("for", "body", {"start", "limit", "delta"}, {"x"});
  struct Loop {
    int start, limit, delta;
    int64_t expected;
  };
  const auto run = [&](const Loop& loop) {
    return Run({{"start", AsScalar<int32_t>(loop.start)},
                {"limit", AsScalar<int32_t>(loop.limit)},
                {"delta", AsScalar<int32_t>(loop.delta)},
                {"x", AsScalar<int64_t>(0)}},
               {"for"});
  };
  for (const Loop& loop : std::vector<Loop>{{1, 4, 1, 123},
                                            {4, 1, -1, 432},
                                            {1, 8, 3, 147},
                                            {1, 9, 3, 147},
                                            {5, 5, 1, 0},
                                            {5, 5, 0, 0},
                                            {2147483646, 2147483647, 2147483647, 2147483646}}) {
    ASSERT_THAT(run(loop), IsOk());
    EXPECT_EQ(outputs_[0].scalar<int64_t>()(), loop.expected) << loop.start << " " << loop.limit;
  }
  EXPECT_THAT(run({1, 4, -1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 'for' (For): a loop from 1 by steps of -1 never reaches 4"));
  EXPECT_THAT(run({1, 4, 0, 0}), StatusIs(absl::StatusCode::kInvalidArgument));
}

// f(n) = n <= 1 ? 1 : n + f(n - 1).
TEST_P(FunctionsTest, FunctionsMayCallThemselvesThroughBranches) {
  GraphMaker::Body& f = Function("f", 1, 1);
  GraphMaker::Body& one = Function("one", 1, 1);
  one.AddConst("one", 1);
  one.Return({"one"});
  GraphMaker::Body& step = Function("step", 1, 1);
  step.AddConst("one", 1);
  step.Add("less", "Sub", {"a0", "one"});
  step.AddCall("call", "f", {"less"});
  step.Add("sum", "AddV2", {"a0", "call"});
  step.Return({"sum"});
  f.AddConst("one", 1);
  f.Add("ends", "LessEqual", {"a0", "one"});
  f.AddIf("if", "one", "step", "ends", {"a0"});
  f.Return({"if"});
  main().AddPlaceholder("n");
  main().AddCall("call", "f", {"n"});
  EXPECT_THAT(RunInts({{"n", 1}}, {"call"}), ElementsAre(1));
  EXPECT_THAT(RunInts({{"n", 10}}, {"call"}), ElementsAre(55));
  EXPECT_THAT(RunInts({{"n", 5000}}, {"call"}), ElementsAre(5000 * 5001 / 2));
  // Each call in progress takes memory.
  session_ = nullptr;
  memory_limit_ = 1 << 20;
  EXPECT_THAT(Run({{"n", AsScalar<int64_t>(100000)}}, {"call"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ContainsRegex("out of memory for a function call: [0-9]+ calls are in "
                                     "progress within each other")));
  EXPECT_THAT(RunInts({{"n", 100}}, {"call"}), ElementsAre(5050));
}

// Loop bodies that run loops with the same condition: with one body, f(n) = n + f(0) + ... +
// f(n - 1); with two bodies, which add 1 and 10 for each iteration.
TEST_P(FunctionsTest, RecursThroughTheBodiesOfLoops) {
  GraphMaker::Body& less = maker_.Function("less", {DT_INT64, DT_INT64, DT_INT64}, {DT_BOOL});
  less.Add("less", "Less", {"a0", "a1"});
  less.Return({"less"});
  const auto add_body = [&](const std::string& name, int64_t amount, const std::string& inner) {
    GraphMaker::Body& body = Function(name, 3, 3);
    body.AddConst("zero", 0);
    body.AddConst("one", 1);
    body.AddConst("amount", amount);
    body.Add("next", "AddV2", {"a0", "one"});
    body.Add("sum", "AddV2", {"a2", "amount"});
    body.AddWhile("loop", "less", inner, {"zero", "a0", "sum"});
    body.Return({"next", "a1", "loop:2"});
  };
  add_body("alone", 1, "alone");
  add_body("ones", 1, "tens");
  add_body("tens", 10, "ones");
  main().AddPlaceholder("n");
  main().AddConst("zero", 0);
  main().AddWhile("alone_loop", "less", "alone", {"zero", "n", "zero"});
  main().AddWhile("ones_loop", "less", "ones", {"zero", "n", "zero"});
  main().AddWhile("tens_loop", "less", "tens", {"zero", "n", "zero"});
  std::vector<int64_t> alone, ones, tens;
  for (int64_t n = 0; n < 8; ++n) {
    for (std::vector<int64_t>* const values : {&alone, &ones, &tens}) values->push_back(0);
    for (int64_t i = 0; i < n; ++i) {
      alone[n] += 1 + alone[i];
      ones[n] += 1 + tens[i];
      tens[n] += 10 + ones[i];
    }
    EXPECT_THAT(RunInts({{"n", n}}, {"alone_loop:2", "ones_loop:2", "tens_loop:2"}),
                ElementsAre(alone[n], ones[n], tens[n]));
  }
}

TEST_P(FunctionsTest, ErrorsNameThePathToTheNode) {
  GraphMaker::Body& inner = Function("inner", 1, 1);
  inner.AddConst("zero", 0);
  inner.Add("quotient", "FloorDiv", {"a0", "zero"});
  inner.Return({"quotient"});
  GraphMaker::Body& outer = Function("outer", 1, 1);
  outer.AddCall("first", "inner", {"a0"});
  outer.Return({"first"});
  AddLess("less", 1, 10);
  main().AddPlaceholder("x");
  main().AddCall("call", "outer", {"x"});
  main().AddWhile("while", "less", "outer", {"x"});
  EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {"call"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'call/first/quotient' (FloorDiv): ")));
  EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {"while"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'while/first/quotient' (FloorDiv): ")));
}

TEST_P(FunctionsTest, ChecksOnlyReachedFunctions) {
  GraphMaker::Body& bad = Function("bad", 1, 1);
  bad.Add("y", "NoSuchOp", {"a0"});
  (*maker_.mutable_graph()->mutable_library()->mutable_function(0)->mutable_ret())["r0"] = "y:z:0";
  GraphMaker::Body& good = Function("good", 1, 1);
  good.Return({"a0"});
  main().AddPlaceholder("x");
  main().AddCall("bad_call", "bad", {"x"});
  main().AddCall("good_call", "good", {"x"});
  EXPECT_THAT(RunInts({{"x", 4}}, {"good_call"}), ElementsAre(4));
  EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {"bad_call"}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("node 'bad_call' (StatefulPartitionedCall): "),
                             HasSubstr("'bad'"), HasSubstr("'y'"), HasSubstr("NoSuchOp"))));
}

TEST_P(FunctionsTest, AnEmptyLoopEndsAtItsDeadline) {
  GraphMaker::Body& forever = maker_.Function("forever", {DT_BOOL}, {DT_BOOL});
  forever.Return({"a0"});
  main().AddPlaceholder("x", DT_BOOL);
  main().AddWhile("while", "forever", "forever", {"x"});
  // A slow machine may need more time to start the loop.
  absl::Status status;
  for (int timeout = 20; timeout < 20000 && !absl::StrContains(status.message(), "stopped");
       timeout *= 4) {
    options_.set_timeout_in_ms(timeout);
    status = Run({{"x", AsScalar<bool>(true)}}, {"while"});
  }
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                               HasSubstr("node 'while' (While): stopped, since ")));
  EXPECT_THAT(Run({{"x", AsScalar<bool>(false)}}, {"while"}), IsOk());
}

TEST_P(FunctionLimitsTest, FunctionBombsExhaustTheBudgetOfThePlan) {
  constexpr int kLevels = 12;
  GraphMaker::Body& leaf = Function("f0", 1, 1);
  leaf.Add("y", "Neg", {"a0"});
  leaf.Return({"y"});
  for (int level = 1; level <= kLevels; ++level) {
    GraphMaker::Body& body = Function(absl::StrCat("f", level), 1, 1);
    std::string value = "a0";
    for (int i = 0; i < 10; ++i) {
      const std::string call = absl::StrCat("call", i);
      body.AddCall(call, absl::StrCat("f", level - 1), {value});
      value = call;
    }
    body.Return({value});
  }
  main().AddPlaceholder("x");
  main().AddCall("bomb", absl::StrCat("f", kLevels), {"x"});
  // The call "small" and the calls that it makes are 11,111 calls.
  main().AddCall("small", "f4", {"x"});
  EXPECT_THAT(RunInts({{"x", 5}}, {"small"}), ElementsAre(5));
  EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {"bomb"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the functions that a run calls have more than ")));
}

// Functions of few nodes with many edges, outputs, arguments, or nodes that no result needs.
TEST_P(FunctionLimitsTest, WideFunctionsExhaustTheBudgetOfThePlan) {
  constexpr int kWidth = 300000;
  GraphMaker::Body& edges = Function("edges", 1, 1);
  edges.Add("y", "AddN", std::vector<std::string>(kWidth, "a0"), {{"N", AttrOf(int64_t{kWidth})}});
  edges.Return({"y"});
  GraphMaker::Body& outputs = Function("outputs", 1, 1);
  outputs.Add("y", "Unpack", {"a0"}, {{"num", AttrOf(int64_t{kWidth})}});
  outputs.Return({"y"});
  GraphMaker::Body& unread = Function("unread", 1, 1);
  for (int i = 0; i < kWidth; ++i) unread.Add(absl::StrCat("n", i), "Neg", {"a0"});
  unread.Return({"a0"});
  main().AddPlaceholder("x");
  for (const std::string name : {"edges", "outputs", "unread"}) {
    GraphMaker::Body& body = Function("all_" + name, 1, 1);
    std::string value = "a0";
    for (int i = 0; i < 14; ++i) {
      const std::string call = absl::StrCat("call", i);
      body.AddCall(call, name, {value});
      value = call;
    }
    body.Return({value});
    main().AddCall(name, "all_" + name, {"x"});
    EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {name}),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("the functions that a run calls have more than 4000000 nodes, "
                                   "edges and outputs in all")))
        << name;
    session_ = nullptr;
  }
}

TEST_P(FunctionLimitsTest, CallsBeyondTheBudgetForInliningRunAsPlans) {
  GraphMaker::Body& leaf = Function("f0", 1, 1);
  leaf.AddConst("one", 1);
  std::string value = "a0";
  for (int i = 0; i < 50000; ++i) {
    const std::string node = absl::StrCat("n", i);
    leaf.Add(node, "AddV2", {value, "one"});
    value = node;
  }
  leaf.Return({value});
  GraphMaker::Body& body = Function("f1", 1, 1);
  value = "a0";
  for (int i = 0; i < 6; ++i) {
    const std::string call = absl::StrCat("call", i);
    body.AddCall(call, "f0", {value});
    value = call;
  }
  body.Return({value});
  main().AddPlaceholder("x");
  main().AddCall("call", "f1", {"x"});
  EXPECT_THAT(RunInts({{"x", 1}}, {"call"}), ElementsAre(300001));
}

// Each function calls the function before it. Many nodes read the result of the last function,
// which is the result of the first.
TEST_P(FunctionLimitsTest, CallsMayBeNestedDeeply) {
  constexpr int kDepth = 5000;
  constexpr int kReaders = 50000;
  GraphMaker::Body& leaf = Function("f0", 1, 1);
  leaf.Add("y", "Neg", {"a0"});
  leaf.Return({"y"});
  for (int i = 1; i <= kDepth; ++i) {
    GraphMaker::Body& body = Function(absl::StrCat("f", i), 1, 1);
    body.AddCall("call", absl::StrCat("f", i - 1), {"a0"});
    body.Return({"call"});
  }
  main().AddPlaceholder("x");
  main().AddCall("deep", absl::StrCat("f", kDepth), {"x"});
  std::vector<std::string> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.push_back(absl::StrCat("n", i));
    main().Add(readers.back(), "Abs", {"deep"});
  }
  main().Add("sum", "AddN", readers, {{"N", AttrOf(int64_t{kReaders})}});
  EXPECT_THAT(RunInts({{"x", 3}}, {"deep", "sum"}), ElementsAre(-3, 3 * kReaders));
}

// If each call looked at all nodes of the function, this test would take far longer.
TEST_P(FunctionLimitsTest, ManyCallsOfALargeFunctionExhaustTheBudgetInTime) {
  constexpr int kNodes = 40000;
  constexpr int kCalls = 50000;
  GraphMaker::Body& f = Function("f", 1, 1);
  std::string value = "a0";
  for (int i = 0; i < kNodes; ++i) {
    const std::string node = absl::StrCat("n", i);
    f.Add(node, "Neg", {value});
    value = node;
  }
  f.Return({value});
  main().AddPlaceholder("x");
  std::vector<std::string> calls;
  for (int i = 0; i < kCalls; ++i) {
    calls.push_back(absl::StrCat("call", i));
    main().AddCall(calls.back(), "f", {"x"});
  }
  main().Add("sum", "AddN", calls, {{"N", AttrOf(int64_t{kCalls})}});
  EXPECT_THAT(Run({{"x", AsScalar<int64_t>(1)}}, {"sum"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the functions that a run calls have more than ")));
}

TEST_P(FunctionsTest, EachCallHasItsOwnRandomStream) {
  AttrValue shape;
  GraphMaker::Body& f = maker_.Function("f", {DT_INT32}, {DT_FLOAT});
  f.Add("random", "RandomUniform", {"a0"},
        {{"dtype", AttrOf(DT_FLOAT)},
         {"T", AttrOf(DT_INT32)},
         {"seed", AttrOf(int64_t{3})},
         {"seed2", AttrOf(int64_t{4})}});
  f.Return({"random"});
  main().AddPlaceholder("shape", DT_INT32);
  main().AddCall("first", "f", {"shape"});
  main().AddCall("second", "f", {"shape"});
  const Tensor four = AsTensor<int32_t>({4});
  std::vector<std::string> seen;
  for (int run = 0; run < 3; ++run) {
    ASSERT_THAT(Run({{"shape", four}}, {"first", "second"}), IsOk());
    // Equal seeds give equal streams. If both calls shared one stream, the values would differ.
    EXPECT_EQ(outputs_[0].SummarizeValue(9), outputs_[1].SummarizeValue(9));
    EXPECT_THAT(seen, Not(Contains(outputs_[0].SummarizeValue(9))));
    seen.push_back(outputs_[0].SummarizeValue(9));
  }
}

TEST_P(FunctionsTest, LoopsKeepTheirTensorsInPlace) {
  // Adds a vector to itself; a second variable is passed on.
  GraphMaker::Body& less = maker_.Function("less", {DT_INT64, DT_FLOAT, DT_FLOAT}, {DT_BOOL});
  less.AddConst("limit", 50);
  less.Add("less", "Less", {"a0", "limit"});
  less.Return({"less"});
  GraphMaker::Body& body =
      maker_.Function("body", {DT_INT64, DT_FLOAT, DT_FLOAT}, {DT_INT64, DT_FLOAT, DT_FLOAT});
  body.AddConst("one", 1);
  body.Add("i", "AddV2", {"a0", "one"});
  body.Add("sum", "AddV2", {"a1", "a2"}, {{"T", AttrOf(DT_FLOAT)}});
  body.Return({"i", "sum", "a2"});
  main().AddPlaceholder("i");
  main().AddPlaceholder("x", DT_FLOAT);
  main().AddPlaceholder("y", DT_FLOAT);
  main().AddWhile("while", "less", "body", {"i", "x", "y"});
  const Tensor y = testing::Iota<float>({10000}, 1);
  Tensor x(DT_FLOAT, {10000});
  x.flat<float>().setZero();
  const std::vector<std::pair<std::string, Tensor>> feeds = {
      {"i", AsScalar<int64_t>(0)}, {"x", x}, {"y", y}};
  ASSERT_THAT(Run(feeds, {"while:1", "while:2"}), IsOk());
  EXPECT_EQ(outputs_[0].flat<float>()(9), 500);
  EXPECT_TRUE(outputs_[1].SharesBufferWith(y));
  EXPECT_EQ(feeds[1].second.flat<float>()(9), 0);
  session_->Trim();
  outputs_.clear();
  session_->ResetPeakMemory();
  ASSERT_THAT(Run(feeds, {"while:1"}), IsOk());
  // The run needs only a new vector for the sum: the first iteration must not write to the fed
  // vector, and the later iterations compute in place.
  EXPECT_LT(session_->MemoryStats().peak_bytes_in_use, 3 * 40000);
}

// A list of the loop state grows and changes in place. A copy in each iteration would hold the
// elements twice.
TEST_P(FunctionsTest, LoopsUpdateTheirListsInPlace) {
  constexpr int64_t kElements = 20000;
  const NodeAttrs list_of_ints = {{"element_dtype", AttrOf(DT_INT64)}};
  const NodeAttrs reserves = {{"element_dtype", AttrOf(DT_INT64)},
                              {"shape_type", AttrOf(DT_INT32)}};
  GraphMaker::Body& less = maker_.Function("less", {DT_INT64, DT_VARIANT, DT_VARIANT}, {DT_BOOL});
  less.AddConst("limit", kElements);
  less.Add("less", "Less", {"a0", "limit"});
  less.Return({"less"});
  GraphMaker::Body& body = maker_.Function("body", {DT_INT64, DT_VARIANT, DT_VARIANT},
                                           {DT_INT64, DT_VARIANT, DT_VARIANT});
  body.AddConst("one", 1);
  body.Add("i", "AddV2", {"a0", "one"});
  body.Add("index", "Cast", {"a0"}, {{"SrcT", AttrOf(DT_INT64)}, {"DstT", AttrOf(DT_INT32)}});
  body.Add("pushed", "TensorListPushBack", {"a1", "a0"}, list_of_ints);
  body.Add("set", "TensorListSetItem", {"a2", "index", "i"}, list_of_ints);
  body.Return({"i", "pushed", "set"});
  const auto add_scalar = [&](const std::string& name, int32_t value) {
    AttrValue attr;
    AsScalar<int32_t>(value).AsProtoTensorContent(attr.mutable_tensor());
    main().Add(name, "Const", {}, {{"dtype", AttrOf(DT_INT32)}, {"value", attr}});
  };
  main().AddPlaceholder("start");
  add_scalar("any_shape", -1);
  add_scalar("any_number", -1);
  add_scalar("elements", kElements);
  main().Add("empty", "EmptyTensorList", {"any_shape", "any_number"}, reserves);
  main().Add("unset", "TensorListReserve", {"any_shape", "elements"}, reserves);
  main().AddWhile("while", "less", "body", {"start", "empty", "unset"});
  main().Add("length", "TensorListLength", {"while:1"});
  AttrValue shape;
  AsTensor<int32_t>({}).AsProtoTensorContent(shape.mutable_tensor());
  main().Add("shape", "Const", {}, {{"dtype", AttrOf(DT_INT32)}, {"value", shape}});
  main().Add("stack", "TensorListStack", {"while:2", "shape"}, list_of_ints);
  const auto run = [&](int64_t start, int64_t* peak) {
    session_->Trim();
    session_->ResetPeakMemory();
    ASSERT_THAT(Run({{"start", AsScalar<int64_t>(start)}}, {"length", "stack"}), IsOk());
    *peak = session_->MemoryStats().peak_bytes_in_use;
    EXPECT_EQ(outputs_[0].scalar<int32_t>()(), kElements - start);
    EXPECT_EQ(outputs_[1].flat<int64_t>()(kElements - 1), kElements);
    outputs_.clear();
    EXPECT_EQ(session_->MemoryStats().bytes_in_use, 0);
  };
  ASSERT_THAT(Start(), IsOk());
  int64_t short_peak = 0, long_peak = 0;
  run(kElements - 1, &short_peak);
  run(0, &long_peak);
  // Each element of the two lists is a tensor in a block of 128 bytes, and arrays of tensors double
  // when they grow.
  EXPECT_LT(long_peak - short_peak,
            2 * kElements * (128 + 3 * static_cast<int64_t>(sizeof(Tensor))));
}

TEST_P(FunctionsTest, ManyIterationsTakeNoMoreMemoryThanFew) {
  GraphMaker::Body& counts = maker_.Function("counts", {DT_INT64, DT_INT64}, {DT_BOOL});
  counts.Add("less", "Less", {"a0", "a1"});
  counts.Return({"less"});
  Function("same", 1, 1).Return({"a0"});
  GraphMaker::Body& body = Function("body", 2, 2);
  body.AddConst("one", 1);
  // Each iteration also makes a call.
  body.AddIf("if", "same", "same", "one", {"a0"});
  body.Add("next", "AddV2", {"if", "one"});
  body.Return({"next", "a1"});
  main().AddPlaceholder("i");
  main().AddPlaceholder("n");
  main().AddWhile("while", "counts", "body", {"i", "n"});
  int64_t peaks[2] = {};
  for (int run = 0; run < 2; ++run) {
    const int64_t n = run == 0 ? 10 : 100000;
    EXPECT_THAT(RunInts({{"i", 0}, {"n", n}}, {"while"}), ElementsAre(n));
    peaks[run] = session_->MemoryStats().peak_bytes_in_use;
  }
  // Each thread may cache small blocks.
  EXPECT_LT(peaks[1], peaks[0] + (1 << 18));
}

TEST_P(FunctionsTest, StoppedLoopsReleaseTheirMemory) {
  GraphMaker::Body& forever = maker_.Function("forever", {DT_FLOAT, DT_FLOAT}, {DT_BOOL});
  AttrValue attr;
  AsScalar<bool>(true).AsProtoTensorContent(attr.mutable_tensor());
  forever.Add("true", "Const", {}, {{"dtype", AttrOf(DT_BOOL)}, {"value", attr}});
  forever.Return({"true"});
  GraphMaker::Body& body = maker_.Function("body", {DT_FLOAT, DT_FLOAT}, {DT_FLOAT, DT_FLOAT});
  body.Add("sum", "AddV2", {"a0", "a1"}, {{"T", AttrOf(DT_FLOAT)}});
  body.Add("difference", "Sub", {"a0", "a1"}, {{"T", AttrOf(DT_FLOAT)}});
  body.Return({"sum", "difference"});
  GraphMaker::Body& outer = maker_.Function("outer", {DT_FLOAT, DT_FLOAT}, {DT_FLOAT, DT_FLOAT});
  outer.AddWhile("loop", "forever", "body", {"a0", "a1"});
  outer.Return({"loop:1", "loop:0"});
  main().AddPlaceholder("x", DT_FLOAT);
  main().AddWhile("while", "forever", "outer", {"x", "x"});
  options_.set_timeout_in_ms(30);
  ASSERT_THAT(Start(), IsOk());
  for (int run = 0; run < 3; ++run) {
    EXPECT_THAT(Run({{"x", testing::Iota<float>({10000}, 1)}}, {"while"}),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("node 'while")));
    EXPECT_EQ(session_->MemoryStats().bytes_in_use, 0);
  }
}

TEST_P(FunctionsTest, ConcurrentRunsShareAPlanWithLoops) {
  // while i < n: x = x * 3 + i if x is even, else x + i, with the loop within a loop.
  GraphMaker::Body& counts = maker_.Function("counts", DataTypeVector(3, DT_INT64), {DT_BOOL});
  counts.Add("less", "Less", {"a0", "a1"});
  counts.Return({"less"});
  GraphMaker::Body& triple = Function("triple", 1, 1);
  triple.AddConst("three", 3);
  triple.Add("product", "Mul", {"a0", "three"});
  triple.Return({"product"});
  Function("same", 1, 1).Return({"a0"});
  GraphMaker::Body& body = Function("body", 3, 3);
  body.AddConst("one", 1);
  body.AddConst("two", 2);
  body.Add("i", "AddV2", {"a0", "one"});
  body.Add("odd", "FloorMod", {"a2", "two"});
  body.AddIf("if", "same", "triple", "odd", {"a2"});
  body.Add("x", "AddV2", {"if", "a0"});
  body.Return({"i", "a1", "x"});
  GraphMaker::Body& outer = Function("outer", 3, 3);
  outer.AddConst("zero", 0);
  outer.AddConst("one", 1);
  outer.Add("i", "AddV2", {"a0", "one"});
  outer.AddWhile("loop", "counts", "body", {"zero", "a1", "a2"});
  outer.Return({"i", "a1", "loop:2"});
  main().AddPlaceholder("n");
  main().AddPlaceholder("x");
  main().AddConst("zero", 0);
  main().AddWhile("while", "counts", "outer", {"zero", "n", "x"});
  const auto expected = [](int64_t n, int64_t x) {
    for (int64_t i = 0; i < n * n; ++i) x = (x % 2 == 0 ? 3 * x : x) + i % n;
    return x;
  };
  ASSERT_THAT(Start(), IsOk());
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t run = 0; run < 50; ++run) {
        const int64_t n = (thread + run) % 6, x = 10 * thread + run;
        std::vector<Tensor> outputs;
        ASSERT_THAT(session_->Run({{"n", AsScalar<int64_t>(n)}, {"x", AsScalar<int64_t>(x)}},
                                  {"while:2"}, {}, &outputs),
                    IsOk());
        EXPECT_EQ(outputs[0].scalar<int64_t>()(), expected(n, x)) << n << " " << x;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(FunctionsTest, TracesNameThePathToEachNode) {
  AddLess("less", 1, 3);
  GraphMaker::Body& body = Function("body", 1, 1);
  body.AddConst("one", 1);
  body.Add("sum", "AddV2", {"a0", "one"});
  body.Return({"sum"});
  GraphMaker::Body& outer = Function("outer", 1, 1);
  outer.AddWhile("loop", "less", "body", {"a0"});
  outer.Return({"loop"});
  main().AddPlaceholder("x");
  main().AddCall("call", "outer", {"x"});
  options_.set_trace_level(RunOptions::FULL_TRACE);
  ASSERT_THAT(Run({{"x", AsScalar<int64_t>(0)}}, {"call"}), IsOk());
  std::map<std::string, int> counts;
  for (const NodeExecStats& node : metadata_.step_stats().dev_stats(0).node_stats()) {
    ++counts[node.node_name()];
  }
  EXPECT_EQ(counts["call/loop"], 1);
  EXPECT_EQ(counts["call/loop/sum"], 3);
  EXPECT_EQ(counts["call/loop/less"], 4);
}

}  // namespace
}  // namespace gradflow
