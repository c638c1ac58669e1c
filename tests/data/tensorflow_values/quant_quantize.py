"""Calls of the ops in ops/quant/quantize.cc and quantize_and_dequantize.cc."""


def calls(add):
    x = f32([-10, -3, -1.25, -0.5, 0, 0.3, 0.75, 1, 2.5, 7])
    for dtype in [tf.qint8, tf.quint8, tf.qint16, tf.quint16]:
        for mode in ["MIN_COMBINED", "MIN_FIRST", "SCALED"]:
            for low, high in [(-2, 6), (0, 6), (1, 5), (-8, -1), (0, 0)]:
                add("QuantizeV2", [x, f32(low), f32(high)], T=dtype, mode=mode)
        add("QuantizeV2", [x, f32(-2), f32(6)], T=dtype, mode="SCALED", narrow_range=True,
            round_mode="HALF_TO_EVEN")
        rows = x.reshape([2, 5])
        add("QuantizeV2", [rows, f32([-2, 0]), f32([6, 1])], T=dtype, mode="SCALED", axis=0)
        add("QuantizeV2", [rows, f32([-2, 0, 0, -1, -4]), f32([6, 1, 2, 2, 4])], T=dtype, axis=1)
    add("QuantizeV2", [x, f32(2), f32(1)], T=tf.qint8)
    add("QuantizeV2", [x, f32(-1), f32(1)], T=tf.qint8, mode="MIN_FIRST",
        round_mode="HALF_TO_EVEN")
    floats = [f32, f64]
    for array in floats:
        x = array([-3, -1.25, -0.5, 0, 0.3, 0.75, 1, 2.5])
        for signed in [True, False]:
            for narrow in [True, False]:
                for mode in ["HALF_TO_EVEN", "HALF_UP"]:
                    for given in [True, False]:
                        for op in ["V2", "V4"]:
                            add("QuantizeAndDequantize" + op, [x, array(-1), array(2)],
                                signed_input=signed, num_bits=3, range_given=given,
                                round_mode=mode, narrow_range=narrow)
                add("QuantizeAndDequantizeV3", [x, array(-1), array(2), i32(5)],
                    signed_input=signed, narrow_range=narrow)
        add("QuantizeAndDequantizeV2", [x, array(0), array(0)], range_given=True)
        add("QuantizeAndDequantizeV2", [x, array(1), array(0)], range_given=True)
        add("QuantizeAndDequantizeV2", [x, array([-1]), array(0)], range_given=True)
        add("QuantizeAndDequantizeV4Grad", [x, x, array(-1), array(1)])
        rows = x.reshape([2, 4])
        add("QuantizeAndDequantizeV4Grad", [rows, rows, array([-1, 0]), array([1, 1])], axis=0)
    for bits in [0, 63]:
        add("QuantizeAndDequantizeV2", [f32([1]), f32(-1), f32(1)], num_bits=bits)
    add("QuantizeAndDequantizeV2", [f32([1]), f32(-1), f32(1)], axis=-2)
    add("QuantizeAndDequantizeV2", [f32([1]), f32(-1), f32(1)], axis=1)
    # A range of one element.
    one = f32([[1, 2]])
    for dtype in [tf.qint8, tf.quint8]:
        for mode in ["MIN_COMBINED", "SCALED"]:
            for axis in [-1, 0]:
                add("QuantizeV2", [one, f32([0]), f32([3])], T=dtype, mode=mode, axis=axis)
            add("QuantizeV2", [one, f32([[0]]), f32([[3]])], T=dtype, mode=mode)
    add("QuantizeV2", [one, f32(0), f32(3)], T=tf.quint8, axis=0)
    add("QuantizeV2", [one, f32([0, 1]), f32([3, 3])], T=tf.quint8)
    add("QuantizeV2", [one.T, f32([0]), f32([3])], T=tf.quint8, axis=0)
