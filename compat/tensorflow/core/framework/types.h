// Element types and device types.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_

#include <ostream>
#include <string>

#include "gradflow/core/types.h"
#include "tensorflow/core/framework/data_type.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

using gradflow::BaseType;
using gradflow::bfloat16;
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
using gradflow::EnumToDataType;
using gradflow::half;
using gradflow::IsRefType;
using gradflow::MakeRefType;
using gradflow::qint16;
using gradflow::qint32;
using gradflow::qint8;
using gradflow::quint16;
using gradflow::quint8;

inline DataType RemoveRefType(DataType dtype) { return gradflow::BaseType(dtype); }

using DataTypeSlice = gtl::ArraySlice<DataType>;
inline std::string DataTypeSliceString(DataTypeSlice types) {
  return gradflow::DataTypeVectorString(DataTypeVector(types.begin(), types.end()));
}
// Returns true if a value of type `actual` is valid where `expected` is required.
inline bool TypesCompatible(DataType expected, DataType actual) {
  return expected == actual || expected == BaseType(actual);
}

// A device type, "CPU" or "GPU". Kernels for devices other than the CPU may be registered but never
// run.
class DeviceType {
 public:
  explicit DeviceType(StringPiece type) : type_(type) {}
  const char* type() const { return type_.c_str(); }
  const std::string& type_string() const { return type_; }
  friend bool operator==(const DeviceType& a, const DeviceType& b) { return a.type_ == b.type_; }
  friend bool operator!=(const DeviceType& a, const DeviceType& b) { return a.type_ != b.type_; }
  friend bool operator<(const DeviceType& a, const DeviceType& b) { return a.type_ < b.type_; }
  friend std::ostream& operator<<(std::ostream& os, const DeviceType& d) { return os << d.type_; }

 private:
  std::string type_;
};

inline constexpr const char* DEVICE_DEFAULT = "DEFAULT";
inline constexpr const char* DEVICE_CPU = "CPU";
inline constexpr const char* DEVICE_GPU = "GPU";
inline constexpr const char* DEVICE_TPU = "TPU";

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPES_H_
