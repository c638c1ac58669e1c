"""Calls of the ops of ops/sparse."""


def calls(add):
    index = i64([[0, 1], [1, 0], [1, 2]])
    shape = i64([2, 3])
    unordered = i64([[1, 2], [0, 1], [1, 0]])
    empty = np.zeros([0, 2], np.int64)
    moved = [i8, i32, i64, u16, f16, bf16, f32, f64, c64, boolean, text]

    def values(array, n=3):
        return array(["a", "b", "c" * 40, "d"][:n]) if array is text else array([1, 0, 3, 1][:n])

    for array in moved:
        for order in [index, unordered, i64([[1, 2], [0, 1], [1, 2]])]:
            add("SparseReorder", [order, values(array), shape])
        for start, size in [([1, 0], [1, 3]), ([1, 1], [5, 5]), ([5, 1], [5, 5]), ([-1, 1], [5, 5]), ([0, 0], [0, 3])]:
            add("SparseSlice", [index, values(array), shape, i64(start), i64(size)])
        others = [[index, i64([[0, 0]])], [values(array), values(array, 1)]]
        for axis, second in [(1, [2, 4]), (0, [4, 3]), (-1, [2, 4]), (1, [3, 4]), (2, [2, 3])]:
            add("SparseConcat", [*others, [shape, i64(second)]], concat_dim=axis)
        add("SparseConcat", [[unordered, empty], [values(array), values(array, 0)], [shape, shape]], concat_dim=1)
        for axis, n in [(1, 2), (1, 3), (0, 2), (-1, 2), (0, 1), (1, 4), (2, 2)]:
            add("SparseSplit", [i64(axis), index, values(array), shape], num_split=n)
        default = text("-") if array is text else array(1)
        for rows in [[[0, 1], [2, 0], [2, 1]], [[2, 1], [0, 0], [2, 0]], [[0, 0], [1, 0], [2, 0]]]:
            add("SparseFillEmptyRows", [i64(rows), values(array), i64([4, 3]), default])
        for integer in [i32, i64]:
            add("SparseToDense", [integer(index), integer(shape), values(array), default])
            add("SparseToDense", [integer([2, 0]), integer([3]), values(array, 2), default], validate_indices=False)
    add("SparseSlice", [index, values(f32), shape, i64([0, 1]), i64([5, -5])])
    add("SparseFillEmptyRows", [empty, f32([]), i64([2, 3]), f32(9)])
    add("SparseFillEmptyRows", [empty, f32([]), i64([0, 3]), f32(9)])
    add("SparseFillEmptyRows", [i64([[0, 1]]), f32([1]), i64([0, 3]), f32(9)])
    add("SparseFillEmptyRows", [i64([[5, 1]]), f32([1]), i64([2, 3]), f32(9)])
    for indices, vals in [([1, 1], [1, 2]), ([2, 1], [1, 2]), ([5], [1]), ([-1], [1])]:
        for validate in [True, False]:
            add("SparseToDense", [i64(indices), i64([3]), f32(vals), f32(0)], validate_indices=validate)
    add("SparseToDense", [i64(2), i64([3]), f32(1), f32(0)])
    add("SparseToDense", [i64([0, 2]), i64([3]), f32(1), f32(5)])
    add("SparseToDense", [empty, shape, f32([]), f32(5)])
    for new in [[3, -1], [6], [-1], [1, 2, 3, 1], [4, -1], [5], [-1, -1], [-2, 3]]:
        add("SparseReshape", [index, shape, i64(new)])
    add("SparseReshape", [empty, i64([0, 3]), i64([-1, 2])])
    add("SparseReshape", [empty, i64([0, 3]), i64([0, -1])])

    numbers = [i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64]
    for array in numbers + [c64, c128]:
        v = array([7, 2, 3])
        add("SparseSliceGrad", [array([7]), index, i64([1, 1]), i64([[0, 1]])])
        add("SparseSliceGrad", [array([7, 1]), index, i64([0, 1]), i64([[0, 0], [1, 1]])])
        add("SparseFillEmptyRowsGrad", [i64([0, 2]), array([1, 2, 4, 8])])
        add("SparseTensorDenseAdd", [index, v, shape, array([[2, 4, 8], [16, 32, 64]])])
        for axes in [0, 1, -1, [0, 1], [], [0, 0], [-2, 1], 2]:
            for keep_dims in [False, True]:
                add("SparseReduceSum", [index, v, shape, i32(axes)], keep_dims=keep_dims)
                add("SparseReduceSumSparse", [index, v, shape, i32(axes)], keep_dims=keep_dims)
        add("SparseReduceSum", [unordered, v, shape, i32([0])])
        add("SparseReduceSumSparse", [unordered, v, shape, i32([1])])
        add("SparseReduceSum", [empty, array([]), shape, i32([0])])
        add("SparseReduceSumSparse", [empty, array([]), shape, i32([0])])
    for array in numbers:
        v = array([7, 2, 3])
        for dense in [[[2, 4, 8], [16, 32, 64]], [2, 4, 8], 2, [[2], [4]], [[2], [4], [5]], [[[2]]]]:
            for op in ["SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"]:
                add(op, [index, v, shape, array(dense)])
        for axes in [0, 1, [0, 1], []]:
            add("SparseReduceMax", [unordered, v, shape, i32(axes)])
            add("SparseReduceMaxSparse", [unordered, v, shape, i32(axes)], keep_dims=True)
        add("SparseReduceMax", [empty, array([]), shape, i32([0])])
        pair = [index, v, shape, i64([[0, 1], [1, 1]]), array([9, 1]), shape]
        add("SparseSparseMaximum", pair)
        add("SparseSparseMinimum", pair)
    add("SparseDenseCwiseDiv", [index, i32([1, 2, 3]), shape, i32(0)])
    add("SparseTensorDenseAdd", [index, f32([1, 2, 3]), shape, f32([[2, 4, 8]])])
    add("SparseTensorDenseAdd", [i64([[0, 3]]), f32([1]), shape, f32([[2, 4, 8], [1, 2, 3]])])

    for array in [i8, i16, i32, i64, f32, f64, c64, c128]:
        real = {c64: f32, c128: f64}.get(array, array)
        other = i64([[0, 1], [1, 1]])
        for threshold in [0, 1, 3]:
            add("SparseAdd", [index, array([1, 2, 3]), shape, other, array([-1, 6]), shape, real(threshold)])
        add("SparseAdd", [index, array([1, 2, 3]), shape, empty, array([]), shape, real(0)])
        sums = i64([[0, 1], [1, 0], [1, 1], [1, 2]])
        add("SparseAddGrad", [array([1, 2, 3, 4]), index, other, sums])
        add("SparseAddGrad", [array([2, 3, 4]), index, other, sums[1:]])
    add("SparseAdd", [index, f32([1, 2, 3]), shape, empty, f32([]), i64([3, 3]), f32(0)])
    add("SparseSparseMinimum", [index, f32([-1, 2, 3]), shape, i64([[0, 1], [1, 1]]), f32([-5, -6]), shape])

    for array in [f16, bf16, f32, f64, i32, c64, c128]:
        b = array([[1, 2], [3, 4], [5, 6]])
        v = array([1, -2, 3])
        if array in (c64, c128):
            b, v = b + array(1j) * b[::-1], v * array(1 + 2j)
        for integer in [i32, i64]:
            add("SparseTensorDenseMatMul", [integer(index), v, shape, b])
        add("SparseTensorDenseMatMul", [unordered, v, shape, b[:2]], adjoint_a=True)
        add("SparseTensorDenseMatMul", [index, v, shape, b.T.copy()], adjoint_b=True)
        add("SparseTensorDenseMatMul", [empty, v[:0], shape, b])
    add("SparseTensorDenseMatMul", [index, f32([1, 2, 3]), shape, f32([[1, 3, 5], [2, 4, 6]])])
    add("SparseTensorDenseMatMul", [i64([[0, 7]]), f32([1]), shape, f32([[1, 2], [3, 4], [5, 6]])])

    for array, ulps in [(f16, 2), (f32, 4), (f64, 4)]:
        v = array([1, 2, 3.5])
        add("SparseSoftmax", [index, v, shape], ulps=ulps)
        add("SparseSoftmax", [unordered, v, shape], ulps=ulps)
        add("SparseSoftmax", [i64([[0, 0, 1], [0, 0, 2], [0, 1, 0]]), v, i64([1, 2, 3])], ulps=ulps)
    add("SparseSoftmax", [i64([[0], [1], [2]]), f32([1, 2, 3]), i64([3])])

    indices = [i64([[0, 0], [0, 1], [1, 0]]), i64([[0, 0], [1, 0], [1, 3]])]
    shapes = [i64([2, 2]), i64([2, 4])]
    ints, strings = i64([1, -2, 3 << 40]), text(["a", "b", "c"])
    dense = [i64([[7, 8], [9, 10]]), text([["x"], ["y"]])]
    for values in [[ints, strings], [strings, ints], [strings, strings], [ints, ints]]:
        for denses in [[], dense]:
            add("SparseCrossV2", [indices, values, shapes, denses, text("-")])
            # TensorFlow reads outside of its memory for strong hashes of dense integers.
            for strong in [False] if denses else [False, True]:
                for buckets in [0, 50, -1]:
                    options = [i64(buckets), boolean(strong), i64([3, 5])]
                    add("SparseCrossHashed", [indices, values, shapes, denses] + options)
            for out_type in [tf.int64, tf.string]:
                attrs = {"hashed_output": True, "hash_key": 956888297470, "out_type": out_type, "internal_type": tf.int64}
                add("SparseCross", [indices, values, shapes, denses], num_buckets=0, **attrs)
                add("SparseCross", [indices, values, shapes, denses], num_buckets=100, **attrs)
    for strong in [False, True]:
        options = [i64(0), boolean(strong), i64([-3, 5])]
        add("SparseCrossHashed", [[], [], [], [text([["a", "bc"]])]] + options)
    for out_type in [tf.int64, tf.string]:
        attrs = {"hashed_output": False, "num_buckets": 0, "hash_key": 1, "out_type": out_type, "internal_type": tf.string}
        add("SparseCross", [indices[:1], [strings], shapes[:1], dense[1:]], **attrs)
        add("SparseCross", [indices[:1], [ints], shapes[:1], dense[1:]], **attrs)
    for denses in [[], [i64([[-1, 2]]), i64([[3]])], [i64([1, 2])], [i64([[], []])], [i64([[1], [2]]), i64([[1]])]]:
        add("SparseCrossV2", [[], [], [], denses, text("")])
    add("SparseCrossV2", [indices, [ints, ints], [i64([2, 2]), i64([3, 4])], [], text("-")])
    add("SparseCrossV2", [[i64([[0, 0, 0]])], [i64([1])], [i64([2, 2, 2])], [], text("-")])
    add("SparseCrossV2", [[i64([[0, 5]])], [i64([1])], [i64([2, 2])], [], text("-")])
    add("SparseCrossHashed", [[], [], [], dense, i64(0), boolean(False), i64([3])])
