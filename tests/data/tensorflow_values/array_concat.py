"""Calls of the ops in ops/array/concat.cc, split.cc and transpose.cc."""

TYPES = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean, text]


def calls(add):
    for array in TYPES:
        rows = np.arange(6).reshape([2, 3])
        x = array(rows.astype(str) if array is text else rows)
        add("Concat", [i32(-1), [x, x[:, :1]]])
        add("ConcatV2", [[x, x[:1]], i64(0)])
        add("SplitV", [x, i32([1, -1]), i32(1)], num_split=2)
        add("Split", [i32(1), x], num_split=3)
        add("Transpose", [x, i32([1, 0])])
        add("ConjugateTranspose", [x * (1 + 2j) if array in (c64, c128) else x, i32([1, 0])])
    x = f32([[1, 2], [3, 4]])
    add("Concat", [i32(2), [x, x]])
    add("Concat", [i32(0), [x, x[:, :1]]])
    add("Concat", [i32(0), [f32(1), f32(2)]])
    add("ConcatOffset", [i32(1), [i32([2, 3]), i32([2, 4]), i32([2, 5])]])
    add("ConcatOffset", [i32(-2), [i64([2, 3]), i64([5, 3])]])
    add("ConcatOffset", [i32(0), [i32([2, 3]), i32([2, 4])]])
    add("ConcatOffset", [i32(0), [i32([2, 3]), i32([2])]])
    add("ConcatOffset", [i32(3), [i32([2]), i32([2])]])
    vector = f32([1, 2, 3, 4, 5])
    for sizes in [[1, 3], [6, -1], [-1, -1], [-2, 7], [5]]:
        add("SplitV", [vector, i64(sizes), i32(0)], num_split=2)
    add("SplitV", [vector, i64([2, 3]), i32(1)], num_split=2)
    add("InvertPermutation", [i32([3, 0, 2, 1])])
    add("InvertPermutation", [i64([1, 0])])
    for x in [[2, 0, 2], [2, 0, 3], [-1], [[0]]]:
        add("InvertPermutation", [i32(x)])
    add("Concat", [i32(-1), [f32(1), f32(2)]])
    add("ConcatV2", [[f32(1), f32([2])], i32(0)])
    add("ConcatV2", [[f32([1]), f32([2])], i32([[0]])])
    add("ConcatV2", [[f32([1]), f32([2])], i32([])])
