#include "gradflow/core/truth.h"

#include "gradflow/core/status.h"
#include "gradflow/core/types.h"

namespace gradflow {

absl::StatusOr<bool> TruthOf(const Tensor& tensor) {
  if (tensor.dims() > 0) return tensor.NumElements() > 0;
  if (tensor.dtype() == DT_BOOL) return tensor.scalar<bool>()();
  if (tensor.dtype() == DT_STRING) return !tensor.scalar<tstring>()().empty();
  bool result = false;
  const bool known = DispatchType(RealTypes(), tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    result = tensor.scalar<T>()() != T(0);
  });
  if (known) return result;
  return errors::InvalidArgument("a scalar of type ", DataTypeString(tensor.dtype()),
                                 " is neither true nor false");
}

}  // namespace gradflow
