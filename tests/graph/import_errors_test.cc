// Tests of the errors of ImportGraphDef.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
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
using ::testing::StartsWith;

struct BadGraph {
  const char* name;
  std::string graph;
  absl::StatusCode code;
  std::string error;
};

std::vector<BadGraph> BadGraphs() {
  const std::string a = ToyPlaceholder("a");
  const std::string half = "attr { key: 'T' value { type: DT_HALF } } input: 'h'";
  const std::string half_placeholder =
      ToyNode("h", "Placeholder", "attr { key: 'dtype' value { type: DT_HALF } }");
  return {
      // Names and ops.
      {"no name", a + "node { op: 'NoOp' }", kInvalidArgument,
       "node 1 of the graph (op 'NoOp') has no name"},
      {"no op", "node { name: 'n' }", kInvalidArgument, "node 'n' has no op"},
      {"bad name", ToyNode("a b", "NoOp"), kInvalidArgument,
       "node 'a b' (NoOp): the name must begin with a letter, a digit or '.', and continue with "
       "these, '_', '-', '/' and '>'"},
      {"internal name", ToyNode("_SOURCE", "NoOp"), kInvalidArgument,
       "node '_SOURCE' (NoOp): the name must"},
      {"duplicate name", a + ToyNode("n", "NoOp") + ToyPlaceholder("a"), kInvalidArgument,
       "node 'a' (Placeholder): another node has the same name"},
      // Missing ops and kernels.
      {"unknown op", a + ToyNode("n", "Negg"), absl::StatusCode::kNotFound,
       "node 'n' (Negg): op 'Negg' is not registered; did you mean 'Neg'?"},
      {"several unknown ops",
       ToyNode("n", "Negg") + ToyNode("m", "Convolve3000") + ToyNode("o", "Negg") +
           ToyNode("p", "Negg"),
       absl::StatusCode::kNotFound,
       "node 'n' (Negg) and 2 more: op 'Negg' is not registered; did you mean 'Neg'?\n"
       "node 'm' (Convolve3000): op 'Convolve3000' is not registered"},
      {"missing kernel", half_placeholder + ToyNode("n", "Neg", half),
       absl::StatusCode::kUnimplemented,
       "node 'n' (Neg): op 'Neg' has no kernel for (CPU; T = half); it has kernels for ("},
      {"unknown op and missing kernel",
       half_placeholder + ToyNode("n", "Neg", half) + ToyNode("o", "Neg", half) +
           ToyNode("m", "Mat"),
       absl::StatusCode::kNotFound, "node 'm' (Mat): op 'Mat' is not registered"},
      {"missing label", a + ToyNeg("n", {"a"}, "attr { key: '_kernel' value { s: 'slow' } }"),
       absl::StatusCode::kUnimplemented, "has no kernel for (CPU; T = float; label 'slow')"},
      {"attribute of a function",
       "library { function { signature { name: 'F' } } }" +
           ToyNode("n", "F", "attr { key: 'k' value { i: 1 } }"),
       kInvalidArgument, "node 'n' (F): unknown attribute 'k'"},
      {"deprecated op", "versions { producer: 1000 }" + ToyNode("n", "Retired"),
       absl::StatusCode::kUnimplemented,
       "node 'n' (Retired): the op may not be used in graphs of version 1000: it is deprecated "
       "since version 1000. Use Const."},
      // Attributes.
      {"missing attribute", a + ToyNode("n", "Neg", "input: 'a'"), kInvalidArgument,
       "node 'n' (Neg): attribute T (type) is missing"},
      {"wrong type of attribute",
       ToyNode("n", "Placeholder", "attr { key: 'dtype' value { i: 1 } }"), kInvalidArgument,
       "node 'n' (Placeholder): attribute dtype: expected type, but found 1 (int)"},
      {"value that is not allowed",
       ToyNode("n", "Neg", "input: 'n' attr { key: 'T' value { type: DT_STRING } }"),
       kInvalidArgument,
       "node 'n' (Neg): attribute T must be one of {half, float, double, int32}, but is string"},
      {"unknown attribute", ToyNode("n", "NoOp", "attr { key: 'x' value { i: 1 } }"),
       kInvalidArgument, "node 'n' (NoOp): unknown attribute 'x'"},
      {"attribute without value", ToyNode("n", "Placeholder", "attr { key: 'dtype' value {} }"),
       kInvalidArgument, "node 'n' (Placeholder): attribute dtype: "},
      {"number that is no type",
       ToyNode("n", "Placeholder", "attr { key: 'dtype' value { type: 77 } }"), kInvalidArgument,
       "node 'n' (Placeholder): attribute dtype: "},
      {"tensor that is none",
       ToyNode(
           "n", "Const",
           "attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'value' value { tensor { "
           "dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: 'abc' } } }"),
       kInvalidArgument, "node 'n' (Const): attribute value: "},
      {"list under its minimum", ToyNode("n", "IdentityN", "attr { key: 'T' value { list {} } }"),
       kInvalidArgument,
       "node 'n' (IdentityN): attribute T must have at least 1 element, but has 0"},
      {"absurd length",
       ToyNode("n", "Pack",
               "attr { key: 'N' value { i: 9000000000000000000 } } "
               "attr { key: 'T' value { type: DT_FLOAT } }"),
       kInvalidArgument, "node 'n' (Pack): the length of values must be from 0 to "},
      // Inputs.
      {"too few inputs", ToyNeg("n", {}), kInvalidArgument,
       "node 'n' (Neg): expected 1 input (x), but found 0"},
      {"too many inputs", a + ToyNeg("n", {"a", "a"}), kInvalidArgument,
       "node 'n' (Neg): expected 1 input (x), but found 2"},
      {"missing input", ToyNeg("n", {"b"}), kInvalidArgument,
       "node 'n' (Neg): input 'b' names no node of the graph"},
      {"missing control input", a + ToyNeg("n", {"a", "^b"}), kInvalidArgument,
       "node 'n' (Neg): input '^b' names no node of the graph"},
      {"empty input", ToyNeg("n", {""}), kInvalidArgument, "node 'n' (Neg): '' names no node"},
      {"empty control input", a + ToyNeg("n", {"a", "^"}), kInvalidArgument,
       "node 'n' (Neg): '^' names no node"},
      {"output that does not exist", a + ToyNeg("n", {"a:1"}), kInvalidArgument,
       "node 'n' (Neg): input 'a:1' does not exist: 'a' (Placeholder) has 1 output"},
      {"output of none", ToyNode("o", "NoOp") + ToyNeg("n", {"o"}), kInvalidArgument,
       "node 'n' (Neg): input 'o' does not exist: 'o' (NoOp) has 0 outputs"},
      {"index beyond int", a + ToyNeg("n", {"a:4294967296"}), kInvalidArgument,
       "node 'n' (Neg): the index in 'a:4294967296' is too large"},
      {"control input before data input", a + ToyNeg("n", {"^a", "a"}), kInvalidArgument,
       "node 'n' (Neg): input 'a' comes after a control input; these must be last"},
      {"wrong type of input", half_placeholder + ToyNeg("n", {"h"}), kInvalidArgument,
       "node 'n' (Neg): input x ('h') has type half, expected float (attribute T)"},
      {"wrong type in a list",
       a + half_placeholder +
           ToyNode("n", "Pack",
                   "input: 'a' input: 'h' attr { key: 'N' value { i: 2 } } "
                   "attr { key: 'T' value { type: DT_FLOAT } }"),
       kInvalidArgument,
       "node 'n' (Pack): input values[1] ('h') has type half, expected float (attribute T)"},
      {"wrong fixed type", half_placeholder + ToyNode("n", "Pair", "input: 'h'"), kInvalidArgument,
       "node 'n' (Pair): input x ('h') has type half, expected float"},
      // Cycles.
      {"node that feeds itself", ToyNeg("n", {"n"}), kInvalidArgument,
       "the graph has a cycle: 'n' -> 'n'"},
      {"cycle",
       a + ToyNeg("x", {"a", "^z"}) + ToyNeg("y", {"x"}) + ToyNeg("z", {"y"}) + ToyNeg("w", {"z"}),
       kInvalidArgument, "the graph has a cycle: 'x' -> 'y' -> 'z' -> 'x'"},
      {"control cycle", ToyNode("n", "NoOp", "input: '^m'") + ToyNode("m", "NoOp", "input: '^n'"),
       kInvalidArgument, "the graph has a cycle: 'n' -> 'm' -> 'n'"},
      // Colocation.
      {"colocation", ToyNode("n", "NoOp", "attr { key: '_class' value { list { s: 'loc:@m' } } }"),
       kInvalidArgument, "node 'n' (NoOp): it is colocated with 'm', which is not in the graph"},
      {"colocation that is no list",
       ToyNode("n", "NoOp", "attr { key: '_class' value { s: 'm' } }"), kInvalidArgument,
       "node 'n' (NoOp): attribute _class: "},
      // Versions.
      {"too new", "versions { producer: 9999 min_consumer: 9999 }", kInvalidArgument,
       "the graph needs a reader of version 9999, but gradflow reads up to version 2200"},
      {"bad consumer", "versions { producer: 9 bad_consumers: 3 bad_consumers: 2200 }",
       kInvalidArgument, "the graph excludes readers of version 2200, the version of gradflow"},
      {"negative producer", "versions { producer: -1 }", kInvalidArgument,
       "the graph's producer has version -1, expected 0 or more"},
      // Shapes.
      {"shapes",
       ToyNode("a", "Placeholder",
               "attr { key: 'dtype' value { type: DT_FLOAT } } "
               "attr { key: 'shape' value { shape { dim { size: 2 } dim { size: 3 } } } }") +
           ToyNode("n", "MatMul",
                   "input: 'a' input: 'a' attr { key: 'T' value { type: DT_FLOAT } }"),
       kInvalidArgument, "node 'n' (MatMul): a and b must agree, but have shapes [2,3] and [2,3]"},
  };
}

TEST(Import, RefusesBadGraphsWithoutChange) {
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(ImportGraphDef({}, ToyGraphDef(ToyPlaceholder("old")), &graph), IsOk());
  const std::string before = graph.def().SerializeAsString();
  for (const BadGraph& bad : BadGraphs()) {
    SCOPED_TRACE(bad.name);
    const GraphDef def = ToyGraphDef(bad.graph);
    Graph empty(ToyGraphRegistry());
    EXPECT_THAT(ImportGraphDef({}, def, &empty), StatusIs(bad.code, HasSubstr(bad.error)));
    EXPECT_EQ(empty.num_nodes(), 0);
    EXPECT_EQ(empty.def().node_size(), 0);
    EXPECT_THAT(ImportGraphDef({}, def, &graph), StatusIs(bad.code, HasSubstr(bad.error)));
    EXPECT_THAT(NodeNames(graph), ElementsAre("old"));
    EXPECT_EQ(graph.FindNode("n"), nullptr);
    EXPECT_EQ(graph.def().SerializeAsString(), before);
  }
  EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(ToyNeg("n", {"old"})), &graph), IsOk());
}

TEST(Import, ReportsMissingOpsBeforeOtherFaults) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def = ToyGraphDef(ToyNode("n", "Placeholder") + ToyNode("m", "Nope"));
  EXPECT_THAT(ImportGraphDef({}, def, &graph),
              StatusIs(absl::StatusCode::kNotFound, StartsWith("node 'm' (Nope)")));
}

// Missing ops and missing kernels are errors in any order, next to other nodes.
TEST(Import, ReportsMissingOpsAndKernelsInAnyOrder) {
  const std::string op = ToyNode("m", "Nope");
  const std::string half =
      ToyNode("h", "Placeholder", "attr { key: 'dtype' value { type: DT_HALF } }");
  const std::string kernel =
      ToyNode("k", "Neg", "input: 'h' attr { key: 'T' value { type: DT_HALF } }");
  const std::string fault = ToyNode("n", "Placeholder");
  const std::string good = ToyPlaceholder("good");
  std::vector<std::string> parts = {op, half + kernel, fault, good};
  std::sort(parts.begin(), parts.end());
  do {
    std::string text;
    for (const std::string& part : parts) text += part;
    SCOPED_TRACE(text);
    Graph graph(ToyGraphRegistry());
    EXPECT_THAT(
        ImportGraphDef({}, ToyGraphDef(text), &graph),
        StatusIs(absl::StatusCode::kNotFound,
                 ::testing::AllOf(HasSubstr("node 'm' (Nope): "), HasSubstr("node 'k' (Neg): "))));
    EXPECT_EQ(graph.num_nodes(), 0);
  } while (std::next_permutation(parts.begin(), parts.end()));
  for (const std::string& text : {op + half + kernel, half + kernel + op, op + good, good + op}) {
    Graph graph(ToyGraphRegistry());
    EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(text), &graph),
                StatusIs(absl::StatusCode::kNotFound));
  }
  for (const std::string& text : {half + kernel, half + kernel + good, good + half + kernel}) {
    Graph graph(ToyGraphRegistry());
    EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(text), &graph),
                StatusIs(absl::StatusCode::kUnimplemented));
  }
}

TEST(Import, ListsEveryKindOfMissingKernel) {
  Graph graph(ToyGraphRegistry());
  const std::string half = "input: 'h' attr { key: 'T' value { type: DT_HALF } }";
  const GraphDef def =
      ToyGraphDef(ToyNode("h", "Placeholder", "attr { key: 'dtype' value { type: DT_HALF } }") +
                  ToyPlaceholder("a") + ToyNode("n1", "Neg", half) + ToyNode("n2", "Neg", half) +
                  ToyNeg("n3", {"a"}, "attr { key: '_kernel' value { s: 'slow' } }"));
  EXPECT_THAT(ImportGraphDef({}, def, &graph),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(StartsWith("node 'n1' (Neg) and 1 more: op 'Neg' has no kernel"),
                             HasSubstr("\nnode 'n3' (Neg): op 'Neg' has no kernel"))));
  ImportGraphDefOptions options;
  options.require_kernels = false;
  EXPECT_THAT(ImportGraphDef(options, def, &graph), IsOk());
}

TEST(Import, NodesNeedAKernelOnTheirDevice) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def =
      ToyGraphDef(ToyPlaceholder("a") + ToyNeg("cpu", {"a"}, "device: '/device:CPU:0'") +
                  ToyNeg("gpu0", {"a"}, "device: '/job:worker/device:GPU:0'") +
                  ToyNeg("gpu1", {"a"}, "device: '/gpu:1'"));
  EXPECT_THAT(
      ImportGraphDef({}, def, &graph),
      StatusIs(absl::StatusCode::kUnimplemented,
               StartsWith("node 'gpu0' (Neg) and 1 more: op 'Neg' has no kernel for (GPU; T = "
                          "float); it has kernels for (CPU")));
  ImportGraphDefOptions options;
  options.require_kernels = false;
  EXPECT_THAT(ImportGraphDef(options, def, &graph), IsOk());
}

// Nodes that resemble an earlier node skip some checks.
TEST(Import, ChecksNodesThatResembleAnEarlierNode) {
  const std::string inputs =
      ToyPlaceholder("x") +
      ToyNode("i", "Placeholder", "attr { key: 'dtype' value { type: DT_INT32 } }") +
      ToyNode("h", "Placeholder", "attr { key: 'dtype' value { type: DT_HALF } }");
  const std::string good =
      ToyNeg("neg", {"x"}) +
      ToyNode("mode", "Mode", "input: 'x' attr { key: 'mode' value { s: 'FAST' } }");
  const std::string type = " attr { key: 'T' value { type: DT_FLOAT } }";
  const std::string bad[] = {
      ToyNeg("bad", {"x", "x"}),
      ToyNeg("bad", {}),
      ToyNeg("bad", {"^x"}),
      ToyNeg("bad", {"i"}),
      ToyNeg("bad", {"x:1"}),
      ToyNeg("b d", {"x"}),
      ToyNeg("bad", {"x"}, "device: '/device:GPU:0'"),
      ToyNeg("bad", {"x"}, "attr { key: '_class' value { list { s: 'loc:@none' } } }"),
      ToyNeg("bad", {"x"}, "attr { key: 'more' value { i: 1 } }"),
      ToyNeg("bad", {"x"}, "attr { key: '_kernel' value { s: 'special' } }"),
      ToyNode("bad", "Neg", "input: 'h' attr { key: 'T' value { type: DT_HALF } }"),
      ToyNode("bad", "Neg", "input: 'x' attr { key: 'T' value { i: 1 } }"),
      ToyNode("bad", "Neg", "input: 'x'"),
      ToyNode("bad", "Mode", "input: 'x' attr { key: 'mode' value { s: 'FASTER' } }"),
      ToyNode("bad", "Mode",
              "input: 'x' attr { key: 'mode' value { s: 'FAST' } } "
              "attr { key: 'sizes' value { s: 'no list' } }"),
  };
  for (const std::string& node : bad) {
    const auto import = [](const std::string& text) {
      Graph graph(ToyGraphRegistry());
      return ImportGraphDef(ImportGraphDefOptions(), ToyGraphDef(text), &graph);
    };
    const absl::Status alone = import(inputs + node);
    ASSERT_FALSE(alone.ok()) << node;
    EXPECT_EQ(import(inputs + good + node), alone);
    // Nodes that resemble a rejected node are also rejected.
    Graph graph(ToyGraphRegistry());
    GRADFLOW_ASSERT_OK(ImportGraphDef(ImportGraphDefOptions(), ToyGraphDef(inputs + good), &graph));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(ImportGraphDef(ImportGraphDefOptions(), ToyGraphDef(node), &graph), alone);
    }
    GRADFLOW_EXPECT_OK(
        graph.AddNode(std::move(*ToyGraphDef(ToyNeg("neg2", {"x"})).mutable_node(0))));
  }
}

TEST(Import, LimitsTheListOfMissingOps) {
  GraphDef def;
  for (int i = 0; i < 20000; ++i) {
    NodeDef* node = def.add_node();
    node->set_name(absl::StrCat("n", i));
    node->set_op(absl::StrCat("Unknown", i));
  }
  Graph graph(ToyGraphRegistry());
  const absl::Status status = ImportGraphDef({}, def, &graph);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\nand 19950 more kinds of nodes")));
  EXPECT_LT(status.message().size(), 10000);
}

TEST(Import, LongCyclesAreTruncatedInErrors) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    absl::StrAppend(&text, ToyNeg(absl::StrCat("n", i), {absl::StrCat("n", (i + 29) % 30)}));
  Graph graph(ToyGraphRegistry());
  EXPECT_THAT(ImportGraphDef({}, ToyGraphDef(text), &graph),
              StatusIs(kInvalidArgument,
                       "the graph has a cycle: 'n0' -> 'n1' -> 'n2' -> 'n3' -> 'n4' -> 'n5' -> "
                       "'n6' -> 'n7' -> 'n8' -> (21 more) -> 'n0'"));
}

TEST(Import, ErrorsEscapeBytesOfNames) {
  GraphDef def;
  def.add_node()->set_name(std::string(5000, '\x01'));
  def.mutable_node(0)->set_op(std::string(5000, '\n'));
  Graph graph(ToyGraphRegistry());
  const absl::Status status = ImportGraphDef({}, def, &graph);
  EXPECT_FALSE(status.ok());
  EXPECT_LT(status.message().size(), 5000);
  for (const char c : status.message()) EXPECT_GE(c, ' ');
}

}  // namespace
}  // namespace gradflow
