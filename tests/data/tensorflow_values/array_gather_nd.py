"""Calls of Gather and of the ops in ops/array/gather_nd.cc and scatter_nd.cc."""

REALS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    rows = [[1, 2], [3, 4], [5, 6]]
    for array in REALS + [c64, c128, boolean, text]:
        x = array(np.array(rows).astype(str) if array is text else rows)
        add("Gather", [x, i32([2, 0, 2])])
        add("GatherNd", [x, i64([[2, 0], [0, 1]])])
        add("GatherNd", [x, i16([[1], [2]])])
        add("TensorScatterUpdate", [x, i32([[1], [0], [1]]), x])
        add("ScatterNd", [i32([[1], [3], [1]]), x, i32([4, 2])])
    for array in REALS + [c64, c128]:
        x = array(rows)
        for op in ["Add", "Sub"] + ([] if array in (c64, c128) else ["Min", "Max"]):
            add("TensorScatter" + op, [x + x, i64([[1], [0], [1]]), x])
            add("TensorScatter" + op, [x + x, i32([[2, 1], [0, 0]]), x[0]])
        add("ScatterNdNonAliasingAdd", [x, i32([[1], [0], [1]]), x])
    add("ScatterNdNonAliasingAdd", [boolean([True, False]), i32([[1]]), boolean([True])])
    x = f32(rows)
    for policy in ["", "DEFAULT", "ERROR", "IGNORE"]:
        indices = i32([[0], [5], [-1]])
        add("GatherNd", [x, indices], bad_indices_policy=policy)
        add("ScatterNd", [indices, x, i32([3, 2])], bad_indices_policy=policy)
        add("TensorScatterAdd", [x, indices, x], bad_indices_policy=policy)
    nan = float("nan")
    for op in ["Min", "Max"]:
        add("TensorScatter" + op, [f32([1, nan, nan, 1]), i32([[0], [1], [2], [3]]),
                                   f32([nan, 1, nan, 0])])
    add("Gather", [x, i32([3])])
    add("Gather", [f32(1), i32([0])])
    add("GatherNd", [x, np.zeros([2, 0], np.int32)])
    add("GatherNd", [x, i32(0)])
    add("GatherNd", [x, i32([[0, 0, 0]])])
    add("GatherNd", [np.zeros([0, 2], np.float32), np.zeros([0, 1], np.int32)])
    add("ScatterNd", [i32([[0]]), f32([1, 2]), i32([3])])
    add("ScatterNd", [i32(0), f32([1, 2]), i32([3])])
    add("ScatterNd", [i32([[0]]), f32([1]), i32([-1])])
    add("ScatterNd", [i32([[0]]), f32([1]), i32(3)])
