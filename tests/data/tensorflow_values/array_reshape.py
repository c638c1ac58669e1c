"""Calls of the ops in ops/array/reshape.cc, shape.cc, identity.cc, fill.cc, tile.cc, broadcast_to.cc,
pack.cc and inplace.cc."""

TYPES = [f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128, boolean, text]


def calls(add):
    for array in TYPES:
        rows = np.arange(6).reshape([2, 3])
        x = array(rows.astype(str) if array is text else rows)
        add("Reshape", [x, i32([3, -1])])
        add("ExpandDims", [x, i32(-2)])
        add("Squeeze", [x[:, None]], squeeze_dims=[1])
        add("Identity", [x])
        if array is not u16:
            add("Tile", [x, i32([2, 1])])
            add("Tile", [x, i64([1, 3])])
        add("BroadcastTo", [x[:1], i32([2, 2, 3])])
        add("Pack", [[x, x[::-1]]], axis=1)
        add("Unpack", [x], num=3, axis=-1)
        add("Fill", [i32([2, 1]), x[1, 2]])
        add("Fill", [i64([0, 3]), x[0, 1]])
        add("IdentityN", [[x, i32(1)]])
        add("ZerosLike", [x])
        if array is not text:
            add("OnesLike", [x])
            # TensorFlow has these kernels for types that have sums.
            if array is not boolean:
                for op in ["InplaceAdd", "InplaceSub"]:
                    add(op, [x, i32([1, 0]), x])
                add("InplaceUpdate", [x, i32([1]), x[:1]])
    x = f32(np.arange(12).reshape([2, 1, 3, 2, 1]))
    for dims in [[], [1], [-1, 1]]:
        add("Squeeze", [x], squeeze_dims=dims)
    add("Squeeze", [x], squeeze_dims=[2])
    add("Squeeze", [x], squeeze_dims=[5])
    for shape in [[12], [-1], [2, -1, 3], [0, -1], [5, -1], [-1, -1], [-2, 6], [3, 4, 1]]:
        add("Reshape", [x, i32(shape)])
        add("Reshape", [x, i64(shape)])
    add("Reshape", [f32([]), i32([0, 3])])
    add("Reshape", [f32([]), i32([-1, 0])])
    add("Reshape", [f32([7]), i32([])])
    for axis in [-6, 0, 5, 6, -7]:
        add("ExpandDims", [x, i32(axis)])
    add("ExpandDims", [x, i64([2])])
    add("ExpandDims", [x, i64([2, 3])])
    for out in [tf.int32, tf.int64]:
        add("Shape", [x], out_type=out)
        add("Size", [x], out_type=out)
        add("ShapeN", [[x, x[0]]], out_type=out)
    add("Rank", [x])
    add("Shape", [f32(1)])
    for shape in [[2, 3, 4], [3], [1, 3], [3, 2], [0, 3]]:
        add("BroadcastTo", [f32([[1], [2], [3]]), i32(shape)])
    add("BroadcastTo", [f32(1), i32([])])
    add("BroadcastTo", [f32([]), i32([2, 0])])
    for multiples in [[0, 2], [1, 1], [-1, 2], [2]]:
        add("Tile", [f32([[1, 2], [3, 4]]), i32(multiples)])
    add("Tile", [f32(3), i32([])])
    add("Pack", [[f32(1), f32(2)]])
    add("Pack", [[f32([1]), f32([2, 3])]])
    for axis in [-2, 1, 2]:
        add("Pack", [[f32([1, 2]), f32([3, 4])]], axis=axis)
    add("Unpack", [f32([[1, 2], [3, 4]])], num=2)
    add("Unpack", [f32([[1, 2], [3, 4]])], num=3)
    add("Unpack", [np.zeros([2, 0], np.float32)], num=0, axis=1)
    add("Fill", [i32([-1]), f32(1)])
    add("Fill", [i32([2]), f32([1, 2])])
    for op in ["StopGradient", "PreventGradient", "Snapshot", "GuaranteeConst"]:
        add(op, [f32([1, 2])])
    add("PlaceholderWithDefault", [f32([1, 2])], shape=tf.TensorShape([2]))
    add("EnsureShape", [f32([[1, 2]])], shape=tf.TensorShape([None, 2]))
    add("EnsureShape", [f32([[1, 2]])], shape=tf.TensorShape([3]))
    for i in [[5], [-1]]:
        add("InplaceAdd", [f32([[1, 2], [3, 4]]), i32(i), f32([[10, 20]])])
    add("InplaceUpdate", [f32([[1, 2], [3, 4]]), i32([0, 0]), f32([[10, 20], [30, 40]])])
    add("InplaceAdd", [f32([[1, 2], [3, 4]]), i32([0, 0]), f32([[10, 20], [30, 40]])])
    add("InplaceAdd", [f32([[1, 2], [3, 4]]), i32([0]), f32([[10, 20], [30, 40]])])
