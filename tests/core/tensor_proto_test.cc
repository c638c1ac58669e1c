#include "gradflow/core/tensor_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "gradflow/core/parallel.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/proto/tensor.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/core/shorthands.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::BytesOf;
using ::gradflow::testing::FromText;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInf;
using ::gradflow::testing::kNan;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a proto with the given type, dimensions and fields in `text`.
TensorProto Proto(DataType dtype, const std::vector<int64_t>& dims, const std::string& text = "") {
  TensorProto proto = FromText<TensorProto>(text);
  proto.set_dtype(dtype);
  for (const int64_t dim : dims) proto.mutable_tensor_shape()->add_dim()->set_size(dim);
  return proto;
}

// Returns the names of the fields that hold values.
std::vector<std::string> ValueFields(const TensorProto& proto) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  proto.GetReflection()->ListFields(proto, &fields);
  std::vector<std::string> names;
  for (const auto* field : fields) {
    if (field->name() != "dtype" && field->name() != "tensor_shape") names.push_back(field->name());
  }
  return names;
}

// Three elements of a type, as bytes and as text of the typed list.
struct TypedList {
  DataType dtype;
  const char* list;
  std::string values;
  std::string bytes;
};

// Returns each type with its smallest and largest values, or with special values such as NaN.
std::vector<TypedList> TypedLists() {
  return {
      {DT_FLOAT, "float_val", "[1.5, -inf, nan]", BytesOf<float>({1.5f, -kInf, kNan})},
      {DT_DOUBLE, "double_val", "[1e300, 0.1, -2]", BytesOf<double>({1e300, 0.1, -2})},
      {DT_HALF, "half_val", "[15360, 0, 65535]", BytesOf<uint16_t>({0x3c00, 0, 0xffff})},
      {DT_BFLOAT16, "half_val", "[16256, 1, 65408]", BytesOf<uint16_t>({0x3f80, 1, 0xff80})},
      {DT_INT8, "int_val", "[-128, 127, 5]", BytesOf<int8_t>({-128, 127, 5})},
      {DT_INT16, "int_val", "[-32768, 32767, 5]", BytesOf<int16_t>({-32768, 32767, 5})},
      {DT_INT32, "int_val", "[-2147483648, 2147483647, 5]",
       BytesOf<int32_t>({std::numeric_limits<int32_t>::min(), 2147483647, 5})},
      {DT_INT64, "int64_val", "[-9223372036854775808, 9223372036854775807, 5]",
       BytesOf<int64_t>(
           {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), 5})},
      {DT_UINT8, "int_val", "[0, 255, 128]", BytesOf<uint8_t>({0, 255, 128})},
      {DT_UINT16, "int_val", "[0, 65535, 32768]", BytesOf<uint16_t>({0, 65535, 32768})},
      {DT_UINT32, "uint32_val", "[0, 4294967295, 5]", BytesOf<uint32_t>({0, 0xffffffff, 5})},
      {DT_UINT64, "uint64_val", "[0, 18446744073709551615, 5]",
       BytesOf<uint64_t>({0, std::numeric_limits<uint64_t>::max(), 5})},
      {DT_BOOL, "bool_val", "[true, false, true]", std::string("\1\0\1", 3)},
      {DT_COMPLEX64, "scomplex_val", "[1, 2, 3, 4, 5, 6]", BytesOf<float>({1, 2, 3, 4, 5, 6})},
      {DT_COMPLEX128, "dcomplex_val", "[1, 2, 3, 4, 5, 6]", BytesOf<double>({1, 2, 3, 4, 5, 6})},
      {DT_QINT8, "int_val", "[-128, 127, 5]", BytesOf<int8_t>({-128, 127, 5})},
      {DT_QUINT8, "int_val", "[0, 255, 5]", BytesOf<uint8_t>({0, 255, 5})},
      {DT_QINT16, "int_val", "[-32768, 32767, 5]", BytesOf<int16_t>({-32768, 32767, 5})},
      {DT_QUINT16, "int_val", "[0, 65535, 5]", BytesOf<uint16_t>({0, 65535, 5})},
      {DT_QINT32, "int_val", "[-2147483648, 7, 5]",
       BytesOf<int32_t>({std::numeric_limits<int32_t>::min(), 7, 5})},
      {DT_FLOAT8_E5M2, "float8_val", "\"\\001\\377\\002\"", "\1\377\2"},
      {DT_FLOAT8_E4M3FN, "float8_val", "\"\\001\\377\\002\"", "\1\377\2"},
      {DT_FLOAT8_E4M3FNUZ, "float8_val", "\"\\001\\377\\002\"", "\1\377\2"},
      {DT_FLOAT8_E4M3B11FNUZ, "float8_val", "\"\\001\\377\\002\"", "\1\377\2"},
      {DT_FLOAT8_E5M2FNUZ, "float8_val", "\"\\001\\377\\002\"", "\1\377\2"},
      {DT_INT4, "int_val", "[-8, 7, -1]", BytesOf<int8_t>({-8, 7, -1})},
      {DT_UINT4, "int_val", "[0, 15, 8]", BytesOf<uint8_t>({0, 15, 8})},
      {DT_INT2, "int_val", "[-2, 1, -1]", BytesOf<int8_t>({-2, 1, -1})},
      {DT_UINT2, "int_val", "[0, 3, 2]", BytesOf<uint8_t>({0, 3, 2})},
  };
}

std::string ListText(const TypedList& c) { return std::string(c.list) + ": " + c.values; }

TEST(TensorProto, CasesCoverEveryPlainType) {
  std::vector<DataType> covered, expected;
  for (const TypedList& c : TypedLists()) covered.push_back(c.dtype);
  for (const DataType dtype : AllDataTypes()) {
    if (DataTypeIsPlainBytes(dtype)) expected.push_back(dtype);
  }
  EXPECT_THAT(covered, ::testing::UnorderedElementsAreArray(expected));
}

TEST(TensorProto, ReadsTypedLists) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                  TensorFromProto(Proto(c.dtype, {3}, ListText(c))));
    EXPECT_EQ(tensor.dtype(), c.dtype);
    EXPECT_EQ(tensor.shape(), TensorShape({3}));
    EXPECT_EQ(tensor.tensor_data(), c.bytes);
    EXPECT_TRUE(tensor.IsAligned());
  }
}

TEST(TensorProto, ReadsContent) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    TensorProto proto = Proto(c.dtype, {3, 1});
    proto.set_tensor_content(c.bytes);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(proto));
    EXPECT_EQ(tensor.shape(), TensorShape({3, 1}));
    EXPECT_EQ(tensor.tensor_data(), c.bytes);
  }
}

TEST(TensorProto, ShortListsRepeatTheirLastElement) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    // The number of rows requires several fill steps, and the last step is partial.
    constexpr int64_t kRows = 5000;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                  TensorFromProto(Proto(c.dtype, {kRows}, ListText(c))));
    const size_t size = DataTypeSize(c.dtype);
    std::string expected = c.bytes;
    for (int64_t i = 3; i < kRows; ++i) expected += c.bytes.substr(2 * size);
    EXPECT_TRUE(tensor.tensor_data() == expected);
  }
}

TEST(TensorProto, EmptyListsMeanZeros) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(Proto(c.dtype, {2, 2})));
    EXPECT_EQ(tensor.tensor_data(), std::string(4 * DataTypeSize(c.dtype), '\0'));
  }
}

TEST(TensorProto, EmptyTensorsHaveNoValues) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(Proto(c.dtype, {2, 0})));
    EXPECT_EQ(tensor.shape(), TensorShape({2, 0}));
    TensorProto proto;
    TensorToProto(tensor, &proto);
    EXPECT_THAT(ValueFields(proto), ElementsAre());
    tensor.AsProtoField(&proto);
    EXPECT_THAT(ValueFields(proto), ElementsAre());
    EXPECT_THAT(TensorFromProto(proto), IsOk());
  }
}

TEST(TensorProto, WritesEachForm) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    const TensorProto list = Proto(c.dtype, {3}, ListText(c));
    TensorProto content = Proto(c.dtype, {3});
    content.set_tensor_content(c.bytes);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(list));
    TensorProto proto = Proto(DT_STRING, {7}, "string_val: 'is overwritten'");
    tensor.AsProtoField(&proto);
    EXPECT_EQ(proto.SerializeAsString(), list.SerializeAsString());
    tensor.AsProtoTensorContent(&proto);
    EXPECT_EQ(proto.SerializeAsString(), content.SerializeAsString());
    TensorToProto(tensor, &proto);
    EXPECT_EQ(proto.SerializeAsString(), content.SerializeAsString());
  }
}

TEST(TensorProto, EqualElementsAreWrittenOnce) {
  for (const TypedList& c : TypedLists()) {
    SCOPED_TRACE(DataTypeString(c.dtype));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor row,
                                  TensorFromProto(Proto(c.dtype, {3}, ListText(c))));
    TensorProto one;
    row.SubSlice(1).AsProtoField(&one);
    one.mutable_tensor_shape()->add_dim()->set_size(100);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor uniform, TensorFromProto(one));
    TensorProto proto;
    TensorToProto(uniform, &proto);
    EXPECT_EQ(proto.SerializeAsString(), one.SerializeAsString());
    EXPECT_THAT(ValueFields(proto), ElementsAre(c.list));
  }
}

TEST(TensorProto, KeepsOneElementThatDiffers) {
  for (const int64_t index : {0, 1, 98, 99}) {
    Tensor tensor(DT_FLOAT, {100});
    tensor.flat<float>().setZero();
    tensor.flat<float>()(index) = -0.0f;  // equal to 0, but not in its bits
    TensorProto proto;
    TensorToProto(tensor, &proto);
    EXPECT_THAT(ValueFields(proto), ElementsAre("tensor_content"));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor read, TensorFromProto(proto));
    EXPECT_EQ(read.tensor_data(), tensor.tensor_data());
  }
}

TEST(TensorProto, WritesOnlyTheSlice) {
  Tensor tensor(DT_INT32, {4});
  for (int i = 0; i < 4; ++i) tensor.flat<int32_t>()(i) = i;
  TensorProto proto;
  tensor.Slice(1, 3).AsProtoField(&proto);
  EXPECT_THAT(proto.int_val(), ElementsAre(1, 2));
}

TEST(TensorProto, RoundTripsStrings) {
  const struct {
    int64_t size;
    std::string values;
    std::vector<std::string> elements;
    int written;
  } cases[] = {
      {0, "", {}, 0},
      {2, "", {"", ""}, 1},
      {3, "string_val: ['a', '', 'b\\000c']", {"a", "", std::string("b\0c", 3)}, 3},
      {4, "string_val: ['a', 'b']", {"a", "b", "b", "b"}, 4},
      {3, "string_val: 'same'", {"same", "same", "same"}, 1},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.values);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                  TensorFromProto(Proto(DT_STRING, {c.size}, c.values)));
    EXPECT_THAT(tensor.span<tstring>(), ::testing::ElementsAreArray(c.elements));
    TensorProto proto;
    TensorToProto(tensor, &proto);
    EXPECT_EQ(proto.string_val_size(), c.written);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor read, TensorFromProto(proto));
    EXPECT_THAT(read.span<tstring>(), ::testing::ElementsAreArray(c.elements));
    tensor.AsProtoTensorContent(&proto);
    EXPECT_EQ(proto.tensor_content(), "");
    EXPECT_THAT(proto.string_val(), ::testing::ElementsAreArray(c.elements));
    tensor.AsProtoField(&proto);
    EXPECT_THAT(proto.string_val(), ::testing::ElementsAreArray(c.elements));
  }
}

// TensorFlow's AsProtoTensorContent writes all lengths as varints, and then all bytes.
TEST(TensorProto, ReadsStringsFromContent) {
  const std::string long_string(300, 'x');
  const struct {
    std::vector<int64_t> dims;
    std::string content;
    std::vector<std::string> elements;
  } cases[] = {
      {{}, std::string("\0", 1), {""}},
      {{3}, std::string("\1\0\3ab\0c", 7), {"a", "", std::string("b\0c", 3)}},
      {{2, 1}, "\xac\2\1" + long_string + "y", {long_string, "y"}},
      // The encoding of the length is longer than necessary.
      {{2}, std::string("\x81\x80\x80\x80\0\2abc", 9), {"a", "bc"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::PrintToString(c.elements));
    TensorProto proto = Proto(DT_STRING, c.dims);
    proto.set_tensor_content(c.content);
    EXPECT_THAT(ValidateTensorProto(proto), IsOk());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(proto));
    EXPECT_EQ(tensor.shape(), TensorShape(c.dims));
    EXPECT_THAT(tensor.span<tstring>(), ::testing::ElementsAreArray(c.elements));
  }
}

TEST(TensorProto, BytesOfSmallTypesAreNormalized) {
  const struct {
    DataType dtype;
    std::string content, bytes;
  } cases[] = {
      {DT_BOOL, std::string("\0\1\2\377\200", 5), std::string("\0\1\1\1\1", 5)},
      {DT_INT4, "\x0f\x07\x08\xf8\x31", "\xff\x07\xf8\xf8\x01"},
      {DT_UINT4, "\x0f\x07\x08\xf8\x31", "\x0f\x07\x08\x08\x01"},
      {DT_INT2, "\x03\x01\x02\xfe\x31", "\xff\x01\xfe\xfe\x01"},
      {DT_UINT2, "\x03\x01\x02\xfe\x31", "\x03\x01\x02\x02\x01"},
  };
  for (const auto& c : cases) {
    TensorProto proto = Proto(c.dtype, {5});
    proto.set_tensor_content(c.content);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(proto));
    EXPECT_EQ(tensor.tensor_data(), c.bytes) << DataTypeString(c.dtype);
  }
}

TEST(TensorProto, RejectsInvalidProtos) {
  const struct {
    TensorProto proto;
    const char* text;
  } cases[] = {
      // Types.
      {FromText<TensorProto>(""), "no tensor can have type INVALID"},
      {Proto(DT_FLOAT_REF, {0}), "no tensor can have type float_ref"},
      {Proto(DT_RESOURCE, {}, "resource_handle_val {}"), "no tensor can have type resource"},
      {Proto(DT_VARIANT_REF, {0}), "no tensor can have type variant_ref"},
      {Proto(static_cast<DataType>(77), {0}), "no tensor can have type DataType(77)"},
      // Shapes.
      {Proto(DT_FLOAT, {2, -1}), "dimension -1 of shape [2,?] is negative"},
      {Proto(DT_FLOAT, {int64_t{1} << 40, int64_t{1} << 40}), "more elements than fit in an int64"},
      {Proto(DT_FLOAT, std::vector<int64_t>(255, 1)), "at most 254 dimensions"},
      {Proto(DT_FLOAT, {}, "tensor_shape { unknown_rank: true }"), "rank is unknown"},
      // Content.
      {Proto(DT_FLOAT, {2, 3}, "tensor_content: 'abcd'"),
       "expected tensor_content of 6 elements of 4 bytes (type float, shape [2,3]), but found 4 "
       "bytes"},
      {Proto(DT_FLOAT, {1}, "tensor_content: 'abcde'"), "but found 5 bytes"},
      {Proto(DT_UINT8, {0}, "tensor_content: 'a'"), "0 elements of 1 bytes"},
      {Proto(DT_FLOAT, {int64_t{1} << 62}, "tensor_content: 'abcd'"), "but found 4 bytes"},
      {Proto(DT_STRING, {1}, "tensor_content: 'abcd'"),
       "expected 97 bytes of strings after the 1 lengths in tensor_content, but found 3"},
      {Proto(DT_STRING, {2}, "tensor_content: '\\001\\001ab '"),
       "expected 2 bytes of strings after the 2 lengths in tensor_content, but found 3"},
      {Proto(DT_STRING, {0}, "tensor_content: 'a'"), "expected 0 bytes of strings"},
      {Proto(DT_STRING, {3}, "tensor_content: '\\000\\001'"),
       "expected the lengths of 3 strings at the start of tensor_content, but found 2 in its 2 "
       "bytes"},
      {Proto(DT_STRING, {1}, "tensor_content: '\\200'"), "but found 0 in its 1 bytes"},
      {Proto(DT_STRING, {1}, "tensor_content: '\\377\\377\\377\\377\\020'"),
       "but found 0 in its 5"},
      {Proto(DT_STRING, {1}, "tensor_content: '\\200\\200\\200\\200\\200\\000'"),
       "but found 0 in its 6 bytes"},
      {Proto(DT_STRING, {2}, "tensor_content: '\\377\\377\\377\\377\\017\\001a'"),
       "expected 4294967296 bytes of strings after the 2 lengths in tensor_content, but found 1"},
      {Proto(DT_STRING, {int64_t{1} << 62}, "tensor_content: '\\000'"),
       "expected the lengths of 4611686018427387904 strings"},
      {Proto(DT_STRING, {1}, "tensor_content: '\\000' string_val: 'a'"), "but found both"},
      {Proto(DT_FLOAT, {1}, "tensor_content: 'abcd' float_val: 1"),
       "either in tensor_content or in float_val, but found both"},
      // Lists.
      {Proto(DT_FLOAT, {2}, "float_val: [1, 2, 3]"),
       "expected at most 2 elements in float_val for shape [2], but found 3"},
      {Proto(DT_FLOAT, {0}, "float_val: 1"), "at most 0 elements"},
      {Proto(DT_STRING, {1}, "string_val: ['a', 'b']"), "at most 1 elements in string_val"},
      {Proto(DT_FLOAT8_E5M2, {1}, "float8_val: 'ab'"), "at most 1 elements in float8_val"},
      {Proto(DT_COMPLEX64, {1}, "scomplex_val: [1, 2, 3, 4]"), "but found 2"},
      {Proto(DT_COMPLEX64, {2}, "scomplex_val: [1, 2, 3]"),
       "expected an even number of values in scomplex_val (real and imaginary parts), but found 3"},
      {Proto(DT_COMPLEX128, {2}, "dcomplex_val: 1"), "an even number of values in dcomplex_val"},
      {Proto(DT_FLOAT, {2}, "double_val: 1"),
       "expected the values of a tensor of type float in float_val, but found 1 in double_val"},
      {Proto(DT_BFLOAT16, {2}, "float_val: [1, 2]"), "in half_val, but found 2 in float_val"},
      {Proto(DT_BOOL, {1}, "int_val: 1"), "in bool_val, but found 1 in int_val"},
      {Proto(DT_INT64, {1}, "int64_val: 1 int_val: 1"), "in int64_val, but found 1 in int_val"},
      {Proto(DT_FLOAT, {1}, "variant_val {}"), "but found 1 in variant_val"},
      {Proto(DT_FLOAT, {1}, "tensor_content: 'abcd' int_val: 1"), "but found 1 in int_val"},
      // The values do not fit the type.
      {Proto(DT_UINT8, {3}, "int_val: [1, 300]"),
       "value 300 at index 1 of int_val does not fit type uint8, whose range is [0, 255]"},
      {Proto(DT_UINT8, {1}, "int_val: -1"), "value -1 at index 0"},
      {Proto(DT_INT8, {1}, "int_val: 128"), "type int8, whose range is [-128, 127]"},
      {Proto(DT_INT8, {1}, "int_val: -129"), "type int8"},
      {Proto(DT_INT16, {1}, "int_val: 32768"), "type int16, whose range is [-32768, 32767]"},
      {Proto(DT_UINT16, {1}, "int_val: 65536"), "type uint16, whose range is [0, 65535]"},
      {Proto(DT_QUINT8, {1}, "int_val: 256"), "type quint8"},
      {Proto(DT_HALF, {1}, "half_val: 65536"), "value 65536 at index 0 of half_val"},
      {Proto(DT_BFLOAT16, {1}, "half_val: -1"), "type bfloat16"},
      {Proto(DT_INT4, {1}, "int_val: 8"), "type int4, whose range is [-8, 7]"},
      {Proto(DT_UINT2, {1}, "int_val: 4"), "type uint2, whose range is [0, 3]"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.text));
    EXPECT_THAT(TensorFromProto(c.proto), refused);
    EXPECT_THAT(ValidateTensorProto(c.proto), refused);
    Tensor tensor(5.0f);
    EXPECT_FALSE(tensor.FromProto(c.proto));
    EXPECT_EQ(tensor.scalar<float>()(), 5.0f);
  }
}

class NoMemory final : public Allocator {
 public:
  void* Allocate(size_t) override { return nullptr; }
  void Deallocate(void*, size_t) override {}
};

TEST(TensorProto, ReportsMissingMemory) {
  const TensorProto small = Proto(DT_FLOAT, {2});
  EXPECT_THAT(
      TensorFromProto(small, std::make_shared<NoMemory>()),
      StatusIs(absl::StatusCode::kResourceExhausted, AllOf(HasSubstr("float"), HasSubstr("[2]"))));
  // Valid protos of a few bytes, whose tensors exceed any memory.
  for (const DataType dtype : {DT_FLOAT, DT_STRING, DT_COMPLEX128}) {
    const TensorProto huge = Proto(dtype, {int64_t{1} << 62});
    EXPECT_THAT(ValidateTensorProto(huge), IsOk());
    EXPECT_THAT(TensorFromProto(huge), StatusIs(absl::StatusCode::kResourceExhausted));
    Tensor tensor;
    EXPECT_FALSE(tensor.FromProto(huge));
  }
}

// Allocates elements, but only allows 1 MiB of characters.
class FewCharacters final : public Allocator {
 public:
  void* Allocate(size_t bytes) override { return SystemAllocator()->Allocate(bytes); }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
  }
  bool Reserve(size_t bytes) override {
    if (reserved + bytes > 1 << 20) return false;
    reserved += bytes;
    return true;
  }
  void Release(size_t bytes) override { reserved -= bytes; }

  size_t reserved = 0;
};

TEST(TensorProto, CountsTheCharactersOfStrings) {
  const auto allocator = std::make_shared<FewCharacters>();
  TensorProto proto = Proto(DT_STRING, {1024});
  proto.add_string_val("abc");
  proto.add_string_val(std::string(1024, 'x'));
  EXPECT_THAT(TensorFromProto(proto, allocator), IsOk());
  {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, TensorFromProto(proto, allocator));
    EXPECT_EQ(allocator->reserved, 3 + 1023 * 1024);
    EXPECT_EQ(allocator->reserved, tensor.StringBytes());
  }
  EXPECT_EQ(allocator->reserved, 0);
  *proto.mutable_string_val(1) += "xy";
  EXPECT_THAT(TensorFromProto(proto, allocator),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "out of memory for the 1049601 characters of a tensor of strings of shape "
                       "[1024]"));
  EXPECT_EQ(allocator->reserved, 0);
}

// Repeating a value stops early.
TEST(TensorProto, MakesNoTensorInARunThatIsStopped) {
  StopToken stop;
  for (const DataType dtype : {DT_FLOAT, DT_STRING}) {
    TensorProto proto = Proto(dtype, {100000});
    if (dtype == DT_FLOAT) proto.add_float_val(1);
    if (dtype == DT_STRING) proto.add_string_val("a");
    EXPECT_THAT(TensorFromProto(proto, SystemAllocator(), &stop), IsOk());
  }
  stop.Stop();
  EXPECT_THAT(TensorFromProto(Proto(DT_FLOAT, {100000}), SystemAllocator(), &stop),
              StatusIs(absl::StatusCode::kCancelled, "the run has been stopped"));
}

TEST(TensorProto, FromProtoReadsTheTensor) {
  Tensor tensor;
  EXPECT_TRUE(tensor.FromProto(Proto(DT_INT16, {2}, "int_val: [1, -1]")));
  EXPECT_THAT(tensor.span<int16_t>(), ElementsAre(1, -1));
}

TEST(TensorProto, TensorsWithoutElementsAreWrittenAsTypeAndShape) {
  const Tensor tensor(std::make_shared<NoMemory>(), DT_INT32, {2});
  ASSERT_FALSE(tensor.IsInitialized());
  TensorProto proto;
  TensorToProto(tensor, &proto);
  EXPECT_EQ(proto.SerializeAsString(), Proto(DT_INT32, {2}).SerializeAsString());
  tensor.AsProtoField(&proto);
  EXPECT_EQ(proto.SerializeAsString(), Proto(DT_INT32, {2}).SerializeAsString());
}

}  // namespace
}  // namespace gradflow
