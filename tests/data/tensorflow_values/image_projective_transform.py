"""Calls of the ops in ops/image/projective_transform.cc."""


def calls(add):
    x = random(tf.int32, (2, 4, 5, 2), 0, 100)
    transforms = [[1, 0, 0, 0, 1, 0, 0, 0], [0.8, -0.4, 1.25, 0.3, 0.9, -1.5, 0, 0],
                  [-1.5, 0.25, 7.75, 0.5, 1.25, -3.25, 0.03125, -0.0625]]
    for mode in ["CONSTANT", "REFLECT", "WRAP", "NEAREST"]:
        for interpolation in ["NEAREST", "BILINEAR"]:
            attrs = dict(interpolation=interpolation, fill_mode=mode)
            for t in transforms:
                add("ImageProjectiveTransformV3", [f32(x), f32([t]), i32([5, 4]), f32(7)],
                    atol=1e-3, rtol=1e-4, **attrs)
            add("ImageProjectiveTransformV2", [f32(x), f32(transforms[1:]), i32([4, 5])], atol=1e-3,
                rtol=1e-4, **attrs)
    for array in [f64, f16, bf16, u8, i32, i64]:
        add("ImageProjectiveTransformV3", [array(x), f32([transforms[1]]), i32([4, 5]), f32(3)],
            interpolation="NEAREST")
        add("ImageProjectiveTransformV3", [array(x), f32([[0.5, 0, 0, 0, 0.5, 0, 0, 0]]),
                                           i32([4, 5]), f32(3)], interpolation="BILINEAR", atol=0.4,
            rtol=1e-3)
    zero = f32([[0, 0, 1, 0, 0, 1, -1, 0]])
    add("ImageProjectiveTransformV3", [f32(x), zero, i32([2, 2]), f32(9)], interpolation="NEAREST")
    add("ImageProjectiveTransformV2", [f32(x), f32([[1, 2, 3]]), i32([2, 2])], interpolation="NEAREST")
    add("ImageProjectiveTransformV2", [f32(x), zero, i32([0, 2])], interpolation="NEAREST")
