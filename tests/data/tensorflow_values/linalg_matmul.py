"""Calls of the ops in ops/linalg/matmul.cc and batch_matmul.cc."""


def calls(add):
    types = [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64,
             tf.complex128]
    for dtype in types:
        x = random(dtype, [2, 3], -9, 9).round()
        y = random(dtype, [3, 2], -9, 9, seed=2).round()
        for transpose in [False, True]:
            flags = dict(transpose_a=transpose, transpose_b=transpose)
            add("MatMul", [x, y], **flags)
            flags = dict(adj_x=transpose, adj_y=transpose)
            for op in ["BatchMatMul", "BatchMatMulV2"]:
                add(op, [np.stack([x, x + x]), np.stack([y + y, y])], **flags)
            add("BatchMatMulV2", [np.stack([x, x + x]), y], **flags)
            add("BatchMatMulV2", [x, np.stack([y, y + y]).reshape([2, 1] + list(y.shape))], **flags)
    for a in [f32, bf16]:
        for b in [f32, bf16]:
            add("SparseMatMul", [a([[1, 2], [0, 3]]), b([[1, 0, 4], [2, 1, 1]])])
            add("SparseMatMul", [a([[1, 2], [0, 3]]), b([[1, 0], [2, 1]])], transpose_b=True)
    for a in [i8, u8]:
        for b in [i8, u8]:
            add("BatchMatMulV3", [a([[100, 2]]), b([[100], [3]])], Tout=tf.int32)
    for b in [i8, u8]:
        add("BatchMatMulV3", [bf16([[1.5, 2]]), b([[100], [3]])], Tout=tf.bfloat16)
    ones = lambda *shape: np.ones(shape, np.float32)
    for x, y in [(ones(2, 2, 3), ones(1, 3, 2)), (ones(2, 2, 3), ones(3, 3, 2)),
                 (ones(2, 2, 3), ones(2, 2, 2)), (ones(3), ones(3, 2)), (ones(0, 2, 3), ones(3, 2)),
                 (ones(2, 2, 0), ones(2, 0, 3))]:
        for op in ["BatchMatMul", "BatchMatMulV2"]:
            if op == "BatchMatMulV2" or x.ndim == y.ndim:
                add(op, [x, y])
    # A zero of the sparse matrix contributes nothing.
    a = f32([[np.inf, 1], [0, 2]])
    b = f32([[0, 1], [1, 0]])
    for a_is_sparse in [False, True]:
        for b_is_sparse in [False, True]:
            attrs = dict(a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
            add("SparseMatMul", [a, b], **attrs)
            add("SparseMatMul", [b, a], **attrs)
            add("SparseMatMul", [a.astype(bf16(0).dtype), b], **attrs)
            for transpose in [1, 2, 3]:
                add("SparseMatMul", [a, b], transpose_a=transpose & 1 > 0,
                    transpose_b=transpose & 2 > 0, **attrs)
            add("SparseMatMul", [f32(np.zeros([2, 0])), f32(np.zeros([0, 2]))], **attrs)
