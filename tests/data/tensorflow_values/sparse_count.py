"""Calls of the ops of ops/sparse/sparse_count.cc."""


def calls(add):
    weight_types = [i32, i64, f32, f64]
    index = i64([[0, 1], [0, 0], [2, 1], [2, 0], [2, 3]])
    for array in [i32, i64]:
        vector, matrix = array([3, 1, 3, 0, 3]), array([[3, 1, 3], [0, 0, 7]])
        for weight in weight_types:
            none = weight([])
            for sizes in [{}, {"minlength": 9}, {"maxlength": 3}, {"minlength": 2, "maxlength": 12}, {"maxlength": 0}]:
                for binary in [False, True]:
                    attrs = {"binary_output": binary, **sizes}
                    add("DenseCountSparseOutput", [vector, none], **attrs)
                    add("DenseCountSparseOutput", [matrix, none], **attrs)
                    add("SparseCountSparseOutput", [index, vector, i64([4, 4]), none], **attrs)
                    add("RaggedCountSparseOutput", [i64([0, 2, 2, 5]), vector, none], **attrs)
            weights = weight([1, 2, 4, 8, 16])
            for sizes in [{}, {"minlength": 9}, {"maxlength": 3}]:
                attrs = {"binary_output": False, **sizes}
                add("DenseCountSparseOutput", [vector, weights], **attrs)
                add("DenseCountSparseOutput", [matrix, weight([[1, 2, 4], [8, 16, 32]])], **attrs)
                add("SparseCountSparseOutput", [index, vector, i64([4, 4]), weights], **attrs)
                add("RaggedCountSparseOutput", [i64([0, 2, 2, 5]), vector, weights], **attrs)
            add("SparseCountSparseOutput", [i64([[1], [3], [0], [2], [4]]), vector, i64([6]), weights], binary_output=False)
    none, plain = f32([]), {"binary_output": False}
    weights = f32([0.1, 0.2, 0.3, 1e8, 0.7])
    add("DenseCountSparseOutput", [i32([1, 1, 1, 1, 1]), weights], **plain)
    add("DenseCountSparseOutput", [i32([]), none], **plain)
    add("DenseCountSparseOutput", [i32([]), none], minlength=5, **plain)
    add("DenseCountSparseOutput", [i32([[], []]), none], **plain)
    add("DenseCountSparseOutput", [np.zeros([0, 2], np.int32), none], **plain)
    add("DenseCountSparseOutput", [i32([1, -1]), none], **plain)
    add("DenseCountSparseOutput", [i32(1), none], **plain)
    add("DenseCountSparseOutput", [i32([[[1]]]), none], **plain)
    add("DenseCountSparseOutput", [i32([1, 1]), f32([1])], **plain)
    add("SparseCountSparseOutput", [index, i32([3, 1, 3, 0, 3]), i64([2, 4]), none], **plain)
    add("SparseCountSparseOutput", [index[:0], i32([]), i64([2, 4]), none], **plain)
    add("SparseCountSparseOutput", [index[:0], i32([]), i64([0, 4]), none], **plain)
    add("SparseCountSparseOutput", [index, i32([3, 1, -3, 0, 3]), i64([4, 4]), none], **plain)
    add("SparseCountSparseOutput", [np.zeros([1, 0], np.int64), i32([3]), i64([]), none], **plain)
    add("RaggedCountSparseOutput", [i64([0, 1]), i32([1, 2]), none], **plain)
    add("RaggedCountSparseOutput", [i64([0]), i32([]), none], **plain)
    add("RaggedCountSparseOutput", [i64([]), i32([]), none], **plain)
    add("RaggedCountSparseOutput", [i64([1, 2]), i32([1, 2]), none], **plain)
    add("RaggedCountSparseOutput", [i64([0, 0, 2, 2]), i32([1, 2]), none], **plain)
