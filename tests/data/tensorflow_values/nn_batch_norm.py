"""Calls of the ops in ops/nn/batch_norm.cc, batch_norm_grad.cc and batch_norm_global.cc."""


def calls(add):
    near = dict(atol=1e-5, rtol=1e-4)
    coarse = dict(atol=2e-2, rtol=2e-2)
    channels = [random(tf.float32, [3], low=0.5, high=2, seed=s) for s in [1, 2, 3, 4]]
    scale, offset, mean, variance = channels
    empty = f32([])
    for op in ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"]:
        dtypes = [tf.float32] if op == "FusedBatchNorm" else [tf.float32, tf.half, tf.bfloat16]
        for dtype in dtypes:
            x = random(dtype, (2, 3, 4, 3))
            tolerance = near if dtype == tf.float32 else coarse
            add(op, [x, scale, offset, mean, variance], is_training=False, unset=[3, 4],
                **tolerance)
            for factor in [1.0, 0.25]:
                moments = [empty, empty] if factor == 1 else [mean, variance]
                add(op, [x, scale, offset, *moments], epsilon=0.01,
                    exponential_avg_factor=factor, **tolerance)
    add("FusedBatchNorm", [random(tf.float32, (2, 3, 4, 3)), scale[:2], offset, empty, empty])
    add("FusedBatchNorm", [random(tf.float32, (2, 3)), scale, offset, empty, empty])
    add("FusedBatchNorm", [random(tf.float32, (2, 3, 4, 3)), scale, offset, empty, empty],
        is_training=False)
    for op in ["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"]:
        for training in [True, False]:
            dy, x = random(tf.float32, (2, 3, 4, 3), seed=1), random(tf.float32, (2, 3, 4, 3), seed=2)
            last = [empty] if op == "FusedBatchNormGradV3" else []
            add(op, [dy, x, scale, mean, variance, *last], is_training=training, epsilon=0.01, **near)
    x, dy = random(tf.float32, (2, 3, 2, 3), seed=1), random(tf.float32, (2, 3, 2, 3), seed=2)
    for scaled in [False, True]:
        attrs = dict(variance_epsilon=0.01, scale_after_normalization=scaled)
        add("BatchNormWithGlobalNormalization", [x, mean, variance, offset, scale], **attrs, **near)
        add("BatchNormWithGlobalNormalizationGrad", [x, mean, variance, scale, dy], **attrs, **near)
