"""Calls of the ops in ops/nn/elu.cc."""


def calls(add):
    # No small negative numbers: TensorFlow loses their precision, as it subtracts 1 from e^x.
    values = [-20, -3, -0.5, 0, 0.25, 5.5]
    for op in ["Elu", "Selu"]:
        for array, ulps in [(f32, 4), (f64, 4), (f16, 4), (bf16, 4)]:
            add(op, [array(values)], ulps=ulps)
            add(op, [array([-np.inf, np.inf, np.nan])], ulps=2)
            add(op + "Grad", [array([1, 2, 3, 4]), array([-0.75, -0.125, 0, 2])], ulps=2)
        add(op + "Grad", [f32([1, 2]), f32([[1, 2]])])
        add(op + "Grad", [f32([]), f32([])])
