"""Calls of the ops in ops/math/special.cc."""

INF = float("inf")
NAN = float("nan")

# The op, arguments where it is finite, and others.
UNARY = {
    "Digamma": ([-2.5, -0.5, 0.1, 1, 2.5, 10, 1e5], [0, -1, INF, NAN]),
    "Ndtri": ([1e-10, 0.01, 0.3, 0.5, 0.9, 0.999], [0, 1, -0.1, 1.5, NAN]),
    "Erfinv": ([-0.99, -0.5, 0.1, 0.7, 0.999], [-1, 1, -1.5, 2, NAN]),
    "Dawsn": ([-30, -2, 0, 0.01, 0.3, 1, 5, 1e4], [INF, -INF, NAN]),
    "Expint": ([0.01, 0.2, 0.5, 1, 5, 50], [0, -1, NAN]),
    "FresnelCos": ([-20, -2, 0, 0.1, 1, 1.7, 5, 100], [INF, -INF, NAN]),
    "FresnelSin": ([-20, -2, 0, 0.1, 1, 1.7, 5, 100], [INF, -INF, NAN]),
    "Spence": ([0, 0.1, 0.4, 0.9, 1.5, 3, 100], [-1, NAN]),
    "BesselI0": ([-5, -0.5, 0, 0.1, 3, 20], [NAN]),
    "BesselI1": ([-5, -0.5, 0, 0.1, 3, 20], [NAN]),
    "BesselI0e": ([-5, -0.5, 0, 0.1, 3, 20, 1000], [INF, NAN]),
    "BesselI1e": ([-5, -0.5, 0, 0.1, 3, 20, 1000], [INF, NAN]),
    "BesselK0": ([0.1, 1, 3, 20], [0, -1, INF, NAN]),
    "BesselK1": ([0.1, 1, 3, 20], [0, -1, INF, NAN]),
    "BesselK0e": ([0.1, 1, 3, 20, 1000], [0, -1, INF, NAN]),
    "BesselK1e": ([0.1, 1, 3, 20, 1000], [0, -1, INF, NAN]),
    "BesselJ0": ([-5, -0.5, 0, 0.1, 3, 20, 100], [INF, NAN]),
    "BesselJ1": ([-5, -0.5, 0, 0.1, 3, 20, 100], [INF, NAN]),
    "BesselY0": ([0.1, 1, 3, 20, 100], [0, -1, INF, NAN]),
    # For 0 it is NaN in float and minus infinity in double.
    "BesselY1": ([0.1, 1, 3, 20, 100], [-1, INF, NAN]),
}


def calls(add):
    for op, (finite, others) in UNARY.items():
        add(op, [f32(finite)], atol=1e-6, rtol=2e-5)
        add(op, [f64(finite)], atol=1e-13, rtol=1e-12)
        for array in [f32, f64]:
            add(op, [array(others)], ulps=1)
    for array, atol, rtol in [(f32, 1e-6, 1e-4), (f64, 1e-12, 1e-9)]:
        a = array([0.1, 0.5, 2, 10, 100, 3, 1])
        x = array([0.2, 3, 1, 12, 90, 3, 0])
        for op in ["Igamma", "Igammac", "IgammaGradA"]:
            add(op, [a, x], atol=atol, rtol=rtol)
        add("RandomGammaGrad", [a, x], atol=atol, rtol=rtol)
        add("Zeta", [array([1.5, 2, 2, 3, 10, 4, 2]), array([1, 1, 0.5, 10, 2, 1e5, -1.5])], atol=atol, rtol=rtol)
        add("Polygamma", [array([0, 1, 2, 3, 5]), array([2, 2, 0.5, 10, 3])], atol=atol, rtol=rtol)
        b = array([0.5, 2, 3, 0.1, 50, 200])
        add("Betainc", [array([1, 2, 0.5, 0.1, 60, 100]), b, array([0.5, 0.25, 0.1, 0.9, 0.5, 0.4])], atol=atol, rtol=rtol)
        add("Betainc", [array(1.5), array(2), array([0.25, 0.5])], atol=atol, rtol=rtol)
    special = f64([0, 1, 1, -1, 1, INF, NAN, 1])
    for op in ["Igamma", "Igammac"]:
        add(op, [special, f64([1, 0, INF, 1, -1, 1, 1, NAN])])
    add("Zeta", [f64([1, 2, 2, 0.5, NAN, 2, 2.5, 2]), f64([1, 0, -1, 1, 1, NAN, -1.5, INF])])
    add("Polygamma", [f64([-1, 0.5, 1, 1, NAN]), f64([1, 1, 0, -1, 1])])
    add("Betainc", [f64([0, 1, 1, 2, 2, -1, NAN]), f64([1, 0, 2, 2, 2, 1, 1]), f64([0.5, 0.5, 0, 1, -1, 0.5, 0.5])])
    add("Betainc", [f32([1, 2]), f32([1]), f32(0.5)])
