"""Calls of the ops of ops/string/string_number.cc and string_ngrams.cc."""


def calls(add):
    numbers = ["1", " 1 ", "-1", "+1", "1.5", "1e3", "0x10", "inf", "-Infinity", "nan", "3000000000"]
    numbers += ["-3000000000", "5000000000", "99999999999999999999", "1e400", "1e-400", "-0", "1."]
    numbers += [".5", "infinity ", "\t7\n", "0x1p3", "0x1.8", "0X1F", "-0x10", "+0x1", "00012"]
    numbers += ["0x123456789abcdef0123", "1e10000000000", "3.4028236e38", "16777217"]
    bad = ["", "abc", "1 2", "1_0", "0x", "1e", "1e+", "+", "--1", "+-1", ".", "e5", "infinit", "1f"]
    bad += ["  ", b"1\0", "- 1", "0x-1"]
    for dtype in [tf.float32, tf.float64, tf.int32, tf.int64, tf.uint32, tf.uint64]:
        for number in numbers + bad:
            add("StringToNumber", [text([number])], out_type=dtype)
        add("StringToNumber", [text([["1", "2"], ["3", "4"]])], out_type=dtype)
        add("StringToNumber", [text([])], out_type=dtype)

    for array in [i8, i16, i32, i64, u8, u16, u32, u64]:
        add("AsString", [array([0, 1, 100])])
        add("AsString", [array([0, 7])], width=5)
    add("AsString", [i8([-128, 127])])
    add("AsString", [i64([-(2**63), 2**63 - 1])])
    add("AsString", [u64([2**64 - 1])])
    for fill in ["", " ", "+", "-", "0", "x", "00"]:
        add("AsString", [i32([-7, 42])], width=6, fill=fill)
        add("AsString", [f32([-7.5, 42.25])], width=12, fill=fill)
        add("AsString", [f64([-7.5, 42.25])], width=12, fill=fill, scientific=True)
    reals = [0.0, -0.0, 1.5, 1e-7, 123456789.0, np.inf, -np.inf, np.nan, 3.14159265358979, 1e30]
    for array in [f16, bf16, f32, f64]:
        add("AsString", [array(reals)])
        add("AsString", [array(reals)], precision=2)
        add("AsString", [array(reals)], precision=0)
        add("AsString", [array(reals)], scientific=True)
        add("AsString", [array(reals)], shortest=True)
        add("AsString", [array(reals)], shortest=True, precision=3)
        add("AsString", [array(reals)], width=12, precision=3)
    add("AsString", [f64([1e300, -1e-300])])
    add("AsString", [f32([1])], shortest=True, scientific=True)
    add("AsString", [boolean([True, False])])
    add("AsString", [boolean([True, False])], width=7)
    for array in [c64, c128]:
        add("AsString", [array([1 + 2j, -1.5e10 - 0.25j])])
        add("AsString", [array([1 + 2j, -1.5e10 - 0.25j])], precision=2, width=8)
        add("AsString", [array([1 + 2j, -1.5e10 - 0.25j])], shortest=True)
    for fill in ["", " ", "-"]:
        add("AsString", [text(["ab", "", b"a\0b", "longer text"])], width=5, fill=fill)
    for attrs in [{"precision": 2}, {"scientific": True}, {"shortest": True}]:
        add("AsString", [i32([5])], **attrs)
    add("AsString", [i32([5])], width=-3)
    add("AsString", [f32([5])], precision=-3)
    add("AsString", [boolean([True])], precision=3)
    add("AsString", [i32([])])

    add("StringFormat", [[i32([1, 2, 3]), text("a")]], template="x %s y %s z")
    add("StringFormat", [[f32([1.5, 2])]], template="{} = v", placeholder="{}")
    for summarize in [1, 2, 3, -1]:
        add("StringFormat", [[i32(np.arange(60).reshape(6, 10))]], summarize=summarize)
        add("StringFormat", [[f64(np.arange(24).reshape(2, 3, 4) / 8)]], summarize=summarize)
    add("StringFormat", [[text(["a", "b"])]])
    add("StringFormat", [[boolean([True, False])]])
    add("StringFormat", [[i64([]), f32(1.25)]], template="%s|%s")
    add("StringFormat", [[f32([1.5])]], template="no")

    data = text(["a", "b", "c", "d", "e"])
    common = {"separator": "|", "left_pad": "L", "right_pad": "RR"}
    for widths in [[2], [1, 2], [3], [], [5, 1], [0], [-1]]:
        for pad in [-1, 0, 1, 2, 5]:
            for short in [False, True]:
                add("StringNGrams", [data, i64([0, 3, 3, 4, 5])], ngram_widths=widths, pad_width=pad,
                    preserve_short_sequences=short, **common)
    plain = {"ngram_widths": [2], "pad_width": 0, "preserve_short_sequences": False}
    add("StringNGrams", [data, i32([0, 2, 5])], **common, **plain)
    for splits in [[0, 3], [0, 5, 4], [1, 5], [0, 6], [0, -1, 5]]:
        add("StringNGrams", [data, i64(splits)], **common, **plain)
    add("StringNGrams", [text([]), i64([])], **common, **plain)
    add("StringNGrams", [text([]), i64([0, 0])], **common, **plain)
