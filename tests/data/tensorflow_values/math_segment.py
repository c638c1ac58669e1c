"""Calls of the ops in ops/math/segment.cc and sparse_segment_grad.cc."""

FLOATS = [f16, bf16, f32, f64]
REALS = FLOATS + [i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    rows = [[1, 2], [3, 4], [2, 6]]
    for array in REALS:
        for op in ["Sum", "Mean", "Prod", "Min", "Max"]:
            add("Segment" + op, [array(rows), i32([0, 0, 2])])
        for op in ["Sum", "Prod", "Min", "Max"]:
            add("UnsortedSegment" + op, [array(rows), i64([2, -1, 2]), i32(4)])
        add("SparseSegmentSum", [array(rows), i32([2, 0, 0]), i32([0, 0, 3])])
        add("SparseSegmentSumWithNumSegments",
            [array(rows), i64([2, 0, 0]), i32([0, 0, 3]), i64(5)])
    for array in [c64, c128]:
        for op in ["Sum", "Mean", "Prod"]:
            add("Segment" + op, [array([1 + 2j, 3j, 2]), i64([1, 1, 3])])
        for op in ["Sum", "Prod"]:
            add("UnsortedSegment" + op, [array([1 + 2j, 3j, 2]), i32([1, 3, 1]), i32(4)])
    for array in FLOATS:
        for op in ["Mean", "SqrtN"]:
            name = "SparseSegment" + op
            add(name, [array(rows), i32([2, 0, 0]), i32([0, 0, 3])], ulps=1)
            add(name + "WithNumSegments", [array(rows), i32([2, 0, 0]), i64([0, 0, 3]), i32(5)],
                ulps=1)
        for op in ["Sum", "Mean", "SqrtN"]:
            name = "SparseSegment" + op + "Grad"
            add(name, [array(rows), i32([3, 0, 0]), i32([0, 2, 2]), i32(5)], ulps=2)
            add(name + "V2", [array(rows), i32([3, 0, 0]), i32([0, 2, 2]), i32(5)], ulps=2)
    x = f32(rows)
    for op in ["Sum", "Mean", "Prod", "Min", "Max"]:
        for ids in [[1, 0, 4], [-1, 0, 4], [0, 0], [[0, 0, 1]]]:
            add("Segment" + op, [x, i32(ids)])
        add("Segment" + op, [np.zeros([0, 3], np.float32), i32([])])
        add("Segment" + op, [f32(1), i32([0])])
        add("Segment" + op, [f32([1, float("nan")]), i32([0, 1])])
    for op in ["Sum", "Prod", "Min", "Max"]:
        name = "UnsortedSegment" + op
        for ids in [[0, 3, 1], [0, 0], [[0, 0], [1, 1], [2, 2]]]:
            add(name, [x, i32(ids), i32(3)])
        add(name, [x, i32([0, 1, 2]), i32(-3)])
        add(name, [x, i32([0, 1, 2]), i32([3])])
        add(name, [f32([]), i32([]), i32(2)])
    for op in ["Sum", "Mean", "SqrtN"]:
        name = "SparseSegment" + op
        for indices, ids in [([0, 3], [0, 0]), ([0, -1], [0, 0]), ([0, 1], [1, 0]), ([0], [-1]),
                             ([0, 1], [0]), ([], [])]:
            add(name, [x, i32(indices), i32(ids)])
        add(name + "WithNumSegments", [x, i32([0]), i32([2]), i32(2)])
        for indices, ids, rows0 in [([0, 5], [0, 0], 5), ([-1], [0], 5), ([0], [3], 5),
                                    ([0], [0], -5)]:
            add(name + "Grad", [x, i32(indices), i32(ids), i32(rows0)])
            add(name + "GradV2", [x, i32(indices), i32(ids), i32(rows0)])
