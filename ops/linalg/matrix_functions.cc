// Functions of matrices: MatrixExponential, MatrixLogarithm and MatrixSquareRoot.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/linalg/dense.h"
#include "gradflow/ops/linalg/lapack.h"
#include "gradflow/ops/linalg/matrices.h"
#include "gradflow/ops/linalg/wide_matrix.h"

namespace gradflow::matrix_functions {
namespace {

template <typename T>
WideMatrix<T> NanMatrix(int64_t n) {
  WideMatrix<T> matrix(n, n);
  for (T& element : matrix.elements()) element = std::numeric_limits<double>::quiet_NaN();
  return matrix;
}

// *y += factor * x
template <typename T>
void AddScaled(double factor, const WideMatrix<T>& x, WideMatrix<T>* y) {
  const auto from = x.elements();
  const auto to = y->elements();
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * from[i];
}

// Multiplies the elements by 2^exponent.
template <typename T>
void Scale(int exponent, WideMatrix<T>* x) {
  const double factor = std::ldexp(1.0, exponent);
  for (T& element : x->elements()) element *= factor;
}

// Returns the largest column sum of magnitudes; NaN if an element is NaN.
template <typename T>
double ColumnNorm(const WideMatrix<T>& x) {
  double norm = 0;
  for (int64_t column = 0; column < x.columns(); ++column) {
    double sum = 0;
    for (int64_t row = 0; row < x.rows(); ++row) sum += std::abs(x(row, column));
    if (!(sum <= norm)) norm = sum;
  }
  return norm;
}

// Returns u * x * adjoint(u).
template <typename T>
WideMatrix<T> Transform(const WideMatrix<T>& u, const WideMatrix<T>& x) {
  const WideMatrix<T> left = Product(u, x);
  WideMatrix<T> result(x.rows(), x.columns());
  Multiply<T>({left.view()}, {u.view(), /*adjoint=*/true}, result.view());
  return result;
}

// ---- Exponential ----

// A Pade approximant of the exponential: p(x) / p(-x). Its error is below the rounding error of
// double for matrices with a norm of at most `norm` (N. Higham, The scaling and squaring method for
// the matrix exponential revisited, 2005).
struct Approximant {
  double norm;
  // The coefficients of p, by increasing power.
  absl::Span<const double> coefficients;
};

constexpr double kPade3[] = {120, 60, 12, 1};
constexpr double kPade5[] = {30240, 15120, 3360, 420, 30, 1};
constexpr double kPade7[] = {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1};
constexpr double kPade9[] = {17643225600, 8821612800, 2075673600, 302702400, 30270240,
                             2162160,     110880,     3960,       90,        1};
constexpr double kPade13[] = {64764752532480000.0,
                              32382376266240000.0,
                              7771770303897600.0,
                              1187353796428800.0,
                              129060195264000.0,
                              10559470521600.0,
                              670442572800.0,
                              33522128640.0,
                              1323241920.0,
                              40840800.0,
                              960960.0,
                              16380.0,
                              182.0,
                              1.0};
constexpr Approximant kApproximants[] = {{1.495585217958292e-2, kPade3},
                                         {2.539398330063230e-1, kPade5},
                                         {9.504178996162932e-1, kPade7},
                                         {2.097847961257068, kPade9},
                                         {5.371920351148152, kPade13}};

// Returns c[first] + c[first + 2] y + c[first + 4] y^2 + …, where powers[i] is y^(i + 1).
template <typename T>
WideMatrix<T> Polynomial(absl::Span<const double> c, size_t first,
                         const std::vector<WideMatrix<T>>& powers) {
  const int64_t n = powers[0].rows();
  WideMatrix<T> sum(n, n);
  // The terms with powers above powers.size() have the factor powers.back().
  const size_t low = 2 * powers.size();
  if (c.size() > low + 2) {
    WideMatrix<T> high(n, n);
    for (size_t i = 0; i < powers.size(); ++i) {
      AddScaled(c[first + low + 2 + 2 * i], powers[i], &high);
    }
    sum = Product(powers.back(), high);
  }
  for (size_t i = 0; i < powers.size(); ++i) AddScaled(c[first + 2 + 2 * i], powers[i], &sum);
  for (int64_t i = 0; i < n; ++i) sum(i, i) += c[first];
  return sum;
}

struct Exponential {
  static constexpr double kOperations = 30;
  // The maximum number of matrices that exist at the same time.
  static constexpr double kMatrices = 10;
  static constexpr bool kNeedsSchur = false;

  template <typename T>
  static WideMatrix<T> Of(WideMatrix<T> matrix, const LapackWork&) {
    const double norm = ColumnNorm(matrix);
    if (!std::isfinite(norm)) return NanMatrix<T>(matrix.rows());
    const Approximant* approximant = std::begin(kApproximants);
    while (norm > approximant->norm && approximant + 1 != std::end(kApproximants)) ++approximant;
    int squarings = 0;
    std::frexp(norm / approximant->norm, &squarings);
    squarings = std::max(squarings, 0);
    // exp(x) = exp(x / 2^s)^(2^s)
    if (squarings > 0) Scale(-squarings, &matrix);
    WideMatrix<T> result = Approximate(matrix, approximant->coefficients);
    for (int i = 0; i < squarings; ++i) result = Product(result, result);
    return result;
  }

  template <typename T>
  static WideMatrix<T> Approximate(const WideMatrix<T>& x, absl::Span<const double> c) {
    // The approximant of degree 13 uses the sixth power twice.
    const size_t num_powers = std::min<size_t>(c.size() / 2 - 1, c.size() > 10 ? 3 : 4);
    std::vector<WideMatrix<T>> powers;
    powers.push_back(Product(x, x));
    while (powers.size() < num_powers) powers.push_back(Product(powers.back(), powers.front()));
    // p(x) = even + odd and p(-x) = even - odd.
    WideMatrix<T> odd = Product(x, Polynomial(c, 1, powers));
    WideMatrix<T> numerator = Polynomial(c, 0, powers);
    WideMatrix<T> denominator = numerator;
    AddScaled(1, odd, &numerator);
    AddScaled(-1, odd, &denominator);
    return SolveLu(FactorLu(std::move(denominator)), numerator);
  }
};

// ---- Square root ----

// Returns the number of rows of the diagonal block at `i` of a result of ComputeSchur.
template <typename T>
int64_t BlockRows(const WideMatrix<T>& triangle, int64_t i) {
  return i + 1 < triangle.rows() && triangle(i + 1, i) != T(0) ? 2 : 1;
}

// Sets the diagonal block of *root at `i` to the square root of the diagonal block of `triangle`.
void SetRootOfBlock(const WideMatrix<complex128>& triangle, int64_t i, int64_t,
                    WideMatrix<complex128>* root) {
  (*root)(i, i) = std::sqrt(triangle(i, i));
}
void SetRootOfBlock(const WideMatrix<double>& triangle, int64_t i, int64_t rows,
                    WideMatrix<double>* root) {
  if (rows == 1) {
    (*root)(i, i) = std::sqrt(triangle(i, i));
    return;
  }
  // The block has eigenvalues a +- b i. If s is the real part of the square root of a + b i, the
  // square root of the block is s + (block - a) / (2 s).
  const double upper = triangle(i, i + 1);
  const double lower = triangle(i + 1, i);
  const double imaginary = std::sqrt(std::abs(upper)) * std::sqrt(std::abs(lower));
  const double real = std::sqrt(complex128(triangle(i, i), imaginary)).real();
  (*root)(i, i) = real;
  (*root)(i + 1, i + 1) = real;
  (*root)(i, i + 1) = upper / (2 * real);
  (*root)(i + 1, i) = lower / (2 * real);
}

// Replaces x [p, q] by the solution y of left * y + y * right = x. `left` and `right` are diagonal
// blocks of `root`, with p rows at `i` and q rows at `j`.
template <typename T>
void SolveSylvester(const WideMatrix<T>& root, int64_t i, int64_t p, int64_t j, int64_t q,
                    WideView<T> x) {
  if (p == 1 && q == 1) {
    x(0, 0) /= root(i, i) + root(j, j);
    return;
  }
  // One equation per element of x.
  WideMatrix<T> equations(p * q, p * q);
  WideMatrix<T> values(p * q, 1);
  for (int64_t row = 0; row < p; ++row) {
    for (int64_t column = 0; column < q; ++column) {
      const int64_t at = row + column * p;
      values(at, 0) = x(row, column);
      for (int64_t k = 0; k < p; ++k) equations(at, k + column * p) += root(i + row, i + k);
      for (int64_t k = 0; k < q; ++k) equations(at, row + k * p) += root(j + k, j + column);
    }
  }
  const WideMatrix<T> solution = SolveLu(FactorLu(std::move(equations)), values);
  for (int64_t at = 0; at < p * q; ++at) x(at % p, at / p) = solution(at, 0);
}

// Returns the square root of a result of ComputeSchur, using the recurrence of A. Bjorck and S.
// Hammarling (A Schur method for the square root of a matrix, 1983).
template <typename T>
WideMatrix<T> RootOfTriangle(const WideMatrix<T>& triangle) {
  const int64_t n = triangle.rows();
  WideMatrix<T> root(n, n);
  std::vector<int64_t> blocks;
  for (int64_t j = 0; j < n;) {
    const int64_t columns = BlockRows(triangle, j);
    SetRootOfBlock(triangle, j, columns, &root);
    // The columns above the diagonal block, minus the products of the known rows.
    const WideView<T> x = root.view().Block(0, j, j, columns);
    for (int64_t c = 0; c < columns; ++c) {
      std::copy_n(triangle.view().Column(j + c), j, x.Column(c));
    }
    for (size_t b = blocks.size(); b-- > 0;) {
      const int64_t i = blocks[b];
      const int64_t rows = BlockRows(triangle, i);
      const WideView<T> solution = x.Block(i, 0, rows, columns);
      SolveSylvester(root, i, rows, j, columns, solution);
      Multiply<T>({root.view().Block(0, i, i, rows)}, {solution}, x.Block(0, 0, i, columns),
                  /*subtract=*/true);
    }
    blocks.push_back(j);
    j += columns;
  }
  return root;
}

struct SquareRoot {
  static constexpr double kOperations = 25;
  static constexpr double kMatrices = 5;
  static constexpr bool kNeedsSchur = true;

  template <typename T>
  static WideMatrix<T> Of(WideMatrix<T> matrix, const LapackWork& work) {
    const int64_t n = matrix.rows();
    WideMatrix<T> unitary;
    if (!ComputeSchur(work, &matrix, &unitary) || HasNegativeEigenvalue(matrix)) {
      return NanMatrix<T>(n);
    }
    return Transform(unitary, RootOfTriangle(matrix));
  }

  // Returns true if a real result of ComputeSchur has no real square root.
  static bool HasNegativeEigenvalue(const WideMatrix<double>& triangle) {
    for (int64_t i = 0; i < triangle.rows(); i += BlockRows(triangle, i)) {
      if (BlockRows(triangle, i) == 1 && !(triangle(i, i) >= 0)) return true;
    }
    return false;
  }
  static bool HasNegativeEigenvalue(const WideMatrix<complex128>&) { return false; }
};

// ---- Logarithm ----

// Repeated square roots bring the triangular matrix of the Schur decomposition close to 1. With X =
// U^(1/2^k) - 1, log(U) = 2^k log(1 + X). log(1 + X) is the integral of X (1 + t X)^-1 over t in
// [0, 1], computed with Gauss-Legendre quadrature.
struct Logarithm {
  static constexpr double kOperations = 60;
  static constexpr double kMatrices = 6;
  static constexpr bool kNeedsSchur = true;

  static WideMatrix<complex128> Of(WideMatrix<complex128> triangle, const LapackWork& work) {
    using Matrix = WideMatrix<complex128>;
    // Square roots of any number except 0 come close to 1 in fewer steps.
    constexpr int kMaxRoots = 64;
    constexpr double kNear = 0.25;
    // The positive nodes on [-1, 1] and their weights. The negative nodes are symmetric.
    constexpr double kNodes[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267,
                                 0.9602898564975363};
    constexpr double kWeights[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745,
                                   0.1012285362903763};
    const int64_t n = triangle.rows();
    Matrix unitary;
    if (!ComputeSchur(work, &triangle, &unitary)) return NanMatrix<complex128>(n);
    for (int64_t i = 0; i < n; ++i) {
      if (triangle(i, i) == complex128(0)) return NanMatrix<complex128>(n);
    }
    const auto minus_identity = [n](Matrix x) {
      for (int64_t i = 0; i < n; ++i) x(i, i) -= 1;
      return x;
    };
    Matrix x = minus_identity(triangle);
    int roots = 0;
    // Written so that the loop also runs for NaN.
    while (!(ColumnNorm(x) < kNear)) {
      if (++roots > kMaxRoots || !AllFinite(x)) return NanMatrix<complex128>(n);
      triangle = RootOfTriangle(triangle);
      x = minus_identity(triangle);
    }
    Matrix log(n, n);
    for (int i = 0; i < 4; ++i) {
      for (const double sign : {-1.0, 1.0}) {
        Matrix denominator = Matrix::Identity(n);
        AddScaled(0.5 * (1 + sign * kNodes[i]), x, &denominator);
        Matrix term = x;
        SolveTriangular<complex128>(denominator.view(), Triangle::kUpper, term.view());
        AddScaled(0.5 * kWeights[i], term, &log);
      }
    }
    Scale(roots, &log);
    return Transform(unitary, log);
  }
};

// ---- Kernels ----

template <typename F>
absl::Status Compute(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(CheckTypes(ctx, 1, ctx.expected_output_dtype(0)));
  GRADFLOW_RETURN_IF_ERROR(CheckSquare("input", input.shape()));
  Tensor* out = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, input.shape(), &out));
  const MatrixBatch batch(input.shape());
  if (batch.count == 0) return absl::OkStatus();
  const double n = static_cast<double>(batch.rows);
  absl::Status status;
  const auto compute = [&](auto tag) {
    using T = typename decltype(tag)::type;
    absl::StatusOr<LapackWork> work = LapackWork();
    if (F::kNeedsSchur) work = SchurWork<T>(batch.rows);
    if (!work.ok()) {
      status = work.status();
      return;
    }
    const double bytes = F::kMatrices * sizeof(T) * n * n + work->bytes<T>();
    status = ForEachMatrix(ctx, batch.count, F::kOperations * n * n * n, bytes, [&](int64_t i) {
      WideMatrix<T> matrix = LoadMatrix<T>(input, i);
      if (AllFinite(matrix)) {
        StoreMatrix(F::Of(std::move(matrix), *work), out, i);
      } else {
        FillMatrix(std::numeric_limits<double>::quiet_NaN(), out, i);
      }
      return absl::OkStatus();
    });
  };
  if constexpr (std::is_same_v<F, Logarithm>) {
    compute(TypeTag<complex128>());
  } else {
    DispatchWide(input.dtype(), compute);
  }
  return status;
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("MatrixExponential")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the exponentials of matrices: the sums of their powers divided by factorials.

For a matrix with NaN or infinity, the result is NaN.

input: Square matrices along the last two dimensions.
output: The exponential of each matrix.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Op("MatrixLogarithm")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the principal logarithms of matrices.

The exponential of the result is the input. For a matrix that is singular, or has NaN or infinity,
the result is NaN.

input: Square matrices along the last two dimensions.
output: The logarithm of each matrix.
T: The type of `input` and `output`.)");
  registry.Op("MatrixSquareRoot")
      .Group("linalg_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Doc(R"(Computes the principal square roots of matrices.

The square of the result is the input. The result has NaN for a real matrix whose root is not real,
for some singular matrices, and for matrices with NaN or infinity.

input: Square matrices along the last two dimensions.
output: The square root of each matrix.
T: The type of `input` and `output`; there is no kernel for half.)");
  registry.Kernel("MatrixExponential", MakeFunctionKernel<Compute<Exponential>>)
      .Types("T", DataTypesOf(LinalgTypes()));
  registry.Kernel("MatrixLogarithm", MakeFunctionKernel<Compute<Logarithm>>)
      .Types("T", DataTypesOf(ComplexTypes()));
  registry.Kernel("MatrixSquareRoot", MakeFunctionKernel<Compute<SquareRoot>>)
      .Types("T", DataTypesOf(LinalgTypes()));
}

}  // namespace gradflow::matrix_functions
