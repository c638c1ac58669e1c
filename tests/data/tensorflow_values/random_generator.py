"""Calls of the ops of ops/random whose stream is the state of a generator."""


def calls(add):
    philox = i64(1)
    for state in [[5, 0, 7], [-1, 0, 7]]:
        add("RngReadAndSkip", [variable(i64(state)), i32(1), u64(3)])
        add("RngSkip", [variable(i64(state)), i64(3), i64(3)])
    add("RngReadAndSkip", [variable(i64([-1, -1, 7])), i32(3), u64(2**63)])
    add("RngReadAndSkip", [variable(i64([-1, -1, 7])), i32(3), u64(2**56 + 1)])
    add("RngSkip", [variable(i64([1, 2, 3])), philox, i64(-3)])
    for algorithm in [0, 2]:
        add("RngReadAndSkip", [variable(i64([5, 0, 7])), i32(algorithm), u64(3)])
        add("RngSkip", [variable(i64([5, 0, 7])), i64(algorithm), i64(3)])
    for state in [i64([1, 2]), i64([[1, 2, 3]])]:
        add("RngReadAndSkip", [variable(state), i32(1), u64(3)])
        add("RngSkip", [variable(state), philox, i64(3)])
    for dtype in [tf.float16, tf.bfloat16, tf.float32, tf.float64]:
        near = {"rtol": 1e-12} if dtype == tf.float64 else {"ulps": 2, "rtol": None}
        near = {k: v for k, v in near.items() if v is not None}
        for shape in [i64([3]), i32([2, 5]), i64([]), i64([0])]:
            state = variable(i64([5, 1, 7]))
            add("StatefulUniform", [state, philox, shape], dtype=dtype)
            add("StatefulStandardNormalV2", [state, philox, shape], dtype=dtype, **near)
            add("StatefulTruncatedNormal", [state, philox, shape], dtype=dtype, **near)
    for dtype in [tf.int32, tf.int64, tf.uint32, tf.uint64]:
        add("StatefulUniformFullInt", [variable(i64([5, 1, 7])), i64(3), i64([7])], dtype=dtype)
    for integer in [i32, i64]:
        bounds = [integer(-3), integer(1000)]
        add("StatefulUniformInt", [variable(i64([5, 1, 7])), philox, i64([3, 3]), *bounds])
        bounds = [integer(3), integer(3)]
        add("StatefulUniformInt", [variable(i64([5, 1, 7])), philox, i64([2]), *bounds])
        add("StatefulUniformInt", [variable(i64([5, 1, 7])), philox, i64([0]), *bounds])
    add("StatefulUniform", [variable(i64([5, 0])), philox, i64([3])], dtype=tf.float32)
    add("StatefulUniform", [variable(i64([5, 0, 7])), i64(2), i64([3])], dtype=tf.float32)
