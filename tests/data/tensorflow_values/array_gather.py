"""Calls of the ops in ops/array/gather.cc, slice.cc and strided_slice.cc."""

TYPES = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean, text]


def calls(add):
    for array in TYPES:
        rows = np.arange(6).reshape([2, 3])
        x = array(rows.astype(str) if array is text else rows)
        add("GatherV2", [x, i32([2, 0]), i32(1)])
        add("GatherV2", [x, i64([[1], [0]]), i64(0)])
        add("GatherV2", [x, i32([[0, 2], [1, 1]]), i32(1)], batch_dims=1)
        add("Slice", [x, i32([0, 1]), i32([2, -1])])
        add("StridedSlice", [x, i32([1, 2]), i32([-3, 0]), i32([-1, -2])])
    x = f32(np.arange(24).reshape([2, 3, 4]))
    for axis, batch_dims in [(0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (-1, -1), (0, 1), (3, 0)]:
        add("GatherV2", [x, i32([[0, 1], [1, 0]]), i32(axis)], batch_dims=batch_dims)
    add("GatherV2", [x, i16([1]), i32(0)])
    add("GatherV2", [x, i32([]), i32(1)])
    add("GatherV2", [x, i32(1), i64(2)])
    add("GatherV2", [x, i32([2]), i32(0)])
    add("GatherV2", [x, i32([-1]), i32(0)])
    add("GatherV2", [f32(np.zeros([0, 2])), i32([]), i32(0)])
    add("GatherV2", [f32(np.zeros([2, 0])), i32([1, 1, 0]), i32(0)])
    add("Gather", [x, i32([[1], [0]])])
    add("Gather", [x, i64(1)])
    add("Gather", [x, i64(2)])
    for begin, size in [([0, 0, 0], [2, 3, 4]), ([1, 2, 3], [-1, -1, -1]), ([2, 0, 0], [0, 1, 1]),
                        ([0, 0, 1], [2, 3, 4]), ([-1, 0, 0], [1, 1, 1]), ([0, 0], [1, 1]),
                        ([0, 0, 0], [-2, 1, 1])]:
        add("Slice", [x, i32(begin), i32(size)])
        add("Slice", [x, i64(begin), i64(size)])
    slices = [
        ([0, 0, 0], [2, 3, 4], [1, 1, 1]),
        ([1, -1, -4], [-5, 5, 2], [-1, 1, 1]),
        ([0, 2, 3], [2, 0, -5], [1, -2, -3]),
        ([5, 5, 5], [9, 9, 9], [1, 1, 1]),
        ([1, 1, 1], [2, 2, 2], [1, 1, 1]),
    ]
    for begin, end, strides in slices:
        for array in [i32, i64]:
            add("StridedSlice", [x, array(begin), array(end), array(strides)])
        arguments = [x, i32(begin), i32(end), i32(strides)]
        for mask in [1, 2, 5, 7]:
            add("StridedSlice", arguments, begin_mask=mask)
            add("StridedSlice", arguments, end_mask=mask)
            add("StridedSlice", arguments, begin_mask=mask, end_mask=7 - mask)
        for mask in [1, 2, 4]:
            add("StridedSlice", arguments, ellipsis_mask=mask)
            add("StridedSlice", arguments, new_axis_mask=mask)
            add("StridedSlice", arguments, shrink_axis_mask=mask)
            add("StridedSlice", arguments, ellipsis_mask=mask, new_axis_mask=6 - mask & 6)
    for begin, end, strides in [([0], [2], [0]), ([0, 1], [1], [1, 1]), ([], [], []),
                                ([0] * 4, [1] * 4, [1] * 4), ([[0]], [[1]], [[1]])]:
        add("StridedSlice", [x, i32(begin), i32(end), i32(strides)])
    add("StridedSlice", [x, i32([0, 0]), i32([1, 1]), i32([1, 1])], ellipsis_mask=3)
    add("StridedSlice", [x, i32([-3]), i32([0]), i32([1])], shrink_axis_mask=1)
    add("StridedSlice", [f32(3), i32([0]), i32([1]), i32([1])], new_axis_mask=1)
