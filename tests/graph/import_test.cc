#include "gradflow/graph/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/graph.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::NodeNames;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::gradflow::testing::ToyGraphRegistry;
using ::gradflow::testing::ToyNeg;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyPlaceholder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- What is imported ----

TEST(Import, KeepsTheOrderOfTheFile) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def = ToyGraphDef(ToyNeg("c", {"b", "^a"}) + ToyNeg("b", {"a:0"}) +
                                   ToyPlaceholder("a") + ToyNode("d", "NoOp"));
  ASSERT_THAT(ImportGraphDef({}, def, &graph), IsOk());
  EXPECT_THAT(NodeNames(graph), ElementsAre("c", "b", "a", "d"));
  for (int id = 0; id < graph.num_nodes(); ++id) {
    EXPECT_EQ(graph.node(id)->id(), id);
    EXPECT_EQ(&graph.node(id)->def(), &graph.def().node(id));
    EXPECT_EQ(graph.FindNode(graph.node(id)->name()), graph.node(id));
  }
  const Node* c = graph.node(0);
  EXPECT_EQ(c->sources()[0].node, graph.node(1));
  EXPECT_EQ(c->sources()[1].node, graph.node(2));
  EXPECT_EQ(c->sources()[1].output, -1);
  EXPECT_EQ(graph.node(2)->out_edges().size(), 2);
}

TEST(Import, FillsInDefaultsAndShapes) {
  Graph graph(ToyGraphRegistry());
  const std::string shape =
      "attr { key: 'shape' value { shape { dim { size: 2 } dim { size: -1 } "
      "} } } attr { key: 'dtype' value { type: DT_FLOAT } }";
  ASSERT_THAT(ImportGraphDef(
                  {}, ToyGraphDef(ToyNeg("b", {"a"}) + ToyNode("a", "Placeholder", shape)), &graph),
              IsOk());
  EXPECT_EQ(graph.node(0)->output_shape(0).DebugString(), "[2,?]");
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(ToyPlaceholder("p")), &graph), IsOk());
  EXPECT_TRUE(graph.FindNode("p")->def().attr().at("shape").shape().unknown_rank());
}

TEST(Import, InfersNoShapesIfNotAsked) {
  Graph graph(ToyGraphRegistry());
  ImportGraphDefOptions options;
  options.infer_shapes = false;
  const std::string shape =
      "attr { key: 'shape' value { shape { dim { size: 2 } } } } "
      "attr { key: 'dtype' value { type: DT_FLOAT } }";
  ASSERT_THAT(ImportGraphDef(options, ToyGraphDef(ToyNode("a", "Placeholder", shape)), &graph),
              IsOk());
  EXPECT_TRUE(graph.node(0)->output_shape(0).unknown_rank());
}

TEST(Import, EmptyGraphIsFine) {
  Graph graph(ToyGraphRegistry());
  EXPECT_THAT(ImportGraphDef({}, GraphDef(), &graph), IsOk());
  EXPECT_EQ(graph.num_nodes(), 0);
}

TEST(Import, AddsToExistingNodes) {
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(ToyPlaceholder("a")), &graph), IsOk());
  const Node* a = graph.node(0);
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(ToyNeg("c", {"b"}) + ToyNeg("b", {"a"})), &graph),
              IsOk());
  EXPECT_THAT(NodeNames(graph), ElementsAre("a", "c", "b"));
  EXPECT_EQ(graph.FindNode("b")->sources()[0].node, a);
  EXPECT_EQ(graph.FindNode("c")->sources()[0].node, graph.FindNode("b"));
  EXPECT_EQ(&graph.node(2)->def(), &graph.def().node(2));
}

TEST(Import, PrefixIsPutBeforeEveryName) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def =
      ToyGraphDef(ToyPlaceholder("a") +
                  ToyNeg("b", {"a:0", "^a"},
                         "attr { key: '_class' value { list { s: 'loc:@a' s: 'other' } } }"));
  ASSERT_THAT(ImportGraphDef({}, def, &graph), IsOk());
  ImportGraphDefOptions options;
  for (const char* prefix : {"p", "q/r/"}) {
    options.prefix = prefix;
    ASSERT_THAT(ImportGraphDef(options, def, &graph), IsOk());
  }
  EXPECT_THAT(NodeNames(graph), ElementsAre("a", "b", "p/a", "p/b", "q/r/a", "q/r/b"));
  EXPECT_THAT(graph.FindNode("p/b")->def().input(), ElementsAre("p/a:0", "^p/a"));
  EXPECT_THAT(graph.FindNode("p/b")->def().attr().at("_class").list().s(),
              ElementsAre("loc:@p/a", "other"));
  EXPECT_EQ(graph.FindNode("p/b")->sources()[0].node, graph.FindNode("p/a"));
}

TEST(Import, PrefixedNodesSeeOnlyEachOther) {
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(ToyPlaceholder("a") + ToyPlaceholder("p/a")), &graph),
              IsOk());
  ImportGraphDefOptions options;
  options.prefix = "p";
  EXPECT_THAT(
      ImportGraphDef(options, ToyGraphDef(ToyNeg("b", {"a"})), &graph),
      StatusIs(kInvalidArgument, "node 'p/b' (Neg): input 'p/a' names no node of the graph"));
  EXPECT_THAT(ImportGraphDef(options, ToyGraphDef(ToyPlaceholder("a")), &graph),
              StatusIs(kInvalidArgument,
                       HasSubstr("node 'p/a' (Placeholder): the graph already has a node")));
  options.prefix = "not a name";
  EXPECT_THAT(ImportGraphDef(options, ToyGraphDef(ToyPlaceholder("a")), &graph),
              StatusIs(kInvalidArgument, HasSubstr("the name must begin")));
  EXPECT_EQ(graph.num_nodes(), 2);
}

TEST(Import, EmptyGraphTakesOverFunctionsVersionsAndUnknownFields) {
  GraphDef def = ToyGraphDef(ToyNode("n", "NoOp") + R"(
    versions { producer: 7 min_consumer: 3 bad_consumers: 5 }
    library { function { signature { name: 'f' } ret { key: 'y' value: 'n:y:0' } }
              gradient { function_name: 'f' gradient_func: 'g' } }
    debug_info { files: 'main.py' }
    version: 6)");
  def.GetReflection()->MutableUnknownFields(&def)->AddVarint(1001, 5);
  NodeDef& node = *def.mutable_node(0);
  node.mutable_experimental_debug_info()->add_original_node_names("original");
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(1002, "later");
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, def, &graph), IsOk());
  EXPECT_EQ(graph.def().SerializeAsString(), def.SerializeAsString());
}

TEST(Import, OtherGraphsGetFunctionsAndNarrowerVersions) {
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({},
                             ToyGraphDef(R"(
                versions { producer: 9 min_consumer: 1 bad_consumers: 5 }
                library { function { signature { name: 'f' } } })" +
                                         ToyNode("a", "NoOp")),
                             &graph),
              IsOk());
  ASSERT_THAT(ImportGraphDef({},
                             ToyGraphDef(R"(
                versions { producer: 8 min_consumer: 2 bad_consumers: 5 bad_consumers: 6 }
                library { function { signature { name: 'f' } } function { signature { name: 'g' } }
                          gradient { function_name: 'g' gradient_func: 'h' }
                          registered_gradients { gradient_func: 'h' registered_op_type: 'Neg' } })" +
                                         ToyNode("b", "NoOp")),
                             &graph),
              IsOk());
  EXPECT_EQ(graph.def().versions().producer(), 8);
  EXPECT_EQ(graph.def().versions().min_consumer(), 2);
  EXPECT_THAT(graph.def().versions().bad_consumers(), ElementsAre(5, 6));
  ASSERT_EQ(graph.def().library().function_size(), 2);
  EXPECT_EQ(graph.def().library().function(1).signature().name(), "g");
  EXPECT_EQ(graph.def().library().gradient_size(), 1);
  EXPECT_EQ(graph.def().library().registered_gradients_size(), 1);
}

// The most demanding part determines the versions, in whatever order the parts come.
TEST(Import, VersionsNeverGetWider) {
  const auto versions = [](int producer, int min_consumer) {
    return ToyGraphDef(absl::StrCat("versions { producer: ", producer,
                                    " min_consumer: ", min_consumer, " }",
                                    ToyNode(absl::StrCat("n", producer), "NoOp")));
  };
  for (const auto& [first, second] : {std::pair(8, 9), std::pair(9, 8)}) {
    Graph graph(ToyGraphRegistry());
    ASSERT_THAT(ImportGraphDef({}, versions(first, first - 5), &graph), IsOk());
    ASSERT_THAT(ImportGraphDef({}, versions(second, second - 5), &graph), IsOk());
    EXPECT_EQ(graph.def().versions().producer(), 8);
    EXPECT_EQ(graph.def().versions().min_consumer(), 4);
  }
}

TEST(Import, MinConsumerIsTheOldestReader) {
  const auto import = [](int min_consumer) {
    Graph graph(ToyGraphRegistry());
    return ImportGraphDef(
        {}, ToyGraphDef(absl::StrCat("versions { min_consumer: ", min_consumer, " }")), &graph);
  };
  EXPECT_THAT(import(kGraphDefVersion), IsOk());
  EXPECT_THAT(import(kGraphDefVersion + 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("needs a reader of version")));
}

TEST(Import, FunctionsMustNotContradict) {
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({},
                             ToyGraphDef("library { function { signature { name: 'f' } } "
                                         "gradient { function_name: 'f' gradient_func: 'g' } "
                                         "registered_gradients { gradient_func: 'h' "
                                         "registered_op_type: 'Neg' } }" +
                                         ToyNode("a", "NoOp")),
                             &graph),
              IsOk());
  const std::string before = graph.def().SerializeAsString();
  for (const auto& [library, error] : std::vector<std::pair<std::string, std::string>>{
           {"function { signature { name: 'f' is_stateful: true } }",
            "the graph already has another function 'f'"},
           {"gradient { function_name: 'f' gradient_func: 'h' }",
            "the graph already has another gradient of function 'f'"},
           {"registered_gradients { gradient_func: 'i' registered_op_type: 'Neg' }",
            "the graph already has another gradient of op 'Neg'"}}) {
    EXPECT_THAT(ImportGraphDef(
                    {}, ToyGraphDef("library { " + library + " }" + ToyNode("b", "NoOp")), &graph),
                StatusIs(kInvalidArgument, error));
    EXPECT_EQ(graph.def().SerializeAsString(), before);
  }
}

TEST(Import, MovedGraphIsNotCopied) {
  GraphDef def = ToyGraphDef(ToyPlaceholder("a"));
  const NodeDef* node = &def.node(0);
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, std::move(def), &graph), IsOk());
  EXPECT_EQ(&graph.node(0)->def(), node);
}

// A long chain in the worst order. Recursion would overflow the stack, and quadratic time would
// take minutes.
TEST(Import, TakesLongChainsInAnyOrder) {
  constexpr int kNodes = 100000;
  GraphDef def;
  for (int i = kNodes - 1; i >= 0; --i) {
    NodeDef* node = def.add_node();
    node->set_name(absl::StrCat("n", i));
    node->set_op(i == 0 ? "Placeholder" : "Neg");
    (*node->mutable_attr())[i == 0 ? "dtype" : "T"].set_type(DT_FLOAT);
    if (i > 0) node->add_input(absl::StrCat("n", i - 1));
  }
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, std::move(def), &graph), IsOk());
  EXPECT_EQ(graph.node(0)->name(), absl::StrCat("n", kNodes - 1));
  EXPECT_EQ(graph.node(kNodes - 1)->out_edges().size(), 1);
}

}  // namespace
}  // namespace gradflow
