#include "gradflow/graph/export.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/saved_model.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/proto/wire_reader.h"
#include "tests/testing/constants.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::gradflow::testing::DecodeWire;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::ReadWireTable;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::gradflow::testing::ToyGraphRegistry;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void AddUnknown(google::protobuf::Message* message, const std::string& value) {
  auto& unknown = *message->GetReflection()->MutableUnknownFields(message);
  unknown.AddVarint(1001, 5);
  unknown.AddFixed64(1002, 6);
  unknown.AddFixed32(1003, 7);
  unknown.AddLengthDelimited(1004, value);
}

// Returns a graph with all kinds of fields, including fields of later versions.
GraphDef RichGraphDef() {
  GraphDef def = ToyGraphDef(R"(
    node { name: 'c' op: 'Const' device: '/cpu:0'
      attr { key: 'dtype' value { type: DT_FLOAT } }
      attr { key: 'value' value { tensor {
        dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [0.1, -0.0, inf] } } }
      experimental_debug_info { original_node_names: 'x' original_func_names: 'f' } }
    node { name: 'n' op: 'Neg' input: 'c' input: '^c'
      attr { key: 'T' value { type: DT_FLOAT } }
      attr { key: '_a.b "c"' value { s: '\000\377 text' } }
      attr { key: '_empty' value { list {} } }
      attr { key: '_f' value { func { name: 'f' attr { key: 'i' value { i: -1 } } } } } }
    versions { producer: 2000 min_consumer: 12 bad_consumers: 7 bad_consumers: 8 }
    library {
      function { signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT } }
        attr { key: 'a' value { b: true } }
        arg_attr { key: 3 value { attr { key: 'a' value { f: 1.5 } } } }
        node_def { name: 'm' op: 'Unknown' input: 'x' }
        ret { key: 'y' value: 'm:y:0' } control_ret { key: 'z' value: 'm' } }
      gradient { function_name: 'f' gradient_func: 'g' } }
    debug_info { files: 'main.py'
      traces { key: 'c' value { file_line_cols { file_index: 0 line: 7 } frame_id: 99 } }
      traces_by_id { key: 18446744073709551615 value { frame_id: 1 } } })");
  NodeDef& node = *def.mutable_node(1);
  (*node.mutable_attr())["_type"].set_type(static_cast<DataType>(77));
  (*node.mutable_attr())["_types"].mutable_list()->add_type(static_cast<DataType>(1077));
  node.mutable_experimental_type()->set_type_id(static_cast<FullTypeId>(1004));
  (*node.mutable_attr())["_f32"].set_f(std::numeric_limits<float>::denorm_min());
  return def;
}

// Returns RichGraphDef() with unknown fields in all kinds of messages.
GraphDef UnknownFieldsGraphDef() {
  GraphDef def = RichGraphDef();
  AddUnknown(&def, "graph");
  AddUnknown(def.mutable_node(1), "node");
  AddUnknown(&(*def.mutable_node(1)->mutable_attr())["_a.b \"c\""], "attr");
  AddUnknown((*def.mutable_node(0)->mutable_attr())["value"].mutable_tensor(), "tensor");
  AddUnknown(def.mutable_versions(), std::string("\0\xff\n", 3));
  AddUnknown(def.mutable_library()->mutable_function(0)->mutable_node_def(0), "function");
  AddUnknown(&(*def.mutable_library()->mutable_function(0)->mutable_arg_attr())[3], "arg");
  AddUnknown(
      &(*def.mutable_debug_info()->mutable_traces_by_id())[std::numeric_limits<uint64_t>::max()],
      "trace");
  return def;
}

std::string Serialized(const GraphDef& def) {
  const absl::StatusOr<std::string> bytes = SerializeGraphDef(def);
  EXPECT_THAT(bytes, IsOk());
  return bytes.value_or("");
}

class GraphFileTest : public testing::FolderFixture {
 protected:
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(File(name), std::ios::binary) << content;
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(File(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  int NumFiles() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder()), {}));
  }
};

// ---- Export ----

TEST(ExportGraphDef, LeavesOutDefaultsIfAsked) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def = ToyGraphDef(R"(
    node { name: 'p' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node { name: 'm' op: 'MatMul' input: 'p' input: 'p' attr { key: 'T' value { type: DT_FLOAT } }
           attr { key: 'transpose_b' value { b: true } } attr { key: '_mine' value { i: 1 } } })");
  ASSERT_THAT(ImportGraphDef({}, def, &graph), IsOk());
  GraphDef full, stripped;
  ASSERT_THAT(ExportGraphDef(graph, {}, &full), IsOk());
  EXPECT_EQ(full.node(0).attr_size(), 2);
  EXPECT_EQ(full.node(1).attr_size(), 4);
  ExportGraphDefOptions options;
  options.strip_default_attrs = true;
  ASSERT_THAT(ExportGraphDef(graph, options, &stripped), IsOk());
  EXPECT_TRUE(MessageDifferencer::Equals(stripped, def)) << stripped.DebugString();
  // The graph itself keeps the defaults.
  EXPECT_EQ(graph.def().node(1).attr_size(), 4);
}

TEST(ExportGraphDef, RoundTripsImportedGraphs) {
  // The op in the function's body need not be registered.
  Graph graph(ToyGraphRegistry());
  GraphDef def = UnknownFieldsGraphDef();
  (*def.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->DiscardUnknownFields();
  ASSERT_THAT(ImportGraphDef({}, def, &graph), IsOk());
  GraphDef exported;
  ASSERT_THAT(ExportGraphDef(graph, {}, &exported), IsOk());
  EXPECT_EQ(Serialized(exported), Serialized(def));
}

// ---- Bytes ----

TEST(SerializeGraphDef, BytesFollowTheWireFormat) {
  const Scope root = Scope::NewRootScope(ToyGraphRegistry());
  const Output c = ops::Const(root.WithOpName("c").WithDevice("/cpu:0"), {1.5f, -2.0f});
  const Operation pair = OpBuilder(root.WithOpName("p"), "Pair").Input(c).Finish();
  OpBuilder(root.WithOpName("m").WithControlDependencies(c), "MatMul")
      .Input(pair.output(1))
      .Input(pair.output(0))
      .Attr("transpose_b", true)
      .Finish();
  GraphDef def;
  ASSERT_THAT(root.ToGraphDef(&def), IsOk());
  const auto decoded = DecodeWire(ReadWireTable(GRADFLOW_TEST_DATA_DIR "/wire_format.txt"),
                                  "GraphDef", Serialized(def));
  ASSERT_EQ(decoded.error, "");
  std::map<std::string, std::string> values = decoded.values;
  for (const auto& [path, value] : std::map<std::string, std::string>{
           {"node[0].name", "c"},
           {"node[0].op", "Const"},
           {"node[0].device", "/cpu:0"},
           {"node[0].attr[dtype].type", "1"},
           {"node[0].attr[value].tensor.dtype", "1"},
           {"node[0].attr[value].tensor.tensor_shape.dim[0].size", "2"},
           {"node[0].attr[value].tensor.tensor_content", std::string("\0\0\xc0?\0\0\0\xc0", 8)},
           {"node[1].op", "Pair"},
           {"node[1].input[0]", "c"},
           {"node[2].input[0]", "p:1"},
           {"node[2].input[1]", "p"},
           {"node[2].input[2]", "^c"},
           {"node[2].attr[T].type", "1"},
           {"node[2].attr[transpose_a].b", "0"},
           {"node[2].attr[transpose_b].b", "1"},
           {"versions.producer", absl::StrCat(kGraphDefVersion)}}) {
    EXPECT_EQ(values[path], value) << path;
  }
  EXPECT_EQ(values.count("node[3]"), 0);
}

TEST(SerializeGraphDef, EqualGraphsHaveEqualBytes) {
  const GraphDef def = UnknownFieldsGraphDef();
  GraphDef other = def;
  // The same attributes, inserted in another order.
  auto& attrs = *other.mutable_node(1)->mutable_attr();
  std::vector<std::pair<std::string, AttrValue>> entries;
  for (const auto& [name, value] : attrs) entries.emplace_back(name, value);
  attrs.clear();
  for (int i = 0; i < 100; ++i) attrs[absl::StrCat("x", i)].set_i(i);
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) attrs[it->first] = it->second;
  for (int i = 0; i < 100; ++i) attrs.erase(absl::StrCat("x", i));
  EXPECT_EQ(Serialized(other), Serialized(def));
}

TEST(ParseGraphDef, ReturnsTheGraph) {
  for (const GraphDef& def : {GraphDef(), RichGraphDef(), UnknownFieldsGraphDef()}) {
    const std::string bytes = Serialized(def);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef parsed, ParseGraphDef(bytes));
    EXPECT_TRUE(MessageDifferencer::Equals(parsed, def));
    EXPECT_EQ(Serialized(parsed), bytes);
  }
}

TEST(ParseGraphDef, RefusesOtherBytes) {
  const std::string bytes = Serialized(RichGraphDef());
  std::string invalid_utf8 = ToyGraphDef("node { name: 'nnnn' }").SerializeAsString();
  invalid_utf8[invalid_utf8.find("nnnn")] = '\xff';
  for (const std::string& bad : {bytes.substr(0, bytes.size() / 2), std::string("\x0a\x7f"),
                                 std::string("\xff"), std::string("not a graph"), invalid_utf8}) {
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(ParseGraphDef(bad),
                StatusIs(kInvalidArgument, StartsWith("expected a binary GraphDef: at byte ")));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
}

// A tensor in a list in a function in a list, and so on, must not overflow the stack.
TEST(ParseGraphDef, RefusesDeepNesting) {
  const auto nested = [](int depth) {
    AttrValue value;
    AttrValue* innermost = &value;
    for (int i = 0; i < depth; ++i) {
      innermost = &(*innermost->mutable_list()->add_func()->mutable_attr())["a"];
    }
    innermost->set_i(1);
    GraphDef def;
    (*def.add_node()->mutable_attr())["a"] = value;
    return def;
  };
  EXPECT_THAT(ParseGraphDef(nested(10).SerializeAsString()), IsOk());
  EXPECT_THAT(ParseGraphDef(nested(100).SerializeAsString()), StatusIs(kInvalidArgument));
  EXPECT_THAT(ParseGraphDefText(GraphDefToText(nested(10))), IsOk());
  EXPECT_THAT(ParseGraphDefText(GraphDefToText(nested(100))),
              StatusIs(kInvalidArgument, HasSubstr("too deep")));
}

// ---- Text ----

TEST(GraphDefText, RoundTripsAreLossless) {
  for (const GraphDef& def : {GraphDef(), RichGraphDef(), UnknownFieldsGraphDef()}) {
    const std::string text = GraphDefToText(def);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef parsed, ParseGraphDefText(text));
    EXPECT_TRUE(MessageDifferencer::Equals(parsed, def)) << text;
    EXPECT_EQ(Serialized(parsed), Serialized(def)) << text;
    EXPECT_EQ(GraphDefToText(parsed), text);
  }
}

TEST(GraphDefText, IsProtobufText) {
  EXPECT_EQ(GraphDefToText(ToyGraphDef("node { name: 'n' op: 'NoOp' }")),
            "node {\n  name: \"n\"\n  op: \"NoOp\"\n}\n");
  EXPECT_THAT(GraphDefToText(RichGraphDef()), Not(HasSubstr("#")));
}

TEST(GraphDefText, KeepsEveryFloat) {
  GraphDef def;
  TensorProto& tensor = *(*def.add_node()->mutable_attr())["a"].mutable_tensor();
  uint32_t bits = 1;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    if ((bits & 0x7f800000u) == 0x7f800000u) continue;  // infinities and NaNs
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    tensor.add_float_val(value);
    tensor.add_double_val(1.0 / value);
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef parsed, ParseGraphDefText(GraphDefToText(def)));
  EXPECT_EQ(Serialized(parsed), Serialized(def));
}

TEST(GraphDefText, UnknownFieldsAreComments) {
  const std::string text = GraphDefToText(UnknownFieldsGraphDef());
  GraphDef parsed = ToyGraphDef(text);
  EXPECT_TRUE(MessageDifferencer::Equals(parsed, RichGraphDef()));
}

// Quadratic time would take minutes.
TEST(GraphDefText, KeepsUnknownFieldsOfManyEntriesOfAMap) {
  GraphDef def;
  auto& attrs = *def.add_node()->mutable_attr();
  for (int i = 0; i < 60'000; ++i) AddUnknown(&attrs[absl::StrCat("a", i)], absl::StrCat(i));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef read, ParseGraphDefText(GraphDefToText(def)));
  ASSERT_EQ(read.node(0).attr_size(), attrs.size());
  for (const auto& [name, value] : read.node(0).attr()) {
    ASSERT_EQ(value.SerializeAsString(), attrs[name].SerializeAsString()) << name;
  }
}

// Paths contain fingerprints of names with more than 24 bytes.
TEST(GraphDefText, KeepsUnknownFieldsBelowLongNames) {
  GraphDef def;
  for (const size_t length : {1, 24, 25, 1000}) {
    NodeDef& node = *def.add_node();
    node.set_name(std::string(length, 'n'));
    AddUnknown(&node, absl::StrCat(length));
    for (const char letter : {'a', 'b'}) {
      AddUnknown(&(*node.mutable_attr())[std::string(length, letter)], absl::StrCat(length));
    }
  }
  const std::string text = GraphDefToText(def);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef read, ParseGraphDefText(text));
  EXPECT_TRUE(MessageDifferencer::Equals(read, def)) << text;
  const std::string renamed = absl::StrReplaceAll(text, {{std::string(1000, 'n'), "short"}});
  EXPECT_THAT(ParseGraphDefText(renamed), StatusIs(kInvalidArgument));
}

TEST(GraphDefText, UnknownFieldsOfRemovedFieldsAreAnError) {
  const std::string text = GraphDefToText(UnknownFieldsGraphDef());
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"name: \"n\"", "name: \"other\""},
                                                        {"key: \"_a.b \\\"c\\\"\"", "key: \"_d\""},
                                                        {"#? 1[1]", "#? 1[2]"},
                                                        {"#? 1[1]", "#? 1[-1]"},
                                                        {"#? 1[1]", "#? 1"},
                                                        {"#? 1[1]", "#? 9[1]"},
                                                        {"#? 1[1]", "#? x[1]"},
                                                        {"#? 1[1]", "#? 1{1}"},
                                                        {"#? 1[1]", "#? 1[1"},
                                                        {"#? 4 ", "#? 4[0] "},
                                                        {"#? 4 ", "#? 4.1 "},
                                                        {"#? 4 ", "#? 4 !"}}) {
    const std::string changed = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(changed, text) << from;
    EXPECT_THAT(
        ParseGraphDefText(changed),
        StatusIs(kInvalidArgument,
                 AllOf(StartsWith("expected a GraphDef as text: line "),
                       HasSubstr(": these unknown fields belong to no message of the graph; if "
                                 "the text was changed on purpose, remove the line"))))
        << to;
  }
}

TEST(GraphDefText, RejectsInvalidUnknownFields) {
  for (const auto& [field, error] : std::vector<std::pair<std::string, std::string>>{
           {"gA==", "at byte 0: expected a field number"},
           {"egVh", "at byte 2: a field has 5 bytes, but only 1 are left"},
           {"ew==", "at byte 1: a group does not end"},
           {"fA==", "at byte 0: found the end of a group that has not begun"},
           {"KgA=", "field 5 is a known field of NodeDef"}}) {
    EXPECT_THAT(
        ParseGraphDefText(absl::StrCat("node {}\n#? 1[0] ", field, "\n")),
        StatusIs(
            kInvalidArgument,
            absl::StrCat("expected a GraphDef as text: line 2: in the unknown fields, ", error)));
  }
}

// Protobuf treats such fields as unknown fields.
TEST(GraphDefText, KeepsFieldsOfAnotherWireType) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef graph, ParseGraphDefText("node {}\n#? 1[0] KAE=\n"));
  EXPECT_EQ(graph.SerializeAsString(), "\n\2\x28\1");
}

TEST(GraphDefText, ErrorsSayWhere) {
  EXPECT_THAT(ParseGraphDefText("node {\n  name: 'n'\n  ops: 'NoOp'\n}"),
              StatusIs(kInvalidArgument,
                       AllOf(StartsWith("expected a GraphDef as text: line 3, column 6: "),
                             HasSubstr("\\\"ops\\\""))));
  EXPECT_THAT(ParseGraphDefText("node {"),
              StatusIs(kInvalidArgument, HasSubstr("line 1, column 7: ")));
  EXPECT_THAT(ParseGraphDefText(std::string("\0\1\2", 3)), StatusIs(kInvalidArgument));
}

// ---- Files ----

TEST_F(GraphFileTest, RoundTripsAreLossless) {
  const GraphDef def = UnknownFieldsGraphDef();
  for (const char* name : {"graph.pb", "graph.pbtxt"}) {
    ASSERT_THAT(WriteGraphDef(File(name), def), IsOk());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef read, ReadGraphDef(File(name)));
    EXPECT_EQ(Serialized(read), Serialized(def));
  }
  EXPECT_EQ(Content("graph.pb"), Serialized(def));
  EXPECT_EQ(Content("graph.pbtxt"), GraphDefToText(def));
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(GraphFileTest, ContentDecidesTheFormatForOtherNames) {
  const GraphDef def = RichGraphDef();
  Write("binary", Serialized(def));
  Write("text", GraphDefToText(def));
  Write("lines_of_windows",
        absl::StrReplaceAll(GraphDefToText(def), {{"\n", "\r\n"}, {"  ", "\t"}}));
  for (const char* name : {"binary", "text", "lines_of_windows"}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const GraphDef read, ReadGraphDef(File(name)));
    EXPECT_EQ(Serialized(read), Serialized(def));
  }
}

TEST_F(GraphFileTest, ReadErrorsNameTheFile) {
  Write("empty.pb", "");
  Write("broken.pb", Serialized(RichGraphDef()).substr(0, 100));
  Write("broken.pbtxt", "node {\n  name 1 }");
  Write("text.pb", "node {}");
  Write("binary.pbtxt", Serialized(RichGraphDef()));
  ASSERT_EQ(mkfifo(File("pipe.pb").c_str(), 0600), 0);
  const struct {
    const char* name;
    absl::StatusCode code;
    const char* error;
  } cases[] = {
      {"none.pb", absl::StatusCode::kNotFound, "cannot open"},
      {"none/graph.pb", absl::StatusCode::kNotFound, "cannot open"},
      {"", kInvalidArgument, "expected a regular file, but found a directory"},
      {"pipe.pb", kInvalidArgument, "expected a regular file, but found a pipe"},
      {"empty.pb", kInvalidArgument, "expected a GraphDef, but the file is empty"},
      {"broken.pb", kInvalidArgument, "expected a binary GraphDef: at byte "},
      {"broken.pbtxt", kInvalidArgument, "expected a GraphDef as text: line 2, column 8: "},
      {"text.pb", kInvalidArgument, "expected a binary GraphDef"},
      {"binary.pbtxt", kInvalidArgument, "expected a GraphDef as text: line "},
  };
  for (const auto& [name, code, error] : cases) {
    EXPECT_THAT(ReadGraphDef(File(name)),
                StatusIs(code, StartsWith(absl::StrCat("'", File(name), "': ", error))));
  }
}

TEST_F(GraphFileTest, ErrorsNameSavedModels) {
  SavedModel model;
  model.set_saved_model_schema_version(1);
  model.add_meta_graphs()->mutable_graph_def()->add_node()->set_name("n");
  Write("saved_model.pb", model.SerializeAsString());
  Write("model.pb", model.SerializeAsString());
  Write("model.pbtxt", "saved_model_schema_version: 1\nmeta_graphs {}\n");
  for (const char* name : {"", "model.pb", "model.pbtxt"}) {
    EXPECT_THAT(
        ReadGraphDef(File(name)),
        StatusIs(kInvalidArgument,
                 StartsWith(absl::StrCat("'", File(name),
                                         "': expected a GraphDef, but found a SavedModel; "))));
  }
}

TEST_F(GraphFileTest, RefusesFilesBeyondTwoGiB) {
  Write("large.pb", "x");
  std::filesystem::resize_file(File("large.pb"), uint64_t{1} << 31);  // sparse
  EXPECT_THAT(
      ReadGraphDef(File("large.pb")),
      StatusIs(kInvalidArgument, HasSubstr("expected a GraphDef of at most 2147483647 bytes "
                                           "(GraphLimits::max_file_bytes), but found 2147483648")));
}

TEST_F(GraphFileTest, WritesReplaceWholeFiles) {
  Write("graph.pb", "old");
  std::filesystem::create_symlink("graph.pb", File("link.pb"));
  ASSERT_THAT(WriteGraphDef(File("link.pb"), RichGraphDef()), IsOk());
  EXPECT_TRUE(std::filesystem::is_symlink(File("link.pb")));
  EXPECT_EQ(Content("graph.pb"), Serialized(RichGraphDef()));
  EXPECT_EQ(NumFiles(), 2);
}

TEST_F(GraphFileTest, WriteErrorsNameTheFileAndLeaveNothing) {
  std::filesystem::create_directory(File("dir.pb"));
  const struct {
    const char* name;
    absl::StatusCode code;
    const char* error;
  } cases[] = {
      {"none/graph.pb", absl::StatusCode::kNotFound, "cannot write"},
      {"dir.pb", kInvalidArgument, "expected a regular file, but found a directory"},
      {"graph.pb.gz", kInvalidArgument,
       "expected a name that ends in .pb (binary) or .pbtxt (text)"},
  };
  for (const auto& [name, code, error] : cases) {
    EXPECT_THAT(WriteGraphDef(File(name), RichGraphDef()),
                StatusIs(code, StartsWith(absl::StrCat("'", File(name), "': ", error))));
  }
  EXPECT_EQ(NumFiles(), 1);
}

}  // namespace
}  // namespace gradflow
