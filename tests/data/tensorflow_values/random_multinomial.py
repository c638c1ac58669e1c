"""Calls of Multinomial and StatelessMultinomial: ops/random/multinomial.cc."""


def calls(add):
    for array in [f16, bf16, f32, f64]:
        for dtype in [tf.int32, tf.int64]:
            logits = array([[1, 2, 0.5], [-1, 3, 3], [0, -np.inf, 0]])
            add("Multinomial", [logits, i32(5)], seed=1, seed2=2, output_dtype=dtype)
            add("StatelessMultinomial", [logits, i32(5), i64([1, 2])], output_dtype=dtype)
    nan = f32([[np.nan, np.nan], [1, np.nan], [-np.inf, -np.inf], [np.inf, 1], [3e38, -3e38]])
    add("Multinomial", [nan, i32(3)], seed=1, seed2=2)
    add("StatelessMultinomial", [nan, i32(4), i32([7, 8])])
    add("Multinomial", [np.zeros([0, 2], np.float32), i32(2)], seed=1, seed2=2)
    add("Multinomial", [np.zeros([2, 0], np.float32), i32(2)], seed=1, seed2=2)
    add("Multinomial", [f32([[1, 2]]), i32(0)], seed=1, seed2=2)
    add("Multinomial", [f32([[1, 2]]), i32(-1)], seed=1, seed2=2)
    add("Multinomial", [f32([1, 2]), i32(1)], seed=1, seed2=2)
    add("Multinomial", [f32([[1, 2]]), i32([1])], seed=1, seed2=2)
