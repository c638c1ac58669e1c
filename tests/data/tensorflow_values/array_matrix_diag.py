"""Calls of the ops in ops/array/matrix_diag.cc, diag.cc, broadcast_args.cc and edit_distance.cc."""

NUMBERS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]
ALIGNS = ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]


def calls(add):
    for array in NUMBERS:
        x = array(np.arange(1, 13).reshape([3, 4]))
        add("MatrixDiag", [x])
        add("MatrixDiagPart", [x])
        add("MatrixSetDiag", [x, x[0, :3]])
        add("MatrixBandPart", [x, i64(1), i64(0)])
        add("MatrixDiagPartV2", [x, i32([-1, 2]), array(0)])
        add("MatrixDiagV2", [x[:, :3], i32([-1, 1]), i32(-1), i32(-1), array(9)])
        add("MatrixSetDiagV2", [x, x[:2, :3], i32([0, 1])])
        if array in [f16, f32, f64, i32, i64, c64, c128]:
            add("Diag", [x[:2, :2]])
            add("DiagPart", [x[:3, :3]])
    x = f32(np.arange(1, 13).reshape([3, 4]))
    for align in ALIGNS:
        add("MatrixDiagPartV3", [x, i32([-2, 2]), f32(0)], align=align)
        add("MatrixDiagPartV3", [x, i32([1, 3]), f32(-1)], align=align)
        add("MatrixSetDiagV3", [x, f32(np.zeros([3, 3])), i32([-1, 1])], align=align)
        add("MatrixDiagV3", [f32([[1, 2, 0], [3, 4, 5]]), i32([-1, 0]), i32(-1), i32(-1), f32(9)],
            align=align)
        add("MatrixDiagV3", [f32([[1, 2], [3, 4]]), i32([1, 2]), i32(3), i32(-1), f32(9)],
            align=align)
    for k in [[4], [-3], [1, 0], [], [0, 0, 0]]:
        add("MatrixDiagPartV3", [x, i32(k), f32(0)])
    pair = f32([1, 2])
    for k, rows, columns in [(1, 4, 5), (1, 4, -1), (1, -1, 5), (1, -1, -1), (1, 2, 2), (-2, -1, 3)]:
        add("MatrixDiagV3", [pair, i32(k), i32(rows), i32(columns), f32(9)])
    add("MatrixSetDiagV3", [x, pair, i32(0)])
    add("MatrixSetDiagV3", [x, f32([0, 0, 0]), i32([0, 1])])
    for lower, upper in [(-1, -1), (4, 0), (3, 5), (0, 4)]:
        add("MatrixBandPart", [x, i32(lower), i32(upper)])
    add("DiagPart", [x])
    add("DiagPart", [pair])
    for array in [i32, i64]:
        for s0, s1 in [([2, 1], [3, 1, 4]), ([], [0, 1]), ([2, 2], [3, 1]), ([1], [1, 1]),
                       ([2, 3], [2, 3]), ([0, 1], [1, 1])]:
            add("BroadcastArgs", [array(s0), array(s1)])
            add("BroadcastGradientArgs", [array(s0), array(s1)])
        add("UnravelIndex", [array([22, 41, 37]), array([7, 6])])
        add("UnravelIndex", [array(22), array([7, 6])])
        add("UnravelIndex", [array([42]), array([7, 6])])
        add("UnravelIndex", [array([1]), array([7, 0])])
    for array in NUMBERS[:-2] + [text]:
        values = array(["1", "2", "3"] if array is text else [1, 2, 3])
        for normalize in [True, False]:
            add("EditDistance", [i64([[0, 0], [1, 0], [1, 1]]), values, i64([3, 2]),
                                 i64([[0, 0], [0, 1], [1, 0]]), values[::-1].copy(), i64([2, 2])],
                normalize=normalize)
