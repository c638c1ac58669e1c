#include "gradflow/ops/linalg/dense.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "gradflow/ops/linalg/blas.h"

namespace gradflow {
namespace {

// The number of columns that decompositions compute with loops before products update the rest.
constexpr int64_t kBlock = 32;
// The number of columns of a right-hand side that are solved together. They stay in a cache.
constexpr int64_t kSolvedColumns = 256;
// Products with fewer multiplications are faster in plain loops than with a call of the BLAS.
constexpr int64_t kSmallDenseProduct = 512;

// y -= factor * x for n elements.
void SubtractScaled(int64_t n, double factor, const double* __restrict x, double* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] -= factor * x[i];
}
// Computes real and imaginary parts: products of std::complex check for NaN, which prevents SIMD.
void SubtractScaled(int64_t n, complex128 factor, const complex128* x, complex128* y) {
  const double re = factor.real();
  const double im = factor.imag();
  const double* __restrict from = reinterpret_cast<const double*>(x);
  double* __restrict to = reinterpret_cast<double*>(y);
  for (int64_t i = 0; i < 2 * n; i += 2) {
    to[i] -= re * from[i] - im * from[i + 1];
    to[i + 1] -= re * from[i + 1] + im * from[i];
  }
}

template <typename T>
void MultiplySmall(const Operand<T>& a, const Operand<T>& b, WideView<T> c, bool subtract) {
  const auto element = [](const Operand<T>& x, int64_t row, int64_t column) {
    return x.adjoint ? Conjugate(x.view(column, row)) : x.view(row, column);
  };
  for (int64_t column = 0; column < c.columns; ++column) {
    if (!subtract) std::fill_n(c.Column(column), c.rows, T(0));
    for (int64_t k = 0; k < a.columns(); ++k) {
      T factor = element(b, k, column);
      if (!subtract) factor = -factor;
      if (!a.adjoint) {
        SubtractScaled(c.rows, factor, a.view.Column(k), c.Column(column));
      } else {
        for (int64_t row = 0; row < c.rows; ++row) {
          const T value = element(a, row, k);
          SubtractScaled(1, factor, &value, &c(row, column));
        }
      }
    }
  }
}

// Replaces x by the solution, row by row. The divisions of a row do not depend on each other.
template <typename T>
void SolveBlock(WideView<const T> matrix, Triangle triangle, WideView<T> x) {
  const int64_t n = matrix.rows;
  const bool upper = triangle == Triangle::kUpper;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t k = upper ? n - 1 - step : step;
    const int64_t first = upper ? 0 : k + 1;
    const int64_t rest = n - 1 - step;
    for (int64_t column = 0; column < x.columns; ++column) {
      T* const y = x.Column(column);
      if (triangle != Triangle::kUnitLower) y[k] /= matrix(k, k);
      SubtractScaled(rest, y[k], matrix.Column(k) + first, y + first);
    }
  }
}

}  // namespace

template <typename T>
void Multiply(const Operand<T>& a, const Operand<T>& b, WideView<T> c, bool subtract) {
  const int64_t k = a.columns();
  if (c.rows == 0 || c.columns == 0) return;
  if (c.rows * c.columns * k < kSmallDenseProduct) return MultiplySmall(a, b, c, subtract);
  // The views are column-major, so their transposes are row-major: c^T = b^T * a^T.
  const auto transpose = [](const Operand<T>& x) {
    return BlasMatrix<const T>{x.view.data, x.view.stride, x.adjoint, x.adjoint};
  };
  const BlasMatrix<T> out{c.data, c.stride};
  if (subtract) {
    BlasSubtract(c.columns, c.rows, k, transpose(b), transpose(a), out);
  } else {
    BlasGemm(c.columns, c.rows, k, transpose(b), transpose(a), out);
  }
}

template <typename T>
WideMatrix<T> Product(const WideMatrix<T>& a, const WideMatrix<T>& b) {
  WideMatrix<T> product(a.rows(), b.columns());
  Multiply<T>({a.view()}, {b.view()}, product.view());
  return product;
}

template <typename T>
void SolveTriangular(WideView<const T> matrix, Triangle triangle, WideView<T> x) {
  const int64_t n = matrix.rows;
  if (x.columns > kSolvedColumns) {
    for (int64_t column = 0; column < x.columns; column += kSolvedColumns) {
      const int64_t columns = std::min(kSolvedColumns, x.columns - column);
      SolveTriangular<T>(matrix, triangle, x.Block(0, column, n, columns));
    }
    return;
  }
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t size = std::min(kBlock, n - done);
    const int64_t rest = n - done - size;
    // An upper triangle is solved starting from its last row.
    const bool upper = triangle == Triangle::kUpper;
    const int64_t at = upper ? rest : done;
    const int64_t rest_at = upper ? 0 : done + size;
    const WideView<T> solution = x.Block(at, 0, size, x.columns);
    SolveBlock(matrix.Block(at, at, size, size), triangle, solution);
    Multiply<T>({matrix.Block(rest_at, at, rest, size)}, {solution},
                x.Block(rest_at, 0, rest, x.columns), /*subtract=*/true);
  }
}

template <typename T>
bool FactorCholesky(WideMatrix<T>* a) {
  const WideView<T> l = a->view();
  const int64_t n = l.rows;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    // Subtracts the products of the completed columns.
    Multiply<T>({l.Block(begin, 0, n - begin, begin)},
                {l.Block(begin, 0, end - begin, begin), /*adjoint=*/true},
                l.Block(begin, begin, n - begin, end - begin), /*subtract=*/true);
    for (int64_t j = begin; j < end; ++j) {
      for (int64_t k = begin; k < j; ++k) {
        SubtractScaled(n - j, Conjugate(l(j, k)), &l(j, k), &l(j, j));
      }
      const double pivot = std::real(l(j, j));
      // This form also rejects NaN.
      if (!(pivot > 0)) return false;
      const double root = std::sqrt(pivot);
      l(j, j) = root;
      for (int64_t row = j + 1; row < n; ++row) l(row, j) /= root;
    }
  }
  return true;
}

template <typename T>
bool LuDecomposition<T>::is_singular() const {
  for (int64_t i = 0; i < factors.rows(); ++i) {
    if (factors(i, i) == T(0)) return true;
  }
  return false;
}

template <typename T>
LuDecomposition<T> FactorLu(WideMatrix<T> matrix) {
  LuDecomposition<T> lu;
  lu.factors = std::move(matrix);
  const WideView<T> a = lu.factors.view();
  const int64_t n = a.rows;
  lu.order.resize(n);
  std::iota(lu.order.begin(), lu.order.end(), 0);
  std::vector<int64_t> pivots(std::min(kBlock, n));
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    for (int64_t j = begin; j < end; ++j) {
      int64_t pivot = j;
      double largest = std::abs(a(j, j));
      for (int64_t row = j + 1; row < n; ++row) {
        const double magnitude = std::abs(a(row, j));
        if (magnitude > largest) {
          pivot = row;
          largest = magnitude;
        }
      }
      pivots[j - begin] = pivot;
      if (pivot != j) {
        std::swap(lu.order[j], lu.order[pivot]);
        lu.odd = !lu.odd;
        for (int64_t column = begin; column < end; ++column) {
          std::swap(a(j, column), a(pivot, column));
        }
      }
      // Leaves a column of zeros unchanged: the matrix is singular.
      const T value = a(j, j);
      if (value != T(0)) {
        for (int64_t row = j + 1; row < n; ++row) a(row, j) /= value;
      }
      for (int64_t column = j + 1; column < end; ++column) {
        SubtractScaled(n - j - 1, a(j, column), &a(j, j) + 1, &a(j, column) + 1);
      }
    }
    // Exchanges the same rows in the other columns.
    for (int64_t column = 0; column < n; ++column) {
      if (column == begin) column = end;
      if (column == n) break;
      for (int64_t j = begin; j < end; ++j) std::swap(a(j, column), a(pivots[j - begin], column));
    }
    const int64_t rest = n - end;
    const WideView<T> right = a.Block(begin, end, end - begin, rest);
    SolveTriangular<T>(a.Block(begin, begin, end - begin, end - begin), Triangle::kUnitLower,
                       right);
    Multiply<T>({a.Block(end, begin, rest, end - begin)}, {right}, a.Block(end, end, rest, rest),
                /*subtract=*/true);
  }
  return lu;
}

template <typename T>
WideMatrix<T> SolveLu(const LuDecomposition<T>& lu, const WideMatrix<T>& b) {
  WideMatrix<T> x(b.rows(), b.columns());
  for (int64_t column = 0; column < b.columns(); ++column) {
    for (int64_t row = 0; row < b.rows(); ++row) x(row, column) = b(lu.order[row], column);
  }
  SolveTriangular<T>(lu.factors.view(), Triangle::kUnitLower, x.view());
  SolveTriangular<T>(lu.factors.view(), Triangle::kUpper, x.view());
  return x;
}

template void Multiply(const Operand<double>& a, const Operand<double>& b, WideView<double> c,
                       bool subtract);
template void Multiply(const Operand<complex128>& a, const Operand<complex128>& b,
                       WideView<complex128> c, bool subtract);
template WideMatrix<double> Product(const WideMatrix<double>& a, const WideMatrix<double>& b);
template WideMatrix<complex128> Product(const WideMatrix<complex128>& a,
                                        const WideMatrix<complex128>& b);
template void SolveTriangular(WideView<const double> matrix, Triangle triangle, WideView<double> x);
template void SolveTriangular(WideView<const complex128> matrix, Triangle triangle,
                              WideView<complex128> x);
template bool FactorCholesky(WideMatrix<double>* a);
template bool FactorCholesky(WideMatrix<complex128>* a);
template struct LuDecomposition<double>;
template struct LuDecomposition<complex128>;
template LuDecomposition<double> FactorLu(WideMatrix<double> matrix);
template LuDecomposition<complex128> FactorLu(WideMatrix<complex128> matrix);
template WideMatrix<double> SolveLu(const LuDecomposition<double>& lu, const WideMatrix<double>& b);
template WideMatrix<complex128> SolveLu(const LuDecomposition<complex128>& lu,
                                        const WideMatrix<complex128>& b);

}  // namespace gradflow
