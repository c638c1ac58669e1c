"""Calls of the ops in ops/math/select.cc."""


def calls(add):
    t = f32([[1, 2], [3, 4]])
    e = f32([[5, 6], [7, 8]])
    for condition in [True, [True, False], [[True, False], [False, True]]]:
        add("Select", [boolean(condition), t, e])
    add("Select", [boolean([[True, False]]), t, e])
    add("Select", [boolean([True, False, True]), t, e])
    add("Select", [boolean([True]), f32(1), f32(2)])
    add("Select", [boolean([True, False]), f32([1, 2]), f32([2])])
    add("Select", [boolean([True, False]), text([["a", "b"], ["c", "d"]]), text([["e", "f"], ["g", "h"]])])
    for condition in [True, [True, False], [[True], [False]], [[[True]], [[False]]]]:
        add("SelectV2", [boolean(condition), t, e])
        add("SelectV2", [boolean(condition), f16([1, 2]), f16(3)])
    add("SelectV2", [boolean([True, False]), c128([1j, 2]), c128(3)])
    add("SelectV2", [boolean([[True], [False]]), text("a"), text(["b", "c"])])
    add("SelectV2", [boolean([True, False, True]), t, e])
