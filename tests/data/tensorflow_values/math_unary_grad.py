"""Calls of the ops in ops/math/unary_grad.cc."""

OPS = ["InvGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad", "SigmoidGrad", "TanhGrad"]


def calls(add):
    for op in OPS:
        for array in [f32, f64]:
            add(op, [array([0.25, -0.5, 0.9, 0.0]), array([2, 3, -1, 0.1])], ulps=2)
        # TensorFlow rounds each operation, gradflow the result.
        for array in [f16, bf16]:
            add(op, [array([0.25, -0.5, 0.75]), array([2, 3, -1])], ulps=4)
        for array in [c64, c128]:
            add(op, [array([0.25 + 0.5j, -0.5 - 1j]), array([2 + 1j, 3 - 0.5j])], ulps=8)
        add(op, [f32([[0.5, 0.25]]), f32([1, 2])])
        add(op, [f32([1, 2]), f32([1])])
