// TTypes: the types of a tensor's views.
//
// If gradflow was configured with Eigen (the macro GRADFLOW_EIGEN_VIEWS, which the targets define),
// views are Eigen's: TensorMap<Tensor<T, N, RowMajor>>. Their memory need not be aligned, so
// aligned and unaligned types are the same. A view of the wrong type or shape ends the program, as
// in TensorFlow. Otherwise, views are gradflow's, which support indexing, sizes and filling.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>

#include "gradflow/core/tensor.h"
#include "gradflow/core/tensor_view.h"

#ifdef GRADFLOW_EIGEN_VIEWS

// Eigen declares its thread pools only if this is defined. The targets also define it, for programs
// that include Eigen first.
#ifndef EIGEN_USE_THREADS
#define EIGEN_USE_THREADS
#endif
#include <unsupported/Eigen/CXX11/Tensor>

namespace tensorflow {

template <typename T, int NDIMS = 1, typename IndexType = Eigen::DenseIndex>
struct TTypes {
  using Tensor = Eigen::TensorMap<Eigen::Tensor<T, NDIMS, Eigen::RowMajor, IndexType>>;
  using ConstTensor = Eigen::TensorMap<Eigen::Tensor<const T, NDIMS, Eigen::RowMajor, IndexType>>;
  using UnalignedTensor = Tensor;
  using UnalignedConstTensor = ConstTensor;
  // A view with 32-bit indices, which are meant for other devices.
  using Tensor32Bit = Eigen::TensorMap<Eigen::Tensor<T, NDIMS, Eigen::RowMajor, int>>;

  using Scalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>>;
  using ConstScalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<const T, Eigen::Sizes<>, Eigen::RowMajor, IndexType>>;
  using UnalignedScalar = Scalar;
  using UnalignedConstScalar = ConstScalar;

  using Flat = Eigen::TensorMap<Eigen::Tensor<T, 1, Eigen::RowMajor, IndexType>>;
  using ConstFlat = Eigen::TensorMap<Eigen::Tensor<const T, 1, Eigen::RowMajor, IndexType>>;
  using UnalignedFlat = Flat;
  using UnalignedConstFlat = ConstFlat;
  using Vec = Flat;
  using ConstVec = ConstFlat;
  using UnalignedVec = Vec;
  using UnalignedConstVec = ConstVec;

  using Matrix = Eigen::TensorMap<Eigen::Tensor<T, 2, Eigen::RowMajor, IndexType>>;
  using ConstMatrix = Eigen::TensorMap<Eigen::Tensor<const T, 2, Eigen::RowMajor, IndexType>>;
  using UnalignedMatrix = Matrix;
  using UnalignedConstMatrix = ConstMatrix;
};

// Returns the same view with 32-bit indices. REQUIRES: its sizes fit
template <typename View>
auto To32Bit(View in) {
  using T = std::remove_pointer_t<decltype(in.data())>;
  Eigen::DSizes<int, View::NumDimensions> dims;
  for (int d = 0; d < View::NumDimensions; ++d) dims[d] = static_cast<int>(in.dimension(d));
  return typename TTypes<T, View::NumDimensions>::Tensor32Bit(in.data(), dims);
}

namespace compat_internal {

// End the program with a message that states the tensor and the expected view.
[[noreturn]] void WrongViewType(const gradflow::Tensor& tensor, gradflow::DataType expected);
[[noreturn]] void WrongViewShape(const gradflow::Tensor& tensor, absl::Span<const int64_t> dims,
                                 int expected_dims);

}  // namespace compat_internal
}  // namespace tensorflow

namespace gradflow {
namespace internal {

template <typename T>
void CheckEigenView(const Tensor& tensor, absl::Span<const int64_t> dims, int expected_dims) {
  constexpr DataType kType = DataTypeToEnum<std::remove_const_t<T>>::value;
  if (__builtin_expect(tensor.dtype() != kType, 0)) {
    tensorflow::compat_internal::WrongViewType(tensor, kType);
  }
  if (__builtin_expect(static_cast<int>(dims.size()) != expected_dims || !tensor.IsInitialized(),
                       0)) {
    tensorflow::compat_internal::WrongViewShape(tensor, dims, expected_dims);
  }
}

template <typename T, int N>
struct EigenView {
  using Type = typename tensorflow::TTypes<T, N>::Tensor;

  static Type Make(const Tensor& tensor, absl::Span<const int64_t> dims, void* data) {
    CheckEigenView<T>(tensor, dims, N);
    if constexpr (N == 0) {
      return Type(static_cast<T*>(data));
    } else {
      Eigen::array<Eigen::DenseIndex, N> sizes;
      for (int d = 0; d < N; ++d) sizes[d] = dims[d];
      return Type(static_cast<T*>(data), sizes);
    }
  }
  [[noreturn]] static Type Mismatch(const Tensor& tensor, absl::Span<const int64_t> dims) {
    tensorflow::compat_internal::WrongViewShape(tensor, dims, N);
  }
};

template <typename T>
struct EigenScalar {
  using Type = typename tensorflow::TTypes<T>::Scalar;

  static Type Make(const Tensor& tensor, void* data) {
    CheckEigenView<T>(tensor, {}, 0);
    if (__builtin_expect(tensor.NumElements() != 1, 0)) {
      tensorflow::compat_internal::WrongViewShape(tensor, {}, 0);
    }
    return Type(static_cast<T*>(data));
  }
};

}  // namespace internal
}  // namespace gradflow

#else

namespace gradflow {

// Prints a line per row of the last dimension, or per element of a vector, like Eigen.
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

#endif

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TENSOR_TYPES_H_
