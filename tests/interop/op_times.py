#!/usr/bin/env python3
"""Compares the times of ops with TensorFlow or NumPy on the same inputs.

usage: op_times.py GRADFLOW [--threads N]... [--repeat N] [--only SUBSTRING]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Both programs
run the same graph in turn, five rounds each. Prints the medians of their times in milliseconds, and gradflow's time
divided by the other's.
"""

import pathlib
import tempfile

import numpy as np
import timing


def top_k_of_numpy(x):
    indices = np.argpartition(x, -10)[-10:]
    return x[indices[np.argsort(-x[indices])]]


def cases():
    """Yields a name, an input, a function that adds the op to TensorFlow's graph, and an optional other reference."""
    import tensorflow as tf

    random = np.random.default_rng(1)
    images = random.random((8, 256, 256, 3), np.float32)
    features = random.random((8, 64, 64, 64), np.float32)
    for method in ("bilinear", "nearest_neighbor", "bicubic", "area"):
        op = getattr(tf.raw_ops, "Resize" + {"nearest_neighbor": "NearestNeighbor"}.get(method, method.title()))
        centers = {} if method == "area" else {"half_pixel_centers": True}
        for kind, x, size in (("up", images, 384), ("down", images, 224), ("up", features, 128)):
            name = f"{op.__name__} {kind} {list(x.shape)} to {size}"
            yield name, x, lambda t, op=op, size=size, centers=centers: op(images=t, size=[size, size], **centers), None
    for method in ("bilinear", "bicubic"):
        op = getattr(tf.raw_ops, f"Resize{method.title()}Grad")
        for x, size, depth in ((images, 224, 3), (features, 32, 64)):
            name = f"{op.__name__} {list(x.shape)} to {size}"
            yield name, x, lambda t, op=op, size=size, depth=depth: op(
                grads=t, original_image=tf.zeros([8, size, size, depth]), half_pixel_centers=True), None
    places = np.unique(random.integers(0, 10**10, 10**7))
    indices = np.stack([places // 10**5, places % 10**5], 1)
    values = random.random(len(places), np.float32)
    for columns in (1, 8, 64):
        b = random.random((10**5, columns), np.float32)
        for adjoint in (False, True):
            name = f"SparseTensorDenseMatMul 10^7 entries {'adjoint ' if adjoint else ''}by {list(b.shape)}"
            yield name, values, lambda t, b=b, adjoint=adjoint: tf.raw_ops.SparseTensorDenseMatMul(
                a_indices=indices, a_values=t, a_shape=[10**5, 10**5], b=b, adjoint_a=adjoint), None
    many = random.random(1000000, np.float32)
    yield "TopKV2 10 of 10^6", many, lambda t: tf.math.top_k(t, 10).values, None
    yield "TopKV2 10 of 10^6", many, lambda t: tf.math.top_k(t, 10).values, top_k_of_numpy


def measure(args, folder, name, x, build, peer, threads):
    import tensorflow as tf

    v1 = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    with tf.Graph().as_default() as graph:
        tf.identity(build(v1.placeholder(tf.float32, x.shape, name="x")), name="y")
        path = folder / "graph.pb"
        path.write_bytes(graph.as_graph_def().SerializeToString())
        np.save(folder / "x.npy", x)
        command = timing.bench_command(args, path, {"x": folder / "x.npy"}, threads)
        title = f"{name}, {threads} threads"
        if peer:
            timing.compare(title, command, lambda: peer(x), args.repeat, "NumPy")
            return
        with v1.Session(graph=graph, config=config) as session:
            run = session.make_callable("y:0", ["x:0"])
            timing.compare(title, command, lambda: run(x), args.repeat)


def main():
    args = timing.parse_arguments(__doc__, repeat=11)
    with tempfile.TemporaryDirectory() as folder:
        for name, x, build, peer in cases():
            if args.only not in name:
                continue
            for threads in args.threads:
                measure(args, pathlib.Path(folder), name, x, build, peer, threads)


if __name__ == "__main__":
    main()
