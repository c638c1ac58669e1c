"""Calls of the ops in ops/linalg/qr.cc and eig.cc, and of types that lu.cc has besides.

Vectors are determined up to a factor: products that do not depend on it are in the C++ tests."""


def calls(add):
    tolerances = {f16: 5e-3, f32: 1e-5, f64: 1e-12, c64: 1e-5, c128: 1e-12}
    for array, rtol in tolerances.items():
        near = dict(atol=rtol, rtol=rtol)
        for shape in [(3, 3), (4, 2), (2, 4), (2, 3, 2)]:
            x = random(tf.as_dtype(array(0).dtype), shape)
            for full in [False, True]:
                add("Qr", [x], full_matrices=full, **near)
        add("Qr", [array(np.zeros([0, 3]))], full_matrices=True)
        add("Qr", [array(np.zeros([2, 0]))], full_matrices=True)
    for adjoint in [False, True]:
        add("MatrixInverse", [f16([[4, 1], [2, 3]])], adjoint=adjoint, atol=2e-3, rtol=2e-3)
        add("MatrixInverse", [f16([[1, 2], [2, 4]])], adjoint=adjoint)
    add("Qr", [f32([1, 2])])
    for array, rtol in [(f32, 1e-5), (f64, 1e-12)]:
        near = dict(atol=rtol, rtol=rtol)
        # A triangular matrix: the eigenvalues are on the diagonal, in this order.
        x = array([[1, 2, 3], [0, 4, 5], [0, 0, 6]])
        out = tf.complex64 if array is f32 else tf.complex128
        add("Eig", [x], compute_v=False, Tout=out, unset=[1], **near)
        add("Svd", [x], compute_uv=False, unset=[1, 2], **near)
        add("SelfAdjointEigV2", [x + x.T], compute_v=False, unset=[1], **near)
        add("MatrixExponential", [x / 8], **near)
        add("SelfAdjointEig", [array([[2, 0], [0, 3]])])
    for array, rtol in [(c64, 1e-5), (c128, 1e-12)]:
        near = dict(atol=rtol, rtol=rtol)
        x = array([[1j, 2, 3], [0, 4, 5j], [0, 0, 6]])
        add("Eig", [x], compute_v=False, Tout=tf.as_dtype(x.dtype), unset=[1], **near)
        add("MatrixExponential", [x / 8], **near)
    add("Eig", [f64([[1, 2, 3], [4, 5, 6]])], compute_v=False, Tout=tf.complex128)
    add("MatrixExponential", [np.zeros([2, 2])])
