"""Calls of the ops in ops/nn/conv.cc."""


def calls(add):
    shapes = [
        # input, filter, strides, dilations
        ((2, 4, 5, 3), (2, 3, 3, 2), [1, 1], [1, 1]),
        ((1, 5, 4, 4), (3, 2, 2, 4), [2, 1], [1, 1]),
        ((1, 6, 7, 2), (2, 2, 2, 3), [1, 1], [2, 3]),
    ]
    near = {"atol": 1e-5, "rtol": 1e-5}
    for dtype in [tf.float32, tf.float64]:
        for x, f, strides, dilations in shapes:
            for padding in ["SAME", "VALID", "EXPLICIT"]:
                attrs = dict(strides=[1, *strides, 1], dilations=[1, *dilations, 1], padding=padding)
                if padding == "EXPLICIT":
                    attrs["explicit_paddings"] = [0, 0, 1, 2, 0, 1, 0, 0]
                groups = x[3] // f[2]
                image = random(dtype, x, seed=1)
                weights = random(dtype, f, seed=2)
                add("Conv2D", [image, weights], **attrs, **near)
                y = tf.raw_ops.Conv2D(input=image, filter=weights, **attrs)
                dy = random(dtype, y.shape, seed=3)
                # TensorFlow without oneDNN has no gradients of dilated or grouped convolutions.
                if dilations == [1, 1] and groups == 1:
                    add("Conv2DBackpropInput", [i32(x), weights, dy], **attrs, **near)
                    add("Conv2DBackpropFilter", [image, i32(f), dy], **attrs, **near)
    integers = np.arange(18, dtype=np.int32).reshape(1, 3, 3, 2)
    weights = np.arange(8, dtype=np.int32).reshape(2, 2, 2, 1) - 3
    add("Conv2D", [integers, weights], strides=[1, 1, 1, 1], padding="SAME")
    add("Conv", [integers, weights], strides=[1, 1, 1, 1], padding="VALID")
    add("Conv2DBackpropInput", [i32([1, 3, 3, 2]), weights, integers[:, :, :, :1]],
        strides=[1, 1, 1, 1], padding="SAME")
    for multiplier in [1, 2]:
        for padding in ["SAME", "VALID"]:
            attrs = dict(strides=[1, 2, 2, 1], padding=padding)
            image = random(tf.float32, (2, 5, 4, 3), seed=1)
            weights = random(tf.float32, (3, 2, 3, multiplier), seed=2)
            add("DepthwiseConv2dNative", [image, weights], **attrs, **near)
            y = tf.raw_ops.DepthwiseConv2dNative(input=image, filter=weights, **attrs)
            dy = random(tf.float32, y.shape, seed=3)
            add("DepthwiseConv2dNativeBackpropInput", [i32([2, 5, 4, 3]), weights, dy], **attrs,
                **near)
            add("DepthwiseConv2dNativeBackpropFilter", [image, i32([3, 2, 3, multiplier]), dy],
                **attrs, **near)
    for padding in ["SAME", "VALID"]:
        attrs = dict(strides=[1, 1, 2, 1, 1], padding=padding)
        volume = random(tf.float32, (1, 3, 4, 3, 2), seed=1)
        weights = random(tf.float32, (2, 2, 3, 2, 2), seed=2)
        add("Conv3D", [volume, weights], **attrs, **near)
        y = tf.raw_ops.Conv3D(input=volume, filter=weights, **attrs)
        dy = random(tf.float32, y.shape, seed=3)
        add("Conv3DBackpropInputV2", [i32([1, 3, 4, 3, 2]), weights, dy], **attrs, **near)
        add("Conv3DBackpropFilterV2", [volume, i32([2, 2, 3, 2, 2]), dy], **attrs, **near)
    zeros = lambda *shape: np.zeros(shape, np.float32)
    valid = dict(strides=[1, 1, 1, 1], padding="VALID")
    add("Conv2D", [zeros(0, 3, 3, 1), zeros(2, 2, 1, 4)], **valid)
    add("Conv2D", [zeros(1, 1, 3, 1), zeros(3, 3, 1, 1)], **valid)
    add("Conv2D", [zeros(1, 3, 3, 3), zeros(1, 1, 2, 1)], **valid)
    add("Conv2D", [zeros(1, 0, 2, 1), zeros(1, 1, 1, 1)], strides=[1, 1, 1, 1], padding="EXPLICIT",
        explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0])
    add("Conv2DBackpropInput", [i32([0, 3, 3, 1]), zeros(2, 2, 1, 1), zeros(0, 2, 2, 1)], **valid)
    add("Conv2DBackpropInput", [i32([3, 3]), zeros(2, 2, 1, 1) + 1, zeros(1, 2, 2, 1) + 1], **valid)
    add("Conv2DBackpropInput", [i32([1, 4, 3, 1]), zeros(2, 2, 1, 1), zeros(1, 2, 2, 1)], **valid)
    add("Conv2DBackpropFilter", [zeros(0, 3, 3, 1), i32([2, 2, 1, 1]), zeros(0, 2, 2, 1)], **valid)
    add("Conv2DBackpropFilter", [zeros(1, 3, 3, 1), i32([2, 2, 1, 2]), zeros(1, 2, 2, 1)], **valid)
    for stride in [1, 2, 3]:
        for size in [3, 4, 5, 6]:
            add("Conv2D", [zeros(1, 2, 2, 1), zeros(size, size, 1, 1)],
                strides=[1, stride, stride, 1], padding="VALID")
    image = random(tf.float32, (1, 4, 3, 2), seed=1)
    weights = random(tf.float32, (2, 2, 2, 3), seed=2)
    for mode in ["REFLECT", "SYMMETRIC"]:
        attrs = dict(mode=mode, strides=[1, 1, 2, 1], padding="VALID")
        padding = i32([[0, 0], [1, 2], [0, 1], [0, 0]])
        add("FusedPadConv2D", [image, padding, weights], **attrs, **near)
        add("FusedResizeAndPadConv2D", [image, i32([6, 4]), padding, weights], **attrs, **near)
