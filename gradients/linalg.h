// Helpers for the gradients of matrix ops. Internal.
#ifndef GRADFLOW_GRADIENTS_LINALG_H_
#define GRADFLOW_GRADIENTS_LINALG_H_

#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"

namespace gradflow::gradients {

// The product of batches of matrices. Each factor may be replaced by its adjoint.
Output MatrixProduct(const Scope& scope, const Output& a, bool adjoint_a, const Output& b,
                     bool adjoint_b);
// The adjoints (conjugate transposes) of matrices.
Output AdjointOf(const Scope& scope, const Output& a);
// The upper or lower triangle of matrices, with the diagonal.
Output Triangle(const Scope& scope, bool lower, const Output& a);
// Sums the gradient of matrices `x` over the batch dimensions along which x was broadcast.
Output SumBatches(const Scope& scope, const Output& gradient, const Output& x, const Output& other);
// The gradient of A, where A X = B, or A^H X = B if `adjoint`. `db` is the gradient of B.
Output SolveGradient(const Scope& scope, bool adjoint, const Output& x, const Output& db);
// The gradient of A = L L^H, where `dl` is the gradient of L.
Output CholeskyGradient(const Scope& scope, const Output& l, const Output& dl);

}  // namespace gradflow::gradients

#endif  // GRADFLOW_GRADIENTS_LINALG_H_
