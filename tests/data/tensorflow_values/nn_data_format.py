"""Calls of the ops in ops/nn/data_format.cc."""


def calls(add):
    for array in [i32, i64]:
        add("DataFormatDimMap", [array([0, 1, 2, 3, -1, -4])])
        add("DataFormatDimMap", [array([[0, 4], [2, -3]])], src_format="NDHWC", dst_format="NCDHW")
        for x in [[1, 2, 3, 4], [1, 2], [[1, 2], [3, 4]], [[1, 2], [3, 4], [5, 6], [7, 8]]]:
            add("DataFormatVecPermute", [array(x)])
            add("DataFormatVecPermute", [array(x)], src_format="NCHW", dst_format="NHWC")
            add("DataFormatVecPermute", [array(x)], src_format="NHWC", dst_format="CWHN")
        for x in [[1, 2, 3], [1, 2, 3, 4, 5]]:
            add("DataFormatVecPermute", [array(x)], src_format="NDHWC", dst_format="CWDHN")
    for x in [1, [1, 2, 3], [[1], [2], [3], [4]], np.zeros((4, 0)), np.zeros((4, 2, 1))]:
        add("DataFormatVecPermute", [i32(x)])
    for source, target in [("HW", "WH"), ("1234", "1253"), ("1224", "1423"), ("NHWC", "NCDHW")]:
        for op in ["DataFormatDimMap", "DataFormatVecPermute"]:
            add(op, [i32([0, 1])], src_format=source, dst_format=target)
    add("DataFormatVecPermute", [i32([0, 1])], src_format="1234", dst_format="4321")
