"""Calls of the ops in ops/math/division.cc."""

INF = float("inf")
NAN = float("nan")


def calls(add):
    x = [7, -7, 7, -7, 0, 1, -1, INF, NAN, 5.5, -0.0, 1e10, -1]
    y = [3, 3, -3, -3, 0, 0, 0, 2, 1, -INF, 3, 7, 3]
    for array in [f32, f64]:
        for op in ["Div", "FloorDiv", "TruncateDiv", "Mod", "FloorMod", "TruncateMod"]:
            add(op, [array(x), array(y)])
        for op in ["DivNoNan", "MulNoNan", "Xdivy"]:
            add(op, [array(x + [0, 0, INF, NAN, 3]), array(y + [NAN, -1, 0, 0, -1])])
    for array in [f16, bf16]:
        for op in ["Div", "FloorDiv", "FloorMod", "DivNoNan", "MulNoNan", "Xdivy"]:
            add(op, [array([7, -7, 7, -7, 0]), array([2, 2, -2, -2, 4])])
    for array in [i8, i16, i32, i64]:
        for op in ["Div", "FloorDiv", "TruncateDiv", "FloorMod"]:
            add(op, [array([7, -7, 7, -7, 0, 100]), array([3, 3, -3, -3, 5, -7])])
    for array in [i32, i64]:
        for op in ["Mod", "TruncateMod"]:
            add(op, [array([7, -7, 7, -7, 0, 100]), array([3, 3, -3, -3, 5, -7])])
    for array in [u8, u16, u32, u64]:
        for op in ["Div", "FloorDiv", "TruncateDiv", "FloorMod"]:
            add(op, [array([7, 200, 0]), array([3, 7, 1])])
    for op in ["Div", "FloorDiv", "FloorMod", "Mod"]:
        add(op, [i32([7, -7]), i32([3, 0])])
        add(op, [i32([]), i32([0])])
    for array in [c64, c128]:
        for op in ["Div", "DivNoNan", "MulNoNan", "Xdivy"]:
            add(op, [array([3 + 4j, 0, 1 - 1j]), array([1 - 2j, 2, 0.5j])], ulps=4)
    # The quotient is rounded to the type first.
    for array in [f16, bf16]:
        for op in ["FloorDiv", "TruncateDiv", "RealDiv"]:
            add(op, [array([386, -386, 767, 2047, 1000, -1000]), array([129, 129, 256, 1024, 334, 333])])
            add(op, [random(tf.as_dtype(array(0).dtype), [40], -500, 500, seed=1),
                     random(tf.as_dtype(array(0).dtype), [40], -50, 50, seed=2)])
