// Tests of ImportGraphDefOptions::allow_missing_ops: graphs with nodes that can run and nodes that
// cannot.
#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/plan/tensor_names.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::gradflow::testing::ToyGraphRegistry;
using ::gradflow::testing::ToyNeg;
using ::gradflow::testing::ToyNode;
using ::gradflow::testing::ToyPlaceholder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;

ImportGraphDefOptions AllowMissing() {
  ImportGraphDefOptions options;
  options.allow_missing_ops = true;
  return options;
}

// a -> b -> c, a -> foo -> d -> e, and f after e; the order is not topological.
std::string Text() {
  return ToyNeg("f", {"a", "^e"}) + ToyNeg("e", {"d"}) + ToyPlaceholder("a") + ToyNeg("b", {"a"}) +
         ToyNode("foo", "Foo", "input: 'a' attr { key: 'k' value { i: 3 } }") +
         ToyNeg("d", {"foo:1"}) + ToyNeg("c", {"b"});
}

std::vector<std::string> Unresolved(const Graph& graph) {
  std::vector<std::string> names;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.node(id)->is_resolved()) names.push_back(graph.node(id)->name());
  }
  return names;
}

TEST(MissingOps, AreAnErrorByDefault) {
  Graph graph(ToyGraphRegistry());
  EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(Text()), &graph),
              StatusIs(kNotFound, "node 'foo' (Foo): op 'Foo' is not registered"));
}

TEST(MissingOps, StayInTheGraphWithTheNodesThatDependOnThem) {
  const GraphDef def = ToyGraphDef(Text());
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(ImportGraphDef(AllowMissing(), def, &graph));
  EXPECT_EQ(graph.num_nodes(), 7);
  EXPECT_THAT(Unresolved(graph), ElementsAre("f", "e", "foo", "d"));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(graph.def().node(4), def.node(4)));
  for (const char* name : {"f", "e", "foo", "d"}) {
    const Node& node = *graph.FindNode(name);
    EXPECT_EQ(node.num_inputs(), 0);
    EXPECT_EQ(node.num_outputs(), 0);
    EXPECT_THAT(node.sources(), IsEmpty());
    EXPECT_EQ(node.type_string(), node.def().op());
  }
  EXPECT_EQ(graph.FindNode("c")->sources()[0].node, graph.FindNode("b"));
  EXPECT_EQ(graph.FindNode("a")->out_edges().size(), 1u);
  EXPECT_THAT(graph.FindNode("c")->CheckResolved(), IsOk());
  EXPECT_THAT(UnusedOutputs(graph), ElementsAre("c"));
}

TEST(MissingOps, AreNamedByEachNodeThatNeedsThem) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(ImportGraphDef(AllowMissing(), ToyGraphDef(Text()), &graph));
  EXPECT_THAT(graph.FindNode("foo")->CheckResolved(),
              StatusIs(kNotFound, "node 'foo' (Foo): op 'Foo' is not registered"));
  EXPECT_THAT(graph.FindNode("f")->CheckResolved(),
              StatusIs(kNotFound,
                       "node 'f' (Neg): it depends on node 'foo' (Foo): op 'Foo' is not "
                       "registered"));
  EXPECT_THAT(FindTensor(graph, "fetch", "d:0"),
              StatusIs(kNotFound,
                       "fetch 'd:0': node 'd' (Neg): it depends on node 'foo' (Foo): op 'Foo' is "
                       "not registered"));
  EXPECT_THAT(FindTarget(graph, "foo"),
              StatusIs(kNotFound, "target 'foo': node 'foo' (Foo): op 'Foo' is not registered"));
  EXPECT_THAT(FindTensor(graph, "fetch", "c:0"), IsOk());
}

TEST(MissingOps, CannotBeInputsOfNodesThatAreAddedLater) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(ImportGraphDef(AllowMissing(), ToyGraphDef(Text()), &graph));
  const GraphDef more = ToyGraphDef(ToyNeg("g", {"d"}) + ToyNeg("h", {"g"}));
  const std::string error =
      "node 'g' (Neg): input 'd': node 'd' (Neg): it depends on node 'foo' (Foo): op 'Foo' is not "
      "registered";
  EXPECT_THAT(ImportGraphDef({}, more, &graph), StatusIs(kNotFound, error));
  NodeDef g = more.node(0);
  EXPECT_THAT(graph.AddNode(std::move(g)), StatusIs(kNotFound, error));
  EXPECT_EQ(graph.num_nodes(), 7);
  GRADFLOW_ASSERT_OK(ImportGraphDef(AllowMissing(), more, &graph));
  EXPECT_THAT(Unresolved(graph), ElementsAre("f", "e", "foo", "d", "g", "h"));
}

TEST(MissingOps, OtherErrorsRemain) {
  const std::string foo = ToyNode("foo", "Foo");
  const struct {
    std::string text;
    std::string error;
  } cases[] = {
      {foo + foo, "node 'foo' (Foo): another node has the same name"},
      {foo + ToyNeg("a", {"none"}), "node 'a' (Neg): input 'none' names no node of the graph"},
      {foo + ToyNeg("a", {"b"}) + ToyNeg("b", {"a"}), "the graph has a cycle: 'a' -> 'b' -> 'a'"},
      {foo + ToyNode("a", "Neg", "input: 'foo'"), "node 'a' (Neg): attribute T (type) is missing"},
      {ToyNode("n", "Foo", "attr { key: 'k' value { tensor { dtype: DT_RESOURCE } } }"),
       "node 'n' (Foo): attribute 'k': no tensor can have type resource"},
      {ToyNode("/", "Foo"), "node '/' (Foo): the name must begin with"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.text);
    Graph graph(ToyGraphRegistry());
    EXPECT_THAT(ImportGraphDef(AllowMissing(), ToyGraphDef(test.text), &graph),
                StatusIs(kInvalidArgument, HasSubstr(test.error)));
    EXPECT_EQ(graph.num_nodes(), 0);
    // The failed import left no node, so the name is free.
    GRADFLOW_EXPECT_OK(ImportGraphDef(AllowMissing(), ToyGraphDef(ToyPlaceholder("foo")), &graph));
    EXPECT_THAT(Unresolved(graph), IsEmpty());
  }
}

// Nodes that depend on missing ops may be in a cycle: nothing runs them.
TEST(MissingOps, MayBeInACycle) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(ImportGraphDef(
      AllowMissing(), ToyGraphDef(ToyNode("foo", "Foo", "input: 'a'") + ToyNeg("a", {"foo"})),
      &graph));
  EXPECT_THAT(Unresolved(graph), ElementsAre("foo", "a"));
}

}  // namespace
}  // namespace gradflow
