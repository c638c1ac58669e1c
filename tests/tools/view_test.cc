// Tests of `gradflow view`: the data of the page, differences, and Graphviz text.
// tests/tools/view_command_test.cc tests the command, and web/test tests the page.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
using ::testing::StartsWith;

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

// The data of a page, parsed by an independent JSON parser.
class PageData {
 public:
  explicit PageData(const std::string& text) {
    const auto status = google::protobuf::util::JsonStringToMessage(text, &value_);
    EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
  }
  explicit PageData(const AnalyzedGraph& graph, const GraphJsonOptions& options = {})
      : PageData(GraphJson(graph, options)) {}

  const Value& operator[](const std::string& key) const {
    return value_.struct_value().fields().at(key);
  }
  // Returns a list of strings.
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
  // Returns the texts whose indices are in a field of a node.
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

TEST(JsonText, QuotesAnyBytes) {
  const auto quoted = [](const std::string& text) { return JsonText(text); };
  EXPECT_EQ(quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(quoted(std::string("\0\n\x1f", 3)), R"("\u0000\n\u001f")");
  EXPECT_EQ(quoted("</script>"), "\"</script>\"");
  EXPECT_EQ(quoted("h\u00e4 \u202e \U0001f600"), "\"h\u00e4 \u202e \U0001f600\"");
  // The bytes are truncated, overlong, a surrogate, too large, or a single continuation byte.
  for (const char* bytes : {"\xc3", "\xe2\x82", "\xc0\xaf", "\xff", "\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(quoted(bytes), HasSubstr("\ufffd")) << absl::CEscape(bytes);
  }
  EXPECT_EQ(quoted("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xed\xbf\xbf"), "\"\ufffd\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "\"\ufffd\ufffd\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xe0\x9f\xbf"), "\"\ufffd\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xf0\x8f\xbf\xbf"), "\"\ufffd\ufffd\ufffd\ufffd\"");
  EXPECT_EQ(quoted("\xc3z"), "\"\ufffdz\"");
  // The first and the last character of each length, and the characters around surrogates.
  const std::string edges =
      " \x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80"
      "\xf4\x8f\xbf\xbf";
  EXPECT_EQ(quoted(edges), "\"" + edges + "\"");
}

TEST(JsonText, HasExactNumbersInTheOrderOfTheirMembers) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(JsonText({{"z", std::numeric_limits<int64_t>::min()},
                      {"a", std::numeric_limits<uint64_t>::max()},
                      {"m", {0.1, kInf, -kInf, std::nan("")}}}),
            R"({"z":-9223372036854775808,"a":18446744073709551615,"m":[0.1,null,null,null]})");
}

TEST(JsonArrayText, HasElementsOnLines) {
  JsonArrayText empty;
  EXPECT_EQ(empty.Finish(), "[]");
  JsonArrayText array;
  array.Add("a\xff");
  array.AddText("[1,2]");
  array.Add(nullptr);
  EXPECT_EQ(array.Finish(), "[\"a\ufffd\",\n[1,2],\nnull]");
}

TEST(JsonObjectText, HasMembersInTheirOrder) {
  JsonObjectText empty;
  EXPECT_EQ(empty.Finish(), "{}");
  JsonObjectText object;
  object.AddText("b\"", "[1,2]");
  object.Add("a\xff", "\xff");
  EXPECT_EQ(object.Finish(), "{\"b\\\"\":[1,2],\"a\ufffd\":\"\ufffd\"}");
}

TEST(LimitedText, EndsWithACharacter) {
  EXPECT_EQ(LimitedText("abc", 3), "abc");
  EXPECT_EQ(LimitedText("abcd", 3), "abc... (4 bytes)");
  EXPECT_EQ(LimitedText("ab\u20ac", 4), "ab... (5 bytes)");
  EXPECT_EQ(LimitedText("\U0001f600\U0001f600", 7), "\U0001f600... (8 bytes)");
  EXPECT_EQ(LimitedText("\U0001f600\U0001f600", 3), "... (8 bytes)");
  // Bytes that do not begin a character do not count as the end of a character.
  EXPECT_EQ(LimitedText(std::string(9, '\x80'), 8), std::string(5, '\x80') + "... (9 bytes)");
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
  const PageData json(Analyze(root), options);
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
  // Control inputs are listed separately.
  EXPECT_THAT(json.Inputs(3), ElementsAre(0, 0));
  EXPECT_THAT(json.ExtraNumbers(3, "c"), ElementsAre(2));
  // Attributes with their default value are listed with the op.
  EXPECT_THAT(json.ExtraTexts(4, "a"), ElementsAre("num_bits", "4"));
  const int op = static_cast<int>(json.Node(4).list_value().values(1).number_value());
  const std::string attrs = json.Op(op).at("a").DebugString();
  EXPECT_THAT(attrs, AllOf(HasSubstr("\"narrow_range\""), HasSubstr("\"false\"")));
  EXPECT_THAT(json.Op(op).at("s").string_value(), Not(IsEmpty()));
  EXPECT_EQ(json.Op(op).at("k").number_value(), 1);
  // The sizes of lists are listed.
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
  const PageData json(graph);
  EXPECT_THAT(json.Texts("notes")[0], HasSubstr("NoSuchOp"));
  ASSERT_EQ(json.num_nodes(), 6);
  EXPECT_EQ(json.ExtraText(1, "e"), "the op is not registered");
  EXPECT_EQ(json.Op(1).at("k").number_value(), 0);
  EXPECT_EQ(json.ExtraText(3, "e"), "an input is not in the graph");
  EXPECT_THAT(json.Inputs(3), ElementsAre(-1, 3));
  EXPECT_THAT(json.ExtraTexts(3, "u"), ElementsAre("nowhere:3"));
  // Shapes that do not depend on the unknown op are inferred.
  EXPECT_THAT(json.ExtraTexts(4, "t"), ElementsAre("float", "[2]"));
  EXPECT_FALSE(json.Has(2, "t"));
  EXPECT_THAT(json.Inputs(5), ElementsAre(5, 0));
}

TEST(GraphJson, TakesDuplicateNames) {
  const PageData json(AnalyzeText(R"(
    node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }
    node { name: "b" op: "NoOp" input: "^a" })"));
  EXPECT_EQ(json.num_nodes(), 3);
  EXPECT_THAT(json.ExtraNumbers(2, "c"), ElementsAre(0));
  EXPECT_THAT(json.Texts("notes"), Not(IsEmpty()));
}

TEST(FindSources, FindsNodesAndOutputs) {
  GraphDef def;
  def.add_node()->set_name("x");
  def.add_node()->set_name("y");
  for (const char* input : {"x", "y:2", "^x", "none:3", "^none", "", "y:z"}) {
    def.mutable_node(0)->add_input(input);
  }
  std::vector<std::pair<int, int>> sources;
  const InputSources all = FindSources(def);
  for (const InputSource& source : all[0]) {
    sources.emplace_back(source.node, source.output);
  }
  EXPECT_EQ(sources, (std::vector<std::pair<int, int>>{
                         {0, 0}, {1, 2}, {0, -1}, {-1, 3}, {-1, -1}, {-1, 0}, {-1, 0}}));
}

TEST(ProducersFirst, KeepsTheOrderOfTheGraph) {
  // Node 0 reads node 2. Nodes 3 and 4 form a cycle, which node 5 reads. Node 6 reads a missing
  // node.
  EXPECT_THAT(ProducersFirst({{{2, 0}}, {}, {}, {{4, 0}}, {{3, -1}}, {{3, 0}}, {{-1, 0}, {1, 0}}}),
              ElementsAre(1, 2, 0, 6));
  EXPECT_THAT(ProducersFirst({{}, {{0, 0}}, {}, {{1, 0}, {1, 0}}}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ProducersFirst({}), ElementsAre());
}

TEST(GraphJson, ShowsFunctions) {
  const PageData json(AnalyzeText(R"(
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
  // The input is the fourth output of the op.
  EXPECT_THAT(json.Inputs(5), ElementsAre(4, 3, -1, 0));
  EXPECT_EQ(json.OpName(6), "_Retval");
  EXPECT_THAT(json.Inputs(6), ElementsAre(5, 0));
  // The call has the pins of the function.
  EXPECT_EQ(json.OpName(1), "twice");
  EXPECT_EQ(json.Op(1).at("k").number_value(), 2);
}

// Nodes that call functions have arrows, types and shapes, in the graph and in functions.
TEST(GraphJson, HasTheTypesOfCallsInFunctions) {
  const PageData json(AnalyzeText(R"(
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "call" op: "outer" input: "x" }
    node { name: "odd" op: "Unheard" }
    library {
      function {
        signature { name: "inner" input_arg { name: "a" type: DT_FLOAT }
                    output_arg { name: "r" type: DT_FLOAT }
                    output_arg { name: "s" type: DT_INT64 } }
        node_def { name: "size" op: "Size" input: "a" attr { key: "T" value { type: DT_FLOAT } }
                   attr { key: "out_type" value { type: DT_INT64 } } }
        ret { key: "r" value: "a" } ret { key: "s" value: "size:output:0" } }
      function {
        signature { name: "outer" input_arg { name: "a" type: DT_FLOAT }
                    output_arg { name: "r" type: DT_INT64 } }
        node_def { name: "first" op: "inner" input: "a" }
        node_def { name: "second" op: "inner" input: "first:r:0" }
        node_def { name: "neg" op: "Neg" input: "second:s:0"
                   attr { key: "T" value { type: DT_INT64 } } }
        ret { key: "r" value: "neg:y:0" } } })"));
  // The other nodes have types although the graph cannot run.
  EXPECT_THAT(json.ExtraTexts(1, "t"), ElementsAre("int64", "<unknown>"));
  // `inner` has nodes 3 to 6, and `outer` has nodes 7 to 11.
  EXPECT_THAT(json.ExtraTexts(4, "t"), ElementsAre("int64", "[]"));
  EXPECT_EQ(json.OpName(8), "inner");
  EXPECT_THAT(json.Inputs(8), ElementsAre(7, 0));
  EXPECT_THAT(json.ExtraTexts(8, "t"), ElementsAre("float", "<unknown>", "int64", "<unknown>"));
  EXPECT_THAT(json.Inputs(9), ElementsAre(8, 0));
  EXPECT_THAT(json.Inputs(10), ElementsAre(9, 1));
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
  const PageData json(text);
  EXPECT_EQ(json.Extra(0, "no").number_value(), 1 << 20);
  EXPECT_THAT(json.ExtraNumbers(0, "t"), SizeIs(128));
}

TEST(GraphJson, KeepsHostileTextAsText) {
  const std::string name = "</script><b>\"'\\ \u202e\x01\n\x7f";
  GraphDef def;
  NodeDef* const node = def.add_node();
  node->set_name(name);
  node->set_op("<!--");
  (*node->mutable_attr())["bytes"].set_s("\xff\xfe</script>");
  NodeDef* const long_node = def.add_node();
  long_node->set_name(std::string(30000, 'n'));
  long_node->set_op("NoOp");
  NodeDef* const invalid_node = def.add_node();
  invalid_node->set_name("a\xff\xc3");
  invalid_node->set_op("\x80\"");
  invalid_node->set_device("\xed\xa0\x80");
  FunctionDef* const function = def.mutable_library()->add_function();
  function->mutable_signature()->set_name("f\xff\"");
  function->mutable_signature()->add_input_arg()->set_name("\"\xff\n");
  AnalyzedGraph graph = AnalyzeGraph(def, GraphLimits());
  graph.problems.push_back("\"\xff");
  GraphJsonOptions options;
  options.title = "\xff</script>\"";
  const std::string text = GraphJson(graph, options);
  const PageData json(text);
  EXPECT_EQ(json.NodeName(0), name);
  EXPECT_EQ(json.OpName(0), "<!--");
  EXPECT_THAT(json.ExtraTexts(0, "a")[1], HasSubstr("\\377\\376</script>"));
  EXPECT_THAT(json.NodeName(1), HasSubstr("... (30000 bytes)"));
  EXPECT_EQ(json.NodeName(2), "a\ufffd\ufffd");
  EXPECT_EQ(json.OpName(2), "\ufffd\"");
  EXPECT_EQ(json.ExtraText(2, "d"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(json.NodeName(3), "\"\ufffd\n");
  EXPECT_EQ(json["title"].string_value(), "\ufffd</script>\"");
  EXPECT_EQ(json.Texts("notes").back(), "\"\ufffd");
  EXPECT_THAT(text, HasSubstr("\"functions\":[[\"f\ufffd\\\"\",3,1]],"));
  // The page contains none of the text as markup.
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

TEST(Page, ContainsTheShellAndTheData) {
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

// Returns a graph of two layers x * w + b with ReLU.
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

  // Returns "+name" for added, "-name" for removed, and "name: change" for changed nodes.
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

TEST(GraphDiff, IsEmptyForEqualGraphs) {
  EXPECT_THAT(DiffCase([](GraphDef*) {}).Lines(), IsEmpty());
  // The order of nodes does not matter.
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

// Returns a graph of layers x * w + b with ReLU. The names of the layers are their positions.
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

TEST(GraphDiff, FindsAnInsertedLayerThatTakesAnExistingName) {
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
  // The value and the name of the node differ, but its position and op are the same.
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
    // The old graph has no such op.
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
  const PageData json(changed.after, options);
  EXPECT_TRUE(json["diff"].bool_value());
  const int n = changed.after.def.node_size();
  ASSERT_EQ(json.num_nodes(), n + 1);
  EXPECT_EQ(json.NodeName(n - 1), "new");
  EXPECT_EQ(json.Extra(n - 1, "k").number_value(), 1);
  EXPECT_EQ(json.NodeName(n), "layer1/relu");
  EXPECT_EQ(json.Extra(n, "k").number_value(), 2);
  // The removed node reads the same node as before, now in the new graph.
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

// ---- The JSON text ----

// Returns the JSON of the functions, nodes and strings.
std::string NodesOf(const std::string& json) { return json.substr(json.find("\"functions\":")); }

TEST(GraphJson, HasTheExpectedText) {
  const AnalyzedGraph graph = AnalyzeText(R"(
    node { name: "c" op: "Const" device: "/cpu:0" attr { key: "dtype" value { type: DT_INT32 } }
           attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } }
                                                int_val: 1 int_val: 2 } } } }
    node { name: "p" op: "Unpack" input: "c" input: "^c" attr { key: "num" value { i: 2 } }
           attr { key: "T" value { type: DT_INT32 } } }
    node { name: "n" op: "AddN" input: "p:1" input: "p" attr { key: "N" value { i: 2 } }
           attr { key: "T" value { type: DT_INT32 } } }
    node { name: "o" op: "Odd" input: "none:2" input: "^lost" attr { key: "value" value { i: 3 } } }
    node { name: "call" op: "f" }
    library { function {
      signature { name: "f" input_arg { name: "a" type_attr: "T" number_attr: "N" }
                  output_arg { name: "r" type: DT_FLOAT is_ref: true }
                  output_arg { name: "s" type_list_attr: "L" }
                  output_arg { name: "none" type: DT_INT32 } }
      node_def { name: "m" op: "Odd" device: "/cpu:0" input: "a" input: "^a" input: "^u" input: "v"
                 attr { key: "k" value { b: true } } }
      ret { key: "r" value: "m:y:1" } ret { key: "s" value: "^m" } }
      function { signature { name: "g" } } })");
  GraphJsonOptions options;
  options.title = "the title";
  options.run = "{\"r\":1}";
  options.edit = "{\"e\":2}";
  const std::string json = GraphJson(graph, options);
  EXPECT_EQ(NodesOf(json),
            R"("functions":[["f",5,5],
["g",10,0]],"nodes":[["c",0,[],{"a":[0,1,2,3],"v":4,"d":5,"t":[6,7]}],
["p",1,[0,0],{"a":[8,1,9,10],"c":[0],"t":[6,11,6,11],"mo":[2]}],
["n",2,[1,1,1,0],{"a":[12,10,8,1],"t":[6,11],"ni":[2]}],
["o",3,[-1,2],{"a":[2,15],"c":[-1],"u":[13,14],"e":16}],
["call",4,[]],
["a",5,[],{"a":[8,17]}],
["m",3,[5,0,-1,0,-1,0],{"a":[20,21],"c":[5],"u":[18,19],"d":5}],
["r",6,[6,1],{"a":[8,22]}],
["s",6,[6,0],{"a":[8,23]}],
["none",6,[-1,0],{"a":[8,6]}]],"strings":[)"
            R"("dtype",
"DT_INT32",
"value",
"Tensor<type: int32 shape: [2] values: 1 2>",
"1 2",
"/cpu:0",
"int32",
"[2]",
"T",
"num",
"2",
"[]",
"N",
"none:2",
"^lost",
"3",
"the op is not registered",
"N * T",
"^u",
"v",
"k",
"true",
)"
            R"x("Ref(float)",
"L"],"run":{"r":1},"edit":{"e":2}})x"
            "\n");
  EXPECT_THAT(json, AllOf(StartsWith("{\"format\":1,\"generator\":\"gradflow "),
                          HasSubstr(",\"title\":\"the title\",\"diff\":false,\"notes\":[\"")));
  // The ops come in the order of their nodes.
  for (const char* op :
       {R"(,"ops":[{"n":"Const","k":1,"s":")", ",\n{\"n\":\"Unpack\",\"k\":1,",
        ",\n{\"n\":\"Odd\",\"k\":0,\"s\":\"\",\"d\":\"\",\"i\":[],\"o\":[],"
        "\"a\":[],\"f\":0},\n",
        R"({"n":"f","k":2,"s":"","d":"","i":[["a","N * T","",1]],)"
        R"x("o":[["r","Ref(float)","",0],["s","L","",1],["none","int32","",0]],"a":[],"f":0})x"}) {
    EXPECT_THAT(json, HasSubstr(op));
  }
  EXPECT_EQ(NodesOf(GraphJson(AnalyzedGraph(), {})),
            "\"functions\":[],\"nodes\":[],\"strings\":[]}\n");
}

TEST(GraphJson, ListsTypesOfUpTo64Outputs) {
  for (const int num : {64, 65}) {
    const std::string json = GraphJson(
        AnalyzeText(absl::StrCat(
            "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } ",
            "node { name: 'p' op: 'Unpack' input: 'x' attr { key: 'num' value { i: ", num,
            " } } attr { key: 'T' value { type: DT_FLOAT } } }")),
        {});
    EXPECT_EQ(json.find("\"no\":65") != std::string::npos, num == 65);
    EXPECT_EQ(json.find("\"no\":"), json.find("\"no\":65"));
  }
}

TEST(GraphJson, SeparatesTheLinesOfProblems) {
  AnalyzedGraph graph;
  graph.problems = {"one", "\"two\"", "three"};
  EXPECT_THAT(GraphJson(graph, {}), HasSubstr(R"(,"notes":["one","\"two\"","three"],"ops":[],)"));
}

TEST(GraphJson, MarksNodesThatDiffer) {
  const DiffCase changed(AnalyzeText(R"(
    node { name: "gone" op: "Gone" } node { name: "a" op: "A" input: "gone" }
    node { name: "gone too" op: "Lost" input: "a" input: "gone" input: "a" })"),
                         AnalyzeText(R"(
    node { name: "a" op: "A" input: "new" device: "d" } node { name: "new" op: "New" })"));
  GraphJsonOptions options;
  options.old_graph = &changed.before;
  options.diff = &changed.diff;
  EXPECT_EQ(NodesOf(GraphJson(changed.after, options)),
            R"("functions":[],"nodes":[)"
            R"(["a",0,[1,0],{"d":2,"e":3,"k":3,"h":[0,1]}],
["new",1,[],{"e":3,"k":1}],
["gone",2,[],{"e":3,"k":2}],
["gone too",3,[0,0,2,0,0,0],{"e":3,"k":2}]],"strings":[)"
            R"("device:  -> d",
"input 0: gone -> new",
"d",
"the op is not registered"]}
)");
}

TEST(OpJson, HasTheDefinition) {
  OpDef def;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    name: "Mine" summary: "S." description: "D." is_stateful: true
    input_arg { name: "a" type_attr: "T" description: "First." }
    input_arg { name: "b" type: DT_FLOAT number_attr: "N" }
    output_arg { name: "y" type_list_attr: "L" }
    attr { name: "T" type: "type" allowed_values { list { type: [DT_FLOAT, DT_HALF] } } }
    attr { name: "N" type: "int" has_minimum: true minimum: 2 description: "Count." }
    attr { name: "mode" type: "string" default_value { s: "SAME" }
           allowed_values { list { s: ["SAME", "VALID"] } } })",
                                                            &def));
  EXPECT_EQ(OpJson("Mine", def, OpKind::kRegistered),
            R"({"n":"Mine","k":1,"s":"S.","d":"D.","i":[["a","T","First.",0],)"
            R"(["b","N * float","",1]],"o":[["y","L","",1]],"a":[["T","type",null,""],)"
            R"(["N","int",null,"Count."],["mode","string","\"SAME\"",""]],"f":1})");
  EXPECT_THAT(OpJson("Mine", def, OpKind::kFunction, /*for_editing=*/true), HasSubstr(R"("k":2,)"));
  EXPECT_THAT(
      OpJson("Mine", def, OpKind::kRegistered, /*for_editing=*/true),
      HasSubstr(R"("a":[["T","type",null,"",null,["float","half"],null],)"
                R"(["N","int",null,"Count.",2,[],null],)"
                R"(["mode","string","\"SAME\"","",null,["SAME","VALID"],"s: \"SAME\""]],)"));
}

TEST(OwnAttrs, OmitDefaults) {
  OpDef op;
  NodeDef node;
  for (int i = 0; i < 258; ++i) {
    OpDef::AttrDef* const attr = op.add_attr();
    attr->set_name(absl::StrCat("a", i));
    attr->mutable_default_value()->set_i(i);
  }
  op.mutable_attr(3)->clear_default_value();
  for (const int i : {0, 1, 3, 255, 256}) {
    (*node.mutable_attr())[absl::StrCat("a", i)].set_i(i == 1 ? 7 : i);
  }
  (*node.mutable_attr())["other"].set_i(0);
  const auto names = [&](const OpDef* def) {
    std::vector<std::string> names;
    for (const auto& [name, value] : OwnAttrs(node, def)) names.emplace_back(name);
    return names;
  };
  // Attribute definitions after the first 256 are ignored.
  EXPECT_THAT(names(&op), ElementsAre("a1", "a256", "a3", "other"));
  EXPECT_THAT(names(nullptr), ElementsAre("a0", "a1", "a255", "a256", "a3", "other"));
}

TEST(ShapeText, HasUpTo16Dimensions) {
  EXPECT_EQ(ShapeText(PartialTensorShape(DimVector(16, 1))), "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
  EXPECT_EQ(ShapeText(PartialTensorShape(DimVector(17, 2))),
            "[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,... 17 dimensions]");
}

TEST(AnalyzeGraph, HasUpTo64LinesOfProblems) {
  std::string text;
  for (int i = 0; i < 70; ++i) absl::StrAppend(&text, "node { name: 'x' op: 'Odd", i, "' }\n");
  const AnalyzedGraph graph = AnalyzeText(text);
  EXPECT_THAT(graph.problems, Not(IsEmpty()));
  EXPECT_LE(graph.problems.size(), 64u);
  EXPECT_EQ(graph.node_problems.size(), 70u);
}

// ---- Matching of nodes ----

// Returns the lines of the difference between two graphs.
std::vector<std::string> DiffLines(const std::string& before, const std::string& after) {
  return DiffCase(AnalyzeText(before), AnalyzeText(after)).Lines();
}
// Returns the text of nodes from lines "name op input input ... attr=number".
std::string NodesText(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    absl::StrAppend(&text, "node { name: '", words[0], "' op: '", words[1], "'");
    for (size_t i = 2; i < words.size(); ++i) {
      const std::pair<std::string, std::string> attr =
          absl::StrSplit(words[i], absl::MaxSplits('=', 1));
      if (attr.second.empty()) {
        absl::StrAppend(&text, " input: '", words[i], "'");
      } else {
        absl::StrAppend(&text, " attr { key: '", attr.first, "' value { i: ", attr.second, " } }");
      }
    }
    absl::StrAppend(&text, " }\n");
  }
  return text;
}

struct Correspondence {
  std::vector<std::string> before;
  std::vector<std::string> after;
  std::vector<std::string> lines;
};

TEST(GraphDiff, MatchesNodes) {
  const std::vector<Correspondence> cases = {
      // The graphs have nothing in common.
      {{"a A"}, {"b B"}, {"+b", "-a"}},
      {{"a A"}, {}, {"-a"}},
      {{}, {"a A"}, {"+a"}},
      // Nodes match if they are the only ones that compute the same. Nodes without inputs, except
      // Const, only match by name.
      {{"a A k=1", "b B"}, {"c A k=1", "b B"}, {"+c", "-a"}},
      {{"x X", "a A x k=1"}, {"x X", "c A x k=1"}, {"c: name: a -> c"}},
      {{"w Const k=1", "b B"}, {"v Const k=1", "b B"}, {"v: name: w -> v"}},
      // Inputs distinguish nodes: another node, another output, a control input.
      {{"x X", "y Y", "a A x", "b A y"},
       {"x X", "y Y", "c A y", "d A x"},
       {"c: name: b -> c", "d: name: a -> d"}},
      {{"x X", "a A x", "b A x:1", "c A ^x"},
       {"x X", "d A ^x", "e A x:1", "f A x"},
       {"d: name: c -> d", "e: name: b -> e", "f: name: a -> f"}},
      {{"x X", "a A x k=1", "b A x k=2"},
       {"x X", "c A x k=2", "d A x k=1"},
       {"c: name: b -> c", "d: name: a -> d"}},
      {{"x X", "a A x i=1", "b A x k=1"},
       {"x X", "c A x k=1", "d A x i=1"},
       {"c: name: b -> c", "d: name: a -> d"}},
      // A constant follows its layer to any position.
      {{"p P", "w Const k=5", "m M p w"},
       {"p P", "w Const k=5", "v Const k=7", "m M p v", "r R", "q M r w"},
       {"+v", "+m", "+r", "q: name: m -> q", "q: input 0: p -> r"}},
      // A control input is not enough, and neither is a constant that also has other readers.
      {{"p P", "w Const k=5", "m M p ^w"},
       {"p P", "w Const k=5", "m M p", "q M w:1 ^w p"},
       {"m: input 1: ^w -> (none)", "+q"}},
      // If several nodes compute the same, they match by name and then in their order.
      {{"c Const k=1", "c Const k=1", "c Const k=2", "c Const k=2"},
       {"c Const k=2", "c Const k=2", "c Const k=1", "c Const k=1"},
       {}},
      {{"a Const k=1", "b Const k=1"},
       {"c Const k=1", "d Const k=1"},
       {"c: name: a -> c", "d: name: b -> d"}},
      {{"a Const k=1", "b Const k=1"}, {"b Const k=1", "c Const k=1"}, {"c: name: a -> c"}},
      // A node that already matches is not matched again.
      {{"a A k=1", "a A k=2"}, {"a A k=1"}, {"-a"}},
      {{"a A k=1"}, {"a A k=1", "a A k=2"}, {"+a"}},
      {{"a A k=1", "b A k=1"}, {"x X", "a A k=1"}, {"+x", "-b"}},
      {{"x X", "a A k=1"}, {"a A k=1", "b A k=1"}, {"+b", "-x"}},
      // Other nodes match if their names and ops are the same, or only their names.
      {{"a A k=1", "b A k=2"}, {"b A k=3", "a A k=4"}, {"b: attr k: 2 -> 3", "a: attr k: 1 -> 4"}},
      {{"a A"}, {"a B"}, {"a: op: A -> B"}},
      // Inputs and readers of matched nodes also match.
      {{"x X k=1", "a A x"}, {"y X k=2", "a A y"}, {"y: name: x -> y", "y: attr k: 1 -> 2"}},
      {{"x X k=1", "a A x"}, {"y Y k=2", "a A y"}, {"+y", "a: input 0: x -> y", "-x"}},
      {{"x X", "a A x k=1", "b B x a"},
       {"x X", "c A x k=2", "d B x c k=3"},
       {"c: name: a -> c", "c: attr k: 1 -> 2", "d: name: b -> d", "d: attr k: (default) -> 3"}},
      // A neighbor of a matched node matches before a node with the same name.
      {{"w Const k=1", "a A w", "b B a k=1"},
       {"v Const k=1", "b B a k=2", "a A b", "u A v", "t B u k=3"},
       {"v: name: w -> v", "+b", "+a", "u: name: a -> u", "t: name: b -> t", "t: attr k: 1 -> 3"}},
      // Different spellings of one input, and inputs that are not in the graph.
      {{"x X", "a A x none ^lost"}, {"x X", "a A x:0 none ^lost"}, {}},
      {{"x X", "a A x none"}, {"x X", "a A x other"}, {"a: input 1: none -> other"}},
      {{"x X", "a A x none"},
       {"x X", "a A none x"},
       {"a: input 0: x -> none", "a: input 1: none -> x"}},
      {{"x X", "a A x x:1"},
       {"x X", "a A x:1 x"},
       {"a: input 0: x -> x:1", "a: input 1: x:1 -> x"}},
  };
  for (const Correspondence& test : cases) {
    EXPECT_EQ(DiffLines(NodesText(test.before), NodesText(test.after)), test.lines)
        << NodesText(test.before) << "->\n"
        << NodesText(test.after);
  }
}

TEST(GraphDiff, ShowsAttributesThatHadTheirDefaults) {
  const auto quant = [](const std::string& attr) {
    return "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } } "
           "node { name: 'q' op: 'FakeQuantWithMinMaxArgs' input: 'x' " +
           attr + "}";
  };
  const std::string eight = "attr { key: 'num_bits' value { i: 8 } }";
  const std::string four = "attr { key: 'num_bits' value { i: 4 } }";
  EXPECT_THAT(DiffLines(quant(""), quant(eight)), IsEmpty());
  EXPECT_THAT(DiffLines(quant(eight), quant(four)),
              ElementsAre("q: attr num_bits: (default) -> 4"));
  EXPECT_THAT(DiffLines(quant(four), quant("")), ElementsAre("q: attr num_bits: 4 -> (default)"));
}

TEST(GraphDiff, LimitsTheChangesOfANode) {
  const auto many = [](int count, const std::string& input) {
    std::string node = "a A";
    for (int i = 0; i < count; ++i) absl::StrAppend(&node, " ", input, i);
    return NodesText({node});
  };
  const std::vector<std::string> hundred = DiffLines(many(100, "x"), many(100, "y"));
  ASSERT_THAT(hundred, SizeIs(100));
  EXPECT_EQ(hundred[99], "a: input 99: x99 -> y99");
  const std::vector<std::string> more = DiffLines(many(102, "x"), many(102, "y"));
  ASSERT_THAT(more, SizeIs(101));
  EXPECT_EQ(more[99], "a: input 99: x99 -> y99");
  EXPECT_EQ(more[100], "a: ...");
  const auto device = [](int size) {
    return absl::StrCat("node { name: 'a' op: 'A' device: '", std::string(size, 'd'), "' }");
  };
  EXPECT_THAT(DiffLines(device(1000), device(1001)),
              ElementsAre(absl::StrCat("a: device: ", std::string(1000, 'd'), " -> ",
                                       std::string(1000, 'd'), "...")));
  // Shapes are compared for the first 64 outputs.
  const auto split = [](int size) {
    return absl::StrCat(
        "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } ",
        "attr { key: 'shape' value { shape { dim { size: 66 } dim { size: ", size, " } } } } } ",
        "node { name: 's' op: 'Unpack' input: 'x' attr { key: 'num' value { i: 66 } } ",
        "attr { key: 'T' value { type: DT_FLOAT } } }");
  };
  const std::vector<std::string> shapes = DiffLines(split(2), split(3));
  ASSERT_THAT(shapes, SizeIs(2 + 64));
  EXPECT_EQ(shapes[1], "x: output 0: float [66,2] -> float [66,3]");
  EXPECT_EQ(shapes.back(), "s: output 63: float [2] -> float [3]");
}

TEST(DotText, ShowsDifferences) {
  const DiffCase changed(AnalyzeText(R"(
    node { name: "gone" op: "Gone" } node { name: "s/a" op: "A" input: "gone" }
    node { name: "s/t/lost" op: "Lost" input: "s/a" input: "gone" input: "^s/a" input: "none" })"),
                         AnalyzeText(R"(
    node { name: "s/a" op: "A" input: "u/new" device: "d" } node { name: "u/new" op: "New" }
    node { name: "s/b" op: "NoOp" input: "^s/a" })"));
  EXPECT_EQ(DotText(changed.after, &changed.before, &changed.diff), R"(digraph gradflow {
  rankdir=LR;
  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  o0 [label="gone\nGone", style=dotted];
  subgraph cluster_0 {
    label="s";
    n0 [label="s/a\nA", color=red];
    n2 [label="s/b\nNoOp", style=filled, fillcolor=palegreen];
    subgraph cluster_1 {
      label="t";
      o2 [label="s/t/lost\nLost", style=dotted];
    }
  }
  subgraph cluster_2 {
    label="u";
    n1 [label="u/new\nNew", color=red];
  }
  n1 -> n0;
  n0 -> n2 [style=dashed];
  n0 -> o2;
  o0 -> o2;
  n0 -> o2 [style=dashed];
}
)");
  const DiffCase runnable([](GraphDef* def) {
    def->mutable_node()->RemoveLast();
    def->mutable_node(0)->set_device("d");
    NodeDef* const node = def->add_node();
    node->set_name("new");
    node->set_op("NoOp");
  });
  EXPECT_EQ(DotText(runnable.after, &runnable.before, &runnable.diff), R"(digraph gradflow {
  rankdir=LR;
  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  n0 [label="x\nPlaceholder", style=filled, fillcolor=khaki];
  n10 [label="new\nNoOp", style=filled, fillcolor=palegreen];
  subgraph cluster_0 {
    label="layer0";
    n1 [label="layer0/w\nConst"];
    n2 [label="layer0/mul\nMul"];
    n3 [label="layer0/b\nConst"];
    n4 [label="layer0/add\nAdd"];
    n5 [label="layer0/relu\nRelu"];
  }
  subgraph cluster_1 {
    label="layer1";
    n6 [label="layer1/w\nConst"];
    n7 [label="layer1/mul\nMul"];
    n8 [label="layer1/b\nConst"];
    n9 [label="layer1/add\nAdd"];
    o10 [label="layer1/relu\nRelu", style=dotted];
  }
  n0 -> n2 [label="float [2,3]"];
  n1 -> n2 [label="float []"];
  n2 -> n4 [label="float [2,3]"];
  n3 -> n4 [label="float []"];
  n4 -> n5 [label="float [2,3]"];
  n5 -> n7 [label="float [2,3]"];
  n6 -> n7 [label="float []"];
  n7 -> n9 [label="float [2,3]"];
  n8 -> n9 [label="float []"];
  n9 -> o10 [label="float [2,3]"];
}
)");
}

TEST(DotText, NestsUpTo32Clusters) {
  const auto clusters = [](int depth) {
    std::string name;
    for (int i = 0; i < depth; ++i) name += "s/";
    const std::string dot = DotText(AnalyzeText("node { name: '" + name + "n' op: 'NoOp' }"));
    size_t count = 0;
    for (size_t at = dot.find("subgraph"); at != dot.npos; at = dot.find("subgraph", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(clusters(31), 31u);
  EXPECT_EQ(clusters(32), 32u);
  EXPECT_EQ(clusters(33), 32u);
}

// A cluster ends after its last node, and names are sorted by scope.
TEST(DotText, SharesClusters) {
  const std::string dot = DotText(AnalyzeText(R"(
    node { name: "b/c/x" op: "NoOp" } node { name: "a/x" op: "NoOp" }
    node { name: "b/c/y" op: "NoOp" } node { name: "b/z" op: "NoOp" }
    node { name: "b/d/x" op: "NoOp" } node { name: "top" op: "Unpack" input: "b/z:3" })"));
  EXPECT_EQ(dot.substr(dot.find("  n")), R"(  node [shape=box, fontname="sans-serif"];
  edge [fontname="sans-serif", fontsize=10];
  n5 [label="top\nUnpack"];
  subgraph cluster_0 {
    label="a";
    n1 [label="a/x\nNoOp"];
  }
  subgraph cluster_1 {
    label="b";
    n3 [label="b/z\nNoOp"];
    subgraph cluster_2 {
      label="c";
      n0 [label="b/c/x\nNoOp"];
      n2 [label="b/c/y\nNoOp"];
    }
    subgraph cluster_3 {
      label="d";
      n4 [label="b/d/x\nNoOp"];
    }
  }
  n3 -> n5;
}
)");
}

}  // namespace
}  // namespace gradflow::tools
