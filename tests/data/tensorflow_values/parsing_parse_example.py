"""Calls of ParseExample, ParseExampleV2 and ParseSingleExample."""


def example(**features):
    message = tf.train.Example()
    for name, value in features.items():
        feature = message.features.feature[name]
        if value is None:
            continue
        kind, values = value
        getattr(feature, kind + "_list").SetInParent()
        getattr(feature, kind + "_list").value.extend(values)
    return message.SerializeToString()


def field(number, data):
    return bytes([8 * number + 2, len(data)]) + data


def feature_bytes(key, feature):
    return field(1, field(1, key) + field(2, feature))


def calls(add):
    first = example(a=("float", [1, 2]), b=("int64", [3]), s=("bytes", [b"x"]))
    second = example(a=("float", [5, 6]), s=("bytes", [b"y", b"z" * 50]), n=("int64", [-5, 2**40]))
    third = example(a=("float", [7, 8]), b=("int64", []), c=("int64", [1]))
    batch = [first, second, third]
    types = {"a": tf.float32, "b": tf.int64, "s": tf.string, "n": tf.int64}
    arrays = {"a": f32, "b": i64, "s": text, "n": i64}

    def v2(serialized, sparse=(), dense=(), ragged=(), names=()):
        attrs = {
            "num_sparse": len(sparse),
            "sparse_types": [types[k] for k in sparse],
            "ragged_value_types": [types[k] for k, _ in ragged],
            "ragged_split_types": [t for _, t in ragged],
            "dense_shapes": [tf.TensorShape(shape) for _, _, shape in dense],
        }
        attrs["Tdense"] = [types[k] for k, _, _ in dense]
        keys = [text(list(sparse)), text([k for k, _, _ in dense]), text([k for k, _ in ragged])]
        defaults = [arrays[k](value) for k, value, _ in dense]
        del attrs["Tdense"]
        add("ParseExampleV2", [text(serialized), text(list(names)), *keys, defaults], **attrs)

    for serialized in [batch, first, second, [], [b""], [example()], example()]:
        v2(serialized, sparse=["b", "s"])
        v2(serialized, sparse=["n"], ragged=[("b", tf.int64), ("s", tf.int32)])
        v2(serialized, dense=[("b", [9], [1])], sparse=["s"])
        v2(serialized, dense=[("s", "PAD", [None]), ("a", 0.5, [None, 2])])
        v2(serialized, dense=[("s", ["PAD"], [None])])
        v2(serialized, dense=[("a", [], [2])], ragged=[("n", tf.int64)])
    v2(batch, dense=[("b", 9, [])])
    for default, shape in [([9, 8], [2]), ([9, 8], [1]), ([], [1]), ([[1]], [1, 1])]:
        v2([second], dense=[("b", default, shape)])
        v2(batch, dense=[("b", default, shape)])
    v2(batch, dense=[("a", [], [3])])
    v2(batch, dense=[("a", 0.0, [None, 3])])
    v2(batch, dense=[("s", [], [None])])
    v2(batch, dense=[("s", ["p", "q"], [None])])
    types["a"], arrays["a"] = tf.int64, i64
    v2(batch, sparse=["a"])
    v2(batch, dense=[("a", [], [2])])
    v2(batch, ragged=[("a", tf.int64)])
    types["a"], arrays["a"] = tf.float32, f32
    v2([b"abc"], sparse=["b"])
    v2([first[:-1]], sparse=["b"])
    v2([first, b"abc"], sparse=["b"], names=["one", "two"])
    v2(batch, sparse=["b"], names=["one"])
    v2([batch], sparse=["b"])
    v2([example(b=("float", []))], sparse=["b"])
    v2([example(b=None)], dense=[("b", [1], [1])])
    v2([example(b=("int64", [])) ], dense=[("b", [1], [1])])
    v2([example(b=("int64", [1])) + example(b=("int64", [2]))], sparse=["b"])
    for feature in [b"\x1a\x04\x08\x05\x08\x06", b"\x1a\x03\x0a\x01\x05\x1a\x03\x0a\x01\x06"]:
        v2([field(1, feature_bytes(b"b", feature))], sparse=["b"])
    twice = feature_bytes(b"b", b"\x1a\x03\x0a\x01\x05") + feature_bytes(b"b", b"\x1a\x03\x0a\x01\x06")
    v2([field(1, twice)], sparse=["b"])
    v2([field(1, feature_bytes(b"a", b"\x12\x05\x0d\x00\x00\x80\x3f"))], sparse=["a"])
    v2([field(1, feature_bytes(b"b", b"\x1a\x03\x0a\x01\x05")) + b"\x10\x01"], sparse=["b"])

    for serialized in [batch, first, []]:
        inputs = [text(serialized), text([]), [text("b")], [text("a")], [f32([])]]
        shapes = [tf.TensorShape([2])]
        add("ParseExample", inputs, sparse_types=[tf.int64], dense_shapes=shapes)
        inputs = [text(serialized), text([]), [text("n")], [text("s")], [text("PAD")]]
        shapes = [tf.TensorShape([None])]
        add("ParseExample", inputs, sparse_types=[tf.int64], dense_shapes=shapes)

    for serialized in [first, second, b"abc", batch]:
        attrs = {"num_sparse": 2, "sparse_keys": ["n", "s"], "sparse_types": [tf.int64, tf.string]}
        shapes = [tf.TensorShape([2]), tf.TensorShape([1])]
        inputs = [text(serialized), [f32([]), i64([7])]]
        add("ParseSingleExample", inputs, dense_keys=["a", "b"], dense_shapes=shapes, **attrs)
        attrs = {"num_sparse": 0, "sparse_keys": [], "sparse_types": []}
        shapes = [tf.TensorShape([None])]
        add("ParseSingleExample", [text(serialized), [text("P")]], dense_keys=["s"], dense_shapes=shapes, **attrs)
