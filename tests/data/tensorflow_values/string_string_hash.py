"""Calls of the ops of ops/string/string_hash.cc and regex.cc."""


def calls(add):
    words = ["", "a", "hello", b"\xff\x00", "x" * 7, "x" * 8, "x" * 15, "x" * 16, "x" * 31, "x" * 33]
    words += ["y" * 63, "y" * 64, "y" * 65, "z" * 200, "The quick brown fox", "é"]
    for buckets in [1, 10, 1 << 62]:
        add("StringToHashBucket", [text(words)], num_buckets=buckets)
        add("StringToHashBucketFast", [text(words)], num_buckets=buckets)
        add("StringToHashBucketStrong", [text(words)], num_buckets=buckets, key=[1, -2])
    add("StringToHashBucketStrong", [text([["a"]])], num_buckets=1000, key=[0, 0])
    add("StringToHashBucketStrong", [text(["a"])], num_buckets=10, key=[1])
    add("StringToHashBucketStrong", [text(["a"])], num_buckets=10, key=[1, 2, 3])

    inputs = text(["abab", "", "xa\nb", "aéb", "x" * 40 + "ab" * 10])
    patterns = ["a", "(a)(b)?", "a*", "", "^", "$", r"\bx", "(?i)A", ".", "(?P<n>b)", "x*?", "é"]
    patterns += [r"\p{L}", "(?s).", ".*", "[^a-z]+", "x{3,5}"]
    for pattern in patterns:
        for replace_global in [True, False]:
            attrs = {"replace_global": replace_global}
            add("StaticRegexReplace", [inputs], pattern=pattern, rewrite=r"<\0>", **attrs)
        add("RegexReplace", [inputs, text(pattern), text("-")])
        add("RegexFullMatch", [inputs, text(pattern)])
        add("StaticRegexFullMatch", [inputs], pattern=pattern)
    for rewrite in [r"\1", r"\\", r"\12", "", r"[\1\1]"]:
        add("RegexReplace", [text(["abab"]), text("(a)"), text(rewrite)])
    for pattern in ["[", "(", "a{1001}", "*"]:
        add("RegexReplace", [inputs, text(pattern), text("x")])
        add("StaticRegexReplace", [inputs], pattern=pattern, rewrite="x")
        add("RegexFullMatch", [inputs, text(pattern)])
        add("StaticRegexFullMatch", [inputs], pattern=pattern)
    add("RegexReplace", [text([b"a\xffb\xfe"]), text("."), text("x")])
    odd = text(["", "é€😀b", b"\xff\xc3", b"a\xe2\x82", "xx\nxy", "abxab", b"\xf0\x9f\x98\xf0"])
    for pattern in ["", "x*", "a|", "x*?", "^", "$", "(?m)^", r"\b", r"\B", "(?:)", "[^b]*", "b|$", "€?"]:
        for replaces_all in [False, True]:
            add("RegexReplace", [odd, text(pattern), text(r"<\0>")], replace_global=replaces_all)
    add("RegexFullMatch", [text([b"\xff", "a"]), text(".")])
    add("RegexFullMatch", [text([["ab", "b"]]), text("a.*")])
    add("RegexReplace", [text(["a"]), text(["a"]), text("x")])
    add("RegexFullMatch", [text(["a"]), text(["a"])])
