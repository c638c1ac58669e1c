// TTypes: the types of a tensor's views. Views support indexing, sizes and filling. Unlike Eigen's,
// they have no arithmetic on whole views.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_

#include <cstdint>
#include <ostream>
#include <type_traits>

#include "gradflow/core/tensor_view.h"

namespace gradflow {

// Prints a line per row of the last dimension, or per element of a vector, as Eigen does.
template <typename T, int N>
std::ostream& operator<<(std::ostream& os, const TensorView<T, N>& view) {
  int64_t columns = 1;
  if constexpr (N >= 2) columns = view.dimension(N - 1);
  for (int64_t i = 0; i < view.size(); ++i) {
    if (i > 0) os << (i % columns == 0 ? '\n' : ' ');
    // Prints bytes as numbers.
    if constexpr (sizeof(T) == 1 && std::is_integral_v<T>) {
      os << +view[i];
    } else {
      os << view[i];
    }
  }
  return os;
}

}  // namespace gradflow

namespace tensorflow {

template <typename T, int NDIMS = 1, typename IndexType = int64_t>
struct TTypes {
  using Tensor = gradflow::TensorView<T, NDIMS>;
  using ConstTensor = gradflow::TensorView<const T, NDIMS>;
  using Scalar = gradflow::TensorView<T, 0>;
  using ConstScalar = gradflow::TensorView<const T, 0>;
  using Flat = gradflow::TensorView<T, 1>;
  using ConstFlat = gradflow::TensorView<const T, 1>;
  using Vec = gradflow::TensorView<T, 1>;
  using ConstVec = gradflow::TensorView<const T, 1>;
  using Matrix = gradflow::TensorView<T, 2>;
  using ConstMatrix = gradflow::TensorView<const T, 2>;
  using UnalignedTensor = Tensor;
  using UnalignedConstTensor = ConstTensor;
  using UnalignedFlat = Flat;
  using UnalignedConstFlat = ConstFlat;
  using UnalignedVec = Vec;
  using UnalignedConstVec = ConstVec;
  using UnalignedMatrix = Matrix;
  using UnalignedConstMatrix = ConstMatrix;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_
