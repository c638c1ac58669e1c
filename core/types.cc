#include "gradflow/core/types.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gradflow/core/out_parameter.h"

namespace gradflow {
namespace {

enum Kind : uint8_t { kOther, kFloating, kInteger, kComplex, kQuantized };

struct TypeInfo {
  DataType dtype;
  const char* name;
  int size;
  Kind kind;
};

// Indexed by the number of the type minus 1.
constexpr TypeInfo kTypes[] = {
    {DT_FLOAT, "float", 4, kFloating},
    {DT_DOUBLE, "double", 8, kFloating},
    {DT_INT32, "int32", 4, kInteger},
    {DT_UINT8, "uint8", 1, kInteger},
    {DT_INT16, "int16", 2, kInteger},
    {DT_INT8, "int8", 1, kInteger},
    {DT_STRING, "string", 0, kOther},
    {DT_COMPLEX64, "complex64", 8, kComplex},
    {DT_INT64, "int64", 8, kInteger},
    {DT_BOOL, "bool", 1, kOther},
    {DT_QINT8, "qint8", 1, kQuantized},
    {DT_QUINT8, "quint8", 1, kQuantized},
    {DT_QINT32, "qint32", 4, kQuantized},
    {DT_BFLOAT16, "bfloat16", 2, kFloating},
    {DT_QINT16, "qint16", 2, kQuantized},
    {DT_QUINT16, "quint16", 2, kQuantized},
    {DT_UINT16, "uint16", 2, kInteger},
    {DT_COMPLEX128, "complex128", 16, kComplex},
    {DT_HALF, "half", 2, kFloating},
    {DT_RESOURCE, "resource", 0, kOther},
    {DT_VARIANT, "variant", 0, kOther},
    {DT_UINT32, "uint32", 4, kInteger},
    {DT_UINT64, "uint64", 8, kInteger},
    {DT_FLOAT8_E5M2, "float8_e5m2", 1, kFloating},
    {DT_FLOAT8_E4M3FN, "float8_e4m3fn", 1, kFloating},
    {DT_FLOAT8_E4M3FNUZ, "float8_e4m3fnuz", 1, kFloating},
    {DT_FLOAT8_E4M3B11FNUZ, "float8_e4m3b11fnuz", 1, kFloating},
    {DT_FLOAT8_E5M2FNUZ, "float8_e5m2fnuz", 1, kFloating},
    {DT_INT4, "int4", 1, kInteger},
    {DT_UINT4, "uint4", 1, kInteger},
    {DT_INT2, "int2", 1, kInteger},
    {DT_UINT2, "uint2", 1, kInteger},
};
constexpr int kNumTypes = sizeof(kTypes) / sizeof(kTypes[0]);

// Returns null for references and for numbers that are not a type.
const TypeInfo* Info(DataType dtype) {
  const int number = static_cast<int>(dtype);
  return number >= 1 && number <= kNumTypes ? &kTypes[number - 1] : nullptr;
}

bool IsOfKind(DataType dtype, Kind kind) {
  const TypeInfo* info = Info(dtype);
  return info != nullptr && info->kind == kind;
}

}  // namespace

std::string DataTypeString(DataType dtype) {
  if (const TypeInfo* info = Info(dtype)) return info->name;
  if (dtype == DT_INVALID) return "INVALID";
  if (IsRefType(dtype)) {
    if (const TypeInfo* info = Info(BaseType(dtype))) return absl::StrCat(info->name, "_ref");
  }
  return absl::StrCat("DataType(", static_cast<int>(dtype), ")");
}

bool DataTypeFromString(absl::string_view name, DataType* dtype) {
  internal::RequireOut(dtype, "DataTypeFromString", "dtype");
  if (absl::ConsumeSuffix(&name, "_ref")) {
    if (!DataTypeFromString(name, dtype) || IsRefType(*dtype)) return false;
    *dtype = MakeRefType(*dtype);
    return true;
  }
  if (name == "float32") name = "float";
  if (name == "float64") name = "double";
  if (name == "float16") name = "half";
  for (const TypeInfo& info : kTypes) {
    if (name == info.name) {
      *dtype = info.dtype;
      return true;
    }
  }
  return false;
}

std::string DataTypeVectorString(const DataTypeVector& types) {
  return absl::StrCat("[",
                      absl::StrJoin(types, ", ",
                                    [](std::string* out, DataType dtype) {
                                      absl::StrAppend(out, DataTypeString(dtype));
                                    }),
                      "]");
}

int DataTypeSize(DataType dtype) {
  const TypeInfo* info = Info(dtype);
  return info == nullptr ? 0 : info->size;
}

bool DataTypeCanBeTensor(DataType dtype) {
  return DataTypeSize(dtype) > 0 || dtype == DT_STRING || dtype == DT_VARIANT;
}

bool DataTypeIsFloating(DataType dtype) { return IsOfKind(dtype, kFloating); }
bool DataTypeIsInteger(DataType dtype) { return IsOfKind(dtype, kInteger); }
bool DataTypeIsComplex(DataType dtype) { return IsOfKind(dtype, kComplex); }
bool DataTypeIsQuantized(DataType dtype) { return IsOfKind(dtype, kQuantized); }

const DataTypeVector& NumberDataTypes() {
  static const auto* const types = new DataTypeVector{
      DT_FLOAT,  DT_DOUBLE,     DT_INT32,  DT_UINT8,  DT_INT16,    DT_INT8,   DT_COMPLEX64,
      DT_INT64,  DT_QINT8,      DT_QUINT8, DT_QINT32, DT_BFLOAT16, DT_QINT16, DT_QUINT16,
      DT_UINT16, DT_COMPLEX128, DT_HALF,   DT_UINT32, DT_UINT64};
  return *types;
}

const DataTypeVector& RealNumberDataTypes() {
  static const auto* const types =
      new DataTypeVector{DT_FLOAT, DT_DOUBLE,   DT_INT32,  DT_UINT8, DT_INT16,  DT_INT8,
                         DT_INT64, DT_BFLOAT16, DT_UINT16, DT_HALF,  DT_UINT32, DT_UINT64};
  return *types;
}

const DataTypeVector& QuantizedDataTypes() {
  static const auto* const types =
      new DataTypeVector{DT_QINT8, DT_QUINT8, DT_QINT32, DT_QINT16, DT_QUINT16};
  return *types;
}

const DataTypeVector& AllDataTypes() {
  static const auto* const types = [] {
    auto* all = new DataTypeVector;
    for (const TypeInfo& info : kTypes) all->push_back(info.dtype);
    return all;
  }();
  return *types;
}

}  // namespace gradflow
