"""Calls of ops/random/random_fill.cc and random_key.cc."""

KEY = [u64([5]), u64([7, 2**64 - 1]), i32(1)]
# The low half of the counter overflows within the tensor.
LATE_KEY = [u64([2**63 + 1]), u64([2**64 - 2, 9]), i32(3)]
FLOATS = [tf.half, tf.bfloat16, tf.float32, tf.float64]
INTS = [tf.int32, tf.int64, tf.uint32, tf.uint64]


def calls(add):
    for seed in [i64([1, 2]), i32([-3, 2**31 - 1]), i64([2**40 + 1, -(2**50)])]:
        add("StatelessRandomGetKeyCounter", [seed])
        add("StatelessRandomGetKeyCounterAlg", [seed])
    add("StatelessRandomGetKeyCounter", [i32([1, 2, 3])])
    add("StatelessRandomGetAlg", [])
    for dtype in FLOATS:
        for shape in [i32([]), i32([5]), i64([3, 7]), i32([4, 0])]:
            for op, ulps in [("Uniform", 0), ("StandardNormal", 2)]:
                add("Random" + op, [shape], dtype=dtype, seed=1, seed2=2, ulps=ulps)
            add("TruncatedNormal", [shape], dtype=dtype, seed=-1, seed2=2**40, ulps=2)
            seed = [i64([6, -8])]
            add("StatelessRandomUniform", [shape] + seed, dtype=dtype)
            add("StatelessRandomNormal", [shape] + seed, dtype=dtype, ulps=2)
            add("StatelessTruncatedNormal", [shape] + seed, dtype=dtype, ulps=2)
        for key in [KEY, LATE_KEY]:
            add("StatelessRandomUniformV2", [i32([2, 7])] + key, dtype=dtype)
            add("StatelessRandomNormalV2", [i32([2, 7])] + key, dtype=dtype, ulps=2)
            add("StatelessTruncatedNormalV2", [i32([2, 7])] + key, dtype=dtype, ulps=2)
    # More than one block.
    add("StatelessRandomUniform", [i32([1500]), i32([4, 5])], dtype=tf.bfloat16)
    for array, limits in [(i32, (-(2**31), 2**31 - 1)), (i64, (-(2**63), 2**63 - 1))]:
        for low, high in [(0, 10), (-7, 5), limits]:
            add("RandomUniformInt", [i32([9]), array(low), array(high)], seed=3, seed2=4)
            add("StatelessRandomUniformInt", [i32([9]), i32([1, 2]), array(low), array(high)])
    add("RandomUniformInt", [i32([2]), i32(5), i32(5)], seed=3, seed2=4)
    add("RandomUniformInt", [i32([0]), i32(5), i32(5)], seed=3, seed2=4)
    add("StatelessRandomUniformInt", [i32([2]), i32([1, 2]), i32([5]), i32(7)])
    for array, low in [(i32, -3), (i64, -3)]:
        add("StatelessRandomUniformIntV2", [i32([9])] + LATE_KEY + [array(low), array(100)])
    for dtype in INTS:
        add("StatelessRandomUniformFullInt", [i64([3, 3]), i64([1, 2])], dtype=dtype)
        add("StatelessRandomUniformFullIntV2", [i64([3, 3])] + LATE_KEY, dtype=dtype)
    for alg in [0, 2]:
        add("StatelessRandomUniformV2", [i32([2]), u64([1]), u64([1, 2]), i32(alg)], dtype=tf.half)
    add("StatelessRandomUniformV2", [i32([2]), u64([1, 2]), u64([1, 2]), i32(1)], dtype=tf.half)
    add("RandomUniform", [i32([-1])], dtype=tf.half, seed=1)
    add("RandomUniform", [i32(1)], dtype=tf.half, seed=1)
