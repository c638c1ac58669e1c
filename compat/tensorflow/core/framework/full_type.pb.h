// The messages of full_type.proto: gradflow's, which have TensorFlow's fields.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_

#include "gradflow/proto/full_type.pb.h"

namespace tensorflow {

using gradflow::FullTypeDef;
using gradflow::FullTypeId;
using gradflow::FullTypeId_Name;

// Constructors of types, by their numbers in TensorFlow. gradflow carries them through.
inline constexpr FullTypeId TFT_UNSET = static_cast<FullTypeId>(0);
inline constexpr FullTypeId TFT_VAR = static_cast<FullTypeId>(1);
inline constexpr FullTypeId TFT_ANY = static_cast<FullTypeId>(2);
inline constexpr FullTypeId TFT_PRODUCT = static_cast<FullTypeId>(3);
inline constexpr FullTypeId TFT_NAMED = static_cast<FullTypeId>(4);
inline constexpr FullTypeId TFT_FOR_EACH = static_cast<FullTypeId>(20);
inline constexpr FullTypeId TFT_CALLABLE = static_cast<FullTypeId>(100);
inline constexpr FullTypeId TFT_TENSOR = static_cast<FullTypeId>(1000);
inline constexpr FullTypeId TFT_ARRAY = static_cast<FullTypeId>(1001);
inline constexpr FullTypeId TFT_OPTIONAL = static_cast<FullTypeId>(1002);
inline constexpr FullTypeId TFT_LITERAL = static_cast<FullTypeId>(1003);
inline constexpr FullTypeId TFT_ENCODED = static_cast<FullTypeId>(1004);
inline constexpr FullTypeId TFT_SHAPE_TENSOR = static_cast<FullTypeId>(1005);
inline constexpr FullTypeId TFT_BOOL = static_cast<FullTypeId>(200);
inline constexpr FullTypeId TFT_UINT8 = static_cast<FullTypeId>(201);
inline constexpr FullTypeId TFT_UINT16 = static_cast<FullTypeId>(202);
inline constexpr FullTypeId TFT_UINT32 = static_cast<FullTypeId>(203);
inline constexpr FullTypeId TFT_UINT64 = static_cast<FullTypeId>(204);
inline constexpr FullTypeId TFT_INT8 = static_cast<FullTypeId>(205);
inline constexpr FullTypeId TFT_INT16 = static_cast<FullTypeId>(206);
inline constexpr FullTypeId TFT_INT32 = static_cast<FullTypeId>(207);
inline constexpr FullTypeId TFT_INT64 = static_cast<FullTypeId>(208);
inline constexpr FullTypeId TFT_HALF = static_cast<FullTypeId>(209);
inline constexpr FullTypeId TFT_FLOAT = static_cast<FullTypeId>(210);
inline constexpr FullTypeId TFT_DOUBLE = static_cast<FullTypeId>(211);
inline constexpr FullTypeId TFT_BFLOAT16 = static_cast<FullTypeId>(215);
inline constexpr FullTypeId TFT_COMPLEX64 = static_cast<FullTypeId>(212);
inline constexpr FullTypeId TFT_COMPLEX128 = static_cast<FullTypeId>(213);
inline constexpr FullTypeId TFT_STRING = static_cast<FullTypeId>(214);
inline constexpr FullTypeId TFT_DATASET = static_cast<FullTypeId>(10102);
inline constexpr FullTypeId TFT_RAGGED = static_cast<FullTypeId>(10103);
inline constexpr FullTypeId TFT_ITERATOR = static_cast<FullTypeId>(10104);
inline constexpr FullTypeId TFT_MUTEX_LOCK = static_cast<FullTypeId>(10202);
inline constexpr FullTypeId TFT_LEGACY_VARIANT = static_cast<FullTypeId>(10203);

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_FULL_TYPE_PB_H_
