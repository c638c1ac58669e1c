// Element types and device types.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_

#include <ostream>
#include <string>

#include "gradflow/core/types.h"
#include "tensorflow/core/framework/data_type.h"
#include "tensorflow/core/framework/full_type.pb.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/lib/gtl/inlined_vector.h"
#include "tensorflow/core/platform/types.h"

#ifdef GRADFLOW_EIGEN_VIEWS
// half and bfloat16 are Eigen's types, so that Eigen can compute with them. Tensors also accept
// gradflow's types, which have the same bits. Defined by tensor_types.h.
namespace Eigen {
struct half;
struct bfloat16;
}  // namespace Eigen

namespace gradflow {

template <>
struct DataTypeToEnum<Eigen::half> : DataTypeToEnum<half> {};
template <>
struct DataTypeToEnum<Eigen::bfloat16> : DataTypeToEnum<bfloat16> {};
template <>
inline constexpr bool kIsFloat16<Eigen::half> = true;
template <>
inline constexpr bool kIsFloat16<Eigen::bfloat16> = true;

}  // namespace gradflow

namespace tensorflow {

using half = Eigen::half;
using bfloat16 = Eigen::bfloat16;

// EnumToDataType<DT_FLOAT>::Type is float.
template <DataType dtype>
struct EnumToDataType : gradflow::EnumToDataType<dtype> {};
template <>
struct EnumToDataType<DT_HALF> {
  using Type = half;
};
template <>
struct EnumToDataType<DT_BFLOAT16> {
  using Type = bfloat16;
};

}  // namespace tensorflow
#else
namespace tensorflow {

using gradflow::bfloat16;
using gradflow::EnumToDataType;
using gradflow::half;

}  // namespace tensorflow
#endif

namespace tensorflow {

using gradflow::BaseType;
using gradflow::complex128;
using gradflow::complex64;
using gradflow::DataTypeFromString;
using gradflow::DataTypeIsComplex;
using gradflow::DataTypeIsFloating;
using gradflow::DataTypeIsInteger;
using gradflow::DataTypeIsQuantized;
using gradflow::DataTypeSize;
using gradflow::DataTypeString;
using gradflow::DataTypeToEnum;
using gradflow::DataTypeVector;
using gradflow::float8_e4m3b11fnuz;
using gradflow::float8_e4m3fn;
using gradflow::float8_e4m3fnuz;
using gradflow::float8_e5m2;
using gradflow::float8_e5m2fnuz;
using gradflow::int2;
using gradflow::int4;
using gradflow::IsRefType;
using gradflow::MakeRefType;
using gradflow::qint16;
using gradflow::qint32;
using gradflow::qint8;
using gradflow::quint16;
using gradflow::quint8;
using gradflow::uint2;
using gradflow::uint4;

// Products of quantised integers, in the form that Eigen provides for TensorFlow.
}  // namespace tensorflow

namespace gradflow {

inline qint32 operator*(qint32 a, qint8 b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a.value) * static_cast<uint32_t>(b.value));
}
inline qint32 operator*(qint8 a, qint8 b) { return int32_t{a.value} * int32_t{b.value}; }

}  // namespace gradflow

namespace tensorflow {

inline DataType RemoveRefType(DataType dtype) { return gradflow::BaseType(dtype); }

using DataTypeSlice = gtl::ArraySlice<DataType>;
// "float, int32"
inline std::string DataTypeSliceString(DataTypeSlice types) {
  // Without the brackets.
  const std::string text =
      gradflow::DataTypeVectorString(DataTypeVector(types.begin(), types.end()));
  return text.substr(1, text.size() - 2);
}
// Returns what DataTypeSliceString() returns. This is an object, because a function would be
// ambiguous with gradflow's function.
struct DataTypeVectorStringFunction {
  std::string operator()(DataTypeSlice types) const { return DataTypeSliceString(types); }
};
inline constexpr DataTypeVectorStringFunction DataTypeVectorString;
// Returns true if a value of type `actual` is valid where `expected` is required.
inline bool TypesCompatible(DataType expected, DataType actual) {
  return expected == actual || expected == BaseType(actual);
}

// A device type, "CPU" or "GPU". Kernels for other devices than the CPU may be registered, but
// never run.
class DeviceType {
 public:
  explicit DeviceType(absl::string_view type) : type_(type) {}
  DeviceType(const char* type) : type_(type) {}  // NOLINT: as in TensorFlow
  const char* type() const { return type_.c_str(); }
  const std::string& type_string() const { return type_; }
  friend bool operator==(const DeviceType& a, const DeviceType& b) { return a.type_ == b.type_; }
  friend bool operator!=(const DeviceType& a, const DeviceType& b) { return a.type_ != b.type_; }
  friend bool operator<(const DeviceType& a, const DeviceType& b) { return a.type_ < b.type_; }
  friend std::ostream& operator<<(std::ostream& os, const DeviceType& d) { return os << d.type_; }

 private:
  std::string type_;
};

inline std::string DeviceTypeString(const DeviceType& type) { return type.type_string(); }

// DT_FLOAT_REF == DT_FLOAT + kDataTypeRefOffset
inline constexpr int kDataTypeRefOffset = 100;

// All types except references.
inline const DataTypeVector& AllTypes() { return gradflow::AllDataTypes(); }
inline bool DataTypeIsUnsigned(DataType dtype) {
  return dtype == DT_UINT8 || dtype == DT_UINT16 || dtype == DT_UINT32 || dtype == DT_UINT64 ||
         dtype == DT_UINT4 || dtype == DT_UINT2;
}
inline bool DataTypeAlwaysOnHost(DataType dtype) {
  return dtype == DT_STRING || dtype == DT_STRING_REF || dtype == DT_RESOURCE ||
         dtype == DT_VARIANT;
}
inline bool DataTypeCanUseMemcpy(DataType dtype) { return gradflow::DataTypeIsPlainBytes(dtype); }
// Store the full type of an element, or of a tensor of such elements.
void map_dtype_to_tensor(const DataType& dtype, gradflow::FullTypeDef& t);
void map_dtype_to_child_of_tensor(const DataType& dtype, gradflow::FullTypeDef& t);

// The kind of memory of a tensor. A CPU has a single kind.
enum MemoryType { DEVICE_MEMORY = 0, HOST_MEMORY = 1 };
using MemoryTypeVector = gtl::InlinedVector<MemoryType, 4>;

inline constexpr const char* DEVICE_DEFAULT = "DEFAULT";
inline constexpr const char* DEVICE_CPU = "CPU";
inline constexpr const char* DEVICE_GPU = "GPU";
inline constexpr const char* DEVICE_TPU = "TPU";

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_
