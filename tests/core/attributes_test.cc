#include "gradflow/core/attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/core/shorthands.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FromText;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

Tensor Vector(std::initializer_list<float> values) {
  Tensor tensor(DT_FLOAT, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<float>().begin());
  return tensor;
}

// ---- Reading and writing ----

// Writes a Written and expects that Read() returns an equal value.
template <typename Read, typename Written>
Read WriteAndRead(const Written& value) {
  NodeDef node;
  AddNodeAttr("a", value, &node);
  Read read{};
  GRADFLOW_EXPECT_OK(GetNodeAttr(node, "a", &read));
  return read;
}

TEST(NodeAttr, ReadsWrittenValues) {
  EXPECT_EQ(WriteAndRead<std::string>("text"), "text");
  EXPECT_EQ(WriteAndRead<std::string>(absl::string_view("view")), "view");
  EXPECT_EQ(WriteAndRead<std::string>(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(WriteAndRead<int64_t>(int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(WriteAndRead<int64_t>(-7), -7);
  EXPECT_EQ(WriteAndRead<int32_t>(-7), -7);
  EXPECT_EQ(WriteAndRead<float>(1.5f), 1.5f);
  EXPECT_EQ(WriteAndRead<float>(0.1), 0.1f);
  EXPECT_EQ(WriteAndRead<bool>(true), true);
  EXPECT_EQ(WriteAndRead<DataType>(DT_HALF), DT_HALF);
  EXPECT_EQ(WriteAndRead<TensorShape>(TensorShape({2, 3})), TensorShape({2, 3}));
  EXPECT_EQ(WriteAndRead<PartialTensorShape>(TensorShape({2, 3})), PartialTensorShape({2, 3}));
  EXPECT_EQ(WriteAndRead<PartialTensorShape>(PartialTensorShape({2, -1})),
            PartialTensorShape({2, -1}));
  EXPECT_EQ(WriteAndRead<PartialTensorShape>(PartialTensorShape()), PartialTensorShape());
  EXPECT_EQ(WriteAndRead<Tensor>(Vector({1, 2})).DebugString(), Vector({1, 2}).DebugString());
}

TEST(NodeAttr, ReadsWrittenLists) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(WriteAndRead<Strings>(Strings{"a", "b"}), (Strings{"a", "b"}));
  EXPECT_EQ(WriteAndRead<Strings>(std::vector<absl::string_view>{"a", "b"}), (Strings{"a", "b"}));
  EXPECT_EQ(WriteAndRead<std::vector<int64_t>>(std::vector<int64_t>{1, -2}),
            (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(WriteAndRead<std::vector<int32_t>>(std::vector<int32_t>{1, -2}),
            (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(WriteAndRead<std::vector<float>>(std::vector<float>{1, 2.5}),
            (std::vector<float>{1, 2.5}));
  EXPECT_EQ(WriteAndRead<std::vector<bool>>(std::vector<bool>{true, false}),
            (std::vector<bool>{true, false}));
  const bool bools[] = {false, true};
  EXPECT_EQ(WriteAndRead<std::vector<bool>>(absl::MakeConstSpan(bools)),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(WriteAndRead<DataTypeVector>(DataTypeVector{DT_INT8, DT_STRING}),
            (DataTypeVector{DT_INT8, DT_STRING}));
  const std::vector<PartialTensorShape> shapes = {PartialTensorShape(), {2, -1}};
  EXPECT_EQ(WriteAndRead<std::vector<PartialTensorShape>>(shapes), shapes);
  const auto tensors =
      WriteAndRead<std::vector<Tensor>>(std::vector<Tensor>{Vector({1}), Tensor(int32_t{5})});
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].vec<float>()(0), 1);
  EXPECT_EQ(tensors[1].scalar<int32_t>()(), 5);
}

TEST(NodeAttr, ReadsFunctionsThatWereWritten) {
  NameAttrList f;
  f.set_name("f");
  SetAttrValue(3, &(*f.mutable_attr())["n"]);
  const NameAttrList read = WriteAndRead<NameAttrList>(f);
  EXPECT_EQ(read.name(), "f");
  EXPECT_EQ(read.attr().at("n").i(), 3);
  const auto list = WriteAndRead<std::vector<NameAttrList>>(std::vector<NameAttrList>{f, f});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[1].name(), "f");
  NodeDef node;
  AddNodeAttr("a", 1, &node);
  NameAttrList none;
  EXPECT_THAT(GetNodeAttr(node, "a", &none),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "attribute a: expected func, but found 1 (int)"));
}

TEST(NodeAttr, ReadsAnEmptyListAsAnyList) {
  NodeDef node;
  AddNodeAttr("a", DataTypeVector(), &node);
  std::vector<std::string> strings = {"old"};
  std::vector<int64_t> ints = {1};
  GRADFLOW_EXPECT_OK(GetNodeAttr(node, "a", &strings));
  GRADFLOW_EXPECT_OK(GetNodeAttr(node, "a", &ints));
  EXPECT_TRUE(strings.empty());
  EXPECT_TRUE(ints.empty());
}

TEST(NodeAttr, ReplacesExistingValues) {
  AttrValue value;
  SetAttrValue(std::vector<int64_t>{1, 2}, &value);
  SetAttrValue(std::vector<float>{3}, &value);
  EXPECT_EQ(SummarizeAttrValue(value), "[3.0]");
  SetAttrValue(Vector({1, 2, 3}), &value);
  SetAttrValue(Tensor(int32_t{4}), &value);
  EXPECT_EQ(SummarizeAttrValue(value), "Tensor<type: int32 shape: [] values: 4>");
  SetAttrValue("text", &value);
  SetAttrValue(absl::string_view(value.s()).substr(2), &value);
  EXPECT_EQ(SummarizeAttrValue(value), "\"xt\"");
  const std::vector<absl::string_view> views = {value.s()};
  SetAttrValue(views, &value);
  EXPECT_EQ(SummarizeAttrValue(value), "[\"xt\"]");
  SetAttrValue(value, &value);
  EXPECT_EQ(SummarizeAttrValue(value), "[\"xt\"]");
}

TEST(NodeAttr, FindsAttributesByName) {
  NodeDef node;
  AddNodeAttr("a_name_too_long_to_be_kept_inside_of_a_string", 3, &node);
  const AttrValue* value = FindNodeAttr(node, "a_name_too_long_to_be_kept_inside_of_a_string");
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->i(), 3);
  EXPECT_EQ(FindNodeAttr(node, "a"), nullptr);
  EXPECT_EQ(FindNodeAttr(node, ""), nullptr);
}

// Reads the attribute "a", given as text `value`, as a T.
template <typename T>
absl::Status ReadAs(const std::string& value) {
  NodeDef node;
  (*node.mutable_attr())["a"] = FromText<AttrValue>(value);
  T read{};
  return GetNodeAttr(node, "a", &read);
}

TEST(NodeAttr, ReportsAMissingAttribute) {
  int64_t value = 0;
  EXPECT_THAT(GetNodeAttr(NodeDef(), "axis", &value),
              StatusIs(absl::StatusCode::kNotFound, "attribute axis is missing"));
}

TEST(NodeAttr, ReportsAnotherType) {
  EXPECT_THAT(ReadAs<std::string>("i: 3"),
              StatusIs(kInvalidArgument, "attribute a: expected string, but found 3 (int)"));
  EXPECT_THAT(ReadAs<int64_t>("f: 3"), StatusIs(kInvalidArgument, HasSubstr("3.0 (float)")));
  EXPECT_THAT(ReadAs<int32_t>("list { i: 3 }"), StatusIs(kInvalidArgument, HasSubstr("list(int)")));
  EXPECT_THAT(ReadAs<float>("i: 3"), StatusIs(kInvalidArgument, HasSubstr("expected float")));
  EXPECT_THAT(ReadAs<bool>("i: 1"), StatusIs(kInvalidArgument, HasSubstr("expected bool")));
  EXPECT_THAT(ReadAs<DataType>("i: 1"), StatusIs(kInvalidArgument, HasSubstr("expected type")));
  EXPECT_THAT(ReadAs<TensorShape>("i: 1"), StatusIs(kInvalidArgument, HasSubstr("expected shape")));
  EXPECT_THAT(ReadAs<PartialTensorShape>("i: 1"), StatusIs(kInvalidArgument, HasSubstr("shape")));
  EXPECT_THAT(ReadAs<Tensor>("i: 1"), StatusIs(kInvalidArgument, HasSubstr("expected tensor")));
  EXPECT_THAT(ReadAs<std::vector<int64_t>>("i: 1"),
              StatusIs(kInvalidArgument, HasSubstr("expected list(int), but found 1 (int)")));
  EXPECT_THAT(ReadAs<std::vector<std::string>>("list { i: 1 }"),
              StatusIs(kInvalidArgument, HasSubstr("list(string), but found [1] (list(int))")));
  EXPECT_THAT(ReadAs<std::vector<float>>("list { i: 1 }"), StatusIs(kInvalidArgument));
  EXPECT_THAT(ReadAs<std::vector<bool>>("list { i: 1 }"), StatusIs(kInvalidArgument));
  EXPECT_THAT(ReadAs<DataTypeVector>("list { type: 77 }"), StatusIs(kInvalidArgument));
  EXPECT_THAT(ReadAs<std::vector<PartialTensorShape>>("list { shape { dim { size: -2 } } }"),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(ReadAs<std::vector<Tensor>>("list { tensor {} }"), StatusIs(kInvalidArgument));
}

TEST(NodeAttr, ReportsIntsBeyond32Bits) {
  GRADFLOW_EXPECT_OK(ReadAs<int32_t>("i: -2147483648"));
  GRADFLOW_EXPECT_OK(ReadAs<int32_t>("i: 2147483647"));
  EXPECT_THAT(ReadAs<int32_t>("i: -2147483649"), StatusIs(kInvalidArgument));
  EXPECT_THAT(
      ReadAs<int32_t>("i: 2147483648"),
      StatusIs(kInvalidArgument, "attribute a: expected an int of 32 bits, but found 2147483648"));
  EXPECT_THAT(ReadAs<std::vector<int32_t>>("list { i: [ 1, -2147483649 ] }"),
              StatusIs(kInvalidArgument, HasSubstr("found -2147483649")));
}

TEST(NodeAttr, ReportsPartlyKnownShapes) {
  GRADFLOW_EXPECT_OK(ReadAs<TensorShape>("shape {}"));
  EXPECT_THAT(ReadAs<TensorShape>("shape { dim { size: -1 } }"),
              StatusIs(kInvalidArgument, HasSubstr("attribute a: ")));
  EXPECT_THAT(ReadAs<TensorShape>("shape { unknown_rank: true }"),
              StatusIs(kInvalidArgument, HasSubstr("rank is unknown")));
}

// ---- AttrValueHasType ----

TEST(AttrValueHasType, DistinguishesTypes) {
  const struct {
    const char* type;
    const char* value;
  } cases[] = {
      {"string", "s: 'x'"},
      {"int", "i: 1"},
      {"float", "f: 1"},
      {"bool", "b: true"},
      {"type", "type: DT_FLOAT"},
      {"shape", "shape { dim { size: -1 } }"},
      {"tensor", "tensor { dtype: DT_FLOAT tensor_shape {} }"},
      {"func", "func { name: 'F' attr { key: 'T' value { type: DT_FLOAT } } }"},
      {"list(string)", "list { s: 'x' }"},
      {"list(int)", "list { i: [ 1, 2 ] }"},
      {"list(float)", "list { f: 1 }"},
      {"list(bool)", "list { b: true }"},
      {"list(type)", "list { type: DT_FLOAT }"},
      {"list(shape)", "list { shape { unknown_rank: true } }"},
      {"list(tensor)", "list { tensor { dtype: DT_FLOAT tensor_shape {} } }"},
      {"list(func)", "list { func { name: 'F' } }"},
  };
  for (const auto& type : cases) {
    for (const auto& value : cases) {
      const absl::Status status = AttrValueHasType(FromText<AttrValue>(value.value), type.type);
      EXPECT_EQ(status.ok(), &type == &value) << type.type << ", " << value.value;
      if (!status.ok()) {
        EXPECT_THAT(status,
                    StatusIs(kInvalidArgument,
                             HasSubstr(absl::StrCat("expected ", type.type, ", but found"))));
        EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("(", value.type, ")")));
      }
    }
    const bool is_list = absl::string_view(type.type).substr(0, 4) == "list";
    EXPECT_EQ(AttrValueHasType(FromText<AttrValue>("list {}"), type.type).ok(), is_list)
        << type.type;
    EXPECT_THAT(AttrValueHasType(AttrValue(), type.type),
                StatusIs(kInvalidArgument, HasSubstr("but found no value")));
  }
}

TEST(AttrValueHasType, ChecksNestedValues) {
  std::string deep_function = "name: 'F'";
  for (int i = 0; i < 30; ++i) {
    deep_function = absl::StrCat("attr { key: 'f' value { func { ", deep_function, " } } }");
  }
  GRADFLOW_EXPECT_OK(
      AttrValueHasType(FromText<AttrValue>("func { " + deep_function + " }"), "func"));
  AttrValue too_deep;
  for (int i = 0; i < 100; ++i) {
    AttrValue outer;
    (*outer.mutable_func()->mutable_attr())["f"].Swap(&too_deep);
    too_deep.Swap(&outer);
  }
  EXPECT_THAT(AttrValueHasType(too_deep, "func"),
              StatusIs(kInvalidArgument, HasSubstr("nested deeper than 32")));

  const struct {
    const char* type;
    const char* value;
    const char* text;
  } cases[] = {
      {"int", "placeholder: 'x'", "expected int, but found $x (placeholder)"},
      {"list(int)", "list { i: 1 f: 2 }", "expected list(int)"},
      {"type", "type: DT_INVALID", "found DT_INVALID"},
      {"type", "type: 77", "found 77"},
      {"type", "type: -1", "found -1"},
      {"type", "type: DT_INT8_REF", "expected a non-reference type, but found DT_INT8_REF"},
      {"list(type)", "list { type: [ DT_FLOAT, 77 ] }", "found 77"},
      {"list(type)", "list { type: [ DT_FLOAT_REF ] }", "non-reference"},
      {"shape", "shape { dim { size: -2 } }", "-2"},
      {"shape", "shape { dim { size: 4294967296 } dim { size: 4294967296 } }", "fit in an int64"},
      {"list(shape)", "list { shape {} shape { dim { size: -2 } } }", "-2"},
      {"tensor", "tensor {}", ""},
      {"tensor", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: -1 } } }", ""},
      {"tensor", "tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: 'abc' }", ""},
      {"list(tensor)", "list { tensor { dtype: DT_FLOAT_REF tensor_shape {} } }", ""},
      {"func", "func { attr { key: 'T' value { type: 77 } } }", "found 77"},
      {"list(func)", "list { func { attr { key: 'T' value { list { type: 77 } } } } }", "found 77"},
      {"", "i: 1", "'' is not an attribute type"},
      {"Int", "i: 1", "'Int' is not an attribute type"},
      {"list(int", "list { i: 1 }", "is not an attribute type"},
      {"list(int", "i: 1", "is not an attribute type"},
      {"list(list(int))", "list { i: 1 }", "is not an attribute type"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(AttrValueHasType(FromText<AttrValue>(c.value), c.type),
                StatusIs(kInvalidArgument, HasSubstr(c.text)))
        << c.value;
  }
}

// ---- AreAttrValuesEqual ----

TEST(AreAttrValuesEqual, ComparesMeaning) {
  // Values are equal if and only if they are in the same group.
  const std::vector<std::vector<std::string>> groups = {
      {""},
      {"s: 'x'", "s: '\\x78'"},
      {"s: 'y'"},
      {"i: 1"},
      {"i: 2"},
      {"f: 1"},
      {"f: 0"},
      {"f: -0.0"},
      {"f: nan", "f: nan"},
      {"b: true"},
      {"b: false"},
      {"type: DT_FLOAT", "type: 1"},
      {"type: 77"},
      {"shape {}"},
      {"shape { unknown_rank: true }"},
      {"shape { dim { size: 2 } }", "shape { dim { size: 2 name: 'rows' } }"},
      {"shape { dim { size: -1 } }"},
      {"placeholder: 'x'"},
      {"placeholder: 'y'"},
      {"list {}"},
      {"list { s: 'x' }"},
      {"list { i: 1 }"},
      {"list { i: [ 1, 2 ] }"},
      {"list { f: [ 1, nan ] }", "list { f: [ 1, nan ] }"},
      {"list { b: true }"},
      {"list { type: DT_FLOAT }"},
      {"list { shape { dim { size: 2 } } }", "list { shape { dim { size: 2 name: 'rows' } } }"},
      {"list { func { name: 'F' } }"},
      {"func { name: 'F' }"},
      {"func { name: 'G' }"},
      {"func { name: 'F' attr { key: 'a' value { i: 1 } } attr { key: 'b' value { i: 2 } } }",
       "func { name: 'F' attr { key: 'b' value { i: 2 } } attr { key: 'a' value { i: 1 } } }"},
      {"func { name: 'F' attr { key: 'a' value { i: 1 } } attr { key: 'c' value { i: 2 } } }"},
      {"func { name: 'F' attr { key: 'a' value { i: 1 } } attr { key: 'b' value { i: 3 } } }"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 1 }",
       "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [ 1, 1 ] }",
       "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [ 1, 1, 1 ] }",
       "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: "
       "'\\000\\000\\200\\077\\000\\000\\200\\077\\000\\000\\200\\077' }"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [ 1, 2 ] }"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1 }"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } }",
       "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 0 }"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: -0.0 }"},
      {"tensor { dtype: DT_FLOAT tensor_shape {} float_val: nan }",
       "tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: '\\000\\000\\300\\177' }"},
      {"tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } }",
       "tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 name: 'x' } } }"},
      {"tensor { dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: [ 'a', 'b' ] }",
       "tensor { dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: [ 'a', 'b', 'b' ] "
       "}"},
      {"tensor { dtype: DT_COMPLEX64 tensor_shape { dim { size: 3 } } scomplex_val: [ 1, 2 ] }",
       "tensor { dtype: DT_COMPLEX64 tensor_shape { dim { size: 3 } } "
       "scomplex_val: [ 1, 2, 1, 2 ] }"},
      {"tensor { dtype: DT_COMPLEX64 tensor_shape { dim { size: 3 } } scomplex_val: [1, 2, 2, 1] "
       "}"},
      // Invalid values are equal if their bytes are equal.
      {"tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: 'abc' }",
       "tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: 'abc' }"},
      {"tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: 'abd' }"},
      {"list { tensor { dtype: DT_INT32 tensor_shape {} } }",
       "list { tensor { dtype: DT_INT32 tensor_shape {} int_val: 0 } }"},
  };
  for (const auto& group_a : groups) {
    for (const auto& group_b : groups) {
      for (const std::string& a : group_a) {
        for (const std::string& b : group_b) {
          EXPECT_EQ(AreAttrValuesEqual(FromText<AttrValue>(a), FromText<AttrValue>(b)),
                    &group_a == &group_b)
              << a << "\n"
              << b;
        }
      }
    }
  }
}

// ---- Every element type ----

TEST(AttrValues, HoldTensorsOfEveryType) {
  for (const DataType dtype : AllDataTypes()) {
    if (!DataTypeCanBeTensor(dtype)) continue;
    SCOPED_TRACE(DataTypeString(dtype));
    Tensor tensor(dtype, {2, 2});
    if (dtype == DT_STRING) {
      tensor.flat<tstring>()(1) = "x";
    } else if (DataTypeIsPlainBytes(dtype)) {
      char* bytes = static_cast<char*>(tensor.raw_data());
      std::fill(bytes, bytes + tensor.TotalBytes(), 0);
      bytes[0] = 1;
    }
    AttrValue encoded, spelled_out;
    SetAttrValue(tensor, &encoded);
    tensor.AsProtoField(spelled_out.mutable_tensor());
    GRADFLOW_EXPECT_OK(AttrValueHasType(encoded, "tensor"));
    EXPECT_TRUE(AreAttrValuesEqual(encoded, spelled_out));
    // Variants may hold large tensors.
    EXPECT_THAT(SummarizeAttrValue(encoded),
                HasSubstr(dtype == DT_VARIANT ? "shape: [2,2]>" : "shape: [2,2] values: "));
    AttrValue zeros;
    SetAttrValue(Tensor(dtype, {0}), &zeros);
    zeros.mutable_tensor()->clear_tensor_shape();
    PartialTensorShape({2, 2}).AsProto(zeros.mutable_tensor()->mutable_tensor_shape());
    EXPECT_FALSE(AreAttrValuesEqual(encoded, zeros));
  }
}

TEST(AttrValues, ReadStringsInTensorContent) {
  const std::string head = "tensor { dtype: DT_STRING tensor_shape { dim { size: 12 } } ";
  const AttrValue content = FromText<AttrValue>(
      head + "tensor_content: '\\001\\002\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000abc' }");
  EXPECT_TRUE(
      AreAttrValuesEqual(content, FromText<AttrValue>(head + "string_val: ['a', 'bc', ''] }")));
  EXPECT_FALSE(
      AreAttrValuesEqual(content, FromText<AttrValue>(head + "string_val: ['a', 'bc'] }")));
  EXPECT_FALSE(AreAttrValuesEqual(content, FromText<AttrValue>(head + "}")));
  EXPECT_EQ(
      SummarizeAttrValue(content),
      "Tensor<type: string shape: [12] values: \"a\" \"bc\" \"\" \"\" \"\" \"\" \"\" \"\" \"\" "
      "\"\"...>");
}

// A few bytes may encode more elements than memory can hold.
TEST(AttrValues, HandleTensorsBeyondMemory) {
  const std::string huge =
      "dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } dim { size: 1048576 } }";
  const AttrValue ones = FromText<AttrValue>("tensor { " + huge + " float_val: 1 }");
  EXPECT_TRUE(
      AreAttrValuesEqual(ones, FromText<AttrValue>("tensor { " + huge + " float_val: [1, 1] }")));
  EXPECT_FALSE(
      AreAttrValuesEqual(ones, FromText<AttrValue>("tensor { " + huge + " float_val: [1, 2] }")));
  EXPECT_EQ(SummarizeAttrValue(ones),
            "Tensor<type: float shape: [1099511627776,1048576] values: 1 1 1 1 1 1 1 1 1 1...>");
}

// ---- Text ----

TEST(SummarizeAttrValue, PrintsEveryType) {
  const struct {
    const char* value;
    const char* text;
  } cases[] = {
      {"", "<no value>"},
      {"s: 'a\"b\\n'", "\"a\\\"b\\n\""},
      {"i: -3", "-3"},
      {"f: 3", "3.0"},
      {"f: 0.1", "0.1"},
      {"f: 0.0001", "0.0001"},
      {"f: 0.00001", "1e-05"},
      {"f: 16777216", "16777216.0"},
      {"f: 1e30", "1e+30"},
      {"f: -0.0", "-0.0"},
      {"f: nan", "nan"},
      {"f: -nan", "nan"},
      {"f: -inf", "-inf"},
      {"b: false", "false"},
      {"type: DT_FLOAT", "DT_FLOAT"},
      {"type: DT_FLOAT_REF", "DT_FLOAT_REF"},
      {"type: 77", "DataType(77)"},
      {"shape { dim { size: 2 } dim { size: -1 } }", "[2,?]"},
      {"shape { dim { size: -7 } }", "[-7]"},
      {"shape { unknown_rank: true }", "<unknown>"},
      {"list {}", "[]"},
      {"list { i: [ 1, 2 ] }", "[1, 2]"},
      {"list { s: [ 'a', 'b' ] }", "[\"a\", \"b\"]"},
      {"list { f: [ 1, 2.5 ] }", "[1.0, 2.5]"},
      {"list { b: [ true, false ] }", "[true, false]"},
      {"list { type: [ DT_HALF, 77 ] }", "[DT_HALF, DataType(77)]"},
      {"list { shape {} shape { unknown_rank: true } }", "[[], <unknown>]"},
      {"list { func { name: 'F' } func { name: 'G' } }", "[F, G]"},
      {"list { i: [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 ] }",
       "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... (12 in all)]"},
      {"placeholder: 'x'", "$x"},
      {"func { name: 'F' attr { key: 'b' value { i: 2 } } attr { key: 'a' value { s: 'x' } } }",
       "F[a=\"x\", b=2]"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [ 1, 2.5 ] }",
       "Tensor<type: float shape: [2] values: 1 2.5>"},
      {"tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: 'a b' }",
       "Tensor<type: string shape: [2] values: \"a b\" \"a b\">"},
      {"tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } }",
       "Tensor<type: int32 shape: [0] values:>"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: -1 } } }",
       "Tensor<type: float shape: [?] invalid>"},
      {"tensor {}", "Tensor<type: INVALID shape: [] invalid>"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(SummarizeAttrValue(FromText<AttrValue>(c.value)), c.text) << c.value;
  }
}

TEST(SummarizeAttrValue, LimitsTheLength) {
  AttrValue value;
  SetAttrValue(std::string(1000000, '\0'), &value);
  EXPECT_LT(SummarizeAttrValue(value).size(), 500u);
  SetAttrValue(std::vector<std::string>(100000, std::string(1000, 'x')), &value);
  EXPECT_LT(SummarizeAttrValue(value).size(), 2000u);

  Tensor strings(DT_STRING, {1000, 10});
  for (tstring& text : strings.flat<tstring>()) text = std::string(1000, 'x');
  SetAttrValue(strings, &value);
  EXPECT_LT(SummarizeAttrValue(value).size(), 2000u);
  Tensor floats(DT_FLOAT, {1000, 1000});
  floats.flat<float>().setZero();
  SetAttrValue(floats, &value);
  EXPECT_LT(SummarizeAttrValue(value).size(), 200u);

  value.Clear();
  for (int i = 0; i < 100000; ++i) value.mutable_shape()->add_dim()->set_size(1);
  EXPECT_EQ(SummarizeAttrValue(value), "[1,1,1,1,1,1,1,1,1,1,... (100000 in all)]");

  value.Clear();
  for (int i = 0; i < 50; ++i) {
    AttrValue outer;
    outer.mutable_func()->set_name("F");
    (*outer.mutable_func()->mutable_attr())["f"].Swap(&value);
    value.Swap(&outer);
  }
  EXPECT_EQ(SummarizeAttrValue(value), "F[f=F[f=F[f=F[...]]]]");
}

TEST(SummarizeNodeDef, PrintsOneLine) {
  EXPECT_EQ(SummarizeNodeDef(FromText<NodeDef>(R"pb(
              name: "n"
              op: "Op"
              input: [ "a", "b:1", "^c" ]
              device: "/cpu:0"
              attr {
                key: "T"
                value { type: DT_FLOAT }
              }
              attr {
                key: "N"
                value { i: 2 }
              }
            )pb")),
            "{{node n}} = Op[N=2, T=DT_FLOAT, _device=\"/cpu:0\"](a, b:1, ^c)");
  EXPECT_EQ(SummarizeNodeDef(FromText<NodeDef>("name: 'n' op: 'NoOp'")), "{{node n}} = NoOp[]()");
  EXPECT_EQ(SummarizeNodeDef(FromText<NodeDef>("name: 'n' op: 'NoOp' device: 'd'")),
            "{{node n}} = NoOp[_device=\"d\"]()");
  NodeDef big;
  for (int i = 0; i < 100000; ++i) big.add_input(std::string(200, 'x'));
  EXPECT_LT(SummarizeNodeDef(big).size(), 5000u);
}

TEST(ParseAttrValue, ReadsTheTextOfEveryType) {
  const struct {
    const char* type;
    const char* text;
    const char* value;
  } cases[] = {
      {"string", "'text'", "s: 'text'"},
      {"string", " \"a\\n\" 'b' ", "s: 'a\\nb'"},
      {"int", "-3", "i: -3"},
      {"int", "0x10", "i: 16"},
      {"int", "9223372036854775807", "i: 9223372036854775807"},
      {"float", "-6.0", "f: -6"},
      {"float", "1e-3", "f: 0.001"},
      {"float", "7", "f: 7"},
      {"float", "inf", "f: inf"},
      {"bool", "true", "b: true"},
      {"type", "DT_FLOAT", "type: DT_FLOAT"},
      {"shape", "{ dim { size: 2 } dim { size: -1 } }",
       "shape { dim { size: 2 } dim { size: -1 } }"},
      {"shape", "{ unknown_rank: true }", "shape { unknown_rank: true }"},
      {"tensor", "{ dtype: DT_INT32 tensor_shape {} int_val: 5 }",
       "tensor { dtype: DT_INT32 tensor_shape {} int_val: 5 }"},
      {"func", "{ name: 'F' attr { key: 'T' value { type: DT_FLOAT } } }",
       "func { name: 'F' attr { key: 'T' value { type: DT_FLOAT } } }"},
      {"list(int)", "[1, 2]", "list { i: [ 1, 2 ] }"},
      {"list(int)", "  [ ]  ", "list {}"},
      {"list(string)", "['a]', \"[\\\"\", '#']", "list { s: [ 'a]', '[\"', '#' ] }"},
      {"list(float)", "[1, 0.5]", "list { f: [ 1, 0.5 ] }"},
      {"list(bool)", "[true]", "list { b: true }"},
      {"list(type)", "[DT_FLOAT, DT_INT32]", "list { type: [ DT_FLOAT, DT_INT32 ] }"},
      {"list(shape)", "[{ dim: [{ size: 1 }] }, {}]",
       "list { shape { dim { size: 1 } } shape {} }"},
      {"list(func)", "[{ name: 'F' }]", "list { func { name: 'F' } }"},
  };
  for (const auto& c : cases) {
    AttrValue value;
    SetAttrValue("before", &value);
    EXPECT_TRUE(ParseAttrValue(c.type, c.text, &value)) << c.type << " " << c.text;
    EXPECT_TRUE(AreAttrValuesEqual(value, FromText<AttrValue>(c.value)))
        << SummarizeAttrValue(value);
  }
}

TEST(ParseAttrValue, RejectsValuesOfOtherTypes) {
  const struct {
    const char* type;
    const char* text;
  } cases[] = {
      {"int", ""},
      {"int", "x"},
      {"int", "1.5"},
      {"int", "9223372036854775808"},
      {"int", "1 2"},
      {"int", "[1]"},
      {"int", "1 f: 2"},
      {"int", "1 list { i: 2 }"},
      {"int", "1 }"},
      {"bool", "2"},
      {"string", "text"},
      {"string", "'text"},
      {"type", "float"},
      {"type", "DT_NONE"},
      {"type", "DT_FLOAT_REF"},
      {"type", "77"},
      {"shape", "{ dim { size: -2 } }"},
      {"shape", "{ size: 2 }"},
      {"shape", "{"},
      {"tensor", "{ dtype: DT_FLOAT tensor_shape {} int_val: 5 }"},
      {"list(int)", "1"},
      {"list(int)", "[1"},
      {"list(int)", "1]"},
      {"list(int)", "["},
      {"list(int)", "]"},
      {"list(int)", "[,]"},
      {"list(int)", "[1, 'x']"},
      {"list(int)", "[1] i: [2]"},
      {"list(int)", "[1] } s: 'x' list { i: [2]"},
      {"list(int)", "[1 #'\n] i: [2 #'\n]"},
      {"list(string)", "['a\\'] s: ['b']"},
      {"list(list(int))", "[[1]]"},
      {"number", "1"},
      {"", "1"},
  };
  for (const auto& c : cases) {
    AttrValue value;
    SetAttrValue("before", &value);
    EXPECT_FALSE(ParseAttrValue(c.type, c.text, &value)) << c.type << " " << c.text;
    EXPECT_EQ(value.s(), "before");
  }
}

TEST(ParseAttrValue, LimitsNesting) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{ attr { value { func ";
  AttrValue value;
  EXPECT_FALSE(ParseAttrValue("func", deep, &value));
  EXPECT_FALSE(ParseAttrValue("list(int)", std::string(1000000, '['), &value));
}

}  // namespace
}  // namespace gradflow
