"""Calls of the ops in ops/math/rounding.cc."""

INF = float("inf")
NAN = float("nan")


def calls(add):
    special = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -0.2, 0.7, -3.3, INF, -INF, NAN]
    for array in [f16, bf16, f32, f64]:
        for op in ["Floor", "Ceil", "Round", "IsNan", "IsInf", "IsFinite"]:
            add(op, [array(special)])
    for array in [f32, f64]:
        add("Rint", [array(special)])
    add("Floor", [f64([2**52 + 1.0, -(2**53) - 2.0, 4503599627370495.5])])
