"""Calls of the ops in ops/nn/bias_add.cc."""


def calls(add):
    for array in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64, c64, c128]:
        value = array([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]])
        add("BiasAdd", [value, array([10, 20])])
        add("BiasAdd", [value, array([10, 20, 30])], data_format="NCHW")
        add("BiasAddV1", [value, array([10, 20])])
        add("BiasAddGrad", [value])
        add("BiasAddGrad", [value], data_format="NCHW")
    for data_format in ["NHWC", "NCHW"]:
        for shape in [(), (2,), (2, 2), (0, 2), (2, 0), (1, 2, 0), (2, 2, 1, 2), (1, 2, 1, 2, 2)]:
            value = np.arange(np.prod(shape)).astype(np.float32).reshape(shape)
            add("BiasAdd", [value, f32([1, 2])], data_format=data_format)
            add("BiasAddGrad", [value], data_format=data_format)
        add("BiasAdd", [f32([[1, 2]]), f32([[1, 2]])], data_format=data_format)
        add("BiasAdd", [f32([[1, 2]]), f32(1)], data_format=data_format)
        add("BiasAdd", [f32([[1, 2]]), f32([1])], data_format=data_format)
    add("BiasAddV1", [f32([1, 2]), f32([1, 2])])
    add("BiasAddV1", [f32([[1, 2]]), f32([1])])
