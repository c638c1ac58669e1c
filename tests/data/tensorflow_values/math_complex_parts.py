"""Calls of the ops in ops/math/complex_parts.cc."""


def calls(add):
    values = [3 + 4j, -1 - 0.5j, 0, -1, 2j]
    for array, part in [(c64, tf.float32), (c128, tf.float64)]:
        for op in ["Real", "Imag"]:
            add(op, [array(values)], Tout=part)
        for op in ["ComplexAbs", "Angle"]:
            add(op, [array(values)], Tout=part, ulps=1)
        add("Conj", [array(values)])
    add("Complex", [f32([1, 2]), f32([[3], [4]])])
    add("Complex", [f64([1, 2]), f64(3)], Tout=tf.complex128)
