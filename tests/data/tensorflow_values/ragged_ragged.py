"""Calls of the ops of ops/ragged."""


def calls(add):
    for array in [f32, f64, i32, i64]:
        add("RaggedRange", [array([0, 5, 8]), array([3, 3, 8]), array([1, -1, 1])])
        add("RaggedRange", [array(0), array([3, 1, 5, -4]), array(2)], Tsplits=tf.int32)
        add("RaggedRange", [array(0), array(3), array(1)])
        add("RaggedRange", [array([]), array([]), array([])])
    add("RaggedRange", [f32([0, 1, 5]), f32([1, 2.05, 4]), f32([0.3, 0.1, -0.25])])
    for starts, limits, deltas in [([0], [3], [0]), ([0, 1], [3, 4, 5], [1]), ([0], [3, 4], [1]), ([[0]], [[3]], [[1]])]:
        add("RaggedRange", [i32(starts), i32(limits), i32(deltas)])
    add("RaggedRange", [f32([0]), f32([np.inf]), f32([1])])
    add("RaggedRange", [f32([0]), f32([np.nan]), f32([1])])

    one = [i64([0, 2, 2, 5])]
    two = [i64([0, 2, 3]), i64([0, 2, 2, 5])]
    for values in [f32([1, 2, 3, 4, 5]), text(["a", "b", "c", "d", "e"]), i8([[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]])]:
        add("RaggedTensorToSparse", [one, values])
        add("RaggedTensorToSparse", [two, values])
        for splits in [one, two]:
            rank = len(splits)
            for indices in [1, [1, 0], [[1, 0], [0, 0]], [], [[[0]], [[1]]], [0, 0, 0, 1]]:
                array = i32(indices)
                attrs = {"OUTPUT_RAGGED_RANK": rank + array.ndim - 1}
                add("RaggedGather", [splits, values, array], **attrs)
    add("RaggedGather", [one, f32([1, 2, 3, 4, 5]), i64([3])], OUTPUT_RAGGED_RANK=1)
    add("RaggedGather", [one, f32([1, 2, 3, 4, 5]), i64([-1])], OUTPUT_RAGGED_RANK=1)
    add("RaggedGather", [[i64([0, 9])], f32([1]), i64([0])], OUTPUT_RAGGED_RANK=1)
    add("RaggedGather", [[i64([0, 2, 1])], f32([1, 2]), i64([0])], OUTPUT_RAGGED_RANK=1)
    add("RaggedTensorToSparse", [[i64([0])], f32([])])
    for splits in [[1, 2], [0, 3], [], [0, 2, 1, 2]]:
        add("RaggedTensorToSparse", [[i64(splits)], f32([1, 2])])

    values = f32([1, 2, 3, 4, 5])
    splits = [i64([0, 2, 2, 5])]
    kind = ["ROW_SPLITS"]
    for shape in [[-1, -1], -1, [4, 2], [2, 2], [3, 5], [0, 0]]:
        add("RaggedTensorToTensor", [i64(shape), values, f32(9), splits], row_partition_types=kind)
        rowids = [i64(3), i64([0, 0, 2, 2, 2])]
        kinds = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
        add("RaggedTensorToTensor", [i64(shape), values, f32(9), rowids], row_partition_types=kinds)
    nested = [i64([0, 2, 3]), i64([0, 2, 2, 5])]
    for shape in [[-1, -1, -1], [-1, 1, 2], [3, 3, 3]]:
        add("RaggedTensorToTensor", [i64(shape), values, f32(0), nested], row_partition_types=kind * 2)
        mixed = [i64([0, 2, 3]), i64([0, 0, 2, 2, 2])]
        kinds = ["ROW_SPLITS", "VALUE_ROWIDS"]
        add("RaggedTensorToTensor", [i64(shape), values, f32(0), mixed], row_partition_types=kinds)
        rowids = [i64(2), i64([0, 0, 1]), i64([0, 0, 2, 2, 2])]
        kinds = ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "VALUE_ROWIDS"]
        add("RaggedTensorToTensor", [i64(shape), values, f32(0), rowids], row_partition_types=kinds)
    rows = f32([[1, 2], [3, 4], [5, 6]])
    for default in [0, [8, 9], [7], [8, 9, 7]]:
        inputs = [i32([-1, -1, -1]), rows, f32(default), [i32([0, 1, 3])]]
        add("RaggedTensorToTensor", inputs, row_partition_types=kind)
    add("RaggedTensorToTensor", [i64([-1, -1, 3]), rows, f32(0), [i64([0, 1, 3])]], row_partition_types=kind)
    inputs = [i64([-1, -1]), text(["a", "b"]), text("-"), [i64([0, 2, 2])]]
    add("RaggedTensorToTensor", inputs, row_partition_types=kind)
    for shape in [[-1, -1], [2, 3]]:
        add("RaggedTensorToTensor", [i64(shape), f32([]), f32(7), [i64([0])]], row_partition_types=kind)
    add("RaggedTensorToTensor", [i64([-1]), values, f32(0), splits], row_partition_types=kind)
    for bad in ["ROW_LENGTHS", "X", "VALUE_ROWIDS"]:
        add("RaggedTensorToTensor", [i64([-1, -1]), values, f32(0), splits], row_partition_types=[bad])
    for bad in [[0, 3, 2, 5]]:
        add("RaggedTensorToTensor", [i64([-1, -1]), values, f32(0), [i64(bad)]], row_partition_types=kind)
    rowids = [i64(3), i64([0, 0, 2, 2, 5])]
    kinds = ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]
    add("RaggedTensorToTensor", [i64([-1, -1]), values, f32(0), rowids], row_partition_types=kinds)

    for array in [i8, i32, i64, u16, f16, bf16, f32, f64, c64, boolean, text]:
        values = text(["a", "b", "c" * 40]) if array is text else array([1, 0, 3])
        default = text("-") if array is text else array(1)
        for rows in [[0, 2, 2], [2, 0, 2], [0, 1, 2], [3, 3, 3]]:
            add("RaggedFillEmptyRows", [i64(rows), values, i64(4), default])
        add("RaggedFillEmptyRows", [i64([]), values[:0], i64(2), default])
    # For no rows, TensorFlow returns row numbers of shape [0, 1].
    add("RaggedFillEmptyRows", [i64([0]), f32([1]), i64(0), f32(9)])
    add("RaggedFillEmptyRows", [i64([5]), f32([1]), i64(2), f32(9)])
    add("RaggedFillEmptyRows", [i64([0, 1]), f32([1]), i64(2), f32(9)])
    for array in [i8, i32, i64, f16, f32, f64, c64]:
        add("RaggedFillEmptyRowsGrad", [i64([0, 2]), array([1, 2, 4, 8])])
    add("RaggedFillEmptyRowsGrad", [i64([4]), f32([1, 2])])

    ints, strings = i64([1, -2, 3 << 40]), text(["a", "b", "c"])
    index, shape = i64([[0, 0], [1, 0], [1, 3]]), i64([2, 4])
    dense = {"i": i64([[7, 8], [9, 10]]), "s": text([["x"], ["y"]])}
    for out_values in [tf.int64, tf.string]:
        for out_splits, splits in [(tf.int64, i64([0, 2, 3])), (tf.int32, i32([0, 3, 3]))]:
            attrs = {"hashed_output": out_values == tf.int64, "hash_key": 956888297470, "out_values_type": out_values, "out_row_splits_type": out_splits}
            for buckets in [0, 100]:
                attrs["num_buckets"] = buckets
                for values in [ints, strings]:
                    add("RaggedCross", [[values], [splits], [], [], [], []], input_order="R", **attrs)
                    add("RaggedCross", [[values, strings], [splits, splits], [], [], [], []], input_order="RR", **attrs)
                    add("RaggedCross", [[values], [splits], [index], [values], [shape], []], input_order="RS", **attrs)
                    add("RaggedCross", [[values], [splits], [index], [ints], [shape], [dense["i"], dense["s"]]], input_order="DSRD", **attrs)
                    add("RaggedCross", [[], [], [index], [values], [shape], [dense["s"]]], input_order="SD", **attrs)
                add("RaggedCross", [[], [], [], [], [], [dense["i"]]], input_order="D", **attrs)
    attrs.update(num_buckets=0)
    add("RaggedCross", [[ints], [splits], [], [], [], []], input_order="S", **attrs)
    add("RaggedCross", [[ints], [splits], [], [], [], []], input_order="X", **attrs)
    add("RaggedCross", [[ints], [splits], [], [], [], []], input_order="RR", **attrs)
    add("RaggedCross", [[ints], [i32([0, 1, 2])], [], [], [], []], input_order="R", **attrs)
    add("RaggedCross", [[ints], [i32([0, 3])], [], [], [], [dense["i"]]], input_order="RD", **attrs)
    add("RaggedCross", [[ints], [i32([0, 3])], [], [], [], [i64([1])]], input_order="RD", **attrs)
