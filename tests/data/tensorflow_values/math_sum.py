"""Calls of the reductions along axes: ops/math/sum.cc, max.cc, prod.cc and arg_max.cc."""

REALS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    values = [[1, 2, 3], [3, 1, 2]]
    for array in REALS:
        for op in ["Sum", "Mean", "Max", "Min", "Prod"]:
            add(op, [array(values), i32(0)])
            add(op, [array(values), i64([1, -2])], keep_dims=True)
        for op in ["ArgMax", "ArgMin"]:
            add(op, [array(values), i32(0)])
            add(op, [array(values), i64(-1)], output_type=tf.int32)
    for array in [f16, bf16, f32, f64]:
        add("EuclideanNorm", [array([[3, -4], [0, -2]]), i32([1])])
    for array in [c64, c128]:
        for op in ["Sum", "Mean", "Prod"]:
            add(op, [array([[1 + 2j, 3 - 1j], [2, 1j]]), i32(0)])
        add("EuclideanNorm", [array([3 + 4j, 0]), i32(0)])
    for op in ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"]:
        add(op, [np.zeros([0, 2], np.float32), i32(0)])
        add(op, [np.zeros([0, 2], np.float32), i32(1)])
        add(op, [f32([1, float("nan"), float("-inf"), 0]), i32(0)])
        add(op, [f32([1, 2]), i32(1)])
        add(op, [f32([1, 2]), i32([0, 0])])
    for op in ["All", "Any"]:
        for axis in [[0], [1], [0, 1], []]:
            add(op, [boolean([[True, False], [True, True], [True, False]]), i32(axis)])
        add(op, [boolean([]), i32(0)])
    nan = float("nan")
    for op in ["ArgMax", "ArgMin"]:
        for values in [[1, nan, 3], [nan, 1, 3], [1, 3, nan, 2], [nan, nan], [2, 2, 1, 1]]:
            add(op, [f32(values), i32(0)])
        add(op, [boolean([False, True, True]), i32(0)])
        add(op, [np.zeros([0, 2], np.float32), i32(0)])
        add(op, [np.zeros([2, 0], np.float32), i32(0)])
        add(op, [f32(1), i32(0)])
        add(op, [f32([1]), i32(1)])
    for array in [i8, i32, i64]:
        add("Mean", [array([-3, -4]), i32(0)])
        add("Sum", [array([-3, -4]), i32([])])
    for op in ["ArgMax", "ArgMin"]:
        for shape, axis in [((0, 0), 0), ((0, 3), 0), ((3, 0), 0), ((2, 0), 1)]:
            add(op, [np.zeros(shape, np.float32), i32(axis)])
