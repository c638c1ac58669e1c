#include "gradflow/core/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace gradflow {
namespace {

using ::testing::Contains;
using ::testing::Not;

using StoredTypes = TypeList<bool, float8_e5m2, float8_e4m3fn, float8_e4m3fnuz, float8_e4m3b11fnuz,
                             float8_e5m2fnuz, int4, uint4, int2, uint2>;
using PlainTypes = ConcatTypes<ConcatTypes<NumberTypes, QuantizedTypes>::type, StoredTypes>::type;

struct NamedType {
  DataType dtype;
  const char* name;
  int size;
};

constexpr NamedType kTypes[] = {
    {DT_FLOAT, "float", 4},
    {DT_DOUBLE, "double", 8},
    {DT_INT32, "int32", 4},
    {DT_UINT8, "uint8", 1},
    {DT_INT16, "int16", 2},
    {DT_INT8, "int8", 1},
    {DT_STRING, "string", 0},
    {DT_COMPLEX64, "complex64", 8},
    {DT_INT64, "int64", 8},
    {DT_BOOL, "bool", 1},
    {DT_QINT8, "qint8", 1},
    {DT_QUINT8, "quint8", 1},
    {DT_QINT32, "qint32", 4},
    {DT_BFLOAT16, "bfloat16", 2},
    {DT_QINT16, "qint16", 2},
    {DT_QUINT16, "quint16", 2},
    {DT_UINT16, "uint16", 2},
    {DT_COMPLEX128, "complex128", 16},
    {DT_HALF, "half", 2},
    {DT_RESOURCE, "resource", 0},
    {DT_VARIANT, "variant", 0},
    {DT_UINT32, "uint32", 4},
    {DT_UINT64, "uint64", 8},
    {DT_FLOAT8_E5M2, "float8_e5m2", 1},
    {DT_FLOAT8_E4M3FN, "float8_e4m3fn", 1},
    {DT_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1},
    {DT_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1},
    {DT_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1},
    {DT_INT4, "int4", 1},
    {DT_UINT4, "uint4", 1},
    {DT_INT2, "int2", 1},
    {DT_UINT2, "uint2", 1},
};

TEST(Types, EveryTypeHasANameAndASize) {
  ASSERT_EQ(AllDataTypes().size(), std::size(kTypes));
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    const auto [dtype, name, size] = kTypes[i];
    SCOPED_TRACE(name);
    EXPECT_EQ(AllDataTypes()[i], dtype);
    EXPECT_EQ(DataTypeString(dtype), name);
    EXPECT_EQ(DataTypeSize(dtype), size);
    EXPECT_EQ(DataTypeIsPlainBytes(dtype), size > 0);
    EXPECT_EQ(DataTypeCanBeTensor(dtype), dtype != DT_RESOURCE);
    DataType read = DT_INVALID;
    EXPECT_TRUE(DataTypeFromString(name, &read));
    EXPECT_EQ(read, dtype);
  }
}

TEST(Types, EveryTypeHasAReferenceType) {
  for (const auto& [dtype, name, size] : kTypes) {
    SCOPED_TRACE(name);
    const DataType ref = MakeRefType(dtype);
    EXPECT_EQ(static_cast<int>(ref), static_cast<int>(dtype) + 100);
    EXPECT_TRUE(IsRefType(ref));
    EXPECT_FALSE(IsRefType(dtype));
    EXPECT_EQ(BaseType(ref), dtype);
    EXPECT_EQ(BaseType(dtype), dtype);
    EXPECT_EQ(DataTypeSize(ref), 0);
    EXPECT_FALSE(DataTypeCanBeTensor(ref));
    EXPECT_EQ(DataTypeString(ref), std::string(name) + "_ref");
    DataType read = DT_INVALID;
    EXPECT_TRUE(DataTypeFromString(std::string(name) + "_ref", &read));
    EXPECT_EQ(read, ref);
  }
}

TEST(Types, FloatsHaveOtherNames) {
  const std::pair<const char*, DataType> cases[] = {{"float32", DT_FLOAT},
                                                    {"float64", DT_DOUBLE},
                                                    {"float16", DT_HALF},
                                                    {"float32_ref", DT_FLOAT_REF}};
  for (const auto& [name, expected] : cases) {
    DataType dtype = DT_INVALID;
    EXPECT_TRUE(DataTypeFromString(name, &dtype)) << name;
    EXPECT_EQ(dtype, expected) << name;
  }
}

TEST(Types, RejectsUnknownNames) {
  for (const char* name : {"", "Float", "float ", "int", "DT_FLOAT", "INVALID", "_ref",
                           "float_ref_ref", "DataType(77)"}) {
    DataType dtype = DT_INVALID;
    EXPECT_FALSE(DataTypeFromString(name, &dtype)) << name;
  }
}

TEST(Types, RejectsUnknownNumbers) {
  EXPECT_EQ(DataTypeString(DT_INVALID), "INVALID");
  for (const int number : {-1, 33, 77, 100, 133, 1000, std::numeric_limits<int>::min()}) {
    const auto dtype = static_cast<DataType>(number);
    EXPECT_EQ(DataTypeString(dtype), "DataType(" + std::to_string(number) + ")");
    EXPECT_EQ(DataTypeSize(dtype), 0);
    EXPECT_FALSE(DataTypeCanBeTensor(dtype));
    EXPECT_FALSE(DataTypeIsFloating(dtype) || DataTypeIsInteger(dtype) ||
                 DataTypeIsComplex(dtype) || DataTypeIsQuantized(dtype));
  }
}

TEST(Types, PrintsVectorsOfTypes) {
  EXPECT_EQ(DataTypeVectorString({}), "[]");
  EXPECT_EQ(DataTypeVectorString({DT_FLOAT, DT_INT32_REF}), "[float, int32_ref]");
}

TEST(Types, EveryCppTypeHasTheSizeOfItsDataType) {
  std::set<DataType> seen;
  ForEachType(PlainTypes(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr DataType dtype = DataTypeToEnum<T>::value;
    EXPECT_EQ(DataTypeSize(dtype), static_cast<int>(sizeof(T))) << DataTypeString(dtype);
    EXPECT_TRUE((std::is_same_v<typename EnumToDataType<dtype>::Type, T>));
    EXPECT_TRUE(seen.insert(dtype).second) << DataTypeString(dtype);
  });
  for (const DataType dtype : AllDataTypes()) {
    EXPECT_EQ(seen.count(dtype) > 0, DataTypeIsPlainBytes(dtype)) << DataTypeString(dtype);
  }
  EXPECT_EQ(DataTypeToEnum<tstring>::v(), DT_STRING);
}

TEST(Types, DispatchFindsTheTypeOrReturnsFalse) {
  int calls = 0;
  EXPECT_TRUE(DispatchType(FloatingTypes(), DT_HALF, [&](auto tag) {
    ++calls;
    EXPECT_TRUE((std::is_same_v<typename decltype(tag)::type, half>));
  }));
  EXPECT_EQ(calls, 1);
  for (const DataType dtype : {DT_INT32, DT_STRING, DT_HALF_REF, DT_INVALID}) {
    EXPECT_FALSE(DispatchType(FloatingTypes(), dtype, [&](auto) { ++calls; }));
  }
  EXPECT_EQ(calls, 1);
}

TEST(Types, KindsDoNotOverlap) {
  for (const DataType dtype : AllDataTypes()) {
    const int kinds = DataTypeIsFloating(dtype) + DataTypeIsInteger(dtype) +
                      DataTypeIsComplex(dtype) + DataTypeIsQuantized(dtype);
    const bool has_none =
        dtype == DT_STRING || dtype == DT_BOOL || dtype == DT_RESOURCE || dtype == DT_VARIANT;
    EXPECT_EQ(kinds, has_none ? 0 : 1) << DataTypeString(dtype);
  }
  EXPECT_TRUE(DataTypeIsFloating(DT_BFLOAT16));
  EXPECT_TRUE(DataTypeIsInteger(DT_UINT64));
  EXPECT_TRUE(DataTypeIsComplex(DT_COMPLEX64));
  EXPECT_TRUE(DataTypeIsQuantized(DT_QINT32));
}

TEST(Types, SetsDescribeConstraints) {
  for (const DataType dtype : {DT_FLOAT, DT_BFLOAT16, DT_COMPLEX64, DT_QINT8, DT_UINT64}) {
    EXPECT_THAT(NumberDataTypes(), Contains(dtype));
  }
  for (const DataType dtype : {DT_BOOL, DT_STRING, DT_RESOURCE, DT_FLOAT_REF}) {
    EXPECT_THAT(NumberDataTypes(), Not(Contains(dtype)));
  }
  for (const DataType dtype : NumberDataTypes()) {
    const bool is_real = !DataTypeIsComplex(dtype) && !DataTypeIsQuantized(dtype);
    EXPECT_EQ(std::count(RealNumberDataTypes().begin(), RealNumberDataTypes().end(), dtype),
              is_real ? 1 : 0)
        << DataTypeString(dtype);
  }
  EXPECT_THAT(QuantizedDataTypes(), ::testing::UnorderedElementsAre(DT_QINT8, DT_QUINT8, DT_QINT16,
                                                                    DT_QUINT16, DT_QINT32));
}

}  // namespace
}  // namespace gradflow
