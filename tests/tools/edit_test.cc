// Tests of `gradflow edit`: the calls from its page, and the bytes of saved files.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/tools/command_line_fixture.h"
#include "tools/edit/cpp_writer.h"
#include "tools/edit/edit_api.h"
#include "tools/edit/edit_graph.h"
#include "tools/edit/edit_lock.h"
#include "tools/json.h"

namespace gradflow {
namespace testing {
namespace {

using ::gradflow::tools::EditApi;
using ::gradflow::tools::EditLock;
using ::gradflow::tools::EditOptions;
using ::gradflow::tools::JsonText;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kX[] =
    R"(name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } })";
constexpr char kY[] =
    R"(name: "y" op: "Square" input: "x" attr { key: "T" value { type: DT_FLOAT } })";

// Returns a request with the given items of "nodes" and other members, from the page with number
// `base`.
std::string Request(const std::vector<std::string>& items, const std::string& more = "",
                    int base = 0) {
  std::string nodes;
  for (const std::string& item : items) {
    const bool is_raw = item[0] == '{' || absl::ascii_isdigit(item[0]);
    absl::StrAppend(&nodes, nodes.empty() ? "" : ",",
                    is_raw ? item : absl::StrCat("{\"t\":", JsonText(item), "}"));
  }
  return absl::StrCat("{\"base\":", base, ",\"nodes\":[", nodes, "]", more, "}");
}
// Returns the first values of the first output of a run.
std::string FirstValues(const absl::StatusOr<std::string>& run) {
  EXPECT_THAT(run.status(), IsOk());
  if (!run.ok()) return "";
  const std::string key = "\"first\":\"";
  const size_t begin = run->find(key) + key.size();
  return run->substr(begin, run->find('"', begin) - begin);
}

class EditTest : public CommandLineFixture {
 protected:
  std::unique_ptr<EditApi> Open(const std::string& name) {
    EditOptions options;
    if (!name.empty()) options.path = File(name);
    options.timeout_seconds = timeout_;
    options.memory_limit = memory_limit_;
    absl::StatusOr<std::unique_ptr<EditApi>> api = EditApi::Make(options);
    EXPECT_THAT(api.status(), IsOk());
    return api.ok() ? *std::move(api) : nullptr;
  }
  double timeout_ = 0;
  int64_t memory_limit_ = 0;
};

TEST_F(EditTest, ChecksEachNode) {
  const std::unique_ptr<EditApi> api = Open("");
  const absl::StatusOr<std::string> result = api->Call(
      "check", Request({kX, kY, R"(name: "z" op: "Add" input: "y" input: "")",
                        R"(name: "w" op: "Relu" input: "z")", R"(name: "o" op: "Odd")",
                        R"(name: "i" op: "Identity" input: "x"
                           attr { key: "T" value { type: DT_INT32 } })",
                        R"(name: "a" op: "Neg" input: "b")", R"(name: "b" op: "Neg" input: "a")"}));
  GRADFLOW_ASSERT_OK(result.status());
  EXPECT_THAT(*result,
              AllOf(HasSubstr(R"({"types":[["float","<unknown>"],
["float","<unknown>"],
null,
null,
)"),
                    HasSubstr(R"([2,"input 1 is not connected"])"),
                    HasSubstr(R"([3,"the producer 'z' cannot run"])"),
                    HasSubstr("[4,\"node 'o' (Odd): op 'Odd' is not"), HasSubstr("[5,\"node 'i'"),
                    HasSubstr("[6,\"its inputs form a cycle")));
}

TEST_F(EditTest, ReportsThePlaceOfMalformedRequests) {
  GraphDef def;
  def.add_node()->set_name("only");
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("g.pb"), def));
  const std::unique_ptr<EditApi> api = Open("g.pb");
  const auto call = [&](const std::string& request) {
    return api->Call("check", request).status();
  };
  const auto fails = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(call(""), fails("expected a JSON object"));
  EXPECT_THAT(call("[1]"), fails("expected a JSON object"));
  EXPECT_THAT(call(R"({"base":0})"), fails("expected \"nodes\", a list"));
  for (const char* base : {"", R"("base":-1)", R"("base":0.5)", R"("base":"0")"}) {
    EXPECT_THAT(call(absl::StrCat("{", base, "}")), fails("expected \"base\", the number")) << base;
  }
  EXPECT_THAT(call(R"({"base":0,"nodes":[null]})"),
              fails("node 0: expected a number, or an object"));
  for (const char* number : {"1", "-1", "0.5", "1e300"}) {
    EXPECT_THAT(call(Request({kX, absl::StrCat("{\"t\":\"\",\"b\":", number, "}")})),
                fails("node 1: expected a number from 0 to 0"));
  }
  EXPECT_THAT(call(Request({"1"})), fails("expected a number from 0 to 0"));
  EXPECT_THAT(call(Request({R"(name: "x" nam: 3)"})), fails("nam"));
  EXPECT_THAT(call(Request({R"(} node { name: "x")"})), fails("expected the text of one node"));
  EXPECT_THAT(call(Request({R"({"t":"","b":0,"k":["T"]})"})),
              fails("node 'only' of the file has no attribute 'T'"));
  EXPECT_THAT(call(std::string(1000, '[')), fails("expected a JSON object"));
  EXPECT_THAT(api->Call("delete", Request({})).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no call 'delete'")));
  // The limits of graph files apply.
  EXPECT_THAT(api->Call("check", Request({R"(name: "c" op: "Const" attr { key: "value" value {
      tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000000000000 } } float_val: 1 } } })"})),
              IsOk());
}

TEST_F(EditTest, RunsUpToANode) {
  const std::unique_ptr<EditApi> api = Open("");
  const std::string nodes = R"(name: "z" op: "Add" input: "y" input: "")";
  const auto feed = [](const std::string& value) {
    return absl::StrCat(R"(,"feeds":[{"name":"x","type":"float","shape":[2],)", value, "}]");
  };
  // The whole graph cannot run, but a part of it can.
  EXPECT_THAT(api->Call("run", Request({kX, kY, nodes}, feed(R"("values":"2, 3")"))).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'z' cannot run: input 1 is not connected")));
  const absl::StatusOr<std::string> run =
      api->Call("run", Request({kX, kY, nodes}, feed(R"("values":"2, 3")") + R"(,"until":["y"])"));
  GRADFLOW_ASSERT_OK(run.status());
  EXPECT_THAT(*run, AllOf(HasSubstr(R"({"run":{"total":)"),
                          HasSubstr(R"("n":1,"o":0,"t":"float","s":[2])"), HasSubstr("4 9")));
  EXPECT_THAT(
      api->Call("run", Request({kX, kY}, feed(R"("values":"2")") + R"(,"until":["q"])")).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the graph has no node 'q'")));
  EXPECT_THAT(*api->Call("run", Request({kX, kY}, feed(R"("values":"-3")"))), HasSubstr("9 9"));
  // The same seed gives the same numbers.
  const std::string random = Request({kX, kY}, feed(R"("random":7)"));
  const auto outputs = [](const std::string& json) { return json.substr(json.find("outputs")); };
  EXPECT_EQ(outputs(*api->Call("run", random)), outputs(*api->Call("run", random)));
  EXPECT_NE(outputs(*api->Call("run", random)),
            outputs(*api->Call("run", Request({kX, kY}, feed(R"("random":8)")))));
}

TEST_F(EditTest, FeedsFilesAndNumbersOfAllTypes) {
  const std::unique_ptr<EditApi> api = Open("");
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<float>({2, 3})));
  const std::string npy = absl::Base64Escape(ReadFile(File("x.npy")));
  const absl::StatusOr<std::string> run = api->Call(
      "run", Request({kX, kY}, absl::StrCat(R"(,"feeds":[{"name":"x","npy":")", npy, "\"}]")));
  GRADFLOW_ASSERT_OK(run.status());
  EXPECT_THAT(*run, HasSubstr("4 9"));
  std::map<std::string, std::string> large = {
      {"float", "1e+30 1e+30 1e+30"},
      {"double", "1e+30 1e+30 1e+30"},
      {"half", "inf inf inf"},
      {"bfloat16", "1.00026e+30 1.00026e+30 1.00026e+30"},
      {"int8", "127 127 127"},
      {"int16", "32767 32767 32767"},
      {"int32", "2147483647 2147483647 2147483647"},
      {"int64", "9223372036854775807 9223372036854775807 9223372036854775807"},
      {"uint8", "255 255 255"},
      {"uint16", "65535 65535 65535"},
      {"uint32", "4294967295 4294967295 4294967295"},
      {"uint64", "18446744073709551615 18446744073709551615 18446744073709551615"},
      {"bool", "1 1 1"}};
  for (const auto& [name, unused] : large) {
    const std::string& type = name;
    const std::string x =
        absl::StrReplaceAll(kX, {{"DT_FLOAT", absl::StrCat("DT_", absl::AsciiStrToUpper(type))}});
    const auto values = [&](const std::string& value) {
      return FirstValues(
          api->Call("run", Request({x}, absl::StrCat(R"(,"feeds":[{"name":"x","type":")", type,
                                                     R"(","shape":[3],)", value, "}]"))));
    };
    SCOPED_TRACE(type);
    EXPECT_EQ(values(R"("values":"1")"), "1 1 1");
    EXPECT_EQ(values(R"("values":"1, 0 1")"), "1 0 1");
    EXPECT_EQ(values(R"("values":"1e30")"), large[type]);
    // Random numbers with this seed, which are not all the same.
    const std::string random = values(R"("random":1)");
    EXPECT_EQ(values(R"("random":1)"), random);
    std::vector<double> numbers;
    for (const absl::string_view word : absl::StrSplit(random, ' ')) {
      double number = 99;
      EXPECT_TRUE(absl::SimpleAtod(word, &number)) << random;
      numbers.push_back(number);
    }
    EXPECT_THAT(numbers, AllOf(SizeIs(3), Each(AllOf(Ge(-10), Le(10)))));
    const bool is_whole =
        std::all_of(numbers.begin(), numbers.end(), [](double v) { return v == std::floor(v); });
    if (type == "float" || type == "double" || type == "half" || type == "bfloat16") {
      EXPECT_FALSE(is_whole) << random;
      EXPECT_THAT(numbers, Each(AllOf(Ge(-1), Le(1))));
    } else {
      EXPECT_TRUE(is_whole) << random;
    }
  }
  // Computed from the known numbers of splitmix64.
  const auto random_of = [&](const std::string& x, const char* type) {
    return FirstValues(
        api->Call("run", Request({x}, absl::StrCat(R"(,"feeds":[{"name":"x","type":")", type,
                                                   R"(","shape":[3],"random":1234567}])"))));
  };
  EXPECT_EQ(random_of(kX, "float"), "-0.29984093 -0.6527118 0.064414605");
  const auto of = [](const char* type) { return absl::StrReplaceAll(kX, {{"DT_FLOAT", type}}); };
  EXPECT_EQ(random_of(of("DT_INT32"), "int32"), "-3 -7 1");
  EXPECT_EQ(random_of(of("DT_UINT8"), "uint8"), "3 1 5");
  // These integers are not doubles.
  const auto of_type = [&](const char* type, const char* text) {
    return FirstValues(api->Call(
        "run", Request({absl::StrReplaceAll(
                           kX, {{"DT_FLOAT", absl::StrCat("DT_", absl::AsciiStrToUpper(type))}})},
                       absl::StrCat(R"(,"feeds":[{"name":"x","type":")", type,
                                    R"(","shape":[],"values":")", text, "\"}]"))));
  };
  EXPECT_EQ(of_type("int64", "9007199254740993"), "9007199254740993");
  EXPECT_EQ(of_type("int64", "-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(of_type("uint64", "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(of_type("uint64", "-3"), "0");
  EXPECT_EQ(of_type("int8", "200"), "127");
  EXPECT_EQ(of_type("int8", "-200"), "-128");
  EXPECT_EQ(of_type("int8", "127.0"), "127");
  EXPECT_EQ(of_type("int8", "128.0"), "127");
  EXPECT_EQ(of_type("int8", "-128.0"), "-128");
  EXPECT_EQ(of_type("int32", "2147483648.0"), "2147483647");
  EXPECT_EQ(of_type("uint64", "18446744073709551616.0"), "18446744073709551615");
  EXPECT_EQ(of_type("int32", "2.6"), "3");
  EXPECT_EQ(of_type("int32", "nan"), "0");
  EXPECT_EQ(of_type("double", "0.1"), "0.1");
  const auto fails = [&](const std::string& feed, const char* text) {
    EXPECT_THAT(api->Call("run", Request({kX, kY}, ",\"feeds\":[" + feed + "]")).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  fails(R"({"npy":""})", "expected \"name\", a text");
  fails(R"({"name":"x","npy":"AAAA"})", "feed 'x': ");
  fails(R"({"name":"x","npy":"?"})", "a file in base64");
  fails(R"({"name":"x","type":"floot"})", "'floot' is not a type");
  fails(R"({"name":"x","type":"float","shape":[-1],"random":1})", "a list of sizes");
  fails(R"({"name":"x","type":"float","shape":[1e9],"random":1})", "at most 16777216");
  fails(R"({"name":"x","type":"float","shape":[1e15,1e15],"random":1})", "feed 'x': ");
  fails(R"({"name":"x","type":"float","shape":[3],"values":"1 2"})", "expected 3 numbers");
  fails(R"({"name":"x","type":"float","shape":[3],"values":"1 b"})", "'b' is not a number");
  fails(R"({"name":"x","type":"float","shape":[3]})", "\"random\", a seed");
  EXPECT_THAT(api->Call("run", Request({kX, kY}, R"(,"feeds":[{"name":"none","type":"float",
                                                 "shape":[1],"random":1}])"))
                  .status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("feed 'none'")));
}

TEST_F(EditTest, LimitsTimeAndMemoryOfRuns) {
  memory_limit_ = 1 << 20;
  const std::vector<std::string> graph = {
      R"(name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
         value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 1000000 } } })",
      R"(name: "v" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value"
         value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } })",
      R"(name: "f" op: "Fill" input: "dims" input: "v" attr { key: "T" value { type: DT_FLOAT } })"};
  EXPECT_THAT(Open("")->Call("run", Request(graph)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
  const std::string feed = R"({"name":"x","type":"float","shape":[200000],"random":1})";
  const std::string feeds = absl::StrCat(",\"feeds\":[", feed, ",", feed, "]");
  EXPECT_THAT(Open("")->Call("run", Request({kX, kY}, feeds)).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the feeds have more than 1048576 bytes")));
  memory_limit_ = 0;
  EXPECT_THAT(Open("")->Call("run", Request(graph)), IsOk());
  timeout_ = 1e-9;
  EXPECT_THAT(Open("")->Call("run", Request(graph)).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("")));
  timeout_ = 0;
  const std::unique_ptr<EditApi> api = Open("");
  api->Stop();
  EXPECT_FALSE(api->Call("run", Request(graph)).ok());
}

TEST_F(EditTest, ReportsOnlyTheNodesOfTheGraph) {
  // The node has the name of a node that the report adds.
  const absl::StatusOr<std::string> run = Open("")->Call(
      "run",
      Request(
          {absl::StrReplaceAll(kX, {{"\"x\"", "\"gradflow_report_0\""}}),
           absl::StrReplaceAll(kY, {{"\"x\"", "\"gradflow_report_0\""}})},
          R"(,"feeds":[{"name":"gradflow_report_0","type":"float","shape":[2],"values":"2 3"}])"));
  EXPECT_EQ(FirstValues(run), "4 9");
  EXPECT_THAT(*run, AllOf(HasSubstr("\"labels\":[]"), HasSubstr("{\"n\":0,"),
                          HasSubstr("{\"n\":1,"), Not(HasSubstr("{\"n\":2,"))));
}

TEST_F(EditTest, CancelsARun) {
  std::vector<std::string> graph = {
      R"(name: "dims" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value"
         value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 100000 } } })",
      R"(name: "v" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value"
         value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 3 } } })",
      R"(name: "n0" op: "Fill" input: "dims" input: "v" attr { key: "T" value { type: DT_FLOAT } })"};
  // The run would not end in a reasonable time.
  for (int i = 0; i < 1000; ++i) {
    graph.push_back(absl::StrCat("name: \"n", i + 1, "\" op: \"Igamma\" input: \"v\" input: \"n", i,
                                 "\" attr { key: \"T\" value { type: DT_FLOAT } }"));
  }
  const std::unique_ptr<EditApi> api = Open("");
  std::atomic<bool> is_done{false};
  absl::Status status;
  std::thread run([&] {
    status = api->Call("run", Request(graph)).status();
    is_done = true;
  });
  // Cancelling has no effect until the run begins.
  while (!is_done) {
    EXPECT_EQ(*api->Call("cancel", "{}"), "{}");
    std::this_thread::yield();
  }
  run.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  // The next run is not cancelled.
  EXPECT_THAT(api->Call("run", Request({graph[0]})), IsOk());
}

// Returns a binary graph with unknown fields in a node, in an attribute and after the nodes. Its
// attributes are in an order that a map does not produce.
std::string StrangeGraph() {
  const auto field = [](char number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const auto attr = [&](const std::string& name, const std::string& value) {
    return field(5, field(1, name) + field(2, value));
  };
  const std::string type("\x30\x01", 2);  // type: DT_FLOAT
  const std::string x = field(1, "x") + field(2, "Placeholder") + attr("shape", field(7, "")) +
                        attr("dtype", type) + field(15, "unknown");
  const std::string y = attr("T", type + field(15, "new")) + field(3, "x") + field(2, "Square") +
                        field(1, "y") + field(15, "kept");
  return field(1, x) + field(1, y) + field(15, "behind");
}

TEST_F(EditTest, SavesUntouchedNodesByteForByte) {
  const std::string bytes = StrangeGraph();
  WriteFile(File("g.pb"), bytes);
  const std::unique_ptr<EditApi> api = Open("g.pb");
  const auto save = [&](const std::vector<std::string>& nodes, const std::string& file = "g.pb") {
    const absl::StatusOr<std::string> result =
        api->Call("save", Request(nodes, absl::StrCat(",\"file\":", JsonText(file))));
    EXPECT_THAT(result.status(), IsOk());
    return ReadFile(File(file));
  };
  EXPECT_EQ(save({"0", "1"}), bytes);
  // A changed node keeps unknown fields, including the fields in its attribute.
  const std::string changed =
      save({"0", R"({"t":"name: \"z\" op: \"Square\" input: \"x\"","b":1,"k":["T"]})"});
  const size_t size_of_x = 2 + static_cast<unsigned char>(bytes[1]);
  EXPECT_EQ(changed.substr(0, size_of_x), bytes.substr(0, size_of_x));
  EXPECT_THAT(changed, AllOf(HasSubstr("unknown"), HasSubstr("new"), HasSubstr("kept"),
                             HasSubstr("behind")));
  const absl::StatusOr<GraphDef> read = ParseGraphDef(changed);
  GRADFLOW_ASSERT_OK(read.status());
  EXPECT_EQ(read->node(1).name(), "z");
  // Nodes are added, removed and reordered.
  EXPECT_EQ(ParseGraphDef(save({kX}))->node_size(), 1);
  EXPECT_EQ(ParseGraphDef(save({"1", kX}))->node(0).name(), "y");
  EXPECT_THAT(save({}), HasSubstr("behind"));
  // The text format can also be read by a program.
  EXPECT_THAT(save({"0", "1"}, "g.pbtxt"), HasSubstr("op: \"Square\""));
}

TEST_F(EditTest, SavesUntouchedTextByteForByte) {
  const std::string text =
      "# A graph, in its author's own way.\n"
      "versions { producer: 27 }\n"
      "node { name: 'a}' op: 'Odd' # braces } in comments {\n }\n\n"
      "node:<name:\"b\" op:\"Odd\"\n   input : 'a}' >\n"
      "node { name: \"c\" op: \"Odd\" }\n"
      "# The end.\n";
  WriteFile(File("g.pbtxt"), text);
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  const auto save = [&](const std::vector<std::string>& nodes) {
    const absl::StatusOr<std::string> result =
        api->Call("save", Request(nodes, R"(,"file":"g.pbtxt")"));
    EXPECT_THAT(result.status(), IsOk());
    return ReadFile(File("g.pbtxt"));
  };
  EXPECT_EQ(save({"0", "1", "2"}), text);
  const std::string without = save({"0", "2"});
  EXPECT_THAT(without, AllOf(HasSubstr("# braces } in comments {\n }"), Not(HasSubstr("input")),
                             HasSubstr("# A graph"), HasSubstr("# The end.\n")));
  const std::string more = save({"0", "1", R"(name: "new" op: "Odd")", "2"});
  EXPECT_THAT(more, AllOf(HasSubstr("node:<name:\"b\" op:\"Odd\"\n   input : 'a}' >"),
                          HasSubstr("name: \"new\"")));
  EXPECT_EQ(ParseGraphDefText(more)->node_size(), 4);
}

TEST_F(EditTest, KeepsFieldsThatAreNotNodes) {
  const std::string text =
      "node { name: 'a' op: 'NoOp' }\n"
      "version: 21\n"
      "versions { producer: 22 min_consumer: 1 bad_consumers: 7 }\n"
      "library { gradient { function_name: 'f' gradient_func: 'g' } }\n"
      "debug_info { files: 'a.py' }\n";
  WriteFile(File("g.pbtxt"), text);
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  for (const char* nodes : {"0", "name: \"b\" op: \"NoOp\""}) {
    for (const char* name : {"g.pbtxt", "g.pb"}) {
      GRADFLOW_EXPECT_OK(
          api->Call("save", Request({nodes}, absl::StrCat(",\"file\":\"", name, "\""))));
      GraphDef saved = *ReadGraphDef(File(name));
      GraphDef before = *ParseGraphDefText(text);
      saved.clear_node();
      before.clear_node();
      EXPECT_EQ(GraphDefToText(saved), GraphDefToText(before)) << name;
    }
  }
}

TEST_F(EditTest, SavesCommentsBetweenNodes) {
  const std::string text =
      "node { name: 'a' op: 'Odd' }node { name: 'b' op: 'Odd' }  # b is odd.\n"
      "# Odder.\n  node { name: 'c'\n op: 'Odd' }\n";
  WriteFile(File("g.pbtxt"), text);
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  const auto save = [&](const std::vector<std::string>& nodes) {
    EXPECT_THAT(api->Call("save", Request(nodes, R"(,"file":"g.pbtxt")")).status(), IsOk());
    return ReadFile(File("g.pbtxt"));
  };
  EXPECT_EQ(save({"0", "1", "2"}), text);
  // A comment belongs to the node that follows it.
  EXPECT_EQ(save({"0", "1"}), "node { name: 'a' op: 'Odd' }node { name: 'b' op: 'Odd' }\n");
  EXPECT_EQ(save({"2", "0"}),
            "  # b is odd.\n# Odder.\n  node { name: 'c'\n op: 'Odd' }\n"
            "node { name: 'a' op: 'Odd' }\n");
  EXPECT_THAT(save({"0", R"(name: "new" op: "Odd")", "1", "2"}),
              AllOf(HasSubstr("# Odder.\n  node { name: 'c'\n op: 'Odd' }"),
                    HasSubstr("\n  op: \"Odd\"\n}node { name: 'b' op: 'Odd' }")));
  // The file is rewritten, because there is another field between the nodes.
  WriteFile(File("g.pbtxt"),
            "node { name: 'a' op: 'Odd' } versions { producer: 27 } "
            "node { name: 'b' op: 'Odd' }");
  const std::unique_ptr<EditApi> other = Open("g.pbtxt");
  EXPECT_THAT(other->Call("save", Request({"0"}, R"(,"file":"g.pbtxt")")).status(), IsOk());
  EXPECT_THAT(ReadFile(File("g.pbtxt")),
              AllOf(HasSubstr("producer: 27"), HasSubstr("name: \"a\""), Not(HasSubstr("'b'"))));
}

TEST_F(EditTest, ReloadedPageShowsTheSavedFile) {
  const auto graph = [](const std::string& name) {
    return absl::StrCat("node { name: '", name, "' op: 'NoOp' }\n");
  };
  WriteFile(File("g.pbtxt"), graph("first"));
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  EXPECT_THAT(*api->PageData(true), AllOf(HasSubstr("\"base\":0"), HasSubstr("\"n\":\"first\"")));
  GRADFLOW_ASSERT_OK(
      api->Call("save", Request({"0", R"(name: "second" op: "NoOp")"}, R"(,"file":"g.pbtxt")")));
  EXPECT_THAT(*api->PageData(true), AllOf(HasSubstr("\"base\":1"), HasSubstr("\"n\":\"second\"")));
  // The page keeps its base number while the file is unchanged.
  EXPECT_THAT(*api->PageData(true), HasSubstr("\"base\":1"));
  // The new page refers to the nodes of the current file, and the old page to the nodes of the old
  // file.
  const std::string more = R"(,"file":"g.pbtxt")";
  const std::string second = more + R"(,"page":2)";
  GRADFLOW_ASSERT_OK(api->Call("save", Request({"1"}, second, 1)));
  EXPECT_EQ(ReadGraphDef(File("g.pbtxt"))->node(0).name(), "second");
  EXPECT_THAT(api->Call("save", Request({"1"}, more, 0)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("from 0 to 0")));
  // The old page does not overwrite the file that the other page saved, unless the user insists.
  EXPECT_THAT(api->Call("save", Request({"0"}, more, 0)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'g.pbtxt' has changed since the page saved it; save again")));
  EXPECT_EQ(ReadGraphDef(File("g.pbtxt"))->node(0).name(), "second");
  GRADFLOW_ASSERT_OK(api->Call("save", Request({"0"}, R"(,"file":"other.pbtxt")", 0)));
  GRADFLOW_ASSERT_OK(api->Call("save", Request({"0"}, more + R"(,"overwrite":true)", 0)));
  EXPECT_EQ(ReadGraphDef(File("g.pbtxt"))->node(0).name(), "first");
  GRADFLOW_ASSERT_OK(api->Call("save", Request({"0", R"(name: "x" op: "NoOp")"}, more, 0)));
  GRADFLOW_ASSERT_OK(api->Call("save", Request({"0"}, more, 0)));
  EXPECT_THAT(api->Call("save", Request({"0"}, R"(,"file":"g.pbtxt","page":-1)")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"page\", the number")));
  // The server keeps a few old contents.
  for (int i = 0; i < 8; ++i) {
    WriteFile(File("g.pbtxt"), graph(absl::StrCat("n", i)));
    EXPECT_THAT(*api->PageData(true), HasSubstr(absl::StrCat("\"base\":", i + 2)));
  }
  EXPECT_THAT(api->Call("save", Request({"0"}, more, 0)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("load the page again")));
  EXPECT_THAT(api->Call("check", Request({"0"}, "", 9)), IsOk());
  WriteFile(File("g.pbtxt"), "node {");
  EXPECT_THAT(api->PageData(true).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("g.pbtxt")));
}

TEST_F(EditTest, PagesOfTheSameContentDoNotOverwriteEachOther) {
  WriteFile(File("g.pbtxt"), "node { name: 'first' op: 'NoOp' }\n");
  const std::unique_ptr<EditApi> api = Open("g.pbtxt");
  EXPECT_THAT(*api->Call("page", "{}"), HasSubstr("\"base\":0,\"page\":1"));
  EXPECT_THAT(*api->Call("page", "{}"), HasSubstr("\"base\":0,\"page\":2"));
  const auto save = [&](int page, const char* name, const std::string& more = "") {
    const std::string node = absl::StrCat("name: \"", name, "\" op: \"NoOp\"");
    return api
        ->Call("save", Request({node}, absl::StrCat(",\"file\":\"g.pbtxt\",\"page\":", page, more)))
        .status();
  };
  const auto is_refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                   HasSubstr("save again to overwrite it, or under another name"));
  const auto name = [&] { return ReadGraphDef(File("g.pbtxt"))->node(0).name(); };
  EXPECT_THAT(save(1, "a"), IsOk());
  EXPECT_THAT(save(2, "b"), is_refused);
  EXPECT_EQ(name(), "a");
  EXPECT_THAT(save(1, "c"), IsOk());
  EXPECT_THAT(save(2, "b", R"(,"overwrite":true)"), IsOk());
  EXPECT_EQ(name(), "b");
  // The first page is outdated now.
  EXPECT_THAT(save(1, "d"), is_refused);
  EXPECT_THAT(save(2, "e"), IsOk());
  // The save is also refused if another program restores the original content.
  WriteFile(File("g.pbtxt"), "node { name: 'first' op: 'NoOp' }\n");
  EXPECT_THAT(save(2, "f"), is_refused);
  EXPECT_EQ(name(), "first");
  // If the file was deleted, it is written again.
  std::filesystem::remove(File("g.pbtxt"));
  EXPECT_THAT(save(2, "g"), IsOk());
}

TEST_F(EditTest, OtherFilesAreNotOverwritten) {
  WriteFile(File("g.pbtxt"), "");
  WriteFile(File("other.pbtxt"), "node { name: 'theirs' op: 'NoOp' }\n");
  std::unique_ptr<EditApi> api = Open("g.pbtxt");
  const auto save = [&](const std::string& file, const std::string& more = "") {
    return api
        ->Call("save", Request({R"(name: "mine" op: "NoOp")"},
                               absl::StrCat(",\"file\":\"", file, "\",\"page\":1", more)))
        .status();
  };
  const auto name = [&] { return ReadGraphDef(File("other.pbtxt"))->node(0).name(); };
  EXPECT_THAT(save("other.pbtxt"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'other.pbtxt' exists; save again to overwrite it")));
  EXPECT_EQ(name(), "theirs");
  EXPECT_THAT(save("other.pbtxt", R"(,"overwrite":true)"), IsOk());
  EXPECT_EQ(name(), "mine");
  EXPECT_THAT(save("other.pbtxt"), IsOk());
  // A new file, and a file that another editor holds.
  EXPECT_THAT(save("new.pb"), IsOk());
  EXPECT_THAT(save("new.pb"), IsOk());
  WriteFile(File("held.pbtxt"), "node { name: 'held' op: 'NoOp' }\n");
  {
    const absl::StatusOr<EditLock> lock = EditLock::Acquire(File("held.pbtxt"));
    GRADFLOW_ASSERT_OK(lock.status());
    GRADFLOW_ASSERT_OK(lock->Announce("http://127.0.0.1:1234"));
    EXPECT_THAT(save("held.pbtxt", R"(,"overwrite":true)"),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("is being edited at http://127.0.0.1:1234")));
    EXPECT_THAT(ReadFile(File("held.pbtxt")), HasSubstr("held"));
  }
  // Until it ends, an editor holds the files that it saved.
  api->SetAddress("http://127.0.0.1:4321");
  EXPECT_THAT(save("held.pbtxt", R"(,"overwrite":true)"), IsOk());
  EXPECT_THAT(EditLock::Acquire(File("held.pbtxt")).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("http://127.0.0.1:4321")));
  api = nullptr;
  EXPECT_THAT(EditLock::Acquire(File("held.pbtxt")).status(), IsOk());
  // An editor without a file name saves in the current folder.
  const std::filesystem::path cwd = std::filesystem::current_path();
  std::filesystem::create_directory(File("here"));
  std::filesystem::current_path(File("here"));
  WriteFile(File("here/graph.pbtxt"), "node { name: 'theirs' op: 'NoOp' }\n");
  api = Open("");
  EXPECT_THAT(save("graph.pbtxt"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'graph.pbtxt' exists")));
  EXPECT_THAT(ReadFile(File("here/graph.pbtxt")), HasSubstr("theirs"));
  EXPECT_THAT(save("graph.pbtxt", R"(,"overwrite":true)"), IsOk());
  std::filesystem::current_path(cwd);
}

TEST_F(EditTest, RunsWriteFilesOnlyIfAllowed) {
  const auto text = [](const std::string& name, const std::string& value) {
    return absl::StrCat("name: \"", name, "\" op: \"Const\" attr { key: \"dtype\" value { type: ",
                        "DT_STRING } } attr { key: \"value\" value { tensor { dtype: DT_STRING ",
                        "tensor_shape { } string_val: \"", value, "\" } } }");
  };
  const std::vector<std::string> graph = {
      text("name", File("out.txt")),
      text("contents", "written"),
      R"(name: "write" op: "WriteFile" input: "name" input: "contents")",
      R"(name: "after" op: "Identity" input: "contents" input: "^write"
         attr { key: "T" value { type: DT_STRING } })",
      kX,
      kY};
  const std::string feed = R"(,"feeds":[{"name":"x","type":"float","shape":[1],"values":"2"}])";
  const std::unique_ptr<EditApi> api = Open("");
  const auto is_refused =
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("node 'write' (WriteFile): "), HasSubstr("--allow-write")));
  for (const char* until : {"", R"(,"until":["write"])", R"(,"until":["after"])"}) {
    EXPECT_THAT(api->Call("run", Request(graph, feed + until)).status(), is_refused) << until;
  }
  EXPECT_FALSE(std::filesystem::exists(File("out.txt")));
  // Other parts of the graph run, and so do nodes after a fed tensor.
  EXPECT_THAT(api->Call("run", Request(graph, feed + R"(,"until":["y"])")), IsOk());
  std::vector<std::string> more = graph;
  more.push_back(absl::StrReplaceAll(kX, {{"\"x\"", "\"p\" input: \"^write\""}}));
  more.push_back(absl::StrReplaceAll(kY, {{"\"y\"", "\"q\""}, {"\"x\"", "\"p\""}}));
  const std::string fed = absl::StrReplaceAll(feed, {{"\"x\"", "\"p\""}});
  EXPECT_THAT(api->Call("run", Request(more, fed + R"(,"until":["q"])")), IsOk());
  EXPECT_THAT(api->Call("run", Request(more, fed + R"(,"until":["p"])")), IsOk());
  EXPECT_THAT(api->Call("run", Request(more, feed + R"(,"until":["q"])")).status(), is_refused);
  EditOptions options;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(options.file_access, FileAccess::Below({}, {folder()}));
  const std::unique_ptr<EditApi> allowed = *EditApi::Make(options);
  EXPECT_THAT(allowed->Call("run", Request(graph, feed + R"(,"until":["after"])")), IsOk());
  EXPECT_EQ(ReadFile(File("out.txt")), "written");
}

TEST_F(EditTest, DecodesImages) {
  const std::unique_ptr<EditApi> api = Open("");
  // Two rows of three RGB pixels.
  const uint8_t pixels[] = {0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  internal::ImageSize size;
  size.rows = 2;
  size.columns = 3;
  size.channels = 3;
  std::string bytes;
  GRADFLOW_ASSERT_OK(internal::EncodePng(pixels, size, 8, -1, &bytes));
  const std::string png = absl::Base64Escape(bytes);
  const auto run = [&](const std::string& type, const std::string& more) {
    const std::string x =
        absl::StrReplaceAll(kX, {{"DT_FLOAT", absl::StrCat("DT_", absl::AsciiStrToUpper(type))}});
    return api->Call("run", Request({x}, absl::StrCat(R"(,"feeds":[{"name":"x","type":")", type,
                                                      R"(","image":")", png, "\"", more, "}]")));
  };
  const std::pair<const char*, const char*> types[] = {
      {"uint8", "[[0 51 102][153 204 255][1 2 3]]["},
      {"int32", "[[0 51 102][153 204 255][1 2 3]]["},
      {"uint16", "[[0 13107 26214][39321 52428 65535][257 514 771]]["},
      {"float", "[[0 0.2 0.4][0.6 0.8 1][0.0039215684 "},
      {"half", "[[0 0.199951 0.399902][0.600098 0.799805 1][0.00392151 "},
      {"double", "[[0 0.2"}};
  for (const auto& [type, first] : types) {
    SCOPED_TRACE(type);
    const absl::StatusOr<std::string> result = run(type, "");
    EXPECT_THAT(FirstValues(result), StartsWith(first));
    EXPECT_THAT(*result, HasSubstr("\"s\":[2,3,3]"));
  }
  EXPECT_THAT(*run("uint8", R"(,"batch":true)"), HasSubstr("\"s\":[1,2,3,3]"));
  EXPECT_THAT(*run("uint8", R"(,"channels":1)"), HasSubstr("\"s\":[2,3,1]"));
  EXPECT_THAT(run("uint8", R"(,"channels":7)").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 0, 1, 3 or 4")));
  EXPECT_THAT(run("string", "").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("an image has numbers")));

  EXPECT_THAT(run("uint8", R"(,"channels":1e300)").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("channels is 1e+300, expected 0, 1, 3 or 4")));

  // Makes a constant of the image.
  const absl::StatusOr<std::string> value =
      api->Call("image", absl::StrCat(R"({"type":"uint8","image":")", png, "\"}"));
  GRADFLOW_ASSERT_OK(value.status());
  EXPECT_THAT(*value, AllOf(HasSubstr("{\"value\":\"tensor { dtype: DT_UINT8"),
                            HasSubstr("tensor_content: ")));
  const auto fails = [&](const std::string& request, absl::StatusCode code, const char* text) {
    EXPECT_THAT(api->Call("image", request).status(), StatusIs(code, HasSubstr(text))) << request;
  };
  fails(R"({"type":"uint8","image":"AAAA"})", absl::StatusCode::kInvalidArgument,
        "is not an image");
  fails(R"({"type":"uint8","image":"?"})", absl::StatusCode::kInvalidArgument, "base64");
  fails(R"({"type":"uint8"})", absl::StatusCode::kInvalidArgument, "contents is empty");
  fails(R"({"type":"t","image":""})", absl::StatusCode::kInvalidArgument, "'t' is not a type");
  // An image with more elements than a constant may have, and an image that does not fit into
  // memory.
  const std::string black(600 * 600 * 3, '\0');
  size.rows = size.columns = 600;
  bytes.clear();
  GRADFLOW_ASSERT_OK(internal::EncodePng(black.data(), size, 8, -1, &bytes));
  const std::string large =
      absl::StrCat(R"({"type":"uint8","image":")", absl::Base64Escape(bytes), "\"}");
  fails(large, absl::StatusCode::kInvalidArgument, "a constant has at most 1048576; feed it");
  memory_limit_ = 1 << 20;
  EXPECT_THAT(Open("")->Call("image", large).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
}

TEST_F(EditTest, SavesOnlyNextToTheGraph) {
  const std::unique_ptr<EditApi> api = Open("new.pb");
  for (const char* file :
       {"../x.pb", "/tmp/x.pb", "x.txt", ".pb", "", ".hidden.pb", "x.pb\\u0000"}) {
    EXPECT_THAT(
        api->Call("save", Request({kX}, absl::StrCat(",\"file\":\"", file, "\""))).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("must be the name of a file")))
        << file;
  }
  EXPECT_THAT(api->Call("save", Request({kX}, R"(,"file":"new.pb")")), IsOk());
  EXPECT_EQ(ReadGraphDef(File("new.pb"))->node_size(), 1);
}

TEST_F(EditTest, Differentiates) {
  const std::unique_ptr<EditApi> api = Open("");
  const absl::StatusOr<std::string> result =
      api->Call("gradients", Request({kX, kY}, R"(,"of":"y","wrt":["x"])"));
  GRADFLOW_ASSERT_OK(result.status());
  EXPECT_THAT(*result,
              AllOf(HasSubstr(R"({"nodes":[{"n":"gradients/)"),
                    HasSubstr(R"("gradients":["gradients/)"), HasSubstr("\"op\":\"Mul\"")));
  EXPECT_THAT(api->Call("gradients", Request({kX, kY}, R"(,"of":"q","wrt":["x"])")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'q' is not in the graph")));
  EXPECT_THAT(api->Call("gradients", Request({kX, kY}, R"(,"of":"y","wrt":[])")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"wrt\"")));
}

TEST_F(EditTest, WritesPrograms) {
  const std::unique_ptr<EditApi> api = Open("");
  EXPECT_THAT(*api->Call("cpp", Request({kX, kY})),
              HasSubstr(R"(ops::Square(root.WithOpName(\"y\"), x))"));
  GRADFLOW_ASSERT_OK(
      WriteGraphDef(File("g.pbtxt"), *ParseGraphDefText(absl::StrCat("node {", kX, "}"))));
  EXPECT_EQ(Gradflow({"convert", File("g.pbtxt"), File("g.cc")}).exit_code, 0);
  EXPECT_THAT(ReadFile(File("g.cc")),
              AllOf(HasSubstr("// Builds the graph 'g.pbtxt'"),
                    HasSubstr("ops::Placeholder(root.WithOpName(\"x\"), DT_FLOAT);")));
  WriteFile(File("f.pbtxt"), "library { function { signature { name: 'f' } } }");
  EXPECT_EQ(Gradflow({"convert", File("f.pbtxt"), File("f.cc")}).exit_code, 0);
  EXPECT_THAT(ReadFile(File("f.cc")),
              AllOf(HasSubstr("R\"graph(library {"), HasSubstr("AddFunctions(root.graph())")));
}

TEST_F(EditTest, ProgramsContainBytesOfTypesWithoutLiterals) {
  const Scope root = Scope::NewRootScope();
  ops::Const(root.WithOpName("h"), {half(1.0f), half(2.0f)});
  ops::Const(root.WithOpName("s"), {"a", "b"});
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string program,
                                tools::CppProgram(root.graph()->def(), "g", GraphLimits()));
  EXPECT_THAT(program, HasSubstr("Constant(root.WithOpName(\"h\"), DT_HALF, TensorShape({2}),\n"
                                 "            std::string(\"\\000\\074\\000\\100\", 4));"));
  EXPECT_THAT(program, HasSubstr("OpBuilder(root.WithOpName(\"s\"), \"Const\")"));
}

// The description of the function contains the end of the raw string literal.
TEST_F(EditTest, ProgramsAvoidTheEndsOfRawStringsInFunctions) {
  GraphDef graph;
  OpDef* const signature = graph.mutable_library()->add_function()->mutable_signature();
  signature->set_name("f");
  signature->set_description(R"x()graph" )graph_")x");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string program,
                                tools::CppProgram(graph, "g", GraphLimits()));
  // The text format escapes quotation marks.
  EXPECT_THAT(program, HasSubstr("R\"graph(library"));
  signature->set_description(std::string(size_t{65} << 20, 'a'));
  EXPECT_THAT(tools::CppProgram(graph, "g", GraphLimits()).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the functions have")));
}

TEST_F(EditTest, PagesHaveTheOtherFieldsOfNodes) {
  NodeDef node;
  node.set_name("n");
  node.set_op("NoOp");
  EXPECT_EQ(tools::EditNodeJson(node, 100), R"({"n":"n","op":"NoOp","d":"","i":[],"a":{}})");
  node.mutable_experimental_debug_info()->add_original_node_names("o");
  EXPECT_THAT(tools::EditNodeJson(node, 100),
              HasSubstr(R"("m":"experimental_debug_info {\n  original_node_names: \"o\"\n}\n")"));
  NodeDef nested = node;
  nested.mutable_experimental_debug_info()
      ->GetReflection()
      ->MutableUnknownFields(nested.mutable_experimental_debug_info())
      ->AddVarint(77, 1);
  EXPECT_THAT(tools::EditNodeJson(nested, 100), HasSubstr(R"("m":null)"));
  NodeDef large = node;
  large.mutable_experimental_debug_info()->add_original_node_names(std::string(2000, 'o'));
  EXPECT_THAT(tools::EditNodeJson(large, 100), HasSubstr(R"("m":null)"));
  // The limit is 1024 bytes, including 6 bytes of tags and lengths.
  for (const int size : {1018, 1019}) {
    large.clear_experimental_debug_info();
    large.mutable_experimental_debug_info()->add_original_node_names(std::string(size, 'o'));
    EXPECT_THAT(tools::EditNodeJson(large, 100),
                HasSubstr(size == 1018 ? "\"m\":\"experimental" : "\"m\":null"));
  }
  node.GetReflection()->MutableUnknownFields(&node)->AddVarint(77, 1);
  EXPECT_THAT(tools::EditNodeJson(node, 100), HasSubstr(R"("m":null)"));
}

TEST_F(EditTest, PagesOmitAttributesOverTheLimit) {
  NodeDef node;
  node.set_name("n");
  node.set_op("NoOp");
  AttrValue& text = (*node.mutable_attr())["text"];
  text.set_s("abc");
  const size_t bytes = text.ByteSizeLong();
  EXPECT_THAT(tools::EditNodeJson(node, bytes), HasSubstr(R"("a":{"text":"s: \"abc\""})"));
  EXPECT_THAT(tools::EditNodeJson(node, bytes - 1), HasSubstr(R"("a":{"text":null})"));
  (*node.mutable_attr())["b"].set_b(true);
  (*node.mutable_attr())["i"].set_i(3);
  EXPECT_THAT(tools::EditNodeJson(node, bytes),
              HasSubstr(R"("a":{"b":"b: true","i":"i: 3","text":"s: \"abc\""})"));
}

TEST_F(EditTest, ProgramsDoNotUseClassesOfPlugins) {
  GlobalRegistry().Op("OpOfAPlugin").Group("plugin_ops").Output("y: float").Doc("An op.");
  GRADFLOW_ASSERT_OK(GlobalRegistry().status());
  EXPECT_THAT(*Open("")->Call("cpp", Request({R"(name: "p" op: "OpOfAPlugin")"})),
              AllOf(HasSubstr(R"(OpBuilder(root.WithOpName(\"p\"), \"OpOfAPlugin\"))"),
                    Not(HasSubstr("plugin_ops"))));
}

TEST_F(EditTest, WritesAPageThatNeedsNoServer) {
  const ProcessResult result = Gradflow({"edit", "-o", File("page.html")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(ReadFile(File("page.html")), Not(HasSubstr("connect-src")));
  ExpectFailure(Gradflow({"edit", "-o", File("page.txt")}), "INVALID_ARGUMENT",
                HasSubstr("must end in .html"));
  ExpectFailure(Gradflow({"edit", File("graph.txt")}), "INVALID_ARGUMENT",
                HasSubstr("must end in .pb or .pbtxt"));
  WriteFile(File("bad.pb"), "\xff");
  ExpectFailure(Gradflow({"edit", File("bad.pb")}), "INVALID_ARGUMENT", HasSubstr("bad.pb"));
}

TEST_F(EditTest, LetsOneProcessEditAGraph) {
  WriteFile(File("g.pbtxt"), "");
  std::filesystem::create_directory(File("run"));
  const char* const old = std::getenv("XDG_RUNTIME_DIR");
  const std::string before = old == nullptr ? "" : old;
  setenv("XDG_RUNTIME_DIR", File("run").c_str(), 1);
  {
    const absl::StatusOr<EditLock> lock = EditLock::Acquire(File("g.pbtxt"));
    GRADFLOW_ASSERT_OK(lock.status());
    EXPECT_THAT(EditLock::Acquire(File("g.pbtxt")).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, EndsWith("is being edited")));
    GRADFLOW_ASSERT_OK(lock->Announce("http://127.0.0.1:1234"));
    // Another path to the same file.
    ExpectFailure(Gradflow({"edit", File("run/../g.pbtxt")}), "FAILED_PRECONDITION",
                  AllOf(HasSubstr("is being edited at http://127.0.0.1:1234 (process "),
                        HasSubstr(absl::StrCat(getpid(), ")"))));
    // Other users cannot read the address.
    for (const auto& file : std::filesystem::directory_iterator(File("run/gradflow"))) {
      EXPECT_EQ(static_cast<int>(file.status().permissions()), 0600);
    }
    // Other graphs, new graphs, and pages without a server are not affected.
    EXPECT_THAT(EditLock::Acquire(File("other.pb")).status(), IsOk());
    EXPECT_THAT(EditLock::Acquire("").status(), IsOk());
    EXPECT_EQ(Gradflow({"edit", File("g.pbtxt"), "-o", File("g.html")}).exit_code, 0);
  }
  EXPECT_THAT(EditLock::Acquire(File("g.pbtxt")).status(), IsOk());
  {
    // A relative name refers to the same file before and after the file exists.
    const std::filesystem::path cwd = std::filesystem::current_path();
    std::filesystem::current_path(File("run"));
    const absl::StatusOr<EditLock> lock = EditLock::Acquire("new.pb");
    std::filesystem::current_path(cwd);
    EXPECT_THAT(EditLock::Acquire(File("run/new.pb")).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    WriteFile(File("run/new.pb"), "");
    EXPECT_THAT(EditLock::Acquire(File("run/new.pb")).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  // A folder that is writable for others is not used.
  chmod(File("run/gradflow").c_str(), 0777);
  const absl::StatusOr<EditLock> open = EditLock::Acquire(File("g.pbtxt"));
  EXPECT_THAT(open.status(), IsOk());
  EXPECT_THAT(open->Announce("http://127.0.0.1:1"), IsOk());
  EXPECT_THAT(EditLock::Acquire(File("g.pbtxt")).status(), IsOk());
  if (old == nullptr) {
    unsetenv("XDG_RUNTIME_DIR");
  } else {
    setenv("XDG_RUNTIME_DIR", before.c_str(), 1);
  }
}

// ---- Functions ----

// Two functions, with comments and fields between and after them.
constexpr char kFunctions[] = R"(node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } } }
library {
  # The first one.
  function {
    signature { name: "f" description: 'One.'
      input_arg { name: "a" type: DT_FLOAT } output_arg { name: "n" type: DT_FLOAT }
      control_output: "done" }
    # Negates.
    node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } }
    node_def { name: "split" op: "Split" input: "axis:output:0" input: "n:y:0"  # in two
      attr { key: "num_split" value { i: 2 } } attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "axis" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
      attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }
    node_def { name: "sum" op: "AddV2" input: "split:output:1" input: "a" input: "^n"
      attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "n" value: "sum:z:0" }
    control_ret { key: "done" value: "n" }
    arg_attr { key: 0 value { attr { key: "_output_shapes" value { list { shape { dim { size: 4 } } } } } } }
  }
  function { signature { name: "g" } node_def { name: "call" op: "f" }  }  # The last one.
  gradient { function_name: "f" gradient_func: "g" }
}
versions { producer: 27 }
)";
// Returns a request that keeps node 0 and has the given functions.
std::string WithFunctions(const std::string& functions, const std::string& more = "") {
  return Request({"0"}, absl::StrCat(",\"functions\":[", functions, "]", more));
}

TEST_F(EditTest, PagesHaveTheBodiesOfFunctions) {
  WriteFile(File("f.pbtxt"), kFunctions);
  const std::string data = *Open("f.pbtxt")->PageData(true);
  // Skips the definitions of the ops.
  const size_t begin = data.find("\"functions\":[{");
  ASSERT_NE(begin, std::string::npos);
  EXPECT_THAT(data.substr(begin),
              AllOf(HasSubstr(R"("functions":[{"h":"signature {\n  name: \"f\")"),
                    HasSubstr(R"("n":"split","op":"Split","d":"","i":["axis:output:0","n:y:0"])"),
                    HasSubstr(R"("library":"gradient {\n  function_name: \"f\")"),
                    HasSubstr(R"("rest":"versions {)"), Not(HasSubstr("node_def"))));
}

TEST_F(EditTest, ChecksTheBodiesOfFunctions) {
  WriteFile(File("f.pbtxt"), kFunctions);
  const std::unique_ptr<EditApi> api = Open("f.pbtxt");
  const std::string result = *api->Call("check", Request({"0"}));
  // The types of the graph, and then of the arguments, nodes, results and control outputs of each
  // function.
  EXPECT_THAT(result, HasSubstr(R"("types":[["float","<unknown>"],
["float","[4]"],
["float","[4]"],
["float","[2]","float","[2]"],
["int32","[]"],
null,
null,
[],
null],)"));
  EXPECT_THAT(result, AllOf(HasSubstr("[5,\"node 'sum' (AddV2): "), HasSubstr("[2]"),
                            HasSubstr("[8,\"node 'call' (f): expected 1 input (a), but found 0\"]"),
                            HasSubstr("[6,\"the producer 'sum' cannot run\"]")));
  // In the changed function, the sum reads the argument twice.
  const std::string changed =
      R"({"f":0,"nodes":[0,{"t":"name: \"sum\" op: \"AddV2\" input: \"a\" input: \"n:y:0\"","b":3,"k":["T"]}]},1)";
  EXPECT_THAT(*api->Call("check", WithFunctions(changed)),
              AllOf(HasSubstr("[\"float\",\"[4]\"],\n[\"float\",\"[4]\"],\n[\"float\",\"[4]\"],\n"
                              "[\"float\",\"[4]\"],\n[],\nnull]"),
                    HasSubstr("\"notes\":[]")));
  // The type of the result differs from its tensor.
  const std::string typed =
      R"({"f":0,"h":"signature { name: \"f\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"a\" type: DT_INT32 } }
         ret { key: \"a\" value: \"a\" }","nodes":[]})";
  EXPECT_THAT(*api->Call("check", WithFunctions(typed)), HasSubstr("[2,\"node 'a_0' (Identity): "));
  // Calls determine some of the types.
  const std::string polymorphic =
      R"({"f":1,"h":"signature { name: \"g\" input_arg { name: \"a\" type_attr: \"T\" } attr { name: \"T\" type: \"type\" } }","nodes":[0]})";
  EXPECT_THAT(*api->Call("check", WithFunctions(polymorphic)),
              HasSubstr("{\"types\":[[\"float\",\"<unknown>\"],\nnull,\nnull],\"problems\":[]"));
}

TEST_F(EditTest, RunsAndDifferentiatesTheBodyOfAFunction) {
  WriteFile(File("f.pbtxt"), kFunctions);
  const std::unique_ptr<EditApi> api = Open("f.pbtxt");
  const std::string feed =
      R"(,"function":0,"feeds":[{"name":"a","type":"float","shape":[4],"values":"1 2 3 4"}])";
  // Node 2 comes after the argument and 'n'.
  EXPECT_THAT(*api->Call("run", Request({"0"}, feed + R"(,"until":["split"])")),
              AllOf(HasSubstr("\"n\":2,\"o\":1,\"t\":\"float\",\"s\":[2]"),
                    HasSubstr("\"first\":\"-3 -4\"")));
  EXPECT_THAT(api->Call("run", Request({"0"}, feed + R"(,"until":["sum"])")).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node 'sum' cannot run")));
  for (const char* number : {"2", "-1", "0.5", "\"f\""}) {
    EXPECT_THAT(api->Call("run", Request({"0"}, absl::StrCat(",\"function\":", number))).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("less than 2")));
  }
  const std::string negated =
      R"({"f":0,"nodes":[0],"h":"signature { name: \"f\" input_arg { name: \"a\" type: DT_FLOAT } }"})";
  const absl::StatusOr<std::string> gradients =
      api->Call("gradients", WithFunctions(negated, R"(,"function":0,"of":"n","wrt":["a"])"));
  GRADFLOW_ASSERT_OK(gradients.status());
  EXPECT_THAT(*gradients,
              AllOf(HasSubstr("\"n\":\"gradients/"), HasSubstr("\"gradients\":[\"gradients/")));
}

TEST_F(EditTest, SavesTheRestOfFunctionsByteForByte) {
  const std::string text = kFunctions;
  const std::string node = R"({"t":"name: \"m\" op: \"Neg\" input: \"a\"","b":0,"k":["T"]})";
  const std::string changed = absl::StrCat("{\"f\":0,\"nodes\":[", node, ",1,2,3]},1");
  WriteFile(File("f.pbtxt"), text);
  const std::unique_ptr<EditApi> api = Open("f.pbtxt");
  const auto save = [&](const std::string& functions, const std::string& file = "f.pbtxt") {
    GRADFLOW_EXPECT_OK(
        api->Call("save", WithFunctions(functions, absl::StrCat(",\"file\":\"", file, "\""))));
    return ReadFile(File(file));
  };
  EXPECT_EQ(save("0,1"), text);
  // Changes one node.
  const size_t begin = text.find("    node_def { name: 'n'");
  const size_t end = text.find("\n    node_def { name: \"split\"");
  const std::string other = save(changed);
  EXPECT_EQ(other.substr(0, begin), text.substr(0, begin));
  EXPECT_THAT(other, EndsWith(text.substr(end)));
  const std::string new_node = other.substr(begin, other.size() - begin - (text.size() - end));
  EXPECT_THAT(new_node,
              AllOf(StartsWith("    node_def {\n      name: \"m\"\n"), EndsWith("\n    }")));
  // A node is removed, a node is added, and another function is removed.
  const std::string fewer =
      save(absl::StrCat(R"({"f":0,"nodes":[0,3,{"t":"name: \"new\" op: \"NoOp\""}]})"));
  EXPECT_THAT(
      fewer,
      AllOf(HasSubstr("# Negates.\n    node_def { name: 'n'"), Not(HasSubstr("Split")),
            Not(HasSubstr("The first of")), Not(HasSubstr("name: \"g\"")),
            HasSubstr("    node_def {\n      name: \"new\"\n      op: \"NoOp\"\n    }\n    ret {"),
            HasSubstr("  # The last one.\n  gradient {")));
  // Saving rewrites the changed part of the header and leaves the rest.
  const std::string header =
      R"("h":"signature { name: \"f\" description: \"One.\" input_arg { name: \"a\" type: DT_FLOAT }
         output_arg { name: \"n\" type: DT_FLOAT } control_output: \"done\" }
         ret { key: \"n\" value: \"n:y:0\" } control_ret { key: \"done\" value: \"n\" }
         arg_attr { key: 0 value { attr { key: \"_output_shapes\" value { list { shape { dim { size: 4 } } } } } } }")";
  const std::string with_header =
      save(absl::StrCat("{\"f\":0,", header, ",\"nodes\":[0,1,2,3]},1"));
  const size_t ret = text.find("\n    ret {");
  const size_t after = text.find("\n    control_ret");
  EXPECT_EQ(with_header.substr(0, ret), text.substr(0, ret));
  EXPECT_THAT(with_header, EndsWith(text.substr(after)));
  EXPECT_THAT(with_header, HasSubstr("value: \"n:y:0\"\n    }\n    control_ret"));
  // Converts to another format and back.
  EXPECT_EQ(ParseGraphDef(save(changed, "f.pb"))->library().function(0).node_def(0).name(), "m");
  // The library has no functions left.
  const std::string none = save("");
  EXPECT_THAT(none, AllOf(StartsWith(text.substr(0, text.find("  # The first one."))),
                          EndsWith(text.substr(text.find("  # The last one.")))));
  EXPECT_EQ(ParseGraphDefText(none)->library().function_size(), 0);
  EXPECT_EQ(ParseGraphDefText(none)->library().gradient_size(), 1);
  for (const std::string& malformed :
       {std::string("2"), std::string("{\"f\":0}"), std::string("{\"nodes\":[]}"),
        std::string(R"({"f":0,"nodes":[4]})"), std::string(R"({"f":0,"h":"odd: 1","nodes":[]})"),
        std::string(R"({"f":0,"h":"} } node { name: \"x\" } library { function {","nodes":[]})"),
        std::string(R"({"f":0,"h":"node_def { }","nodes":[]})"),
        std::string(R"({"f":0,"h":"} gradient { ","nodes":[]})")}) {
    EXPECT_THAT(api->Call("check", WithFunctions(malformed)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << malformed;
  }
}

TEST_F(EditTest, SavesTheRestOfBinaryFunctionsByteForByte) {
  const auto field = [](int number, const std::string& content) {
    return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                        std::string(1, static_cast<char>(content.size())), content);
  };
  // The fields are in an unusual order, and some are unknown.
  const std::string first_node = field(2, "NoOp") + field(1, "one") + field(15, "unknown");
  const std::string second_node = field(2, "NoOp") + field(1, "two");
  const std::string first = field(3, first_node) + field(3, second_node) +
                            field(15, "in function") +
                            field(1, field(1, "f") + field(15, "in signature"));
  const std::string second = field(1, field(1, "g")) + field(3, field(1, "n") + field(2, "NoOp"));
  const std::string bytes =
      field(2, field(1, first) + field(1, second) + field(15, "in library")) + field(15, "behind");
  WriteFile(File("f.pb"), bytes);
  const std::unique_ptr<EditApi> api = Open("f.pb");
  const auto save = [&](const std::string& functions) {
    GRADFLOW_EXPECT_OK(api->Call(
        "save", Request({}, absl::StrCat(",\"functions\":[", functions, "],\"file\":\"f.pb\""))));
    return ReadFile(File("f.pb"));
  };
  EXPECT_EQ(save("0,1"), bytes);
  const std::string renamed =
      save(R"({"f":0,"nodes":[0,{"t":"name: \"other\" op: \"NoOp\"","b":1,"k":[]}]},1)");
  EXPECT_THAT(renamed, AllOf(HasSubstr(field(3, first_node)), HasSubstr("other"),
                             HasSubstr(field(15, "in function") +
                                       field(1, field(1, "f") + field(15, "in signature"))),
                             HasSubstr(field(1, second)), HasSubstr(field(15, "in library")),
                             EndsWith(field(15, "behind"))));
  EXPECT_EQ(renamed.size(), bytes.size() + 2);
  // A changed signature keeps its unknown fields.
  const std::string signature = save(
      R"({"f":0,"h":"signature { name: \"f\" output_arg { name: \"o\" type: DT_FLOAT } }","nodes":[0,1]},1)");
  EXPECT_THAT(signature, AllOf(HasSubstr(field(3, first_node) + field(3, second_node) +
                                         field(15, "in function")),
                               HasSubstr("in signature"), HasSubstr(field(1, second))));
  EXPECT_EQ(ParseGraphDef(signature)->library().function(0).signature().output_arg_size(), 1);
}

TEST_F(EditTest, SavesNewFunctionsNextToTheOthers) {
  // A function that returns its argument.
  const std::string added =
      R"({"h":"signature { name: \"h\" input_arg { name: \"x\" type: DT_FLOAT }
          output_arg { name: \"y\" type: DT_FLOAT } } ret { key: \"y\" value: \"x\" }",
          "nodes":[{"t":"name: \"nothing\" op: \"NoOp\""}]})";
  const auto save = [&](EditApi& api, const std::string& functions, const std::string& file) {
    GRADFLOW_EXPECT_OK(api.Call("save", Request({}, absl::StrCat(",\"functions\":[", functions,
                                                                 "],\"file\":\"", file, "\""))));
    return ReadFile(File(file));
  };
  const auto names = [](const GraphDef& graph) {
    std::vector<std::string> names;
    for (const FunctionDef& function : graph.library().function()) {
      names.push_back(function.signature().name());
    }
    return names;
  };

  // The new function comes last, and every byte of the others stays.
  const std::string text = kFunctions;
  WriteFile(File("f.pbtxt"), text);
  {
    const std::unique_ptr<EditApi> api = Open("f.pbtxt");
    GRADFLOW_EXPECT_OK(
        api->Call("save", WithFunctions(absl::StrCat("0,1,", added), R"(,"file":"f.pbtxt")")));
    const std::string more = ReadFile(File("f.pbtxt"));
    const size_t place = text.find("  # The last one.");
    EXPECT_EQ(more.substr(0, place - 2), text.substr(0, place - 2));
    EXPECT_THAT(more, EndsWith(text.substr(place)));
    EXPECT_THAT(more, HasSubstr("  function {\n    signature {\n      name: \"h\""));
    EXPECT_THAT(names(*ParseGraphDefText(more)), ElementsAre("f", "g", "h"));
    // Runs only the new function.
    const absl::StatusOr<std::string> run = api->Call(
        "run", WithFunctions(absl::StrCat("1,", added),
                             R"(,"function":1,"until":["x"],"feeds":[{"name":"x","type":"float",
                                "shape":[2],"values":"1, 3"}])"));
    GRADFLOW_EXPECT_OK(run);
    EXPECT_THAT(*run, HasSubstr("\"mean\":2"));
    for (const char* malformed : {R"({"nodes":[]})", R"({"h":"signature { }","nodes":[0]})"}) {
      EXPECT_THAT(api->Call("check", WithFunctions(malformed)).status(),
                  StatusIs(absl::StatusCode::kInvalidArgument))
          << malformed;
    }
  }

  // Adds the first function of a file, and then removes it.
  const std::string node = "# A node.\nnode { name: 'x' op: 'NoOp' }\nversions { producer: 27 }\n";
  WriteFile(File("n.pbtxt"), node);
  {
    const std::unique_ptr<EditApi> api = Open("n.pbtxt");
    GRADFLOW_EXPECT_OK(api->Call(
        "save", Request({"0"}, absl::StrCat(",\"functions\":[", added, R"(],"file":"n.pbtxt")"))));
    EXPECT_THAT(ReadFile(File("n.pbtxt")),
                AllOf(StartsWith(node), HasSubstr("\nlibrary {\n  function {\n")));
    EXPECT_THAT(names(*ParseGraphDefText(ReadFile(File("n.pbtxt")))), ElementsAre("h"));
  }
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("b.pb"), *ParseGraphDefText(text)));
  const std::unique_ptr<EditApi> api = Open("b.pb");
  EXPECT_THAT(names(*ParseGraphDef(save(*api, absl::StrCat("1,", added), "b.pb"))),
              ElementsAre("g", "h"));
}

TEST_F(EditTest, SavesRenamedFunctions) {
  const std::string text =
      "node { name: 'c' op: 'g' }\nlibrary {\n  # Its comment.\n"
      "  function { signature { name: 'f' } node_def { name: 'n' op: 'NoOp' } }  # Behind.\n"
      "  function { signature { name: 'g' } }\n}\n";
  WriteFile(File("f.pbtxt"), text);
  const std::unique_ptr<EditApi> api = Open("f.pbtxt");
  GRADFLOW_EXPECT_OK(api->Call(
      "save", WithFunctions(R"({"f":0,"h":"signature { name: \"other\" }","nodes":[0]},1)",
                            R"(,"file":"f.pbtxt")")));
  const std::string renamed = ReadFile(File("f.pbtxt"));
  EXPECT_THAT(renamed,
              AllOf(StartsWith("node { name: 'c' op: 'g' }\nlibrary {\n  # Its comment.\n"),
                    HasSubstr("name: \"other\""), Not(HasSubstr("'f'")),
                    HasSubstr("node_def { name: 'n' op: 'NoOp' }"),
                    EndsWith("}  # Behind.\n  function { signature { name: 'g' } }\n}\n")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
