"""Calls of ClipByValue."""

NAN = float("nan")


def calls(add):
    for array in [f16, bf16, f32, f64]:
        t = array([1, NAN, 3, 8, -2])
        for low, high in [(2, 5), (5, 2), (NAN, 2), (2, NAN)]:
            add("ClipByValue", [t, array(low), array(high)])
        add("ClipByValue", [t, array([0, 1, 2, 3, 4]), array([1, 2, 3, 4, 5])])
        add("ClipByValue", [t, array([0, 1, 2, 3, 4]), array(3)])
    for array in [u8, i8, u16, i16, i32, i64]:
        add("ClipByValue", [array([1, 7, 3]), array(2), array(5)])
    for array in [c64, c128]:
        add("ClipByValue", [array([3 + 4j, 1 + 1j, 9]), array(2), array(5)])
    add("ClipByValue", [f32([[1, 2, 3], [4, 5, 6]]), f32([2, 2, 2]), f32(5)])
    add("ClipByValue", [f32([1, 9]), f32([2]), f32([5])])
    add("ClipByValue", [f32(3), f32([1, 5]), f32(4)])
