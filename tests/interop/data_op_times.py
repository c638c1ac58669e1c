#!/usr/bin/env python3
"""Compares the times of ops on tables, strings, messages and audio with TensorFlow on the same inputs.

usage: data_op_times.py GRADFLOW [--threads N]... [--repeat N] [--only SUBSTRING]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Both
programs run the same op in turn, five rounds each, on inputs that are already tensors. Prints the medians of their times
in milliseconds, and gradflow's time divided by TensorFlow's.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import timing


def words(random, count, size):
    """Returns strings of letters and single spaces, which do not end with a space."""
    letters = random.choice(np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    ", np.uint8), (count, size))
    letters[:, -1] = ord("z")
    return letters.reshape(-1).view(f"S{size}")


def examples(tf, random, count, features):
    """Returns serialized tf.Example messages with features of one float, int64 or string in turn."""
    messages = []
    for _ in range(count):
        message = tf.train.Example()
        for k in range(features):
            feature = message.features.feature[f"feature{k:02}"]
            if k % 3 == 0:
                feature.float_list.value.append(random.random() + 1)
            elif k % 3 == 1:
                feature.int64_list.value.append(int(random.integers(1, 1 << 20)))
            else:
                feature.bytes_list.value.append(b"text%d" % random.integers(1, 1 << 20))
        # Arrays of strings have no zeros at their ends.
        messages.append(message.SerializeToString().rstrip(b"\0") + b"\xfa\x01\x01x")
    return np.array(messages)


def cases(tf):
    """Yields a name, inputs by name, and a function of tensors that makes the output."""
    random = np.random.default_rng(1)
    numbers = random.permutation(np.arange(1, 1000001, dtype=np.int64) * 7919)
    values = np.arange(1000000, dtype=np.int64)
    for kind, keys in (("int64", numbers), ("string", np.char.add("key", numbers.astype("S12").astype(str)).astype("S"))):

        def find(feeds, keys=keys):
            dtype = tf.string if keys.dtype.kind == "S" else tf.int64
            table = tf.raw_ops.HashTableV2(key_dtype=dtype, value_dtype=tf.int64, shared_name=f"table of {kind}")
            init = tf.raw_ops.InitializeTableV2(table_handle=table, keys=feeds["keys"], values=feeds["values"])
            with tf.control_dependencies([init] if init is not None else []):
                return tf.raw_ops.LookupTableFindV2(
                    table_handle=table, keys=feeds["queries"], default_value=tf.constant(-1, tf.int64))

        queries = random.permutation(keys)
        yield f"LookupTableFindV2 10^6 {kind} keys", {"keys": keys, "values": values, "queries": queries}, find
    text = words(random, 1000000, 100)
    yield "StringSplitV2 100 MB", {"x": text}, lambda f: tf.raw_ops.StringSplitV2(input=f["x"], sep=" ").values
    yield "StringSplitV2 at spaces 100 MB", {"x": text}, lambda f: tf.raw_ops.StringSplitV2(input=f["x"], sep="").values
    yield "StaticRegexReplace 100 MB", {"x": text}, lambda f: tf.raw_ops.StaticRegexReplace(
        input=f["x"], pattern="[aeiou]+t", rewrite="<\\0>")
    yield "RegexFullMatch 100 MB", {"x": text}, lambda f: tf.raw_ops.StaticRegexFullMatch(
        input=f["x"], pattern="[a-z ]*qu[a-z ]*")
    yield "StringLower 100 MB", {"x": text}, lambda f: tf.raw_ops.StringLower(input=f["x"])
    yield "StringToHashBucketFast 100 MB", {"x": text}, lambda f: tf.raw_ops.StringToHashBucketFast(
        input=f["x"], num_buckets=1000)
    yield "UnicodeDecode 100 MB", {"x": text}, lambda f: tf.raw_ops.UnicodeDecode(
        input=f["x"], input_encoding="UTF-8").char_values
    yield "UnicodeTranscode 100 MB", {"x": text}, lambda f: tf.raw_ops.UnicodeTranscode(
        input=f["x"], input_encoding="UTF-8", output_encoding="UTF-16-BE")
    messages = examples(tf, random, 100000, 40)

    def parse(feeds):
        keys = [f"feature{k:02}" for k in range(40)]
        types = [[tf.float32, tf.int64, tf.string][k % 3] for k in range(40)]
        dense, sparse, ragged = range(0, 20), range(20, 30), range(30, 40)
        result = tf.raw_ops.ParseExampleV2(
            serialized=feeds["x"],
            names=tf.constant([], tf.string),
            dense_keys=[keys[k] for k in dense],
            sparse_keys=[keys[k] for k in sparse],
            ragged_keys=[keys[k] for k in ragged],
            dense_defaults=[tf.constant([], types[k]) for k in dense],
            num_sparse=len(sparse),
            sparse_types=[types[k] for k in sparse],
            ragged_value_types=[types[k] for k in ragged],
            ragged_split_types=[tf.int64 for _ in ragged],
            dense_shapes=[tf.TensorShape([1]) for _ in dense])
        return result.dense_values[0]

    yield "ParseExampleV2 10^5 examples of 40 features", {"x": messages}, parse
    lines = np.array([b"%d,%f,%s" % (k, x, b"word%d" % k) for k, x in enumerate(random.random(300000))])
    yield "DecodeCSV 3 * 10^5 lines", {"x": lines}, lambda f: tf.raw_ops.DecodeCSV(
        records=f["x"], record_defaults=[tf.constant([0]), tf.constant([0.0]), tf.constant([""])])[0]
    logits = random.standard_normal((100, 32, 80)).astype(np.float32)
    labels = np.array([[b, i] for b in range(32) for i in range(20)], np.int64)
    targets = random.integers(0, 79, 640).astype(np.int32)
    feeds = {"x": logits, "i": labels, "v": targets, "n": np.full(32, 100, np.int32)}
    yield "CTCLoss [100,32,80]", feeds, lambda f: tf.raw_ops.CTCLoss(
        inputs=f["x"], labels_indices=f["i"], labels_values=f["v"], sequence_length=f["n"]).loss
    yield "CTCBeamSearchDecoder [100,32,80]", feeds, lambda f: tf.raw_ops.CTCBeamSearchDecoder(
        inputs=f["x"], sequence_length=f["n"], beam_width=100, top_paths=1).log_probability
    audio = random.standard_normal((60 * 44100, 1)).astype(np.float32)
    yield "AudioSpectrogram 60 s", {"x": audio}, lambda f: tf.raw_ops.AudioSpectrogram(
        input=f["x"], window_size=1024, stride=512)
    powers = random.random((1, 5000, 513), np.float32)
    yield "Mfcc [1,5000,513]", {"x": powers}, lambda f: tf.raw_ops.Mfcc(
        spectrogram=f["x"], sample_rate=tf.constant(44100))


def measure(tf, args, folder, name, feeds, build, threads):
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        placeholders = {}
        for key, array in feeds.items():
            dtype = tf.string if array.dtype.kind == "S" else array.dtype
            placeholders[key] = v1.placeholder(dtype, array.shape, name=key)
            np.save(folder / f"{key}.npy", array)
        tf.identity(build(placeholders), name="y")
        (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    tensors = {key: tf.constant(array) for key, array in feeds.items()}
    paths = {key: folder / f"{key}.npy" for key in feeds}
    command = timing.bench_command(args, folder / "graph.pb", paths, threads)
    timing.compare(f"{name}, {threads} threads", command, lambda: build(tensors), args.repeat)


def main():
    args = timing.parse_arguments(__doc__, repeat=5)
    if len(args.threads) > 1:
        # TensorFlow's number of threads cannot change.
        for number in args.threads:
            command = [sys.executable, __file__, args.gradflow, "--threads", str(number)]
            subprocess.run([*command, "--repeat", str(args.repeat), "--only", args.only], check=True)
        return
    import tensorflow as tf

    threads = args.threads[0]
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        for name, feeds, build in cases(tf):
            if args.only in name:
                measure(tf, args, pathlib.Path(folder), name, feeds, build, threads)


if __name__ == "__main__":
    main()
