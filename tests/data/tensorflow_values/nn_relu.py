"""Calls of the ops in ops/nn/relu.cc."""

VALUES = [-3, -0.5, 0, 0.25, 5.5, 6, 7]
GRADIENTS = [1, 2, 3, 4, 5, 6, 7]


def calls(add):
    for array in [f32, f64, f16, bf16]:
        special = array([-np.inf, np.inf, np.nan])
        for op in ["Relu", "Relu6", "LeakyRelu"]:
            add(op, [array(VALUES)], ulps=1)
            add(op, [special])
            add(op + "Grad", [array(GRADIENTS), array(VALUES)], ulps=1)
            add(op + "Grad", [array([1, 2, 3]), special], ulps=1)
        for alpha in [0.5, 2.0, -1.0, float(0)]:
            add("LeakyRelu", [array(VALUES)], alpha=alpha)
            add("LeakyReluGrad", [array(GRADIENTS), array(VALUES)], alpha=alpha)
    for array in [i8, i16, i32, i64]:
        for op in ["Relu", "Relu6"]:
            add(op, [array([-3, 0, 1, 5, 6, 7, 100])])
            add(op + "Grad", [array(GRADIENTS), array([-3, 0, 1, 5, 6, 7, 100])])
    for array in [u8, u16, u32, u64]:
        for op in ["Relu", "Relu6"]:
            add(op, [array([0, 1, 6, 7, 250])])
            add(op + "Grad", [array([1, 2, 3, 4, 5]), array([0, 1, 6, 7, 250])])
    for op in ["ReluGrad", "Relu6Grad", "LeakyReluGrad"]:
        add(op, [f32(2), f32(1)])
        add(op, [f32([]), f32([])])
        add(op, [f32([1, 2]), f32([[1, 2]])])
        add(op, [f32(1), f32([1, 2])])
