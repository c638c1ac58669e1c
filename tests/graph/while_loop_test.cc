// Tests of BuildWhileLoop, and of cycles in imported graphs.
#include "gradflow/graph/while_loop.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gradflow/core/registry.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/while_context.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class WhileLoopTest : public ::testing::Test {
 protected:
  WhileLoopTest() : scope_(Scope::NewRootScope()) {
    x_ = Add(scope_, "Placeholder", {}, {{"dtype", DT_INT32}});
  }

  static Output Add(const Scope& scope, const char* op, const std::vector<Output>& inputs,
                    const std::vector<std::pair<const char*, DataType>>& attrs = {}) {
    OpBuilder builder(scope, op);
    for (const Output& input : inputs) builder.Input(input);
    for (const auto& [name, dtype] : attrs) builder.Attr(name, dtype);
    return Output(builder.Finish(), 0);
  }
  static absl::Status Less(const Scope& scope, const std::vector<Output>& inputs, Output* output) {
    *output = Output(OpBuilder(scope, "Less").Input(inputs[0]).Input(10).Finish(), 0);
    return scope.status();
  }
  static absl::Status Double(const Scope& scope, const std::vector<Output>& inputs,
                             std::vector<Output>* outputs) {
    for (const Output& input : inputs) outputs->push_back(Add(scope, "AddV2", {input, input}));
    return scope.status();
  }
  absl::Status Build(const ops::CondGraphBuilderFn& cond, const ops::BodyGraphBuilderFn& body) {
    return ops::BuildWhileLoop(scope_, {x_, x_}, cond, body, "loop", &outputs_);
  }

  Scope scope_;
  Output x_;
  std::vector<Output> outputs_;
};

TEST_F(WhileLoopTest, AddsACycleForEachVariable) {
  ASSERT_THAT(Build(Less, Double), IsOk());
  ASSERT_THAT(outputs_, SizeIs(2));
  for (const Output& output : outputs_) {
    const Node* const exit = output.node();
    EXPECT_TRUE(exit->IsExit());
    const Node* const loop_switch = exit->sources()[0].node;
    EXPECT_TRUE(loop_switch->IsSwitch());
    EXPECT_TRUE(loop_switch->sources()[1].node->IsLoopCond());
    const Node* const merge = loop_switch->sources()[0].node;
    EXPECT_TRUE(merge->IsMerge());
    EXPECT_TRUE(merge->sources()[0].node->IsEnter());
    const Node* const next = merge->sources()[1].node;
    EXPECT_TRUE(next->IsNextIteration());
    EXPECT_EQ(merge->def().input(1), next->name());
    // The edge back is among the edges of the NextIteration only.
    EXPECT_EQ((*next->out_edges().begin())->dst(), merge);
    EXPECT_EQ(merge->sources()[0].node->out_edges().size(), 1u);
    ASSERT_NE(exit->while_ctx(), nullptr);
    EXPECT_EQ(exit->while_ctx(), outputs_[0].node()->while_ctx());
    EXPECT_EQ(merge->while_ctx(), nullptr);
  }
  const WhileContext& context = *outputs_[0].node()->while_ctx();
  EXPECT_EQ(context.frame_name(), "loop");
  EXPECT_THAT(context.exit_nodes(), ElementsAre(outputs_[0].node(), outputs_[1].node()));
  EXPECT_EQ(context.cond_output().type(), DT_BOOL);
}

TEST_F(WhileLoopTest, ExportedGraphsCanBeImported) {
  ASSERT_THAT(Build(Less, Double), IsOk());
  GraphDef graph_def;
  ASSERT_THAT(scope_.ToGraphDef(&graph_def), IsOk());
  Graph graph;
  ASSERT_THAT(ImportGraphDef({}, graph_def, &graph), IsOk());
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(graph.def(), graph_def));
}

TEST_F(WhileLoopTest, ChecksWhatTheBuildersReturn) {
  const auto bad_cond = [&](const Output& output) {
    return Build(
        [&](const Scope& scope, const std::vector<Output>&, Output* result) {
          *result = output;
          return scope.status();
        },
        Double);
  };
  EXPECT_THAT(bad_cond(x_), StatusIs(absl::StatusCode::kInvalidArgument,
                                     "BuildWhileLoop: 'cond' argument must return a boolean "
                                     "output, got int32"));
  EXPECT_THAT(bad_cond(Output()), StatusIs(absl::StatusCode::kInvalidArgument, "Node is null"));
  EXPECT_THAT(bad_cond(Output(x_.node(), 3)),
              StatusIs(absl::StatusCode::kOutOfRange,
                       "Node 'Placeholder' (type: 'Placeholder', num of outputs: 1) does not have "
                       "output 3"));
  EXPECT_THAT(
      Build(Less,
            [&](const Scope& scope, const std::vector<Output>&, std::vector<Output>* results) {
              *results = {x_};
              return scope.status();
            }),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "BuildWhileLoop: 'body' argument expected to return 2 output(s), got 1"));
  EXPECT_THAT(Build(Less,
                    [&](const Scope& scope, const std::vector<Output>& inputs,
                        std::vector<Output>* results) {
                      *results = {inputs[0], Add(scope, "Less", inputs)};
                      return scope.status();
                    }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'NextIteration_1' has type bool, expected int32")));
  EXPECT_THAT(
      ops::BuildWhileLoop(scope_, {}, Less, Double, "loop", &outputs_),
      StatusIs(absl::StatusCode::kInvalidArgument, "BuildWhileLoop: 'inputs' must not be empty"));
  outputs_ = {x_};
  EXPECT_THAT(Build(Less, Double), StatusIs(absl::StatusCode::kInvalidArgument,
                                            "BuildWhileLoop: 'outputs' must be empty"));
}

// A cycle needs an edge from a NextIteration to a Merge.
TEST(ImportCycles, OtherCyclesAreErrors) {
  const auto import = [](const char* back) {
    GraphDef graph_def;
    const auto add = [&](const char* name, const char* op, const std::vector<std::string>& inputs) {
      NodeDef* const node = graph_def.add_node();
      node->set_name(name);
      node->set_op(op);
      for (const std::string& input : inputs) node->add_input(input);
      (*node->mutable_attr())[op == std::string("Placeholder") ? "dtype" : "T"].set_type(DT_INT32);
      if (op == std::string("Merge")) (*node->mutable_attr())["N"].set_i(2);
    };
    add("x", "Placeholder", {});
    add("merge", "Merge", {"x", back});
    add("neg", "Neg", {"merge"});
    add("next", "NextIteration", {"neg"});
    Graph graph;
    return ImportGraphDef({}, std::move(graph_def), &graph);
  };
  EXPECT_THAT(import("next"), IsOk());
  EXPECT_THAT(import("neg"), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("the graph has a cycle: 'merge' -> 'neg' -> "
                                                "'merge'")));
}

}  // namespace
}  // namespace gradflow
