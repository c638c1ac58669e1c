"""Calls of the ops in ops/image/decode_image.cc and encode_image.cc."""


def calls(add):
    encode = lambda op, **kw: getattr(tf.raw_ops, op)(**kw).numpy()
    rgb = u8(random(tf.int32, (5, 7, 3), 0, 255))
    smooth = u8([[[40 + 8 * x + y, 100 + 3 * y, 200 - 9 * x] for x in range(17)] for y in range(10)])
    pngs = [encode("EncodePng", image=rgb[:, :, :c] if c < 4 else np.concatenate([rgb, rgb[:, :, :1]], 2))
            for c in [1, 2, 3, 4]]
    pngs.append(encode("EncodePng", image=u16(random(tf.int32, (3, 4, 3), 0, 65535))))
    for png in pngs:
        for channels in [0, 1, 3, 4]:
            add("DecodePng", [png], channels=channels)
            add("DecodePng", [png], channels=channels, dtype=tf.uint16)
        for dtype in [tf.uint8, tf.uint16, tf.float32]:
            add("DecodeImage", [png], dtype=dtype, ulps=0)
        add("DecodeGif", [png])
    jpeg = encode("EncodeJpeg", image=smooth)
    progressive = encode("EncodeJpeg", image=smooth, progressive=True)
    gray = encode("EncodeJpeg", image=smooth[:, :, :1])
    # Versions of libjpeg differ by rounding.
    near = dict(atol=2.0, rtol=0.0)
    for data in [jpeg, progressive, gray]:
        for channels in [0, 1, 3]:
            add("DecodeJpeg", [data], channels=channels, **near)
        add("DecodeJpeg", [data], dct_method="INTEGER_ACCURATE", **near)
        add("DecodeJpeg", [data], ratio=2, **near)
        # TensorFlow interpolates colors at the edge of the part as if the image ended there.
        add("DecodeAndCropJpeg", [data, i32([2, 3, 5, 9])], atol=6.0, rtol=0.0)
        add("DecodeImage", [data], dtype=tf.float32, atol=0.01, rtol=0.0)
        add("DecodeImage", [data], dtype=tf.uint16, atol=520.0, rtol=0.0)
        add("DecodeJpeg", [data[:-60]], acceptable_fraction=1.0)
    add("DecodeAndCropJpeg", [jpeg, i32([2, 3, 50, 9])])
    add("DecodeJpeg", [jpeg], channels=4)
    add("DecodeJpeg", [jpeg], ratio=3)
    add("DecodeJpeg", [jpeg], dct_method="FLOAT")
    gif = (b"GIF89a\x03\x00\x02\x00\x80\x00\x00\xff\x00\x00\x00\xff\x80!\xf9\x04\x01\x00\x00\x00\x00"
           b",\x00\x00\x00\x00\x03\x00\x02\x00\x00\x02\x04D\x88\x10\x29\x00;")
    for op in ["DecodeGif", "DecodePng", "DecodeJpeg"]:
        add(op, [gif])
    add("DecodeImage", [gif])
    add("DecodeImage", [gif], expand_animations=False, dtype=tf.float32)
    bmp = (b"BM\x4e\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\x02\x00\x00\x00"
           b"\x03\x00\x00\x00\x01\x00\x18\x00" + bytes(24) + bytes(range(24)))
    for channels in [0, 3, 4, 1]:
        add("DecodeBmp", [bmp], channels=channels)
    add("DecodeImage", [bmp])
    add("DecodeImage", [bmp[:-1]])
    add("DecodePng", [bmp])
    add("DecodeImage", [b""])
    add("DecodeImage", [b"no image"])
    add("DecodePng", [pngs[2][:-20]])
    add("DecodePng", [b"\x89PNG\r\n\x1a\n"])
    for quality in [101, -1]:
        add("EncodeJpegVariableQuality", [smooth, i32(quality)])
    add("EncodePng", [rgb[0]])
    add("EncodeJpeg", [rgb[:, :, :2]])
