"""Calls of the ops in ops/array/one_hot.cc, where.cc, unique.cc and search_sorted.cc."""

REALS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    indices = i32([[0, 2], [-1, 5]])
    for array in REALS + [c64, c128, boolean, text]:
        on, off = array(["1", "0"] if array is text else [1, 0])
        add("OneHot", [indices, i32(3), on, off])
        add("OneHot", [indices, i32(3), on, off], axis=1)
    for index in [i8, i32, i64, u8]:
        add("OneHot", [index([1, 0]), i32(2), f32(5), f32(1)], axis=0)
    add("OneHot", [indices, i32(-1), f32(1), f32(0)])
    add("OneHot", [indices, i32(0), f32(1), f32(0)])
    add("OneHot", [indices, i32(2), f32(1), f32(0)], axis=3)
    add("OneHot", [indices, i32(2), f32(1), f32(0)], axis=-2)
    nan = float("nan")
    for array in REALS[1:] + [c64, c128, boolean]:
        add("Where", [array([[1, 0], [0, 3]])])
    add("Where", [f32([nan, 0, -0.0, float("inf")])])
    add("Where", [boolean(True)])
    add("Where", [np.zeros([0, 3], np.bool_)])
    for array in REALS + [boolean, text]:
        x = array(["1", "0", "1", "2"] if array is text else [1, 0, 1, 2])
        add("Unique", [x])
        add("UniqueWithCounts", [x], out_idx=tf.int64)
        add("UniqueV2", [np.stack([x, x[::-1]]), i64([1])])
        add("UniqueWithCountsV2", [np.stack([x, x]), i32([0])])
        if array is not boolean:
            add("ListDiff", [x, x[1:2]])
    for array in [f32, f64]:
        add("Unique", [array([nan, 0, -0.0, nan])])
        add("ListDiff", [array([nan, 1, 0]), array([nan, -0.0])])
    add("UniqueV2", [f32([1, 2, 1]), i64([])])
    for axis in [[2], [0, 1], []]:
        add("UniqueV2", [f32([[1, 2]]), i64(axis)])
    add("Unique", [f32([[1, 2]])])
    add("ListDiff", [f32([[1]]), f32([1])])
    for array in REALS:
        rows = array([[0, 3, 9, 9, 10], [1, 2, 3, 4, 5]])
        values = array([[2, 4, 9], [0, 2, 6]])
        add("UpperBound", [rows, values])
        add("LowerBound", [rows, values], out_type=tf.int64)
    add("LowerBound", [f32([[1, 2]]), f32([[1], [2]])])
