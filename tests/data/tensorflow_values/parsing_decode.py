"""Calls of DecodeRaw, DecodePaddedRaw, DecodeCSV, SerializeTensor and ParseTensor."""


def calls(add):
    raw = text([b"\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00\x07\x00\x08\x00", b"\xff\x3f\x80" * 5 + b"\0"])
    dtypes = [tf.float16, tf.float32, tf.float64, tf.int32, tf.uint16, tf.uint8, tf.int16, tf.int8]
    dtypes += [tf.int64, tf.bfloat16]
    for little_endian in [True, False]:
        for dtype in dtypes + [tf.complex64, tf.complex128]:
            add("DecodeRaw", [raw], out_type=dtype, little_endian=little_endian)
        for dtype in dtypes[1:]:
            for length in [8, 24]:
                add("DecodePaddedRaw", [raw, i32(length)], out_type=dtype, little_endian=little_endian)
    add("DecodeRaw", [text([b"\x01\x00\x01"])], out_type=tf.bool)
    add("DecodeRaw", [text([b"\x01\x00", b"\x01"])], out_type=tf.uint8)
    add("DecodeRaw", [text([b"\x01\x00\x02"])], out_type=tf.int16)
    add("DecodeRaw", [text([""])], out_type=tf.int16)
    add("DecodeRaw", [text([])], out_type=tf.int16)
    add("DecodeRaw", [text(b"\x01\x00\x02\x00")], out_type=tf.int16)
    for length in [3, 0, -2]:
        add("DecodePaddedRaw", [text([b"\x01"]), i32(length)], out_type=tf.int16)
    add("DecodePaddedRaw", [text([b"\x01\x02\x03"]), i32(4)], out_type=tf.int16)
    add("DecodePaddedRaw", [text([]), i32(4)], out_type=tf.int16)

    for array in [f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, boolean, c64, c128]:
        add("SerializeTensor", [array([[1, 0, 3]])])
        add("SerializeTensor", [array(1)])
    add("SerializeTensor", [text(["a", "", b"\xff" * 200])])
    add("SerializeTensor", [np.zeros([0, 2], np.float32)])
    for array, dtype in [(f32, tf.float32), (i64, tf.int64), (text, tf.string), (boolean, tf.bool)]:
        values = ["1", ""] if array is text else [1, 0]
        message = tf.io.serialize_tensor(tf.constant(array(values), dtype)).numpy()
        add("ParseTensor", [text(message)], out_type=dtype)
        add("ParseTensor", [text(message)], out_type=tf.int32)
        add("ParseTensor", [text(message[:-1])], out_type=dtype)
    ones = tf.make_tensor_proto(1.5, shape=[3, 2]).SerializeToString()
    add("ParseTensor", [text(ones)], out_type=tf.float32)
    add("ParseTensor", [text("abc")], out_type=tf.float32)
    add("ParseTensor", [text("")], out_type=tf.float32)
    add("ParseTensor", [text(["a"])], out_type=tf.float32)

    words = ['"a"', '"a""b"', '"a"b"', 'a"b', '"a', "a,b", '"a\nb"', "", '""', '"a" ', ' "a"', "a\n"]
    words += ["a\r\n", '"a,b"', '""""', '"a""', "\n", "a\nb", '"a"\n', "\na", "\n\r\n a ", '"', '"""']
    for word in words:
        for quotes in [True, False]:
            add("DecodeCSV", [text([word]), [text(["d"])]], use_quote_delim=quotes)
    two = [text(["d"]), text(["e"])]
    for word in ["a,b", ",", "a,", '"a",', '"a","b"', "a,b,", "a", 'a,"b', '"a"x,b', "a,\nb", ',"b""c"']:
        add("DecodeCSV", [text([word]), two])
    add("DecodeCSV", [text(["NA,1", "x,NA"]), [text(["d"]), i32([7])]], na_value="NA")
    add("DecodeCSV", [text([","]), [text([]), i32([])]])
    add("DecodeCSV", [text(["a,"]), [text([]), i32([])]])
    for columns in [[0, 2], [2, 0], [-1, 0], [1], [0, 0], [1, 3]]:
        add("DecodeCSV", [text(["a,b,c"]), two], select_cols=columns)
    for delimiter in [";", ";;", "\t", " "]:
        add("DecodeCSV", [text(["a;b", "c;"]), two], field_delim=delimiter)
    for array in [i32, i64, f32, f64]:
        for word in ["1", " 2 ", "x", "3000000000", "1.5", "nan", "-7", "1e400", "0x1p3", "-0x10"]:
            add("DecodeCSV", [text([word]), [array([1])]])
    add("DecodeCSV", [text("1,2"), [i32([1]), i64([1])]])
    add("DecodeCSV", [text([["1"], ["2"]]), [i32(1)]])
    add("DecodeCSV", [text(["1"]), [i32([1, 2])]])
    add("DecodeCSV", [text([]), [i32([1])]])
