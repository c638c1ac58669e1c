"""Calls of the ops in ops/image/resize.cc and resize_nearest.cc."""

SIZES = [(3, 7), (8, 2), (4, 3), (1, 1), (9, 6)]


def calls(add):
    x = random(tf.int32, (1, 4, 3, 1), 0, 100)
    modes = [(False, False), (True, False), (False, True)]
    for array in [f32, f64, f16, bf16, u8, i8, i16, u16, i32, i64]:
        sizes = SIZES if array is f32 else SIZES[:1]
        for size in sizes:
            for align, half in modes:
                attrs = dict(align_corners=align, half_pixel_centers=half)
                add("ResizeBilinear", [array(x), i32(size)], **attrs)
                add("ResizeNearestNeighbor", [array(x), i32(size)], **attrs)
                add("ResizeBicubic", [array(x), i32(size)], atol=1e-4, rtol=1e-5, **attrs)
                if not half:
                    add("ResizeArea", [array(x), i32(size)], align_corners=align, atol=1e-4, rtol=1e-5)
    for size in SIZES:
        g = random(tf.float32, (1, *size, 1), -2, 2)
        for align, half in modes:
            attrs = dict(align_corners=align, half_pixel_centers=half)
            for array in [f32, f64]:
                near = dict(atol=1e-5, rtol=1e-5)
                add("ResizeBilinearGrad", [f32(g), array(x)], **attrs, **near)
                add("ResizeBicubicGrad", [f32(g), array(x)], **attrs, **near)
                add("ResizeNearestNeighborGrad", [array(g), i32([4, 3])], **attrs, **near)
        for array in [u8, i8, i32]:
            ints = array(random(tf.int32, (1, *size, 1), 0, 9))
            add("ResizeNearestNeighborGrad", [ints, i32([4, 3])])
    for op in ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "ResizeArea"]:
        for size in [[0, 1], [-1, 2], [1], [1, 2, 3]]:
            add(op, [f32(x), i32(size)])
        add(op, [f32([[1]]), i32([1, 1])])
        add(op, [np.zeros((1, 0, 3, 1), np.float32), i32([1, 1])])
        add(op, [np.zeros((0, 2, 3, 1), np.float32), i32([1, 1])])
    for op in ["ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"]:
        add(op, [f32(x), i32([1, 1])], align_corners=True, half_pixel_centers=True)
