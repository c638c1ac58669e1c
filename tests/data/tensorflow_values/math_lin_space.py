"""Calls of LinSpace, Range and Cross: ops/math/lin_space.cc, range.cc and cross.cc."""

REALS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]


def calls(add):
    for array in [f32, f64]:
        add("LinSpace", [array(1), array(3), i32(5)])
        add("LinSpace", [array(-1), array(0.5), i64(7)], ulps=2)
        add("LinSpace", [array(1), array(3), i32(1)])
    add("LinSpace", [f32(1), f32(3), i32(0)])
    add("LinSpace", [f32([1]), f32(3), i32(2)])
    for array in [f16, bf16, f32, f64, i32, i64]:
        add("Range", [array(1), array(8), array(3)])
        add("Range", [array(1), array(1), array(3)])
    add("Range", [i32(3), i32(0), i32(-2)])
    for array in REALS:
        add("Cross", [array([[1, 2, 3], [4, 0, 1]]), array([[3, 5, 9], [2, 2, 0]])])
    add("Cross", [np.ones([0, 3], np.float32), np.ones([0, 3], np.float32)])
    add("Cross", [f32([1, 2, 3]), f32([[1, 2, 3]])])
