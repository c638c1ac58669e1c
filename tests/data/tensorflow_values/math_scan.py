"""Calls of the ops in ops/math/scan.cc."""

REALS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    for exclusive in [False, True]:
        for reverse in [False, True]:
            flags = dict(exclusive=exclusive, reverse=reverse)
            for array in REALS:
                for op in ["Cumsum", "Cumprod"]:
                    add(op, [array([[1, 2, 3], [4, 2, 1]]), i32(1)], **flags)
                    add(op, [array([[1, 2, 3], [4, 2, 1]]), i64(-2)], **flags)
            for array in [c64, c128]:
                for op in ["Cumsum", "Cumprod"]:
                    add(op, [array([1 + 2j, 1j, 3]), i32(0)], **flags)
            for array in [f16, f32, f64]:
                values = array([[1, -2, 3], [4, 2, float("-inf")]])
                add("CumulativeLogsumexp", [values, i32(1)], ulps=4, **flags)
    for op in ["Cumsum", "Cumprod", "CumulativeLogsumexp"]:
        add(op, [np.zeros([0, 2], np.float32), i32(0)])
        add(op, [f32([1, 2]), i32(1)])
        add(op, [f32(1), i32(0)])
        add(op, [f32([1, 2]), i32([0])])
    # TensorFlow's CumulativeLogsumexp passes over some NaNs.
    for op in ["Cumsum", "Cumprod"]:
        add(op, [f32([1, float("nan"), 2]), i32(0)])
    add("Cumsum", [f32([1, float("inf"), 2, float("-inf")]), i32(0)])
    add("Cumprod", [i8([100, 2, 3]), i32(0)])
    add("Cumsum", [u8([200, 100, 3]), i32(0)])
