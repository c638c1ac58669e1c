"""Calls of the ops in ops/image/scale_and_translate.cc."""


def calls(add):
    x = random(tf.int32, (1, 5, 4, 2), 0, 100)
    near = dict(atol=1e-4, rtol=1e-4)
    kernels = ["lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic",
               "mitchellcubic"]
    cases = [((7, 6), (1.4, 1.5), (0.0, 0.0)), ((3, 2), (0.5, 0.4), (0.25, -0.3)),
             ((4, 5), (1.0, 2.0), (3.0, -2.5))]
    for kernel in kernels:
        for size, scale, move in cases:
            for antialias in [True, False]:
                attrs = dict(kernel_type=kernel, antialias=antialias)
                g = random(tf.float32, (1, *size, 2), -2, 2)
                add("ScaleAndTranslate", [f32(x), i32(size), f32(scale), f32(move)], **attrs, **near)
                if kernel in ("lanczos3", "triangle"):
                    add("ScaleAndTranslateGrad", [g, f32(x), f32(scale), f32(move)], **attrs, **near)
    for array in [u8, i8, i16, u16, i32, i64, f16, bf16, f64]:
        add("ScaleAndTranslate", [array(x), i32([3, 3]), f32([0.5, 1.5]), f32([0, 0.5])], **near)
    add("ScaleAndTranslate", [f32(x), i32([3, 3]), f32([0, 1]), f32([0, 0])])
    add("ScaleAndTranslate", [f32(x), i32([3, 3]), f32([1, 1]), f32([0, 0])], kernel_type="cubic")
    add("ScaleAndTranslate", [f32(x), i32([0, 3]), f32([1, 1]), f32([0, 0])])
