#!/usr/bin/env python3
"""Exchanges checkpoints with TensorFlow, both ways.

usage: checkpoints.py GRADFLOW [--sources REPOSITORY]... [PREFIX]...

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Both programs
run the same graphs. The graphs save tensors of all types in TensorFlow's V2 format and in the old format, in shards that are
merged, and in slices. `gradflow checkpoint` must read each tensor of TensorFlow's files to the bit, and TensorFlow must read
each tensor of gradflow's files. Both programs also read all tensors, including strings, of checkpoints from
tf.train.Checkpoint and Keras, of each PREFIX, and of all checkpoints in the git repository REPOSITORY, such as TensorFlow's
sources.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1

NUMBERS = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 complex64 complex128 bool".split()
# The old format only supports these types.
OLD_NUMBERS = "float32 float64 int8 int16 int32 int64 uint8 complex64 bool".split()


def values(types):
    """Returns tensors by name: one of each type, an empty tensor, a scalar, and large tensors."""
    random = np.random.default_rng(7)
    tensors = {}
    for name in types:
        bits = random.integers(0, 2 if name == "bool" else 256, size=3 * 5 * 16, dtype=np.uint8)
        dtype = np.dtype(name)
        flat = bits.view(dtype) if name != "bool" else bits.astype(bool)
        tensors[f"of/{name}"] = flat[:15].reshape(3, 5)
        tensors[f"empty/{name}"] = flat[:0].reshape(0, 4)
    tensors["scalar"] = np.float32(-0.0)
    tensors["large"] = random.standard_normal((700, 1000)).astype(np.float32)
    return tensors


def graph_of(tensors, save):
    """Returns a graph whose node "all_saved" runs the ops that `save` adds for the constants."""
    with tf.Graph().as_default() as graph:
        constants = {name: tf.constant(value) for name, value in tensors.items()}
        with tf.control_dependencies([save(constants)]):
            tf.no_op(name="all_saved")
    return graph


def same(expected, actual):
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    return expected.tolist() == actual.tolist() if expected.dtype == object else expected.tobytes() == actual.tobytes()


class Programs:
    def __init__(self, gradflow, folder):
        self.gradflow = gradflow
        self.folder = folder

    def run(self, *arguments):
        result = subprocess.run([self.gradflow, *map(str, arguments)], capture_output=True, text=True)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip())
        return result.stdout

    def save_with_gradflow(self, graph):
        path = self.folder / "graph.pb"
        path.write_bytes(graph.as_graph_def().SerializeToString())
        self.run("run", path, "--target", "all_saved")

    def save_with_tensorflow(self, graph):
        with v1.Session(graph=graph) as session:
            session.run("all_saved")

    def read_with_gradflow(self, prefix, name):
        path = self.folder / "tensor.npy"
        self.run("checkpoint", prefix, "--tensor", name, "-o", path)
        return np.load(path)

    def read_strings_with_gradflow(self, prefix, name, expected):
        """Reads a tensor of strings. Writes each string to a file, because .npy pads strings to a fixed width."""
        files = [self.folder / f"string{i}" for i in range(expected.size)]
        with tf.Graph().as_default() as graph:
            (tensor,) = tf.raw_ops.RestoreV2(prefix=str(prefix), tensor_names=[name], shape_and_slices=[""], dtypes=[tf.string])
            tf.shape(tensor, name="shape")
            flat = tf.reshape(tensor, [-1])
            with tf.control_dependencies([tf.io.write_file(str(file), flat[i]) for i, file in enumerate(files)]):
                tf.no_op(name="all_written")
        graph_path, shape_path = self.folder / "graph.pb", self.folder / "shape.npy"
        graph_path.write_bytes(graph.as_graph_def().SerializeToString())
        self.run("run", graph_path, f"--fetch=shape={shape_path}", "--target=all_written")
        strings = np.empty(len(files), dtype=object)
        strings[:] = [file.read_bytes() for file in files]
        return strings.reshape(np.load(shape_path))

    def read_with_tensorflow(self, prefix, name):
        return tf.train.load_checkpoint(str(prefix)).get_tensor(name)

    # The op reads the old format; the command does not.

    def read_old_with_gradflow(self, path, tensors):
        graph_path = self.folder / "graph.pb"
        graph_path.write_bytes(restore_old(path, tensors).as_graph_def().SerializeToString())
        fetches = [f"--fetch=t{i}={self.folder}/{i}.npy" for i in range(len(tensors))]
        self.run("run", graph_path, *fetches)
        return {name: np.load(f"{self.folder}/{i}.npy") for i, name in enumerate(tensors)}

    def read_old_with_tensorflow(self, path, tensors):
        with v1.Session(graph=restore_old(path, tensors)) as session:
            return dict(zip(tensors, session.run([f"t{i}:0" for i in range(len(tensors))])))


def save_v2(prefix):
    def save(constants):
        return tf.raw_ops.SaveV2(
            prefix=str(prefix), tensor_names=list(constants), shape_and_slices=[""] * len(constants), tensors=list(constants.values())
        )

    return save


def save_shards(prefix):
    """Saves half of the tensors in each of two files, and then merges the files."""

    def save(constants):
        names = sorted(constants)
        parts = []
        for shard in range(2):
            part = f"{prefix}_temp/part-{shard}-of-2"
            mine = names[shard::2]
            op = tf.raw_ops.SaveV2(prefix=part, tensor_names=mine, shape_and_slices=[""] * len(mine), tensors=[constants[n] for n in mine])
            with tf.control_dependencies([op]):
                parts.append(tf.constant(part))
        return tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=tf.stack(parts), destination_prefix=str(prefix))

    return save


def save_slices(prefix):
    """Saves the rows of "large" as two slices of one tensor."""

    def save(constants):
        large = constants["large"]
        return tf.raw_ops.SaveV2(
            prefix=str(prefix), tensor_names=["large", "large"], shape_and_slices=["700 1000 0,300:-", "700 1000 300,400:-"], tensors=[large[:300], large[300:]]
        )

    return save


def save_old(path):
    def save(constants):
        return tf.raw_ops.Save(filename=str(path), tensor_names=list(constants), data=list(constants.values()))

    return save


def restore_old(path, tensors):
    """Returns a graph whose tensors t0, t1, ... are read from a file."""
    with tf.Graph().as_default() as graph:
        for i, (name, value) in enumerate(tensors.items()):
            tf.raw_ops.Restore(file_pattern=str(path), tensor_name=name, dt=np.asarray(value).dtype, name=f"t{i}")
    return graph


def compare(title, tensors, read):
    wrong = [name for name, value in tensors.items() if not same(value, read(name))]
    print(f"{title}: {len(tensors) - len(wrong)} of {len(tensors)} tensors agree" + "".join(f"\n  {name} differs" for name in wrong))
    return not wrong


def exchange(programs):
    numbers = values(NUMBERS)
    large = {"large": numbers["large"]}
    formats = [
        ("V2", numbers, save_v2),
        ("V2 in shards, merged", numbers, save_shards),
        ("V2 in slices", large, save_slices),
    ]
    ok = True
    for i, (title, tensors, save) in enumerate(formats):
        theirs, ours = programs.folder / f"theirs{i}", programs.folder / f"ours{i}"
        programs.save_with_tensorflow(graph_of(tensors, save(theirs)))
        ok &= compare(f"TensorFlow's, {title}, read by gradflow", tensors, lambda name: programs.read_with_gradflow(theirs, name))
        programs.save_with_gradflow(graph_of(tensors, save(ours)))
        ok &= compare(f"gradflow's, {title}, read by TensorFlow", tensors, lambda name: programs.read_with_tensorflow(ours, name))
    old = values(OLD_NUMBERS)
    # In the old format, both programs make signaling NaNs of complex numbers quiet, like an addition
    # does.
    with np.errstate(invalid="ignore"):
        old["of/complex64"] = old["of/complex64"] + np.complex64(0)
    theirs, ours = programs.folder / "theirs_old", programs.folder / "ours_old"
    programs.save_with_tensorflow(graph_of(old, save_old(theirs)))
    programs.save_with_gradflow(graph_of(old, save_old(ours)))
    ok &= compare("TensorFlow's, the old format, read by gradflow", old, programs.read_old_with_gradflow(theirs, old).get)
    ok &= compare("gradflow's, the old format, read by TensorFlow", old, programs.read_old_with_tensorflow(ours, old).get)
    return ok


def read_objects(programs):
    """Compares a checkpoint of tf.train.Checkpoint with an optimizer's slots."""
    variable = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3))
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3), tf.keras.layers.BatchNormalization()])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4), np.float32), np.ones((8, 3), np.float32), verbose=0)
    checkpoint = tf.train.Checkpoint(variable=variable, model=model, optimizer=model.optimizer)
    prefix = checkpoint.save(str(programs.folder / "objects"))
    return read_both("tf.train.Checkpoint's, read by both", programs, prefix)


def read_both(title, programs, prefix):
    """Compares the tensors that both programs read."""
    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    # A NumPy array of strings would drop NULs at the end of strings.
    tensors = {name: np.asarray(reader.get_tensor(name), dtype=object if dtype == tf.string else None) for name, dtype in types.items()}
    is_old = not pathlib.Path(f"{prefix}.index").exists()

    def read(name):
        if is_old:
            return programs.read_old_with_gradflow(prefix, {name: tensors[name]})[name]
        if types[name] == tf.string:
            return programs.read_strings_with_gradflow(prefix, name, tensors[name])
        return programs.read_with_gradflow(prefix, name)

    lines = programs.run("checkpoint", prefix).splitlines() if not is_old else []
    if not is_old and len(lines) != len(tensors) + 1:
        print(f"{title}: gradflow lists {len(lines) - 1} tensors, TensorFlow {len(tensors)}")
        return False
    return compare(title, tensors, read)


# A checkpoint consists of all files with a prefix. The V2 format has an index; the old format only
# has numbered files.
V2_INDEX = re.compile(r"(.*)\.index$")
OLD_FILE = re.compile(r"(.*-[0-9]{5}-of-[0-9]{5})$")


def read_sources(programs, repository):
    """Compares all checkpoints of a git repository, after writing them to a temporary folder."""

    def git(*arguments):
        return subprocess.run(["git", "-C", repository, *arguments], check=True, capture_output=True).stdout

    files = git("ls-tree", "-r", "--name-only", "HEAD").decode().splitlines()
    indexes = [m[1] for m in map(V2_INDEX.match, files) if m and any(f.startswith(f"{m[1]}.data-") for f in files)]
    old = [m[1] for m in map(OLD_FILE.match, files) if m and ".data-" not in m[1]]
    whole = 0
    for prefix in indexes + old:
        with tempfile.TemporaryDirectory(dir=programs.folder) as folder:
            for file in files:
                if file == prefix or file == f"{prefix}.index" or file.startswith(f"{prefix}.data-"):
                    (pathlib.Path(folder) / pathlib.Path(file).name).write_bytes(git("show", f"HEAD:{file}"))
            whole += read_both(prefix, programs, pathlib.Path(folder) / pathlib.Path(prefix).name)
    print(f"{repository}: {whole} of {len(indexes) + len(old)} checkpoints agree")
    return whole == len(indexes) + len(old) and whole > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gradflow")
    parser.add_argument("--sources", action="append", default=[], metavar="REPOSITORY")
    parser.add_argument("prefixes", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(arguments.gradflow, pathlib.Path(folder))
        ok = exchange(programs)
        ok &= read_objects(programs)
        for prefix in arguments.prefixes:
            ok &= read_both(prefix, programs, prefix)
        for repository in arguments.sources:
            ok &= read_sources(programs, repository)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
