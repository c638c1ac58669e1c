// Lists of element types at run time, for kernels that support several types.
#ifndef GRADFLOW_OPS_COMMON_DATA_TYPES_H_
#define GRADFLOW_OPS_COMMON_DATA_TYPES_H_

#include "gradflow/core/types.h"

namespace gradflow {

// Returns the DataTypes of a type list, in order:
//   registry.Kernel("Sum", factory).Types("T", DataTypesOf(NumberTypes()));
template <typename... Ts>
DataTypeVector DataTypesOf(TypeList<Ts...>) {
  return {DataTypeToEnum<Ts>::value...};
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_DATA_TYPES_H_
