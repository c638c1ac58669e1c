"""Calls of ops/random/binomial.cc."""

OUTPUTS = [tf.half, tf.float32, tf.float64, tf.int32, tf.int64]


def calls(add):
    seed = i64([1, 2])
    counts = [10, 50, 1000, 20, 0, -3, 7]
    probs = [0.25, 0.5, 0.75, 0.9, 0.5, 0.5, 1.5]
    for array in [f16, f32, f64]:
        for dtype in OUTPUTS:
            add("StatelessRandomBinomial", [i32([3, 7]), seed, array(counts), array(probs)], dtype=dtype)
    # Broadcast parameters.
    add("StatelessRandomBinomial", [i32([4, 2, 3]), seed, f64([[5], [500]]), f64([0.1, 0.4, 0.95])])
    add("StatelessRandomBinomial", [i32([20]), seed, f64(100), f64(0.3)])
    add("StatelessRandomBinomial", [i32([2]), seed, f64(100), f64(np.nan)], dtype=tf.float64)
    add("StatelessRandomBinomial", [i32([0]), seed, f64(100), f64(0.3)])
    add("StatelessRandomBinomial", [i32([3]), seed, f64([1, 2]), f64(0.3)])
    add("StatelessRandomBinomial", [i32([3]), seed, f64([1, 2]), f64([0.3, 0.1, 0.5])])
    add("StatelessRandomBinomial", [i32([2]), i32([1]), f64(100), f64(0.3)])
