"""Calls of the ops in ops/data_flow/dynamic_stitch.cc."""


def calls(add):
    for array in [f16, f32, c128, i8, u64, boolean]:
        add("DynamicPartition", [array([[1, 0], [1, 1], [0, 1]]), i32([1, 0, 1])], num_partitions=3)
    add("DynamicPartition", [text(["a", "b;", "c"]), i32([1, 0, 1])], num_partitions=2)
    add("DynamicPartition", [f32([1, 2, 3]), i32(1)], num_partitions=2)
    add("DynamicPartition", [f32([[1, 2], [3, 4]]), i32([[0, 1], [1, 0]])], num_partitions=2)
    for partitions in [[0, 2, 0], [0, -1, 0], [0, 1]]:
        add("DynamicPartition", [f32([1, 2, 3]), i32(partitions)], num_partitions=2)
    for op in ["DynamicStitch", "ParallelDynamicStitch"]:
        add(op, [[i32([0, 2]), i32([1])], [f32([1, 2]), f32([3])]])
        add(op, [[i32([0, 1]), i32([1])], [f32([1, 2]), f32([3])]])
        add(op, [[i32(2), i32([[0], [1]])], [f32([7, 8]), f32([[[3, 4]], [[5, 6]]])]])
        add(op, [[i32([0, -1]), i32([1])], [f32([1, 2]), f32([3])]])
        add(op, [[i32([0, 1]), i32([1])], [f32([1, 2]), f32([3, 4])]])
        add(op, [[i32([0, 1]), i32([1])], [f32([[1], [2]]), f32([3])]])
        add(op, [[i32([])], [np.zeros([0, 3], np.float32)]])
    add("DynamicStitch", [[i32([0, 3]), i32([1])], [f32([1, 2]), f32([3])]])
