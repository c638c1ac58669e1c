// Products, triangular systems, and Cholesky and LU decompositions of matrices of double and
// complex128. Each call computes on the calling thread.
//
// The decompositions loop over blocks of columns and compute products with the BLAS. LAPACK's
// decompositions would solve many small triangular systems, which are slow in BLIS.
#ifndef GRADFLOW_OPS_LINALG_DENSE_H_
#define GRADFLOW_OPS_LINALG_DENSE_H_

#include <cstdint>
#include <vector>

#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow {

// The matrix of a view, or its adjoint.
template <typename T>
struct Operand {
  WideView<const T> view;
  bool adjoint = false;

  int64_t rows() const { return adjoint ? view.columns : view.rows; }
  int64_t columns() const { return adjoint ? view.rows : view.columns; }
};

// Sets c to the product of a and b, or subtracts the product from c if `subtract` is true.
// REQUIRES: the sizes match and fit in an int, and c does not overlap a or b
template <typename T>
void Multiply(const Operand<T>& a, const Operand<T>& b, WideView<T> c, bool subtract = false);
// Returns a * b.
template <typename T>
WideMatrix<T> Product(const WideMatrix<T>& a, const WideMatrix<T>& b);

// The triangle of a matrix that SolveTriangular reads.
enum class Triangle { kLower, kUpper, kUnitLower };

// Replaces x by the solution of t * solution = x, where t is the triangle of `matrix` that
// `triangle` selects. The diagonal of kUnitLower is 1 and is not read.
// REQUIRES: the sizes match
template <typename T>
void SolveTriangular(WideView<const T> matrix, Triangle triangle, WideView<T> x);

// Replaces the lower triangle of `a` by the lower triangular L of a = L * adjoint(L). Reads only
// this triangle; the rest of `a` is unspecified afterwards. Returns false if `a` is not positive
// definite.
template <typename T>
bool FactorCholesky(WideMatrix<T>* a);

// An LU decomposition with partial pivoting of a square matrix.
template <typename T>
struct LuDecomposition {
  // The upper triangular matrix and, below its diagonal, the lower triangular matrix, whose
  // diagonal is 1.
  WideMatrix<T> factors;
  // Row r of the product of the triangular matrices is row order[r] of the decomposed matrix.
  std::vector<int64_t> order;
  // True if `order` is an odd permutation.
  bool odd = false;

  // Returns true if a pivot is 0.
  bool is_singular() const;
};

template <typename T>
LuDecomposition<T> FactorLu(WideMatrix<T> matrix);
// Returns the solution x of matrix * x = b.
template <typename T>
WideMatrix<T> SolveLu(const LuDecomposition<T>& lu, const WideMatrix<T>& b);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_DENSE_H_
