// LAPACKE functions whose names end in _work do not allocate memory and do not check for NaN.
#include "gradflow/ops/linalg/lapack.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#define lapack_complex_float std::complex<float>
#define lapack_complex_double std::complex<double>
#include <lapacke.h>

#include "gradflow/core/status.h"
#include "gradflow/ops/linalg/blas.h"

namespace gradflow {
namespace {

static_assert(sizeof(lapack_int) == 4, "liblapacke64 counts in 64 bits");

constexpr int kLayout = LAPACK_COL_MAJOR;
constexpr lapack_int kQuery = -1;

// Returns INVALID_ARGUMENT unless the sizes of workspaces fit in 32 bits. Workspaces are `squares`
// times the square of the smaller dimension, plus blocks of columns.
absl::Status CheckSize(int64_t m, int64_t n, double squares) {
  // More than LAPACK's blocks and a few vectors need.
  constexpr double kVectors = 256;
  const double smaller = static_cast<double>(std::min(m, n));
  const double larger = static_cast<double>(std::max(m, n));
  if (squares * smaller * smaller + kVectors * larger <= std::numeric_limits<lapack_int>::max()) {
    return absl::OkStatus();
  }
  return errors::InvalidArgument("matrices of ", m, " rows and ", n,
                                 " columns are too large for the 32-bit sizes of LAPACK");
}

lapack_int Int(int64_t value) { return static_cast<lapack_int>(value); }

// Returns the size that LAPACK wrote to the workspace of a query.
int64_t Size(double work) { return static_cast<int64_t>(work); }
int64_t Size(complex128 work) { return Size(work.real()); }

// The workspaces of a call.
template <typename T>
struct Workspace {
  explicit Workspace(const LapackWork& work)
      : elements(work.elements), reals(work.reals), integers(work.integers) {}

  lapack_int size() const { return Int(static_cast<int64_t>(elements.size())); }

  std::vector<T> elements;
  std::vector<double> reals;
  std::vector<lapack_int> integers;
};

// Calls the LAPACK function `fn` and returns its result.
template <typename F>
lapack_int Call(const F& fn) {
  lapack_int info = 0;
  CallBlas([&] { info = fn(); });
  return info;
}

// Replaces workspaces and results in a query. Some queries write to all of them.
template <typename T>
struct Asked {
  T element = 0;
  double real = 0;
  lapack_int integer = 0;
};

// Returns the sizes that fn(Asked<T>* asked), a LAPACK call with kQuery, writes.
template <typename T, typename F>
LapackWork Query(const F& fn) {
  Asked<T> asked;
  Call([&] { return fn(&asked); });
  return {Size(asked.element), Size(asked.real), asked.integer};
}

// ---- LAPACK functions by type ----

lapack_int Geqrf(lapack_int m, lapack_int n, double* a, double* tau, double* work,
                 lapack_int size) {
  return LAPACKE_dgeqrf_work(kLayout, m, n, a, m, tau, work, size);
}
lapack_int Geqrf(lapack_int m, lapack_int n, complex128* a, complex128* tau, complex128* work,
                 lapack_int size) {
  return LAPACKE_zgeqrf_work(kLayout, m, n, a, m, tau, work, size);
}

lapack_int Orgqr(lapack_int m, lapack_int p, lapack_int k, double* q, const double* tau,
                 double* work, lapack_int size) {
  return LAPACKE_dorgqr_work(kLayout, m, p, k, q, m, tau, work, size);
}
lapack_int Orgqr(lapack_int m, lapack_int p, lapack_int k, complex128* q, const complex128* tau,
                 complex128* work, lapack_int size) {
  return LAPACKE_zungqr_work(kLayout, m, p, k, q, m, tau, work, size);
}

lapack_int Gesdd(char job, lapack_int m, lapack_int n, double* a, double* s, double* u, double* vh,
                 lapack_int vh_rows, double* work, lapack_int size, double*, lapack_int* integers) {
  return LAPACKE_dgesdd_work(kLayout, job, m, n, a, m, s, u, m, vh, vh_rows, work, size, integers);
}
lapack_int Gesdd(char job, lapack_int m, lapack_int n, complex128* a, double* s, complex128* u,
                 complex128* vh, lapack_int vh_rows, complex128* work, lapack_int size,
                 double* reals, lapack_int* integers) {
  return LAPACKE_zgesdd_work(kLayout, job, m, n, a, m, s, u, m, vh, vh_rows, work, size, reals,
                             integers);
}

// The eigenvalues are `values`, or have the real parts `re` and the imaginary parts `im`.
lapack_int Gees(lapack_int n, double* a, double* re, double* im, complex128*, double* u,
                double* work, lapack_int size) {
  lapack_int sorted = 0;
  return LAPACKE_dgees_work(kLayout, 'V', 'N', nullptr, n, a, n, &sorted, re, im, u, n, work, size,
                            nullptr);
}
lapack_int Gees(lapack_int n, complex128* a, double* reals, double*, complex128* values,
                complex128* u, complex128* work, lapack_int size) {
  lapack_int sorted = 0;
  return LAPACKE_zgees_work(kLayout, 'V', 'N', nullptr, n, a, n, &sorted, values, u, n, work, size,
                            reals, nullptr);
}

// Permutes but does not scale, because scaling would make the error relative to the scaled matrix.
// The eigenvalues are `values`, or have the real parts `re` and the imaginary parts `im`. `scale`
// has n elements.
lapack_int Geevx(char job, lapack_int n, double* a, double* re, double* im, complex128*,
                 double* vectors, double* scale, double* work, lapack_int size) {
  lapack_int low = 0;
  lapack_int high = 0;
  double norm = 0;
  return LAPACKE_dgeevx_work(kLayout, 'P', 'N', job, 'N', n, a, n, re, im, nullptr, n, vectors, n,
                             &low, &high, scale, &norm, nullptr, nullptr, work, size, nullptr);
}
lapack_int Geevx(char job, lapack_int n, complex128* a, double* reals, double*, complex128* values,
                 complex128* vectors, double* scale, complex128* work, lapack_int size) {
  lapack_int low = 0;
  lapack_int high = 0;
  double norm = 0;
  return LAPACKE_zgeevx_work(kLayout, 'P', 'N', job, 'N', n, a, n, values, nullptr, n, vectors, n,
                             &low, &high, scale, &norm, nullptr, nullptr, work, size, reals);
}

lapack_int Gelsy(lapack_int m, lapack_int n, lapack_int k, double* a, double* b, lapack_int b_rows,
                 lapack_int* order, double tolerance, double* work, lapack_int size, double*) {
  lapack_int rank = 0;
  return LAPACKE_dgelsy_work(kLayout, m, n, k, a, m, b, b_rows, order, tolerance, &rank, work,
                             size);
}
lapack_int Gelsy(lapack_int m, lapack_int n, lapack_int k, complex128* a, complex128* b,
                 lapack_int b_rows, lapack_int* order, double tolerance, complex128* work,
                 lapack_int size, double* reals) {
  lapack_int rank = 0;
  return LAPACKE_zgelsy_work(kLayout, m, n, k, a, m, b, b_rows, order, tolerance, &rank, work, size,
                             reals);
}

}  // namespace

// ---- QR decomposition ----

template <typename T>
absl::StatusOr<LapackWork> QrWork(int64_t m, int64_t n, int64_t p) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(m, n, 0));
  const int64_t reflections = std::min(m, n);
  const LapackWork factor = Query<T>([&](Asked<T>* asked) {
    return Geqrf(Int(m), Int(n), nullptr, &asked->element, &asked->element, kQuery);
  });
  LapackWork work = Query<T>([&](Asked<T>* asked) {
    return Orgqr(Int(m), Int(p), Int(reflections), nullptr, &asked->element, &asked->element,
                 kQuery);
  });
  work.elements = std::max(work.elements, factor.elements);
  // The scalar factors of the reflections.
  work.elements += reflections;
  return work;
}

template <typename T>
void ComputeQr(const LapackWork& work, WideMatrix<T>* a, int64_t p, WideMatrix<T>* q) {
  const int64_t m = a->rows();
  const int64_t n = a->columns();
  const int64_t reflections = std::min(m, n);
  Workspace<T> space(work);
  T* const tau = space.elements.data();
  T* const rest = tau + reflections;
  const lapack_int size = space.size() - Int(reflections);
  Call([&] { return Geqrf(Int(m), Int(n), a->data(), tau, rest, size); });
  *q = WideMatrix<T>(m, p);
  std::copy_n(a->data(), m * reflections, q->data());
  Call([&] { return Orgqr(Int(m), Int(p), Int(reflections), q->data(), tau, rest, size); });
  for (int64_t column = 0; column < reflections; ++column) {
    std::fill_n(&(*a)(0, column) + column + 1, m - column - 1, T(0));
  }
}

// ---- Singular value decomposition ----

namespace {

char SvdJob(SingularVectors vectors) {
  if (vectors == SingularVectors::kNone) return 'N';
  return vectors == SingularVectors::kThin ? 'S' : 'A';
}

// The number of rows of the adjoint of the right singular vectors.
int64_t SvdRows(int64_t m, int64_t n, SingularVectors vectors) {
  return vectors == SingularVectors::kFull ? n : std::min(m, n);
}

}  // namespace

template <typename T>
absl::StatusOr<LapackWork> SvdWork(int64_t m, int64_t n, SingularVectors vectors) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(m, n, 5));
  const int64_t smaller = std::min(m, n);
  const int64_t larger = std::max(m, n);
  LapackWork work = Query<T>([&](Asked<T>* asked) {
    return Gesdd(SvdJob(vectors), Int(m), Int(n), nullptr, &asked->real, nullptr, nullptr,
                 Int(SvdRows(m, n, vectors)), &asked->element, kQuery, &asked->real,
                 &asked->integer);
  });
  work.integers = 8 * smaller;
  if (kIsComplex<T>) {
    work.reals = vectors == SingularVectors::kNone
                     ? 7 * smaller
                     : smaller * std::max(5 * smaller + 7, 2 * larger + 2 * smaller + 1);
  }
  return work;
}

template <typename T>
absl::Status ComputeSvd(const LapackWork& work, SingularVectors vectors, WideMatrix<T>* a,
                        std::vector<double>* s, WideMatrix<T>* u, WideMatrix<T>* vh) {
  const int64_t m = a->rows();
  const int64_t n = a->columns();
  const int64_t vh_rows = SvdRows(m, n, vectors);
  s->resize(std::min(m, n));
  if (vectors != SingularVectors::kNone) {
    *u = WideMatrix<T>(m, vectors == SingularVectors::kFull ? m : std::min(m, n));
    *vh = WideMatrix<T>(vh_rows, n);
  }
  Workspace<T> space(work);
  const lapack_int info = Call([&] {
    return Gesdd(SvdJob(vectors), Int(m), Int(n), a->data(), s->data(), u->data(), vh->data(),
                 Int(vh_rows), space.elements.data(), space.size(), space.reals.data(),
                 space.integers.data());
  });
  if (info == 0) return absl::OkStatus();
  return errors::InvalidArgument("The singular value decomposition did not converge");
}

// ---- Eigenvalues ----

template <typename T>
absl::StatusOr<LapackWork> SelfAdjointEigWork(int64_t n, bool vectors) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(n, n, vectors ? 4 : 0));
  const char job = vectors ? 'V' : 'N';
  return Query<T>([&](Asked<T>* asked) {
    if constexpr (kIsComplex<T>) {
      return LAPACKE_zheevd_work(kLayout, job, 'L', Int(n), nullptr, Int(n), nullptr,
                                 &asked->element, kQuery, &asked->real, kQuery, &asked->integer,
                                 kQuery);
    } else {
      return LAPACKE_dsyevd_work(kLayout, job, 'L', Int(n), nullptr, Int(n), nullptr,
                                 &asked->element, kQuery, &asked->integer, kQuery);
    }
  });
}

template <typename T>
bool ComputeSelfAdjointEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,
                           std::vector<double>* values) {
  const char job = vectors ? 'V' : 'N';
  const lapack_int n = Int(a->rows());
  values->resize(n);
  Workspace<T> space(work);
  const lapack_int integers = Int(work.integers);
  return Call([&] {
           if constexpr (kIsComplex<T>) {
             return LAPACKE_zheevd_work(kLayout, job, 'L', n, a->data(), n, values->data(),
                                        space.elements.data(), space.size(), space.reals.data(),
                                        Int(work.reals), space.integers.data(), integers);
           } else {
             return LAPACKE_dsyevd_work(kLayout, job, 'L', n, a->data(), n, values->data(),
                                        space.elements.data(), space.size(), space.integers.data(),
                                        integers);
           }
         }) == 0;
}

template <typename T>
absl::StatusOr<LapackWork> EigWork(int64_t n, bool vectors) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(n, n, 0));
  const char job = vectors ? 'V' : 'N';
  LapackWork work = Query<T>([&](Asked<T>* asked) {
    return Geevx(job, Int(n), nullptr, &asked->real, &asked->real, nullptr, nullptr, &asked->real,
                 &asked->element, kQuery);
  });
  // Real and imaginary parts of the eigenvalues, or a workspace; and the permutation.
  work.reals = 3 * n;
  // Real and imaginary parts of the eigenvectors.
  if (!kIsComplex<T> && vectors) work.reals += n * n;
  return work;
}

template <typename T>
bool ComputeEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,
                std::vector<complex128>* eigenvalues, WideMatrix<complex128>* eigenvectors) {
  const char job = vectors ? 'V' : 'N';
  const int64_t n = a->rows();
  eigenvalues->resize(n);
  if (vectors) *eigenvectors = WideMatrix<complex128>(n, n);
  Workspace<T> space(work);
  double* const re = space.reals.data();
  double* const im = re + n;
  double* const scale = im + n;
  T* parts = nullptr;
  if constexpr (kIsComplex<T>) {
    parts = eigenvectors->data();
  } else {
    parts = scale + n;
  }
  const lapack_int info = Call([&] {
    return Geevx(job, Int(n), a->data(), re, im, eigenvalues->data(), parts, scale,
                 space.elements.data(), space.size());
  });
  if (info != 0) return false;
  if constexpr (!kIsComplex<T>) {
    for (int64_t j = 0; j < n; ++j) (*eigenvalues)[j] = {re[j], im[j]};
    if (!vectors) return true;
    for (int64_t j = 0; j < n; ++j) {
      const double* const column = parts + j * n;
      if (im[j] == 0) {
        for (int64_t i = 0; i < n; ++i) (*eigenvectors)(i, j) = column[i];
        continue;
      }
      // Two columns hold the real and imaginary parts of the first of two conjugate eigenvectors.
      for (int64_t i = 0; i < n; ++i) {
        (*eigenvectors)(i, j) = {column[i], column[i + n]};
        (*eigenvectors)(i, j + 1) = {column[i], -column[i + n]};
      }
      ++j;
    }
  }
  return true;
}

template <typename T>
absl::StatusOr<LapackWork> SchurWork(int64_t n) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(n, n, 0));
  LapackWork work = Query<T>([&](Asked<T>* asked) {
    return Gees(Int(n), nullptr, &asked->real, &asked->real, nullptr, nullptr, &asked->element,
                kQuery);
  });
  // Real and imaginary parts of the eigenvalues, or a workspace and the eigenvalues.
  work.reals = kIsComplex<T> ? 3 * n : 2 * n;
  return work;
}

template <typename T>
bool ComputeSchur(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* u) {
  const int64_t n = a->rows();
  *u = WideMatrix<T>(n, n);
  Workspace<T> space(work);
  double* const reals = space.reals.data();
  // A complex number has the layout of two real numbers.
  auto* const values = reinterpret_cast<complex128*>(reals + n);
  return Call([&] {
           return Gees(Int(n), a->data(), reals, reals + n, values, u->data(),
                       space.elements.data(), space.size());
         }) == 0;
}

// ---- Least squares ----

template <typename T>
absl::StatusOr<LapackWork> LeastSquaresWork(int64_t m, int64_t n, int64_t k) {
  GRADFLOW_RETURN_IF_ERROR(CheckSize(m, n, 0));
  GRADFLOW_RETURN_IF_ERROR(CheckSize(std::max(m, n), k, 0));
  LapackWork work = Query<T>([&](Asked<T>* asked) {
    return Gelsy(Int(m), Int(n), Int(k), nullptr, nullptr, Int(std::max(m, n)), &asked->integer, 0,
                 &asked->element, kQuery, &asked->real);
  });
  work.integers = n;
  if (kIsComplex<T>) work.reals = 2 * n;
  return work;
}

template <typename T>
void SolveLeastSquares(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* b) {
  const int64_t m = a->rows();
  const int64_t n = a->columns();
  Workspace<T> space(work);
  const double tolerance =
      std::numeric_limits<double>::epsilon() * static_cast<double>(std::min(m, n));
  Call([&] {
    return Gelsy(Int(m), Int(n), Int(b->columns()), a->data(), b->data(), Int(b->rows()),
                 space.integers.data(), tolerance, space.elements.data(), space.size(),
                 space.reals.data());
  });
}

#define GRADFLOW_INSTANTIATE(T)                                                                   \
  template absl::StatusOr<LapackWork> QrWork<T>(int64_t m, int64_t n, int64_t p);                 \
  template void ComputeQr(const LapackWork& work, WideMatrix<T>* a, int64_t p, WideMatrix<T>* q); \
  template absl::StatusOr<LapackWork> SvdWork<T>(int64_t m, int64_t n, SingularVectors vectors);  \
  template absl::Status ComputeSvd(const LapackWork& work, SingularVectors vectors,               \
                                   WideMatrix<T>* a, std::vector<double>* s, WideMatrix<T>* u,    \
                                   WideMatrix<T>* vh);                                            \
  template absl::StatusOr<LapackWork> SelfAdjointEigWork<T>(int64_t n, bool vectors);             \
  template bool ComputeSelfAdjointEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,     \
                                      std::vector<double>* values);                               \
  template absl::StatusOr<LapackWork> EigWork<T>(int64_t n, bool vectors);                        \
  template bool ComputeEig(const LapackWork& work, bool vectors, WideMatrix<T>* a,                \
                           std::vector<complex128>* eigenvalues,                                  \
                           WideMatrix<complex128>* eigenvectors);                                 \
  template absl::StatusOr<LapackWork> SchurWork<T>(int64_t n);                                    \
  template bool ComputeSchur(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* u);         \
  template absl::StatusOr<LapackWork> LeastSquaresWork<T>(int64_t m, int64_t n, int64_t k);       \
  template void SolveLeastSquares(const LapackWork& work, WideMatrix<T>* a, WideMatrix<T>* b)

GRADFLOW_INSTANTIATE(double);
GRADFLOW_INSTANTIATE(complex128);
#undef GRADFLOW_INSTANTIATE

}  // namespace gradflow
