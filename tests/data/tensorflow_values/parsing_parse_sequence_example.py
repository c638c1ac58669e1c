"""Calls of ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample and DecodeCompressed."""

import gzip
import zlib


def set_feature(feature, value):
    if value is None:
        return
    kind, values = value
    getattr(feature, kind + "_list").SetInParent()
    getattr(feature, kind + "_list").value.extend(values)


def sequence_example(context, lists):
    message = tf.train.SequenceExample()
    for name, value in context.items():
        set_feature(message.context.feature[name], value)
    for name, rows in lists.items():
        feature_list = message.feature_lists.feature_list[name]
        for row in rows:
            set_feature(feature_list.feature.add(), row)
    return message.SerializeToString()


def calls(add):
    ints = lambda *rows: [("int64", list(row)) for row in rows]
    floats = lambda *rows: [("float", list(row)) for row in rows]
    strings = lambda *rows: [("bytes", [v.encode() for v in row]) for row in rows]
    first = sequence_example(
        {"a": ("float", [1, 2]), "b": ("int64", [3]), "s": ("bytes", [b"x"])},
        {"f": floats([1, 2], [3, 4], [5, 6]), "i": ints([1], [], [2, 3]), "w": strings(["p"], ["q", "r" * 40])},
    )
    second = sequence_example(
        {"a": ("float", [5, 6]), "s": ("bytes", [b"y", b"z" * 50])},
        {"f": floats([7, 8]), "i": [], "w": strings([])},
    )
    third = sequence_example({"a": ("float", [7, 8]), "b": ("int64", [])}, {"f": []})
    batch = [first, second, third]
    types = {"a": tf.float32, "b": tf.int64, "s": tf.string, "f": tf.float32, "i": tf.int64, "w": tf.string}
    arrays = {"a": f32, "b": i64, "s": text}

    def v2(serialized, cs=(), cd=(), cr=(), fs=(), fd=(), fr=(), missing=None, names=()):
        attrs = {
            "Ncontext_sparse": len(cs),
            "context_sparse_types": [types[k] for k in cs],
            "context_dense_shapes": [tf.TensorShape(shape) for _, _, shape in cd],
            "context_ragged_value_types": [types[k] for k in cr],
            "context_ragged_split_types": [tf.int64 for k in cr],
            "Nfeature_list_sparse": len(fs),
            "Nfeature_list_dense": len(fd),
            "feature_list_sparse_types": [types[k] for k in fs],
            "feature_list_dense_types": [types[k] for k, _ in fd],
            "feature_list_dense_shapes": [tf.TensorShape(shape) for _, shape in fd],
            "feature_list_ragged_value_types": [types[k] for k, _ in fr],
            "feature_list_ragged_split_types": [t for _, t in fr],
        }
        keys = [list(cs), [k for k, _, _ in cd], list(cr), list(fs), [k for k, _ in fd], [k for k, _ in fr]]
        missing = boolean(missing if missing is not None else [True] * len(fd))
        inputs = [text(serialized), text(list(names)), *[text(k) for k in keys], missing]
        add("ParseSequenceExampleV2", [*inputs, [arrays[k](value) for k, value, _ in cd]], **attrs)

    def v1(serialized, cs=(), cd=(), fs=(), fd=(), missing=(), names=()):
        attrs = {
            "feature_list_dense_missing_assumed_empty": list(missing),
            "context_sparse_keys": list(cs),
            "context_dense_keys": [k for k, _, _ in cd],
            "feature_list_sparse_keys": list(fs),
            "feature_list_dense_keys": [k for k, _ in fd],
            "Ncontext_sparse": len(cs),
            "Ncontext_dense": len(cd),
            "Nfeature_list_sparse": len(fs),
            "Nfeature_list_dense": len(fd),
            "context_sparse_types": [types[k] for k in cs],
            "context_dense_shapes": [tf.TensorShape(shape) for _, _, shape in cd],
            "feature_list_sparse_types": [types[k] for k in fs],
            "feature_list_dense_types": [types[k] for k, _ in fd],
            "feature_list_dense_shapes": [tf.TensorShape(shape) for _, shape in fd],
        }
        defaults = [arrays[k](value) for k, value, _ in cd]
        add("ParseSequenceExample", [text(serialized), text(list(names)), defaults], **attrs)

    def single(serialized, cs=(), cd=(), fs=(), fd=(), missing=(), name=""):
        attrs = {
            "context_sparse_types": [types[k] for k in cs],
            "context_dense_shapes": [tf.TensorShape(shape) for _, _, shape in cd],
            "feature_list_sparse_types": [types[k] for k in fs],
            "feature_list_dense_types": [types[k] for k, _ in fd],
            "feature_list_dense_shapes": [tf.TensorShape(shape) for _, shape in fd],
        }
        key_lists = [list(cs), [k for k, _, _ in cd], list(fs), [k for k, _ in fd]]
        inputs = [text(serialized), text(list(missing)), *[[text(k) for k in keys] for keys in key_lists]]
        add("ParseSingleSequenceExample", [*inputs, [arrays[k](v) for k, v, _ in cd], text(name)], **attrs)

    dense = [("a", [0.0, 0.0], [2])]
    for serialized in [batch, [second], [third, first], []]:
        v2(serialized, cs=["b", "s"], fs=["f", "i", "w"])
        v2(serialized, cd=dense, cr=["b", "s"], fd=[("f", [2])])
        v2(serialized, fr=[("i", tf.int64), ("f", tf.int32)], fd=[("w", [1])])
        v2(serialized, fd=[("f", [2])], missing=[False])
        v2(serialized, fd=[("i", [])], missing=[False])
        v2(serialized, cd=[("b", [9], [1])], fs=["a"])
        v2(serialized, cs=["f"], fr=[("none", tf.int64)] if False else [])
        v1(serialized, cs=["b", "s"], cd=dense, fs=["f", "i", "w"])
        v1(serialized, fd=[("f", [2])])
        v1(serialized, fd=[("f", [2]), ("w", [])], missing=["f", "w"])
        v1(serialized, fd=[("f", [1, 2])], names=["n%d" % k for k in range(len(serialized))])
    for serialized in batch:
        v2(serialized, cs=["b", "s"], fs=["f", "i", "w"], cd=dense)
        v2(serialized, fd=[("f", [2])])
        single(serialized, cs=["b", "s"], cd=dense, fs=["f", "i", "w"])
        single(serialized, fd=[("f", [2])], name="n")
        single(serialized, fd=[("f", [2])], missing=["f", "g"])
        single(serialized, fd=[("i", [])], missing=["i"])
        single(serialized, fd=[("w", [1])], missing=["w"])
        single(serialized, cd=[("b", [9], [1])])
        single(serialized, cd=[("b", [], [1])])
        single(serialized, cd=[("s", ["d"], [1])])
    # TensorFlow's first two ops accept some messages that are cut off.
    for bad in [b"\xff", first[:-1], first + b"\x12\x05", b"\x12\x03\x0a\x05a", b"\x0a\x01", b"\x13"]:
        if bad not in [first + b"\x12\x05", b"\x0a\x01"]:
            v2([bad], cs=["b"], fs=["i"])
            v1([bad], cs=["b"], fs=["i"])
        single(bad, cs=["b"], fs=["i"])
    wrong = sequence_example({"a": ("int64", [1])}, {"f": ints([1]), "i": floats([2]) + ints([3])})
    for context, lists in [(["a"], []), ([], ["f"]), ([], ["i"])]:
        v2([wrong], cs=context, fs=lists)
        v1([wrong], cs=context, fs=lists)
        single(wrong, cs=context, fs=lists)
    v2([first], fd=[("f", [3])])
    v2([first], fd=[("f", [1])])
    v1([first], cd=[("a", [0.0], [1])])
    v1([first], cd=[("a", [], [3])])
    single(first, fd=[("f", [1])])
    repeated = first + sequence_example({"b": ("int64", [7, 8])}, {"i": ints([9])})
    v1([repeated, first], cs=["b", "s"], fs=["i", "f"])

    data = b"some text " * 30
    for compression, compress in [("ZLIB", zlib.compress), ("GZIP", gzip.compress)]:
        packed = compress(data)
        add("DecodeCompressed", [text([packed, compress(b""), compress(b"x")])], compression_type=compression)
        add("DecodeCompressed", [text(packed)], compression_type=compression)
        add("DecodeCompressed", [text([[packed]])], compression_type=compression)
        for bad in [b"", b"abc", packed[:-1], packed[:20], b"\0" * 20]:
            add("DecodeCompressed", [text([bad])], compression_type=compression)
    add("DecodeCompressed", [text(["a", b"\xff"])])
    add("DecodeCompressed", [text([])], compression_type="ZLIB")
    add("DecodeCompressed", [text(["a"])], compression_type="BZIP")
