"""Calls of the ops in ops/nn/lrn.cc."""


def calls(add):
    x = [[[[1, 2, 3, 4], [-1, 0.5, 0, 2]]]]
    g = [[[[1, -1, 0.5, 2], [3, 1, -2, 0.25]]]]
    y = [[[[0.5, 0.25, 1, -1], [1, 2, 0.5, 0.75]]]]
    # TensorFlow rounds each operation on half, and has no kernel for bfloat16.
    for array, tolerance in [(f32, 1e-5), (f16, 1e-2)]:
        near = {"atol": tolerance, "rtol": tolerance}
        for radius in [0, 1, 2, 5]:
            for bias, alpha, beta in [(1.0, 1.0, 0.5), (2.0, 0.25, 0.75), (1.5, 0.5, 1.0)]:
                attrs = dict(depth_radius=radius, bias=bias, alpha=alpha, beta=beta)
                add("LRN", [array(x)], **attrs, **near)
                if array is f32:
                    add("LRNGrad", [array(g), array(x), array(y)], **attrs, **near)
    for shape in [(1, 0, 2, 3), (1, 1, 2, 0), (1, 2, 3), (1, 1, 1, 2, 2)]:
        add("LRN", [np.zeros(shape, np.float32)])
    for radius in [-1, 2**40]:
        add("LRN", [f32(x)], depth_radius=radius)
    add("LRNGrad", [f32(g), f32(x), f32(y)[:, :, :1]])
    add("LRNGrad", [f32(g), f32(x)[:, :, :1], f32(y)])
