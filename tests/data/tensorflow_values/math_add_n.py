"""Calls of the ops in ops/math/add_n.cc and logical.cc, of array_ops that check numbers, and of
ops/math/tile_grad.cc."""


def calls(add):
    for array in [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]:
        x = array([[1, 2], [3, 100]])
        add("AddN", [[x]])
        add("AddN", [[x, x]])
        add("AddN", [[x, x[::-1], x]])
    add("AddN", [[f32([1]), f32([1, 2])]])
    add("AddN", [[f32(1), f32(2)]])
    pairs = boolean([[0, 0], [0, 1], [1, 0], [1, 1]])
    for op in ["LogicalAnd", "LogicalOr"]:
        add(op, [pairs[:, 0], pairs[:, 1]])
        add(op, [pairs, boolean([1, 0])])
        add(op, [pairs, boolean(0)])
        add(op, [pairs, boolean([1, 0, 1])])
    add("LogicalNot", [pairs])
    for array in [f16, bf16, f32, f64]:
        for op in ["CheckNumerics", "CheckNumericsV2"]:
            add(op, [array([1, -2])], message="x")
            add(op, [array([1, np.nan])], message="x")
            add(op, [array([-np.inf, 1])], message="x")
