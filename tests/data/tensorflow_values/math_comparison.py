"""Calls of the ops in ops/math/comparison.cc and ops/math/maximum.cc."""

INF = float("inf")
NAN = float("nan")
ORDER = ["Less", "LessEqual", "Greater", "GreaterEqual"]


def calls(add):
    x = [0, -0.0, 1, 2, NAN, INF, NAN, -1]
    y = [-0.0, 0, 2, 1, 1, INF, NAN, NAN]
    for array in [f16, bf16, f32, f64]:
        for op in ORDER + ["Equal", "NotEqual"]:
            add(op, [array(x), array(y)])
        # Which of two zeros is the maximum depends on the position in TensorFlow.
        for op in ["Maximum", "Minimum"]:
            add(op, [array(x[2:]), array(y[2:])])
    for array in [i8, i16, i32, i64, u8, u16, u32, u64]:
        for op in ORDER + ["Equal", "NotEqual", "Maximum", "Minimum"]:
            add(op, [array([1, 2, 100]), array([2, 2, 1])])
    for op in ["Equal", "NotEqual"]:
        add(op, [c64([1j, 2]), c64([1j, 2j])])
        add(op, [text(["a", "b"]), text(["a", "c"])])
        add(op, [boolean([True, False]), boolean([True, True])])
        add(op, [f32([1, 2]), f32([1, 2, 3])], incompatible_shape_error=False)
        add(op, [f32([1, 2]), f32([1, 2, 3])])
    for array in [f32, f64]:
        add("ApproximateEqual", [array([1, 2, NAN, INF]), array([1.000001, 2.1, NAN, INF])])
        add("ApproximateEqual", [array([1, 2, 5]), array([1, 1, 3])], tolerance=1.0)
    add("ApproximateEqual", [f32([1, 2]), f32([1])])
