// Matrix products in plain loops: of small matrices, and of all matrices in a build without a BLAS.
#ifndef GRADFLOW_OPS_LINALG_PLAIN_PRODUCT_H_
#define GRADFLOW_OPS_LINALG_PLAIN_PRODUCT_H_

#include <algorithm>
#include <complex>
#include <cstdint>

#include "gradflow/core/types.h"
#include "gradflow/ops/linalg/blas.h"

namespace gradflow {
namespace plain_product {

// Returns a * b. Unlike the operator of std::complex, does not check each product for infinities
// and NaN.
template <typename T>
T Times(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

template <typename T>
T Element(const BlasMatrix<const T>& matrix, int64_t row, int64_t column) {
  const T value = *matrix.Block(row, column).data;
  if constexpr (kIsComplex<T>) {
    if (matrix.conjugated) return std::conj(value);
  }
  return value;
}

// Adds factor * from[j] to to[j] for j < n.
template <typename T>
void AddMultiple(T factor, const T* from, int64_t n, T* to) {
  if constexpr (kIsComplex<T>) {
    // As real numbers, which compilers can vectorize.
    using Real = typename T::value_type;
    const Real* const x = reinterpret_cast<const Real*>(from);
    Real* const y = reinterpret_cast<Real*>(to);
    const Real real = factor.real();
    const Real imag = factor.imag();
    for (int64_t j = 0; j < 2 * n; j += 2) {
      y[j] += real * x[j] - imag * x[j + 1];
      y[j + 1] += real * x[j + 1] + imag * x[j];
    }
  } else {
    for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
  }
}

}  // namespace plain_product

// Computes c[m,n] = a[m,k] * b[k,n], or c += a * b if `add` is true. Adds up the products of each
// element in order. REQUIRES: m, n, k > 0
template <typename T>
void MultiplySmall(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a, BlasMatrix<const T> b,
                   BlasMatrix<T> c, bool add = false) {
  for (int64_t i = 0; i < m; ++i) {
    T* const row = c.data + i * c.stride;
    if (!add) std::fill_n(row, n, T(0));
    for (int64_t p = 0; p < k; ++p) {
      const T factor = plain_product::Element(a, i, p);
      for (int64_t j = 0; j < n; ++j) {
        row[j] += plain_product::Times(factor, plain_product::Element(b, p, j));
      }
    }
  }
}

// Computes MultiplySmall() with the same bits, faster for large matrices. Copies one tile of b at a
// time; the tile stays in the L1 cache while all rows of a are multiplied by it.
template <typename T>
void MultiplyInTiles(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a, BlasMatrix<const T> b,
                     BlasMatrix<T> c, bool add = false) {
  constexpr int64_t kTileBytes = 16384;
  constexpr int64_t kTileRows = 16;
  constexpr int64_t kTileColumns = kTileBytes / kTileRows / static_cast<int64_t>(sizeof(T));
  T tile[kTileRows][kTileColumns];
  for (int64_t column = 0; column < n; column += kTileColumns) {
    const int64_t columns = std::min(kTileColumns, n - column);
    for (int64_t inner = 0; inner < k; inner += kTileRows) {
      const int64_t rows = std::min(kTileRows, k - inner);
      for (int64_t p = 0; p < rows; ++p) {
        for (int64_t j = 0; j < columns; ++j) {
          tile[p][j] = plain_product::Element(b, inner + p, column + j);
        }
      }
      for (int64_t i = 0; i < m; ++i) {
        T* const row = c.Block(i, column).data;
        if (!add && inner == 0) std::fill_n(row, columns, T(0));
        for (int64_t p = 0; p < rows; ++p) {
          plain_product::AddMultiple(plain_product::Element(a, i, inner + p), tile[p], columns,
                                     row);
        }
      }
    }
  }
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_PLAIN_PRODUCT_H_
