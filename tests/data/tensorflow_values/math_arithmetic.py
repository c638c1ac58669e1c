"""Calls of the ops in ops/math/arithmetic.cc."""

INF = float("inf")


def calls(add):
    for array in [f16, bf16, f32, f64, c64, c128]:
        x, y = array([1, -2.5, 3, 0]), array([[0.5], [-4]])
        for op in ["Add", "AddV2", "Sub", "Mul", "RealDiv", "SquaredDifference"]:
            # Signs of complex zeros differ.
            add(op, [x, y], ulps=1 if array in [c64, c128] else 0)
    for array in [i8, i16, i32, i64, u8, u16, u32, u64]:
        for op in ["AddV2", "Sub", "Mul"]:
            add(op, [array([100, 7, 3]), array([100, 2, 5])])
    for array in [i8, i16, i32, i64, u8]:
        add("Add", [array([100, 7, 3]), array([100, 2, 5])])
    for array in [i32, i64]:
        add("SquaredDifference", [array([100, 7, 3]), array([-100, 2, 5])])
    add("Add", [text([["a"], ["b"]]), text(["x", ""])])
    add("SquaredDifference", [c64([1 + 2j]), c64([3 - 1j])])
