"""Calls of the ops in ops/array/space_to_batch.cc, space_to_depth.cc and extract_patches.cc."""

NUMBERS = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]


def calls(add):
    for array in NUMBERS:
        x = array(np.arange(32).reshape([1, 4, 4, 2]) % 100)
        if array not in [c64, c128]:
            add("SpaceToBatchND", [x, i32([2, 3]), i64([[1, 1], [0, 2]])])
            add("SpaceToBatch", [x, i32([[0, 0], [2, 0]])], block_size=2)
            batch = np.repeat(x, 4, axis=0)
            add("BatchToSpaceND", [batch, i64([2, 2]), i32([[1, 0], [0, 3]])])
            add("BatchToSpace", [batch, i32([[1, 0], [0, 3]])], block_size=2)
        add("SpaceToDepth", [x], block_size=2)
        add("DepthToSpace", [np.repeat(x, 2, axis=3)], block_size=2)
        for padding in ["SAME", "VALID"]:
            add("ExtractImagePatches", [x], ksizes=[1, 2, 3, 1], strides=[1, 2, 1, 1],
                rates=[1, 2, 1, 1], padding=padding)
            if array in [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64]:
                add("ExtractVolumePatches", [x.reshape([1, 2, 4, 2, 2])],
                    ksizes=[1, 2, 3, 1, 1], strides=[1, 1, 2, 1, 1], padding=padding)
    x = f32([[1, 2, 3]])
    for block, paddings in [([2], [[0, 0]]), ([0], [[0, 0]]), ([2], [[-1, 0]]), ([1], [[0, 0, 0]]),
                            ([2, 2], [[0, 0], [0, 0]])]:
        add("SpaceToBatchND", [x, i32(block), i32(paddings)])
    add("SpaceToBatchND", [x, i32([]), np.zeros([0, 2], np.int32)])
    four = f32([[1, 2, 3]] * 4)
    for block, crops in [([3], [[0, 0]]), ([2], [[4, 3]]), ([2], [[3, 3]]), ([-2], [[0, 0]])]:
        add("BatchToSpaceND", [four, i32(block), i32(crops)])
    add("BatchToSpace", [four, i32([[0, 0], [0, 0]])], block_size=2)
    x = f32(np.zeros([1, 4, 4, 3]))
    add("SpaceToDepth", [x], block_size=3)
    add("DepthToSpace", [x], block_size=2)
    add("SpaceToDepth", [x[0]], block_size=2)
    # A patch may exceed the image by less than two strides.
    for stride in [1, 2, 3]:
        for size in [3, 4, 5, 6]:
            add("ExtractImagePatches", [np.ones([1, 2, 2, 1], np.float32)],
                ksizes=[1, size, size, 1], strides=[1, stride, stride, 1], rates=[1, 1, 1, 1],
                padding="VALID")
            add("ExtractVolumePatches", [np.ones([1, 2, 2, 2, 1], np.float32)],
                ksizes=[1, size, size, size, 1], strides=[1, stride, stride, stride, 1],
                padding="VALID")
