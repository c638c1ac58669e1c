"""Calls of the ops in ops/math/power.cc."""

INF = float("inf")
NAN = float("nan")


def calls(add):
    for array in [f32, f64]:
        x = [0, -1, -8, NAN, 1, INF, -INF, 2, 0.3, 10, 0, -0.0, -2, 1.0001]
        y = [0, 0.5, 1 / 3, 0, NAN, 0, 3, 10, -2.5, 0.1, -1, -1, 3, 1000]
        add("Pow", [array(x), array(y)], ulps=2)
        add("Xlogy", [array([0, 0, 2, INF, 3, 2.5]), array([0, NAN, 0, 1, 2, 10])], ulps=2)
        add("Xlog1py", [array([0, 0, 2, -1, 3, 2.5]), array([-1, NAN, 0, 1, 2, 1e-3])], ulps=2)
        add("Atan2", [array([0, -0.0, 1, -1, 3, 2]), array([-1, -1, 0, 0, 4, -5])], ulps=2)
        add("NextAfter", [array([1, 1, NAN, 2, 5]), array([2, INF, 0, 2, -5])])
    for array in [f16, bf16]:
        add("Pow", [array([2, 0.5, 3]), array([3, 2, 0.5])], ulps=1)
        add("Xlogy", [array([0, 2, 3]), array([0, 3, 10])], ulps=2)
        add("Xlog1py", [array([0, 2, 3]), array([0, 3, 10])], ulps=2)
        add("Atan2", [array([0, 2, 3]), array([1, 3, -10])], ulps=1)
    for array in [i8, i16, i32, i64]:
        add("Pow", [array([2, 3, 0, -2, 5, 1, 7]), array([3, 0, 0, 3, 5, 100, 2])])
        add("Pow", [array([1, 2]), array([-1, 1])])
    add("Pow", [i32([]), i32([-1])])
    for array in [c64, c128]:
        add("Pow", [array([2 + 1j, 1j, -3]), array([1j, 2, 0.5 - 1j])], atol=1e-6, rtol=1e-6)
        add("Xlogy", [array([0, 1 + 2j]), array([0, 3 - 1j])], ulps=8)
        add("Xlog1py", [array([0, 1 + 2j]), array([0, 3 - 1j])], ulps=8)
