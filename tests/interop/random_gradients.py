#!/usr/bin/env python3
"""Compares gradients of random graphs with TensorFlow's gradients.

usage: random_gradients.py GRADFLOW [--graphs N] [--seed S] [--keep FOLDER]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Each graph
composes 5 to 50 random functions of doubles, with one to three placeholders and a scalar loss. The GraphDef is written
before TensorFlow adds its gradients. `gradflow gradients` adds gradients to it, and `gradflow run` computes them. They
must agree with TensorFlow's to 1e-5, relative to the largest element of the gradient. All graphs are parts of one graph,
so that each program runs once.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1

TOLERANCE = 1e-5

# Functions of one tensor of any shape. Their values stay moderate.
UNARY = [
    tf.tanh, tf.sigmoid, tf.sin, tf.cos, tf.atan, tf.asinh, tf.square, tf.abs, tf.negative, tf.identity, tf.nn.relu,
    tf.nn.elu, tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.nn.leaky_relu, tf.nn.relu6, tf.math.erf, tf.math.erfc,
    tf.math.sign, tf.stop_gradient,
    lambda x: tf.exp(tf.tanh(x)),
    lambda x: tf.math.log1p(tf.square(x)),
    lambda x: tf.math.log(1.5 + tf.cos(x)),
    lambda x: tf.sqrt(1.0 + tf.square(x)),
    lambda x: tf.math.rsqrt(1.0 + tf.square(x)),
    lambda x: tf.math.reciprocal(2.0 + tf.sin(x)),
    lambda x: tf.math.lgamma(2.0 + tf.square(tf.tanh(x))),
    lambda x: tf.math.digamma(2.0 + tf.square(tf.tanh(x))),
    lambda x: tf.math.expm1(tf.tanh(x)),
    lambda x: tf.math.sinh(tf.tanh(x)),
    lambda x: tf.math.cosh(tf.tanh(x)),
    lambda x: tf.math.asin(0.9 * tf.tanh(x)),
    lambda x: tf.math.acos(0.9 * tf.tanh(x)),
    lambda x: tf.math.atanh(0.9 * tf.tanh(x)),
    lambda x: tf.math.acosh(1.5 + tf.square(x)),
    lambda x: tf.clip_by_value(x, -0.7, 0.8),
    lambda x: tf.pow(1.5 + tf.tanh(x), 2.5),
]
# Functions of two tensors, with broadcasting.
BINARY = [
    tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.math.squared_difference,
    lambda x, y: x / (2.0 + tf.cos(y)),
    lambda x, y: tf.math.divide_no_nan(x, 2.0 + tf.sin(y)),
    lambda x, y: tf.where(tf.greater(x, y), x, 2.0 * y),
    lambda x, y: tf.math.atan2(x, 2.0 + tf.square(y)),
    lambda x, y: tf.pow(1.5 + tf.sin(x), tf.tanh(y)),
    lambda x, y: tf.math.xlogy(x, 1.5 + tf.cos(y)),
    lambda x, y: tf.math.floormod(x, 2.0 + tf.square(y)),
]
# Functions of a matrix.
MATRIX = [
    tf.transpose,
    tf.nn.softmax,
    tf.nn.log_softmax,
    lambda x: tf.reduce_sum(x, 0, keepdims=True),
    lambda x: tf.reduce_mean(x, 1, keepdims=True),
    lambda x: tf.reduce_max(x, 1, keepdims=True),
    lambda x: tf.reduce_min(x, 0, keepdims=True),
    lambda x: tf.reduce_prod(tf.tanh(x), 1, keepdims=True),
    lambda x: tf.reduce_logsumexp(x, 1, keepdims=True),
    lambda x: tf.norm(1.0 + tf.square(x), axis=1, keepdims=True),
    lambda x: tf.cumsum(x, 1, exclusive=True),
    lambda x: tf.cumsum(x, 0, reverse=True),
    lambda x: tf.math.cumulative_logsumexp(x, 1),
    lambda x: tf.reverse(x, [0]),
    lambda x: tf.roll(x, 1, 1),
    lambda x: tf.tile(x, [1, 2])[:, :4],
    lambda x: tf.pad(x, [[1, 0], [0, 1]])[:4, 1:],
    lambda x: tf.pad(x, [[1, 0], [0, 1]], mode="REFLECT")[1:, :4],
    lambda x: tf.gather(x, [0, 2, 2, 1]),
    lambda x: tf.gather(x, [3, 0, 0, 1], axis=1),
    lambda x: tf.gather(x, tf.constant([[0, 2], [1, 1], [3, 0], [2, 2]]), axis=1, batch_dims=1),
    lambda x: tf.gather_nd(x, [[0, 1], [2, 3], [0, 1]]),
    lambda x: tf.math.segment_sum(x, [0, 0, 1, 1]),
    lambda x: tf.math.unsorted_segment_max(x, [1, 0, 1, 0], 2),
    lambda x: tf.math.unsorted_segment_prod(tf.tanh(x), [1, 0, 1, 0], 2),
    lambda x: tf.math.segment_mean(x, [0, 0, 0, 1]),
    lambda x: tf.math.top_k(x, 2).values,
    lambda x: tf.linalg.band_part(x, 1, 0),
    lambda x: tf.linalg.diag_part(x),
    lambda x: tf.linalg.set_diag(x, tf.reduce_sum(x, 1)),
    lambda x: tf.concat([x, tf.sin(x)], 1),
    lambda x: tf.split(x, 2, 1)[1],
    lambda x: tf.stack(tf.unstack(x, axis=1)[::-1]),
    lambda x: tf.strided_slice(x, [3, 0], [0, 4], [-2, 1]),
    lambda x: tf.reshape(x, [2, -1]),
    lambda x: tf.einsum("ij,kj->ik", x, tf.cos(x)),
    lambda x: tf.linalg.inv(tf.eye(4, dtype=tf.float64) * 5.0 + tf.tanh(x)),
    lambda x: tf.linalg.det(tf.eye(4, dtype=tf.float64) * 2.0 + tf.tanh(x)),
    lambda x: tf.linalg.logdet(tf.eye(4, dtype=tf.float64) * 5.0 + tf.matmul(x, x, transpose_b=True)),
    lambda x: tf.linalg.cholesky(tf.eye(4, dtype=tf.float64) * 5.0 + tf.matmul(x, x, transpose_b=True)),
    lambda x: tf.linalg.solve(tf.eye(4, dtype=tf.float64) * 5.0 + tf.tanh(x), x),
    lambda x: tf.linalg.triangular_solve(tf.eye(4, dtype=tf.float64) * 5.0 + tf.tanh(x), x),
    lambda x: tf.linalg.svd(tf.cast(tf.linalg.diag([9.0, 6.0, 3.0, 1.0]), tf.float64) + 0.3 * tf.tanh(x),
                            compute_uv=False),
    lambda x: tf.abs(tf.linalg.qr(tf.eye(4, dtype=tf.float64) * 5.0 + tf.tanh(x)).r),
    lambda x: tf.linalg.eigvalsh(tf.cast(tf.linalg.diag([9.0, 6.0, 3.0, 1.0]), tf.float64)
                                 + 0.2 * tf.tanh(x + tf.transpose(x))),
    lambda x: tf.abs(tf.signal.fft(tf.complex(x, tf.cos(x)))),
    lambda x: tf.math.real(tf.signal.rfft(x)),
    lambda x: tf.signal.irfft(tf.complex(x, tf.sin(x))),
    lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(tf.sin(x)), logits=x),
    lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 3, 2, 1], logits=x),
    lambda x: tf.nn.bias_add(x, tf.cast([1.0, 2.0, 3.0, 4.0], tf.float64)),
]


def as_matrix(x):
    """Returns a 4 x 4 matrix with the elements of any tensor."""
    known = x.shape.is_fully_defined()
    repeats = (16 + x.shape.num_elements() - 1) // x.shape.num_elements() if known else 16
    return tf.reshape(tf.tile(tf.reshape(x, [-1]), [repeats])[:16], [4, 4])


def make_graph(rng):
    """Adds a random graph. Returns its placeholders and loss."""
    shapes = [[4, 4], [4, 1], [4], [], [1, 4]]
    inputs = [v1.placeholder(tf.float64, rng.choice(shapes), name="x%d" % i) for i in range(rng.randint(1, 3))]
    tensors = list(inputs)
    for _ in range(rng.randint(5, 50)):
        kind = rng.random()
        x = rng.choice(tensors[-6:])
        if kind < 0.35:
            y = rng.choice(UNARY)(x)
        elif kind < 0.6:
            other = rng.choice(tensors)
            try:
                tf.broadcast_static_shape(x.shape, other.shape)
            except ValueError:
                x, other = as_matrix(x), as_matrix(other)
            y = rng.choice(BINARY)(x, other)
        elif kind < 0.7:
            y = tf.matmul(as_matrix(x), as_matrix(rng.choice(tensors)), transpose_a=rng.random() < 0.3,
                          transpose_b=rng.random() < 0.3) * 0.25
        else:
            y = rng.choice(MATRIX)(as_matrix(x))
        if not y.shape.is_fully_defined():
            y = as_matrix(y)
        # Keeps values moderate.
        tensors.append(tf.tanh(y) if rng.random() < 0.3 else 2.0 * tf.sin(0.5 * y))
    terms = [tf.reduce_sum(t) for t in tensors[-3:]]
    return inputs, tf.add_n(terms, name="loss")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(command[:2]), done.stderr.strip()))
    return done.stdout


def relative_error(mine, theirs):
    """Returns the largest difference relative to the largest finite value, or infinity if NaNs or infinities differ."""
    if mine.shape != theirs.shape:
        raise RuntimeError("shape %s, expected %s" % (mine.shape, theirs.shape))
    finite = np.isfinite(theirs)
    if not np.array_equal(mine[~finite], theirs[~finite], equal_nan=True) or not np.isfinite(mine[finite]).all():
        return float("inf")
    scale = max(np.max(np.abs(theirs[finite]), initial=0.0), 1e-12)
    return np.max(np.abs(mine[finite] - theirs[finite]), initial=0.0) / scale


def file_name(tensor_name):
    return tensor_name.replace("/", "-").replace(":", "@") + ".npy"


def check(gradflow, seeds, folder):
    """Returns the largest relative error of the gradients for each seed. All graphs are parts of one graph."""
    graph = tf.Graph()
    inputs, losses, owners, feeds = [], [], [], {}
    with graph.as_default():
        for seed in seeds:
            values = np.random.RandomState(seed)
            with tf.name_scope("g%d" % seed):
                xs, loss = make_graph(random.Random(seed))
            losses.append(loss)
            for x in xs:
                inputs.append(x)
                owners.append(seed)
                feeds[x] = values.uniform(-1.5, 1.5, x.shape.as_list())
        total = tf.add_n(losses, name="total")
        with open(os.path.join(folder, "graph.pb"), "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        gradients = tf.gradients(total, inputs)
        # Disables graph rewrites, because they take longer than the run.
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
        with v1.Session(graph=graph, config=config) as session:
            known = [g for g in gradients if g is not None]
            expected = dict(zip([g.name for g in known], session.run(known, feeds)))
    names = ",".join(x.op.name for x in inputs)
    out = os.path.join(folder, "out.pb")
    printed = run([gradflow, "gradients", os.path.join(folder, "graph.pb"), "--of", "total", "--wrt", names,
                   "-o", out])
    ours = dict(line.split(": ") for line in printed.splitlines())
    command = [gradflow, "run", out]
    for x, value in feeds.items():
        path = os.path.join(folder, file_name(x.op.name))
        np.save(path, value)
        command += ["--feed", "%s=%s" % (x.op.name, path)]
    fetched = {}
    for x, gradient in zip(inputs, gradients):
        name = ours[x.op.name]
        # If TensorFlow has no gradient, nothing is compared. If only gradflow has none, TensorFlow's must be zero.
        if gradient is None or name == "no gradient":
            continue
        fetched[x.op.name] = os.path.join(folder, file_name("d" + x.op.name))
        command += ["--fetch", "%s=%s" % (name, fetched[x.op.name])]
    run(command)
    errors = {seed: 0.0 for seed in seeds}
    for x, seed, gradient in zip(inputs, owners, gradients):
        if gradient is None:
            continue
        theirs = expected[gradient.name]
        mine = np.load(fetched[x.op.name]) if x.op.name in fetched else np.zeros_like(theirs)
        errors[seed] = max(errors[seed], relative_error(mine, theirs))
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradflow")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder for the files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or scratch
        os.makedirs(folder, exist_ok=True)
        errors = check(options.gradflow, range(options.seed, options.seed + options.graphs), folder)
    failures = {seed: error for seed, error in errors.items() if not error <= TOLERANCE}
    for seed, error in failures.items():
        print("seed %d: relative error %.3g" % (seed, error))
    worst = max((error for error in errors.values() if error <= TOLERANCE), default=0.0)
    print("%d of %d graphs agree; their largest relative error is %.3g"
          % (len(errors) - len(failures), len(errors), worst))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
