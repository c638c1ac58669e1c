#include "gradflow/graph/node_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NodeBuilderTest : public ::testing::Test {
 protected:
  NodeBuilderTest()
      : root_(Scope::NewRootScope(ToyGraphRegistry())),
        f_(ops::Const(root_.WithOpName("f"), 1.0f, {2, 2})),
        d_(ops::Const(root_.WithOpName("d"), 1.0, {2, 2})),
        i_(ops::Const(root_.WithOpName("i"), 1, {2, 2})),
        pair_(OpBuilder(root_.WithOpName("pair"), "Pair").Input(f_).Finish()) {}

  Graph* graph() { return root_.graph(); }
  Node* Build(NodeBuilder& builder) {
    Node* node = nullptr;
    EXPECT_THAT(builder.Finalize(graph(), &node), IsOk());
    return node;
  }

  Scope root_;
  Output f_, d_, i_;
  Operation pair_;
};

TEST_F(NodeBuilderTest, InfersATypeFromAnInput) {
  const Node* node = Build(NodeBuilder("n", "MatMul").Input(f_).Input(pair_.output(1)));
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->name(), "n");
  EXPECT_THAT(node->def().input(), ElementsAre("f", "pair:1"));
  EXPECT_EQ(node->def().attr().at("T").type(), DT_FLOAT);
  EXPECT_FALSE(node->def().attr().at("transpose_a").b());
  EXPECT_EQ(node->def().attr_size(), 3);
  EXPECT_EQ(node->sources()[1].node, pair_.node());
  EXPECT_EQ(node->sources()[1].output, 1);
}

// Nodes of one op share attributes if they are equal.
TEST_F(NodeBuilderTest, GivesNodesOfOneOpTheirOwnAttributes) {
  struct Case {
    Output input;
    const char* device;
    bool transpose;
  };
  const Case cases[] = {{f_, "", false},       {f_, "", false}, {d_, "", false}, {d_, "", false},
                        {d_, "/cpu:0", false}, {f_, "", true},  {f_, "", false}, {f_, "", false}};
  for (const Case& c : cases) {
    const Scope scope = c.device[0] == '\0' ? root_ : root_.WithDevice(c.device);
    OpBuilder op(scope, "MatMul");
    op.Input(c.input).Input(c.input);
    if (c.transpose) op.Attr("transpose_a", true);
    const Node* node = op.Finish().node();
    ASSERT_NE(node, nullptr) << root_.status();
    const NodeDef& def = node->def();
    EXPECT_EQ(def.attr().at("T").type(), c.input.type());
    EXPECT_EQ(def.attr().at("transpose_a").b(), c.transpose);
    EXPECT_FALSE(def.attr().at("transpose_b").b());
    EXPECT_EQ(def.attr_size(), 3);
    EXPECT_EQ(def.device(), c.device);
    EXPECT_EQ(node->output_type(0), c.input.type());
    EXPECT_THAT(def.input(), ElementsAre(c.input.node()->name(), c.input.node()->name()));
  }
  // Wrong inputs are also errors after nodes with correct inputs.
  OpBuilder(root_.WithOpName("bad"), "MatMul").Input(f_).Input(d_).Finish();
  EXPECT_THAT(root_.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("node 'bad' (MatMul): input b has type double")));
}

// Nodes of a graph may share strings, but copies of its GraphDef share nothing.
TEST_F(NodeBuilderTest, MakesNodesWhoseCopiesOutliveTheGraph) {
  GraphDef copy;
  std::string bytes;
  {
    const Scope scope = Scope::NewRootScope(ToyGraphRegistry());
    const Output c = ops::Const(scope.WithOpName("a_name_too_long_to_be_within_a_string"), 1.0f);
    Output x = c;
    for (int i = 0; i < 100; ++i) x = OpBuilder(scope, "Neg").Input(x).Finish().output(0);
    Node* node = nullptr;
    ASSERT_THAT(
        NodeBuilder("built", "Neg").Input(x).ControlInput(c.node()).Finalize(scope.graph(), &node),
        IsOk());
    OpBuilder(scope, "Neg").Input(Output(node, 0)).Finish();
    ASSERT_TRUE(scope.ok()) << scope.status();
    copy = scope.graph()->def();
    bytes = copy.SerializeAsString();
  }
  EXPECT_EQ(copy.node_size(), 103);
  EXPECT_EQ(copy.node(1).input(0), "a_name_too_long_to_be_within_a_string");
  EXPECT_EQ(copy.node(102).input(0), "built");
  copy.mutable_node(1)->set_input(0, "changed");
  EXPECT_EQ(copy.node(0).name(), "a_name_too_long_to_be_within_a_string");
  EXPECT_EQ(bytes.size() - copy.SerializeAsString().size(), 30u);
}

TEST_F(NodeBuilderTest, InfersLengthAndTypeFromAList) {
  const Node* node = Build(NodeBuilder("n", "Pack").Input({f_, f_, pair_.output(0)}));
  EXPECT_EQ(node->def().attr().at("N").i(), 3);
  EXPECT_EQ(node->def().attr().at("T").type(), DT_FLOAT);
  EXPECT_EQ(node->def().attr().at("axis").i(), 0);
  EXPECT_EQ(node->num_inputs(), 3);
}

TEST_F(NodeBuilderTest, InfersAListOfTypes) {
  const Node* node = Build(NodeBuilder("n", "IdentityN").Input({f_, d_, i_}));
  EXPECT_THAT(node->def().attr().at("T").list().type(), ElementsAre(DT_FLOAT, DT_DOUBLE, DT_INT32));
  EXPECT_THAT(node->output_types(), ElementsAre(DT_FLOAT, DT_DOUBLE, DT_INT32));
}

TEST_F(NodeBuilderTest, InfersFromAnyArgumentOfTheType) {
  const Node* node = Build(NodeBuilder("n", "Gather").Input(d_).Input(absl::Span<const NodeOut>()));
  EXPECT_EQ(node->def().attr().at("T").type(), DT_DOUBLE);
  EXPECT_EQ(node->def().attr().at("N").i(), 0);
}

TEST_F(NodeBuilderTest, KeepsAttributesThatAreGiven) {
  const std::vector<int> sizes = {5, 6};
  NodeBuilder builder("n", "Mode");
  builder.Input(f_).Attr("mode", "SLOW").Attr("mode", "FAST").Attr("sizes", sizes).Attr("_mine", 1);
  const Node* node = Build(builder);
  EXPECT_EQ(node->def().attr().at("mode").s(), "FAST");
  EXPECT_THAT(node->def().attr().at("sizes").list().i(), ElementsAre(5, 6));
  EXPECT_EQ(node->def().attr().at("_mine").i(), 1);
}

TEST_F(NodeBuilderTest, TakesListsInBraces) {
  NodeBuilder builder("n", "Mode");
  builder.Input(f_).Attr("mode", std::string("FAST")).Attr("sizes", {5, 6, 7});
  builder.Attr("_floats", {1.5f}).Attr("_strings", {"a", "b"}).Attr("_types", {DT_HALF});
  const Node* node = Build(builder);
  EXPECT_THAT(node->def().attr().at("sizes").list().i(), ElementsAre(5, 6, 7));
  EXPECT_THAT(node->def().attr().at("_floats").list().f(), ElementsAre(1.5f));
  EXPECT_THAT(node->def().attr().at("_strings").list().s(), ElementsAre("a", "b"));
  EXPECT_THAT(node->def().attr().at("_types").list().type(), ElementsAre(DT_HALF));
}

TEST_F(NodeBuilderTest, AddsControlInputsOnceAndLast) {
  NodeBuilder builder("n", "Neg");
  builder.ControlInput(d_.node()).Input(f_).ControlInputs({i_.node(), d_.node()});
  const Node* node = Build(builder);
  EXPECT_THAT(node->def().input(), ElementsAre("f", "^d", "^i"));
  EXPECT_EQ(node->num_inputs(), 1);
  EXPECT_EQ(node->sources().size(), 3);
}

// A node that initializes a large graph has a control input for each variable.
TEST_F(NodeBuilderTest, TakesManyControlInputs) {
  constexpr int kNodes = 100000;
  NodeBuilder builder("n", "NoOp");
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kNodes; ++i) {
      if (round == 0) {
        ASSERT_THAT(NodeBuilder(absl::StrCat("c", i), "NoOp").Finalize(graph()), IsOk());
      }
      builder.ControlInput(graph()->FindNode(absl::StrCat("c", i)));
    }
  }
  const Node* node = Build(builder);
  ASSERT_EQ(node->def().input_size(), kNodes);
  EXPECT_EQ(node->def().input(0), "^c0");
  EXPECT_EQ(node->def().input(kNodes - 1), absl::StrCat("^c", kNodes - 1));
}

TEST_F(NodeBuilderTest, AssignedDeviceWins) {
  EXPECT_EQ(Build(NodeBuilder("a", "Neg").Input(f_).Device("/cpu:1"))->requested_device(),
            "/cpu:1");
  EXPECT_EQ(Build(NodeBuilder("b", "Neg").Input(f_).AssignedDevice("/cpu:2").Device("/cpu:1"))
                ->requested_device(),
            "/cpu:2");
}

TEST_F(NodeBuilderTest, MakesOneNode) {
  NodeBuilder builder("n", "NoOp");
  EXPECT_EQ(builder.node_name(), "n");
  EXPECT_THAT(builder.Finalize(graph()), IsOk());
  EXPECT_THAT(builder.Finalize(graph()), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(NodeBuilderTest, ErrorsNameNodeArgumentAndTypes) {
  Graph other(ToyGraphRegistry());
  const Scope scope = Scope::NewRootScope(ToyGraphRegistry());
  const Output foreign = ops::Const(scope.WithOpName("foreign"), 1.0f);
  using B = NodeBuilder;
  const struct {
    const char* op;
    std::function<void(B&)> build;
    const char* error;
  } cases[] = {
      {"MatMul", [&](B& b) { b.Input(f_).Input(i_); },
       "input b has type int32, expected float (attribute T, fixed by input a)"},
      {"MatMul", [&](B& b) { b.Attr("T", DT_DOUBLE).Input(f_).Input(f_); },
       "input a has type float, expected double (attribute T, given)"},
      {"MatMul", [&](B& b) { b.Input(i_).Input(i_); },
       "attribute T must be one of {float, double}, but is int32"},
      {"MatMul", [&](B& b) { b.Input(f_); }, "expected 2 inputs (a, b), but found 1"},
      {"NoOp", [&](B& b) { b.Input(f_); }, "expected 0 inputs, but found 1"},
      {"MatMul",
       [&](B& b) {
         b.Input(f_).Input({f_, f_});
       },
       "input b is a list, expected a single output"},
      {"MatMul", [&](B& b) { b.Input(f_).Input(f_).Attr("transpose_a", 1); },
       "attribute transpose_a: expected bool, but found 1 (int)"},
      {"MatMul", [&](B& b) { b.Input(f_).Input(f_).Attr("transpose_c", true); },
       "unknown attribute 'transpose_c'; did you mean 'transpose_a' or 'transpose_b'?"},
      {"MatMul", [&](B& b) { b.Attr("T", 3).Input(f_).Input(f_); },
       "attribute T: expected type, but found 3 (int)"},
      {"Pair", [&](B& b) { b.Input(i_); }, "input x has type int32, expected float"},
      {"Pack", [&](B& b) { b.Input(f_); }, "input values is a single output, expected a list"},
      {"Pack",
       [&](B& b) {
         b.Input({f_, f_, i_});
       },
       "input values[2] has type int32, expected float (attribute T, fixed by input values[0])"},
      {"Pack",
       [&](B& b) {
         b.Attr("N", 3).Input({f_, f_});
       },
       "input values has length 2, expected 3 (attribute N, given)"},
      {"Pack", [&](B& b) { b.Input(absl::Span<const NodeOut>()); },
       "attribute N must be at least 1, but is 0; attribute T (type) is missing"},
      {"Gather",
       [&](B& b) {
         b.Input(f_).Input({i_, i_});
       },
       "input rest[0] has type int32, expected float (attribute T, fixed by input first)"},
      {"IdentityN",
       [&](B& b) {
         b.Attr("T", {DT_FLOAT}).Input({f_, f_});
       },
       "input input has length 2, expected 1 (attribute T, given)"},
      {"IdentityN",
       [&](B& b) {
         b.Attr("T", {DT_FLOAT, DT_HALF}).Input({f_, f_});
       },
       "input input[1] has type float, expected half (attribute T, given)"},
      {"IdentityN",
       [&](B& b) {
         b.Attr("T", 1).Input({f_, f_});
       },
       "attribute T: expected list(type), but found 1 (int)"},
      {"Mode", [&](B& b) { b.Input(f_); }, "attribute mode (string) is missing"},
      {"Mode", [&](B& b) { b.Input(f_).Attr("mode", "LAZY"); },
       "attribute mode must be one of {\"SLOW\", \"FAST\"}, but is \"LAZY\""},
      {"MatMul", [&](B& b) { b.Input(f_).Input(Output()); }, "input b is an empty output"},
      {"Pack",
       [&](B& b) {
         b.Input({f_, Output()});
       },
       "input values[1] is an empty output"},
      {"NoOp", [&](B& b) { b.Input(nullptr, 0); }, "input 0 is an empty output"},
      {"Neg", [&](B& b) { b.Input(pair_.node(), 2); },
       "input x is output 2 of 'pair' (Pair), which has 2"},
      {"Neg", [&](B& b) { b.Input(pair_.node(), -1); }, "input x is output -1 of 'pair'"},
      {"Neg", [&](B& b) { b.Input(foreign); }, "input x ('foreign') belongs to another graph"},
      {"NoOp", [&](B& b) { b.ControlInput(nullptr); },
       "a control dependency is an empty operation"},
      {"NoOp", [&](B& b) { b.ControlInput(foreign.node()); },
       "the control dependency 'foreign' belongs to another graph"},
      {"Retired", [](B&) {},
       "the op may not be used in graphs of version 2200: it is deprecated since version 1000. "
       "Use Const."},
      {"NoOp", [](B& b) { b.Attr("_class", {"loc:@none"}); },
       "it is colocated with 'none', which is not in the graph"},
      {"NoOp", [](B& b) { b.Attr("_class", 1); }, "attribute _class"},
  };
  const int num_nodes = graph()->num_nodes();
  for (const auto& [op, build, error] : cases) {
    NodeBuilder builder("n", op);
    build(builder);
    Node* node = nullptr;
    const absl::Status status = builder.Finalize(graph(), &node);
    EXPECT_THAT(status, StatusIs(std::string(op) == "Retired" ? absl::StatusCode::kUnimplemented
                                                              : absl::StatusCode::kInvalidArgument,
                                 HasSubstr(absl::StrCat("node 'n' (", op, "): ", error))));
    EXPECT_EQ(node, nullptr);
    EXPECT_EQ(graph()->num_nodes(), num_nodes);
    EXPECT_EQ(graph()->def().node_size(), num_nodes);
    EXPECT_EQ(graph()->FindNode("n"), nullptr);
  }
}

TEST_F(NodeBuilderTest, SuggestsNearNamesForUnknownOps) {
  EXPECT_THAT(NodeBuilder("n", "MatMull").Finalize(graph()),
              StatusIs(absl::StatusCode::kNotFound,
                       "node 'n' (MatMull): op 'MatMull' is not registered; did you mean "
                       "'MatMul'?"));
}

TEST_F(NodeBuilderTest, NamesMustBeNewAndValid) {
  EXPECT_THAT(NodeBuilder("f", "NoOp").Finalize(graph()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 'f' (NoOp): the graph already has a node of this name"));
  for (const char* name : {"", "_a", "-a", "/a", ">a", "a:0", "^a", "a b", "a\n", "\xff", "a\\"}) {
    EXPECT_THAT(NodeBuilder(name, "NoOp").Finalize(graph()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(": the name ")))
        << name;
  }
  for (const char* name : {"a", "0", ".", "A_b.c-d/e>f", "a//"}) {
    EXPECT_THAT(NodeBuilder(name, "NoOp").Finalize(graph()), IsOk()) << name;
  }
}

TEST_F(NodeBuilderTest, LongNamesAreTruncatedInErrors) {
  const absl::Status status = NodeBuilder(std::string(100000, '!'), "NoOp").Finalize(graph());
  EXPECT_LT(status.message().size(), 1000);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("!!!...' (NoOp)")));
}

// ---- OpBuilder ----

TEST_F(NodeBuilderTest, OpBuilderUsesTheScope) {
  const Scope scope = root_.NewSubScope("s").WithControlDependencies(d_).WithDevice("/cpu:1");
  const Operation op = OpBuilder(scope, "MatMul").Input(f_).Input(Input{{2.0f}, {3.0f}}).Finish();
  ASSERT_THAT(root_.status(), IsOk());
  EXPECT_EQ(op.node()->name(), "s/MatMul");
  EXPECT_THAT(op.node()->def().input(), ElementsAre("f", "s/Const/Const", "^d"));
  EXPECT_EQ(op.node()->requested_device(), "/cpu:1");
}

TEST_F(NodeBuilderTest, OpBuilderFinishesOnce) {
  OpBuilder recorder(root_, "NoOp");
  EXPECT_NE(recorder.Finish(), Operation());
  EXPECT_EQ(recorder.Finish(), Operation());
  EXPECT_THAT(root_.status(), IsOk());
}

TEST_F(NodeBuilderTest, OpBuilderKeepsErrorsInTheScope) {
  EXPECT_EQ(OpBuilder(root_.WithOpName("n"), "MatMul").Input(f_).Input(d_).Finish(), Operation());
  EXPECT_THAT(root_.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                       HasSubstr("node 'n' (MatMul): input b has type double")));
}

// Later nodes may share the attributes of the first node.
TEST(NodeBuilder, ListsOfEqualTypesKeepTheirOwnLengths) {
  Registry registry;
  registry.Op("Source").Output("y: float");
  registry.Op("TwoLists").Input("a: N * float").Input("b: M * float").Attr("N: int").Attr("M: int");
  ASSERT_THAT(registry.status(), IsOk());
  Graph graph(registry);
  Node* source = nullptr;
  ASSERT_THAT(NodeBuilder("s", "Source").Finalize(&graph, &source), IsOk());
  for (const int n : {2, 1}) {
    const std::vector<NodeBuilder::NodeOut> a(n, {source, 0});
    const std::vector<NodeBuilder::NodeOut> b(3 - n, {source, 0});
    Node* node = nullptr;
    ASSERT_THAT(
        NodeBuilder(absl::StrCat("n", n), "TwoLists").Input(a).Input(b).Finalize(&graph, &node),
        IsOk());
    int lengths[2];
    ASSERT_THAT(node->GetAttr("N", &lengths[0]), IsOk());
    ASSERT_THAT(node->GetAttr("M", &lengths[1]), IsOk());
    EXPECT_THAT(lengths, ElementsAre(n, 3 - n));
  }
}

// A list has no reference types, although an input of the list may be a reference.
TEST(NodeBuilder, ReferencesInListsHaveTheTypeOfTheirValue) {
  Registry registry;
  registry.Op("Variable").Output("ref: Ref(float)").Stateful();
  registry.Op("IdentityN").Input("input: T").Output("output: T").Attr("T: list(type) >= 1");
  ASSERT_THAT(registry.status(), IsOk());
  Graph graph(registry);
  Node* variable = nullptr;
  ASSERT_THAT(NodeBuilder("v", "Variable").Finalize(&graph, &variable), IsOk());
  ASSERT_EQ(variable->output_type(0), MakeRefType(DT_FLOAT));
  Node* node = nullptr;
  const std::vector<NodeBuilder::NodeOut> inputs = {NodeBuilder::NodeOut(variable, 0)};
  ASSERT_THAT(NodeBuilder("n", "IdentityN").Input(inputs).Finalize(&graph, &node), IsOk());
  DataTypeVector types;
  ASSERT_THAT(node->GetAttr("T", &types), IsOk());
  EXPECT_THAT(types, ElementsAre(DT_FLOAT));
  EXPECT_EQ(node->output_type(0), DT_FLOAT);
}

}  // namespace
}  // namespace gradflow
