#!/usr/bin/env python3
"""Times an LSTM of many steps as a While and unrolled, in gradflow and in TensorFlow.

usage: lstm_loop.py GRADFLOW FOLDER [--steps N] [--units N] [--batch N] [--repeat N]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the program. Writes the graphs and the input to FOLDER, runs each
contestant on one thread, alternating, and prints the medians in milliseconds. The values of all contestants must agree.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1


def cell(x, h, c, kernel, bias):
    gates = tf.matmul(tf.concat([x, h], 1), kernel) + bias
    i, f, g, o = tf.split(gates, 4, 1)
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def build(steps, batch, units, unrolled):
    graph = tf.Graph()
    random = np.random.RandomState(1)
    with graph.as_default():
        v1.enable_control_flow_v2()
        x = v1.placeholder(tf.float32, [steps, batch, units], name="x")
        kernel = tf.constant(random.uniform(-0.1, 0.1, [2 * units, 4 * units]).astype(np.float32))
        bias = tf.constant(random.uniform(-0.1, 0.1, [4 * units]).astype(np.float32))
        h = c = tf.zeros([batch, units])
        if unrolled:
            for step in range(steps):
                h, c = cell(x[step], h, c, kernel, bias)
        else:
            def body(step, h, c):
                h, c = cell(tf.gather(x, step), h, c, kernel, bias)
                return step + 1, h, c

            _, h, c = tf.while_loop(lambda step, h, c: step < steps, body, [tf.constant(0), h, c])
        tf.identity(h, name="h")
    return graph


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gradflow")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    x = np.random.RandomState(2).uniform(-1, 1, [args.steps, args.batch, args.units]).astype(np.float32)
    np.save(args.folder / "x.npy", x)
    sessions = {}
    times = {}
    values = {}
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    for name in ("while", "unrolled"):
        graph = build(args.steps, args.batch, args.units, name == "unrolled")
        (args.folder / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())
        sessions[name] = v1.Session(graph=graph, config=config)
        values["TensorFlow", name] = sessions[name].run("h:0", {"x:0": x})
        subprocess.run(
            [args.gradflow, "run", args.folder / f"{name}.pb", "--feed", f"x={args.folder / 'x.npy'}",
             "--fetch", f"h={args.folder / 'h.npy'}"], check=True, stdout=subprocess.DEVNULL)
        values["gradflow", name] = np.load(args.folder / "h.npy")
    for _ in range(args.repeat):
        for name, session in sessions.items():
            call = session.make_callable("h:0", ["x:0"])
            call(x)
            runs = []
            for _ in range(10):
                start = time.perf_counter()
                call(x)
                runs.append(time.perf_counter() - start)
            times.setdefault(("TensorFlow", name), []).append(statistics.median(runs) * 1000)
            report = json.loads(subprocess.run(
                [args.gradflow, "bench", args.folder / f"{name}.pb", "--feed", f"x={args.folder / 'x.npy'}",
                 "--fetch", "h", "--threads", "1", "--repeat", "10", "--json"],
                check=True, stdout=subprocess.PIPE).stdout)
            times.setdefault(("gradflow", name), []).append(report["median_ms"])
    for key, samples in times.items():
        print(f"{key[0]:10}  {key[1]:8}  {statistics.median(samples):8.3f} ms")
    largest = np.abs(values["TensorFlow", "while"]).max()
    for key, value in values.items():
        difference = np.abs(value - values["TensorFlow", "while"]).max() / largest
        print(f"{key[0]:10}  {key[1]:8}  differs by {difference:.1e} of the largest element")


if __name__ == "__main__":
    main()
