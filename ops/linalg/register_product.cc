#include "gradflow/ops/linalg/register_product.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "gradflow/ops/common/clones.h"

namespace gradflow {
namespace {

// The real type of a number.
template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// A vector of 32 bytes, using the vector extension of gcc and clang.
template <typename Real>
struct Lanes {
  typedef Real Vector __attribute__((vector_size(32)));
};

// A factor of the products. Element (row, p) is at data[row * row_stride + p * step].
template <typename T>
struct Rows {
  const T* data;
  int64_t row_stride;
  int64_t step;
};

// Computes kRows rows of a product with `columns` columns. Row p of the panel starts at
// panel + p * panel_stride and has a whole vector.
template <typename T, int kRows>
GRADFLOW_CLONES void MultiplyTile(int64_t k, Rows<T> x, const T* panel, int64_t panel_stride,
                                  int64_t columns, T* out, int64_t out_stride, bool add) {
  using V = typename Lanes<T>::Vector;
  const bool whole = columns * static_cast<int64_t>(sizeof(T)) == static_cast<int64_t>(sizeof(V));
  const size_t bytes = static_cast<size_t>(columns) * sizeof(T);
  V sums[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r] = V{};
  if (add) {
    for (int r = 0; r < kRows; ++r) std::memcpy(&sums[r], out + r * out_stride, bytes);
  }
  for (int64_t p = 0; p < k; ++p) {
    V y;
    std::memcpy(&y, panel + p * panel_stride, sizeof(V));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sums[r] = sums[r] + x.data[r * x.row_stride + p * x.step] * y;
    }
  }
  if (whole) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) std::memcpy(out + r * out_stride, &sums[r], sizeof(V));
  } else {
    for (int r = 0; r < kRows; ++r) std::memcpy(out + r * out_stride, &sums[r], bytes);
  }
}

// Computes MultiplyTile() for complex numbers. Row p of the panel has a vector of real parts and a
// vector of imaginary parts. `sign` is -1 if x is conjugated, otherwise 1.
template <typename T, int kRows>
GRADFLOW_CLONES void MultiplyComplexTile(int64_t k, Rows<std::complex<T>> x, T sign, const T* panel,
                                         int64_t columns, std::complex<T>* out, int64_t out_stride,
                                         bool add) {
  using V = typename Lanes<T>::Vector;
  constexpr int64_t kLanes = sizeof(V) / sizeof(T);
  V real[kRows];
  V imag[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) real[r] = imag[r] = V{};
  for (int r = 0; add && r < kRows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      real[r][j] = out[r * out_stride + j].real();
      imag[r][j] = out[r * out_stride + j].imag();
    }
  }
  const T* const parts = reinterpret_cast<const T*>(x.data);
  for (int64_t p = 0; p < k; ++p) {
    V y_real;
    V y_imag;
    std::memcpy(&y_real, panel + 2 * p * kLanes, sizeof(V));
    std::memcpy(&y_imag, panel + (2 * p + 1) * kLanes, sizeof(V));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const T* const element = parts + 2 * (r * x.row_stride + p * x.step);
      const T a = element[0];
      const T b = sign * element[1];
      real[r] = real[r] + (a * y_real - b * y_imag);
      imag[r] = imag[r] + (a * y_imag + b * y_real);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      out[r * out_stride + j] = std::complex<T>(real[r][j], imag[r][j]);
    }
  }
}

// Copies columns of b, zero for the columns that b does not have.
template <typename T>
void PackPanel(const BlasMatrix<const T>& b, int64_t k, int64_t column, int64_t columns, T* panel) {
  constexpr int64_t kColumns = RegisterColumns<T>();
  if constexpr (kIsComplex<T>) {
    using Real = typename RealOf<T>::type;
    Real* to = reinterpret_cast<Real*>(panel);
    for (int64_t p = 0; p < k; ++p, to += 2 * kColumns) {
      for (int64_t j = 0; j < columns; ++j) {
        const T value = *b.Block(p, column + j).data;
        to[j] = value.real();
        to[kColumns + j] = b.conjugated ? -value.imag() : value.imag();
      }
      std::fill(to + columns, to + kColumns, Real(0));
      std::fill(to + kColumns + columns, to + 2 * kColumns, Real(0));
    }
  } else {
    for (int64_t p = 0; p < k; ++p, panel += kColumns) {
      for (int64_t j = 0; j < columns; ++j) panel[j] = *b.Block(p, column + j).data;
      std::fill(panel + columns, panel + kColumns, T(0));
    }
  }
}

}  // namespace

template <typename T>
void MultiplyInRegisters(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a,
                         BlasMatrix<const T> b, BlasMatrix<T> c, bool add,
                         std::vector<T>* scratch) {
  constexpr int64_t kColumns = RegisterColumns<T>();
  constexpr int kMost = kIsComplex<T> ? 4 : 8;
  for (int64_t column = 0; column < n; column += kColumns) {
    const int64_t columns = std::min(kColumns, n - column);
    const T* panel = b.Block(0, column).data;
    int64_t panel_stride = b.stride;
    // Rows of a packed panel are adjacent. This pays off if the panel is read several times.
    const bool is_read_often = m > 2 * kMost && n > kColumns;
    if (kIsComplex<T> || b.transposed || columns < kColumns || is_read_often) {
      scratch->resize(static_cast<size_t>(k * kColumns));
      PackPanel(b, k, column, columns, scratch->data());
      panel = scratch->data();
      panel_stride = kColumns;
    }
    const auto multiply = [&](auto rows, int64_t row) {
      constexpr int kRows = decltype(rows)::value;
      const Rows<T> x = {a.Block(row, 0).data, a.transposed ? 1 : a.stride,
                         a.transposed ? a.stride : 1};
      T* const out = c.Block(row, column).data;
      if constexpr (kIsComplex<T>) {
        using Real = typename RealOf<T>::type;
        MultiplyComplexTile<Real, kRows>(k, x, a.conjugated ? Real(-1) : Real(1),
                                         reinterpret_cast<const Real*>(panel), columns, out,
                                         c.stride, add);
      } else {
        MultiplyTile<T, kRows>(k, x, panel, panel_stride, columns, out, c.stride, add);
      }
    };
    int64_t row = 0;
    for (; row + kMost <= m; row += kMost) multiply(std::integral_constant<int, kMost>(), row);
    if constexpr (kMost > 4) {
      for (; row + 4 <= m; row += 4) multiply(std::integral_constant<int, 4>(), row);
    }
    for (; row < m; ++row) multiply(std::integral_constant<int, 1>(), row);
  }
}

#define GRADFLOW_INSTANTIATE(T)                                                             \
  template void MultiplyInRegisters(int64_t m, int64_t n, int64_t k, BlasMatrix<const T> a, \
                                    BlasMatrix<const T> b, BlasMatrix<T> c, bool add,       \
                                    std::vector<T>* scratch);
GRADFLOW_INSTANTIATE(float)
GRADFLOW_INSTANTIATE(double)
GRADFLOW_INSTANTIATE(complex64)
GRADFLOW_INSTANTIATE(complex128)
GRADFLOW_INSTANTIATE(uint8_t)
GRADFLOW_INSTANTIATE(uint16_t)
GRADFLOW_INSTANTIATE(uint32_t)
GRADFLOW_INSTANTIATE(uint64_t)
#undef GRADFLOW_INSTANTIATE

}  // namespace gradflow
