"""Calls of the ops in ops/math/bincount.cc."""


def calls(add):
    for array in [i32, i64, f32, f64]:
        for weights in [[], [1, 2, 3, 4]]:
            add("Bincount", [i32([1, 1, 3, 9]), i32(4), array(weights)])
            for binary in [False, True]:
                add("DenseBincount", [i64([1, 1, 3, 9]), i64(4), array(weights)],
                    binary_output=binary)
                pairs = array(weights) if not weights else array(weights).reshape([2, 2])
                add("DenseBincount", [i32([[1, 1], [3, 9]]), i32(4), pairs], binary_output=binary)
                add("RaggedBincount", [i64([0, 1, 1, 4]), i32([1, 1, 3, 9]), i32(4), array(weights)],
                    binary_output=binary)
                add("SparseBincount",
                    [i64([[0, 1], [1, 0], [1, 2], [1, 3]]), i32([1, 1, 3, 9]), i64([2, 4]), i32(4),
                     array(weights)], binary_output=binary)
                add("SparseBincount",
                    [i64([[0], [1], [3], [4]]), i32([1, 1, 3, 9]), i64([5]), i32(4),
                     array(weights)], binary_output=binary)
    none = f32([])
    add("Bincount", [i32([1, -1]), i32(4), none])
    add("Bincount", [i32([1, 3]), i32(-1), none])
    add("Bincount", [i32([1, 3]), i32(0), none])
    add("Bincount", [i32([1, 3]), i32(4), f32([1])])
    add("Bincount", [i32([]), i32(2), none])
    add("DenseBincount", [i32([[1, -1]]), i32(4), none])
    add("DenseBincount", [i32([[[1]]]), i32(4), none])
    add("DenseBincount", [i32([1]), i32(-4), none])
    for splits in [[1, 2], [0, 1], []]:
        add("RaggedBincount", [i64(splits), i32([1, 1]), i32(4), none])
    add("SparseBincount", [i64([[0, 1], [2, 3]]), i32([1, 0]), i64([2, 4]), i32(4), none])
    for array in [i32, i64, f32, f64]:
        for dtype in [tf.int32, tf.int64]:
            add("HistogramFixedWidth",
                [array([-1, 0, 1, 2, 5, 15]), array([0, 5]), i32(5)], dtype=dtype)
            add("HistogramFixedWidth", [array(range(10)), array([0, 9]), i32(4)], dtype=dtype)
    inf = float("inf")
    add("HistogramFixedWidth", [f32([inf, -inf, 1]), f32([0, 5]), i32(5)])
    add("HistogramFixedWidth", [f32([1]), f32([0, inf]), i32(3)])
    add("HistogramFixedWidth", [f32([float("nan"), 1]), f32([0, 5]), i32(5)])
    add("HistogramFixedWidth", [f32([1]), f32([float("nan"), 5]), i32(5)])
    add("HistogramFixedWidth", [f32([1]), f32([5, 5]), i32(5)])
    add("HistogramFixedWidth", [f32([1]), f32([0, 5]), i32(0)])
    add("HistogramFixedWidth", [f32([1]), f32([0, 5, 6]), i32(2)])
    add("HistogramFixedWidth", [f32([]), f32([0, 5]), i32(2)])
    # Negative values, weights of other shapes.
    pairs = i64([[0, 0], [0, 1], [1, 0]])
    for weights in [[], [1, 2, 3], [[1], [2], [3]]]:
        for binary in [False, True]:
            add("SparseBincount", [pairs, i32([1, -1, 2]), i64([2, 2]), i32(3), f32(weights)],
                binary_output=binary)
            add("SparseBincount", [i64([[0], [1], [2]]), i32([1, 1, 2]), i64([3]), i32(3),
                                   f32(weights)], binary_output=binary)
            add("RaggedBincount", [i64([0, 2, 3]), i32([1, 1, 2]), i32(3), f32(weights)],
                binary_output=binary)
    add("SparseBincount", [i64([[0], [1]]), i32([1, -1]), i64([3]), i32(3), f32([])])
    add("RaggedBincount", [i64([0, 2]), i32([1, -1]), i32(3), f32([])])
    add("Bincount", [i32([[1, 1], [2, 0]]), i32(3), f32([1, 2, 3, 4])])
    add("Bincount", [i32([1, 1, 2, 0]), i32(3), f32([[1, 2], [3, 4]])])
    add("Bincount", [i32([1, 1, 2, 0]), i32(3), f32([1, 2, 3])])
    add("DenseBincount", [i32([[1, 1], [2, 0]]), i32(3), f32([1, 2, 3, 4])])
