// Element types of tensors: the enum DataType (DT_FLOAT, ...), numbered as in TensorFlow, the C++
// type for each, and the mapping between the two at compile time and at run time.
#ifndef GRADFLOW_CORE_TYPES_H_
#define GRADFLOW_CORE_TYPES_H_

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/float16.h"
#include "gradflow/proto/data_type.h"

// Code with strings of the old ABI would fail to link, with messages that do not state the reason.
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#error \
    "gradflow is built with the C++11 ABI of libstdc++; compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#endif

#pragma GCC visibility push(default)
namespace gradflow {

// Element types that are not built into C++. half and bfloat16 are in float16.h.
using complex64 = std::complex<float>;
using complex128 = std::complex<double>;
using tstring = std::string;

// An element type without C++ arithmetic: quantized integers, 8-bit floats, and integers narrower
// than 8 bits (stored one per byte, as in TensorFlow). Kernels that compute with such elements read
// `value`. `Id` distinguishes types that share a storage type.
template <typename Storage, DataType Id>
struct StorageType {
  // The bits. Values compare equal if their bits are equal.
  Storage value{};

  StorageType() = default;
  // Converts from and to the integer that holds the bits.
  constexpr StorageType(Storage v) : value(v) {}  // NOLINT: implicit as in TensorFlow
  explicit constexpr operator Storage() const { return value; }
  // Compare the bits.
  friend bool operator==(StorageType a, StorageType b) { return a.value == b.value; }
  friend bool operator!=(StorageType a, StorageType b) { return a.value != b.value; }
};
using qint8 = StorageType<int8_t, DT_QINT8>;
using quint8 = StorageType<uint8_t, DT_QUINT8>;
using qint16 = StorageType<int16_t, DT_QINT16>;
using quint16 = StorageType<uint16_t, DT_QUINT16>;
using qint32 = StorageType<int32_t, DT_QINT32>;
using float8_e5m2 = StorageType<uint8_t, DT_FLOAT8_E5M2>;
using float8_e4m3fn = StorageType<uint8_t, DT_FLOAT8_E4M3FN>;
using float8_e4m3fnuz = StorageType<uint8_t, DT_FLOAT8_E4M3FNUZ>;
using float8_e4m3b11fnuz = StorageType<uint8_t, DT_FLOAT8_E4M3B11FNUZ>;
using float8_e5m2fnuz = StorageType<uint8_t, DT_FLOAT8_E5M2FNUZ>;
using int4 = StorageType<int8_t, DT_INT4>;
using uint4 = StorageType<uint8_t, DT_UINT4>;
using int2 = StorageType<int8_t, DT_INT2>;
using uint2 = StorageType<uint8_t, DT_UINT2>;

// A list of types: of inputs, of outputs, or the value of a list(type) attribute.
using DataTypeVector = std::vector<DataType>;

// The element of DT_RESOURCE (resource_handle.h).
class ResourceHandle;
// The element of DT_VARIANT (variant.h).
class Variant;

// ---- C++ type <-> DataType at compile time ----

// DataTypeToEnum<float>::value == DT_FLOAT; no `value` for other C++ types.
template <typename T>
struct DataTypeToEnum {};
// EnumToDataType<DT_FLOAT>::Type is float.
template <DataType>
struct EnumToDataType {};

#define GRADFLOW_MATCH_TYPE(TYPE, ENUM)            \
  template <>                                      \
  struct DataTypeToEnum<TYPE> {                    \
    static constexpr DataType value = ENUM;        \
    static constexpr DataType v() { return ENUM; } \
  };                                               \
  template <>                                      \
  struct EnumToDataType<ENUM> {                    \
    using Type = TYPE;                             \
  }
GRADFLOW_MATCH_TYPE(float, DT_FLOAT);
GRADFLOW_MATCH_TYPE(double, DT_DOUBLE);
GRADFLOW_MATCH_TYPE(half, DT_HALF);
GRADFLOW_MATCH_TYPE(bfloat16, DT_BFLOAT16);
GRADFLOW_MATCH_TYPE(int8_t, DT_INT8);
GRADFLOW_MATCH_TYPE(int16_t, DT_INT16);
GRADFLOW_MATCH_TYPE(int32_t, DT_INT32);
GRADFLOW_MATCH_TYPE(int64_t, DT_INT64);
GRADFLOW_MATCH_TYPE(uint8_t, DT_UINT8);
GRADFLOW_MATCH_TYPE(uint16_t, DT_UINT16);
GRADFLOW_MATCH_TYPE(uint32_t, DT_UINT32);
GRADFLOW_MATCH_TYPE(uint64_t, DT_UINT64);
GRADFLOW_MATCH_TYPE(bool, DT_BOOL);
GRADFLOW_MATCH_TYPE(complex64, DT_COMPLEX64);
GRADFLOW_MATCH_TYPE(complex128, DT_COMPLEX128);
GRADFLOW_MATCH_TYPE(tstring, DT_STRING);
GRADFLOW_MATCH_TYPE(ResourceHandle, DT_RESOURCE);
GRADFLOW_MATCH_TYPE(Variant, DT_VARIANT);
GRADFLOW_MATCH_TYPE(qint8, DT_QINT8);
GRADFLOW_MATCH_TYPE(quint8, DT_QUINT8);
GRADFLOW_MATCH_TYPE(qint16, DT_QINT16);
GRADFLOW_MATCH_TYPE(quint16, DT_QUINT16);
GRADFLOW_MATCH_TYPE(qint32, DT_QINT32);
GRADFLOW_MATCH_TYPE(float8_e5m2, DT_FLOAT8_E5M2);
GRADFLOW_MATCH_TYPE(float8_e4m3fn, DT_FLOAT8_E4M3FN);
GRADFLOW_MATCH_TYPE(float8_e4m3fnuz, DT_FLOAT8_E4M3FNUZ);
GRADFLOW_MATCH_TYPE(float8_e4m3b11fnuz, DT_FLOAT8_E4M3B11FNUZ);
GRADFLOW_MATCH_TYPE(float8_e5m2fnuz, DT_FLOAT8_E5M2FNUZ);
GRADFLOW_MATCH_TYPE(int4, DT_INT4);
GRADFLOW_MATCH_TYPE(uint4, DT_UINT4);
GRADFLOW_MATCH_TYPE(int2, DT_INT2);
GRADFLOW_MATCH_TYPE(uint2, DT_UINT2);
#undef GRADFLOW_MATCH_TYPE

// ---- Type lists: the types that a kernel is instantiated for ----

template <typename... Ts>
struct TypeList {};

template <typename T>
struct TypeTag {
  // The tagged type.
  using type = T;
};

template <typename A, typename B>
struct ConcatTypes;
template <typename... As, typename... Bs>
struct ConcatTypes<TypeList<As...>, TypeList<Bs...>> {
  // The types of the first list, followed by the types of the second list.
  using type = TypeList<As..., Bs...>;
};

using FloatingTypes = TypeList<bfloat16, half, float, double>;
using SignedIntegerTypes = TypeList<int8_t, int16_t, int32_t, int64_t>;
using UnsignedIntegerTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t>;
using IntegerTypes = ConcatTypes<SignedIntegerTypes, UnsignedIntegerTypes>::type;
using ComplexTypes = TypeList<complex64, complex128>;
using RealTypes = ConcatTypes<FloatingTypes, IntegerTypes>::type;
using NumberTypes = ConcatTypes<RealTypes, ComplexTypes>::type;
using QuantizedTypes = TypeList<qint8, quint8, qint16, quint16, qint32>;
using IndexTypes = TypeList<int32_t, int64_t>;

// Calls fn(TypeTag<T>()) for each T of the list, in order. Used to register one kernel per type:
//   ForEachType(FloatingTypes(), [&](auto tag) { using T = typename decltype(tag)::type; ... });
template <typename... Ts, typename F>
void ForEachType(TypeList<Ts...>, F&& fn) {
  (fn(TypeTag<Ts>()), ...);
}

// Calls fn(TypeTag<T>()) for the T of the list whose DataType is `dtype`. Returns false, without
// calling `fn`, if the list has no such T.
template <typename... Ts, typename F>
bool DispatchType(TypeList<Ts...>, DataType dtype, F&& fn) {
  return ((dtype == DataTypeToEnum<Ts>::value ? (fn(TypeTag<Ts>()), true) : false) || ...);
}

template <typename T>
inline constexpr bool kIsFloat16 = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// ---- DataType at run time ----

// Returns the name of `dtype` in op definitions: "float", "int32", "half"; "float_ref" for
// DT_FLOAT_REF; "DataType(77)" for a number that is not a type.
std::string DataTypeString(DataType dtype);
// Inverse of DataTypeString(). Also accepts "float32", "float16" and "float64". Returns false if
// `name` is not the name of a type.
bool DataTypeFromString(absl::string_view name, DataType* dtype);
// Returns the names in brackets: "[float, int32]".
std::string DataTypeVectorString(const DataTypeVector& types);

// Returns the size of one element in bytes. Returns 0 for types that are not trivially copyable
// (string, resource, variant), for reference types and for numbers that are not a type.
int DataTypeSize(DataType dtype);
// Returns true if graphs and files can store values of this type: all types with a C++ type above
// except resource.
bool DataTypeCanBeTensor(DataType dtype);
// Returns true if elements may be copied as bytes: all types with a C++ type above except string,
// resource and variant.
inline bool DataTypeIsPlainBytes(DataType dtype) { return DataTypeSize(dtype) > 0; }

// The number of a reference type (DT_FLOAT_REF) is the number of the referenced type plus 100.
inline bool IsRefType(DataType dtype) { return static_cast<int>(dtype) > 100; }
// The type without the reference.
inline DataType BaseType(DataType dtype) {
  return IsRefType(dtype) ? static_cast<DataType>(static_cast<int>(dtype) - 100) : dtype;
}
inline DataType MakeRefType(DataType dtype) {
  return static_cast<DataType>(static_cast<int>(dtype) + 100);
}
bool DataTypeIsFloating(DataType dtype);
bool DataTypeIsInteger(DataType dtype);
bool DataTypeIsComplex(DataType dtype);
bool DataTypeIsQuantized(DataType dtype);

// Sets of types that attribute constraints name, as in TensorFlow: "numbertype", "realnumbertype"
// and "quantizedtype".
const DataTypeVector& NumberDataTypes();
const DataTypeVector& RealNumberDataTypes();
const DataTypeVector& QuantizedDataTypes();
// All types except references, in the order of their numbers. The constraint "type" allows these.
const DataTypeVector& AllDataTypes();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TYPES_H_
