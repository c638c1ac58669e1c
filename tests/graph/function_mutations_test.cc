// Tests of instances of untrusted functions: random mutations of a library end with a status, in
// bounded time and memory.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"
#include "tests/testing/mutate.h"

namespace gradflow {
namespace {

using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::MutationRandom;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::testing::HasSubstr;

// A library with all forms of inputs, attributes and calls.
constexpr char kLibrary[] = R"(
  node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
  node { name: 'call' op: 'outer' input: [ 'x', 'x' ] }
  node { name: 'while' op: 'While' input: 'x'
         attr { key: 'T' value { list { type: DT_FLOAT } } }
         attr { key: 'cond' value { func { name: 'cond' } } }
         attr { key: 'body' value { func { name: 'step' } } } }
  library {
    function {
      signature { name: 'twice' input_arg { name: 'x' type_attr: 'T' }
                  output_arg { name: 'y' type_attr: 'T' }
                  attr { name: 'T' type: 'type' default_value { type: DT_FLOAT } } }
      node_def { name: 'sum' op: 'AddV2' input: [ 'x', 'x' ]
                 attr { key: 'T' value { placeholder: 'T' } } }
      ret { key: 'y' value: 'sum:z:0' } }
    function {
      signature { name: 'outer' input_arg { name: 'a' type: DT_FLOAT number_attr: 'N' }
                  output_arg { name: 'y' type: DT_FLOAT }
                  output_arg { name: 'all' type_list_attr: 'U' } control_output: 'done'
                  attr { name: 'N' type: 'int' default_value { i: 2 } }
                  attr { name: 'U' type: 'list(type)'
                         default_value { list { type: [ DT_FLOAT, DT_FLOAT ] } } } }
      node_def { name: 'pack' op: 'Pack' input: 'a' attr { key: 'N' value { placeholder: 'N' } }
                 attr { key: 'T' value { type: DT_FLOAT } } }
      node_def { name: 'call' op: 'PartitionedCall' input: 'pack:output:0'
                 attr { key: 'Tin' value { list { type: DT_FLOAT } } }
                 attr { key: 'Tout' value { list { type: DT_FLOAT } } }
                 attr { key: 'f' value { func { name: 'twice'
                        attr { key: 'T' value { type: DT_FLOAT } } } } } }
      node_def { name: 'if' op: 'StatelessIf' input: [ 'a:1', 'call:output:0' ]
                 attr { key: 'Tcond' value { type: DT_FLOAT } }
                 attr { key: 'Tin' value { list { type: DT_FLOAT } } }
                 attr { key: 'Tout' value { list { type: DT_FLOAT } } }
                 attr { key: 'then_branch' value { func { name: 'twice' } } }
                 attr { key: 'else_branch' value { func { name: 'step' } } } }
      node_def { name: 'stamp' op: 'Timestamp' input: [ '^a', '^if' ] }
      ret { key: 'y' value: 'if:output:0' } ret { key: 'all' value: 'a' }
      control_ret { key: 'done' value: 'stamp' }
      arg_attr { key: 0 value { attr { key: '_user_specified_name' value { s: 'a' } } } } }
    function {
      signature { name: 'cond' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'b' type: DT_BOOL } }
      node_def { name: 'n' op: 'ToBool' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }
      ret { key: 'b' value: 'n:output:0' } }
    function {
      signature { name: 'step' input_arg { name: 'x' type: DT_FLOAT }
                  output_arg { name: 'y' type: DT_FLOAT } }
      node_def { name: 'n' op: 'twice' input: 'x' }
      ret { key: 'y' value: 'n:y:0' } } })";

// Instantiates all functions, and the functions that their nodes call. Returns the number of
// instances, which is limited to 100.
int InstantiateAll(const Graph& graph) {
  std::set<const FunctionBody*> seen;
  std::vector<const FunctionBody*> pending;
  const auto check = [](const absl::Status& status) {
    EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << status;
  };
  const auto call = [&](const Graph& nodes) {
    for (int i = 0; i < nodes.num_nodes(); ++i) {
      const auto called = CalledFunctions(*nodes.node(i));
      check(called.status());
      if (called.ok()) pending.insert(pending.end(), called->begin(), called->end());
    }
  };
  for (const FunctionDef& function : graph.def().library().function()) {
    NameAttrList f;
    f.set_name(function.signature().name());
    const auto body = graph.functions().Instantiate(f);
    check(body.status());
    if (body.ok()) pending.push_back(*body);
  }
  call(graph);
  while (!pending.empty() && seen.size() < 100) {
    const FunctionBody* const body = pending.back();
    pending.pop_back();
    if (!seen.insert(body).second) continue;
    EXPECT_EQ(body->args().size(), body->arg_types().size());
    EXPECT_EQ(body->results().size(), body->result_types().size());
    EXPECT_LE(static_cast<int>(body->effects().size()), body->graph().num_nodes());
    call(body->graph());
  }
  return static_cast<int>(seen.size());
}

TEST(FunctionMutations, StartFromAValidLibrary) {
  Graph graph;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, ToyGraphDef(kLibrary), &graph));
  // The library has 4 functions. 'twice' has one instance, because the given type equals the
  // default.
  EXPECT_EQ(InstantiateAll(graph), 4);
}

TEST(FunctionMutations, EndWithAStatus) {
  const google::protobuf::LogSilencer silencer;
  const GraphDef valid = ToyGraphDef(kLibrary);
  uint64_t imported = 0;
  uint64_t instances = 0;
  const char* const text = std::getenv("GRADFLOW_FUNCTION_MUTATIONS");
  const uint64_t count = text == nullptr ? 3000 : std::strtoull(text, nullptr, 10);
  for (uint64_t seed = 0; seed < count && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    MutationRandom random(seed);
    GraphDef graph_def = valid;
    for (int64_t i = random.Below(3); i >= 0; --i) {
      FunctionDefLibrary& library = *graph_def.mutable_library();
      if (library.function_size() == 0) break;
      FunctionDef& function =
          *library.mutable_function(static_cast<int>(random.Below(library.function_size())));
      if (random.OneIn(2)) {
        testing::MutateMessage(&random, random.OneIn(3)
                                            ? static_cast<google::protobuf::Message*>(&library)
                                            : &function);
      } else {
        GraphDef nodes;
        nodes.mutable_node()->Swap(function.mutable_node_def());
        testing::MutateGraph(&random, &nodes);
        nodes.mutable_node()->Swap(function.mutable_node_def());
      }
    }
    Graph graph;
    ImportGraphDefOptions options;
    options.limits.max_list_outputs = 10000;
    if (!ImportGraphDef(options, std::move(graph_def), &graph).ok()) continue;
    ++imported;
    instances += static_cast<uint64_t>(InstantiateAll(graph));
  }
  EXPECT_GT(imported, count / 3);
  EXPECT_GT(instances, count);
}

// Returns a library with a function `g` that calls itself. Each call passes g with `copies`
// attributes, and each attribute holds the value of F. The value of F therefore grows with each
// call.
std::string Growing(int copies) {
  std::string attrs;
  for (int i = 0; i < copies; ++i) {
    absl::StrAppend(&attrs, "attr { key: 'a", i, "' value { placeholder: 'F' } } ");
  }
  return absl::StrCat(R"(library { function {
      signature { name: 'g' attr { name: 'F' type: 'func' } }
      node_def { name: 'n' op: 'PartitionedCall' attr { key: 'Tin' value { list {} } }
                 attr { key: 'Tout' value { list {} } }
                 attr { key: 'f' value { func { name: 'g' attr { key: 'F' value {
                   func { name: 'g' )",
                      attrs, "} } } } } } } } }");
}

// Follows the calls from `g` until one fails.
absl::Status FollowGrowing(int copies, int* steps) {
  Graph graph;
  GRADFLOW_EXPECT_OK(ImportGraphDef({}, ToyGraphDef(Growing(copies)), &graph));
  NameAttrList f;
  f.set_name("g");
  (*f.mutable_attr())["F"].mutable_func()->set_name("g");
  absl::StatusOr<const FunctionBody*> body = graph.functions().Instantiate(f);
  for (*steps = 0; body.ok() && *steps < 1000; ++*steps) {
    const auto called = CalledFunctions(*(*body)->graph().node(0));
    if (!called.ok()) return called.status();
    body = (*called)[0];
  }
  return body.status();
}

TEST(FunctionMutations, ValuesThatGrowByEachCallAreBounded) {
  int steps = 0;
  EXPECT_THAT(FollowGrowing(1, &steps),
              StatusIs(kInvalidArgument, HasSubstr("nested deeper than 32 levels")));
  EXPECT_GT(steps, 20);
  EXPECT_LT(steps, 40);
  EXPECT_THAT(FollowGrowing(8, &steps),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("need too much memory")));
  EXPECT_LT(steps, 10);
}

// The effects of each function depend on the effects of the next function in a chain of calls.
TEST(FunctionMutations, EffectsOfALongChainTakeLinearTime) {
  constexpr int kFunctions = 20000;
  std::string text = "library { ";
  for (int i = 0; i < kFunctions; ++i) {
    absl::StrAppend(&text, "function { signature { name: 'f", i, "' } node_def { name: 'n' op: '",
                    i + 1 < kFunctions ? absl::StrCat("f", i + 1) : "Timestamp", "' } } ");
  }
  Graph graph;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, ToyGraphDef(text + "}"), &graph));
  for (int i = 0; i < 5000; ++i) {
    NameAttrList f;
    f.set_name(absl::StrCat("f", i));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body, graph.functions().Instantiate(f));
    EXPECT_EQ(body->effects().size(), 1u);
  }
}

// A function is added, and a failed node is removed, in time that does not depend on the size of
// the graph. Otherwise this test takes minutes.
TEST(FunctionMutations, ManySmallChangesTakeLinearTime) {
  constexpr int kChanges = 30000;
  Graph graph;
  FunctionDef function;
  function.mutable_signature()->set_name("f0");
  NodeDef* const call = function.add_node_def();
  call->set_name("n");
  call->set_op("Timestamp");
  NodeDef wrong;
  wrong.set_name("wrong");
  wrong.set_op("Neg");
  for (int i = 0; i < kChanges; ++i) {
    GRADFLOW_ASSERT_OK(graph.AddFunction(function));
    // The memory of instances is bounded.
    if (i < 5000) {
      NameAttrList f;
      f.set_name(function.signature().name());
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const FunctionBody* const body,
                                    graph.functions().Instantiate(f));
      EXPECT_EQ(body->effects().size(), 1u);
    }
    call->set_op(function.signature().name());
    function.mutable_signature()->set_name(absl::StrCat("f", i + 1));
    NodeDef node;
    node.set_name(absl::StrCat("c", i));
    node.set_op("Const");
    AddNodeAttr("dtype", DT_INT64, &node);
    AddNodeAttr("value", Tensor(int64_t{i}), &node);
    GRADFLOW_ASSERT_OK(graph.AddNode(std::move(node)).status());
    EXPECT_NE(graph.ConstantValue(*graph.node(i), 0), nullptr);
    EXPECT_THAT(graph.AddNode(NodeDef(wrong)), StatusIs(kInvalidArgument));
  }
  // The functions that are there are checked when a function closes a cycle.
  function.mutable_signature()->set_name("open");
  call->set_op("closes");
  GRADFLOW_ASSERT_OK(graph.AddFunction(function));
  function.mutable_signature()->set_name("closes");
  call->set_op("open");
  EXPECT_THAT(graph.AddFunction(function),
              StatusIs(kInvalidArgument,
                       "a function of the graph calls itself: 'closes' -> 'open' -> 'closes'"));
  // The failed function is gone, and another of its name can be added.
  call->set_op("f1");
  GRADFLOW_ASSERT_OK(graph.AddFunction(function));
}

}  // namespace
}  // namespace gradflow
