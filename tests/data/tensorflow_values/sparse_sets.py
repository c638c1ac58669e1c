"""Calls of the ops of ops/sparse/sparse_sets.cc."""


def calls(add):
    types = [i8, i16, i32, i64, u8, u16, text]
    empty = np.zeros([0, 2], np.int64)
    index1 = i64([[0, 0], [0, 2], [1, 1], [3, 0], [3, 1], [3, 4]])
    index2 = i64([[0, 1], [1, 0], [1, 3], [2, 2], [3, 2]])
    numbers1, numbers2 = [9, 5, 5, 3, 7, 3], [5, 5, 1, 2, 3]
    dense1, dense2 = [[1, 9, 5], [5, 5, 5], [7, 3, 2], [0, 1, 0]], [[5, 1], [5, 6], [8, 9], [1, 0]]

    def values(array, numbers):
        if array is not text:
            return array(numbers)
        return text(np.vectorize(lambda n: "n%d" % n * (1 + n), otypes=[object])(np.array(numbers)).tolist())

    for array in types:
        set1 = [index1, values(array, numbers1), i64([4, 5])]
        set2 = [index2, values(array, numbers2), i64([4, 4])]
        for validate in [True, False]:
            add("SetSize", set1, validate_indices=validate)
        add("SetSize", [empty, values(array, [1])[:0], i64([2, 3])])
        for operation in ["a-b", "b-a", "intersection", "union", "UNION"]:
            add("DenseToDenseSetOperation", [values(array, dense1), values(array, dense2)], set_operation=operation)
            add("DenseToSparseSetOperation", [values(array, dense1), *set2], set_operation=operation)
            add("SparseToSparseSetOperation", [*set1, *set2], set_operation=operation)
            add("SparseToSparseSetOperation", [*set1, *set2], set_operation=operation, validate_indices=False)
        add("SparseToSparseSetOperation", [*set1, empty, values(array, [1])[:0], i64([4, 2])], set_operation="a-b")
        add("SparseToSparseSetOperation", [*set1, empty, values(array, [1])[:0], i64([4, 2])], set_operation="b-a")
    cube = i32([[[1, 2], [3, 3]], [[4, 5], [1, 6]]])
    cube_index = i64([[0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1]])
    for operation in ["a-b", "b-a", "intersection", "union"]:
        add("DenseToDenseSetOperation", [cube, cube[::-1].copy()], set_operation=operation)
        add("DenseToSparseSetOperation", [cube, cube_index, i32([1, 3, 6, 7]), i64([2, 2, 3])], set_operation=operation)
        add("DenseToDenseSetOperation", [cube[:0], cube[:0]], set_operation=operation)
        add("DenseToDenseSetOperation", [cube[:, :, :0], cube], set_operation=operation)
    add("SetSize", [cube_index, i32([1, 3, 6, 7]), i64([2, 2, 3])])
    add("SetSize", [cube_index, i32([1, 3, 6, 6]), i64([2, 2, 3])])
    add("SetSize", [i64([[0], [2]]), i32([1, 3]), i64([3])])
    add("SetSize", [index1[::-1].copy(), i32(numbers1), i64([4, 5])])
    add("SetSize", [index1, i32(numbers1), i64([4, 4])])
    add("DenseToDenseSetOperation", [i32(dense1), i32(dense2)], set_operation="xor")
    add("DenseToDenseSetOperation", [i32(dense1), i32(dense2)[:2]], set_operation="union")
    add("DenseToDenseSetOperation", [i32([1, 2]), i32([1])], set_operation="union")
    add("DenseToSparseSetOperation", [i32(dense1)[:2], index2, i32(numbers2), i64([4, 4])], set_operation="union")
    add("SparseToSparseSetOperation", [index1, i32(numbers1), i64([4, 5]), index2, i32(numbers2), i64([5, 4])], set_operation="union")
    add("SparseToSparseSetOperation", [index1[::-1].copy(), i32(numbers1), i64([4, 5]), index2, i32(numbers2), i64([4, 4])], set_operation="union")
