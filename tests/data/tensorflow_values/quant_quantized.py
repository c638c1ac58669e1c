"""Calls of the ops in ops/quant/quantized_*.cc and ops/quant/requantize.cc, and of the quantized ops in
ops/nn/quantized_pool.cc, ops/array/concat.cc and ops/array/reshape.cc."""


def calls(add):
    rng = np.random.RandomState(1)

    def quantized(dtype, shape):
        """Returns random integers, with the lowest and the highest one first."""
        kind = {tf.quint8: np.uint8, tf.qint8: np.int8, tf.qint32: np.int32}[dtype]
        limits = np.iinfo(kind)
        values = rng.randint(limits.min, int(limits.max) + 1, shape, np.int64)
        values = np.asarray(values, kind)
        if values.size > 1:
            values.reshape(-1)[:2] = limits.min, limits.max
        return tf.bitcast(tf.constant(values, shape=shape), dtype)

    unsigned, signed, wide = tf.quint8, tf.qint8, tf.qint32
    # Ranges that contain 0, do not, are narrow, are symmetric, and are large.
    ranges = [(0, 6), (-1, 1), (-0.3, 2.7), (1, 5), (-9, -4), (-1e-6, 1e-6), (-1e20, 3e20)]
    odd = ranges + [(0, 0), (2, 2), (3, 1)]

    def pair(low_high):
        return [f32(low_high[0]), f32(low_high[1])]

    # ---- Clamps ----
    for op in ["QuantizedRelu", "QuantizedRelu6"]:
        for dtype in [unsigned, wide]:
            for r in odd:
                add(op, [quantized(dtype, [2, 5])] + pair(r), out_type=dtype)
            add(op, [quantized(dtype, [0, 3])] + pair((-1, 1)), out_type=dtype)
        add(op, [quantized(unsigned, [3]), f32([-1]), f32(1)], out_type=unsigned)
        add(op, [quantized(unsigned, [3]), f32(-1), f32([])], out_type=unsigned)

    # ---- Sums and products ----
    for op in ["QuantizedAdd", "QuantizedMul"]:
        for i, r in enumerate(ranges):
            x, y = quantized(unsigned, [2, 4]), quantized(unsigned, [2, 4])
            other = ranges[(i * 3 + 1) % len(ranges)]
            add(op, [x, y] + pair(r) + pair(other), Toutput=wide)
            add(op, [x, quantized(unsigned, [4])] + pair(other) + pair(r), Toutput=wide)
            add(op, [quantized(unsigned, []), x] + pair(other) + pair(r), Toutput=wide)
            add(op, [x, quantized(unsigned, [1])] + pair(other) + pair(r), Toutput=wide)
        add(op, [quantized(unsigned, [0]), quantized(unsigned, [0])] + pair((0, 1)) * 2,
            Toutput=wide)
        x = quantized(unsigned, [2])
        add(op, [x, quantized(unsigned, [3])] + pair((0, 1)) * 2, Toutput=wide)
        for bad in [(0, 0), (1, 0)]:
            add(op, [x, x] + pair(bad) + pair((0, 1)), Toutput=wide)
            add(op, [x, x] + pair((0, 1)) + pair(bad), Toutput=wide)
        for k in range(2, 6):
            inputs = [x, x] + pair((0, 1)) * 2
            inputs[k] = f32([0.5])
            add(op, inputs, Toutput=wide)
            inputs[k] = f32([])
            add(op, inputs, Toutput=wide)

    for dtype in [unsigned, signed]:
        for i, r in enumerate(odd):
            other = odd[(i * 3 + 1) % len(odd)]
            add("QuantizedBiasAdd",
                [quantized(dtype, [2, 2, 3]), quantized(dtype, [3])] + pair(r) + pair(other),
                out_type=wide)
        add("QuantizedBiasAdd", [quantized(dtype, [0, 3]), quantized(dtype, [3])] + pair((0, 1)) * 2,
            out_type=wide)
    bias_add = [quantized(unsigned, [2, 3]), quantized(unsigned, [3])] + pair((0, 1)) * 2
    for k, bad in enumerate([quantized(unsigned, [3]), quantized(unsigned, [2]), f32([]), f32([1]),
                             f32([[1]]), f32([])]):
        add("QuantizedBiasAdd", bias_add[:k] + [bad] + bias_add[k + 1:], out_type=wide)
    add("QuantizedBiasAdd", [bias_add[0], quantized(unsigned, [1, 3])] + bias_add[2:], out_type=wide)

    # ---- Products of matrices and convolutions ----
    for i, r in enumerate(ranges):
        other = ranges[(i * 3 + 1) % len(ranges)]
        for transpose_a in [False, True]:
            for transpose_b in [False, True]:
                add("QuantizedMatMul",
                    [quantized(unsigned, [7, 3] if transpose_a else [3, 7]),
                     quantized(unsigned, [2, 7] if transpose_b else [7, 2])] + pair(r) + pair(other),
                    transpose_a=transpose_a, transpose_b=transpose_b)
        for strides, padding in [(1, "SAME"), (2, "SAME"), (2, "VALID")]:
            # TensorFlow pads with a wrong integer if 0 is above the range.
            if r[1] >= 0:
                add("QuantizedConv2D",
                    [quantized(unsigned, [1, 4, 3, 2]), quantized(unsigned, [2, 3, 2, 2])] +
                    pair(r) + pair(other), strides=[1, strides, strides, 1], padding=padding)
    matmul = [quantized(unsigned, [2, 3]), quantized(unsigned, [3, 2])] + pair((0, 1)) * 2
    bad_inputs = [quantized(unsigned, [2, 2]), quantized(unsigned, [3]), f32([]), f32(2), f32([]), f32(-1)]
    for k, bad in enumerate(bad_inputs):
        add("QuantizedMatMul", matmul[:k] + [bad] + matmul[k + 1:])
    conv = [quantized(unsigned, [1, 2, 2, 1]), quantized(unsigned, [1, 1, 1, 2])] + pair((0, 1)) * 2
    for r in [(0, 0), (2, 2)]:
        add("QuantizedConv2D", conv[:2] + pair(r) + pair((0, 1)), strides=[1, 1, 1, 1],
            padding="VALID")
    bad_inputs = [quantized(unsigned, [2, 2]), quantized(unsigned, [1, 1, 2, 1]), f32([]), f32([1]),
                  f32([]), f32([[1]])]
    for k, bad in enumerate(bad_inputs):
        add("QuantizedConv2D", conv[:k] + [bad] + conv[k + 1:], strides=[1, 1, 1, 1],
            padding="VALID")
    for strides in [[1, 1], [1, 0, 0, 1], [2, 1, 1, 1]]:
        add("QuantizedConv2D", conv, strides=strides, padding="SAME")

    # ---- Pooling ----
    for op in ["QuantizedAvgPool", "QuantizedMaxPool"]:
        for dtype in [unsigned, signed]:
            for size, stride, padding in [(2, 1, "SAME"), (3, 2, "SAME"), (2, 2, "VALID"),
                                          (3, 1, "VALID")]:
                add(op, [quantized(dtype, [2, 4, 3, 2])] + pair((-1, 3)), ksize=[1, size, size, 1],
                    strides=[1, stride, stride, 1], padding=padding)
        image = quantized(unsigned, [1, 2, 2, 1])
        one = [1, 1, 1, 1]
        add(op, [image] + pair((5, 1)), ksize=one, strides=one, padding="SAME")
        add(op, [image, f32([]), f32(1)], ksize=one, strides=one, padding="SAME")
        add(op, [image, f32(0), f32([1])], ksize=one, strides=one, padding="SAME")
        # TensorFlow divides by zero in QuantizedAvgPool.
        if op == "QuantizedMaxPool":
            add(op, [image] + pair((0, 1)), ksize=[1, 0, 1, 1], strides=one, padding="SAME")
            add(op, [image] + pair((0, 1)), ksize=one, strides=[1, 0, 1, 1], padding="SAME")
        add(op, [quantized(unsigned, [2, 2])] + pair((0, 1)), ksize=one, strides=one, padding="SAME")

    # ---- Concatenation and reshaping ----
    for dtype in [unsigned, wide]:
        for i, r in enumerate(odd):
            other = odd[(i * 3 + 1) % len(odd)]
            bounds = [[f32(r[0]), f32(other[0])], [f32(r[1]), f32(other[1])]]
            add("QuantizedConcat", [i32(1), [quantized(dtype, [2, 3]), quantized(dtype, [2, 2])]] +
                bounds)
        # TensorFlow takes the range of another tensor if an empty tensor comes first.
        add("QuantizedConcat", [i32(0), [quantized(dtype, [2, 3]), quantized(dtype, [0, 3])],
                                [f32(-1), f32(-2)], [f32(1), f32(0)]])
        add("QuantizedReshape", [quantized(dtype, [2, 3]), i32([3, -1])] + pair((3, 1)))
        add("QuantizedReshape", [quantized(dtype, [0]), i64([0, 3])] + pair((0, 1)))
    values = [quantized(unsigned, [2, 3]), quantized(unsigned, [2, 2])]
    bounds = [[f32(0), f32(0)], [f32(1), f32(1)]]
    add("QuantizedConcat", [i32(0), values] + bounds)
    add("QuantizedConcat", [i32(2), values] + bounds)
    add("QuantizedConcat", [i32([0]), values] + bounds)
    add("QuantizedConcat", [i32(1), values, [f32([]), f32(0)], bounds[1]])
    add("QuantizedConcat", [i32(1), values, bounds[0], [f32(0), f32([1, 2])]])
    add("QuantizedReshape", [values[0], i32([4])] + pair((0, 1)))
    add("QuantizedReshape", [values[0], i32([6]), f32([]), f32(1)])
    add("QuantizedReshape", [values[0], i32([6]), f32(0), f32([1, 2])])

    # ---- Fewer bits ----
    for r in odd:
        for scale in [1, 1 / 256, 1 / 65536]:
            values = (quantized(wide, [11]).numpy().astype(np.int32) * scale).astype(np.int32)
            x = tf.bitcast(values, wide)
            add("RequantizationRange", [x] + pair(r))
            add("QuantizeDownAndShrinkRange", [x] + pair(r), out_type=unsigned)
            # TensorFlow's conversion to quint8 overflows for large ranges.
            for dtype in [signed] if r[1] > 1e6 else [unsigned, signed]:
                for to in [(0, 6), (-1, 1), (-300, 4e4), (0, 0), (-2, -1), (-1e-7, 2e-6)]:
                    add("Requantize", [x] + pair(r) + pair(to), out_type=dtype)
    x = quantized(wide, [3])
    empty = quantized(wide, [0, 2])
    add("RequantizationRange", [empty] + pair((-1, 2)))
    add("QuantizeDownAndShrinkRange", [empty] + pair((-1, 2)), out_type=unsigned)
    add("Requantize", [empty] + pair((-1, 2)) * 2, out_type=unsigned)
    for bad in [f32([]), f32([1]), f32([1, 2])]:
        for k in range(1, 5):
            inputs = [x, f32(0), f32(1), f32(0), f32(1)]
            inputs[k] = bad
            add("Requantize", inputs, out_type=unsigned)
            if k < 3:
                add("QuantizeDownAndShrinkRange", inputs[:3], out_type=unsigned)
    add("RequantizationRange", [x, f32([]), f32(1)])
    add("RequantizationRange", [x, f32(0), f32([])])
    add("Requantize", [x] + pair((-1, 1)) + pair((0.5, 1)), out_type=unsigned)
    add("Requantize", [x] + pair((-1, 1)) + pair((0, -1)), out_type=unsigned)
