// Tests of graphs that a page has edited, and of the bytes of their files.
#include "tools/edit/edit_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"
#include "tools/edit/edit_graph.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

google::protobuf::Value ParseJson(const std::string& text) {
  google::protobuf::Value value;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &value);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
  return value;
}
absl::StatusOr<EditedGraph> Edit(const EditBase& base, const std::string& request,
                                 const GraphLimits& limits = GraphLimits()) {
  return MakeEditedGraph(base, ParseJson(request), limits);
}
// Returns the file edited in place, "(anew)" if the whole file must be rewritten, or "(error)".
std::string InPlace(const std::string& bytes, bool is_text, const std::string& request) {
  const absl::StatusOr<EditBase> base = ParseBase(bytes, is_text, GraphLimits());
  EXPECT_THAT(base.status(), IsOk()) << bytes;
  if (!base.ok()) return "(error)";
  const absl::StatusOr<EditedGraph> graph = Edit(*base, request);
  EXPECT_THAT(graph.status(), IsOk()) << request;
  if (!graph.ok()) return "(error)";
  return FileInPlace(*base, *graph).value_or("(anew)");
}

struct EditCase {
  std::string request;
  std::string file;
};

constexpr char kNew[] = R"({"t":"name: \"n\" op: \"Odd\""})";
constexpr char kNewText[] = "node {\n  name: \"n\"\n  op: \"Odd\"\n}";

TEST(FileInPlace, KeepsTheTextBetweenNodes) {
  const std::string a = "node { name: 'a' op: 'Odd' }";
  const std::string b = "node { name: 'b' op: 'Odd' }";
  const std::string c = "node { name: 'c' op: 'Odd' }";
  const std::string new_text = kNewText;
  const std::string begin = "# First.\nversions { producer: 27 }\n# Nodes.\n";
  const std::string end = " # c\nlibrary { }\n# Last.\n";
  const std::string text = absl::StrCat(begin, a, "\n# Of b.\n  ", b, "; ", c, end);
  const std::string n = kNew;
  const std::vector<EditCase> cases = {
      {"0,1,2", text},
      {"0,1", begin + a + "\n# Of b.\n  " + b + end},
      {"0,2", begin + a + "; " + c + end},
      {"0", begin + a + end},
      {"1", begin + "\n# Of b.\n  " + b + end},
      {"2,0", begin + "; " + c + "\n" + a + end},
      {"0,0", begin + a + "\n" + a + end},
      {"2,1,0", begin + "; " + c + "\n# Of b.\n  " + b + "\n" + a + end},
      {"", begin + end},
      {n, begin + new_text + end},
      {n + ",0", begin + new_text + "\n" + a + end},
      {n + ",1", begin + new_text + "\n# Of b.\n  " + b + end},
      {"0," + n + ",1,2", begin + a + "\n" + new_text + "\n# Of b.\n  " + b + "; " + c + end},
      {"0,1,2," + n, begin + a + "\n# Of b.\n  " + b + "; " + c + "\n" + new_text + end},
  };
  for (const EditCase& test : cases) {
    const std::string request = absl::StrCat("{\"nodes\":[", test.request, "]}");
    EXPECT_EQ(InPlace(text, true, request), test.file) << test.request;
  }
}

// New nodes come after all fields of a file without nodes.
TEST(FileInPlace, EndsNewTextWithALineBreak) {
  const std::string request = absl::StrCat("{\"nodes\":[", kNew, "]}");
  const std::string two = absl::StrCat("{\"nodes\":[", kNew, ",", kNew, "]}");
  const std::string node = kNewText;
  const std::string versions = "versions { producer: 27 }";
  EXPECT_EQ(InPlace(versions, true, request), versions + "\n" + node + "\n");
  EXPECT_EQ(InPlace(versions + "\n", true, two), versions + "\n" + node + "\n" + node + "\n");
  EXPECT_EQ(InPlace(versions + "  \n\t \n", true, request), versions + "\n" + node + "  \n\t \n");
  EXPECT_EQ(InPlace("# Empty.\n", true, request), "# Empty.\n" + node + "\n");
  EXPECT_EQ(InPlace(" ", true, request), node + " \n");
  EXPECT_EQ(InPlace("node { }", true, "{\"nodes\":[0]}"), "node { }");
  EXPECT_EQ(InPlace("node { }\n", true, "{\"nodes\":[0]}"), "node { }\n");
  EXPECT_EQ(InPlace("node { } node { }", true, "{\"nodes\":[0]}"), "node { }\n");
  EXPECT_EQ(InPlace("node { }", true, "{\"nodes\":[]}"), "");
}

TEST(FileInPlace, ReadsAllFormsOfText) {
  const char* const files[] = {
      "node { name: 'a}' } node { name: \"{b\" }\n",
      "node { name: 'a\\'}' } node { name: \"b\\\"{\" }\n",
      "node { name: 'a\\\\' } node { name: \"\\\\b\" }\n",
      "node { name: 'it\"s' } node { name: \"it's\" }\n",
      "node { # }\n name: 'a' } node { name: 'b' # {\n}\n",
      "node { # \"\n name: 'a' } node { name: '#b' }\n",
      "node{name:'a'}node{name:'b'}\n",
      "node:{name:'a'}node : # {\n {name:'b'}\n",
      "node < name: 'a' > node\n#\n: < name: 'b' >\n",
      "node < attr { value < > } > node { attr < value { } > }\n",
      "node { }, node { };\n",
      "node\t{ }\r\nnode\v{ }\n",
      "debug_info { } node { } node { }",
      "  # Before.\n  node { } node { } # Behind.",
      "node { } node { } debug_info { }\n\n",
  };
  for (const std::string file : files) {
    EXPECT_EQ(InPlace(file, true, "{\"nodes\":[0,1]}"), file);
    // Removes the second node.
    const std::string first = InPlace(file, true, "{\"nodes\":[0]}");
    absl::StatusOr<GraphDef> expected = ParseGraphDefText(file);
    ASSERT_THAT(expected.status(), IsOk());
    expected->mutable_node()->RemoveLast();
    const absl::StatusOr<GraphDef> actual = ParseGraphDefText(first);
    ASSERT_THAT(actual.status(), IsOk()) << first;
    EXPECT_EQ(actual->DebugString(), expected->DebugString()) << first;
  }
}

TEST(FileInPlace, RewritesFilesOfOtherForms) {
  const char* const files[] = {
      // Other fields between the nodes, or nodes in a list.
      "node { } versions { } node { }",
      "version: 21 node { } node { }",
      "node [ { }, { } ]",
  };
  for (const char* file : files) {
    EXPECT_EQ(InPlace(file, true, "{\"nodes\":[0,1]}"), "(anew)") << file;
  }
  // The text has comments with unknown fields.
  const std::string unknown = GraphDefToText(*ParseGraphDef(std::string("\x0a\x03\x7a\x01u")));
  EXPECT_THAT(unknown, HasSubstr("\n#? "));
  EXPECT_EQ(InPlace(unknown, true, "{\"nodes\":[0]}"), "(anew)");
}

// Returns a field of bytes with its tag and its length.
std::string Field(int number, const std::string& content) {
  return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                      std::string(1, static_cast<char>(content.size())), content);
}

TEST(FileInPlace, KeepsTheBytesOfBinaryFiles) {
  const std::string a = Field(1, Field(1, "a") + Field(2, "Odd"));
  const std::string b = Field(1, Field(2, "Odd") + Field(1, "b"));
  const std::string n = Field(1, Field(1, "n") + Field(2, "Odd"));
  // A varint, a field of four bytes, a field of eight bytes, a group, and bytes.
  const std::string begin = std::string("\xf8\x01\x05", 3) +
                            "\xfd\x01"
                            "1234";
  const std::string end =
      "\xf9\x01"
      "12345678"
      "\xfb\x01\xfc\x01" +
      Field(15, "");
  const std::string file = begin + a + b + end;
  const std::string new_node = kNew;
  const std::vector<EditCase> cases = {
      {"0,1", file},
      {"1,0", begin + b + a + end},
      {"1", begin + b + end},
      {"", begin + end},
      {"1," + new_node + ",0", begin + b + n + a + end},
  };
  for (const EditCase& test : cases) {
    const std::string request = absl::StrCat("{\"nodes\":[", test.request, "]}");
    EXPECT_EQ(absl::CEscape(InPlace(file, false, request)), absl::CEscape(test.file))
        << test.request;
  }
  EXPECT_EQ(InPlace(begin, false, absl::StrCat("{\"nodes\":[", new_node, "]}")), begin + n);
  EXPECT_EQ(InPlace(a + begin + b, false, "{\"nodes\":[0,1]}"), "(anew)");
  // The length of the changed function takes two bytes.
  const std::string name(150, 'h');
  const std::string header =
      absl::StrCat(R"({"nodes":[],"functions":[{"f":0,"h":"signature { name: \")", name,
                   R"(\" }","nodes":[]}]})");
  const std::string signature = "\x0a\x99\x01\x0a\x96\x01" + name;
  EXPECT_EQ(absl::CEscape(InPlace(Field(2, Field(1, Field(1, Field(1, "f")))), false, header)),
            absl::CEscape("\x12\x9f\x01\x0a\x9c\x01" + signature));
}

constexpr char kAdded[] =
    R"({"h":"signature { name: \"n\" }","nodes":[{"t":"name: \"a\" op: \"Odd\""}]})";
constexpr char kAddedText[] =
    "  function {\n    signature {\n      name: \"n\"\n    }\n"
    "    node_def {\n      name: \"a\"\n      op: \"Odd\"\n    }\n  }";

TEST(FileInPlace, KeepsTheTextBetweenFunctions) {
  const std::string f = "function { signature { name: 'f' } node_def { name: 'a' op: 'Odd' } }";
  const std::string g = "function : < signature { name: 'g' } >";
  const std::string text = "library { # Two.\n  " + f + "\n  # Of g.\n  " + g + " gradient { } }\n";
  const std::string added_text = kAddedText;
  const std::string added = kAdded;
  const std::vector<EditCase> cases = {
      {"0,1", text},
      {"1,0", "library { # Two.\n  \n  # Of g.\n  " + g + "\n" + f + " gradient { } }\n"},
      {"1", "library { # Two.\n  \n  # Of g.\n  " + g + " gradient { } }\n"},
      {"0", "library { # Two.\n  " + f + " gradient { } }\n"},
      {"", "library { # Two.\n   gradient { } }\n"},
      {"0,1," + added, "library { # Two.\n  " + f + "\n  # Of g.\n  " + g + "\n" + added_text +
                           " gradient { } }\n"},
      {added + ",1",
       "library { # Two.\n" + added_text + "\n  # Of g.\n  " + g + " gradient { } }\n"},
      // A changed function keeps its kind of brackets.
      {R"(0,{"f":1,"nodes":[{"t":"name: \"b\""}]})",
       "library { # Two.\n  " + f +
           "\n  # Of g.\n  function : < signature { name: 'g' }\n"
           "    node_def {\n      name: \"b\"\n    } > gradient { } }\n"},
      {R"({"f":0,"h":"signature { name: \"f\" } ret { key: \"k\" value: \"v\" }","nodes":[]},1)",
       "library { # Two.\n  function { signature { name: 'f' }\n"
       "    ret {\n      key: \"k\"\n      value: \"v\"\n    } }\n  # Of g.\n  " +
           g + " gradient { } }\n"},
  };
  for (const EditCase& test : cases) {
    const std::string request = absl::StrCat("{\"nodes\":[],\"functions\":[", test.request, "]}");
    EXPECT_EQ(InPlace(text, true, request), test.file) << test.request;
  }
  const std::string request = absl::StrCat("{\"nodes\":[],\"functions\":[", added, "]}");
  EXPECT_EQ(InPlace("# None.\n", true, request), "# None.\nlibrary {\n" + added_text + "\n}\n");
  const std::string binary =
      Field(1, Field(1, Field(1, "n")) + Field(3, Field(1, "a") + Field(2, "Odd")));
  EXPECT_EQ(InPlace("", false, request), Field(2, binary));
  EXPECT_EQ(InPlace(Field(2, Field(15, "u")), false, request), Field(2, Field(15, "u") + binary));
}

TEST(FileInPlace, RewritesLibrariesOfOtherForms) {
  const std::string functions = R"({"nodes":[],"functions":[1,0]})";
  const char* const files[] = {
      "library { function { } gradient { } function { } }",
      "library { function [ { }, { } ] }",
  };
  for (const char* file : files) {
    EXPECT_EQ(InPlace(file, true, functions), "(anew)") << file;
    EXPECT_EQ(InPlace(file, true, "{\"nodes\":[]}"), file);
  }
  EXPECT_EQ(InPlace("library { function { signature { } ret { } node_def { } ret { key: 'k' } } }",
                    true, R"({"nodes":[],"functions":[{"f":0,"h":"","nodes":[0]}]})"),
            "(anew)");
}

// ---- Graphs of requests ----

TEST(MakeEditedGraph, StoresTheOriginOfNodesAndFunctions) {
  const EditBase base = *ParseBase(
      "node { name: 'a' } node { name: 'b' } library { function { node_def { name: 'c' } } "
      "function { } gradient { } } versions { producer: 3 }",
      true, GraphLimits());
  EXPECT_EQ(base.rest.node_size(), 0);
  EXPECT_EQ(base.def.node_size(), 2);
  const EditedGraph same = *Edit(base, R"({"nodes":[1,{"t":"","b":0},0]})");
  EXPECT_EQ(same.origin, (std::vector<int>{1, -1, 0}));
  ASSERT_EQ(same.functions.size(), 2u);
  for (int f = 0; f < 2; ++f) {
    EXPECT_EQ(same.functions[f].base, f);
    EXPECT_TRUE(same.functions[f].is_untouched);
  }
  const EditedGraph other = *Edit(
      base, R"({"nodes":[],"functions":[1,{"f":0,"nodes":[{"t":""},0]},{"h":"","nodes":[]}]})");
  ASSERT_EQ(other.functions.size(), 3u);
  EXPECT_EQ(other.functions[0].base, 1);
  EXPECT_TRUE(other.functions[0].is_untouched);
  EXPECT_EQ(other.functions[1].base, 0);
  EXPECT_FALSE(other.functions[1].is_untouched);
  EXPECT_EQ(other.functions[1].origin, (std::vector<int>{-1, 0}));
  EXPECT_EQ(other.functions[2].base, -1);
  EXPECT_FALSE(other.functions[2].is_untouched);
  EXPECT_EQ(other.def.library().function_size(), 3);
  EXPECT_EQ(other.def.library().gradient_size(), 1);
  EXPECT_EQ(other.def.versions().producer(), 3);
}

TEST(MakeEditedGraph, AppliesTheLimitsOfGraphs) {
  const EditBase base = NewBase();
  GraphLimits limits;
  limits.max_nodes = 2;
  limits.max_functions = 1;
  const std::string node = R"({"t":"name: \"a\""})";
  const std::string function = R"({"h":"","nodes":[]})";
  EXPECT_THAT(
      Edit(base, absl::StrCat("{\"nodes\":[", node, ",", node, "],\"functions\":[", function, "]}"),
           limits),
      IsOk());
  EXPECT_THAT(
      Edit(base, absl::StrCat("{\"nodes\":[", node, ",", node, ",", node, "]}"), limits).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "the graph has 3 nodes, but at most 2 are allowed (max_nodes)"));
  EXPECT_THAT(
      Edit(base, absl::StrCat("{\"nodes\":[],\"functions\":[", function, ",", function, "]}"),
           limits)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "the graph has 2 functions, but at most 1 are allowed (max_functions)"));
}

TEST(MakeEditedGraph, ReportsWhereARequestIsInvalid) {
  const EditBase base = *ParseBase(
      "node { name: 'a' } library { function { signature { name: 'f' } } }", true, GraphLimits());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "expected \"nodes\", a list"},
      {R"({"nodes":[1]})", "expected a number from 0 to 0 of a node of the file"},
      {R"({"nodes":[-1]})", "expected a number from 0 to 0 of a node of the file"},
      {R"({"nodes":[0.5]})", "expected a number from 0 to 0 of a node of the file"},
      {R"({"nodes":[0,"0"]})", "node 1: expected a number, or an object with the text \"t\""},
      {R"({"nodes":[{"t":"","b":1}]})",
       "node 0: expected a number from 0 to 0 of a node of the file"},
      {R"({"nodes":[{"t":"","b":"0"}]})",
       "node 0: expected a number from 0 to 0 of a node of the file"},
      {R"({"nodes":[{"t":"} versions { "}]})", "node 0: expected the text of one node"},
      {R"({"nodes":[{"t":"} library { "}]})", "node 0: expected the text of one node"},
      {R"({"nodes":[{"t":"} node { "}]})", "node 0: expected the text of one node"},
      {R"({"nodes":[],"functions":[1]})",
       "expected a number from 0 to 0 of a function of the file"},
      {R"({"nodes":[],"functions":["0"]})",
       "expected a number from 0 to 0 of a function of the file"},
      {R"({"nodes":[],"functions":[{"f":1}]})",
       "expected a number from 0 to 0 of a function of the file"},
      {R"({"nodes":[],"functions":[{"nodes":[]}]})", "expected \"h\", the text of a new function"},
      {R"({"nodes":[],"functions":[{"f":0}]})", "function 'f': expected \"nodes\", a list"},
      {R"({"nodes":[],"functions":[0,{"h":""}]})", "new function 1: expected \"nodes\", a list"},
  };
  for (const auto& [request, text] : cases) {
    EXPECT_THAT(Edit(base, request).status(), StatusIs(absl::StatusCode::kInvalidArgument, text))
        << request;
  }
  for (const char* header :
       {"} function { ", "node_def { }", "} gradient { ", "} registered_gradients { ",
        "} } node { attr { ", "} } versions { } debug_info { traces_by_id { "}) {
    EXPECT_THAT(Edit(base, absl::StrCat(R"({"nodes":[],"functions":[{"f":0,"nodes":[],"h":")",
                                        header, "\"}]}"))
                    .status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         "function 'f': expected the text of one function without nodes"))
        << header;
  }
}

// Unknown fields, and attributes that the page does not have, come from the file.
TEST(MakeEditedGraph, MergesFieldsThatThePageDoesNotKnow) {
  const std::string unknown = Field(15, "u");
  const auto named = [&](const std::string& name) { return Field(1, name) + unknown; };
  // A signature with input 'a', output 'b' and attribute 'c'.
  const std::string signature =
      named("f") + Field(2, named("a")) + Field(3, named("b")) + Field(4, named("c"));
  const std::string function = Field(1, signature) + unknown;
  const EditBase base =
      *ParseBase(Field(1, named("x") + Field(5, Field(1, "k") + Field(2, "\x18\x07" + unknown)) +
                              Field(6, unknown)) +
                     Field(2, Field(1, function)),
                 false, GraphLimits());
  const EditedGraph graph = *Edit(base, R"({"nodes":[{"t":"name: \"y\"","b":0,"k":["k"]}],
      "functions":[{"f":0,"nodes":[],"h":"signature { name: \"g\" input_arg { name: \"a\" }
      input_arg { name: \"z\" } output_arg { name: \"b\" } attr { name: \"c\" } }"}]})");
  EXPECT_EQ(absl::CEscape(graph.def.node(0).SerializeAsString()),
            absl::CEscape(Field(1, "y") + Field(5, Field(1, "k") + Field(2, "\x18\x07" + unknown)) +
                          Field(6, unknown) + unknown));
  EXPECT_EQ(absl::CEscape(graph.def.library().function(0).SerializeAsString()),
            absl::CEscape(Field(1, Field(1, "g") + Field(2, named("a")) + Field(2, Field(1, "z")) +
                                       Field(3, named("b")) + Field(4, named("c")) + unknown) +
                          unknown));
}

TEST(EditedFile, IsInTheFormatOfItsName) {
  const std::string text = "node{name:'a'}";
  const EditBase base = *ParseBase(text, true, GraphLimits());
  const EditedGraph graph = *Edit(base, R"({"nodes":[0]})");
  EXPECT_EQ(*EditedFile(base, graph, true, GraphLimits()), text);
  EXPECT_EQ(*EditedFile(base, graph, false, GraphLimits()), Field(1, Field(1, "a")));
  const EditBase binary = *ParseBase(Field(1, Field(1, "a")), false, GraphLimits());
  EXPECT_EQ(*EditedFile(binary, graph, true, GraphLimits()), "node {\n  name: \"a\"\n}\n");
  // A new graph has the versions of this library.
  const EditBase empty = NewBase();
  EXPECT_TRUE(empty.def.has_versions());
  EXPECT_THAT(
      *EditedFile(empty, *Edit(empty, R"({"nodes":[{"t":"name: \"a\""}]})"), true, GraphLimits()),
      HasSubstr("versions {\n  producer: "));
}

class ReadEditedFileTest : public ::gradflow::testing::FolderFixture {};

TEST_F(ReadEditedFileTest, HasALimit) {
  ::gradflow::testing::WriteFile(File("g.pb"), "12345");
  GraphLimits limits;
  limits.max_file_bytes = 5;
  EXPECT_EQ(*ReadEditedFile(File("g.pb"), limits), "12345");
  limits.max_file_bytes = 4;
  EXPECT_THAT(ReadEditedFile(File("g.pb"), limits).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       absl::StrCat("'", File("g.pb"),
                                    "': the file has 5 bytes, but at most 4 are allowed "
                                    "(max_file_bytes)")));
  limits.max_file_bytes = -1;
  EXPECT_THAT(ReadEditedFile(File("g.pb"), limits).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most -1")));
}

TEST(EditFunctionJson, HasTheFieldsAsTextAndTheNodes) {
  FunctionDef function;
  function.mutable_signature()->set_name("f");
  for (const char* name : {"a", "b"}) {
    NodeDef* const node = function.add_node_def();
    node->set_name(name);
    node->set_op("Odd");
    node->add_input("x");
    node->add_input(name);
  }
  EXPECT_EQ(EditFunctionJson(function, 9), R"({"h":"signature {\n  name: \"f\"\n}\n","nodes":[)"
                                           R"({"n":"a","op":"Odd","d":"","i":["x","a"],"a":{}},)"
                                           "\n"
                                           R"({"n":"b","op":"Odd","d":"","i":["x","b"],"a":{}}]})");
}

}  // namespace
}  // namespace gradflow::tools
