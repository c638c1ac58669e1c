"""Calls of Cast."""

INF = float("inf")
NAN = float("nan")
SMALL = [0, 1, 2, 77, 100]


def calls(add):
    types = [tf.bfloat16, tf.half, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16]
    types += [tf.int32, tf.uint32, tf.int64, tf.uint64, tf.bool, tf.complex64, tf.complex128]
    for source in [f16, bf16, f32, f64, i8, u8, i16, u16, i32, u32, i64, u64, boolean, c64, c128]:
        for target in types:
            add("Cast", [source(SMALL)], DstT=target)
    # Values that do not fit. TensorFlow's result for uint32 depends on the position.
    wide = [3e9, -3e9, 1e20, -1e20, NAN, INF, -INF, 300.7, -1.5, 2147483648.0, 2147483904.0]
    signed = [tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64]
    for source in [f32, f64, c64, c128]:
        for target in signed + [tf.uint64, tf.bool]:
            add("Cast", [source(wide)], DstT=target)
    for source in [f16, bf16]:
        for target in signed:
            add("Cast", [source([60000, -60000, NAN, INF, 1000, -3.5])], DstT=target)
    for source, bits in [(i16, 16), (i32, 32), (i64, 64)]:
        values = [2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 12345, -300]
        for target in types:
            add("Cast", [source(values)], DstT=target)
    for target in types:
        add("Cast", [u64([2**64 - 1, 2**63, 2**53 + 1])], DstT=target)
    # Numbers near ties, which round twice.
    add("Cast", [f64([1 + 2**-11 + 2**-30, 1 + 2**-8 + 2**-30, 70000])], DstT=tf.half)
    add("Cast", [f64([1 + 2**-11 + 2**-30, 1 + 2**-8 + 2**-30, 1e39])], DstT=tf.bfloat16)
    for target in [tf.half, tf.bfloat16]:
        add("Cast", [f32([1.99999, -1.99999, 3.14159, NAN, 65519, 1e-3])], DstT=target, Truncate=True)
    # TensorFlow rounds from double to bfloat16 even so.
    add("Cast", [f64([1.99999, -1.99999, 3.14159, NAN, 65519, 1e-3])], DstT=tf.half, Truncate=True)
    add("Cast", [f64([1.9999999999, 3.3, INF])], DstT=tf.float32, Truncate=True)
    add("Cast", [c128([1.9999999999 + 3.3j])], DstT=tf.complex64, Truncate=True)
    add("Cast", [f32([1.99999])], DstT=tf.int32, Truncate=True)
