"""Calls of the ops in ops/array/reverse.cc and roll.cc."""

TYPES = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean, text]


def calls(add):
    rows = [[1, 2, 0, 3], [4, 5, 6, 0]]
    for array in TYPES:
        x = array(np.array(rows).astype(str) if array is text else rows)
        add("Reverse", [x, boolean([True, False])])
        add("ReverseV2", [x, i32([-1])])
        add("ReverseV2", [x, i64([0, 1])])
        add("ReverseSequence", [x, i64([3, 1])], seq_dim=1)
        add("ReverseSequence", [x, i32([0, 1, 2, 2])], seq_dim=0, batch_dim=1)
        add("Roll", [x, i32([1, -2]), i64([0, 1])])
    x = f32(rows)
    for axis in [[2], [0, -2], [[0]], [-3]]:
        add("ReverseV2", [x, i32(axis)])
    add("Reverse", [x, boolean([True])])
    add("ReverseV2", [x, i32([])])
    add("ReverseV2", [f32(1), i32([])])
    for lengths in [[5, 0], [-1, 0], [1], [[1, 2]]]:
        add("ReverseSequence", [x, i64(lengths)], seq_dim=1)
    add("ReverseSequence", [x, i64([1, 2])], seq_dim=0)
    add("ReverseSequence", [x, i64([1, 2])], seq_dim=-1)
    add("Roll", [x, i32([1, 2, 5]), i32([1, 1, -2])])
    add("Roll", [x, i64(2**63 - 1), i32(1)])
    add("Roll", [x, i32([]), i32([])])
    for shift, axis in [([1], [2]), ([1, 2], [0]), (1, [0]), ([[1]], [[0]])]:
        add("Roll", [x, i32(shift), i32(axis)])
    add("Roll", [f32(1), i32([1]), i32([0])])
