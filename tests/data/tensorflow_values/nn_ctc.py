"""Calls of CTCLoss, CTCGreedyDecoder and CTCBeamSearchDecoder. CTCLossV2 has no kernel for the CPU."""


def calls(add):
    near = {tf.float32: {"rtol": 2e-5, "atol": 2e-6}, tf.float64: {"rtol": 2e-6, "atol": 2e-7}}

    def labels(rows):
        indices = [[b, i] for b, row in enumerate(rows) for i in range(len(row))]
        values = [v for row in rows for v in row]
        return np.array(indices, np.int64).reshape(-1, 2), i32(values)

    for dtype in [tf.float32, tf.float64]:
        x = random(dtype, [7, 3, 5], -3, 3)
        for rows in [[[0, 1, 2], [3, 3], [1]], [[1], [2, 2, 2], [0, 1, 0, 1]], [[4], [0], [0, 4, 4]]]:
            for lengths in [[7, 6, 5], [7, 5, 7]]:
                indices, values = labels(rows)
                inputs = [x, indices, values, i32(lengths)]
                for collapse in [False, True]:
                    for merge in [False, True]:
                        attrs = {"preprocess_collapse_repeated": collapse, "ctc_merge_repeated": merge}
                        if any(row == [4] for row in rows):
                            continue
                        add("CTCLoss", inputs, **attrs, **near[dtype])
        indices, values = labels([[0, 1, 2], [3, 3], [1]])
        for ignore in [False, True]:
            for lengths in [[2, 6, 5], [0, 7, 7], [3, 2, 1], [8, 1, 1], [-1, 3, 3]]:
                add(
                    "CTCLoss",
                    [x, indices, values, i32(lengths)],
                    ignore_longer_outputs_than_inputs=ignore,
                    **near[dtype],
                )
        # No path gives the labels: equal labels need a blank between them.
        same, two = labels([[1, 1]])
        add("CTCLoss", [x[:2, :1], same, two, i32([2])], **near[dtype])
        # TensorFlow's softmax becomes zero for larger differences.
        far = x * dtype.as_numpy_dtype(5)
        add("CTCLoss", [far, indices, values, i32([7, 7, 7])], rtol=1e-4, atol=1e-5)
    x = random(tf.float32, [4, 2, 4])
    for rows in [[[0, -1], [1]], [[0, 3, 1], [1]], [[0, 3, 3], [1, 9]], [[], [1]], [[0, 1, 2, 0, 1], [1]]]:
        add("CTCLoss", [x, *labels(rows), i32([4, 4])], **near[tf.float32])
    add("CTCLoss", [x, i64([[0, 0], [2, 0]]), i32([1, 1]), i32([4, 4])])
    add("CTCLoss", [x, i64([[0, 0], [0, 0]]), i32([1, 1]), i32([4, 4])])
    add("CTCLoss", [x, i64([[1, 0], [0, 0]]), i32([1, 1]), i32([4, 4])])
    add("CTCLoss", [x, i64([[0, 1], [1, 3]]), i32([1, 1]), i32([4, 4])], **near[tf.float32])
    add("CTCLoss", [x, i64([[0, 0], [1, 0]]), i32([1]), i32([4, 4])])
    add("CTCLoss", [x, i64([[0, 0], [1, 0]]), i32([1, 1]), i32([4])])
    add("CTCLoss", [x[0], i64([[0, 0], [1, 0]]), i32([1, 1]), i32([4, 4])])

    for dtype in [tf.float32, tf.float64]:
        for seed in [1, 2, 3]:
            x = random(dtype, [9, 4, 4], -2, 2, seed=seed)
            for lengths in [[9, 9, 9, 9], [3, 0, 9, 1]]:
                for merge in [False, True]:
                    for blank in [-1, 0, 2, -4]:
                        add(
                            "CTCGreedyDecoder",
                            [x, i32(lengths)],
                            merge_repeated=merge,
                            blank_index=blank,
                            **near[dtype],
                        )
            for width, paths in [(1, 1), (2, 2), (5, 3), (20, 4), (100, 10)]:
                for merge in [False, True]:
                    for lengths in [[9, 9, 9, 9], [3, 4, 9, 4]]:
                        add(
                            "CTCBeamSearchDecoder",
                            [x, i32(lengths)],
                            beam_width=width,
                            top_paths=paths,
                            merge_repeated=merge,
                            **near[dtype],
                        )
    x = random(tf.float32, [3, 2, 3])
    for lengths in [[3, 4], [3], [-1, 3]]:
        add("CTCGreedyDecoder", [x, i32(lengths)])
        add("CTCBeamSearchDecoder", [x, i32(lengths)], beam_width=2, top_paths=1, **near[tf.float32])
    add("CTCGreedyDecoder", [x, i32([3, 3])], blank_index=3)
    add("CTCGreedyDecoder", [x, i32([3, 3])], blank_index=-4)
    add("CTCGreedyDecoder", [x[0], i32([3, 3])])
    add("CTCGreedyDecoder", [x[:0], i32([0, 0])])
    add("CTCBeamSearchDecoder", [x, i32([3, 3])], beam_width=2, top_paths=3)
    add("CTCBeamSearchDecoder", [x, i32([0, 0])], beam_width=5, top_paths=2)
    add("CTCBeamSearchDecoder", [x[:, :, :1], i32([3, 3])], beam_width=5, top_paths=1)
