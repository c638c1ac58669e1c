// Gradients of the matrix decompositions and matrix functions of ops/linalg, for batches of
// matrices. A^H is the conjugate transpose of a matrix A, dA is its gradient, and * is the
// elementwise product.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/linalg.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {
namespace {

// ---- Parts of matrices ----

// The columns [begin, end) of matrices, or all columns from `begin` if `to_end`.
Output Columns(const Scope& scope, const Output& a, const Output& begin, const Output& end,
               bool to_end) {
  return ops::StridedSlice(scope, a, ops::ConcatV2(scope, {Vector(scope, {0}), begin}, 0),
                           ops::ConcatV2(scope, {Vector(scope, {0}), end}, 0),
                           Vector(scope, {1, 1}),
                           ops::StridedSlice::EllipsisMask(1).EndMask(to_end ? 2 : 0));
}
Output FirstColumns(const Scope& scope, const Output& a, const Output& count) {
  return Columns(scope, a, Vector(scope, {0}), count, /*to_end=*/false);
}
Output OtherColumns(const Scope& scope, const Output& a, const Output& count) {
  return Columns(scope, a, count, count, /*to_end=*/true);
}
// The size of dimension rank - from_end, as a vector of one element.
Output Size(const Scope& scope, const Output& a, int from_end) {
  const Output shape = ops::Shape(scope, a);
  return ops::StridedSlice(scope, shape, Vector(scope, {-from_end}), Vector(scope, {1 - from_end}),
                           Vector(scope, {1}), ops::StridedSlice::EndMask(from_end == 1 ? 1 : 0));
}
Output StrictlyLower(const Scope& scope, const Output& a) {
  return ops::Sub(scope, a, Triangle(scope, /*lower=*/false, a));
}
// Multiplies each row of `a` elementwise by a vector.
Output TimesRow(const Scope& scope, const Output& a, const Output& vector) {
  return ops::Mul(scope, a, ops::ExpandDims(scope, vector, -2));
}
Output ToType(const Scope& scope, const Output& x, DataType dtype) {
  return x.type() == dtype ? x : Output(ops::Cast(scope, x, dtype));
}
// 1 / (a_j - a_i) at row i and column j; 0 where a_j = a_i.
Output InverseDifferences(const Scope& scope, const Output& a) {
  const Output differences =
      ops::Sub(scope, ops::ExpandDims(scope, a, -2), ops::ExpandDims(scope, a, -1));
  const Output zero = Scalar(scope, a.type(), 0);
  const Output is_zero = ops::Equal(scope, differences, zero);
  const Output safe = ops::SelectV2(scope, is_zero, ops::OnesLike(scope, differences), differences);
  return ops::SelectV2(scope, is_zero, zero, ops::Reciprocal(scope, safe));
}

// Returns true and stores the last two dimensions of `x` if they are known.
bool KnownSizes(const Output& x, int64_t* rows, int64_t* columns) {
  const PartialTensorShape& shape = x.node()->output_shape(x.index());
  if (shape.unknown_rank() || shape.dims() < 2) return false;
  *rows = shape.dim_size(shape.dims() - 2);
  *columns = shape.dim_size(shape.dims() - 1);
  return *rows >= 0 && *columns >= 0;
}

// ---- QR ----

// A = Q R with k columns of Q; A = [X, Y] and R = [U, V] are split after k columns:
//   dQ' = dQ + Y dV^H,  M = U dU^H - dQ'^H Q
//   dX = (dQ' + Q (M's strictly lower triangle, made Hermitian with the diagonal)) U^-H
//   dY = Q dV
absl::Status GradientOfQr(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                          std::vector<Output>* dx) {
  const Output a = op.input(0);
  bool full = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "full_matrices", &full));
  int64_t m = -1;
  int64_t n = -1;
  const bool known = KnownSizes(a, &m, &n);
  if (full && !(known && m <= n)) {
    return errors::Unimplemented(
        "with full_matrices the gradient is only known for matrices with as many columns as rows "
        "or more");
  }
  const Output q = op.output(0);
  const Output r = op.output(1);
  const Output dr = OrZeros(scope, op, 1, dy);
  Output dq = OrZeros(scope, op, 0, dy);
  const bool is_tall = known && m >= n;
  const Output k = is_tall ? Output() : Size(scope, q, 1);
  const Output u = is_tall ? r : FirstColumns(scope, r, k);
  const Output du = is_tall ? dr : FirstColumns(scope, dr, k);
  Output dv = NoGradient();
  if (!is_tall) {
    dv = OtherColumns(scope, dr, k);
    const Output y = OtherColumns(scope, a, k);
    dq = ops::AddV2(scope, dq, MatrixProduct(scope, y, false, dv, true));
  }
  const Output du_upper = Triangle(scope, /*lower=*/false, du);
  const Output inner = ops::Sub(scope, MatrixProduct(scope, u, false, du_upper, true),
                                MatrixProduct(scope, dq, true, q, false));
  const Output lower = StrictlyLower(scope, inner);
  const Output diagonal = RealPart(scope, ops::MatrixDiagPart(scope, inner));
  const Output symmetric = ops::AddV2(scope, ops::AddV2(scope, lower, AdjointOf(scope, lower)),
                                      ops::MatrixDiag(scope, diagonal));
  const Output right = ops::AddV2(scope, dq, MatrixProduct(scope, q, false, symmetric, false));
  const Output solved = ops::MatrixTriangularSolve(scope, u, AdjointOf(scope, right),
                                                   ops::MatrixTriangularSolve::Lower(false));
  const Output first = AdjointOf(scope, solved);
  dx->push_back(is_tall ? first
                        : Output(ops::ConcatV2(
                              scope, {first, MatrixProduct(scope, q, false, dv, false)}, -1)));
  return scope.status();
}

// ---- Singular values ----

// A = U S V^H, where F_ij = 1 / (s_j^2 - s_i^2) off the diagonal:
//   dA = U (dS + (F * (U^H dU - dU^H U)) S + S (F * (V^H dV - dV^H V)) + D) V^H
//        + (I - U U^H) dU S^-1 V^H + U S^-1 dV^H (I - V V^H)
// where D = i S^-1 Im(diagonal of U^H dU), which is 0 for real numbers. The last two terms vanish
// for square matrices.
absl::Status GradientOfSvd(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  const Output a = op.input(0);
  const DataType dtype = BaseType(a.type());
  bool compute_uv = true;
  bool full = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "compute_uv", &compute_uv));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "full_matrices", &full));
  Output s = op.output(0);
  Output u = op.output(1);
  Output v = op.output(2);
  const bool vectors = compute_uv && !(IsNoGradient(dy[1]) && IsNoGradient(dy[2]));
  if (!compute_uv || (full && !vectors)) {
    const ops::Svd svd(scope, a);
    s = svd.s;
    u = svd.u;
    v = svd.v;
  }
  int64_t m = -1;
  int64_t n = -1;
  if (full && vectors && !(KnownSizes(a, &m, &n) && m == n)) {
    return errors::Unimplemented(
        "with full_matrices the gradient of u and v is only known for square matrices");
  }
  const Output real_s = ToType(scope, s, dtype);
  // Singular values are real: the imaginary part of their gradient does not count.
  const Output ds = RealPart(scope, OrZeros(scope, op, 0, dy));
  Output inner = ops::MatrixDiag(scope, ToType(scope, ds, dtype));
  Output sum = NoGradient();
  if (vectors) {
    const Output f = InverseDifferences(scope, ops::Square(scope, real_s));
    const Output inverse_s = ops::DivNoNan(scope, ops::OnesLike(scope, s), s);
    const Output scale = ToType(scope, inverse_s, dtype);
    // F * (x - x^H), where x is U^H dU or V^H dV.
    const auto skew = [&](const Output& x) -> Output {
      return ops::Mul(scope, f, ops::Sub(scope, x, AdjointOf(scope, x)));
    };
    if (!IsNoGradient(dy[1])) {
      const Output x = MatrixProduct(scope, u, true, dy[1], false);
      inner = ops::AddV2(scope, inner, TimesRow(scope, skew(x), real_s));
      if (DataTypeIsComplex(dtype)) {
        const Output diagonal = ops::MatrixDiagPart(scope, x);
        const Output imaginary = ops::Sub(scope, diagonal, RealPart(scope, diagonal));
        inner = ops::AddV2(scope, inner, ops::MatrixDiag(scope, ops::Mul(scope, imaginary, scale)));
      }
      const Output rest = ops::Sub(scope, dy[1], MatrixProduct(scope, u, false, x, false));
      sum = MatrixProduct(scope, TimesRow(scope, rest, scale), false, v, true);
    }
    if (!IsNoGradient(dy[2])) {
      const Output x = MatrixProduct(scope, v, true, dy[2], false);
      inner =
          ops::AddV2(scope, inner, ops::Mul(scope, skew(x), ops::ExpandDims(scope, real_s, -1)));
      const Output rest = ops::Sub(scope, dy[2], MatrixProduct(scope, v, false, x, false));
      const Output term = MatrixProduct(scope, u, false, TimesRow(scope, rest, scale), true);
      sum = IsNoGradient(sum) ? term : Output(ops::AddV2(scope, sum, term));
    }
  }
  const Output first =
      MatrixProduct(scope, MatrixProduct(scope, u, false, inner, false), false, v, true);
  dx->push_back(IsNoGradient(sum) ? first : Output(ops::AddV2(scope, first, sum)));
  return scope.status();
}

// ---- Eigenvalues ----

// A = V diag(e) V^-1, where columns of V have length 1, and E_ij = e_j - e_i:
//   dA = V^-H (diag(de) + (V^H dV - V^H V diag(Re(V^H dV))) / conj(E) off the diagonal) V^H
absl::Status GradientOfEig(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                           std::vector<Output>* dx) {
  const Output a = op.input(0);
  bool compute_v = true;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "compute_v", &compute_v));
  const Output e = op.output(0);
  Output v = op.output(1);
  Output inner = ops::MatrixDiag(scope, OrZeros(scope, op, 0, dy));
  if (!compute_v) {
    v = ops::Eig(scope, a, e.type()).v;
  } else if (!IsNoGradient(dy[1])) {
    const Output x = MatrixProduct(scope, v, true, dy[1], false);
    const Output gram = MatrixProduct(scope, v, true, v, false);
    const Output along = RealPart(scope, ops::MatrixDiagPart(scope, x));
    const Output across = ops::Sub(scope, x, TimesRow(scope, gram, along));
    const Output f = ops::Conj(scope, InverseDifferences(scope, e));
    inner = ops::AddV2(scope, inner, ops::Mul(scope, f, across));
  }
  const Output right = MatrixProduct(scope, inner, false, v, true);
  const Output g = ops::MatrixSolve(scope, v, right, ops::MatrixSolve::Adjoint(true));
  const DataType dtype = BaseType(a.type());
  dx->push_back(DataTypeIsComplex(dtype) ? g : Output(ops::Real(scope, g, ops::Real::Tout(dtype))));
  return scope.status();
}

// The single output of SelfAdjointEig (version 1): row 0 holds the eigenvalues, and the following
// rows hold the matrix whose columns are the eigenvectors.
absl::Status GradientOfSelfAdjointEig(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  const auto formula = [](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    const ops::SelfAdjointEigV2 eig(s, xs[0]);
    return {ops::ConcatV2(s, {ops::ExpandDims(s, eig.e, -2), eig.v}, -2)};
  };
  return DifferentiateFormula(scope, {op.input(0)}, formula, dy, dx);
}

// ---- LU ----

// P A = L U: dA = P^H L^-H (strictly lower triangle of L^H dL + upper triangle of dU U^H) U^-H.
absl::Status GradientOfLu(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                          std::vector<Output>* dx) {
  const Output lu = op.output(0);
  const Output diagonal = ops::MatrixDiagPart(scope, lu);
  const Output u = Triangle(scope, /*lower=*/false, lu);
  const Output l = ops::MatrixSetDiag(scope, Triangle(scope, /*lower=*/true, lu),
                                      ops::OnesLike(scope, diagonal));
  const Output dl = StrictlyLower(scope, dy[0]);
  const Output du = Triangle(scope, /*lower=*/false, dy[0]);
  const Output lower = StrictlyLower(scope, MatrixProduct(scope, l, true, dl, false));
  const Output upper = Triangle(scope, /*lower=*/false, MatrixProduct(scope, du, false, u, true));
  const Output inner = ops::AddV2(scope, lower, upper);
  const Output left = ops::MatrixTriangularSolve(
      scope, l, inner, ops::MatrixTriangularSolve::Lower(true).Adjoint(true));
  // (left U^-H)^H = U^-1 left^H.
  const Output solved = ops::MatrixTriangularSolve(scope, u, AdjointOf(scope, left),
                                                   ops::MatrixTriangularSolve::Lower(false));
  const Output size = ops::Reshape(scope, Size(scope, lu, 1), Vector(scope, {}));
  const DataType dtype = lu.type();
  const Output permutation =
      ops::OneHot(scope, op.output(1), size, Scalar(scope, dtype, 1), Scalar(scope, dtype, 0));
  // P^H (left U^-H); the second factor is the adjoint of `solved`.
  dx->push_back(MatrixProduct(scope, permutation, true, solved, true));
  return scope.status();
}

// ---- Functions of a matrix ----

// The derivative of f at A in the direction D is the upper right block of f([A, D; 0, A]). Its
// adjoint, the gradient, is the upper right block of f([A^H, dY; 0, A^H]).
template <typename Function>
absl::Status GradientOfMatrixFunction(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output adjoint = AdjointOf(scope, op.input(0));
  const Output zeros = ops::ZerosLike(scope, adjoint);
  const Output upper = ops::ConcatV2(scope, {adjoint, dy[0]}, -1);
  const Output lower = ops::ConcatV2(scope, {zeros, adjoint}, -1);
  const Output block = Function(scope, ops::ConcatV2(scope, {upper, lower}, -2));
  const Output n = Size(scope, adjoint, 1);
  const Output right = OtherColumns(scope, block, n);
  // The first n rows.
  dx->push_back(
      ops::StridedSlice(scope, right, Vector(scope, {0, 0, 0}),
                        ops::ConcatV2(scope, {Vector(scope, {0}), n, Vector(scope, {0})}, 0),
                        Vector(scope, {1, 1, 1}), ops::StridedSlice::EllipsisMask(1).EndMask(4)));
  return scope.status();
}

// ---- Least squares ----

// X = (A^H A + r I)^-1 A^H B, or A^H (A A^H + r I)^-1 B if A has fewer rows than columns. r is
// input 2 with the attribute `fast`, otherwise 0.
absl::Status GradientOfMatrixSolveLs(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  int64_t m = -1;
  int64_t n = -1;
  if (!KnownSizes(op.input(0), &m, &n)) {
    return errors::Unimplemented(
        "the gradient needs matrices whose numbers of rows and columns are known");
  }
  bool fast = true;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "fast", &fast));
  const auto formula = [&](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    const Output& a = xs[0];
    const bool is_tall = m >= n;
    Output gram = MatrixProduct(s, a, is_tall, a, !is_tall);
    if (fast) {
      const Output ones = ops::OnesLike(s, ops::MatrixDiagPart(s, gram));
      const Output r = ops::Cast(s, xs[2], a.type());
      gram = ops::AddV2(s, gram, ops::MatrixDiag(s, ops::Mul(s, r, ones)));
    }
    if (is_tall) {
      return {ops::MatrixSolve(s, gram, MatrixProduct(s, a, true, xs[1], false))};
    }
    return {MatrixProduct(s, a, true, ops::MatrixSolve(s, gram, xs[1]), false)};
  };
  return DifferentiateFormula(scope, {op.input(0), op.input(1), op.input(2)}, formula, dy, dx);
}

// ---- Banded matrices ----

absl::Status GradientOfBandedTriangularSolve(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  bool lower = true;
  bool adjoint = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "lower", &lower));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint", &adjoint));
  const Output bands = op.input(0);
  const Output b = op.input(1);
  const Output db = ops::BandedTriangularSolve(
      scope, bands, dy[0], ops::BandedTriangularSolve::Lower(lower).Adjoint(!adjoint));
  const Output da = SolveGradient(scope, adjoint, op.output(0), db);
  // Reads the diagonals of dA in the order of `bands`, with the subdiagonals aligned to the right
  // and the superdiagonals to the left.
  const Output count = ops::Sub(scope, Size(scope, bands, 2), 1);
  const Output zero = Vector(scope, {0});
  const Output range = lower ? ops::ConcatV2(scope, {ops::Neg(scope, count), zero}, 0)
                             : ops::ConcatV2(scope, {zero, count}, 0);
  const Output d_bands = ops::MatrixDiagPartV3(scope, da, range, Scalar(scope, da.type(), 0),
                                               ops::MatrixDiagPartV3::Align("LEFT_RIGHT"));
  *dx = {SumBatches(scope, d_bands, bands, b), SumBatches(scope, db, b, bands)};
  return scope.status();
}

// Shifts `a` by one along `axis`, which is negative. Row i of the result is row i + 1 of `a`
// (NextRows) or row i - 1 (PreviousRows). The last or the first row is zero.
Output NextRows(const Scope& scope, const Output& a, int axis) {
  const Output rank = ops::Rank(scope, a);
  const Output at = ops::OneHot(scope, ops::Add(scope, rank, axis), rank, 1, 0);
  const Output zeros = ops::ZerosLike(scope, at);
  const Output rest = ops::Slice(scope, a, at, ops::Sub(scope, ops::Shape(scope, a), at));
  return ops::Pad(scope, rest, ops::Pack(scope, {zeros, at}, ops::Pack::Axis(1)));
}
Output PreviousRows(const Scope& scope, const Output& a, int axis) {
  const Output rank = ops::Rank(scope, a);
  const Output at = ops::OneHot(scope, ops::Add(scope, rank, axis), rank, 1, 0);
  const Output zeros = ops::ZerosLike(scope, at);
  const Output rest = ops::Slice(scope, a, zeros, ops::Sub(scope, ops::Shape(scope, a), at));
  return ops::Pad(scope, rest, ops::Pack(scope, {at, zeros}, ops::Pack::Axis(1)));
}
// The gradients of the three diagonals of T as rows along the last dimension, where dT = g x^H.
struct TridiagonalGradients {
  Output super;
  Output main;
  Output sub;
};
TridiagonalGradients DiagonalGradients(const Scope& scope, const Output& g, const Output& x) {
  const Output conj = Conjugate(scope, x);
  const auto sum = [&](const Output& factor) -> Output {
    return ops::Sum(scope, ops::Mul(scope, g, factor), -1);
  };
  return {sum(NextRows(scope, conj, -2)), sum(conj), sum(PreviousRows(scope, conj, -2))};
}

absl::Status GradientOfTridiagonalMatMul(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  const TridiagonalGradients d = DiagonalGradients(scope, dy[0], op.input(3));
  for (const Output& diagonal : {d.super, d.main, d.sub}) {
    dx->push_back(ops::ExpandDims(scope, diagonal, -2));
  }
  // The adjoint exchanges the outer diagonals, and aligns them with the rows again.
  const Output super = NextRows(scope, Conjugate(scope, op.input(2)), -1);
  const Output sub = PreviousRows(scope, Conjugate(scope, op.input(0)), -1);
  dx->push_back(ops::TridiagonalMatMul(scope, super, Conjugate(scope, op.input(1)), sub, dy[0]));
  return scope.status();
}
// T X = B: dB = T^-H dX, dT = -dB X^H.
absl::Status GradientOfTridiagonalSolve(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool partial_pivoting = true;
  bool perturb_singular = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "partial_pivoting", &partial_pivoting));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "perturb_singular", &perturb_singular));
  const Output diagonals = Conjugate(scope, op.input(0));
  const std::vector<Output> rows = {ops::GatherV2(scope, diagonals, Vector(scope, {2}), -2),
                                    ops::GatherV2(scope, diagonals, Vector(scope, {1}), -2),
                                    ops::GatherV2(scope, diagonals, Vector(scope, {0}), -2)};
  const Output adjoint = ops::ConcatV2(
      scope, {NextRows(scope, rows[0], -1), rows[1], PreviousRows(scope, rows[2], -1)}, -2);
  const Output db = ops::TridiagonalSolve(
      scope, adjoint, dy[0],
      ops::TridiagonalSolve::PartialPivoting(partial_pivoting).PerturbSingular(perturb_singular));
  const TridiagonalGradients d = DiagonalGradients(scope, ops::Neg(scope, db), op.output(0));
  std::vector<Output> parts;
  for (const Output& diagonal : {d.super, d.main, d.sub}) {
    parts.push_back(ops::ExpandDims(scope, diagonal, -2));
  }
  *dx = {ops::ConcatV2(scope, parts, -2), db};
  return scope.status();
}

// CholeskyGrad computes the gradient of Cholesky from the output and its gradient.
absl::Status GradientOfCholeskyGrad(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  const auto formula = [](const Scope& s, const std::vector<Output>& xs) -> std::vector<Output> {
    return {CholeskyGradient(s, Triangle(s, /*lower=*/true, xs[0]), xs[1])};
  };
  return DifferentiateFormula(scope, {op.input(0), op.input(1)}, formula, dy, dx);
}

}  // namespace
}  // namespace gradients

namespace gradients::decompositions {

void Register(GradientRegistry& registry) {
  registry.Register("Qr", GradientOfQr);
  registry.Register("Svd", GradientOfSvd);
  registry.Register("Eig", GradientOfEig);
  registry.Register("SelfAdjointEig", GradientOfSelfAdjointEig);
  registry.Register("Lu", GradientOfLu);
  registry.Register("MatrixExponential", GradientOfMatrixFunction<ops::MatrixExponential>);
  registry.Register("MatrixLogarithm", GradientOfMatrixFunction<ops::MatrixLogarithm>);
  registry.Register("MatrixSquareRoot", GradientOfMatrixFunction<ops::MatrixSquareRoot>);
  registry.Register("MatrixSolveLs", GradientOfMatrixSolveLs);
  registry.Register("BandedTriangularSolve", GradientOfBandedTriangularSolve);
  registry.Register("TridiagonalMatMul", GradientOfTridiagonalMatMul);
  registry.Register("TridiagonalSolve", GradientOfTridiagonalSolve);
  registry.Register("CholeskyGrad", GradientOfCholeskyGrad);
}

}  // namespace gradients::decompositions

}  // namespace gradflow
