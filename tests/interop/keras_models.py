#!/usr/bin/env python3
"""Compares frozen convolutional classifiers of Keras with TensorFlow: results and times.

usage: keras_models.py GRADFLOW [--folder FOLDER] [--model NAME]... [--batch N] [--threads N]... [--repeat N]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Each model
has random weights and random batch normalization, so that no layer is the identity. TensorFlow freezes it to
FOLDER/NAME.pb, and later calls reuse the file. `gradflow run` must agree with TensorFlow to 1e-4, relative to the largest
logit, with and without --fast if the command line has it. `gradflow bench` and TensorFlow then run the graph alternately,
and the medians of their times are printed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402

TOLERANCE = 1e-4
ROUNDS = 5

# Classes of keras.applications, and the size of their images.
MODELS = {
    "MobileNetV2": 224,
    "ResNet50": 224,
    "EfficientNetB0": 224,
    "InceptionV3": 299,
}


def freeze(name, path):
    """Writes a frozen model that outputs logits."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    tf.keras.utils.set_random_seed(1)
    model = getattr(tf.keras.applications, name)(weights=None, classifier_activation=None)
    random = np.random.default_rng(1)
    for variable in model.variables:
        # Makes the parameters of batch normalization differ from their initial values 0 and 1.
        kind = variable.path.rsplit("/", 1)[-1]
        shape = tuple(variable.shape)
        if kind in ("gamma", "moving_variance"):
            variable.assign(random.uniform(0.5, 1.5, shape))
        elif kind in ("beta", "moving_mean", "bias"):
            variable.assign(random.normal(0, 0.1, shape))
    size = MODELS[name]
    function = tf.function(lambda x: model(x, training=False))
    concrete = function.get_concrete_function(tf.TensorSpec([None, size, size, 3], tf.float32, "image"))
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    path.write_bytes(frozen.graph.as_graph_def().SerializeToString())


def ends(graph_def):
    """Returns the names of the placeholder and of the output."""
    used = {name.split(":")[0].lstrip("^") for node in graph_def.node for name in node.input}
    inputs = [node.name for node in graph_def.node if node.op == "Placeholder"]
    outputs = [node.name for node in graph_def.node if node.name not in used and node.op != "NoOp"]
    return inputs[0], outputs[0]


def time_tensorflow(path, fetch, feeds, threads, repeat):
    """Returns the median time of a run in milliseconds, and the result. """
    import tensorflow as tf

    v1 = tf.compat.v1
    graph_def = v1.GraphDef.FromString(path.read_bytes())
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with v1.Session(graph=graph, config=config) as session:
            run = session.make_callable(fetch + ":0", [name + ":0" for name in feeds])
            values = list(feeds.values())
            for _ in range(3):
                result = run(*values)
            times = []
            for _ in range(repeat):
                start = time.perf_counter()
                run(*values)
                times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times)), result


def compare(args, name):
    import tensorflow as tf

    path = args.folder / f"{name}.pb"
    if not path.exists():
        freeze(name, path)
    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    feed, fetch = ends(graph_def)
    image = np.random.default_rng(2).uniform(-1, 1, (args.batch, MODELS[name], MODELS[name], 3)).astype(np.float32)
    np.save(args.folder / "image.npy", image)
    result_file = args.folder / "logits.npy"
    result_file.unlink(missing_ok=True)
    flags = [str(path), "--feed", f"{feed}={args.folder / 'image.npy'}"]
    _, expected = time_tensorflow(path, fetch, {feed: image}, 0, 1)
    help_text = subprocess.run([args.gradflow, "run", "--help"], capture_output=True, text=True).stdout
    modes = [[]] + ([["--fast"]] if "--fast" in help_text else [])
    agrees = True
    for mode in modes:
        run = subprocess.run(
            [args.gradflow, "run", *flags, *mode, "--fetch", f"{fetch}={result_file}"], capture_output=True, text=True
        )
        if run.returncode != 0:
            print(f"{name}: {run.stderr.strip()}")
            return False
        error = np.abs(np.load(result_file) - expected).max() / np.abs(expected).max()
        agrees &= bool(error <= TOLERANCE)
        verdict = "agrees" if error <= TOLERANCE else "DIFFERS"
        print(f"{name} {' '.join(mode) or 'exact'}: {verdict}, relative difference {error:.2g}, {len(graph_def.node)} nodes")
    for threads in args.threads:
        times = {"TensorFlow": []}
        for _ in range(ROUNDS if args.repeat > 0 else 0):
            for mode in modes:
                command = [args.gradflow, "bench", *flags, *mode, "--fetch", fetch, "--threads", str(threads)]
                command += ["--repeat", str(args.repeat), "--json"]
                bench = subprocess.run(command, capture_output=True, text=True, check=True)
                times.setdefault(" ".join(["gradflow", *mode]), []).append(json.loads(bench.stdout)["median_ms"])
            times["TensorFlow"].append(time_tensorflow(path, fetch, {feed: image}, threads, args.repeat)[0])
        if args.repeat > 0:
            medians = ", ".join(f"{who} {np.median(t):.2f} ms" for who, t in times.items())
            print(f"{name} batch {args.batch}, {threads} threads: {medians}", flush=True)
    return agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradflow")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/tmp/gradflow_keras_models"))
    parser.add_argument("--model", action="append", choices=sorted(MODELS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=5, help="timed runs in each round; 0 disables timing")
    args = parser.parse_args()
    args.threads = args.threads or [1, 2]
    args.folder.mkdir(parents=True, exist_ok=True)
    results = [compare(args, name) for name in args.model or MODELS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
