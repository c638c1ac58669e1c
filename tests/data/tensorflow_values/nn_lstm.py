"""Calls of the ops in ops/nn/lstm.cc."""


def calls(add):
    def inputs(dtype, steps, batch, size, cell):
        shapes = [(steps, batch, size), (batch, cell), (batch, cell), (size + cell, 4 * cell)]
        shapes += [(cell,), (cell,), (cell,), (4 * cell,)]
        return [random(dtype, shape, seed=i + 1) for i, shape in enumerate(shapes)]

    # TensorFlow rounds each operation on half.
    for dtype, tolerance in [(tf.float32, 2e-6), (tf.float16, 1e-2)]:
        near = {"atol": tolerance, "rtol": tolerance}
        for steps, batch, size, cell in [(1, 1, 1, 1), (3, 2, 3, 2)]:
            given = inputs(dtype, steps, batch, size, cell)
            for peephole in [False, True]:
                results = [random(dtype, (steps, batch, cell), seed=20 + i) for i in range(9)]
                for clip in [0.0, 0.25]:
                    attrs = dict(cell_clip=clip, use_peephole=peephole)
                    step = [given[0][0]] + given[1:]
                    add("LSTMBlockCell", step, forget_bias=0.5, **attrs, **near)
                    # TensorFlow leaves outputs of further steps uninitialized.
                    add("BlockLSTM", [i64(steps)] + given, forget_bias=0.5, **attrs, **near)
                    add("BlockLSTMV2", [i64(steps)] + given, **attrs, **near)
                step += [r[0] for r in results[:6] + results[7:]]
                add("LSTMBlockCellGrad", step, use_peephole=peephole, **near)
                for op in ["BlockLSTMGrad", "BlockLSTMGradV2"]:
                    for length in {steps, steps - 1}:
                        call = [i64(length)] + given + results
                        add(op, call, use_peephole=peephole, **near)
    for i, shape in [(1, (2, 3)), (2, (3, 2)), (3, (2, 3)), (4, (5, 9)), (4, (6, 8)), (5, (3,))]:
        call = [i64(2)] + inputs(tf.float32, 3, 2, 3, 2)
        call[i] = random(tf.float32, shape)
        add("BlockLSTM", call)
        # A matrix for x suits the cell.
        add("LSTMBlockCell", call[1:], atol=2e-6, rtol=2e-6)
