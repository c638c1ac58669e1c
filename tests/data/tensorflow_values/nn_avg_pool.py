"""Calls of the ops in ops/nn/avg_pool.cc."""


def calls(add):
    x = random(tf.float32, (1, 5, 4, 2), -2, 2)
    volume = random(tf.float32, (1, 3, 4, 3, 1), -2, 2)
    # TensorFlow rounds each operation on 16-bit floats.
    for array, tolerance in [(f32, 1e-5), (f64, 1e-12), (f16, 1e-2), (bf16, 6e-2)]:
        near = {"atol": tolerance, "rtol": tolerance}
        for size, stride, padding in [((2, 2), (2, 1), "VALID"), ((3, 2), (2, 2), "SAME")]:
            attrs = dict(ksize=[1, *size, 1], strides=[1, *stride, 1], padding=padding)
            y = tf.raw_ops.AvgPool(value=f32(x), **attrs).numpy()
            add("AvgPool", [array(x)], **attrs, **near)
            add("AvgPoolGrad", [i32(x.shape), array(y)], **attrs, **near)
        if array in (f64, f16):
            # TensorFlow's CPU has no kernels for volumes of these types.
            continue
        for size, stride, padding in [((2, 2, 2), (1, 2, 2), "VALID"), ((3, 2, 3), (2, 2, 1), "SAME")]:
            attrs = dict(ksize=[1, *size, 1], strides=[1, *stride, 1], padding=padding)
            y = tf.raw_ops.AvgPool3D(input=f32(volume), **attrs).numpy()
            add("AvgPool3D", [array(volume)], **attrs, **near)
            add("AvgPool3DGrad", [i32(volume.shape), array(y)], **attrs, **near)
    for size in [(1, 0, 1, 1), (1, 9, 9, 1), (2, 1, 1, 1)]:
        add("AvgPool", [f32(x)], ksize=list(size), strides=[1, 1, 1, 1], padding="VALID")
    add("AvgPool", [np.zeros((0, 3, 3, 1), np.float32)], ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1],
        padding="SAME")
