"""Calls of Bucketize."""

INF = float("inf")
NAN = float("nan")


def calls(add):
    for array in [f32, f64]:
        add("Bucketize", [array([-1, 0, 4.9, 5, 10, 11, NAN, INF, -INF])], boundaries=[0.0, 5.0, 10.0])
    for array in [i32, i64]:
        add("Bucketize", [array([[-1, 0], [5, 11]])], boundaries=[0.0, 5.0, 5.0, 10.0])
        add("Bucketize", [array([-1, 0])], boundaries=[])
    add("Bucketize", [f32([1])], boundaries=[3.0, 1.0])
