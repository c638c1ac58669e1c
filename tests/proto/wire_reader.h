// An independent reader of the Protocol Buffers wire format, to check the bytes that gradflow
// writes. The messages are defined by the table in tests/data/wire_format.txt.
//
//   WireTable table = ReadWireTable(GRADFLOW_TEST_DATA_DIR "/wire_format.txt");
//   WireMessage graph = DecodeWire(table, "GraphDef", bytes);
//   EXPECT_EQ(graph.error, "");
//   EXPECT_EQ(graph.values["node[0].attr[T].type"], "1");
#ifndef GRADFLOW_TESTS_PROTO_WIRE_READER_H_
#define GRADFLOW_TESTS_PROTO_WIRE_READER_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradflow::testing {

// A row of the table: "2 dim repeated TensorShapeProto.Dim".
struct WireField {
  int number = 0;
  std::string name;
  std::string type;     // "int32", a message, an enum, or the type of a map's values
  std::string map_key;  // the type of a map's keys, or empty
  std::string oneof;    // the name of the oneof that the field is in, or empty
  bool repeated = false;
  bool packed = false;
  bool deprecated = false;
};

struct WireTable {
  // Keyed by full name without the package: "AttrValue.ListValue".
  std::map<std::string, std::vector<WireField>> messages;
  std::map<std::string, std::map<std::string, int>> enums;
  // The error of the file, or empty.
  std::string error;
};

WireTable ReadWireTable(const std::string& path);

struct WireMessage {
  // All values, by path, such as "node[0].attr[T].list.i[2]": repeated fields have indices, maps
  // have keys, and unknown fields have their number ("?99"). Numbers and enums are decimal with as
  // many digits as needed, bools are "0" or "1", strings and bytes are literal. Messages are "{}",
  // so that empty ones are included.
  std::map<std::string, std::string> values;
  // The error of the bytes, or empty.
  std::string error;
};

// Decodes `bytes` as the message `message` of the table. Fields must be packed if and only if the
// table says so.
WireMessage DecodeWire(const WireTable& table, const std::string& message, std::string_view bytes);

// Returns the text of a number in `WireMessage::values`.
std::string WireNumber(double value);
std::string WireNumber(float value);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_PROTO_WIRE_READER_H_
