"""Calls of the ops in ops/math/bits.cc."""


def calls(add):
    for array, bits in [(i8, 8), (i16, 16), (i32, 32), (i64, 64)]:
        x = [0, 1, -1, 5, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 64, -3]
        for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
            add(op, [array(x), array([3, 3, 12, -6, -1, 7, 64, 2])])
        for op in ["LeftShift", "RightShift"]:
            add(op, [array(x), array([1, bits - 1, 2, bits, bits + 1, 3, -1, 0])])
        for op in ["Invert", "PopulationCount"]:
            add(op, [array(x)])
    for array, bits in [(u8, 8), (u16, 16), (u32, 32), (u64, 64)]:
        x = [0, 1, 2**bits - 1, 5, 2 ** (bits - 1), 64]
        for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
            add(op, [array(x), array([3, 3, 12, 6, 2**bits - 1, 7])])
        for op in ["LeftShift", "RightShift"]:
            add(op, [array(x), array([1, bits - 1, 2, bits, bits + 1, 3])])
        for op in ["Invert", "PopulationCount"]:
            add(op, [array(x)])
