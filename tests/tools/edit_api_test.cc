// Tests of the answers of `gradflow edit` to its page, word for word, and at the limits.
#include "tools/edit/edit_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/saved_model/model_fixture.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"
#include "tools/json.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::ScaleModelText;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::WriteFile;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class EditApiTest : public ::gradflow::testing::FolderFixture {
 protected:
  std::unique_ptr<EditApi> Open(const std::string& name, const EditOptions& options = {}) const {
    EditOptions all = options;
    if (!name.empty()) all.path = File(name);
    absl::StatusOr<std::unique_ptr<EditApi>> api = EditApi::Make(all);
    EXPECT_THAT(api.status(), IsOk());
    return api.ok() ? *std::move(api) : nullptr;
  }
  // Returns the answer or the error of a call with nodes in text format.
  static std::string Answer(EditApi& api, const std::string& call,
                            const std::vector<std::string>& nodes, const std::string& more = "") {
    std::string items;
    for (const std::string& node : nodes) {
      absl::StrAppend(&items, items.empty() ? "" : ",", "{\"t\":", JsonText(node), "}");
    }
    const absl::StatusOr<std::string> answer =
        api.Call(call, absl::StrCat("{\"base\":0,\"nodes\":[", items, "]", more, "}"));
    return answer.ok() ? *answer : answer.status().ToString();
  }
  static std::string Answer(const std::string& call, const std::vector<std::string>& nodes,
                            const std::string& more = "", const EditOptions& options = {}) {
    return Answer(**EditApi::Make(options), call, nodes, more);
  }
};

constexpr char kSource[] =
    "name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } }";
constexpr char kInts[] =
    "name: 'i' op: 'Placeholder' attr { key: 'dtype' value { type: DT_INT32 } }";

std::string FloatNode(const std::string& name, const std::string& op,
                      const std::vector<std::string>& inputs, const std::string& more = "") {
  std::string text = absl::StrCat("name: '", name, "' op: '", op, "'");
  for (const std::string& input : inputs) absl::StrAppend(&text, " input: '", input, "'");
  return absl::StrCat(text, " attr { key: 'T' value { type: DT_FLOAT } } ", more);
}
std::string UnpackNode(const std::string& name, const std::string& input, int num) {
  return FloatNode(name, "Unpack", {input},
                   absl::StrCat("attr { key: 'num' value { i: ", num, " } }"));
}
std::string FeedOf(const std::string& name, const std::string& shape, const std::string& values) {
  return absl::StrCat("{\"name\":\"", name, "\",\"type\":\"float\",\"shape\":[", shape,
                      "],\"values\":\"", values, "\"}");
}

TEST_F(EditApiTest, ChecksNodesAndFunctions) {
  EXPECT_EQ(Answer("check", {}), R"({"types":[],"problems":[],"notes":[]})");
  EXPECT_EQ(Answer("check", {kSource, UnpackNode("p", "x", 2), "name: 'n' op: 'NoOp'"}),
            R"({"types":[["float","<unknown>"],
["float","<unknown>","float","<unknown>"],
[]],"problems":[],"notes":[]})");
  EXPECT_EQ(Answer("check", {FloatNode("y", "Neg", {"x"}), kSource, FloatNode("z", "Neg", {""}),
                             FloatNode("w", "AddV2", {"z", "none:1"}), FloatNode("a", "Neg", {"b"}),
                             FloatNode("b", "Neg", {"a"}), FloatNode("c", "Neg", {"b"})}),
            R"({"types":[["float","<unknown>"],
["float","<unknown>"],
null,
null,
null,
null,
null],"problems":[[2,"input 0 is not connected"],
[3,"the producer 'z' cannot run"],
[4,"its inputs form a cycle, or depend on one"],
[5,"its inputs form a cycle, or depend on one"],
[6,"its inputs form a cycle, or depend on one"]],"notes":[]})");
  // Types are listed for the first 64 outputs of a node.
  const auto count = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("\"float\""); at != text.npos; at = text.find("\"float\"", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(count(Answer("check", {kSource, UnpackNode("p", "x", 64)})), 65u);
  EXPECT_EQ(count(Answer("check", {kSource, UnpackNode("p", "x", 65)})), 65u);
}

TEST_F(EditApiTest, NotesProblemsOfGraphsAndFunctions) {
  WriteFile(File("g.pbtxt"), "versions { min_consumer: 1000000 }");
  EXPECT_EQ(Answer(*Open("g.pbtxt"), "check", {"name: 'n' op: 'NoOp'"}),
            "{\"types\":[null],\"problems\":[],\"notes\":[\"the graph needs a reader of "
            "version 1000000, but gradflow reads up to version 2200\"]}");
  // At most 64 problems of the graph and of functions are shown.
  std::string functions = "library {\n";
  for (int f = 0; f < 65; ++f) {
    absl::StrAppend(&functions, "function { signature { name: 'f", f,
                    "' } node_def { name: 'n' op: 'NoOp' } }\n");
  }
  WriteFile(File("f.pbtxt"), functions + "}");
  EditOptions options;
  options.timeout_seconds = 1e-9;
  std::string notes = "\"the time for the import is over\"";
  for (int f = 0; f < 63; ++f) {
    absl::StrAppend(&notes, ",\"function 'f", f, "': the time for the import is over\"");
  }
  EXPECT_THAT(Answer(*Open("f.pbtxt", options), "check", {"name: 'n' op: 'NoOp'"}),
              EndsWith("],\"problems\":[],\"notes\":[" + notes + "]}"));
}

TEST_F(EditApiTest, PagesContainTheWholeFile) {
  WriteFile(File("g.pbtxt"), R"(
    node { name: "x" op: "Odd" } node { name: "y" op: "Odd" input: "x" input: "^x" device: "d" }
    library { function { signature { name: "f" } node_def { name: "n" op: "Odd" } }
              function { signature { name: "NoOp" description: "Not this one." } }
              gradient { function_name: "f" } } versions { producer: 27 })");
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  const std::string data = *api->PageData(true);
  EXPECT_THAT(data, AllOf(HasSubstr("\"title\":\"g.pbtxt\","),
                          HasSubstr("\"edit\":{\"server\":true,\"base\":0,\"page\":1,"
                                    "\"file\":\"g.pbtxt\",\"ops\":[{\"n\":\"Abort\",\"k\":1,"),
                          HasSubstr(",\n{\"n\":\"f\",\"k\":2,\"s\":\"\",\"d\":\"\",\"i\":[],"
                                    "\"o\":[],\"a\":[],\"f\":0}],\"nodes\":[")));
  const std::string nodes = data.substr(data.rfind("],\"nodes\":["));
  EXPECT_EQ(nodes,
            R"(],"nodes":[{"n":"x","op":"Odd","d":"","i":[],"a":{}},
{"n":"y","op":"Odd","d":"d","i":["x","^x"],"a":{}}],"functions":[)"
            R"({"h":"signature {\n  name: \"f\"\n}\n",)"
            R"("nodes":[{"n":"n","op":"Odd","d":"","i":[],"a":{}}]},
{"h":"signature {\n  name: \"NoOp\"\n  description: \"Not this one.\"\n}\n","nodes":[]}],)"
            R"("library":"gradient {\n  function_name: \"f\"\n}\n",)"
            R"("rest":"versions {\n  producer: 27\n}\n"}})"
            "\n");
  // A page without a server has no page number.
  EXPECT_THAT(
      *api->PageData(false),
      AllOf(HasSubstr("\"edit\":{\"server\":false,\"base\":0,\"page\":0,"), HasSubstr(nodes)));
  EXPECT_THAT(*Open("")->PageData(true), HasSubstr("\"file\":\"graph.pbtxt\""));
  EXPECT_THAT(*Open("")->PageData(true),
              HasSubstr(R"(],"nodes":[],"functions":[],"library":"","rest":"ver)"));
}

TEST_F(EditApiTest, KeepsHostileTextAsText) {
  // Control characters, quotes and markup. The text of a graph is UTF-8, but file names and
  // attribute bytes need not be.
  const std::string file = "\xff\"<b>.pbtxt";
  WriteFile(File(file), R"(
    node { name: "</script>\"\001\n" op: "Odd\"" input: "\"\177" device: "\""
           attr { key: "k\"\n" value { s: "</script>\377\"" } } }
    library { function { signature { name: "f\"\001" } node_def { name: "n\"" op: "Odd" } } })");
  const std::unique_ptr<EditApi> api = Open(file);
  ASSERT_NE(api, nullptr);
  const Json page = Json::parse(*api->PageData(true));
  const Json& edit = page["edit"];
  EXPECT_EQ(edit["file"], "\ufffd\"<b>.pbtxt");
  const Json node = {{"n", "</script>\"\x01\n"},
                     {"op", "Odd\""},
                     {"d", "\""},
                     {"i", {"\"\x7f"}},
                     {"a", {{"k\"\n", R"(s: "</script>\377\"")"}}}};
  EXPECT_EQ(edit["nodes"], Json::array({node}));
  EXPECT_EQ(edit["functions"][0]["nodes"][0]["n"], "n\"");
  EXPECT_EQ(edit["ops"].back()["n"], "f\"\x01");
  const Json check = Json::parse(Answer(*api, "check", {}));
  EXPECT_THAT(check["problems"][0][1].get<std::string>(), StartsWith(R"(node 'n\"' (Odd): )"));
  EXPECT_THAT(check["notes"][0].get<std::string>(),
              StartsWith(R"(function 'f\"\001': node 'n\"' (Odd): )"));
  EXPECT_EQ(ErrorJson("\xff\"\n"), "{\"error\":\"\ufffd\\\"\\n\"}");
}

// A page with a server leaves large attributes to the server. A page without a server contains
// them.
TEST_F(EditApiTest, PagesWithoutAServerHaveLargeAttributes) {
  for (const int size : {4093, 4094}) {
    WriteFile(File("g.pbtxt"),
              absl::StrCat("node { name: 'a' attr { key: 'k' value { s: '", std::string(size, 'v'),
                           "' } } } library { function { node_def { name: 'b' attr { key: 'k' ",
                           "value { s: '", std::string(size, 'w'), "' } } } } }"));
    const std::unique_ptr<EditApi> api = Open("g.pbtxt");
    const bool is_sent = size == 4093;
    const std::string with_server = *api->PageData(true);
    EXPECT_EQ(with_server.find("vvv") != std::string::npos, is_sent) << size;
    EXPECT_EQ(with_server.find("www") != std::string::npos, is_sent) << size;
    EXPECT_THAT(*api->PageData(false), AllOf(HasSubstr("vvv"), HasSubstr("www")));
  }
}

TEST_F(EditApiTest, ReportsTheOutputsOfARun) {
  const std::vector<std::string> nodes = {kSource, UnpackNode("p", "x", 2),
                                          FloatNode("y", "Neg", {"p:1"}),
                                          FloatNode("z", "Neg", {""})};
  const auto outputs = [&](const std::string& more) {
    const std::string answer = Answer("run", nodes, more);
    // Lists "n" and "o" of each output, with its first values.
    std::string list;
    for (size_t at = answer.find("{\"n\":"); at != answer.npos;
         at = answer.find("{\"n\":", at + 1)) {
      const size_t first = answer.find("\"first\":", at);
      absl::StrAppend(&list, answer.substr(at, answer.find(",\"t\"", at) - at), " ",
                      answer.substr(first + 8, answer.find('"', first + 9) - first - 7), "\n");
    }
    return list.empty() ? answer : list;
  };
  const std::string feed = ",\"feeds\":[" + FeedOf("x", "2", "2;3") + "]";
  EXPECT_EQ(outputs(feed + R"(,"until":["y"])"),
            "{\"n\":2,\"o\":0 \"-3\"\n{\"n\":1,\"o\":0 \"2\"\n{\"n\":1,\"o\":1 \"3\"\n"
            "{\"n\":0,\"o\":0 \"2 3\"\n");
  EXPECT_EQ(outputs(feed + R"(,"until":["p"])"),
            "{\"n\":1,\"o\":0 \"2\"\n{\"n\":1,\"o\":1 \"3\"\n{\"n\":0,\"o\":0 \"2 3\"\n");
  // A fed tensor needs no other nodes, and the node that it replaces does not run.
  EXPECT_EQ(outputs(",\"feeds\":[" + FeedOf("p:1", "", "7") + R"(],"until":["y"])"),
            "{\"n\":2,\"o\":0 \"-7\"\n{\"n\":1,\"o\":1 \"7\"\n");
  EXPECT_EQ(outputs(feed + R"(,"until":["x"])"), "{\"n\":0,\"o\":0 \"2 3\"\n");
  // Handles and references have no values.
  EXPECT_THAT(Answer("run",
                     {"name: 'h' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } "
                      "attr { key: 'shape' value { shape { } } }",
                      "name: 'v' op: 'Variable' attr { key: 'dtype' value { type: DT_FLOAT } } "
                      "attr { key: 'shape' value { shape { } } }"},
                     R"(,"until":["h","v"])"),
              EndsWith("\"outputs\":[]}}"));
  EXPECT_EQ(outputs(feed + R"(,"until":["z"])"),
            "INVALID_ARGUMENT: node 'z' cannot run: input 0 is not connected");
  EXPECT_EQ(outputs(feed), "INVALID_ARGUMENT: node 'z' cannot run: input 0 is not connected");
  EXPECT_EQ(outputs(feed + R"(,"until":["none"])"),
            "INVALID_ARGUMENT: the graph has no node 'none'");
  EXPECT_EQ(outputs(feed + R"(,"until":["y",1])"),
            "INVALID_ARGUMENT: expected \"until\", a list of texts");
}

TEST_F(EditApiTest, EditsTheGraphOfASavedModel) {
  ASSERT_THAT(WriteCheckpoint(File("variables/variables"), {{"w_key", AsTensor<float>({2, 3}), ""},
                                                            {"v_key", AsScalar<float>(10), ""}}),
              IsOk());
  WriteFile(File("saved_model.pbtxt"), ScaleModelText());
  EditOptions options;
  options.model = folder();
  const std::unique_ptr<EditApi> api = Open("saved_model.pbtxt", options);
  EXPECT_THAT(*api->PageData(true), HasSubstr("\"file\":\"saved_model.pbtxt\""));
  EXPECT_THAT(*api->PageData(false), HasSubstr("\"file\":\"graph.pbtxt\""));
  // Runs restore the variables.
  const auto call = [&](const std::string& name, const std::string& nodes,
                        const std::string& more) {
    const auto answer =
        api->Call(name, absl::StrCat(R"({"base":0,"nodes":[)", nodes, "]", more, "}"));
    return answer.ok() ? *answer : answer.status().ToString();
  };
  const std::string feed = ",\"feeds\":[" + FeedOf("n", "", "1") + "]";
  EXPECT_THAT(call("run", "0,1,2,3,4,5,6,7,8,9", feed + R"(,"until":["z"])"),
              HasSubstr("\"first\":\"11\""));
  // Saving under another name makes a GraphDef, without node 7.
  const std::string kept = "0,1,2,3,4,5,6,8,9";
  EXPECT_THAT(call("save", kept, R"(,"file":"graph.pb")"), HasSubstr("\"file\":\"graph.pb\""));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef graph, ReadGraphDef(File("graph.pb")));
  EXPECT_EQ(graph.node_size(), 9);
  EXPECT_THAT(call("save", kept, R"(,"file":"saved_model.pbtxt")"), HasSubstr("saved_model.pbtxt"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const SavedModel model, ReadSavedModel(folder()));
  ASSERT_EQ(model.meta_graphs_size(), 1);
  EXPECT_EQ(model.meta_graphs(0).graph_def().node_size(), 9);
  EXPECT_EQ(model.meta_graphs(0).graph_def().library().function_size(), 3);
  EXPECT_EQ(model.meta_graphs(0).signature_def_size(), 3);
}

TEST_F(EditApiTest, UnknownTagsAreErrors) {
  WriteFile(File("saved_model.pbtxt"), ScaleModelText());
  EditOptions options;
  options.path = File("saved_model.pbtxt");
  options.model = folder();
  options.tag = "gpu";
  EXPECT_THAT(EditApi::Make(options).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("it has {'serve'}")));
}

TEST_F(EditApiTest, ShowsTheFirst200BytesOfNames) {
  for (const int size : {200, 201}) {
    const std::string name(size, 'n');
    const std::string shown = "'" + name.substr(0, 200) + (size > 200 ? "...'" : "'");
    const std::vector<std::string> bad = {FloatNode(name, "Neg", {""})};
    EXPECT_THAT(Answer("run", bad), HasSubstr("node " + shown + " cannot run: "));
    const std::string until = ",\"until\":[\"" + name + "\"]";
    EXPECT_THAT(Answer("run", bad, until), HasSubstr("node " + shown + " cannot run: "));
    EXPECT_THAT(Answer("run", {}, until), HasSubstr("the graph has no node " + shown));
    EXPECT_THAT(Answer("check", {FloatNode("x", "Neg", {name})}),
                HasSubstr("\"input " + shown + " is not in the graph\""));
    EXPECT_THAT(Answer("run", {kSource}, ",\"feeds\":[" + FeedOf(name, "-1", "") + "]"),
                HasSubstr("feed " + shown + ": "));
    WriteFile(File("f.pbtxt"), absl::StrCat("library { function { signature { name: '", name,
                                            "' attr { name: 'T' type: 'type' } } } }"));
    EXPECT_THAT(Answer(*Open("f.pbtxt"), "run", {}, ",\"function\":0"),
                HasSubstr("the types of function " + shown + " come"));
  }
}

TEST_F(EditApiTest, RunsOfWideNodesReportSixtyFourOutputs) {
  for (const int size : {64, 65}) {
    const std::string answer = Answer(
        "run", {kSource, UnpackNode("p", "x", size)},
        absl::StrCat(",\"until\":[\"p\"],\"feeds\":[", FeedOf("x", absl::StrCat(size), "1"), "]"));
    EXPECT_THAT(answer, HasSubstr("{\"n\":1,\"o\":63,"));
    // Further outputs are only those that the run computes anyway.
    EXPECT_EQ(answer.find("{\"n\":1,\"o\":64,") != std::string::npos, size == 65);
  }
}

TEST_F(EditApiTest, FeedsHaveLimits) {
  const auto error = [](const std::string& feed) {
    return Answer("run", {kSource}, ",\"feeds\":[" + feed + "]");
  };
  const auto random = [](const std::string& shape, const std::string& seed) {
    return "{\"name\":\"x\",\"type\":\"float\",\"shape\":" + shape + ",\"random\":" + seed + "}";
  };
  EXPECT_THAT(error(random("[4096,4096]", "0")), HasSubstr("{\"run\":"));
  EXPECT_EQ(error(random("[16777217]", "0")),
            "INVALID_ARGUMENT: feed 'x': the feed has 16777217 elements, but at most 16777216 are "
            "allowed");
  const std::string sizes = "INVALID_ARGUMENT: feed 'x': expected \"shape\", a list of sizes";
  for (const char* shape : {"[-1]", "[1.5]", "[\"1\"]", "[null]", "[1.1e15]"}) {
    EXPECT_EQ(error(random(shape, "0")), sizes) << shape;
  }
  EXPECT_THAT(error(random("[0,1e15]", "0")), HasSubstr("\"s\":[0,1000000000000000]"));
  const std::string seed =
      "INVALID_ARGUMENT: feed 'x': expected \"npy\", \"image\", \"values\" or \"random\", a seed";
  for (const char* text : {"-1", "1e15", "\"1\"", "null"}) {
    EXPECT_EQ(error(random("[1]", text)), seed) << text;
  }
  EXPECT_THAT(error(random("[1]", "999999999999999")), HasSubstr("{\"run\":"));
  EXPECT_EQ(error("{\"name\":\"x\",\"type\":\"string\",\"shape\":[1],\"random\":1}"),
            "UNIMPLEMENTED: feed 'x': numbers of type string; feed a file");
  EXPECT_EQ(error(FeedOf("x", "3", "1 2")),
            "INVALID_ARGUMENT: feed 'x': expected 3 numbers, or one for all, but found 2");
  EXPECT_EQ(error(FeedOf("x", "1", "")),
            "INVALID_ARGUMENT: feed 'x': expected 1 numbers, or one for all, but found 0");
  EXPECT_THAT(error(FeedOf("x", "2", "1,\\t2;\\n")), HasSubstr("\"first\":\"1 2\""));
  EXPECT_THAT(error(FeedOf("x", "0", "")), HasSubstr("\"s\":[0],"));
  EXPECT_THAT(error(FeedOf("x", "0", "5")), HasSubstr("\"s\":[0],"));
}

// The limit applies to all feeds together.
TEST_F(EditApiTest, FeedsFitIntoTheMemory) {
  EditOptions options;
  options.memory_limit = 8'000;
  const auto answer = [&](int first, int second) {
    return Answer(
        "run",
        {kSource,
         "name: 'z' op: 'Placeholder' attr { key: 'dtype' "
         "value { type: DT_FLOAT } }"},
        absl::StrCat(",\"until\":[\"x\"],\"feeds\":[", FeedOf("x", absl::StrCat(first), "1"), ",",
                     FeedOf("z", absl::StrCat(second), "1"), "]"),
        options);
  };
  const std::string error =
      "RESOURCE_EXHAUSTED: the feeds have more than 8000 bytes (--memory-limit)";
  EXPECT_NE(answer(1000, 1000), error);
  EXPECT_EQ(answer(1000, 1001), error);
  EXPECT_EQ(answer(2001, 1), error);
}

TEST_F(EditApiTest, DifferentiatesWithRespectToEachTensor) {
  const std::string answer = Answer(
      "gradients", {kSource, kInts, FloatNode("y", "Neg", {"x"}), FloatNode("z", "Neg", {"y"})},
      R"(,"of":"z","wrt":["x","i","y"])");
  EXPECT_EQ(
      answer,
      R"({"nodes":[{"n":"gradients/OnesLike","op":"OnesLike","d":"","i":["z"],"a":{"T":"type: DT_FLOAT"}},
{"n":"gradients/z/Neg","op":"Neg","d":"","i":["gradients/OnesLike"],"a":{"T":"type: DT_FLOAT"}},
{"n":"gradients/y/Neg","op":"Neg","d":"","i":["gradients/z/Neg"],"a":{"T":"type: DT_FLOAT"}}],"gradients":["gradients/y/Neg",null,"gradients/z/Neg"]})");
  EXPECT_EQ(Answer("gradients", {kSource}, R"(,"of":1,"wrt":["x"])"),
            "INVALID_ARGUMENT: expected \"of\", a text");
  EXPECT_EQ(Answer("gradients", {kSource}, R"(,"of":"x","wrt":[1])"),
            "INVALID_ARGUMENT: expected \"wrt\", a list of texts");
  EXPECT_EQ(Answer("gradients", {kSource}, R"(,"of":"x","wrt":["q"])"),
            "INVALID_ARGUMENT: 'q' is not in the graph");
}

TEST_F(EditApiTest, MakesConstantsOfImages) {
  const auto image = [](int rows, int columns, const std::string& more) {
    const std::string pixels(rows * columns, '\7');
    internal::ImageSize size;
    size.rows = rows;
    size.columns = columns;
    size.channels = 1;
    std::string bytes;
    EXPECT_THAT(internal::EncodePng(pixels.data(), size, 8, -1, &bytes), IsOk());
    const absl::StatusOr<std::string> answer =
        (*EditApi::Make({}))
            ->Call("image",
                   absl::StrCat("{\"image\":\"", absl::Base64Escape(bytes), "\",", more, "}"));
    return answer.ok() ? *answer : answer.status().ToString();
  };
  const std::string uint8 = "\"type\":\"uint8\"";
  EXPECT_EQ(image(1, 2, uint8),
            "{\"value\":\"tensor { dtype: DT_UINT8 tensor_shape { dim { size: 1 } dim { size: 2 } "
            "dim { size: 1 } } tensor_content: \\\"\\\\007\\\\007\\\" }\"}");
  EXPECT_THAT(image(1, 2, uint8 + ",\"batch\":true,\"channels\":4"),
              HasSubstr("tensor_shape { dim { size: 1 } dim { size: 1 } dim { size: 2 } "
                        "dim { size: 4 } }"));
  EXPECT_THAT(image(1, 1, "\"type\":\"float\",\"channels\":5"),
              HasSubstr("channels is 5, expected 0, 1, 3 or 4"));
  EXPECT_THAT(image(1, 1, "\"type\":\"float\",\"channels\":-1"),
              HasSubstr("channels is -1, expected 0, 1, 3 or 4"));
  EXPECT_THAT(image(1, 1, "\"type\":\"bool\""),
              HasSubstr("an image has numbers, but the tensor is bool"));
  // The first constant has 1 MiB, the second more.
  EXPECT_THAT(image(1024, 1024, uint8), HasSubstr("{\"value\":"));
  EXPECT_EQ(image(1024, 1025, uint8),
            "INVALID_ARGUMENT: the image has 1049600 bytes as uint8 [1024,1025,1], but a constant "
            "has at most 1048576; feed it instead");
}

TEST_F(EditApiTest, AnswersWithTheNameAndTheSizeOfTheFile) {
  const std::unique_ptr<EditApi> api = Open("new.pbtxt");
  const std::string answer = Answer(*api, "save", {"name: 'n'"}, R"(,"file":"other.pbtxt")");
  EXPECT_EQ(answer, absl::StrCat("{\"file\":\"other.pbtxt\",\"bytes\":",
                                 ReadFile(File("other.pbtxt")).size(), "}"));
  EXPECT_EQ(Answer(*api, "save", {}, R"(,"file":1)"),
            "INVALID_ARGUMENT: expected \"file\", a text");
  for (const char* page : {"-1", "1e15"}) {
    EXPECT_EQ(Answer(*api, "save", {}, absl::StrCat(R"(,"file":"a.pb","page":)", page)),
              "INVALID_ARGUMENT: expected \"page\", the number of the page");
  }
  EXPECT_EQ(Answer(*api, "save", {}, R"(,"file":"a.pb","page":999999999999999)").substr(0, 9),
            "{\"file\":\"");
  // Another program has changed the file since the page was loaded.
  WriteFile(File("new.pbtxt"), "node { name: 'theirs' }");
  EXPECT_THAT(Answer(*api, "save", {}, R"(,"file":"new.pbtxt")"),
              HasSubstr("FAILED_PRECONDITION: 'new.pbtxt' has changed since the page was loaded; "
                        "save again to overwrite it, or under another name"));
}

TEST_F(EditApiTest, RefusesUnknownPageNumbers) {
  const std::unique_ptr<EditApi> api = Open("");
  for (const char* base : {"1e15", "-0.5", "0.5"}) {
    EXPECT_THAT(
        api->Call("check", absl::StrCat("{\"nodes\":[],\"base\":", base, "}")).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, "expected \"base\", the number of the page"));
  }
  EXPECT_THAT(api->Call("check", "{\"nodes\":[],\"base\":999999999999999}").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "the page is older than 8 other contents of the file; download the graph, "
                       "then load the page again"));
}

// The server remembers the 8 newest contents of the file.
TEST_F(EditApiTest, RemembersTheNewestContents) {
  WriteFile(File("g.pbtxt"), "node { name: 'n0' }");
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  for (int i = 1; i < 9; ++i) {
    EXPECT_THAT(api->Call("check", "{\"nodes\":[0],\"base\":0}"), IsOk());
    WriteFile(File("g.pbtxt"), absl::StrCat("node { name: 'n", i, "' }"));
    EXPECT_THAT(*api->PageData(true),
                AllOf(HasSubstr(absl::StrCat("\"base\":", i, ",\"page\":", i, ",")),
                      HasSubstr(absl::StrCat("\"nodes\":[{\"n\":\"n", i, "\""))));
  }
  EXPECT_THAT(api->Call("check", "{\"nodes\":[0],\"base\":0}").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(api->Call("check", "{\"nodes\":[0],\"base\":1}"), IsOk());
}

TEST_F(EditApiTest, ExpiredTimeLimitEndsEachCall) {
  EditOptions options;
  options.timeout_seconds = 1e-9;
  const std::vector<std::string> nodes = {kSource, FloatNode("y", "Neg", {"x"})};
  EXPECT_THAT(Answer("cpp", nodes, "", options), HasSubstr("DEADLINE_EXCEEDED: "));
  EXPECT_THAT(Answer("gradients", nodes, R"(,"of":"y","wrt":["x"])", options),
              HasSubstr("DEADLINE_EXCEEDED: "));
  EXPECT_THAT(Answer("check", nodes, "", options), HasSubstr("the time for the import is over"));
  EXPECT_THAT(Answer("run", nodes, ",\"feeds\":[" + FeedOf("x", "1", "1") + "]", options),
              HasSubstr("DEADLINE_EXCEEDED: "));
}

TEST_F(EditApiTest, NamesProgramsByTheirFile) {
  EXPECT_THAT(Answer("cpp", {}), HasSubstr("{\"text\":\"// Builds the graph 'graph'. Made by"));
  EXPECT_THAT(Answer(*Open("g.pb"), "cpp", {}), HasSubstr("// Builds the graph 'g.pb'. Made by"));
}

TEST_F(EditApiTest, ChecksAndRefusesFunctionsOfOtherTypes) {
  WriteFile(File("f.pbtxt"), R"(library {
    function { signature { name: "typed" input_arg { name: "a" type: DT_FLOAT } }
               node_def { name: "n" op: "AddN" input: "a" input: "a"
                          attr { key: "N" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
               node_def { name: "call" op: "any" } node_def { name: "own" op: "NoOp" } }
    function { signature { name: "any" attr { name: "T" type: "type" } }
               node_def { name: "m" op: "NoOp" } node_def { name: "k" op: "NoOp" } }
    function { signature { name: "NoOp" } } })");
  const std::unique_ptr<EditApi> api = Open("f.pbtxt");
  EXPECT_EQ(Answer(*api, "check", {"name: 'call' op: 'typed'", "name: 'n' op: 'NoOp'"}),
            R"({"types":[null,
[],
["float","<unknown>"],
["float","<unknown>"],
null,
[],
null,
null],"problems":[[0,"node 'call' (typed): expected 1 input (a), but found 0"],
[4,"node 'call' (any): attribute T (type) is missing"]],"notes":[]})");
  EXPECT_EQ(Answer(*api, "run", {}, R"(,"function":1)"),
            "UNIMPLEMENTED: the types of function 'any' come from its calls");
  EXPECT_EQ(Answer(*api, "run", {}, R"(,"function":3)"),
            "INVALID_ARGUMENT: expected \"function\", a number less than 3");
}

}  // namespace
}  // namespace gradflow::tools
