// Tests that the messages and their bytes follow tests/data/wire_format.txt.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "gmock/gmock.h"
#include "gradflow/proto/api_def.pb.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/data_type.h"
#include "gradflow/proto/device_attributes.pb.h"
#include "gradflow/proto/event.pb.h"
#include "gradflow/proto/example.pb.h"
#include "gradflow/proto/fingerprint.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/kernel_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/proto/queue_runner.pb.h"
#include "gradflow/proto/saved_model.pb.h"
#include "gradflow/proto/saved_tensor_slice.pb.h"
#include "gradflow/proto/tensor_bundle.pb.h"
#include "gradflow/proto/types.pb.h"
#include "gtest/gtest.h"
#include "tests/proto/wire_reader.h"

namespace gradflow::testing {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::DescriptorPool;
using ::google::protobuf::EnumDescriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::FileDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::Reflection;
using ::google::protobuf::TextFormat;
using ::google::protobuf::util::MessageDifferencer;
using ::testing::Contains;
using ::testing::Key;

const WireTable& Table() {
  static const auto* const table =
      new WireTable(ReadWireTable(GRADFLOW_TEST_DATA_DIR "/wire_format.txt"));
  return *table;
}

constexpr char kPackage[] = "gradflow.";

// "gradflow.AttrValue.ListValue" -> "AttrValue.ListValue". Names of other packages stay.
std::string WithoutPackage(const std::string& name) {
  return name.rfind(kPackage, 0) == 0 ? name.substr(std::string(kPackage).size()) : name;
}

// Returns the message with a name from the table, or null.
const Descriptor* FindMessage(const std::string& name) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const Descriptor* message = pool.FindMessageTypeByName(kPackage + name);
  return message != nullptr ? message : pool.FindMessageTypeByName(name);
}

std::string TypeName(const FieldDescriptor& field) {
  if (field.message_type() != nullptr) return WithoutPackage(field.message_type()->full_name());
  if (field.enum_type() != nullptr) return WithoutPackage(field.enum_type()->full_name());
  return field.type_name();
}

// Returns the row of the table for `field`.
WireField ToRow(const FieldDescriptor& field) {
  WireField row;
  row.number = field.number();
  row.name = field.name();
  row.packed = field.is_packed();
  row.deprecated = field.options().deprecated();
  if (field.real_containing_oneof() != nullptr) row.oneof = field.real_containing_oneof()->name();
  if (field.is_map()) {
    row.map_key = TypeName(*field.message_type()->map_key());
    row.type = TypeName(*field.message_type()->map_value());
  } else {
    row.repeated = field.is_repeated();
    row.type = TypeName(field);
  }
  return row;
}

std::string ToString(const WireField& row) {
  std::string text = std::to_string(row.number) + " " + row.name;
  if (row.repeated) text += " repeated";
  text += row.map_key.empty() ? " " + row.type : " map<" + row.map_key + ", " + row.type + ">";
  if (!row.oneof.empty()) text += " oneof " + row.oneof;
  if (row.packed) text += " [packed]";
  if (row.deprecated) text += " [deprecated]";
  return text;
}

// Adds the full names of `message` and of all types nested in it.
void AddNames(const Descriptor* message, std::set<std::string>& messages,
              std::set<std::string>& enums) {
  messages.insert(WithoutPackage(message->full_name()));
  for (int i = 0; i < message->enum_type_count(); ++i) {
    enums.insert(WithoutPackage(message->enum_type(i)->full_name()));
  }
  for (int i = 0; i < message->nested_type_count(); ++i) {
    if (message->nested_type(i)->options().map_entry()) continue;
    AddNames(message->nested_type(i), messages, enums);
  }
}

// Adds the full names in `file` and in its imports.
void AddNames(const FileDescriptor* file, std::set<std::string>& messages,
              std::set<std::string>& enums) {
  for (int i = 0; i < file->dependency_count(); ++i) {
    AddNames(file->dependency(i), messages, enums);
  }
  for (int i = 0; i < file->enum_type_count(); ++i) {
    enums.insert(WithoutPackage(file->enum_type(i)->full_name()));
  }
  for (int i = 0; i < file->message_type_count(); ++i) {
    AddNames(file->message_type(i), messages, enums);
  }
}

TEST(WireFormat, ReadsTheTable) {
  ASSERT_EQ(Table().error, "");
  EXPECT_THAT(Table().messages, Contains(Key("OpDef.ArgDef")));
  EXPECT_THAT(Table().enums, Contains(Key("DataType")));
}

TEST(WireFormat, MessagesAndEnumsMatchTheTable) {
  std::set<std::string> messages;
  std::set<std::string> enums;
  AddNames(GraphDef::descriptor()->file(), messages, enums);
  AddNames(ApiDefs::descriptor()->file(), messages, enums);
  AddNames(ConfigProto::descriptor()->file(), messages, enums);
  AddNames(SavedModel::descriptor()->file(), messages, enums);
  AddNames(FingerprintDef::descriptor()->file(), messages, enums);
  AddNames(Example::descriptor()->file(), messages, enums);
  AddNames(BundleEntryProto::descriptor()->file(), messages, enums);
  AddNames(KernelDef::descriptor()->file(), messages, enums);
  AddNames(DeviceAttributes::descriptor()->file(), messages, enums);
  AddNames(SavedTensorSlices::descriptor()->file(), messages, enums);
  AddNames(Event::descriptor()->file(), messages, enums);
  AddNames(QueueRunnerDef::descriptor()->file(), messages, enums);
  std::set<std::string> expected_messages;
  for (const auto& [name, fields] : Table().messages) expected_messages.insert(name);
  std::set<std::string> expected_enums;
  for (const auto& [name, values] : Table().enums) expected_enums.insert(name);
  EXPECT_EQ(messages, expected_messages);
  EXPECT_EQ(enums, expected_enums);
}

TEST(WireFormat, FieldsMatchTheTable) {
  for (const auto& [name, fields] : Table().messages) {
    const Descriptor* message = FindMessage(name);
    ASSERT_NE(message, nullptr) << name;
    std::set<std::string> expected;
    for (const WireField& field : fields) expected.insert(ToString(field));
    std::set<std::string> actual;
    for (int i = 0; i < message->field_count(); ++i) {
      actual.insert(ToString(ToRow(*message->field(i))));
    }
    EXPECT_EQ(actual, expected) << name;
  }
}

TEST(WireFormat, EnumValuesMatchTheTable) {
  for (const auto& [name, values] : Table().enums) {
    const EnumDescriptor* descriptor =
        DescriptorPool::generated_pool()->FindEnumTypeByName("gradflow." + name);
    ASSERT_NE(descriptor, nullptr) << name;
    std::map<std::string, int> actual;
    for (int i = 0; i < descriptor->value_count(); ++i) {
      actual[descriptor->value(i)->name()] = descriptor->value(i)->number();
    }
    EXPECT_EQ(actual, values) << name;
  }
}

// Adds every value of `message` under `prefix`, in the form of WireMessage::values.
void Flatten(const Message& message, const std::string& prefix,
             std::map<std::string, std::string>& values);

// Adds one value of a field. `index` is the position in a repeated field, or -1.
void FlattenValue(const Message& message, const FieldDescriptor* field, int index,
                  const std::string& path, std::map<std::string, std::string>& values) {
  const Reflection& r = *message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      values[path] = "{}";
      Flatten(one ? r.GetMessage(message, field) : r.GetRepeatedMessage(message, field, index),
              path + ".", values);
      break;
    case FieldDescriptor::CPPTYPE_STRING:
      values[path] = one ? r.GetString(message, field) : r.GetRepeatedString(message, field, index);
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      values[path] = std::to_string(one ? r.GetEnumValue(message, field)
                                        : r.GetRepeatedEnumValue(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      values[path] = std::to_string(static_cast<int>(
          one ? r.GetBool(message, field) : r.GetRepeatedBool(message, field, index)));
      break;
    case FieldDescriptor::CPPTYPE_INT32:
      values[path] = std::to_string(one ? r.GetInt32(message, field)
                                        : r.GetRepeatedInt32(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      values[path] = std::to_string(one ? r.GetInt64(message, field)
                                        : r.GetRepeatedInt64(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      values[path] = std::to_string(one ? r.GetUInt32(message, field)
                                        : r.GetRepeatedUInt32(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      values[path] = std::to_string(one ? r.GetUInt64(message, field)
                                        : r.GetRepeatedUInt64(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
      values[path] =
          WireNumber(one ? r.GetFloat(message, field) : r.GetRepeatedFloat(message, field, index));
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      values[path] = WireNumber(one ? r.GetDouble(message, field)
                                    : r.GetRepeatedDouble(message, field, index));
      break;
  }
}

void Flatten(const Message& message, const std::string& prefix,
             std::map<std::string, std::string>& values) {
  const Reflection& r = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    if (!field->is_repeated()) {
      FlattenValue(message, field, -1, path, values);
      continue;
    }
    for (int i = 0; i < r.FieldSize(message, field); ++i) {
      if (field->is_map()) {
        const Message& entry = r.GetRepeatedMessage(message, field, i);
        std::map<std::string, std::string> key;
        FlattenValue(entry, field->message_type()->map_key(), -1, "key", key);
        FlattenValue(entry, field->message_type()->map_value(), -1, path + "[" + key["key"] + "]",
                     values);
      } else {
        FlattenValue(message, field, i, path + "[" + std::to_string(i) + "]", values);
      }
    }
  }
}

// Sets every field of `message`, and of nested messages down to `depth`, to distinct values that
// use every byte of their type.
void FillIn(Message& message, int depth, int& counter) {
  const Reflection& r = *message.GetReflection();
  const Descriptor& descriptor = *message.GetDescriptor();
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const FieldDescriptor* field = descriptor.field(f);
    // One field of each oneof, in turn.
    if (const auto* oneof = field->real_containing_oneof()) {
      if (field->index_in_oneof() != counter % oneof->field_count()) continue;
    }
    for (int i = 0; i < (field->is_repeated() ? 2 : 1); ++i) {
      const bool add = field->is_repeated();
      const int n = ++counter;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth > 0) {
            FillIn(add ? *r.AddMessage(&message, field) : *r.MutableMessage(&message, field),
                   depth - 1, counter);
          }
          break;
        case FieldDescriptor::CPPTYPE_STRING: {
          std::string value = "s" + std::to_string(n);
          if (field->type() == FieldDescriptor::TYPE_BYTES) value += std::string("\0\xff", 2);
          add ? r.AddString(&message, field, value) : r.SetString(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_ENUM:
          add ? r.AddEnumValue(&message, field, n) : r.SetEnumValue(&message, field, n);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          add ? r.AddBool(&message, field, i == 0) : r.SetBool(&message, field, true);
          break;
        case FieldDescriptor::CPPTYPE_INT32: {
          const int value = std::numeric_limits<int>::min() + n;
          add ? r.AddInt32(&message, field, value) : r.SetInt32(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_INT64: {
          const int64_t value = std::numeric_limits<int64_t>::min() + n;
          add ? r.AddInt64(&message, field, value) : r.SetInt64(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_UINT32: {
          const uint32_t value = std::numeric_limits<uint32_t>::max() - n;
          add ? r.AddUInt32(&message, field, value) : r.SetUInt32(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_UINT64: {
          const uint64_t value = std::numeric_limits<uint64_t>::max() - n;
          add ? r.AddUInt64(&message, field, value) : r.SetUInt64(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_FLOAT: {
          const float value = static_cast<float>(n) / -3.0f;
          add ? r.AddFloat(&message, field, value) : r.SetFloat(&message, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_DOUBLE: {
          const double value = n / 3.0;
          add ? r.AddDouble(&message, field, value) : r.SetDouble(&message, field, value);
          break;
        }
      }
    }
  }
}

// Expects that DecodeWire reads the values of `message` from its bytes.
void ExpectBytesHoldValues(const Message& message) {
  std::map<std::string, std::string> expected;
  Flatten(message, "", expected);
  ASSERT_EQ(expected.empty(), message.GetDescriptor()->field_count() == 0);
  const WireMessage decoded = DecodeWire(
      Table(), WithoutPackage(message.GetDescriptor()->full_name()), message.SerializeAsString());
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.values, expected);
}

TEST(WireFormat, BytesHoldEveryFieldOfAGraph) {
  GraphDef graph;
  int counter = 0;
  FillIn(graph, 6, counter);
  EXPECT_GT(counter, 1000);
  ExpectBytesHoldValues(graph);
}

TEST(WireFormat, BytesHoldEveryFieldOfEveryMessage) {
  for (const auto& [name, fields] : Table().messages) {
    const Descriptor* descriptor = FindMessage(name);
    ASSERT_NE(descriptor, nullptr) << name;
    const Message* prototype =
        ::google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor);
    // Each start selects another field of every oneof.
    for (int start = 0; start < 10; ++start) {
      SCOPED_TRACE(name);
      std::unique_ptr<Message> message(prototype->New());
      int counter = start;
      FillIn(*message, 2, counter);
      ExpectBytesHoldValues(*message);
    }
  }
}

TEST(WireFormat, BytesHoldAGraph) {
  GraphDef graph;
  ASSERT_TRUE(
      TextFormat::ParseFromString(R"pb(
                                    node {
                                      name: "c"
                                      op: "Const"
                                      attr {
                                        key: "dtype"
                                        value { type: DT_FLOAT }
                                      }
                                      attr {
                                        key: "value"
                                        value {
                                          tensor {
                                            dtype: DT_FLOAT
                                            tensor_shape {
                                              dim { size: 2 }
                                              dim { size: -1 }
                                            }
                                            float_val: 1.5
                                            float_val: -inf
                                          }
                                        }
                                      }
                                    }
                                    node {
                                      name: "id"
                                      op: "IdentityN"
                                      input: "c"
                                      input: "^c"
                                      attr {
                                        key: "T"
                                        value { list { type: DT_FLOAT type: DT_HALF } }
                                      }
                                      attr {
                                        key: "empty"
                                        value { list {} }
                                      }
                                    }
                                    versions { producer: 2000 bad_consumers: 7 bad_consumers: 8 }
                                    library {
                                      function {
                                        signature { name: "f" }
                                        ret { key: "y" value: "id:output:0" }
                                      }
                                    }
                                  )pb",
                                  &graph));
  WireMessage decoded = DecodeWire(Table(), "GraphDef", graph.SerializeAsString());
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.values["node[0].attr[value].tensor.tensor_shape.dim[1].size"], "-1");
  EXPECT_EQ(decoded.values["node[0].attr[value].tensor.float_val[0]"], "1.5");
  EXPECT_EQ(decoded.values["node[0].attr[value].tensor.float_val[1]"], "-inf");
  EXPECT_EQ(decoded.values["node[1].input[1]"], "^c");
  EXPECT_EQ(decoded.values["node[1].attr[T].list.type[1]"], "19");
  EXPECT_EQ(decoded.values["node[1].attr[empty].list"], "{}");
  EXPECT_EQ(decoded.values["versions.bad_consumers[1]"], "8");
  EXPECT_EQ(decoded.values["library.function[0].ret[y]"], "id:output:0");
  ExpectBytesHoldValues(graph);
}

TEST(WireFormat, ReaderRefusesOtherBytes) {
  EXPECT_NE(DecodeWire(Table(), "GraphDef", "\x0a\x7f").error, "");    // a length past the end
  EXPECT_NE(DecodeWire(Table(), "GraphDef", "\x80").error, "");        // half a tag
  EXPECT_NE(DecodeWire(Table(), "VersionDef", "\x18\x07").error, "");  // not packed
}

TEST(WireFormat, UnknownEnumNumbersSurvive) {
  GraphDef graph;
  NodeDef& node = *graph.add_node();
  (*node.mutable_attr())["T"].set_type(static_cast<DataType>(77));
  (*node.mutable_attr())["Ts"].mutable_list()->add_type(static_cast<DataType>(1077));
  node.mutable_experimental_type()->set_type_id(static_cast<FullTypeId>(1004));
  const std::string bytes = graph.SerializeAsString();

  GraphDef read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(static_cast<int>(read.node(0).attr().at("T").type()), 77);
  EXPECT_EQ(static_cast<int>(read.node(0).attr().at("Ts").list().type(0)), 1077);
  EXPECT_EQ(static_cast<int>(read.node(0).experimental_type().type_id()), 1004);
  EXPECT_TRUE(MessageDifferencer::Equals(read, graph));

  std::string text;
  ASSERT_TRUE(TextFormat::PrintToString(graph, &text));
  GraphDef read_text;
  ASSERT_TRUE(TextFormat::ParseFromString(text, &read_text)) << text;
  EXPECT_TRUE(MessageDifferencer::Equals(read_text, graph));
}

TEST(WireFormat, UnknownFieldsSurvive) {
  GraphDef graph;
  graph.add_node()->set_name("n");
  const auto add_unknown = [](Message& message) {
    ::google::protobuf::UnknownFieldSet& unknown =
        *message.GetReflection()->MutableUnknownFields(&message);
    unknown.AddVarint(1001, 5);
    unknown.AddFixed64(1002, 6);
    unknown.AddFixed32(1003, 7);
    unknown.AddLengthDelimited(1004, "later");
  };
  add_unknown(graph);
  add_unknown(*graph.mutable_node(0));
  add_unknown((*graph.mutable_node(0)->mutable_attr())["a"]);
  const std::string bytes = graph.SerializeAsString();

  GraphDef read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(read.SerializeAsString(), bytes);
  WireMessage decoded = DecodeWire(Table(), "GraphDef", read.SerializeAsString());
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.values["?1004"], "later");
  EXPECT_EQ(decoded.values["node[0].?1004"], "later");
  EXPECT_EQ(decoded.values["node[0].attr[a].?1004"], "later");
}

TEST(WireFormat, ZeroAndAbsentDifferInDebugInfo) {
  GraphDebugInfo info;
  info.add_files("main.py");
  auto& frame = (*info.mutable_frames_by_id())[7];
  frame.set_file_index(0);
  GraphDebugInfo read;
  ASSERT_TRUE(read.ParseFromString(info.SerializeAsString()));
  EXPECT_TRUE(read.frames_by_id().at(7).has_file_index());
  EXPECT_FALSE(read.frames_by_id().at(7).has_line());
}

TEST(DataTypeHeader, MatchesTheEnumOfTheMessages) {
  static_assert(std::is_same_v<decltype(SerializedDType().datatype()), DataType>);
  static_assert(std::is_same_v<std::underlying_type_t<DataType>, int>);
  static_assert(DT_FLOAT == 1 && DT_HALF == 19 && DT_UINT2_REF == 132);
  const EnumDescriptor* descriptor = DataType_descriptor();
  ASSERT_EQ(descriptor->full_name(), "gradflow.DataType");
  // DataType_Name uses the constants of the header, and the descriptor uses the constants of the
  // file.
  EXPECT_EQ(DataType_Name(DT_BFLOAT16), "DT_BFLOAT16");
  EXPECT_EQ(descriptor->FindValueByName("DT_BFLOAT16")->number(), DT_BFLOAT16);
}

}  // namespace
}  // namespace gradflow::testing
