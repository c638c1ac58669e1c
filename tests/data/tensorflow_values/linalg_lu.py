"""Calls of the ops of linear algebra whose results are unique: those in ops/linalg/lu.cc, cholesky.cc,
triangular_solve.cc, least_squares.cc, matrix_functions.cc and tridiagonal.cc."""


def calls(add):
    a = [[4, 1], [2, 3]]
    p = [[4, 1], [1, 3]]
    tolerances = {f32: 1e-5, f64: 1e-12, c64: 1e-5, c128: 1e-12}
    for array, rtol in tolerances.items():
        near = dict(atol=rtol, rtol=rtol)
        rhs = array([[1, 2, 3], [5, 1, 0]])
        batch = array([a, p])
        for op in ["MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "Cholesky",
                   "MatrixSquareRoot", "Lu"]:
            add(op, [batch], **near)
        add("Lu", [array([[1, 2], [3, 4]])], output_idx_type=tf.int64, **near)
        add("MatrixInverse", [array(a)], adjoint=True, **near)
        for op in ["MatrixSolve", "MatrixTriangularSolve", "BandedTriangularSolve"]:
            for adjoint in [False, True]:
                add(op, [array(a), rhs], adjoint=adjoint, **near)
                if op != "MatrixSolve":
                    add(op, [batch, rhs], adjoint=adjoint, lower=False, **near)
        for fast in [False, True]:
            for regularizer in [0, 0.5]:
                add("MatrixSolveLs", [array([[4, 1], [2, 3], [0, 1]]), array([[1], [2], [4]]),
                                      f64(regularizer)], fast=fast, **near)
        diagonals = array([[1, 2, 9], [4, 5, 6], [9, 1, 2]])
        # TensorFlow solves without pivoting in float, for all types.
        add("TridiagonalSolve", [diagonals, array([[1], [2], [3]])], atol=1e-5, rtol=1e-5)
        add("TridiagonalSolve", [diagonals, array([[1], [2], [3]])], partial_pivoting=False,
            atol=1e-5, rtol=1e-5)
        add("TridiagonalMatMul", [array([[1, 2, 9]]), array([[4, 5, 6]]), array([[9, 1, 2]]),
                                  array([[1], [2], [3]])], **near)
    for array in [c64, c128]:
        add("MatrixLogarithm", [array([[4, 1j], [2, 3]])], atol=1e-5, rtol=1e-5)
        add("MatrixDeterminant", [array([[4, 1j], [2, 3]])], atol=1e-5, rtol=1e-5)
        add("LogMatrixDeterminant", [array([[4, 1j], [2, 3]])], atol=1e-5, rtol=1e-5)
        add("Cholesky", [array([[4, 1j], [-1j, 3]])], atol=1e-5, rtol=1e-5)
    for array in [f32, f64]:
        add("CholeskyGrad", [array(a), array(p)], atol=1e-5, rtol=1e-5)
    singular = f64([[1, 2], [2, 4]])
    one = f64([[1], [1]])
    for op in ["MatrixInverse", "Lu"]:
        add(op, [singular])
    add("MatrixSolve", [singular, one])
    add("MatrixSolveLs", [singular, one, f64(0)])
    add("MatrixSolveLs", [singular, one, f64(0)], fast=False, rtol=1e-12)
    add("BandedTriangularSolve", [f64([[0, 1]]), one])
    add("MatrixTriangularSolve", [f64([[1, 0], [2, 0]]), one])
    for op in ["MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "Cholesky",
               "MatrixSquareRoot", "Lu", "Svd", "SelfAdjointEigV2"]:
        add(op, [np.ones([2], np.float64)])
        if op != "Svd":
            add(op, [np.ones([2, 3], np.float64)])
    for op in ["MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "Cholesky", "Lu"]:
        add(op, [np.zeros([0, 0])])
        add(op, [np.zeros([0, 2, 2])])
    ones = lambda *shape: np.ones(shape)
    for op in ["MatrixSolve", "MatrixTriangularSolve"]:
        add(op, [ones(2, 3), ones(2, 1)])
        add(op, [np.eye(2), ones(3, 1)])
        add(op, [np.eye(2), ones(2)])
        add(op, [np.eye(2), ones(2, 0)])
