"""Calls of the ops of ops/string/string_map.cc and substr.cc."""


def calls(add):
    words = text(["ABcÉ", "Straße İ", b"A\xffB", "", "mIxEd 123 \t", "x" * 100 + "É"])
    for encoding in ["", "utf-8", "latin1"]:
        add("StringLower", [words], encoding=encoding)
        add("StringUpper", [words], encoding=encoding)
    add("StringUpper", [text(["ﬁ ς ŉ", "ΐ", "ǆ ǰ", "i ı"])], encoding="utf-8")
    add("StringLower", [text(["ΑΣ ΑΣΑ", "ǅ", "ẞ K"])], encoding="utf-8")
    add("StringLower", [text("Scalar")])
    add("StringStrip", [text([" a \n", b"\x0b\x0cb\x00 ", "\xa0c ", "", "  ", "a b"])])
    for unit in ["BYTE", "UTF8_CHAR"]:
        add("StringLength", [text(["abc", "é", b"\xff\x80\x80", "", "😀", b"\x80"])], unit=unit)
        add("StringLength", [text([["abc"], ["é"]])], unit=unit)
    for pad in [False, True]:
        add("EncodeBase64", [text(["", "a", "ab", "abc", b"\xff\xfe\xfd\xfb", b"\0\0\0\0"])], pad=pad)
    add("DecodeBase64", [text(["", "YQ==", "YQ", "YWI=", "YWI", "YWJj", "_-79-w", "YR==", "YWJjZA"])])
    for bad in ["/+79+w", "Y", "YQ=", "YQ===", "Y Q", "YQ==YQ==", "====", "\n", "Y===", "=", "YWJj="]:
        add("DecodeBase64", [text([bad])])

    strings = text(["hello", "wörld", b"\x80\x80ab\xffcd"])
    for unit in ["BYTE", "UTF8_CHAR"]:
        for integer in [i32, i64]:
            for pos, length in [(1, 3), (-4, 3), (0, 100), (5, 1), (0, 0), (2, -1), (-1, 1)]:
                add("Substr", [strings, integer(pos), integer(length)], unit=unit)
        for pos in [-6, 6, -8, 8]:
            add("Substr", [text(["hello"]), i32(pos), i32(2)], unit=unit)
        add("Substr", [text([""]), i32(0), i32(3)], unit=unit)
        add("Substr", [text([]), i32(0), i32(3)], unit=unit)
        add("Substr", [text(["hello", "world"]), i32([1, 2]), i32([3, 9])], unit=unit)
        add("Substr", [text([["hello", "world"], ["abcde", "fghij"]]), i32([1, 2]), i32([1, 2])], unit=unit)
        add("Substr", [text("hello"), i32([1, 2]), i32([1, 2])], unit=unit)
        add("Substr", [text([["hello"], ["abcde"]]), i32([[1, 2]]), i32([[1, 2]])], unit=unit)
        add("Substr", [text([[["hello"]]]), i32(1), i32(2)], unit=unit)
        add("Substr", [text([[["hello"]]]), i32([[[1]]]), i32([[[2]]])], unit=unit)
    add("Substr", [text(["hello", "w"]), i32([1, 2]), i32(1)])
    add("Substr", [text(["hello", "w"]), i32([1, 2, 3]), i32([1, 1, 1])])
