"""Calls of the ops in ops/image/color.cc."""


def calls(add):
    pixels = [[[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0]],
              [[0, 1, 0], [0, 0, 1], [1, 1, 0], [0.25, 0.75, 0.5]],
              [[0.75, 0.25, 0.5], [0.125, 0.5, 0.75], [0.5, 0.125, 0.75], [1, 0, 1]]]
    for array, tolerance in [(f32, 1e-6), (f64, 1e-12), (f16, 4e-3), (bf16, 3e-2)]:
        near = {"atol": tolerance, "rtol": tolerance}
        add("RGBToHSV", [array(pixels)], **near)
        add("HSVToRGB", [array(pixels)], **near)
    near = {"atol": 2e-6, "rtol": 1e-5}
    for delta in [0.0, 0.1, -0.3, 1.7, -2.25]:
        add("AdjustHue", [f32(pixels), f32(delta)], **near)
    for scale in [0.0, 0.5, 1.0, 2.0]:
        add("AdjustSaturation", [f32(pixels), f32(scale)], **near)
    for factor in [0.0, 0.5, 1.0, -2.0]:
        add("AdjustContrastv2", [f32(pixels), f32(factor)], **near)
    images = random(tf.float32, (2, 3, 4, 2), -1, 1)
    add("AdjustContrastv2", [images, f32(1.5)], **near)
    for op in ["RGBToHSV", "HSVToRGB"]:
        add(op, [f32([1, 2])])
        add(op, [np.zeros((0, 3), np.float32)])
    for op in ["AdjustHue", "AdjustSaturation", "AdjustContrastv2"]:
        add(op, [f32([[1, 2, 3]]), f32(1)])
        add(op, [f32(pixels), f32([1])])
        add(op, [np.zeros((2, 0, 4, 3), np.float32), f32(1)])
    add("AdjustHue", [images, f32(1)])
