// Matrices of double or complex128 in LAPACK's memory layout, and conversions from and to tensors.
//
// Decompositions compute in double or complex128. Narrower types are converted. This is more
// accurate and compiles each algorithm for only two types.
#ifndef GRADFLOW_OPS_LINALG_WIDE_MATRIX_H_
#define GRADFLOW_OPS_LINALG_WIDE_MATRIX_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace gradflow {

// The matrix types that most ops decompose, as in TensorFlow's CPU kernels.
using LinalgTypes = TypeList<float, double, complex64, complex128>;
// The matrix types of Qr and MatrixInverse. The functions below accept them.
using MatrixTypes = TypeList<half, float, double, complex64, complex128>;

// A view of a column-major matrix. Column j starts at data + j * stride.
template <typename T>
struct WideView {
  T* data;
  int64_t rows;
  int64_t columns;
  int64_t stride;

  T& operator()(int64_t row, int64_t column) const { return data[row + column * stride]; }
  T* Column(int64_t column) const { return data + column * stride; }
  WideView Block(int64_t row, int64_t column, int64_t num_rows, int64_t num_columns) const {
    return {data + row + column * stride, num_rows, num_columns, stride};
  }
  operator WideView<const T>() const { return {data, rows, columns, stride}; }
};

// A column-major matrix. T is double or complex128.
template <typename T>
class WideMatrix {
 public:
  WideMatrix() : WideMatrix(0, 0) {}
  // A matrix of zeros.
  WideMatrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), elements_(rows * columns) {}
  static WideMatrix Identity(int64_t n) {
    WideMatrix identity(n, n);
    for (int64_t i = 0; i < n; ++i) identity(i, i) = 1;
    return identity;
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  absl::Span<T> elements() { return absl::MakeSpan(elements_); }
  absl::Span<const T> elements() const { return elements_; }
  T& operator()(int64_t row, int64_t column) { return elements_[row + column * rows_]; }
  const T& operator()(int64_t row, int64_t column) const { return elements_[row + column * rows_]; }
  WideView<T> view() { return {data(), rows_, columns_, rows_}; }
  WideView<const T> view() const { return {data(), rows_, columns_, rows_}; }

 private:
  int64_t rows_;
  int64_t columns_;
  std::vector<T> elements_;
};

inline double Conjugate(double value) { return value; }
inline complex128 Conjugate(complex128 value) { return std::conj(value); }

// Returns the conjugate transpose.
template <typename T>
WideMatrix<T> Adjoint(const WideMatrix<T>& matrix);
// Returns true if no element is NaN or infinite.
template <typename T>
bool AllFinite(const WideMatrix<T>& matrix);

// Returns matrix i of a tensor, or its adjoint. The tensor must have one of MatrixTypes, and a real
// type if T is double.
template <typename T>
WideMatrix<T> LoadMatrix(const Tensor& tensor, int64_t i, bool adjoint = false);
// Sets matrix i of a tensor to `matrix`, or to its adjoint, rounded to the type of the tensor. If
// `matrix` is larger, its upper left block is used. REQUIRES: the tensor has one of MatrixTypes,
// and a complex type if T is complex
template <typename T>
void StoreMatrix(const WideMatrix<T>& matrix, Tensor* tensor, int64_t i, bool adjoint = false);
// Sets elements [i * n, (i + 1) * n) of a tensor to n values. REQUIRES: the tensor has one of
// MatrixTypes, and a complex type if T is complex
template <typename T>
void StoreVector(absl::Span<const T> values, Tensor* tensor, int64_t i);
// Sets all elements (FillElements) or elements [i * n, (i + 1) * n) (FillVector) of a tensor with
// one of MatrixTypes.
void FillElements(double value, Tensor* tensor);
void FillVector(double value, int64_t n, Tensor* tensor, int64_t i);
// Sets the elements of matrix i of a tensor with one of MatrixTypes.
void FillMatrix(double value, Tensor* tensor, int64_t i);

// Calls fn(TypeTag<T>()), where T is the type that computes matrices of `dtype`.
template <typename F>
void DispatchWide(DataType dtype, const F& fn) {
  if (DataTypeIsComplex(dtype)) {
    fn(TypeTag<complex128>());
  } else {
    fn(TypeTag<double>());
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_WIDE_MATRIX_H_
