"""Calls of the ops in ops/nn/fractional_pool.cc."""


def calls(add):
    x = random(tf.int32, (1, 8, 7, 2), -20, 20)
    for array, near in [(f32, {"atol": 1e-5, "rtol": 1e-5}), (f64, {"atol": 1e-12, "rtol": 1e-12}),
                        (i32, {}), (i64, {})]:
        for pseudo_random in [False, True]:
            for overlapping in [False, True]:
                attrs = dict(pooling_ratio=[1.0, 1.44, 1.73, 1.0], pseudo_random=pseudo_random,
                             overlapping=overlapping, deterministic=True, seed=11, seed2=7)
                add("FractionalMaxPool", [array(x)], **attrs)
                add("FractionalAvgPool", [array(x)], **attrs, **near)
                outputs = tf.raw_ops.FractionalMaxPool(value=array(x), **attrs)
                y, rows, columns = [t.numpy() for t in outputs]
                add("FractionalMaxPoolGrad", [array(x), y, y, rows, columns], overlapping=overlapping)
                add("FractionalAvgPoolGrad", [i64(x.shape), y, rows, columns],
                    overlapping=overlapping, **near)
    for ratio in [3.5, 1.0, 8.0]:
        add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, ratio, 1.0, 1.0], pseudo_random=True,
            deterministic=True, seed=1, seed2=2)
        add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, ratio, 1.0, 1.0],
            deterministic=True, seed=1, seed2=2)
    add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, 0.5, 1.0, 1.0])
    add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, 12.0, 1.0, 1.0])
    add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, 1.0, 1.0, 2.0])
    add("FractionalMaxPool", [f32(x)], pooling_ratio=[1.0, 2.0, 1.0, 1.0], seed=1)
