"""Calls of the ops in ops/array/strided_slice_update.cc."""

TYPES = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean]


def calls(add):
    masks = ["begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"]
    for array in TYPES:
        x = array(np.arange(12).reshape([3, 4]))
        slices = [i32([0, 3]), i32([3, 0]), i32([2, -2])]
        add("StridedSliceGrad", [i32([3, 4])] + slices + [x[:2, :2]])
        add("TensorStridedSliceUpdate", [x] + slices + [x[1:, 2:]])
    x = f32(np.arange(24).reshape([2, 3, 4]))
    for begin, end, strides, values in [
        ([1], [2], [1], [0, 0, 0, 0, 1]),
        ([0, 1], [0, 3], [1, 1], [1, 1, 0, 0, 0]),
        ([0, 1], [0, 2], [1, 1], [0, 0, 1, 0, 2]),
        ([0, 0, 1], [0, 2, 3], [1, 1, 1], [0, 0, 0, 1, 0]),
        ([-1, 2, 0], [-3, 0, 9], [-1, -1, 3], [0, 0, 0, 0, 0]),
        ([0], [5], [0], [0, 0, 0, 0, 0]),
        ([0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0, 0]),
    ]:
        attrs = dict(zip(masks, values))
        slices = [i64(begin), i64(end), i64(strides)]
        try:
            dy = tf.raw_ops.StridedSlice(input=x, begin=slices[0], end=slices[1],
                                         strides=slices[2], **attrs).numpy()
        except tf.errors.OpError:
            dy = f32([1])
        add("StridedSliceGrad", [i64([2, 3, 4])] + slices + [dy], **attrs)
        add("TensorStridedSliceUpdate", [x] + slices + [-dy], **attrs)
        add("TensorStridedSliceUpdate", [x] + slices + [f32(100)], **attrs)
    add("TensorStridedSliceUpdate", [x, i32([0]), i32([1]), i32([1]), f32([1, 2, 3])])
    add("StridedSliceGrad", [i32([4]), i32([1]), i32([4]), i32([2]), f32([5])])
