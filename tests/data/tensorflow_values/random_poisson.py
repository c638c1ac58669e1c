"""Calls of ops/random/poisson.cc."""

TYPES = [f16, f32, f64, i32, i64]
OUTPUTS = [tf.half, tf.float32, tf.float64, tf.int32, tf.int64]


def calls(add):
    rates = [0, 0.5, 3, 9.5, 10, 25.25, 1000, -2]
    for array, dtype in zip(TYPES, OUTPUTS):
        add("RandomPoissonV2", [i32([3]), array(rates)], seed=1, seed2=2, dtype=dtype)
        add("RandomPoissonV2", [i64([2, 2]), array(rates)], seed=3, seed2=4, dtype=tf.int64)
        add("StatelessRandomPoisson", [i32([3, 8]), i64([1, 2]), array(rates)], dtype=dtype)
        add("StatelessRandomPoisson", [i64([3, 8]), i32([5, 6]), f64(rates)], dtype=dtype)
    add("RandomPoissonV2", [i32([50]), f64(1e6)], seed=1, seed2=2)
    add("RandomPoissonV2", [i32([50]), f64(12)], seed=1, seed2=2)
    add("RandomPoissonV2", [i32([2]), f64([np.inf, 1])], seed=1, seed2=2, dtype=tf.float32)
    add("RandomPoissonV2", [i32([2]), f64([np.inf, 1])], seed=1, seed2=2, dtype=tf.int32)
    add("RandomPoissonV2", [i32([0]), f64([1, 2])], seed=1, seed2=2)
    add("RandomPoissonV2", [i32([]), f64([1, 2])], seed=1, seed2=2)
    add("RandomPoissonV2", [i32([-1]), f64([1, 2])], seed=1, seed2=2)
    add("StatelessRandomPoisson", [i32([3]), i64([1, 2]), f64([1, 2])], dtype=tf.int32)
    add("StatelessRandomPoisson", [i32([2]), i64([1, 2, 3]), f64([1, 2])], dtype=tf.int32)
