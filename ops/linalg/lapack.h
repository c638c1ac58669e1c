// Decompositions of matrices of double and complex128 with LAPACK. Each call computes on the
// calling thread, and calls may be concurrent.
//
// Each decomposition has two functions. One returns the sizes of its workspaces for matrices of one
// size; the other allocates the workspaces and computes. Callers charge the bytes of the workspaces
// (core/memory_reservation.h). LAPACK uses 32-bit integers; the first function returns
// INVALID_ARGUMENT if a size does not fit.
//
// REQUIRES, for all functions: matrices are not empty, and all elements are finite. Otherwise
// LAPACK may not terminate.
#ifndef GRADFLOW_OPS_LINALG_LAPACK_H_
#define GRADFLOW_OPS_LINALG_LAPACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow {

// The sizes of LAPACK's workspaces.
struct LapackWork {
  // The number of elements of the matrix type.
  int64_t elements = 0;
  // The number of doubles.
  int64_t reals = 0;
  // The number of 32-bit integers.
  int64_t integers = 0;

  template <typename T>
  double bytes() const {
    return static_cast<double>(sizeof(T)) * static_cast<double>(elements) +
           8.0 * static_cast<double>(reals) + 4.0 * static_cast<double>(integers);
  }
};

// ---- QR decomposition with Householder reflections ----

// Returns the workspaces for a matrix [m, n] and a Q with `p` columns. REQUIRES: min(m, n) <= p <=
// m
template <typename T>
absl::StatusOr<LapackWork> QrWork(int64_t m, int64_t n, int64_t p);
// Sets *q [m, p] to Q and the upper triangle of *a to R. Sets the rest of *a to 0.
template <typename T>
void ComputeQr(const LapackWork& work, WideMatrix<T>* a, int64_t p, WideMatrix<T>* q);

// ---- Singular value decomposition ----

enum class SingularVectors { kNone, kThin, kFull };

template <typename T>
absl::StatusOr<LapackWork> SvdWork(int64_t m, int64_t n, SingularVectors vectors);
// Sets *s to the singular values in decreasing order, *u to the left singular vectors as columns,
// and *vh to the adjoint of the right singular vectors. kNone leaves *u and *vh unchanged. Returns
// INVALID_ARGUMENT if the iteration does not converge. Destroys *a.
template <typename T>
absl::Status ComputeSvd(const LapackWork& work, SingularVectors vectors, WideMatrix<T>* a,
                        std::vector<double>* s, WideMatrix<T>* u, WideMatrix<T>* vh);

// ---- Eigenvalues ----

template <typename T>
absl::StatusOr<LapackWork> SelfAdjointEigWork(int64_t n, bool vectors);
// Reads the lower triangle of *a. Sets *values to the eigenvalues in increasing order. If `vectors`
// is true, sets the columns of *a to eigenvectors of norm 1; otherwise destroys *a. Returns false
// if the iteration does not converge.
template <typename T>
bool ComputeSelfAdjointEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,
                           std::vector<double>* values);

template <typename T>
absl::StatusOr<LapackWork> EigWork(int64_t n, bool vectors);
// Sets *eigenvalues. If `vectors` is true, sets the columns of *eigenvectors to eigenvectors of
// norm 1. Destroys *a. Returns false if the iteration does not converge.
template <typename T>
bool ComputeEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,
                std::vector<complex128>* eigenvalues, WideMatrix<complex128>* eigenvectors);

template <typename T>
absl::StatusOr<LapackWork> SchurWork(int64_t n);
// Sets *a to the upper triangular T, and *u to the unitary U of a = U * T * adjoint(U). A real T
// has 2 x 2 blocks on its diagonal for pairs of conjugate eigenvalues. The diagonal elements of a
// block are equal, and the other two elements have opposite signs. Returns false if the iteration
// does not converge.
template <typename T>
bool ComputeSchur(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* u);

// ---- Least squares ----

// Returns the workspaces for a matrix [m, n] and `k` right-hand sides.
template <typename T>
absl::StatusOr<LapackWork> LeastSquaresWork(int64_t m, int64_t n, int64_t k);
// Sets the first n rows of *b, which has max(m, n) rows, to the x that minimizes the norm of a * x
// - b. If there are several such x, takes the x of minimum norm. Uses a complete orthogonal
// decomposition. Destroys *a.
template <typename T>
void SolveLeastSquares(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* b);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LINALG_LAPACK_H_
