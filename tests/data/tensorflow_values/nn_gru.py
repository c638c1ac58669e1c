"""Calls of the ops in ops/nn/gru.cc."""


def calls(add):
    near = {"atol": 2e-6, "rtol": 2e-6}
    for batch, size, cell in [(1, 1, 1), (2, 3, 2), (3, 1, 4)]:
        shapes = [(batch, size), (batch, cell), (size + cell, 2 * cell), (size + cell, cell)]
        shapes += [(2 * cell,), (cell,)]
        given = [random(tf.float32, shape, seed=i + 1) for i, shape in enumerate(shapes)]
        add("GRUBlockCell", given, **near)
        results = [random(tf.float32, (batch, cell), seed=20 + i) for i in range(4)]
        add("GRUBlockCellGrad", given + results, **near)
        for i in range(6):
            wrong = list(given)
            wrong[i] = np.concatenate([given[i]] * 2)
            if i == 0 or batch > 1:
                add("GRUBlockCell", wrong)
