#include "gradflow/ops/linalg/wide_matrix.h"

#include <algorithm>
#include <cmath>

#include "gradflow/ops/linalg/matrices.h"

namespace gradflow {
namespace {

// Calls fn(tag) with the element type of the tensor. Skips real types if T is complex.
template <typename T, typename F>
void DispatchNarrow(const Tensor& tensor, const F& fn) {
  DispatchType(MatrixTypes(), tensor.dtype(), [&](auto tag) {
    if constexpr (kIsComplex<typename decltype(tag)::type> || !kIsComplex<T>) fn(tag);
  });
}

bool IsFinite(double value) { return std::isfinite(value); }
bool IsFinite(complex128 value) { return IsFinite(value.real()) && IsFinite(value.imag()); }

}  // namespace

template <typename T>
WideMatrix<T> Adjoint(const WideMatrix<T>& matrix) {
  WideMatrix<T> adjoint(matrix.columns(), matrix.rows());
  for (int64_t column = 0; column < matrix.columns(); ++column) {
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      adjoint(column, row) = Conjugate(matrix(row, column));
    }
  }
  return adjoint;
}

template <typename T>
bool AllFinite(const WideMatrix<T>& matrix) {
  const auto elements = matrix.elements();
  return std::all_of(elements.begin(), elements.end(), [](T value) { return IsFinite(value); });
}

template <typename T>
WideMatrix<T> LoadMatrix(const Tensor& tensor, int64_t i, bool adjoint) {
  const MatrixBatch batch(tensor.shape());
  WideMatrix<T> matrix =
      adjoint ? WideMatrix<T>(batch.columns, batch.rows) : WideMatrix<T>(batch.rows, batch.columns);
  DispatchType(MatrixTypes(), tensor.dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> || !kIsComplex<From>) {
      const From* from = static_cast<const From*>(tensor.raw_data()) + i * batch.size;
      if (adjoint) {
        // The rows of the tensor are the columns of the matrix.
        for (T& element : matrix.elements()) element = Conjugate(T(*from++));
        return;
      }
      for (int64_t row = 0; row < batch.rows; ++row) {
        for (int64_t column = 0; column < batch.columns; ++column) {
          matrix(row, column) = T(*from++);
        }
      }
    }
  });
  return matrix;
}

template <typename T>
void StoreMatrix(const WideMatrix<T>& matrix, Tensor* tensor, int64_t i, bool adjoint) {
  const MatrixBatch batch(tensor->shape());
  DispatchNarrow<T>(*tensor, [&](auto tag) {
    using To = typename decltype(tag)::type;
    To* to = static_cast<To*>(tensor->raw_data()) + i * batch.size;
    for (int64_t row = 0; row < batch.rows; ++row) {
      for (int64_t column = 0; column < batch.columns; ++column) {
        *to++ = static_cast<To>(adjoint ? Conjugate(matrix(column, row)) : matrix(row, column));
      }
    }
  });
}

template <typename T>
void StoreVector(absl::Span<const T> values, Tensor* tensor, int64_t i) {
  DispatchNarrow<T>(*tensor, [&](auto tag) {
    using To = typename decltype(tag)::type;
    To* to = static_cast<To*>(tensor->raw_data()) + i * static_cast<int64_t>(values.size());
    for (const T& value : values) *to++ = static_cast<To>(value);
  });
}

template WideMatrix<double> Adjoint(const WideMatrix<double>& matrix);
template WideMatrix<complex128> Adjoint(const WideMatrix<complex128>& matrix);
template bool AllFinite(const WideMatrix<double>& matrix);
template bool AllFinite(const WideMatrix<complex128>& matrix);
template WideMatrix<double> LoadMatrix(const Tensor& tensor, int64_t i, bool adjoint);
template WideMatrix<complex128> LoadMatrix(const Tensor& tensor, int64_t i, bool adjoint);
template void StoreMatrix(const WideMatrix<double>& matrix, Tensor* tensor, int64_t i,
                          bool adjoint);
template void StoreMatrix(const WideMatrix<complex128>& matrix, Tensor* tensor, int64_t i,
                          bool adjoint);
template void StoreVector(absl::Span<const double> values, Tensor* tensor, int64_t i);
template void StoreVector(absl::Span<const complex128> values, Tensor* tensor, int64_t i);

void FillElements(double value, Tensor* tensor) {
  FillVector(value, tensor->NumElements(), tensor, 0);
}

void FillVector(double value, int64_t n, Tensor* tensor, int64_t i) {
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(static_cast<T*>(tensor->raw_data()) + i * n, n, static_cast<T>(value));
  });
}

void FillMatrix(double value, Tensor* tensor, int64_t i) {
  FillVector(value, MatrixBatch(tensor->shape()).size, tensor, i);
}

}  // namespace gradflow
