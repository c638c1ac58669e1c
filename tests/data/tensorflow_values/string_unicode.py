"""Calls of the ops of ops/string/unicode.cc."""


def calls(add):
    valid = ["", "abc", "é€😀", "a\x00b\x1f\n", "𝄞\U0010ffff\uffff"]
    broken = [b"\xff", b"a\xc3", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x9f\x98", b"\xf0\x28\x8c\xbc", b"\x80\x80x"]
    broken += [b"\xc0\xaf", b"\xed\xa0\x80", b"\xed\xb0\x80z", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80"]
    broken += [b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xc3\xc3\xa9", b"\xe2\xe2\x82\xac", b"\xf1\x80\x80!"]
    utf16 = [text.encode("utf-16-be") for text in valid] + [b"\xd8\x00", b"\xd8\x00\x00a", b"\xdc\x00", b"a"]
    utf16 += [b"\x00a\xd8"]
    cases = [("UTF-8", valid), ("UTF-8", broken), ("utf-8", valid), ("UTF-16-BE", utf16)]
    cases += [("UTF-16-LE", [text.encode("utf-16-le") for text in valid] + [b"\x00\xd8", b"x"])]
    cases += [("UTF-16", [b"\xfe\xff\x00a"]), ("UTF-16", [b"\xff\xfea\x00"]), ("UTF-16", [b"\xfe\xff"])]
    cases += [("UTF-32-BE", [text.encode("utf-32-be") for text in valid] + [b"\x00\x11\x00\x00", b"\x00\x00\xd8\x00"])]
    cases += [("latin1", [bytes(range(256)), b"\xe9"]), ("ISO-8859-1", [b"a\xe9"]), ("US-ASCII", [b"a\xe9b"])]
    cases += [("windows-1252", [bytes(range(128, 160))]), ("Shift_JIS", ["日本".encode("shift_jis"), b"\x81"])]
    cases += [("EUC-JP", ["日本".encode("euc-jp")]), ("GB18030", ["中𝄞".encode("gb18030")]), ("Big5", [b"\xa4\xa4"])]
    cases += [("KOI8-R", ["Привет".encode("koi8-r")]), ("no such encoding", ["a"]), ("", ["a"])]
    for encoding, strings in cases:
        strings = text(strings)
        for errors in ["replace", "ignore", "strict"]:
            for control in [False, True]:
                attrs = {"input_encoding": encoding, "errors": errors, "replace_control_characters": control}
                add("UnicodeDecode", [strings], **attrs)
                add("UnicodeDecodeWithOffsets", [strings], **attrs)
                for output in ["UTF-8", "UTF-16-BE", "UTF-32-BE"]:
                    if encoding in ["UTF-8", "latin1", "UTF-16-BE"] or output == "UTF-8":
                        add("UnicodeTranscode", [strings], output_encoding=output, **attrs)
    # One string each, as an error of one string hides the others.
    for string in broken:
        for errors in ["replace", "strict"]:
            add("UnicodeDecodeWithOffsets", [text([string])], input_encoding="UTF-8", errors=errors)
    for char in [0, 65, 0x1F600, 0x10FFFF, 0x110000, -1, 0xD800]:
        attrs = {"input_encoding": "UTF-8", "replacement_char": char}
        add("UnicodeDecode", [text([b"a\xffb"])], **attrs)
        for output in ["UTF-8", "UTF-16-BE", "UTF-32-BE"]:
            add("UnicodeTranscode", [text([b"a\xffb"])], output_encoding=output, **attrs)
            add("UnicodeEncode", [i32([97, -1]), i64([0, 2])], output_encoding=output, replacement_char=char)
    for shape in [text([["a", "é"], ["b", ""]]), text("é"), text([])]:
        add("UnicodeDecode", [shape], input_encoding="UTF-8", Tsplits=tf.int32)
        add("UnicodeTranscode", [shape], input_encoding="UTF-8", output_encoding="UTF-16-BE")
    points = [97, 233, 0x20AC, 0x1F600, 0x10FFFF, 0, 0xFFFF, 0xFFFD, 0x7F, 0x80, 0x7FF, 0x800, 0x10000]
    for output in ["UTF-8", "UTF-16-BE", "UTF-32-BE"]:
        for splits in [i64, i32]:
            add("UnicodeEncode", [i32(points), splits([0, 0, 3, 13, 13])], output_encoding=output)
            for errors in ["replace", "ignore", "strict"]:
                for bad in [-1, 0x110000, 0xD800, 0xDFFF, 2**31 - 1]:
                    add(
                        "UnicodeEncode",
                        [i32([97, bad, 98]), splits([0, 3])],
                        output_encoding=output,
                        errors=errors,
                    )
    for splits in [[], [0], [0, 1], [1, 3], [0, 2, 1, 3], [0, 4, 3], [0, 3, 4], [[0, 3]]]:
        add("UnicodeEncode", [i32([97, 98, 99]), i64(splits)], output_encoding="UTF-8")
    add("UnicodeEncode", [i32([]), i64([0])], output_encoding="UTF-8")
    add("UnicodeEncode", [i32([[97]]), i64([0, 1])], output_encoding="UTF-8")
    add("UnicodeScript", [i32([65, 0x3B1, 0x416, 0x5D0, 0x627, 0x4E00, 0x3042, 0x30A2, 0xAC00, 0x1F600])])
    add("UnicodeScript", [i32([[0, 32], [0x300, 0x10FFFF]])])
    add("UnicodeScript", [i32([-1, 0x110000, -(2**31), 2**31 - 1, 0xD800, 0xE000])])
    add("UnicodeScript", [i32([])])
    add("UnicodeScript", [i32(97)])
    # U+087D has a script since Unicode 14.
    add("UnicodeScript", [i32([c for c in range(0, 0x3000, 53) if c != 0x87D])])
