// Tests of the limits of ImportGraphDef and of reading a GraphDef, and of invalid files that
// protobuf accepts. Limits of functions are in import_functions_test.cc.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/graph.pb.h"
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
using ::testing::AllOf;
using ::testing::HasSubstr;

absl::Status Import(const GraphDef& def, const ImportGraphDefOptions& options = {}) {
  Graph graph(ToyGraphRegistry());
  absl::Status status = ImportGraphDef(options, def, &graph);
  EXPECT_EQ(graph.num_nodes(), status.ok() ? def.node_size() : 0);
  return status;
}

std::string Const(const std::string& name, const std::string& tensor) {
  return ToyNode(name, "Const",
                 absl::StrCat("attr { key: 'dtype' value { type: DT_FLOAT } } "
                              "attr { key: 'value' value { tensor { dtype: DT_FLOAT ",
                              tensor, " } } }"));
}

// Returns an attribute value of functions nested in functions.
std::string Nested(int depth) {
  std::string text = "i: 1";
  for (int i = 0; i < depth; ++i) {
    text = absl::StrCat("func { name: 'f' attr { key: 'a' value { ", text, " } } }");
  }
  return text;
}

struct Case {
  const char* name;
  std::string graph;
  std::string error;
  // Sets the limit that causes the error.
  void (*set)(ImportGraphDefOptions&) = [](ImportGraphDefOptions&) {};
};

std::vector<Case> Limits() {
  const std::string long_name(20, 'n');
  return {
      {"nodes", ToyPlaceholder("a") + ToyNeg("b", {"a"}),
       "the graph has too many nodes, found 2, expected at most 1 (GraphLimits::max_nodes)",
       [](auto& o) { o.limits.max_nodes = 1; }},
      {"nodes of functions",
       ToyPlaceholder("a") + "library { function { signature { name: 'F' } "
                             "node_def { name: 'n' op: 'NoOp' } } }",
       "the graph has too many nodes, found 2, expected at most 1 (GraphLimits::max_nodes)",
       [](auto& o) { o.limits.max_nodes = 1; }},
      {"functions",
       "library { function { signature { name: 'F' } } function { signature { name: 'G' } } }",
       "the graph has too many functions, found 2, expected at most 1 (GraphLimits::max_functions)",
       [](auto& o) { o.limits.max_functions = 1; }},
      {"inputs", ToyPlaceholder("a") + ToyNeg("b", {"a", "^a", "^a"}),
       "node 'b' (Neg): the node has too many inputs, found 3, expected at most 2 "
       "(GraphLimits::max_inputs)",
       [](auto& o) { o.limits.max_inputs = 2; }},
      {"attributes", ToyNode("a", "NoOp", "attr { key: '_a' } attr { key: '_b' }"),
       "node 'a' (NoOp): the node has too many attributes, found 2, expected at most 1 "
       "(GraphLimits::max_attrs)",
       [](auto& o) { o.limits.max_attrs = 1; }},
      {"name of a node", ToyPlaceholder(long_name),
       "): the name 'nnnnnnnnnnnnnnnnnnnn' has 20 bytes, expected at most 15 "
       "(GraphLimits::max_name_bytes)",
       [](auto& o) { o.limits.max_name_bytes = 15; }},
      {"name of an op", ToyNode("a", std::string(16, 'O')),
       "node 'a' (OOOOOOOOOOOOOOOO): the op 'OOOOOOOOOOOOOOOO' has 16 bytes, expected at most 15",
       [](auto& o) { o.limits.max_name_bytes = 15; }},
      {"name of a device", ToyNode("a", "NoOp", "device: '/device:CPU:00000'"),
       "node 'a' (NoOp): the device '/device:CPU:00000' has 17 bytes, expected at most 15",
       [](auto& o) { o.limits.max_name_bytes = 15; }},
      {"name of an attribute", ToyNode("a", "NoOp", "attr { key: '_23456789abcdefg' }"),
       "node 'a' (NoOp): the name of attribute '_23456789abcdefg' has 16 bytes, expected at most "
       "15",
       [](auto& o) { o.limits.max_name_bytes = 15; }},
      {"name of a function", "library { function { signature { name: 'Function90123456' } } }",
       "the name of function 'Function90123456' has 16 bytes, expected at most 15",
       [](auto& o) { o.limits.max_name_bytes = 15; }},
      {"device that is no text", ToyNode("a", "NoOp", "device: '\\377'"),
       "node 'a' (NoOp): the device '\\377' is not valid UTF-8"},
      {"attribute that is no text", ToyNode("a", "NoOp", "attr { key: '_\\377' }"),
       "node 'a' (NoOp): the name of attribute '_\\377' is not valid UTF-8"},
      {"list", ToyNode("a", "NoOp", "attr { key: '_l' value { list { i: [ 1, 2, 3 ] } } }"),
       "node 'a' (NoOp): the list of attribute '_l' is too long, found 3, expected at most 2 "
       "(GraphLimits::max_list_length)",
       [](auto& o) { o.limits.max_list_length = 2; }},
      {"functions in functions",
       ToyNode("a", "NoOp", absl::StrCat("attr { key: '_f' value { ", Nested(33), " } }")),
       "node 'a' (NoOp): attribute '_f': functions in attributes of functions are nested deeper "
       "than 32 levels"},
      {"NaN", ToyNode("a", "NoOp", "attr { key: '_f' value { f: nan } }"),
       "node 'a' (NoOp): attribute '_f' is NaN, expected a number "
       "(ImportGraphDefOptions::allow_nan_attributes)"},
      {"NaN in a list", ToyNode("a", "NoOp", "attr { key: '_f' value { list { f: [ 1, nan ] } } }"),
       "node 'a' (NoOp): attribute '_f' is NaN"},
      {"NaN in a function",
       ToyNode("a", "NoOp",
               "attr { key: '_f' value { func { attr { key: 'g' value { f: nan } } } } }"),
       "node 'a' (NoOp): attribute '_f' is NaN"},
      {"constants",
       Const("a", "tensor_shape { dim { size: 20 } }") +
           Const("b", "tensor_shape { dim { size: 6 } }"),
       "node 'b' (Const): attribute 'value' is a tensor of type float and shape [6], with 24 "
       "bytes, but the constants of a graph have at most 100 together "
       "(GraphLimits::max_constant_bytes), of which 20 are left",
       [](auto& o) { o.limits.max_constant_bytes = 100; }},
      {"huge constant", Const("a", "tensor_shape { dim { size: 1152921504606846976 } }"),
       "node 'a' (Const): attribute 'value' is a tensor of type float and shape "
       "[1152921504606846976], with 4611686018427387904 bytes, but the constants of a graph have "
       "at most 2147483648 together"},
      {"constant beyond int64",
       Const("a", "tensor_shape { dim { size: 3000000000 } dim { size: 3000000000 } }"),
       "node 'a' (Const): attribute 'value' is a tensor of type float and shape "
       "[3000000000,3000000000], with more bytes than an int64 counts"},
      {"strings that repeat a long one",
       ToyNode("a", "Const",
               "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { tensor "
               "{ dtype: DT_STRING tensor_shape { dim { size: 2000000000 } } string_val: "
               "'0123456789' } } }"),
       absl::StrCat("node 'a' (Const): attribute 'value' is a tensor of type string and shape "
                    "[2000000000], with ",
                    2000000000 * static_cast<int64_t>(sizeof(tstring) + 10), " bytes")},
      {"extra attribute that is no tensor",
       ToyNode("a", "NoOp",
               "attr { key: '_t' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } "
               "tensor_content: 'abc' } } }"),
       "node 'a' (NoOp): attribute '_t': expected tensor_content of 3 elements of 4 bytes (type "
       "float, shape [3]), but found 3 bytes"},
  };
}

TEST(ImportLimits, ErrorsNameTheExceededLimit) {
  for (const Case& test : Limits()) {
    SCOPED_TRACE(test.name);
    ImportGraphDefOptions options;
    test.set(options);
    EXPECT_THAT(Import(ToyGraphDef(test.graph), options),
                StatusIs(kInvalidArgument, HasSubstr(test.error)));
  }
}

TEST(ImportLimits, AcceptInputsJustWithinTheLimits) {
  const GraphDef def = ToyGraphDef(
      ToyPlaceholder("a") + ToyNeg("b", {"a", "^a"}, "attr { key: '_f' value { f: 1 } }") +
      Const("c", "tensor_shape { dim { size: 25 } }") +
      Const("empty", "tensor_shape { dim { size: 0 } }") +
      ToyNode("d", "NoOp", "attr { key: '_l' value { list { i: [ 1, 2 ] } } }") +
      ToyNode("e", "NoOp", absl::StrCat("attr { key: '_f' value { ", Nested(32), " } }")) +
      "library { function { signature { name: 'F' } node_def { name: 'n' op: 'G' } "
      "node_def { name: 'm' op: 'G' } } function { signature { name: 'G' } } }");
  ImportGraphDefOptions options;
  options.limits.max_nodes = 8;
  options.limits.max_functions = 2;
  options.limits.max_inputs = 2;
  options.limits.max_attrs = 2;
  options.limits.max_name_bytes = 11;  // "Placeholder"
  options.limits.max_list_length = 2;
  options.limits.max_constant_bytes = 100;
  EXPECT_THAT(Import(def, options), IsOk());
}

TEST(ImportLimits, CountTheNodesOfEarlierImports) {
  Graph graph(ToyGraphRegistry());
  GRADFLOW_ASSERT_OK(
      ImportGraphDef({}, ToyGraphDef(ToyPlaceholder("a") + ToyPlaceholder("b")), &graph));
  ImportGraphDefOptions options;
  options.prefix = "p";
  options.limits.max_nodes = 2;
  EXPECT_THAT(ImportGraphDef(options, ToyGraphDef(ToyPlaceholder("a")), &graph),
              StatusIs(kInvalidArgument,
                       HasSubstr("the graph has too many nodes, found 3, expected at most 2")));
  options.limits.max_nodes = 3;
  EXPECT_THAT(ImportGraphDef(options, ToyGraphDef(ToyPlaceholder("a")), &graph), IsOk());
}

TEST(ImportLimits, NanAttributesMayBeAllowed) {
  const GraphDef def = ToyGraphDef(ToyNode("a", "NoOp", "attr { key: '_f' value { f: nan } }"));
  EXPECT_THAT(Import(def), StatusIs(kInvalidArgument));
  ImportGraphDefOptions options;
  options.allow_nan_attributes = true;
  EXPECT_THAT(Import(def, options), IsOk());
}

// Quadratic time would take minutes.
TEST(ImportLimits, VersionsMayExcludeManyReaders) {
  constexpr int kCount = 1'000'000;
  GraphDef def;
  for (int i = 0; i < kCount; ++i) def.mutable_versions()->add_bad_consumers(10'000 + i);
  Graph graph(ToyGraphRegistry());
  ImportGraphDefOptions options;
  options.prefix = "p";
  GRADFLOW_ASSERT_OK(ImportGraphDef(options, def, &graph));
  def.mutable_versions()->add_bad_consumers(5);
  def.mutable_versions()->add_bad_consumers(5);
  GRADFLOW_ASSERT_OK(ImportGraphDef(options, def, &graph));
  ASSERT_EQ(graph.def().versions().bad_consumers_size(), kCount + 1);
  EXPECT_EQ(graph.def().versions().bad_consumers(kCount), 5);
}

// ---- Files ----

// Returns a length-delimited field.
std::string Field(int number, const std::string& content) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t length = content.size();
  for (; length >= 0x80; length >>= 7) bytes.push_back(static_cast<char>(length | 0x80));
  bytes.push_back(static_cast<char>(length));
  return bytes + content;
}
std::string NameField(const std::string& name) { return Field(1, name); }
std::string NodeField(const std::string& content) { return Field(1, content); }
std::string AttrField(const std::string& key, const std::string& value) {
  return Field(5, Field(1, key) + Field(2, value));
}

struct BadFile {
  const char* name;
  std::string bytes;
  std::string error;
};

std::vector<BadFile> BadFiles() {
  const std::string good = NodeField(NameField("a"));
  std::string groups;
  for (int i = 0; i < 101; ++i) groups.push_back('\x7b');
  std::string in_functions = "\x25zz";
  for (int i = 0; i < 3; ++i) {
    in_functions = Field(10, Field(2, Field(1, "a") + Field(2, in_functions)));
  }
  return {
      {"cut off", NodeField(NameField("a")) + std::string("\x0a\x05zz"),
       "at byte 7: field node has 5 bytes, but only 2 are left"},
      {"cut off inside", good + NodeField("\x0a\x05zz"),
       "at byte 9, in node[1]: field name has 5 bytes, but only 2 are left"},
      {"no length", "\x0a", "at byte 1: field node has no length"},
      {"length that does not end", "\x0a\xff\xff", "at byte 1: field node has no length"},
      {"no field", std::string("\0", 1), "at byte 0: expected a field number"},
      {"field that does not end", "\xff", "at byte 0: expected a field number"},
      {"number of a field that is too large", "\xff\xff\xff\xff\x7f",
       "at byte 0: expected a field number"},
      {"number that does not end", Field(4, "\x08\xff"),
       "at byte 3, in versions: field producer has a number that does not end"},
      {"number of four bytes that is cut off", NodeField(AttrField("a", "\x25zz")),
       "in node[0].attr['a'].value: field f has 4 bytes, but only 2 are left"},
      {"encoding that there is not", "\x0e", "at byte 1: field node has the unknown encoding 6"},
      {"end of a group", "\x0c", "at byte 0: found the end of a group that has not begun"},
      {"group without an end", "\x7b\x08\x01", "at byte 3: a group does not end"},
      {"end of another group", "\x7b\x0c",
       "at byte 1: found the end of a group that has not begun"},
      {"field of a group that is cut off", "\x7b\x0a\x05",
       "at byte 3: a field has 5 bytes, but only 0 are left"},
      {"group with no field", std::string("\x7b\0", 2), "at byte 1: expected a field number"},
      {"groups in groups", groups,
       "groups are nested deeper than 100 levels (GraphLimits::max_depth)"},
      {"text that is none", good + NodeField(Field(2, "ab\xff")),
       "at byte 9, in node[1]: field op is not UTF-8: 'ab\\377'"},
      {"key that is no text", NodeField(AttrField("\xc0\x80", "")),
       "in node[0].attr['\\300\\200']: field key is not UTF-8"},
      {"attribute that is there twice",
       NodeField(NameField("a")) +
           NodeField(NameField("b") + AttrField("T", "") + AttrField("T", "")),
       "in node[1].attr['T']: the map has this key twice"},
      {"list of numbers that does not end",
       NodeField(AttrField("l", Field(1, Field(3, "\x01\xff")))),
       "in node[0].attr['l'].value.list: field i has a number that does not end"},
      {"list of numbers of four bytes that is cut off",
       NodeField(AttrField("l", Field(1, Field(4, "12345")))),
       "in node[0].attr['l'].value.list: field f has 5 bytes, expected a multiple of 4"},
      {"text that is none, after lists of numbers of four bytes",
       NodeField(AttrField("l", Field(1, Field(4, "") + Field(4, "12345678")))) +
           NodeField(Field(2, "ab\xff")),
       "in node[1]: field op is not UTF-8: 'ab\\377'"},
      // Unknown fields do not count as elements.
      {"element after numbers of four and eight bytes",
       "\x7d"
       "1234"
       "\x79"
       "12345678" +
           good + NodeField("\x0a\x05zz"),
       "in node[1]: field name has 5 bytes, but only 2 are left"},
      {"deep inside", NodeField(AttrField("a", in_functions)),
       "in node[0].attr['a'].value.func.attr['a'].value.....value.func.attr['a'].value: field f "
       "has 4 bytes, but only 2 are left"},
      // A tag of six bytes.
      {"what only protobuf refuses", std::string("\x8a\x80\x80\x80\x80\0\0", 7),
       "expected a binary GraphDef: found 7 other bytes"},
  };
}

TEST(ParseGraphDef, ReportsWhereAFileIsInvalid) {
  for (const BadFile& bad : BadFiles()) {
    SCOPED_TRACE(bad.name);
    EXPECT_THAT(
        ParseGraphDef(bad.bytes),
        StatusIs(kInvalidArgument, HasSubstr(absl::StrCat("expected a binary GraphDef: "))));
    EXPECT_THAT(ParseGraphDef(bad.bytes), StatusIs(kInvalidArgument, HasSubstr(bad.error)));
  }
}

// Every prefix of a file is either valid or reported as truncated.
TEST(ParseGraphDef, ReportsWhereAFileIsTruncated) {
  const std::string bytes =
      ToyGraphDef(ToyPlaceholder("a") + ToyNeg("b", {"a"}) +
                  Const("c", "tensor_shape { dim { size: 2 } } float_val: [ 1, 2 ]") +
                  "versions { producer: 3 min_consumer: 300 } library { function { signature { "
                  "name: 'F' } arg_attr { key: 7 value { attr { key: 'x' value { f: 1 } } } } } }")
          .SerializeAsString();
  int whole = 0;
  for (size_t size = 0; size <= bytes.size(); ++size) {
    GraphDef expected;
    const bool parses = expected.ParseFromString(bytes.substr(0, size));
    const absl::StatusOr<GraphDef> parsed = ParseGraphDef(bytes.substr(0, size));
    ASSERT_EQ(parsed.ok(), parses) << size << ": " << parsed.status();
    whole += parses;
    if (!parses) {
      EXPECT_THAT(parsed, StatusIs(kInvalidArgument, HasSubstr(": at byte ")));
    }
  }
  EXPECT_GE(whole, 5);
}

TEST(ParseGraphDef, RespectsItsLimits) {
  const GraphDef def = ToyGraphDef(
      ToyPlaceholder("a") +
      ToyNode("n", "NoOp", absl::StrCat("attr { key: '_v' value { ", Nested(10), " } }")));
  const std::string binary = def.SerializeAsString();
  const std::string text = GraphDefToText(def);
  GRADFLOW_ASSERT_OK(ParseGraphDef(binary));
  GRADFLOW_ASSERT_OK(ParseGraphDefText(text));

  GraphLimits limits;
  limits.max_file_bytes = static_cast<int64_t>(binary.size());
  GRADFLOW_EXPECT_OK(ParseGraphDef(binary, limits));
  EXPECT_THAT(ParseGraphDefText(text, limits),
              StatusIs(kInvalidArgument,
                       HasSubstr(absl::StrCat("expected a GraphDef of at most ", binary.size(),
                                              " bytes (GraphLimits::max_file_bytes), but found ",
                                              text.size()))));
  --limits.max_file_bytes;
  EXPECT_THAT(ParseGraphDef(binary, limits),
              StatusIs(kInvalidArgument, HasSubstr("max_file_bytes")));

  // A node, an attribute, its value, and 3 more for each function except the last.
  limits = {};
  limits.max_depth = 33;
  GRADFLOW_EXPECT_OK(ParseGraphDef(binary, limits));
  limits.max_depth = 32;
  EXPECT_THAT(
      ParseGraphDef(binary, limits),
      StatusIs(kInvalidArgument, HasSubstr(".value: messages are nested deeper than 32 levels "
                                           "(GraphLimits::max_depth)")));
  EXPECT_THAT(ParseGraphDefText(text, limits), StatusIs(kInvalidArgument, HasSubstr("line ")));

  limits = {};
  limits.max_message_bytes = 1000;
  EXPECT_THAT(
      ParseGraphDef(binary, limits),
      StatusIs(kInvalidArgument, HasSubstr("the file would take more than 1000 bytes of memory "
                                           "(GraphLimits::max_message_bytes)")));
  EXPECT_THAT(
      ParseGraphDefText(text, limits),
      StatusIs(kInvalidArgument, HasSubstr("the text would take more than 1000 bytes of memory "
                                           "(GraphLimits::max_message_bytes)")));
}

TEST(ImportLimits, ApplyToAllImportsIntoAGraphTogether) {
  Graph graph(ToyGraphRegistry());
  ImportGraphDefOptions options;
  options.limits.max_constant_bytes = 100;
  const auto import = [&](const std::string& name, int size) {
    return ImportGraphDef(
        options,
        ToyGraphDef(Const(name, absl::StrCat("tensor_shape { dim { size: ", size, " } }"))),
        &graph);
  };
  GRADFLOW_EXPECT_OK(import("a", 20));
  // A failed import does not count against the limits.
  EXPECT_THAT(import("b", 6), StatusIs(kInvalidArgument, HasSubstr("of which 20 are left")));
  GRADFLOW_EXPECT_OK(import("b", 5));
  EXPECT_THAT(import("c", 1), StatusIs(kInvalidArgument, HasSubstr("of which 0 are left")));
}

std::string Repeated(absl::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) absl::StrAppend(&all, text);
  return all;
}

// Return memory limits below and above the size of `def` in memory, as reported by protobuf.
GraphLimits TooLittleFor(const GraphDef& def) {
  GraphLimits limits;
  limits.max_message_bytes = static_cast<int64_t>(def.SpaceUsedLong()) * 9 / 10;
  return limits;
}
GraphLimits EnoughFor(const GraphDef& def) {
  GraphLimits limits;
  limits.max_message_bytes = static_cast<int64_t>(def.SpaceUsedLong()) * 3;
  return limits;
}

// Two bytes of a file can be an empty message, which takes hundreds of bytes in memory.
TEST(ParseGraphDef, ChargesTheMemoryOfMessages) {
  GraphDef def;
  for (int i = 0; i < 1000; ++i) {
    (*def.add_node()->mutable_attr())["a"].mutable_list()->add_tensor();
  }
  GraphLimits limits;
  limits.max_message_bytes = static_cast<int64_t>(def.SpaceUsedLong()) * 3 / 2;
  GRADFLOW_EXPECT_OK(ParseGraphDef(def.SerializeAsString(), limits));
  limits.max_message_bytes = static_cast<int64_t>(def.SpaceUsedLong()) / 2;
  EXPECT_THAT(ParseGraphDef(def.SerializeAsString(), limits),
              StatusIs(kInvalidArgument, HasSubstr("max_message_bytes")));
}

TEST(ParseGraphDef, ChargesTheMemoryOfStrings) {
  GraphDef text;
  GraphDef bytes;
  NodeDef* const node = text.add_node();
  auto* const list = (*bytes.add_node()->mutable_attr())["a"].mutable_list();
  for (int i = 0; i < 1000; ++i) {
    node->add_input("a");
    list->add_s("a");
  }
  for (const GraphDef& def : {text, bytes}) {
    EXPECT_THAT(ParseGraphDef(def.SerializeAsString(), TooLittleFor(def)),
                StatusIs(kInvalidArgument, HasSubstr("max_message_bytes")));
    GRADFLOW_EXPECT_OK(ParseGraphDef(def.SerializeAsString(), EnoughFor(def)));
  }
}

// Two bytes of a file can also be an unknown field. A known field with another wire type is
// unknown.
TEST(ParseGraphDef, ChargesTheMemoryOfUnknownFields) {
  for (const std::string& field : {
           std::string("\x78\x01"),         // field 15, a number
           std::string("\x7d\0\0\0\0", 5),  // a number of four bytes
           Field(15, ""),                   // a string
           Field(15, "longer than what a string has in itself"),
           std::string("\x7b\x7c"),                 // a group
           std::string("\x7b\x7a\0\x78\1\x7c", 6),  // a group with a string and a number
           std::string("\x7b\x7b\x7c\x7c"),         // a group with a group
           std::string("\x1a\0", 2),                // `version`, a number, as a string
           std::string("\x1d\0\0\0\0", 5),
           std::string("\x19\0\0\0\0\0\0\0\0", 9),
           std::string("\x1b\x1c"),
           std::string("\x08\x01"),  // `node`, a message, as a number
           std::string("\x0b\x0c"),
       }) {
    const std::string bytes = Repeated(field, 1000);
    SCOPED_TRACE(absl::CHexEscape(field));
    GraphDef def;
    ASSERT_TRUE(def.ParseFromString(bytes));
    EXPECT_THAT(ParseGraphDef(bytes, TooLittleFor(def)),
                StatusIs(kInvalidArgument, HasSubstr("max_message_bytes")));
    GRADFLOW_EXPECT_OK(ParseGraphDef(bytes, EnoughFor(def)));
  }
}

TEST(ParseGraphDefText, ChargesTheMemoryOfValues) {
  const std::string empty_strings = absl::StrCat("input: ['", Repeated("','", 1000), "']");
  for (const std::string& text : {
           absl::StrCat("node { ", empty_strings, " }"),
           absl::StrCat("node { ", Repeated("input: \"\" ", 1000), " }"),
           absl::StrCat("node { attr { key: 'a' value { list { i: [1", Repeated(",1", 1000),
                        "] } } } }"),
           absl::StrCat("node { attr { key: 'a' value { list { ", Repeated("i:1 ", 1000),
                        "} } } }"),
           // Quotes inside strings and comments.
           absl::StrCat("# it's\nnode { ", empty_strings, " }"),
           absl::StrCat("node { name: \"it's\" ", empty_strings, " }"),
           absl::StrCat("node { name: 'it\\'s' ", empty_strings, " }"),
           absl::StrCat("node { name: 'it\\\\' ", empty_strings, " }"),
           absl::StrCat("node { name: '#' ", empty_strings, " }"),
       }) {
    SCOPED_TRACE(text.substr(0, 50));
    const GraphDef def = ToyGraphDef(text);
    EXPECT_THAT(ParseGraphDefText(text, TooLittleFor(def)),
                StatusIs(kInvalidArgument, HasSubstr("the text would take more than ")));
    GRADFLOW_EXPECT_OK(ParseGraphDefText(text, EnoughFor(def)));
  }
  // The text is invalid, but protobuf continues reading.
  GraphLimits limits;
  limits.max_message_bytes = 50'000;
  for (const absl::string_view wrong :
       {absl::string_view("'\n"), absl::string_view("'\\\n"), absl::string_view("'\0", 2),
        absl::string_view("'\\\0", 3), absl::string_view("#\0", 2)}) {
    SCOPED_TRACE(absl::CHexEscape(wrong));
    EXPECT_THAT(
        ParseGraphDefText(absl::StrCat("node { name: '' ", wrong, empty_strings, " }"), limits),
        StatusIs(kInvalidArgument, HasSubstr("the text would take more than 50000 bytes")));
  }
}

TEST(ParseGraphDefText, CountsNoValuesInStringsAndComments) {
  const std::string marks = Repeated("{<,:", 1000);
  const std::string text =
      absl::StrCat("# '", marks, "\nnode { name: '", marks, "\\'\"", marks, "' }");
  GraphLimits limits;
  limits.max_message_bytes = static_cast<int64_t>(text.size()) + 1000;
  GRADFLOW_EXPECT_OK(ParseGraphDefText(text, limits));
}

TEST(ParseGraphDefText, CountsNoValuesAfterAnEscapedQuote) {
  const std::string marks = Repeated("{<,:", 1000);
  for (const std::string& text :
       {absl::StrCat("node { name: 'a\\'", marks, "' }"),
        absl::StrCat("node { name: \"a\\\"", marks, "\" }"),
        absl::StrCat("node { name: 'a\\\\\\'", marks, "' }"), absl::StrCat("# ", marks, "\n")}) {
    SCOPED_TRACE(text.substr(0, 40));
    GraphLimits limits;
    limits.max_message_bytes = static_cast<int64_t>(text.size()) + 1000;
    GRADFLOW_EXPECT_OK(ParseGraphDefText(text, limits));
  }
}

// A message may be in angle brackets instead of braces.
TEST(ParseGraphDefText, ChargesTheMemoryOfMessagesInAngleBrackets) {
  for (const char* node : {"node <> ", "node {} ", "node: <> "}) {
    const std::string text = Repeated(node, 1000);
    GraphLimits limits;
    limits.max_message_bytes = 200'000;
    EXPECT_THAT(ParseGraphDefText(text, limits),
                StatusIs(kInvalidArgument, HasSubstr("the text would take more than 200000 bytes")))
        << node;
  }
}

// A number of one byte takes eight in memory.
TEST(ParseGraphDef, ChargesTheMemoryOfPackedNumbers) {
  GraphDef def;
  auto* const list = (*def.add_node()->mutable_attr())["a"].mutable_list();
  for (int i = 0; i < 100'000; ++i) list->add_i(1);
  const std::string bytes = def.SerializeAsString();
  ASSERT_LT(bytes.size(), 110'000);
  GraphLimits limits;
  limits.max_message_bytes = 750'000;
  EXPECT_THAT(ParseGraphDef(bytes, limits),
              StatusIs(kInvalidArgument, HasSubstr("max_message_bytes")));
  limits.max_message_bytes = 850'000;
  GRADFLOW_EXPECT_OK(ParseGraphDef(bytes, limits));
}

// Old files repeat the tag for each number.
TEST(ParseGraphDef, ChargesTheMemoryOfNumbersThatAreNotPacked) {
  constexpr int kNumbers = 100'000;
  GraphDef def;
  auto* const list = (*def.add_node()->mutable_attr())["a"].mutable_list();
  auto* const fields = list->GetReflection()->MutableUnknownFields(list);
  for (int i = 0; i < kNumbers; ++i) fields->AddVarint(AttrValue::ListValue::kIFieldNumber, 7);
  const std::string bytes = def.SerializeAsString();
  const absl::StatusOr<GraphDef> parsed = ParseGraphDef(bytes);
  GRADFLOW_ASSERT_OK(parsed.status());
  const auto& numbers = parsed->node(0).attr().at("a").list().i();
  EXPECT_EQ(numbers.size(), kNumbers);
  EXPECT_EQ(numbers[kNumbers - 1], 7);
  GraphLimits limits;
  limits.max_message_bytes = 8 * kNumbers;
  EXPECT_THAT(ParseGraphDef(bytes, limits),
              StatusIs(kInvalidArgument, HasSubstr("max_message_bytes")));
}

// Four characters of text can be a string field.
TEST(ParseGraphDefText, ChargesTheMemoryOfUnknownFields) {
  GraphDef one;
  one.add_node();
  GraphDef many;
  const auto add_unknown = [](google::protobuf::Message* message, int count) {
    auto* const unknown = message->GetReflection()->MutableUnknownFields(message);
    for (int i = 0; i < count; ++i) unknown->AddLengthDelimited(15, "");
  };
  add_unknown(one.mutable_node(0), 1000);
  for (int i = 0; i < 100; ++i) add_unknown(many.add_node(), 10);
  for (const GraphDef& def : {one, many}) {
    const std::string text = GraphDefToText(def);
    SCOPED_TRACE(text);
    EXPECT_THAT(
        ParseGraphDefText(text, TooLittleFor(def)),
        StatusIs(kInvalidArgument, AllOf(HasSubstr("line "), HasSubstr("max_message_bytes"))));
    GRADFLOW_EXPECT_OK(ParseGraphDefText(text, EnoughFor(def)));
  }
}

TEST(ParseGraphDefText, RejectsTextThatABinaryFileCannotHold) {
  EXPECT_THAT(ParseGraphDefText("node { name: 'a' } node { name: 'a\\377' }"),
              StatusIs(kInvalidArgument,
                       "expected a GraphDef as text: node[1].name is not UTF-8: 'a\\377'"));
  EXPECT_THAT(ParseGraphDefText("node { input: 'a' input: 'a\\377' }"),
              StatusIs(kInvalidArgument, HasSubstr("node[0].input[1] is not UTF-8: 'a\\377'")));
  EXPECT_THAT(ParseGraphDefText("node { attr { key: '\\377' } }"),
              StatusIs(kInvalidArgument, HasSubstr("node[0].attr[0].key is not UTF-8")));
  EXPECT_THAT(
      ParseGraphDefText("node { attr { key: 'T' value { i: 1 } } attr { key: 'T' } }"),
      StatusIs(kInvalidArgument, HasSubstr("in node[0].attr['T']: the map has this key twice")));
  GRADFLOW_EXPECT_OK(
      ParseGraphDefText("node { attr { key: 'T' value { s: '\\377' } } attr { key: 'U' } }"));
}

}  // namespace
}  // namespace gradflow
