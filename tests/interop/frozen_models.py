#!/usr/bin/env python3
"""Compares the frozen graphs of onnx/tensorflow-onnx with TensorFlow.

usage: frozen_models.py GRADFLOW MODELS

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. MODELS is the
folder tests/models of the repository onnx/tensorflow-onnx: fully connected layers, an auto-encoder, an LSTM, a GRU and a
regression. `gradflow run` must agree with TensorFlow to 1e-5, relative to the largest output.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402

TOLERANCE = 1e-5

# File, inputs and output, as in run_pretrained_models.yaml.
MODELS = [
    ("fc-layers/frozen.pb", {"X": [3, 784]}, "output"),
    ("ae0/frozen.pb", {"X": [3, 784]}, "output"),
    ("lstm/frozen.pb", {"X": [3, 784]}, "output"),
    ("gru/frozen.pb", {"X": [3, 784]}, "output"),
    ("regression/graphdef/frozen.pb", {"X": [5]}, "pred"),
]


def compare(gradflow, path, shapes, fetch, folder):
    import tensorflow as tf

    v1 = tf.compat.v1
    graph_def = v1.GraphDef.FromString(path.read_bytes())
    random = np.random.default_rng(1)
    feeds = {name: random.random(shape).astype(np.float32) for name, shape in shapes.items()}
    if any(node.name == "keep_prob" for node in graph_def.node):
        feeds["keep_prob"] = np.float32(1)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with v1.Session(graph=graph) as session:
            expected = session.run(fetch + ":0", {name + ":0": value for name, value in feeds.items()})
    command = [gradflow, "run", str(path), "--fetch", f"{fetch}={folder}/out.npy"]
    for name, value in feeds.items():
        np.save(f"{folder}/{name}.npy", value)
        command += ["--feed", f"{name}={folder}/{name}.npy"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"{path}: {run.stderr.strip()}")
        return False
    error = np.abs(np.load(f"{folder}/out.npy") - expected).max() / np.abs(expected).max()
    print(f"{path}: {'agrees' if error <= TOLERANCE else 'DIFFERS'}, relative difference {error:.2g}")
    return bool(error <= TOLERANCE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradflow")
    parser.add_argument("models", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = [compare(args.gradflow, args.models / file, shapes, fetch, folder) for file, shapes, fetch in MODELS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
