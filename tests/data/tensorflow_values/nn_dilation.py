"""Calls of the ops in ops/nn/dilation.cc."""


def calls(add):
    # Sums of two numbers, and ties.
    images = np.array([3, 1, 2, 3, 0, 3, 1, 1, 2, 2, 0, 1, 3, 2, 1, 0, 2, 3, 1, 3, 3, 0, 2, 1])
    filters = np.array([0, 1, 1, 0, 0, 0, 1, 1])
    for dtype in [np.float32, np.float64, np.float16, np.int32, np.uint8, np.int64]:
        x = images.reshape(1, 4, 3, 2).astype(dtype)
        f = filters.reshape(2, 2, 2).astype(dtype)
        for padding in ["SAME", "VALID"]:
            for stride, rate in [(1, 1), (2, 1), (1, 2)]:
                attrs = dict(strides=[1, stride, 1, 1], rates=[1, 1, rate, 1], padding=padding)
                add("Dilation2D", [x, f], **attrs)
                y = tf.raw_ops.Dilation2D(input=x, filter=f, **attrs)
                dy = (np.arange(np.prod(y.shape)) % 5).reshape(y.shape).astype(dtype)
                add("Dilation2DBackpropInput", [x, f, dy], **attrs)
                add("Dilation2DBackpropFilter", [x, f, dy], **attrs)
    attrs = dict(strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
    nan = f32([np.nan, 1, np.nan, np.nan]).reshape(1, 1, 4, 1)
    add("Dilation2D", [nan, np.zeros((1, 2, 1), np.float32)], **attrs)
    add("Dilation2D", [nan, np.zeros((1, 2, 2), np.float32)], **attrs)
    add("Dilation2D", [nan, np.zeros((1, 2, 1), np.float32)], strides=[1, 0, 1, 1],
        rates=[1, 1, 1, 1], padding="SAME")
