// Gradients of the ops of ops/linalg. A^H is the conjugate transpose of a matrix A, and dA is its
// gradient.
#include "gradflow/gradients/linalg.h"

#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow {
namespace gradients {

Output MatrixProduct(const Scope& scope, const Output& a, bool adjoint_a, const Output& b,
                     bool adjoint_b) {
  return ops::BatchMatMulV2(scope, a, b, ops::BatchMatMulV2::AdjX(adjoint_a).AdjY(adjoint_b));
}
// Transposes the last two dimensions and conjugates.
Output AdjointOf(const Scope& scope, const Output& a) {
  const Output rank = ops::Rank(scope, a);
  const Output axes = ops::ConcatV2(
      scope,
      {ops::Range(scope, 0, ops::Sub(scope, rank, 2), 1),
       ops::Add(scope, ops::Reshape(scope, rank, Vector(scope, {1})), Vector(scope, {-1, -2}))},
      0);
  return ops::ConjugateTranspose(scope, a, axes);
}

// Sums over the batch dimensions along which `x` was broadcast.
Output SumBatches(const Scope& scope, const Output& gradient, const Output& x,
                  const Output& other) {
  const Output shape = ops::Shape(scope, x);
  const Output zero = Vector(scope, {0});
  const auto batch = [&](const Output& tensor) {
    const Output tensor_shape = ops::Shape(scope, tensor);
    const Output size = ops::Sub(scope, ops::Shape(scope, tensor_shape), Vector(scope, {2}));
    return Output(ops::Slice(scope, tensor_shape, zero, size));
  };
  const auto axes = ops::BroadcastGradientArgs(scope, batch(x), batch(other));
  return ops::Reshape(scope, ops::Sum(scope, gradient, axes.r0), shape);
}
// A X = B: dB = A^-H dX and dA = -dB X^H. If `adjoint`, A^H X = B: dA = -X dB^H.
Output SolveGradient(const Scope& scope, bool adjoint, const Output& x, const Output& db) {
  return ops::Neg(scope, adjoint ? MatrixProduct(scope, x, false, db, true)
                                 : MatrixProduct(scope, db, false, x, true));
}
// The lower or upper triangle of a square matrix, with the diagonal.
Output Triangle(const Scope& scope, bool lower, const Output& a) {
  const auto all = static_cast<int64_t>(-1);
  const auto none = static_cast<int64_t>(0);
  return ops::MatrixBandPart(scope, a, lower ? all : none, lower ? none : all);
}
// A = L L^H: dA = L^-H P L^-1, made symmetric. P is the lower triangle of L^H dL with its diagonal
// halved.
Output CholeskyGradient(const Scope& scope, const Output& l, const Output& dl) {
  const Output half = Scalar(scope, l.type(), 0.5);
  const Output product = Triangle(scope, true, MatrixProduct(scope, l, true, dl, false));
  const Output diagonal = ops::Mul(scope, half, ops::MatrixDiagPart(scope, product));
  const Output p = ops::MatrixSetDiag(scope, product, diagonal);
  const auto solve = ops::MatrixTriangularSolve::Lower(true).Adjoint(true);
  // First L^-H P, then (L^-H P L^-1)^H = L^-H (L^-H P)^H.
  const Output left = ops::MatrixTriangularSolve(scope, l, p, solve);
  const Output adjoint = ops::MatrixTriangularSolve(scope, l, AdjointOf(scope, left), solve);
  const Output sum = ops::Add(scope, adjoint, AdjointOf(scope, adjoint));
  return ops::Mul(scope, half, sum);
}

namespace {

// The product of two matrices, each optionally transposed. Single matrices use MatMul. Batches use
// BatchMatMulV2, which also conjugates the transposed factors.
Output Product(const Scope& scope, bool batches, const Output& a, bool transpose_a, const Output& b,
               bool transpose_b) {
  if (batches) {
    return ops::BatchMatMulV2(scope, a, b, ops::BatchMatMulV2::AdjX(transpose_a).AdjY(transpose_b));
  }
  return ops::MatMul(scope, a, b, ops::MatMul::TransposeA(transpose_a).TransposeB(transpose_b));
}

// Appends the gradients of the factors of y = a b, each optionally transposed. MatMul does not
// conjugate the factors that it transposes, so GradientOfMatMul() passes conjugated factors.
absl::Status AppendProducts(const Scope& scope, bool batches, const Output& a, bool transposed_a,
                            const Output& b, bool transposed_b, const Output& dy,
                            std::vector<Output>* dx) {
  if (!transposed_a) {
    dx->push_back(Product(scope, batches, dy, false, b, !transposed_b));
  } else {
    dx->push_back(Product(scope, batches, b, transposed_b, dy, true));
  }
  if (!transposed_b) {
    dx->push_back(Product(scope, batches, a, !transposed_a, dy, false));
  } else {
    dx->push_back(Product(scope, batches, dy, true, a, transposed_a));
  }
  return scope.status();
}

absl::Status GradientOfMatMul(const Scope& scope, const Operation& op,
                              const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool transposed_a = false;
  bool transposed_b = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_a", &transposed_a));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "transpose_b", &transposed_b));
  return AppendProducts(scope, /*batches=*/false, Conjugate(scope, op.input(0)), transposed_a,
                        Conjugate(scope, op.input(1)), transposed_b, dy[0], dx);
}

absl::Status GradientOfBatchMatMul(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool adjoint_x = false;
  bool adjoint_y = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_x", &adjoint_x));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adj_y", &adjoint_y));
  const Output x = op.input(0);
  const Output y = op.input(1);
  GRADFLOW_RETURN_IF_ERROR(
      AppendProducts(scope, /*batches=*/true, x, adjoint_x, y, adjoint_y, dy[0], dx));
  if (op.node()->type_string() != "BatchMatMul") {
    *dx = {SumBatches(scope, (*dx)[0], x, y), SumBatches(scope, (*dx)[1], y, x)};
  }
  return scope.status();
}

absl::Status GradientOfCross(const Scope& scope, const Operation& op, const std::vector<Output>& dy,
                             std::vector<Output>* dx) {
  *dx = {ops::Cross(scope, op.input(1), dy[0]), ops::Cross(scope, dy[0], op.input(0))};
  return scope.status();
}

// ---- Inverses and solutions ----

// Y = A^-1: dA = -Y^H dY Y^H. If adjoint, Y = A^-H: dA = -Y dY^H Y.
absl::Status GradientOfMatrixInverse(const Scope& scope, const Operation& op,
                                     const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool adjoint = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint", &adjoint));
  const Output y = op.output(0);
  const Output inner = MatrixProduct(scope, dy[0], adjoint, y, !adjoint);
  dx->push_back(ops::Neg(scope, MatrixProduct(scope, y, !adjoint, inner, false)));
  return scope.status();
}

// dA = dy conj(det A) A^-H.
absl::Status GradientOfMatrixDeterminant(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output g = ops::Mul(scope, dy[0], Conjugate(scope, op.output(0)));
  const Output inverse = ops::MatrixInverse(scope, op.input(0), ops::MatrixInverse::Adjoint(true));
  const Output scalars = ops::ExpandDims(scope, ops::ExpandDims(scope, g, -1), -1);
  dx->push_back(ops::Mul(scope, scalars, inverse));
  return scope.status();
}
// The outputs are the sign s and log|det A|. If A changes by D, let d = tr(A^-1 D). Then log|det A|
// changes by the real part of d, and s changes by i s times the imaginary part of d, which is 0 for
// real matrices. The gradient is dA = g A^-H, where g is dlog for real matrices. For complex
// matrices, the real part of g is the real part of dlog, because log|det A| is real, and the
// imaginary part of g is the imaginary part of ds conj(s).
absl::Status GradientOfLogMatrixDeterminant(const Scope& scope, const Operation& op,
                                            const std::vector<Output>& dy,
                                            std::vector<Output>* dx) {
  const Output sign = op.output(0);
  const bool is_complex = DataTypeIsComplex(sign.type());
  const bool has_log = !IsNoGradient(dy[1]);
  const bool has_sign = is_complex && !IsNoGradient(dy[0]);
  if (!has_log && !has_sign) {
    dx->push_back(NoGradient());
    return scope.status();
  }
  Output g = dy[1];
  if (is_complex) {
    // Twice the real part of g plus twice its imaginary part.
    Output parts;
    if (has_log) parts = ops::Add(scope, g, Conjugate(scope, g));
    if (has_sign) {
      const Output product = ops::Mul(scope, dy[0], Conjugate(scope, sign));
      const Output turn = ops::Sub(scope, product, Conjugate(scope, product));
      parts = has_log ? Output(ops::Add(scope, parts, turn)) : turn;
    }
    g = ops::Mul(scope, Scalar(scope, sign.type(), 0.5), parts);
  }
  const Output inverse = ops::MatrixInverse(scope, op.input(0), ops::MatrixInverse::Adjoint(true));
  const Output scalars = ops::ExpandDims(scope, ops::ExpandDims(scope, g, -1), -1);
  dx->push_back(ops::Mul(scope, scalars, inverse));
  return scope.status();
}

absl::Status GradientOfMatrixSolve(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool adjoint = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint", &adjoint));
  const Output db =
      ops::MatrixSolve(scope, op.input(0), dy[0], ops::MatrixSolve::Adjoint(!adjoint));
  *dx = {SolveGradient(scope, adjoint, op.output(0), db), db};
  return scope.status();
}
absl::Status GradientOfMatrixTriangularSolve(const Scope& scope, const Operation& op,
                                             const std::vector<Output>& dy,
                                             std::vector<Output>* dx) {
  bool lower = true;
  bool adjoint = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "lower", &lower));
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "adjoint", &adjoint));
  const Output a = op.input(0);
  const Output b = op.input(1);
  const Output db = ops::MatrixTriangularSolve(
      scope, a, dy[0], ops::MatrixTriangularSolve::Lower(lower).Adjoint(!adjoint));
  const Output da = Triangle(scope, lower, SolveGradient(scope, adjoint, op.output(0), db));
  *dx = {SumBatches(scope, da, a, b), SumBatches(scope, db, b, a)};
  return scope.status();
}

absl::Status GradientOfCholesky(const Scope& scope, const Operation& op,
                                const std::vector<Output>& dy, std::vector<Output>* dx) {
  dx->push_back(CholeskyGradient(scope, op.output(0), dy[0]));
  return scope.status();
}

// A = V diag(e) V^H: dA = V (diag(de) + F * (V^H dV)) V^H, where F_ij = 1 / (e_j - e_i) off the
// diagonal. The op reads only the lower triangle, which gets the gradient of both triangles.
absl::Status GradientOfSelfAdjointEigV2(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  bool compute_v = true;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "compute_v", &compute_v));
  const Output e = op.output(0);
  Output v = op.output(1);
  Output inner = ops::MatrixDiag(scope, OrZeros(scope, op, 0, dy));
  if (!compute_v) {
    v = ops::SelfAdjointEigV2(scope, op.input(0)).v;
  } else if (!IsNoGradient(dy[1])) {
    const Output differences =
        ops::Sub(scope, ops::ExpandDims(scope, e, -2), ops::ExpandDims(scope, e, -1));
    const Output f = ops::DivNoNan(scope, ops::OnesLike(scope, differences), differences);
    inner = ops::Add(scope, inner, ops::Mul(scope, f, MatrixProduct(scope, v, true, dy[1], false)));
  }
  const Output full =
      MatrixProduct(scope, MatrixProduct(scope, v, false, inner, false), false, v, true);
  const Output identity = ops::MatrixDiag(scope, ops::OnesLike(scope, e));
  const Output sum = ops::Add(scope, full, MatrixProduct(scope, full, true, identity, false));
  const Output lower = Triangle(scope, true, sum);
  const Output half = Scalar(scope, lower.type(), 0.5);
  dx->push_back(
      ops::MatrixSetDiag(scope, lower, ops::Mul(scope, half, ops::MatrixDiagPart(scope, lower))));
  return scope.status();
}

}  // namespace
}  // namespace gradients

namespace gradients::linalg {

void Register(GradientRegistry& registry) {
  registry.Register("MatMul", GradientOfMatMul);
  registry.Register("BatchMatMul", GradientOfBatchMatMul);
  registry.Register("BatchMatMulV2", GradientOfBatchMatMul);
  registry.Register("Cross", GradientOfCross);
  registry.Register("MatrixInverse", GradientOfMatrixInverse);
  registry.Register("MatrixDeterminant", GradientOfMatrixDeterminant);
  registry.Register("LogMatrixDeterminant", GradientOfLogMatrixDeterminant);
  registry.Register("MatrixSolve", GradientOfMatrixSolve);
  registry.Register("MatrixTriangularSolve", GradientOfMatrixTriangularSolve);
  registry.Register("Cholesky", GradientOfCholesky);
  registry.Register("SelfAdjointEigV2", GradientOfSelfAdjointEigV2);
}

}  // namespace gradients::linalg

}  // namespace gradflow
