"""Calls of the ops in ops/image/crop_and_resize.cc."""


def calls(add):
    x = random(tf.int32, (2, 5, 6, 2), 0, 100)
    boxes = f32([[0, 0, 1, 1], [0.13, 0.23, 0.7, 0.61], [0.9, 1.2, -0.3, 0.1], [0.5, 0.5, 0.5, 0.5]])
    index = i32([0, 1, 1, 0])
    for size in [(3, 4), (1, 1), (6, 2)]:
        g = random(tf.float32, (4, *size, 2), -2, 2)
        for array in [f32, f64, f16, u8, i8, i16, u16, i32, i64]:
            for method in ["bilinear", "nearest"]:
                add("CropAndResize", [array(x), boxes, index, i32(size)], method=method,
                    extrapolation_value=0.5)
            add("CropAndResizeGradBoxes", [g, array(x), boxes, index], atol=1e-2, rtol=1e-4)
        for T in [tf.float32, tf.float64]:
            for method in ["bilinear", "nearest"]:
                add("CropAndResizeGradImage", [g, boxes, index, i32([2, 5, 6, 2])], T=T,
                    method=method, atol=1e-4, rtol=1e-4)
    one = f32([[0, 0, 1, 1]])
    add("CropAndResize", [f32(x), one, i32([2]), i32([1, 1])])
    add("CropAndResize", [f32(x), one, i32([-1]), i32([1, 1])])
    add("CropAndResize", [f32(x), one, i32([0, 1]), i32([1, 1])])
    add("CropAndResize", [f32(x), one, i32([0]), i32([0, 1])])
    add("CropAndResize", [f32(x), f32([[0, 0, np.nan, 1]]), i32([0]), i32([1, 1])])
    add("CropAndResize", [f32(x), np.zeros((0, 4), np.float32), i32([]), i32([2, 2])])
