"""Calls of second names of ops, which graphs of early versions of TensorFlow have.

BatchFFT and similar ops have no kernels for the CPU.
"""


def calls(add):
    for array in [f32, f64]:
        near = {"rtol": 1e-4, "atol": 1e-5} if array is f32 else {"rtol": 1e-11, "atol": 1e-12}
        square = array([[[4, 1], [1, 3]], [[2, -1], [-1, 5]]])
        right = array([[[1, 2, 3], [4, 5, 6]], [[1, 0, 0], [0, 1, 0]]])
        add("BatchCholesky", [square], **near)
        add("BatchCholeskyGrad", [square, square], **near)
        add("BatchMatrixDeterminant", [square], **near)
        add("BatchMatrixInverse", [square], adjoint=True, **near)
        add("BatchMatrixSolve", [square, right], adjoint=False, **near)
        add("BatchMatrixTriangularSolve", [square, right], lower=True, adjoint=False, **near)
        add("BatchMatrixSolveLs", [square, right, f64(0.5)], fast=True, **near)
        add("BatchSelfAdjointEigV2", [square], compute_v=False, unset=(1,), **near)
        add("BatchSvd", [square], compute_uv=False, full_matrices=False, unset=(1, 2), **near)
        add("BatchMatrixDiag", [array([[1, 2], [3, 4]])])
        add("BatchMatrixDiagPart", [square])
        add("BatchMatrixSetDiag", [square, array([[1, 2], [3, 4]])])
        add("BatchMatrixBandPart", [square, i64(0), i64(-1)])
