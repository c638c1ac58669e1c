"""Calls of the ops in ops/nn/top_k.cc and in_top_k.cc."""


def calls(add):
    values = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 3, 5, 8, 9, 7, 9, 3]]
    for array in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]:
        for k in [0, 1, 3, 8]:
            add("TopKV2", [array(values), i32(k)])
        for n in [0, 4, 7]:
            add("NthElement", [array(values), i32(n)], reverse=False)
            add("NthElement", [array(values), i32(n)], reverse=True)
    for k, index_type in [(i16(2), tf.int16), (i64(2), tf.int64), (i32(2), tf.int64)]:
        add("TopKV2", [f32(values), k], index_type=index_type)
    for k in [i32(9), i32(-1), i32([1])]:
        add("TopKV2", [f32(values), k])
        add("NthElement", [f32(values), i32(k)])
    add("NthElement", [f32(values), i32(8)])
    add("TopKV2", [f32(1), i32(1)])
    add("NthElement", [f32(1), i32(0)])
    add("TopKV2", [np.zeros((0, 3), np.float32), i32(2)])
    add("TopKV2", [np.zeros((2, 0), np.float32), i32(0)])
    add("NthElement", [np.zeros((0, 3), np.float32), i32(1)])
    add("NthElement", [np.zeros((2, 0), np.float32), i32(0)])

    inf = np.inf
    nan = np.nan
    rows = f32([[1, 3, 2, 3], [5, 5, 5, 5], [nan, 1, 2, 3], [1, inf, 2, 3], [1, 2, 3, -inf]])
    for k in [-1, 0, 1, 2, 3, 5]:
        for targets in [[3, 0, 3, 3, 2], [2, 1, 0, 1, 3], [4, -1, 4, 0, 0]]:
            add("InTopK", [rows, i32(targets)], k=k)
            add("InTopKV2", [rows, i32(targets), i32(k)])
            add("InTopKV2", [rows, i64(targets), i64(k)])
    add("InTopK", [np.zeros((0, 3), np.float32), i32([])], k=1)
    add("InTopK", [np.zeros((2, 0), np.float32), i32([0, 0])], k=1)
    for predictions, targets in [([1, 2], [0]), ([[1, 2]], 0), ([[1, 2]], [0, 1])]:
        add("InTopK", [f32(predictions), i32(targets)], k=1)
    add("InTopKV2", [f32([[1, 2]]), i32([0]), i32([1])])
