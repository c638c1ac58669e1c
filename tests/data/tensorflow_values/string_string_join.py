"""Calls of the ops of ops/string/string_join.cc and string_split.cc."""


def calls(add):
    add("StringJoin", [[text("a"), text(["b", "c"]), text("d")]], separator="-")
    add("StringJoin", [[text(["b", "c"])]], separator="-")
    add("StringJoin", [[text([["b", "c"]]), text([["", "d" * 50]])]])
    add("StringJoin", [[text([]), text("b")]])
    add("StringJoin", [[text("a"), text("b"), text("c")]], separator=", ")
    add("StringJoin", [[text(["a"]), text(["b", "c"])]])
    add("StringJoin", [[text(["a"]), text([["b", "c"]])]])

    matrix = text([["a", "b", "c"], ["d", "e", "f"]])
    for axes in [0, 1, -1, [0, 1], [1, 0], [], [0, 0], [0, -2], [-1, -2], [[0]]]:
        for keep_dims in [False, True]:
            add("ReduceJoin", [matrix, i32(axes)], keep_dims=keep_dims, separator=".")
    for axis in [2, -3]:
        add("ReduceJoin", [matrix, i32(axis)])
    cube = text([[["a", "b"], ["c", "d"]], [["e", "f"], ["g", "h"]], [["i", "j"], ["k", "l"]]])
    for axes in [[0], [1], [2], [0, 2], [2, 0], [1, 2, 0], [2, 1, 0]]:
        add("ReduceJoin", [cube, i32(axes)], separator="-")
    add("ReduceJoin", [text("a"), i32([])])
    add("ReduceJoin", [np.zeros([2, 0], object), i32(1)], separator="x")
    add("ReduceJoin", [np.zeros([0, 2], object), i32(0)], separator="x")
    add("ReduceJoin", [np.zeros([0, 2], object), i32(1)])

    pairs = text([["a", "b"], ["c", "d"], ["e", "f"]])
    for integer in [i32, i64]:
        add("UnsortedSegmentJoin", [pairs, integer([1, 0, 1]), integer(3)], separator=":")
        add("UnsortedSegmentJoin", [pairs, integer([[1, 0], [0, 0], [1, 1]]), integer(3)], separator=":")
    add("UnsortedSegmentJoin", [text([]), i32([]), i32(2)], separator=":")
    add("UnsortedSegmentJoin", [text(["", "", "a"]), i32([0, 0, 1]), i32(2)], separator=":")
    for ids, count in [([1, -1, 1], 3), ([1, 3, 1], 3), ([0, 1], 2), ([0, 0, 0], -1)]:
        add("UnsortedSegmentJoin", [pairs, i32(ids), i32(count)])
    add("UnsortedSegmentJoin", [pairs, i32(0), i32(1)])

    for skip_empty in [True, False]:
        words = text(["a b", "  c", "", "d,e f", ",,", "x" * 40 + " "])
        for delimiter in [" ", " ,", "", "\xe9"]:
            add("StringSplit", [words, text(delimiter)], skip_empty=skip_empty)
    add("StringSplit", [text([]), text(" ")])
    add("StringSplit", [text(["a"]), text([" "])])
    add("StringSplit", [text("a"), text(" ")])
    for maxsplit in [-1, 0, 1, 2, 3, -2]:
        add("StringSplitV2", [text([" a  b\tc\n", "", "   ", "x", "a b"]), text("")], maxsplit=maxsplit)
        add("StringSplitV2", [text(["a<>b<>c<>", "", "<>", "x<><>y", "<"]), text("<>")], maxsplit=maxsplit)
        add("StringSplitV2", [text(["a,b,,c", "", ",", "abc"]), text(",")], maxsplit=maxsplit)
    add("StringSplitV2", [text(["aaa", "aaaa"]), text("aa")])
    add("StringSplitV2", [text([b"a\x0bb\x0cc\rd\x00e\xa0f"]), text("")])
    add("StringSplitV2", [text([]), text(",")])
    add("StringSplitV2", [text(["a"]), text([","])])
