"""Calls of the ops in ops/array/pad.cc and mirror_pad.cc."""

NUMBERS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]


def calls(add):
    rows = [[1, 2, 3], [4, 5, 6]]
    for array in NUMBERS + [text]:
        x = array(np.array(rows).astype(str) if array is text else rows)
        add("Pad", [x, i32([[1, 0], [0, 2]])])
        add("PadV2", [x, i64([[0, 1], [2, 0]]), x[0, 1]])
        for mode in ["REFLECT", "SYMMETRIC"]:
            add("MirrorPad", [x, i32([[1, 1], [2, 1]])], mode=mode)
            if array is not text:
                grown = array(np.arange(20).reshape([4, 5]))
                add("MirrorPadGrad", [grown, i64([[1, 1], [1, 0]])], mode=mode)
    x = f32(rows)
    for paddings in [[[0, 0], [0, -1]], [[0, 0]], [[0, 0, 0], [0, 0, 0]]]:
        add("Pad", [x, i32(paddings)])
        add("PadV2", [x, i32(paddings), f32(0)])
        add("MirrorPad", [x, i32(paddings)], mode="REFLECT")
    for mode in ["REFLECT", "SYMMETRIC"]:
        add("MirrorPad", [x, i32([[2, 0], [0, 0]])], mode=mode)
        add("MirrorPad", [x, i32([[3, 0], [0, 0]])], mode=mode)
        add("MirrorPadGrad", [x, i32([[1, 1], [0, 0]])], mode=mode)
        add("MirrorPad", [f32(3), np.zeros([0, 2], np.int32)], mode=mode)
    add("Pad", [f32(3), np.zeros([0, 2], np.int32)])
    add("Pad", [np.zeros([0, 2], np.float32), i32([[1, 1], [0, 0]])])
    add("PadV2", [x, i32([[0, 0], [0, 1]]), f32([1])])
