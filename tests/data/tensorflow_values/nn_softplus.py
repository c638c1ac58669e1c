"""Calls of the ops in ops/nn/softplus.cc."""


def calls(add):
    values = [-15, -3, -0.5, 0, 0.25, 5.5, 40]
    for op in ["Softplus", "Softsign"]:
        # TensorFlow rounds each operation on 16-bit floats.
        for array, ulps in [(f32, 4), (f64, 4), (f16, 8), (bf16, 8)]:
            add(op, [array(values)], ulps=ulps)
            add(op, [array([-np.inf, np.inf, np.nan])])
            add(op + "Grad", [array([1, 2, 3, 4, 5, 6, 7]), array(values)], ulps=ulps)
            add(op + "Grad", [array([1, 2, 3]), array([-np.inf, np.inf, np.nan])])
        add(op + "Grad", [f32([1, 2]), f32([[1, 2]])])
        add(op + "Grad", [f32([]), f32([])])
