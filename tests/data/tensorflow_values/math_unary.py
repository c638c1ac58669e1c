"""Calls of the ops in ops/math/unary.cc."""

FLOATS = [f16, bf16, f32, f64]


def calls(add):
    special = [0.0, -0.0, 1.0, -1.5, 2.5, 0.5, -0.5, float("inf"), float("-inf"), float("nan")]
    for array in FLOATS:
        for op in ["Abs", "Neg", "Square", "Floor"]:
            add(op, [array(special)])
        add("Sqrt", [array(special)])
        add("Rsqrt", [array([0.25, 1, 2, 4, float("inf")])], ulps=1)
    for array in [i8, i16, i32, i64]:
        for op in ["Abs", "Neg", "Square"]:
            add(op, [array([0, 1, -3, 11])])
    for array in [c64, c128]:
        for op in ["Neg", "Square", "Sqrt", "Rsqrt"]:
            add(op, [array([3 + 4j, -1 + 0.5j, 2 - 1j])], ulps=2)
