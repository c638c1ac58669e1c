#include "gradflow/ops/linalg/eigen.h"

#include <algorithm>

#include "gradflow/ops/linalg/matrices.h"

namespace gradflow {
namespace {

template <typename Values>
void StoreValues(const Values& values, Tensor* tensor, int64_t i) {
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> || !kIsComplex<typename Values::Scalar>) {
      T* to = static_cast<T*>(tensor->raw_data()) + i * values.size();
      for (int64_t j = 0; j < values.size(); ++j) to[j] = static_cast<T>(values(j));
    }
  });
}

}  // namespace

template <typename T>
EigenMatrix<T> LoadMatrix(const Tensor& tensor, int64_t i) {
  const MatrixBatch batch(tensor.shape());
  EigenMatrix<T> matrix(batch.rows, batch.columns);
  DispatchType(MatrixTypes(), tensor.dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> || !kIsComplex<From>) {
      const From* from = static_cast<const From*>(tensor.raw_data()) + i * batch.size;
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
void StoreMatrix(const EigenMatrix<T>& matrix, Tensor* tensor, int64_t i) {
  const MatrixBatch batch(tensor->shape());
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using To = typename decltype(tag)::type;
    if constexpr (kIsComplex<To> || !kIsComplex<T>) {
      To* to = static_cast<To*>(tensor->raw_data()) + i * batch.size;
      for (int64_t row = 0; row < batch.rows; ++row) {
        for (int64_t column = 0; column < batch.columns; ++column) {
          *to++ = static_cast<To>(matrix(row, column));
        }
      }
    }
  });
}

template EigenMatrix<double> LoadMatrix(const Tensor& tensor, int64_t i);
template EigenMatrix<complex128> LoadMatrix(const Tensor& tensor, int64_t i);
template void StoreMatrix(const EigenMatrix<double>& matrix, Tensor* tensor, int64_t i);
template void StoreMatrix(const EigenMatrix<complex128>& matrix, Tensor* tensor, int64_t i);

void StoreVector(const Eigen::VectorXd& values, Tensor* tensor, int64_t i) {
  StoreValues(values, tensor, i);
}
void StoreVector(const Eigen::VectorXcd& values, Tensor* tensor, int64_t i) {
  StoreValues(values, tensor, i);
}

void FillElements(double value, Tensor* tensor) {
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    tensor->flat<T>().setConstant(static_cast<T>(value));
  });
}

void FillMatrix(double value, Tensor* tensor, int64_t i) {
  const MatrixBatch batch(tensor->shape());
  DispatchType(MatrixTypes(), tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(static_cast<T*>(tensor->raw_data()) + i * batch.size, batch.size,
                static_cast<T>(value));
  });
}

}  // namespace gradflow
