#!/usr/bin/env python3
"""Makes graphs with version 1 control flow, and records what TensorFlow computes.

usage: version1_graphs.py OUTPUT [--only TEXT]

Needs Python's tensorflow-cpu and numpy. OUTPUT/NAME are recordings (recordings.py describes their files), which
gradflow_replay replays. The graphs of tf.compat.v1 have Switch, Merge, Enter and Exit: recurrent networks and their
gradients, a beam search, a map over images, and combinations of branches, loops, variables and assertions. The graphs
NAME-lowered and NAME-calls are frozen forms of one function of TensorFlow 2, with and without lower_control_flow.
"""

import argparse
import os
import pathlib
import sys
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402

import recordings  # noqa: E402
import tensorflow as tf  # noqa: E402
from recordings import Step  # noqa: E402

v1 = tf.compat.v1
random = np.random.default_rng(7)


def floats(*shape):
    return random.standard_normal(shape).astype(np.float32)


def constant(*shape, scale=0.3):
    return tf.constant(scale * floats(*shape))


class Cell:
    """An LSTM cell, as tf.compat.v1.nn.dynamic_rnn expects it."""

    def __init__(self, inputs, units):
        self.state_size = (units, units)
        self.output_size = units
        self.weights = constant(inputs + units, 4 * units)

    def zero_state(self, batch, dtype):
        return tuple(tf.zeros([batch, n], dtype) for n in self.state_size)

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return self.zero_state(batch_size, dtype)

    def __call__(self, inputs, state, scope=None):
        c, h = state
        i, f, g, o = tf.split(tf.concat([inputs, h], 1) @ self.weights, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (c, h)


# Each of these functions returns the fetches, feeds by placeholder, and optionally an operation that runs first.


def dynamic_rnn(lengths=None):
    x = v1.placeholder(tf.float32, [None, None, 3], "x")
    y, (c, h) = v1.nn.dynamic_rnn(Cell(3, 4), x, sequence_length=lengths, dtype=tf.float32)
    return [y, c, h], {x: floats(2, 5, 3)}


def dynamic_rnn_gradient():
    fetches, feeds = dynamic_rnn(tf.constant([5, 3]))
    (x,) = feeds
    return [*fetches, *tf.gradients([tf.reduce_sum(fetches[0] ** 2)], [x])], feeds


def bidirectional_rnn():
    x = v1.placeholder(tf.float32, [None, None, 3], "x")
    n = v1.placeholder(tf.int32, [None], "n")
    (a, b), _ = v1.nn.bidirectional_dynamic_rnn(Cell(3, 4), Cell(3, 2), x, sequence_length=n, dtype=tf.float32)
    return [a, b, *tf.gradients([a, b], [x])], {x: floats(2, 5, 3), n: np.array([2, 5], np.int32)}


def raw_rnn():
    x = v1.placeholder(tf.float32, [4, 2, 3], "x")
    array = tf.TensorArray(tf.float32, 4).unstack(x)
    cell = Cell(3, 4)

    def loop(time, output, state, _):
        done = time >= tf.constant([4, 2])
        state = cell.zero_state(2, tf.float32) if state is None else state
        zeros = lambda: tf.zeros([2, 3])  # noqa: E731
        return done, tf.cond(tf.reduce_all(done), zeros, lambda: array.read(time)), state, output, None

    outputs, state, _ = v1.nn.raw_rnn(cell, loop)
    return [outputs.stack(), *state], {x: floats(4, 2, 3)}


def beam_search():
    width, vocabulary, steps = 3, 5, 6
    table, embedding = constant(4, vocabulary, scale=2), constant(vocabulary, 4)
    first = v1.placeholder(tf.float32, [4], "first")

    def body(i, states, scores, tokens, finished):
        logits = tf.nn.log_softmax(states @ table)
        logits = tf.where(tf.tile(finished[:, None], [1, vocabulary]), tf.zeros_like(logits), logits)
        best, at = tf.nn.top_k(tf.reshape(scores[:, None] + logits, [-1]), width)
        beam, token = at // vocabulary, at % vocabulary
        states = tf.tanh(tf.gather(states, beam) + tf.gather(embedding, token))
        return i + 1, states, best, tokens.write(i, token), tf.logical_or(tf.gather(finished, beam), token == 0)

    scores = tf.constant([0.0, -1e9, -1e9])
    arrays = tf.TensorArray(tf.int32, 0, dynamic_size=True)
    state = [tf.constant(0), tf.tile(first[None], [width, 1]), scores, arrays, tf.zeros([width], tf.bool)]
    go_on = lambda i, *rest: tf.logical_and(i < steps, tf.logical_not(tf.reduce_all(rest[-1])))  # noqa: E731
    i, _, scores, tokens, _ = tf.while_loop(go_on, body, state, parallel_iterations=1)
    return [i, scores, tokens.stack()], {first: floats(4)}


def detection():
    """Non-maximum suppression in a map over images, with padding, as SSD models have it."""
    boxes = v1.placeholder(tf.float32, [None, 8, 4], "boxes")
    scores = v1.placeholder(tf.float32, [None, 8], "scores")

    def one(arguments):
        b, s = arguments
        kept = tf.image.non_max_suppression(b, s, 4, 0.5)
        count = tf.shape(kept)[0]
        pad = lambda t: tf.pad(t, [[0, 4 - count]] + [[0, 0]] * (t.shape.rank - 1))  # noqa: E731
        return pad(tf.gather(b, kept)), pad(tf.gather(s, kept)), count

    types = (tf.float32, tf.float32, tf.int32)
    corner, size = random.random((3, 8, 2)), 0.4 * random.random((3, 8, 2))
    values = np.concatenate([corner, corner + size], 2).astype(np.float32)
    results = v1.map_fn(one, (boxes, scores), dtype=types, parallel_iterations=4)
    return list(results), {boxes: values, scores: random.random((3, 8)).astype(np.float32)}


def cond_in_while_in_cond():
    x = v1.placeholder(tf.int32, [], "x")
    p = v1.placeholder(tf.bool, [], "p")
    collatz = lambda v: tf.cond(tf.equal(v % 2, 1), lambda: 3 * v + 1, lambda: v // 2)  # noqa: E731
    steps = lambda: tf.while_loop(lambda i, v: v > 1, lambda i, v: (i + 1, collatz(v)), (0, x))  # noqa: E731
    count, last = tf.cond(p, steps, lambda: (tf.constant(-1), x))
    return [count, last], [{x: 27, p: True}, {x: 27, p: False}, {x: 1, p: True}]


def nested_whiles():
    n = v1.placeholder(tf.int32, [], "n")
    x = v1.placeholder(tf.float32, [3], "x")

    def outer(i, v):
        inner = lambda j, w: (j + 1, w + tf.cast(i * j, tf.float32) * x)  # noqa: E731
        return i + 1, tf.while_loop(lambda j, w: j < i, inner, (0, v))[1] * 0.5

    y = tf.while_loop(lambda i, v: i < n, outer, (0, tf.zeros([3]) + x))[1]
    return [y, *tf.gradients([y], [x])], [{n: 5, x: floats(3)}, {n: 0, x: floats(3)}]


def cond_gradient():
    x = v1.placeholder(tf.float32, [3], "x")
    p = v1.placeholder(tf.bool, [], "p")
    y = tf.cond(p, lambda: tf.cond(x[0] > 0, lambda: x * x, lambda: tf.exp(x)), lambda: tf.sin(x))
    values = [np.float32([1, 2, 3]), np.float32([-1, 2, 3])]
    return [y, *tf.gradients([y], [x])], [{x: value, p: flag} for value in values for flag in (True, False)]


def assertions():
    n = v1.placeholder(tf.int32, [], "n")

    def body(i, v):
        with tf.control_dependencies([v1.assert_less(v, 100), v1.assert_greater_equal(i, 0)]):
            return i + 1, v * 2

    i, v = tf.while_loop(lambda i, v: i < n, body, (0, 1))
    skipped = tf.cond(n > 100, lambda: v1.assert_less(v, 0).type and v + 1, lambda: v)
    return [i, v, skipped], [{n: 5}, {n: 7}, {n: 9}]


def variables(use_resource):
    counter = v1.get_variable("counter", initializer=0, use_resource=use_resource)
    total = v1.get_variable("total", initializer=0.0, use_resource=use_resource)
    n = v1.placeholder(tf.int32, [], "n")

    def body(i):
        with tf.control_dependencies([v1.assign_add(counter, i), v1.assign_add(total, 0.5)]):
            return tf.identity(i) + 1

    (i,) = tf.while_loop(lambda i: i < n, body, [0], parallel_iterations=1)
    with tf.control_dependencies([i]):
        reads = [tf.identity(v1.assign_add(counter, 0)), tf.identity(v1.assign_add(total, 0.0))]
    with tf.control_dependencies([r + 0 for r in reads]):
        last = tf.cond(n > 3, lambda: v1.assign_add(total, 100.0), lambda: tf.constant(-1.0)) + 0
    return [i, reads[0] + 0, last], [{n: 4}, {n: 2}], v1.global_variables_initializer()


def no_exit():
    x = v1.placeholder(tf.float32, [2], "x")
    i, _, _ = tf.while_loop(lambda i, v, w: tf.reduce_sum(v) < 100, lambda i, v, w: (i + 1, v * 2 + w, w + 1), (0, x, x))
    return [i], {x: np.float32([1, 2])}


def while_gradient():
    x = v1.placeholder(tf.float32, [3], "x")
    w = constant(3, 3)
    body = lambda i, v: (i + 1, tf.tanh(tf.linalg.matvec(w, v) + x))  # noqa: E731
    y = tf.while_loop(lambda i, v: i < 6, body, (0, x))[1]
    (dx,) = tf.gradients([y], [x])
    return [y, dx, *tf.gradients([dx[0]], [x])][:2], {x: floats(3)}


def case():
    i = v1.placeholder(tf.int32, [], "i")
    x = v1.placeholder(tf.float32, [2], "x")
    branches = [lambda: x + 1, lambda: x * 10, lambda: tf.while_loop(lambda v: v[0] < 50, lambda v: v * 3, [x + 1])[0]]
    y = v1.case([(tf.equal(i, k), branch) for k, branch in enumerate(branches)], default=lambda: -x)
    return [y], [{i: k, x: np.float32([1, 2])} for k in range(4)]


def tensor_arrays():
    x = v1.placeholder(tf.float32, [4, 2], "x")
    array = tf.TensorArray(tf.float32, 4, clear_after_read=False).unstack(x)
    sums = tf.TensorArray(tf.float32, 1, dynamic_size=True, infer_shape=False)
    body = lambda i, a: (i + 1, a.write(i, tf.reduce_sum(array.read(i)) * tf.ones([i + 1])))  # noqa: E731
    n, sums = tf.while_loop(lambda i, a: i < 4, body, (0, sums))
    y = sums.concat()
    parts = tf.TensorArray(tf.float32, 2).split(x, [1, 3])
    return [n, sums.size(), y, parts.concat(), *tf.gradients([y], [x])], {x: floats(4, 2)}


def scan_and_fold():
    x = v1.placeholder(tf.float32, [5], "x")
    s = v1.scan(lambda a, b: a * 0.5 + b, x)
    f = v1.foldl(lambda a, b: a * b + 1, x)
    r = v1.foldr(lambda a, b: a - b, x)
    return [s, f, r, *tf.gradients([s, f], [x])], {x: floats(5)}


def strings():
    n = v1.placeholder(tf.int32, [], "n")
    array = tf.TensorArray(tf.string, 0, dynamic_size=True)
    body = lambda i, a: (i + 1, a.write(i, tf.constant("step")))  # noqa: E731
    return [tf.while_loop(lambda i, a: i < n, body, (0, array))[1].stack()], {n: 3}


VERSION1 = {
    "dynamic_rnn": dynamic_rnn,
    "dynamic_rnn_gradient": dynamic_rnn_gradient,
    "bidirectional_rnn": bidirectional_rnn,
    "raw_rnn": raw_rnn,
    "beam_search": beam_search,
    "detection": detection,
    "cond_in_while_in_cond": cond_in_while_in_cond,
    "nested_whiles": nested_whiles,
    "cond_gradient": cond_gradient,
    "assertions": assertions,
    "ref_variables": lambda: variables(False),
    "resource_variables": lambda: variables(True),
    "no_exit": no_exit,
    "while_gradient": while_gradient,
    "case": case,
    "tensor_arrays": tensor_arrays,
    "scan_and_fold": scan_and_fold,
    "strings": strings,
}


def record(folder, graph_def, names, runs, before=()):
    """Runs a graph in a new session, and writes a recording. `runs` are feeds by name."""
    steps = []
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with v1.Session(graph=graph) as session:
            for target in before:
                session.run(graph.get_operation_by_name(target))
                steps.append(Step({}, {}, [target]))
            for feeds in runs:
                step = Step({recordings.tensor_name(k): np.asarray(v) for k, v in feeds.items()}, dict.fromkeys(names), [])
                try:
                    values = session.run([n if ":" in n else n + ":0" for n in names], feeds)
                    step.fetches = {n: np.asarray(v, object if getattr(v, "dtype", None) == object else None) for n, v in zip(names, values)}
                except tf.errors.OpError as error:
                    step.status = recordings.code_name(error.error_code)
                steps.append(step)
    recordings.strip(graph_def)
    recordings.write(folder, graph_def, steps)


def make_version1(folder, function):
    v1.disable_control_flow_v2()
    random.bit_generator.state = np.random.default_rng(7).bit_generator.state
    with tf.Graph().as_default() as graph:
        fetches, feeds, *before = function()
        runs = feeds if isinstance(feeds, list) else [feeds]
        types = {op.type for op in graph.get_operations()}
        assert types & {"Switch", "Enter"}, types
        graph_def = graph.as_graph_def()
    feeds = [{k.name: np.asarray(v, k.dtype.as_numpy_dtype) for k, v in run.items()} for run in runs]
    record(folder, graph_def, [recordings.tensor_name(t.name) for t in fetches], feeds, [op.name for op in before])


# Functions of TensorFlow 2, with their arguments.


def models():
    w = tf.constant(0.3 * floats(3, 3))

    @tf.function
    def rnn(x):
        state = tf.zeros([tf.shape(x)[0], 3])
        for t in tf.range(tf.shape(x)[1]):
            state = tf.tanh(x[:, t] @ w + state)
        return state

    @tf.function
    def collatz(x):
        count = 0
        while x > 1:
            x = tf.cond(x % 2 == 1, lambda: 3 * x + 1, lambda: x // 2)
            count += 1
        return count

    @tf.function
    def branches(i, x):
        return tf.switch_case(i, [lambda: x + 1, lambda: x * 10, lambda: -x])

    @tf.function
    def map_images(x):
        return tf.map_fn(lambda a: tf.cond(tf.reduce_sum(a) > 0, lambda: tf.sort(a), lambda: a[::-1]), x)

    @tf.function
    def nested(n):
        total = 0
        for i in tf.range(n):
            for j in tf.range(i):
                if j % 2 == 0:
                    total += i * j
        return total

    @tf.function
    def search(x):
        tokens = tf.TensorArray(tf.int32, 0, dynamic_size=True)
        state, i = x, 0
        while i < 5 and tf.reduce_sum(state) < 10:
            token = tf.argmax(state, output_type=tf.int32)
            tokens = tokens.write(i, token)
            state = tf.linalg.matvec(w, state) + tf.one_hot(token, 3)
            i += 1
        return tokens.stack(), state

    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = tf.tanh(tf.linalg.matvec(w, y)) + x
        return tape.gradient(y, x)

    @tf.function
    def checked(x):
        if x > 0:
            tf.debugging.assert_less(x, 10.0)
            return x * 2
        return -x

    @tf.function
    def scan(x):
        return tf.scan(lambda a, b: a * 0.5 + b, x)

    cell = tf.keras.Sequential([tf.keras.Input([4, 3]), tf.keras.layers.LSTM(5), tf.keras.layers.Dense(2)])
    lstm = tf.function(lambda x: cell(x))
    f, i = np.float32, np.int32
    return {
        "rnn": (rnn, [floats(2, 4, 3)]),
        "collatz": (collatz, [i(7)]),
        "branches": (branches, [i(1), f([1, 2])]),
        "map_images": (map_images, [floats(3, 4)]),
        "nested": (nested, [i(6)]),
        "search": (search, [floats(3)]),
        "gradient": (gradient, [floats(3)]),
        "checked": (checked, [f(3)]),
        "scan": (scan, [floats(5)]),
        "lstm": (lstm, [floats(2, 4, 3)]),
    }


def make_frozen(output, name, function, arguments):
    from tensorflow.python.framework import convert_to_constants

    v1.enable_control_flow_v2()
    concrete = function.get_concrete_function(*[tf.TensorSpec(np.shape(a), np.asarray(a).dtype) for a in arguments])
    for lower in (True, False):
        frozen = convert_to_constants.convert_variables_to_constants_v2(concrete, lower_control_flow=lower)
        feeds = dict(zip([t.name for t in frozen.inputs], arguments))
        fetches = [recordings.tensor_name(t.name) for t in frozen.outputs]
        record(output / f"{name}-{'lowered' if lower else 'calls'}", frozen.graph.as_graph_def(), fetches, [feeds])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    failed = 0
    makers = [(name, lambda f=f, name=name: make_version1(args.output / name, f)) for name, f in VERSION1.items()]
    for name, (f, values) in models().items():
        makers.append((name, lambda f=f, name=name, values=values: make_frozen(args.output, name, f, values)))
    for name, make in makers:
        if args.only not in name:
            continue
        try:
            make()
            print(name)
        except Exception:
            failed += 1
            print(name, "FAILED")
            traceback.print_exc(limit=-3)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
