// The matrices of tensors as those of Eigen. Included in .cc files of this folder only.
//
// Decompositions are computed in double or complex128, those of narrower types too: that is more
// accurate, and each algorithm is compiled for two types. Eigen compiles for the instructions
// that all processors have, so that results do not depend on the processor.
#ifndef GRADFLOW_OPS_LINALG_EIGEN_H_
#define GRADFLOW_OPS_LINALG_EIGEN_H_

#include <Eigen/Core>
#include <cstdint>

#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// Column-major, for which Eigen's algorithms are written.
template <typename T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

// The types of matrices that most ops decompose, as TensorFlow's CPU kernels.
using LinalgTypes = TypeList<float, double, complex64, complex128>;
// Those of Qr and MatrixInverse, which the functions below accept.
using MatrixTypes = TypeList<half, float, double, complex64, complex128>;

// Returns matrix i of a tensor of real numbers (T is double) or of any of MatrixTypes (T is
// complex128).
template <typename T>
EigenMatrix<T> LoadMatrix(const Tensor& tensor, int64_t i);
// Sets matrix i of a tensor, of a type that T is rounded to.
template <typename T>
void StoreMatrix(const EigenMatrix<T>& matrix, Tensor* tensor, int64_t i);
// Sets elements [i * n, (i + 1) * n) of a tensor of one of MatrixTypes.
void StoreVector(const Eigen::VectorXd& values, Tensor* tensor, int64_t i);
void StoreVector(const Eigen::VectorXcd& values, Tensor* tensor, int64_t i);
// Sets all elements of a tensor of one of MatrixTypes, or of its matrix i.
void FillElements(double value, Tensor* tensor);
void FillMatrix(double value, Tensor* tensor, int64_t i);

// Calls fn(TypeTag<T>()) with the T that matrices of `dtype` are computed in.
template <typename F>
void DispatchWide(DataType dtype, const F& fn) {
  if (DataTypeIsComplex(dtype)) {
    fn(TypeTag<complex128>());
  } else {
    fn(TypeTag<double>());
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_EIGEN_H_
