// The enum DataType and its values, without the headers of Protocol Buffers. Internal: programs
// include types.h or types.pb.h.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_DATA_TYPE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_DATA_TYPE_H_

#include "gradflow/proto/data_type.h"

namespace tensorflow {

using gradflow::DataType;
using gradflow::DT_BFLOAT16;
using gradflow::DT_BFLOAT16_REF;
using gradflow::DT_BOOL;
using gradflow::DT_BOOL_REF;
using gradflow::DT_COMPLEX128;
using gradflow::DT_COMPLEX128_REF;
using gradflow::DT_COMPLEX64;
using gradflow::DT_COMPLEX64_REF;
using gradflow::DT_DOUBLE;
using gradflow::DT_DOUBLE_REF;
using gradflow::DT_FLOAT;
using gradflow::DT_FLOAT8_E4M3B11FNUZ;
using gradflow::DT_FLOAT8_E4M3B11FNUZ_REF;
using gradflow::DT_FLOAT8_E4M3FN;
using gradflow::DT_FLOAT8_E4M3FN_REF;
using gradflow::DT_FLOAT8_E4M3FNUZ;
using gradflow::DT_FLOAT8_E4M3FNUZ_REF;
using gradflow::DT_FLOAT8_E5M2;
using gradflow::DT_FLOAT8_E5M2_REF;
using gradflow::DT_FLOAT8_E5M2FNUZ;
using gradflow::DT_FLOAT8_E5M2FNUZ_REF;
using gradflow::DT_FLOAT_REF;
using gradflow::DT_HALF;
using gradflow::DT_HALF_REF;
using gradflow::DT_INT16;
using gradflow::DT_INT16_REF;
using gradflow::DT_INT2;
using gradflow::DT_INT2_REF;
using gradflow::DT_INT32;
using gradflow::DT_INT32_REF;
using gradflow::DT_INT4;
using gradflow::DT_INT4_REF;
using gradflow::DT_INT64;
using gradflow::DT_INT64_REF;
using gradflow::DT_INT8;
using gradflow::DT_INT8_REF;
using gradflow::DT_INVALID;
using gradflow::DT_QINT16;
using gradflow::DT_QINT16_REF;
using gradflow::DT_QINT32;
using gradflow::DT_QINT32_REF;
using gradflow::DT_QINT8;
using gradflow::DT_QINT8_REF;
using gradflow::DT_QUINT16;
using gradflow::DT_QUINT16_REF;
using gradflow::DT_QUINT8;
using gradflow::DT_QUINT8_REF;
using gradflow::DT_RESOURCE;
using gradflow::DT_RESOURCE_REF;
using gradflow::DT_STRING;
using gradflow::DT_STRING_REF;
using gradflow::DT_UINT16;
using gradflow::DT_UINT16_REF;
using gradflow::DT_UINT2;
using gradflow::DT_UINT2_REF;
using gradflow::DT_UINT32;
using gradflow::DT_UINT32_REF;
using gradflow::DT_UINT4;
using gradflow::DT_UINT4_REF;
using gradflow::DT_UINT64;
using gradflow::DT_UINT64_REF;
using gradflow::DT_UINT8;
using gradflow::DT_UINT8_REF;
using gradflow::DT_VARIANT;
using gradflow::DT_VARIANT_REF;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_DATA_TYPE_H_
