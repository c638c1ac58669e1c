// Tests of what `gradflow view` makes of graphs: the data of the page, differences, text for
// Graphviz. tests/tools/view_command_test.cc runs the command, web/test the page.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/graph/import.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tools/json.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/dot.h"
#include "tools/view/graph_diff.h"
#include "tools/view/graph_json.h"
#include "tools/view/page.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Value;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

AnalyzedGraph Analyze(const Scope& root) {
  GraphDef def;
  EXPECT_TRUE(root.ToGraphDef(&def).ok());
  return AnalyzeGraph(std::move(def), GraphLimits());
}

AnalyzedGraph AnalyzeText(const std::string& text) {
  absl::StatusOr<GraphDef> def = ParseGraphDefText(text);
  EXPECT_TRUE(def.ok()) << def.status();
  return AnalyzeGraph(*std::move(def), GraphLimits());
}

// The JSON of a graph, parsed by another parser.
class Json {
 public:
  explicit Json(const std::string& text) {
    const auto status = google::protobuf::util::JsonStringToMessage(text, &value_);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
  }
  explicit Json(const AnalyzedGraph& graph, const GraphJsonOptions& options = {})
      : Json(GraphJson(graph, options)) {}

  const Value& operator[](const std::string& key) const {
    return value_.struct_value().fields().at(key);
  }
  // The texts of a list of strings.
  std::vector<std::string> Texts(const std::string& key) const {
    std::vector<std::string> texts;
    for (const Value& value : (*this)[key].list_value().values()) {
      texts.push_back(value.string_value());
    }
    return texts;
  }
  const Value& Node(int i) const { return (*this)["nodes"].list_value().values(i); }
  int num_nodes() const { return (*this)["nodes"].list_value().values_size(); }
  std::string NodeName(int i) const { return Node(i).list_value().values(0).string_value(); }
  std::string OpName(int i) const {
    const int op = static_cast<int>(Node(i).list_value().values(1).number_value());
    return Op(op).at("n").string_value();
  }
  const google::protobuf::Map<std::string, Value>& Op(int i) const {
    return (*this)["ops"].list_value().values(i).struct_value().fields();
  }
  // [node, output, ...]
  std::vector<int> Inputs(int i) const { return Numbers(Node(i).list_value().values(2)); }
  bool Has(int i, const std::string& key) const {
    const auto& parts = Node(i).list_value();
    return parts.values_size() > 3 && parts.values(3).struct_value().fields().count(key) > 0;
  }
  const Value& Extra(int i, const std::string& key) const {
    return Node(i).list_value().values(3).struct_value().fields().at(key);
  }
  std::vector<int> ExtraNumbers(int i, const std::string& key) const {
    return Has(i, key) ? Numbers(Extra(i, key)) : std::vector<int>();
  }
  std::string ExtraText(int i, const std::string& key) const {
    return Texts("strings")[static_cast<int>(Extra(i, key).number_value())];
  }
  // The texts whose indices a node has.
  std::vector<std::string> ExtraTexts(int i, const std::string& key) const {
    const std::vector<std::string> strings = Texts("strings");
    std::vector<std::string> texts;
    for (const int id : ExtraNumbers(i, key)) texts.push_back(strings[id]);
    return texts;
  }

 private:
  static std::vector<int> Numbers(const Value& list) {
    std::vector<int> numbers;
    for (const Value& value : list.list_value().values()) {
      numbers.push_back(static_cast<int>(value.number_value()));
    }
    return numbers;
  }

  Value value_;
};

TEST(Json, QuotesAnyBytes) {
  EXPECT_EQ(Quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Quoted(absl::string_view("\0\n\x1f", 3)), "\"\\u0000\\u000a\\u001f\"");
  EXPECT_EQ(Quoted("</script>"), "\"</script>\"");
  EXPECT_EQ(Quoted("h\u00e4 \u202e \U0001f600"), "\"h\u00e4 \u202e \U0001f600\"");
  // Truncated, overlong, surrogate, too large, and a continuation alone.
  for (const char* bytes : {"\xc3", "\xe2\x82", "\xc0\xaf", "\xff", "\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(Quoted(bytes), HasSubstr("\ufffd")) << absl::CEscape(bytes);
  }
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");
}

TEST(Json, LimitsTextAtACharacter) {
  EXPECT_EQ(ValidUtf8("abc", 3), "abc");
  EXPECT_EQ(ValidUtf8("abcd", 3), "abc... (4 bytes)");
  EXPECT_EQ(ValidUtf8("ab\u20ac", 4), "ab... (5 bytes)");
  EXPECT_EQ(ValidUtf8("\xff", 10), "\ufffd");
}

TEST(GraphJson, HasNodesPinsShapesAndAttributes) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({-1, 3}));
  Scope layer = root.NewSubScope("layer");
  Output two = ops::Const(layer.WithOpName("two"), 2.0f);
  Output y = ops::Mul(layer.WithOpName("y"), x, two);
  ops::Identity(root.WithOpName("after").WithControlDependencies(y), x);
  ops::FakeQuantWithMinMaxArgs(root.WithOpName("q"), y,
                               ops::FakeQuantWithMinMaxArgs::Attrs().NumBits(4));
  ops::Stack(root.WithOpName("stack"), {y, y});
  GraphJsonOptions options;
  options.title = "a graph";
  const Json json(Analyze(root), options);
  EXPECT_EQ(json["format"].number_value(), 1);
  EXPECT_EQ(json["title"].string_value(), "a graph");
  EXPECT_FALSE(json["diff"].bool_value());
  EXPECT_THAT(json.Texts("notes"), IsEmpty());
  ASSERT_EQ(json.num_nodes(), 6);
  EXPECT_EQ(json.NodeName(2), "layer/y");
  EXPECT_EQ(json.OpName(2), "Mul");
  EXPECT_THAT(json.Inputs(2), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(json.ExtraTexts(2, "t"), ElementsAre("float", "[?,3]"));
  EXPECT_EQ(json.ExtraText(1, "v"), "2");
  // Control inputs are apart.
  EXPECT_THAT(json.Inputs(3), ElementsAre(0, 0));
  EXPECT_THAT(json.ExtraNumbers(3, "c"), ElementsAre(2));
  // Attributes with their default are those of the op.
  EXPECT_THAT(json.ExtraTexts(4, "a"), ElementsAre("num_bits", "4"));
  const int op = static_cast<int>(json.Node(4).list_value().values(1).number_value());
  const std::string attrs = json.Op(op).at("a").DebugString();
  EXPECT_THAT(attrs, AllOf(HasSubstr("\"narrow_range\""), HasSubstr("\"false\"")));
  EXPECT_THAT(json.Op(op).at("s").string_value(), Not(IsEmpty()));
  EXPECT_EQ(json.Op(op).at("k").number_value(), 1);
  // Sizes of lists.
  EXPECT_THAT(json.ExtraNumbers(5, "ni"), ElementsAre(2));
  EXPECT_FALSE(json.Has(5, "mo"));
}

TEST(GraphJson, ShowsGraphsThatCannotRun) {
  const AnalyzedGraph graph = AnalyzeText(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "odd" op: "NoSuchOp" input: "x" }
    node { name: "y" op: "Neg" input: "odd" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "lost" op: "Neg" input: "nowhere:3" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "z" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "loop" op: "Neg" input: "loop" attr { key: "T" value { type: DT_FLOAT } } })");
  EXPECT_THAT(graph.problems, Not(IsEmpty()));
  const Json json(graph);
  EXPECT_THAT(json.Texts("notes")[0], HasSubstr("NoSuchOp"));
  ASSERT_EQ(json.num_nodes(), 6);
  EXPECT_EQ(json.ExtraText(1, "e"), "the op is not registered");
  EXPECT_EQ(json.Op(1).at("k").number_value(), 0);
  EXPECT_EQ(json.ExtraText(3, "e"), "an input is not in the graph");
  EXPECT_THAT(json.Inputs(3), ElementsAre(-1, 3));
  EXPECT_THAT(json.ExtraTexts(3, "u"), ElementsAre("nowhere:3"));
  // Shapes that do not depend on the unknown op are known.
  EXPECT_THAT(json.ExtraTexts(4, "t"), ElementsAre("float", "[2]"));
  EXPECT_FALSE(json.Has(2, "t"));
  EXPECT_THAT(json.Inputs(5), ElementsAre(5, 0));
}

TEST(GraphJson, TakesDuplicateNames) {
  const Json json(AnalyzeText(R"(
    node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }
    node { name: "b" op: "NoOp" input: "^a" })"));
  EXPECT_EQ(json.num_nodes(), 3);
  EXPECT_THAT(json.ExtraNumbers(2, "c"), ElementsAre(0));
  EXPECT_THAT(json.Texts("notes"), Not(IsEmpty()));
}

TEST(ProducersFirst, KeepsTheOrderOfTheGraph) {
  // Node 0 reads 2; 3 and 4 are a cycle, which 5 reads; 6 reads what is not there.
  EXPECT_THAT(ProducersFirst({{{2, 0}}, {}, {}, {{4, 0}}, {{3, -1}}, {{3, 0}}, {{-1, 0}, {1, 0}}}),
              ElementsAre(1, 2, 0, 6));
  EXPECT_THAT(ProducersFirst({{}, {{0, 0}}, {}, {{1, 0}, {1, 0}}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ProducersFirst({}), ElementsAre());
}

TEST(GraphJson, ShowsFunctions) {
  const Json json(AnalyzeText(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "call" op: "twice" input: "x" }
    library { function {
      signature { name: "twice" input_arg { name: "a" type: DT_FLOAT }
                  output_arg { name: "r" type: DT_FLOAT } }
      node_def { name: "sum" op: "AddV2" input: "a" input: "a"
                 attr { key: "T" value { type: DT_FLOAT } } }
      node_def { name: "norm" op: "FusedBatchNormV3" input: "sum:z:0" input: "^sum" }
      node_def { name: "neg" op: "Neg" input: "norm:reserve_space_1:0" input: "nothing" }
      ret { key: "r" value: "neg:y:0" } } })"));
  const auto& function = json["functions"].list_value().values(0).list_value();
  EXPECT_EQ(function.values(0).string_value(), "twice");
  EXPECT_EQ(function.values(1).number_value(), 2);
  EXPECT_EQ(function.values(2).number_value(), 5);
  EXPECT_EQ(json.OpName(2), "_Arg");
  EXPECT_THAT(json.Inputs(3), ElementsAre(2, 0, 2, 0));
  EXPECT_THAT(json.ExtraNumbers(4, "c"), ElementsAre(3));
  // The fourth output of the op.
  EXPECT_THAT(json.Inputs(5), ElementsAre(4, 3, -1, 0));
  EXPECT_EQ(json.OpName(6), "_Retval");
  EXPECT_THAT(json.Inputs(6), ElementsAre(5, 0));
  // The call has the pins of the function.
  EXPECT_EQ(json.OpName(1), "twice");
  EXPECT_EQ(json.Op(1).at("k").number_value(), 2);
}

TEST(GraphJson, IsSmallForNodesWithManyOutputs) {
  GraphDef def;
  NodeDef* const node = def.add_node();
  node->set_name("s");
  node->set_op("Split");
  node->add_input("axis");
  node->add_input("x");
  (*node->mutable_attr())["T"].set_type(DT_FLOAT);
  (*node->mutable_attr())["num_split"].set_i(1 << 20);
  for (const char* name : {"axis", "x"}) {
    NodeDef* const input = def.add_node();
    input->set_name(name);
    input->set_op("Placeholder");
    (*input->mutable_attr())["dtype"].set_type(name[0] == 'x' ? DT_FLOAT : DT_INT32);
    (*input->mutable_attr())["shape"].mutable_shape()->set_unknown_rank(true);
  }
  const AnalyzedGraph graph = AnalyzeGraph(def, GraphLimits());
  EXPECT_THAT(graph.problems, IsEmpty());
  const std::string text = GraphJson(graph, {});
  EXPECT_LT(text.size(), 20000u);
  const Json json(text);
  EXPECT_EQ(json.Extra(0, "no").number_value(), 1 << 20);
  EXPECT_THAT(json.ExtraNumbers(0, "t"), SizeIs(128));
}

TEST(GraphJson, KeepsHostileTextAsText) {
  const std::string name = "</script><b>\"'\\ \u202e";
  GraphDef def;
  NodeDef* const node = def.add_node();
  node->set_name(name);
  node->set_op("<!--");
  (*node->mutable_attr())["bytes"].set_s("\xff\xfe</script>");
  NodeDef* const long_node = def.add_node();
  long_node->set_name(std::string(30000, 'n'));
  long_node->set_op("NoOp");
  const AnalyzedGraph graph = AnalyzeGraph(def, GraphLimits());
  const std::string text = GraphJson(graph, {});
  const Json json(text);
  EXPECT_EQ(json.NodeName(0), name);
  EXPECT_EQ(json.OpName(0), "<!--");
  EXPECT_THAT(json.ExtraTexts(0, "a")[1], HasSubstr("\\377\\376</script>"));
  EXPECT_THAT(json.NodeName(1), HasSubstr("... (30000 bytes)"));
  // The page has none of it as markup.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string page, Page(text));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string other, Page("{}"));
  const auto count = [](const std::string& html) {
    size_t tags = 0;
    for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) ++tags;
    return tags;
  };
  EXPECT_EQ(count(page), count(other));
}

TEST(Page, IsTheShellWithData) {
  const std::string shell(Shell());
  const size_t place = shell.find("@DATA@");
  ASSERT_NE(place, std::string::npos);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string page, Page("[1,2]"));
  EXPECT_EQ(page.substr(0, place), shell.substr(0, place));
  EXPECT_TRUE(absl::EndsWith(page, shell.substr(place + 6)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string again, Page("[1,2]"));
  EXPECT_EQ(page, again);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string other, Page("[1,3]"));
  EXPECT_NE(page, other);
  EXPECT_THAT(shell, AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'sha256-"),
                           HasSubstr("style-src 'sha256-"), Not(HasSubstr("unsafe-inline")),
                           Not(HasSubstr("unsafe-eval")), Not(HasSubstr("https://"))));
}

// ---- Differences ----

// Two layers of x * w + b with relu.
GraphDef TwoLayers(const std::function<void(GraphDef*)>& change = nullptr) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({2, 3}));
  for (int i = 0; i < 2; ++i) {
    Scope layer = root.NewSubScope(absl::StrCat("layer", i));
    Output w = ops::Const(layer.WithOpName("w"), 2.0f + i);
    Output product = ops::Mul(layer.WithOpName("mul"), x, w);
    Output sum =
        ops::Add(layer.WithOpName("add"), product, ops::Const(layer.WithOpName("b"), 1.0f));
    x = ops::Relu(layer.WithOpName("relu"), sum);
  }
  GraphDef def;
  EXPECT_TRUE(root.ToGraphDef(&def).ok());
  if (change != nullptr) change(&def);
  return def;
}

NodeDef* Find(GraphDef* def, const std::string& name) {
  for (NodeDef& node : *def->mutable_node()) {
    if (node.name() == name) return &node;
  }
  ADD_FAILURE() << "no node " << name;
  return def->add_node();
}

struct DiffCase {
  explicit DiffCase(const std::function<void(GraphDef*)>& change)
      : before(AnalyzeGraph(TwoLayers(), GraphLimits())),
        after(AnalyzeGraph(TwoLayers(change), GraphLimits())),
        diff(DiffGraphs(before, after)) {}
  DiffCase(AnalyzedGraph old_graph, AnalyzedGraph new_graph)
      : before(std::move(old_graph)),
        after(std::move(new_graph)),
        diff(DiffGraphs(before, after)) {}

  // "+name" for added, "-name" for removed, "name: change" for changed nodes.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines;
    for (int i = 0; i < after.def.node_size(); ++i) {
      const std::string& name = after.def.node(i).name();
      if (diff.old_of_new[i] < 0) lines.push_back("+" + name);
      for (const std::string& change : diff.changes[i]) lines.push_back(name + ": " + change);
    }
    for (int i = 0; i < before.def.node_size(); ++i) {
      if (diff.new_of_old[i] < 0) lines.push_back("-" + before.def.node(i).name());
    }
    return lines;
  }

  AnalyzedGraph before;
  AnalyzedGraph after;
  GraphDiff diff;
};

TEST(GraphDiff, OfEqualGraphsIsEmpty) {
  EXPECT_THAT(DiffCase([](GraphDef*) {}).Lines(), IsEmpty());
  // The order of nodes has no meaning.
  EXPECT_THAT(DiffCase([](GraphDef* def) { def->mutable_node()->SwapElements(0, 6); }).Lines(),
              IsEmpty());
}

TEST(GraphDiff, FindsChangedConstantsAttributesAndShapes) {
  EXPECT_THAT(DiffCase([](GraphDef* def) {
                auto& value = (*Find(def, "layer1/w")->mutable_attr())["value"];
                value.mutable_tensor()->clear_float_val();
                value.mutable_tensor()->add_float_val(7);
              }).Lines(),
              ElementsAre(AllOf(HasSubstr("layer1/w: attr value: "), HasSubstr("values: 3>"),
                                HasSubstr(" -> "), HasSubstr("values: 7>"))));
  EXPECT_THAT(
      DiffCase([](GraphDef* def) {
        (*Find(def, "x")->mutable_attr())["shape"].mutable_shape()->mutable_dim(0)->set_size(5);
      }).Lines(),
      AllOf(::testing::Contains("x: attr shape: [2,3] -> [5,3]"),
            ::testing::Contains("layer1/relu: output 0: float [2,3] -> float [5,3]")));
  EXPECT_THAT(
      DiffCase([](GraphDef* def) { Find(def, "layer0/mul")->set_device("/cpu:0"); }).Lines(),
      ElementsAre("layer0/mul: device:  -> /cpu:0"));
}

TEST(GraphDiff, FindsRenamedNodesByStructure) {
  EXPECT_THAT(DiffCase([](GraphDef* def) {
                for (NodeDef& node : *def->mutable_node()) {
                  const auto rename = [](const std::string& name) {
                    return absl::StartsWith(name, "layer1/") ? "second" + name.substr(6) : name;
                  };
                  node.set_name(rename(node.name()));
                  for (std::string& input : *node.mutable_input()) input = rename(input);
                }
              }).Lines(),
              ElementsAre("second/w: name: layer1/w -> second/w",
                          "second/mul: name: layer1/mul -> second/mul",
                          "second/b: name: layer1/b -> second/b",
                          "second/add: name: layer1/add -> second/add",
                          "second/relu: name: layer1/relu -> second/relu"));
}

// Layers of x * w + b with relu, whose names are their places.
AnalyzedGraph Layers(const std::vector<float>& weights) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({2, 3}));
  for (size_t i = 0; i < weights.size(); ++i) {
    Scope layer = root.NewSubScope(absl::StrCat("layer", i));
    Output product =
        ops::Mul(layer.WithOpName("mul"), x, ops::Const(layer.WithOpName("w"), weights[i]));
    Output sum =
        ops::Add(layer.WithOpName("add"), product, ops::Const(layer.WithOpName("b"), 1.0f));
    x = ops::Relu(layer.WithOpName("relu"), sum);
  }
  ops::Neg(root.WithOpName("out"), x);
  GraphDef def;
  EXPECT_TRUE(root.ToGraphDef(&def).ok());
  return AnalyzeGraph(std::move(def), GraphLimits());
}

TEST(GraphDiff, FindsAnInsertedLayerWhoseNameAnotherHad) {
  const auto renamed = [](int from, int to, const char* node) {
    return absl::StrCat("layer", to, "/", node, ": name: layer", from, "/", node, " -> layer", to,
                        "/", node);
  };
  const DiffCase inserted(Layers({1, 2, 3, 4}), Layers({1, 9, 2, 3, 4}));
  std::vector<std::string> lines = {"layer2/mul: input 0: layer0/relu -> layer1/relu"};
  for (const char* node : {"w", "mul", "b", "add", "relu"}) {
    for (int i = 1; i < 4; ++i) lines.push_back(renamed(i, i + 1, node));
    lines.push_back(absl::StrCat("+layer1/", node));
  }
  EXPECT_THAT(inserted.Lines(), ::testing::UnorderedElementsAreArray(lines));
  const DiffCase removed(Layers({1, 9, 2, 3, 4}), Layers({1, 2, 3, 4}));
  lines = {"layer1/mul: input 0: layer1/relu -> layer0/relu"};
  for (const char* node : {"w", "mul", "b", "add", "relu"}) {
    for (int i = 1; i < 4; ++i) lines.push_back(renamed(i + 1, i, node));
    lines.push_back(absl::StrCat("-layer1/", node));
  }
  EXPECT_THAT(removed.Lines(), ::testing::UnorderedElementsAreArray(lines));
}

TEST(GraphDiff, NodesThatSwapTheirNamesAreNotRewired) {
  const char* const kInputs = R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "y" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } })";
  const DiffCase swapped(AnalyzeText(absl::StrCat(kInputs, R"(
    node { name: "a" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "b" op: "Neg" input: "y" attr { key: "T" value { type: DT_INT32 } } })")),
                         AnalyzeText(absl::StrCat(kInputs, R"(
    node { name: "a" op: "Neg" input: "y" attr { key: "T" value { type: DT_INT32 } } }
    node { name: "b" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })")));
  EXPECT_THAT(swapped.Lines(), ElementsAre("a: name: b -> a", "b: name: a -> b"));
}

TEST(GraphDiff, FindsRenamedNodesOfCycles) {
  const DiffCase changed(AnalyzeText(R"(
    node { name: "alone" op: "Relu" input: "alone" }
    node { name: "a" op: "Neg" input: "b" }
    node { name: "b" op: "Square" input: "a" })"),
                         AnalyzeText(R"(
    node { name: "c" op: "Neg" input: "d" }
    node { name: "d" op: "Square" input: "c" })"));
  EXPECT_THAT(changed.Lines(), ElementsAre("c: name: a -> c", "d: name: b -> d", "-alone"));
}

TEST(GraphDiff, FindsRenamedNodesByTheirNeighbors) {
  // What it computes and its name differ; its place and op are the same.
  EXPECT_THAT(DiffCase([](GraphDef* def) {
                NodeDef* const node = Find(def, "layer0/mul");
                node->set_name("product");
                node->set_device("/cpu:0");
                Find(def, "layer0/add")->set_input(0, "product");
                auto& value = (*Find(def, "layer0/w")->mutable_attr())["value"];
                value.mutable_tensor()->clear_float_val();
                value.mutable_tensor()->add_float_val(7);
              }).Lines(),
              AllOf(SizeIs(3), ::testing::Contains("product: name: layer0/mul -> product"),
                    ::testing::Contains("product: device:  -> /cpu:0")));
}

TEST(GraphDiff, FindsAddedAndRemovedNodesAndWiring) {
  const DiffCase changed([](GraphDef* def) {
    NodeDef* const neg = def->add_node();
    neg->set_name("neg");
    neg->set_op("Neg");
    neg->add_input("layer0/relu");
    (*neg->mutable_attr())["T"].set_type(DT_FLOAT);
    Find(def, "layer1/mul")->set_input(0, "neg");
    // An op without its like in the old graph.
    Find(def, "layer1/relu")->set_op("Relu6");
  });
  EXPECT_THAT(changed.Lines(), ElementsAre("layer1/mul: input 0: layer0/relu -> neg",
                                           "layer1/relu: op: Relu -> Relu6", "+neg"));
  const DiffCase removed([](GraphDef* def) { def->mutable_node()->RemoveLast(); });
  EXPECT_THAT(removed.Lines(), ElementsAre("-layer1/relu"));
}

TEST(GraphDiff, FindsNodesOfMoreAndOfFewerInputs) {
  const auto sum = [](const char* name, int count) {
    std::string text = R"(
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
      node { name: "a" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })";
    absl::StrAppend(&text, "node { name: '", name, "' op: 'AddN'");
    for (int i = 0; i < count; ++i) absl::StrAppend(&text, " input: '", i == 1 ? "x" : "a", "'");
    return AnalyzeText(absl::StrCat(text, " attr { key: 'N' value { i: ", count,
                                    " } } attr { key: 'T' value { type: DT_FLOAT } } }"));
  };
  EXPECT_THAT(
      DiffCase(sum("s", 1), sum("s", 3)).Lines(),
      ElementsAre("s: attr N: 1 -> 3", "s: input 1: (none) -> x", "s: input 2: (none) -> a"));
  EXPECT_THAT(DiffCase(sum("s", 3), sum("s", 2)).Lines(),
              ElementsAre("s: attr N: 3 -> 2", "s: input 2: a -> (none)"));
}

TEST(GraphDiff, IsShownAsOneGraph) {
  const DiffCase changed([](GraphDef* def) {
    def->mutable_node()->RemoveLast();
    Find(def, "layer0/mul")->set_device("/cpu:0");
    NodeDef* const node = def->add_node();
    node->set_name("new");
    node->set_op("NoOp");
  });
  GraphJsonOptions options;
  options.old_graph = &changed.before;
  options.diff = &changed.diff;
  const Json json(changed.after, options);
  EXPECT_TRUE(json["diff"].bool_value());
  const int n = changed.after.def.node_size();
  ASSERT_EQ(json.num_nodes(), n + 1);
  EXPECT_EQ(json.NodeName(n - 1), "new");
  EXPECT_EQ(json.Extra(n - 1, "k").number_value(), 1);
  EXPECT_EQ(json.NodeName(n), "layer1/relu");
  EXPECT_EQ(json.Extra(n, "k").number_value(), 2);
  // The removed node reads the node of the new graph that it did.
  const std::vector<int> inputs = json.Inputs(n);
  ASSERT_THAT(inputs, SizeIs(2));
  EXPECT_EQ(json.NodeName(inputs[0]), "layer1/add");
  int marked = 0;
  for (int i = 0; i < n; ++i) {
    if (!json.Has(i, "k") || json.Extra(i, "k").number_value() != 3) continue;
    ++marked;
    EXPECT_EQ(json.NodeName(i), "layer0/mul");
    EXPECT_THAT(json.ExtraTexts(i, "h"), ElementsAre("device:  -> /cpu:0"));
  }
  EXPECT_EQ(marked, 1);
  const std::string dot = DotText(changed.after, &changed.before, &changed.diff);
  EXPECT_THAT(dot, AllOf(HasSubstr("style=dotted"), HasSubstr("palegreen"), HasSubstr("khaki")));
}

// ---- Graphviz ----

TEST(DotText, HasNodesEdgesAndClusters) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({2}));
  Output y = ops::Neg(root.NewSubScope("a").NewSubScope("b").WithOpName("y"), x);
  ops::NoOp(root.WithOpName("done").WithControlDependencies(y));
  EXPECT_EQ(DotText(Analyze(root)),
            "digraph gradflow {\n"
            "  rankdir=LR;\n"
            "  node [shape=box, fontname=\"sans-serif\"];\n"
            "  edge [fontname=\"sans-serif\", fontsize=10];\n"
            "  n0 [label=\"x\\nPlaceholder\"];\n"
            "  n2 [label=\"done\\nNoOp\"];\n"
            "  subgraph cluster_0 {\n"
            "    label=\"a\";\n"
            "    subgraph cluster_1 {\n"
            "      label=\"b\";\n"
            "      n1 [label=\"a/b/y\\nNeg\"];\n"
            "    }\n"
            "  }\n"
            "  n0 -> n1 [label=\"float [2]\"];\n"
            "  n1 -> n2 [style=dashed];\n"
            "}\n");
}

TEST(DotText, QuotesNames) {
  const AnalyzedGraph graph = AnalyzeText(R"(node { name: "a\"b\\n\n]" op: "Odd" })");
  EXPECT_THAT(DotText(graph),
              HasSubstr("  n0 [label=\"a\\\"b\\\\n\\\\x0a]\\nOdd\", color=red];\n"));
}

}  // namespace
}  // namespace gradflow::tools
