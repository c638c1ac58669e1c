"""Calls of the ops of ops/lookup."""


def calls(add):
    names = table(text(["a", "b", "", "long " * 10]), i64([1, -2, 3, 4]))
    add("LookupTableFindV2", [names, text([["a", "x"], ["", "b"]]), i64(-1)])
    add("LookupTableFindV2", [names, text("long " * 10), i64(-1)])
    add("LookupTableFindV2", [names, text([]), i64(-1)])
    add("LookupTableFindV2", [names, text(["x", "a", "y"]), i64([-1, -2, -3])])
    add("LookupTableFindV2", [names, text(["a", "b"]), i64([-1])])
    add("LookupTableFindV2", [names, i64([1]), i64(-1)])
    add("LookupTableFindV2", [names, text(["a"]), i32(-1)])
    add("LookupTableSizeV2", [names])
    keys = [(i32, [1, -5, 2**31 - 1]), (i64, [1, -5, 2**62]), (text, ["1", "-5", "max"])]
    values = [(i32, [1, 2, 3]), (f32, [1.5, 2, 3]), (f64, [1.5, 2, 3])]
    values += [(i64, [1, 2, 3]), (boolean, [True, False, True]), (text, ["x", "y", "z" * 20])]
    for key, key_list in keys:
        for value, value_list in values:
            if key is i32 and value in (i64, boolean) or key is i64 and value is boolean:
                continue
            entries = table(key(key_list), value(value_list))
            missing = key([key_list[0], key_list[0], key_list[2], "0" if key is text else 0])
            add("LookupTableFindV2", [entries, missing, value(value_list[1])])
            if value is text and key is not i64:
                continue
            entries = table(key(key_list), value(value_list), mutable=True)
            add("LookupTableFindV2", [entries, missing, value(value_list[1])])
            add("LookupTableFindV2", [entries, missing, value([value_list[1]] * 3 + value_list[2:])])
    vectors = table(i64([1, 2]), f32([[1, 2], [3, 4]]), mutable=True)
    add("LookupTableFindV2", [vectors, i64([[2, 3]]), f32([-1, -2])])
    add("LookupTableFindV2", [vectors, i64([2, 3]), f32([[-1, -2], [-3, -4]])])
    add("LookupTableFindV2", [vectors, i64([2, 3]), f32(1)])
    add("LookupTableSizeV2", [vectors])
