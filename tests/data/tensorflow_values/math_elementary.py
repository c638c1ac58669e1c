"""Calls of the ops in ops/math/elementary.cc."""

INF = float("inf")
NAN = float("nan")

# The op, arguments where it is finite, and others.
REAL = {
    "Exp": ([-10, -1, 0, 0.1, 1, 5.5, 80], [INF, -INF, NAN, 800]),
    "Expm1": ([-10, -1e-3, 0.1, 1, 5.5, 80], [INF, -INF, NAN]),
    "Log": ([1e-6, 0.5, 1, 1.5, 100, 3e4], [0, INF, -1, NAN]),
    "Log1p": ([-0.9, -1e-3, 0.1, 0.5, 100], [-1, INF, -2, NAN]),
    "Sigmoid": ([-20, -3, -0.5, 0, 0.5, 3], [INF, -INF, NAN]),
    "Sin": ([-3, -0.1, 0.5, 2, 5, 30], [INF, NAN]),
    "Cos": ([-3, -0.1, 0.5, 2, 5, 30], [INF, NAN]),
    "Tan": ([-3, -0.1, 0.5, 2, 5, 30], [INF, NAN]),
    "Asin": ([-1, -0.5, 0.1, 0.9, 1], [2, NAN]),
    "Acos": ([-1, -0.5, 0.1, 0.9], [2, NAN]),
    "Atan": ([-100, -0.5, 0.1, 0.9, 3], [INF, -INF, NAN]),
    "Sinh": ([-5, -0.5, 0.1, 0.9, 3, 11], [INF, -INF, NAN]),
    "Cosh": ([-5, -0.5, 0.1, 0.9, 3, 11], [INF, -INF, NAN]),
    "Tanh": ([-5, -0.5, 0.1, 0.9, 3], [INF, -INF, NAN]),
    "Asinh": ([-5, -0.5, 0.1, 0.9, 3, 1000], [INF, -INF, NAN]),
    "Acosh": ([1, 1.5, 3, 100], [0.5, INF, NAN]),
    "Atanh": ([-0.9, -0.5, 0.1, 0.9], [2, NAN]),
    "Erf": ([-3, -0.5, 0.1, 0.9, 2], [INF, -INF, NAN]),
    "Erfc": ([-3, -0.5, 0.1, 0.9, 2, 5], [-INF, NAN]),
    "Lgamma": ([0.1, 0.5, 2.5, 10, 100, -0.5, -3.5], [0, -1, INF, NAN]),
}


def calls(add):
    for op, (finite, others) in REAL.items():
        # Eigen's functions are off by a few units in the last place.
        add(op, [f32(finite)], ulps=6)
        add(op, [f64(finite)], ulps=6)
        for array in [f32, f64]:
            # TensorFlow's Erf is NaN for infinite doubles.
            if op != "Erf" or array == f32:
                add(op, [array(others)])
        halves = [x for x in finite if abs(x) < 10]
        add(op, [f16(halves)], ulps=2)
        if op != "Lgamma":
            add(op, [bf16(halves)], ulps=2)
        if op not in ["Erf", "Erfc", "Lgamma"]:
            for array in [c64, c128]:
                add(op, [array([0.5 + 0.25j, -1 - 0.5j, 2 + 1.5j])], ulps=64)
