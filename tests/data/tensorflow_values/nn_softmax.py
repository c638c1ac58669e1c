"""Calls of the ops in ops/nn/softmax.cc, cross_entropy.cc and l2_loss.cc."""

INF = np.inf


def calls(add):
    rows = [[1, 2, 3], [-1, 0, 1], [0.5, 0.25, 8]]
    labels = [[0, 0, 1], [0.25, 0.5, 0.25], [1, 0, 0]]
    # TensorFlow rounds each operation on 16-bit floats.
    for array, tolerance in [(f32, 1e-6), (f64, 1e-14), (f16, 4e-3), (bf16, 4e-2)]:
        near = {"atol": tolerance, "rtol": tolerance}
        add("Softmax", [array(rows)], **near)
        add("LogSoftmax", [array(rows)], **near)
        add("L2Loss", [array(rows)], **near)
        add("SoftmaxCrossEntropyWithLogits", [array(rows), array(labels)], **near)
        add("SparseSoftmaxCrossEntropyWithLogits", [array(rows), i32([2, 0, 1])], **near)
        add("SparseSoftmaxCrossEntropyWithLogits", [array(rows), i64([2, 0, 1])], **near)
    for op in ["Softmax", "LogSoftmax"]:
        add(op, [f32([-INF, 0, 1])], ulps=4)
        add(op, [f32([[-INF, -INF], [INF, 0], [np.nan, 0]])])
        for shape in [(), (0,), (0, 3), (3, 0), (2, 2, 2), (1,)]:
            add(op, [np.ones(shape, np.float32)], ulps=2)
    add("L2Loss", [f32([])])
    add("L2Loss", [f32(3)])
    dense = "SoftmaxCrossEntropyWithLogits"
    pairs = [((1, 2), (2, 2)), ((2,), (2, 2)), ((2,), (2,)), ((), (1, 2)), ((2, 1), (1, 2))]
    pairs += [((1, 2, 2), (1, 2, 2)), ((1, 2), (1, 3)), ((2, 0), (2, 0)), ((0, 2), (0, 2))]
    for x, p in pairs:
        logits = np.arange(np.prod(x)).reshape(x).astype(np.float32)
        add(dense, [logits, np.full(p, 0.5, np.float32)], ulps=8)
    add(dense, [f32([[-INF, 0]]), f32([[1, 0]])])
    add(dense, [f32([[-INF, 0]]), f32([[0, 1]])])
    sparse = "SparseSoftmaxCrossEntropyWithLogits"
    one = f32([[1, 2, 3]])
    for logits, classes in [(one, [3]), (one, [-1]), (one, [0, 1]), (one, 1), (f32([1, 2]), [1])]:
        add(sparse, [logits, i32(classes)])
    add(sparse, [np.zeros((2, 0), np.float32), i32([0, 0])])
    add(sparse, [np.zeros((0, 2), np.float32), i32([])])
