"""Calls of the ops in ops/nn/max_pool.cc and max_pool_grad.cc."""


def calls(add):
    x = random(tf.int32, (1, 5, 4, 2), 0, 6)
    ones = [1, 1, 1, 1]
    for array in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64]:
        v = array(x)
        for size, stride, padding in [((2, 2), (2, 1), "VALID"), ((3, 2), (2, 2), "SAME")]:
            attrs = dict(ksize=[1, *size, 1], strides=[1, *stride, 1], padding=padding)
            y = tf.raw_ops.MaxPool(input=f32(x), **attrs).numpy()
            grad = array(random(tf.int32, y.shape, 0, 9))
            if array not in (u32, u64):
                add("MaxPool", [v], **attrs)
            sizes = [i32(attrs["ksize"]), i32(attrs["strides"])]
            add("MaxPoolGrad", [v, array(y), grad], **attrs)
            add("MaxPoolGradV2", [v, array(y), grad, *sizes], padding=padding)
            add("MaxPoolGradGrad", [v, array(y), v], **attrs)
            add("MaxPoolGradGradV2", [v, array(y), v, *sizes], padding=padding)
            add("MaxPoolWithArgmax", [v], **attrs)
            add("MaxPoolWithArgmax", [v], include_batch_in_index=True, **attrs)
            argmax = tf.raw_ops.MaxPoolWithArgmax(input=f32(x), **attrs).argmax.numpy()
            add("MaxPoolGradWithArgmax", [v, grad, argmax], **attrs)
    add("MaxPool", [f32(x)], ksize=[1, 3, 3, 1], strides=[1, 2, 1, 1], padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])
    add("MaxPool", [f32(x)], ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID")
    for size in [(1, 0, 1, 1), (1, 9, 9, 1), (2, 1, 1, 1), (1, 1, 1, 2), (1, 2, 1, 2)]:
        add("MaxPool", [f32(x)], ksize=list(size), strides=ones, padding="VALID")
    volume = random(tf.int32, (1, 3, 4, 4, 2), 0, 5)
    for array in [f32, bf16]:
        for size, stride, padding in [((2, 2, 2), (1, 2, 2), "VALID"), ((3, 2, 3), (2, 2, 1), "SAME")]:
            attrs = dict(ksize=[1, *size, 1], strides=[1, *stride, 1], padding=padding)
            y = tf.raw_ops.MaxPool3D(input=f32(volume), **attrs).numpy()
            grad = array(random(tf.int32, y.shape, 0, 9))
            add("MaxPool3D", [array(volume)], **attrs)
            add("MaxPool3DGrad", [array(volume), array(y), grad], **attrs)
            add("MaxPool3DGradGrad", [array(volume), array(y), array(volume)], **attrs)
    x = random(tf.float32, (1, 4, 5, 2))
    for padding in ["SAME", "VALID"]:
        add("MaxPoolV2", [x, i32([1, 2, 3, 1]), i32([1, 2, 1, 1])], padding=padding)
    # A window may exceed the image by less than two strides.
    for op in ["MaxPool", "AvgPool"]:
        for stride in [1, 2, 3]:
            for size in [3, 4, 5, 6]:
                add(op, [x[:, :2, :2]], ksize=[1, size, size, 1], strides=[1, stride, stride, 1],
                    padding="VALID")
