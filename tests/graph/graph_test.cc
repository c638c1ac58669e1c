#include "gradflow/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::gradflow::testing::ToyGraphRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the single node of a GraphDef.
NodeDef OneNode(const std::string& text) {
  return ToyGraphDef(absl::StrCat("node { ", text, " }")).node(0);
}

constexpr char kConst[] = R"(
  name: "c" op: "Const"
  attr { key: "dtype" value { type: DT_INT32 } }
  attr { key: "value" value { tensor {
    dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [3, 4] } } })";

std::vector<std::string> EdgeTexts(const EdgeSet& edges) {
  std::vector<std::string> texts;
  for (const Edge* edge : edges) {
    EXPECT_EQ(edge->IsControlEdge(), edge->dst_input() < 0);
    texts.push_back(absl::StrCat(edge->src()->name(), ":", edge->src_output(), "->",
                                 edge->dst()->name(), ":", edge->dst_input()));
  }
  return texts;
}

// ---- AddNode ----

TEST(Graph, AddsNodes) {
  Graph graph(ToyGraphRegistry());
  EXPECT_EQ(graph.num_nodes(), 0);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* c, graph.AddNode(OneNode(kConst)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Node* neg, graph.AddNode(OneNode(R"(name: "n" op: "Neg" input: "c:0" input: "^c"
                               attr { key: "T" value { type: DT_INT32 } })")));
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_EQ(graph.node(1), neg);
  EXPECT_EQ(graph.FindNode("n"), neg);
  EXPECT_EQ(graph.FindNode("none"), nullptr);
  EXPECT_EQ(neg->id(), 1);
  EXPECT_EQ(neg->num_inputs(), 1);
  EXPECT_EQ(neg->input_type(0), DT_INT32);
  EXPECT_EQ(neg->output_shape(0).DebugString(), "[2]");
  EXPECT_EQ(neg->type_string(), "Neg");
  EXPECT_EQ(neg->op_def().input_arg(0).name(), "x");
  EXPECT_EQ(&neg->graph(), &graph);
  EXPECT_EQ(&neg->def(), &graph.def().node(1));
  EXPECT_TRUE(c->IsConstant());
  EXPECT_THAT(neg->def().input(), ElementsAre("c:0", "^c"));
  EXPECT_THAT(neg->DebugString(), AllOf(HasSubstr("n"), HasSubstr("Neg"), HasSubstr("int32[2]")));
}

TEST(Graph, FillsInDefaults) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* node,
                                graph.AddNode(OneNode(R"(name: "p" op: "Placeholder"
                                                attr { key: "dtype" value { type: DT_HALF } })")));
  EXPECT_TRUE(node->def().attr().at("shape").shape().unknown_rank());
  EXPECT_TRUE(node->output_shape(0).unknown_rank());
}

TEST(Graph, RefusesNodesWithoutChange) {
  const struct {
    const char* node;
    const char* error;
  } cases[] = {
      {R"(op: "NoOp")", "node '' (NoOp): the name is empty"},
      {R"(name: "a")", "node 'a' (): op '' is not registered"},
      {R"(name: "c" op: "NoOp")", "node 'c' (NoOp): the graph already has a node of this name"},
      {R"(name: "n" op: "Neg" input: "none" attr { key: "T" value { type: DT_INT32 } })",
       "node 'n' (Neg): input 'none' names no node of the graph"},
      {R"(name: "n" op: "Neg" input: "c:1" attr { key: "T" value { type: DT_INT32 } })",
       "node 'n' (Neg): input 'c:1' does not exist: 'c' (Const) has 1 output"},
      {R"(name: "n" op: "Neg" input: "n" attr { key: "T" value { type: DT_INT32 } })",
       "node 'n' (Neg): input 'n' names no node of the graph"},
      {R"(name: "n" op: "Neg" input: "" attr { key: "T" value { type: DT_INT32 } })",
       "node 'n' (Neg): '' names no node"},
      {R"(name: "n" op: "Neg" input: "c" attr { key: "T" value { type: DT_FLOAT } })",
       "node 'n' (Neg): input x ('c') has type int32, expected float (attribute T)"},
      {R"(name: "n" op: "Neg" input: "c")", "node 'n' (Neg): attribute T (type) is missing"},
      {R"(name: "n" op: "NoOp" attr { key: "_class" value { list { s: "loc:@d" } } })",
       "node 'n' (NoOp): it is colocated with 'd'"},
      {R"(name: "n" op: "Const" attr { key: "dtype" value { type: DT_HALF } }
          attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {} } } })",
       "node 'n' (Const): value is not of type dtype"},
  };
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(graph.AddNode(OneNode(kConst)));
  const std::string before = graph.def().SerializeAsString();
  for (const auto& [node, error] : cases) {
    const absl::Status status = graph.AddNode(OneNode(node)).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(error));
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsNotFound(status)) << status;
    EXPECT_EQ(graph.num_nodes(), 1);
    EXPECT_EQ(graph.FindNode("n"), nullptr);
    EXPECT_EQ(graph.def().SerializeAsString(), before);
  }
  GRADFLOW_EXPECT_OK(graph.AddNode(OneNode(R"(name: "n" op: "NoOp")")));
}

TEST(Graph, ColocationWithItselfAndOtherClassesIsFine) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_EXPECT_OK(graph.AddNode(OneNode(
      R"(name: "n" op: "NoOp" attr { key: "_class" value { list { s: "loc:@n" s: "x@y" } } })")));
}

// ---- Edges ----

TEST(Graph, EdgesGoBothWays) {
  const Scope root = Scope::NewRootScope(ToyGraphRegistry());
  const Output a = ops::Const(root.WithOpName("a"), 1.0f, {2, 2});
  const Operation p = OpBuilder(root.WithOpName("p"), "Pair").Input(a).Finish();
  const Operation m = OpBuilder(root.WithOpName("m").WithControlDependencies(a), "MatMul")
                          .Input(p.output(1))
                          .Input(a)
                          .Finish();
  // The index of edges is updated when the graph grows.
  EXPECT_THAT(EdgeTexts(a.node()->out_edges()), ElementsAre("a:0->p:0", "a:0->m:1", "a:-1->m:-1"));
  const Operation k = OpBuilder(root.WithOpName("k"), "Pack").Input(InputList{a, a}).Finish();
  ASSERT_THAT(root.status(), IsOk());
  EXPECT_THAT(EdgeTexts(m.node()->in_edges()), ElementsAre("p:1->m:0", "a:0->m:1", "a:-1->m:-1"));
  EXPECT_THAT(EdgeTexts(a.node()->out_edges()),
              ElementsAre("a:0->p:0", "a:0->m:1", "a:-1->m:-1", "a:0->k:0", "a:0->k:1"));
  EXPECT_THAT(EdgeTexts(p.node()->out_edges()), ElementsAre("p:1->m:0"));
  EXPECT_TRUE(k.node()->out_edges().empty());
}

// Nodes share a list even if nodes of other types come in between.
TEST(Graph, NodesWithTheSameTypesShareTheirTypeList) {
  Graph graph(ToyGraphRegistry());
  std::vector<const Node*> nodes;
  for (const char* type : {"DT_FLOAT", "DT_INT32", "DT_FLOAT"}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const Node* node,
        graph.AddNode(OneNode(absl::Substitute(
            R"(name: "p$0" op: "Placeholder" attr { key: "dtype" value { type: $1 } })",
            nodes.size(), type))));
    nodes.push_back(node);
  }
  EXPECT_EQ(&nodes[0]->output_types(), &nodes[2]->output_types());
  EXPECT_NE(&nodes[0]->output_types(), &nodes[1]->output_types());
}

TEST(Graph, MayBeReadByManyThreads) {
  const Scope root = Scope::NewRootScope(ToyGraphRegistry());
  Output x = ops::Const(root, {1.0f, 2.0f});
  for (int i = 0; i < 100; ++i) x = OpBuilder(root, "Neg").Input(x).Finish().output(0);
  ASSERT_THAT(root.status(), IsOk());
  const Graph& graph = *root.graph();
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> edges{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int id = 0; id < graph.num_nodes(); ++id) {
        edges += static_cast<int>(graph.node(id)->out_edges().size());
        const Tensor* value = graph.ConstantValue(*graph.node(id), 0);
        edges += value == nullptr ? 0 : static_cast<int>(value->NumElements());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(edges, 4 * (100 + 2));
}

// ---- Constants and shapes ----

TEST(Graph, KnowsTheValuesOfConstants) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* c, graph.AddNode(OneNode(kConst)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* noop,
                                graph.AddNode(OneNode(R"(name: "n" op: "NoOp")")));
  const Tensor* value = graph.ConstantValue(*c, 0);
  ASSERT_NE(value, nullptr);
  EXPECT_THAT(value->span<int32_t>(), ElementsAre(3, 4));
  EXPECT_EQ(graph.ConstantValue(*c, 0), value);
  EXPECT_EQ(graph.ConstantValue(*c, 0, 1), nullptr);
  EXPECT_EQ(graph.ConstantValue(*c, 0, 2), value);
  EXPECT_EQ(graph.ConstantValue(*c, 1), nullptr);
  EXPECT_EQ(graph.ConstantValue(*c, -1), nullptr);
  EXPECT_EQ(graph.ConstantValue(*noop, 0), nullptr);
}

TEST(Graph, KnowsWhichConstantsAreDecoded) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* c, graph.AddNode(OneNode(kConst)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* noop,
                                graph.AddNode(OneNode(R"(name: "n" op: "NoOp")")));
  EXPECT_EQ(internal::DecodedConstant(*c), nullptr);
  const Tensor* const value = graph.ConstantValue(*c, 0);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(internal::DecodedConstant(*c), value);
  EXPECT_EQ(internal::DecodedConstant(*noop), nullptr);
}

// The shape function of a node finds the variable of a handle behind Identity nodes.
TEST(Graph, InfersShapesOfVariablesThroughIdentity) {
  Registry registry;
  registry.Op("VarHandleOp").Output("resource: resource").Attr("dtype: type").Attr("shape: shape");
  registry.Op("Identity").Input("input: T").Output("output: T").Attr("T: type");
  registry.Op("Other").Input("input: resource").Output("output: resource");
  registry.Op("Read").Input("resource: resource").Output("value: float").Shape([](ShapeContext& c) {
    c.set_output(0, c.variable_shape(0));
    return absl::OkStatus();
  });
  GRADFLOW_ASSERT_OK(registry.status());
  Graph graph(registry);
  const GraphDef nodes = ToyGraphDef(R"(
    node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } dim { size: 3 } } } } }
    node { name: "i" op: "Identity" input: "v" attr { key: "T" value { type: DT_RESOURCE } } }
    node { name: "j" op: "Identity" input: "i" attr { key: "T" value { type: DT_RESOURCE } } }
    node { name: "o" op: "Other" input: "v" }
    node { name: "direct" op: "Read" input: "v" }
    node { name: "passed" op: "Read" input: "j" }
    node { name: "other" op: "Read" input: "o" })");
  for (const NodeDef& node : nodes.node()) GRADFLOW_ASSERT_OK(graph.AddNode(NodeDef(node)));
  const auto shape = [&](absl::string_view name) {
    return graph.FindNode(name)->output_shape(0).DebugString();
  };
  EXPECT_EQ(shape("direct"), "[2,3]");
  EXPECT_EQ(shape("passed"), "[2,3]");
  EXPECT_EQ(shape("other"), "<unknown>");

  // The number of Identity nodes is limited, so that each node takes limited time.
  for (int i = 2; i < 40; ++i) {
    NodeDef node = graph.FindNode("i")->def();
    node.set_name(absl::StrCat("i", i));
    node.set_input(0, i == 2 ? "j" : absl::StrCat("i", i - 1));
    GRADFLOW_ASSERT_OK(graph.AddNode(std::move(node)));
  }
  NodeDef read = graph.FindNode("direct")->def();
  for (const auto& [name, expected] : {std::pair{"i14", "[2,3]"}, std::pair{"i39", "<unknown>"}}) {
    read.set_name(absl::StrCat("read_", name));
    read.set_input(0, name);
    GRADFLOW_ASSERT_OK(graph.AddNode(NodeDef(read)));
    EXPECT_EQ(shape(read.name()), expected);
  }
}

// A value that repeats one element takes more memory than its encoding. The contents of strings
// count.
TEST(Graph, RepeatedConstantsHaveNoValueBeyondALimit) {
  Graph graph(ToyGraphRegistry());
  const auto constant = [&](absl::string_view name, absl::string_view type, int64_t size,
                            absl::string_view element) {
    return graph.AddNode(OneNode(absl::Substitute(
        R"(name: "$0" op: "Const" attr { key: "dtype" value { type: $1 } } attr { key: "value"
           value { tensor { dtype: $1 tensor_shape { dim { size: $2 } } $3 } } })",
        name, type, size, element)));
  };
  const std::string text(1000, 'a');
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* ints,
                                constant("i", "DT_INT32", int64_t{9} << 20, "int_val: 1"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Node* strings,
      constant("s", "DT_STRING", int64_t{1} << 16, absl::StrCat("string_val: '", text, "'")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* few, constant("f", "DT_STRING", 3, "string_val: 'a'"));
  EXPECT_EQ(graph.ConstantValue(*ints, 0), nullptr);
  EXPECT_EQ(graph.ConstantValue(*strings, 0), nullptr);
  const Tensor* value = graph.ConstantValue(*few, 0);
  ASSERT_NE(value, nullptr);
  EXPECT_THAT(value->span<tstring>(), ElementsAre("a", "a", "a"));
}

TEST(Graph, ConstantOfAnotherTypeHasNoValue) {
  Graph graph(ToyGraphRegistry());
  NodeDef def = OneNode(kConst);
  (*def.mutable_attr())["dtype"].set_type(DT_FLOAT);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Node* c,
                                graph.AddNode(std::move(def), /*infer_shapes=*/false));
  EXPECT_EQ(graph.ConstantValue(*c, 0), nullptr);
}

TEST(Graph, ShapeFunctionsSeeConstants) {
  const Scope root = Scope::NewRootScope(ToyGraphRegistry());
  const Output unknown = OpBuilder(root, "Placeholder")
                             .Attr("dtype", DT_INT32)
                             .Attr("shape", PartialTensorShape({3}))
                             .Finish()
                             .output(0);
  const auto fill = [&](const Input& dims) {
    return OpBuilder(root, "Fill").Input(dims).Input(1.0f).Finish().node();
  };
  EXPECT_EQ(fill(Input{5, 6})->output_shape(0).DebugString(), "[5,6]");
  EXPECT_EQ(fill(unknown)->output_shape(0).DebugString(), "[?,?,?]");
  fill(Input{5, -6});
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("node 'Fill_2' (Fill): dims")));
}

// The values of a rejected node must not apply to the next node with the same id.
TEST(Graph, ForgetsConstantsOfNodesThatFail) {
  Graph graph(ToyGraphRegistry());
  const std::string text = R"(
    node { name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor {
             dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: $0 } } } }
    node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
    node { name: "fill" op: "Fill" input: "dims" input: "one"
           attr { key: "T" value { type: DT_INT32 } } })";
  EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(absl::Substitute(text, -7)), &graph),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-7")));
  EXPECT_EQ(graph.num_nodes(), 0);
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(absl::Substitute(text, 7)), &graph), IsOk());
  EXPECT_EQ(graph.FindNode("fill")->output_shape(0).DebugString(), "[7]");
}

// ---- Names of tensors ----

TEST(TensorId, Parses) {
  const struct {
    const char* text;
    const char* node;
    int index;
  } cases[] = {{"a", "a", 0},       {"a:0", "a", 0},     {"a:12", "a", 12},  {"^a", "a", -1},
               {"a/b:3", "a/b", 3}, {"a:b", "a:b", 0},   {"a:", "a:", 0},    {"a:b:1", "a:b", 1},
               {"7", "7", 0},       {"^a:1", "a:1", -1}, {"a:-1", "a:-1", 0}};
  for (const auto& [text, node, index] : cases) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorId id, ParseTensorId(text));
    EXPECT_EQ(id.node, node) << text;
    EXPECT_EQ(id.index, index) << text;
  }
  for (const char* text : {"", "^", ":0", "a:2147483648", "a:99999999999999999999"}) {
    EXPECT_THAT(ParseTensorId(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(TensorId, Formats) {
  EXPECT_EQ(FormatTensorId({"a", 0}), "a");
  EXPECT_EQ(FormatTensorId({"a", 2}), "a:2");
  EXPECT_EQ(FormatTensorId({"a", -1}), "^a");
}

}  // namespace
}  // namespace gradflow
