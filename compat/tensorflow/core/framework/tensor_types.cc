#include "tensorflow/core/framework/tensor_types.h"

#ifdef GRADFLOW_EIGEN_VIEWS

#include <cstdlib>

#include "absl/strings/str_join.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace compat_internal {

void WrongViewType(const gradflow::Tensor& tensor, gradflow::DataType expected) {
  LOG(FATAL) << "Check failed: dtype() == expected_dtype ("
             << gradflow::DataTypeString(tensor.dtype()) << " vs. "
             << gradflow::DataTypeString(expected) << ") " << gradflow::DataTypeString(expected)
             << " expected, got " << gradflow::DataTypeString(tensor.dtype());
  std::abort();  // for compilers that do not see that the line above does not return
}

void WrongViewShape(const gradflow::Tensor& tensor, absl::Span<const int64_t> dims,
                    int expected_dims) {
  if (!tensor.IsInitialized()) {
    LOG(FATAL) << "Check failed: IsInitialized() (a view of a tensor of type "
               << gradflow::DataTypeString(tensor.dtype()) << " and shape "
               << tensor.shape().DebugString() << " that is not initialized)";
  }
  if (expected_dims == 0 && dims.empty()) {
    LOG(FATAL) << "Check failed: 1 == NumElements() (1 vs. " << tensor.NumElements()
               << ") Must have a one element tensor, but the shape is "
               << tensor.shape().DebugString();
  }
  if (static_cast<int>(dims.size()) != expected_dims) {
    LOG(FATAL) << "Check failed: NDIMS == dims() (" << expected_dims << " vs. " << tensor.dims()
               << ") Asking for a view of " << expected_dims << " dimensions of a tensor of "
               << tensor.dims() << " dimensions";
  }
  LOG(FATAL) << "Check failed: a view of shape [" << absl::StrJoin(dims, ",")
             << "] of a tensor of shape " << tensor.shape().DebugString();
  std::abort();
}

}  // namespace compat_internal
}  // namespace tensorflow

#endif
