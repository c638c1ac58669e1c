#include "gradflow/graph/wire_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using namespace std::string_literals;  // NOLINT: for bytes that include zeros
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

std::string LengthField(int number, absl::string_view content) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t length = content.size();
  for (; length >= 0x80; length >>= 7) bytes.push_back(static_cast<char>(length | 0x80));
  bytes.push_back(static_cast<char>(length));
  return absl::StrCat(bytes, content);
}

// The location of a map in a GraphDef: the fields that enclose its entries, innermost first.
struct MapPath {
  std::vector<int> fields;
  size_t (*size)(const GraphDef& graph);
};
const MapPath& AttrsOfNode() {  // map<string, AttrValue>
  static const auto& path =
      *new MapPath{{5, 1}, [](const GraphDef& graph) { return graph.node(0).attr().size(); }};
  return path;
}
const MapPath& AttrsOfArguments() {  // map<uint32, ArgAttrs>
  static const auto& path = *new MapPath{{7, 1, 2}, [](const GraphDef& graph) {
                                           return graph.library().function(0).arg_attr().size();
                                         }};
  return path;
}
const MapPath& Traces() {  // map<fixed64, StackTrace>
  static const auto& path = *new MapPath{
      {6, 5}, [](const GraphDef& graph) { return graph.debug_info().traces_by_id().size(); }};
  return path;
}

std::string GraphWithMap(const MapPath& path, const std::vector<std::string>& entries) {
  std::string bytes;
  for (const std::string& entry : entries) bytes += LengthField(path.fields[0], entry);
  for (size_t i = 1; i < path.fields.size(); ++i) bytes = LengthField(path.fields[i], bytes);
  return bytes;
}

struct MapCase {
  const char* name;
  const MapPath& path;
  std::vector<std::string> entries;
  // The path of the duplicate key, or "" if all keys differ.
  std::string place;
};

std::vector<MapCase> MapCases() {
  const MapPath& attrs = AttrsOfNode();
  const MapPath& args = AttrsOfArguments();
  const MapPath& traces = Traces();
  const std::string t = "\x0a\x01T";
  const std::string u = "\x0a\x01U";
  const std::string value = "\x12\x02\x30\x01";
  const std::string id = "\x09\x07\0\0\0\0\0\0\0"s;
  const std::string other_id = "\x09\x07\0\0\0\0\0\0\x80"s;
  return {
      {"keys of text", attrs, {t, u}, ""},
      {"a key of text twice", attrs, {t + value, u, t}, "node[0].attr['T']"},
      {"no key is the empty key", attrs, {value, "\x0a\0"s}, "node[0].attr['']"},
      {"behind the value", attrs, {value + t, t + value}, "node[0].attr['T']"},
      {"the last key counts", attrs, {u + t, t}, "node[0].attr['T']"},
      {"also behind the value", attrs, {t + value + u, t}, ""},
      {"a tag of two bytes", attrs, {"\x8a\0\x01T"s, t}, "node[0].attr['T']"},
      {"a length of two bytes", attrs, {"\x0a\x81\0T"s, t}, "node[0].attr['T']"},
      // Unknown fields of an entry.
      {"a varint", attrs, {t, "\x18\x01" + t}, "node[0].attr['T']"},
      {"four bytes", attrs, {t + value, "\x1d\x01\x02\x03\x04" + t + value}, "node[0].attr['T']"},
      {"four bytes before different keys", attrs, {"\x1dTTTT" + t, "\x1dTTTT" + u}, ""},
      {"eight bytes", attrs, {t, "\x19TTTTTTTT" + t}, "node[0].attr['T']"},
      {"eight bytes before different keys", attrs, {"\x19TTTTTTTT" + t, "\x19TTTTTTTT" + u}, ""},
      {"text", attrs, {t, "\x1a\x01U" + t}, "node[0].attr['T']"},
      {"a group", attrs, {t, "\x1b\x1c" + t}, "node[0].attr['T']"},
      {"a group with a key", attrs, {t, t + "\x1b" + u + "\x1c"}, "node[0].attr['T']"},
      {"groups with keys",
       attrs,
       {t, t + "\x1b\x23" + u + "\x24" + u + "\x1c"},
       "node[0].attr['T']"},
      {"a group of the key's number", attrs, {t, t + "\x0b" + u + "\x0c"}, "node[0].attr['T']"},
      {"groups before different keys", attrs, {"\x1b\x1c" + t, "\x1b\x1c" + u}, ""},
      // The field number of the key, with another wire type.
      {"a varint for text", attrs, {t, t + "\x08\x05"}, "node[0].attr['T']"},
      {"a varint for no text", attrs, {"\x08\x05", "\x08\x06"}, "node[0].attr['']"},
      {"four bytes for text", attrs, {t, t + "\x0dUUUU"}, "node[0].attr['T']"},
      {"eight bytes for text", attrs, {t, t + "\x09UUUUUUUU"}, "node[0].attr['T']"},
      {"text for a varint", args, {"\x08\x01", "\x08\x01" + t}, "library.function[0].arg_attr[1]"},
      {"four bytes for a varint",
       args,
       {"\x08\x01", "\x08\x01\x0d\x02\0\0\0"s},
       "library.function[0].arg_attr[1]"},
      {"a varint for eight bytes", traces, {id, id + "\x08\x08"}, "debug_info.traces_by_id[7]"},
      {"text for eight bytes", traces, {id, id + t}, "debug_info.traces_by_id[7]"},
      // Numbers.
      {"numbers", args, {"\x08\x01", "\x08\x02", "\x08\x81\x01"}, ""},
      {"a number twice",
       args,
       {"\x08\x01", "\x08\x02", "\x08\x01"},
       "library.function[0].arg_attr[1]"},
      {"a number in more bytes",
       args,
       {"\x08\x01", "\x08\x81\0"s},
       "library.function[0].arg_attr[1]"},
      {"a number with more bits",
       args,
       {"\x08\x01", "\x08\x81\x80\x80\x80\x10"},
       "library.function[0].arg_attr[1]"},
      {"no number is 0", args, {"", "\x08\0"s}, "library.function[0].arg_attr[0]"},
      {"0 in more bytes", args, {"\x08\0"s, "\x08\x80\0"s}, "library.function[0].arg_attr[0]"},
      {"the last number counts", args, {"\x08\x01\x08\x02", "\x08\x01"}, ""},
      {"numbers of eight bytes", traces, {id, other_id}, ""},
      {"a number of eight bytes twice", traces, {id, other_id, id}, "debug_info.traces_by_id[7]"},
      {"no number of eight bytes is 0",
       traces,
       {"", "\x09\0\0\0\0\0\0\0\0"s},
       "debug_info.traces_by_id[0]"},
  };
}

// Keys are equal if protobuf treats them as equal.
TEST(WireCheck, KeysOfMapsMustDiffer) {
  for (const MapCase& test : MapCases()) {
    SCOPED_TRACE(test.name);
    const std::string bytes = GraphWithMap(test.path, test.entries);
    GraphDef graph;
    ASSERT_TRUE(graph.ParseFromString(bytes));
    EXPECT_EQ(test.path.size(graph) == test.entries.size(), test.place.empty());
    const absl::StatusOr<GraphDef> parsed = ParseGraphDef(bytes);
    if (test.place.empty()) {
      GRADFLOW_EXPECT_OK(parsed);
    } else {
      EXPECT_THAT(
          parsed,
          StatusIs(kInvalidArgument,
                   HasSubstr(absl::StrCat(", in ", test.place, ": the map has this key twice"))));
    }
  }
}

// More keys than a linear search handles.
TEST(WireCheck, FindsDuplicatesAmongManyKeys) {
  for (const MapPath& path : {AttrsOfNode(), AttrsOfArguments(), Traces()}) {
    std::vector<std::string> entries;
    for (int i = 0; i < 100; ++i) {
      const std::string byte(1, static_cast<char>(i));
      entries.push_back(absl::StrCat("\x0a\x01", byte, "\x08", byte, "\x09TTTTTTT", byte));
    }
    GRADFLOW_EXPECT_OK(ParseGraphDef(GraphWithMap(path, entries)));
    // Also finds duplicates of the first keys, which were added while the map was small.
    for (const int i : {0, 7, 15, 16, 17, 50, 99}) {
      entries.push_back(entries[i]);
      EXPECT_THAT(ParseGraphDef(GraphWithMap(path, entries)),
                  StatusIs(kInvalidArgument, HasSubstr("]: the map has this key twice")))
          << i;
      entries.pop_back();
    }
  }
}

// A linear search for each key would take quadratic time.
TEST(WireCheck, AcceptsMapsOfVeryManyKeys) {
  GraphDef graph;
  auto& attrs = *graph.mutable_library()->add_function()->mutable_arg_attr();
  for (uint32_t i = 0; i < 200000; ++i) attrs[i];
  GRADFLOW_EXPECT_OK(ParseGraphDef(graph.SerializeAsString()));
}

// The key of a truncated entry is the last key before its end.
TEST(WireCheck, TruncatedEntriesHaveTheirFirstKey) {
  const std::string t = "\x0a\x01T";
  for (const std::string& end : {"\x12"s, "\x12\x01"s, "\x0a\x05U"s, "\x1d\x01"s, "\x19\x01"s,
                                 "\x18\xff"s, "\x1b"s, "\x1c"s, "\x1e"s, "\xff"s}) {
    EXPECT_THAT(ParseGraphDef(GraphWithMap(AttrsOfNode(), {t + end})),
                StatusIs(kInvalidArgument, HasSubstr(", in node[0].attr['T']")))
        << end;
  }
}

}  // namespace
}  // namespace gradflow
