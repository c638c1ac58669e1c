#!/usr/bin/env python3
"""Compares integer inference with TensorFlow Lite: random single ops, and random networks.

usage: tflite.py GRADFLOW [--ops N] [--networks N] [--seed N] [--kind NAME]... [--verbose] [--record FILE]

Needs Python's tensorflow-cpu and numpy. GRADFLOW is the command line, such as build/release/tools/gradflow. Each graph has
fake-quantization nodes. TensorFlow's converter makes an int8 model of the graph, and the interpreter runs the model with
its reference kernels and with its optimized kernels. `gradflow run --int8=tflite` must agree with the reference kernels in
every bit of the results, which are integers times a scale. `gradflow run --int8` must agree within one step for single
ops; for networks, the script prints how often the largest output has the same index, and the mean difference in steps.
The exit code is 1 if a byte differs, if a single op differs more by default, if gradflow computes an op in floats, or if
nothing was compared.

--record writes a graph of small single ops with their inputs and TensorFlow Lite's results, packed for
tests/runtime/plan/tflite_rounding_test.cc. For each op, the graph has the constants NAME_x0_value, … and NAME_expected.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1

# The number of single ops of a graph. Conversion takes most of the time.
GROUP = 8
# The number of recorded ops of each kind.
RECORDED = 3


def pick(random, *choices):
    return choices[random.integers(len(choices))]


def weights_of(random, shape, scale=1.0):
    return (random.uniform(-1, 1, shape) * scale).astype(np.float32)


# ---- Ranges ----


def quantize(x, low, high, narrow=False):
    return tf.quantization.fake_quant_with_min_max_vars(x, float(low), float(high), narrow_range=narrow)


def random_range(random):
    """Returns a range that contains 0. Few of its zero points are simple."""
    kind = random.integers(6)
    bound = float(random.uniform(0.1, 8))
    if kind == 0:
        return 0.0, bound
    if kind == 1:
        return -bound, 0.0
    if kind == 2:
        # The zero point is half of a step from two integers.
        return -bound, bound
    if kind == 3:
        return -bound, bound * 127 / 128
    return -float(random.uniform(0.01, 6)), float(random.uniform(0.01, 6))


def zero_points_differ(low, high):
    """Returns whether fake quantization, in float, and TensorFlow Lite, in double, round the zero point differently."""
    low, high = np.float32(low), np.float32(high)
    in_float = -low / ((high - low) / np.float32(255))
    in_double = -float(low) / ((float(high) - float(low)) / 255)
    return np.floor(in_float + np.float32(0.5)) != np.floor(in_double + 0.5)


def steps_differ(x, low, high):
    """Returns whether an input is at the border between two steps, so that rounding in float and in double differ."""
    low, high = np.float32(low), np.float32(high)
    scale, inverse = (high - low) / np.float32(255), np.float32(255) / (high - low)
    zero = np.floor(-low / scale + np.float32(0.5))
    first = -zero * scale
    in_float = np.floor((np.clip(x, first, (255 - zero) * scale) - first) * inverse + np.float32(0.5)) - zero
    in_double = np.floor(x / ((float(high) - float(low)) / 255) + 0.5)
    return bool((in_float != np.clip(in_double, -zero, 255 - zero)).any())


def quantize_weights(random, weights, channels_axis_is_last=True):
    """Rounds weights to a symmetric range, or to a range for each index of the last dimension."""
    weights = tf.constant(weights)
    if channels_axis_is_last and random.integers(3) > 0:
        bound = random.uniform(0.3, 1.1, weights.shape[-1]).astype(np.float32)
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(weights, -bound, bound, narrow_range=True)
    bound = float(random.uniform(0.3, 1.1))
    return quantize(weights, -bound, bound, narrow=True)


def activate(random, x):
    kind = random.integers(4)
    if kind == 0:
        return tf.nn.relu(x)
    return tf.nn.relu6(x) if kind == 1 else x


def values(random, shape, low, high):
    """Returns inputs. Some are beyond the range, and some tensors have only extremes."""
    if random.integers(6) == 0:
        return random.choice(np.array([low * 2 - 1, high * 2 + 1, 0], np.float32), shape).astype(np.float32)
    return random.uniform(low * 1.2 - 0.1, high * 1.2 + 0.1, shape).astype(np.float32)


class Case:
    """A single op: placeholders, their values and the result, which is rounded to a range."""

    def __init__(self, random, name, index=0, small=False):
        self.random = random
        self.small = small
        self.index = index
        self.name = name
        self.feeds = {}
        self.step = 1.0
        # The greatest difference of the default rounding, and whether a zero point or the rounding of an input differs.
        self.tolerance = 1.01
        self.tied = False

    def size(self, most):
        """Returns a random size of a dimension."""
        return int(self.random.integers(1, 2 + most // 4 if self.small else most))

    def image(self):
        """Returns the random shape of images."""
        return [self.size(3), *(2 + self.size(9) for _ in range(2)), self.size(20)]

    def input(self, shape, limits=None):
        low, high = limits or random_range(self.random)
        self.tied = self.tied or zero_points_differ(low, high)
        name = f"{self.name}_x{len(self.feeds)}"
        x = v1.placeholder(tf.float32, shape, name=name)
        self.feeds[name] = values(self.random, shape, low, high)
        self.tied = self.tied or steps_differ(self.feeds[name], low, high)
        return quantize(x, low, high)

    def output(self, y, limits=None):
        low, high = limits or random_range(self.random)
        self.tied = self.tied or zero_points_differ(low, high)
        self.step = (high - low) / 255
        self.fetch = self.name + "_y"
        y = tf.identity(quantize(y, low, high), name=self.fetch)
        # gradflow uses the integers if a product reads them. This product returns them unchanged. Products do not share
        # weights, so the matrices of the cases of a graph have different sizes.
        self.channels = int(y.shape[-1])
        identity = np.eye(self.channels, self.channels + self.index, dtype=np.float32)
        tf.matmul(tf.reshape(y, [-1, self.channels]), tf.constant(identity), name=self.name + "_integers")


# ---- Single ops ----


def convolved_range(random, terms):
    size = float(random.uniform(0.3, 3) * np.sqrt(terms))
    return pick(random, (-size, size * 0.8), (0.0, size), (-size * 0.3, size), (-size, size * 0.99))


def conv(case):
    random = case.random
    shape = case.image()
    groups = pick(random, 1, 1, 1, 2, 3)
    shape[3] *= groups
    out = case.size(20) * groups
    size = list(map(int, random.integers(1, 4, 2)))
    dilation = pick(random, 1, 1, 2) if groups == 1 else 1
    stride = pick(random, 1, 2, 3) if dilation == 1 else 1
    padding = pick(random, "SAME", "VALID")
    if padding == "VALID" and any((s - 1) * dilation + 1 > n for s, n in zip(size, shape[1:3])):
        padding = "SAME"
    x = case.input(shape)
    filters = quantize_weights(random, weights_of(random, [*size, shape[3] // groups, out]))
    y = tf.nn.conv2d(x, filters, [1, stride, stride, 1], padding, dilations=[1, dilation, dilation, 1])
    if random.integers(4) > 0:
        y = tf.nn.bias_add(y, tf.constant(weights_of(random, [out], 3)))
    case.output(activate(random, y), convolved_range(random, np.prod(size) * shape[3] // groups))


def depthwise(case):
    random = case.random
    shape = case.image()
    multiplier = pick(random, 1, 1, 2, 3)
    size = list(map(int, random.integers(1, 4, 2)))
    stride = pick(random, 1, 2)
    dilation = pick(random, 1, 2) if stride == 1 else 1
    x = case.input(shape)
    out = shape[3] * multiplier
    weights = weights_of(random, [*size, shape[3], multiplier])
    if random.integers(2) == 0:
        # The ranges belong to output channels, as `gradflow quantize` writes them.
        flat = quantize_weights(random, weights.reshape(1, *size, out))
        filters = tf.reshape(flat, [*size, shape[3], multiplier])
    else:
        filters = quantize_weights(random, weights, channels_axis_is_last=False)
    # tf.nn.depthwise_conv2d would dilate by SpaceToBatchND, which has no integer form.
    y = tf.raw_ops.DepthwiseConv2dNative(
        input=x,
        filter=filters,
        strides=[1, stride, stride, 1],
        padding=pick(random, "SAME", "VALID") if dilation == 1 and max(size) < 4 and min(shape[1:3]) >= 3 else "SAME",
        dilations=[1, dilation, dilation, 1],
    )
    if random.integers(4) > 0:
        y = tf.nn.bias_add(y, tf.constant(weights_of(random, [out], 3)))
    case.output(activate(random, y), convolved_range(random, np.prod(size)))


def fully_connected(case):
    random = case.random
    rows, inner, out = (case.size(n) for n in (9, 70, 40))
    x = case.input([rows, inner])
    # The converter transposes the weights, which it cannot do with a range for each channel.
    weights = quantize_weights(random, weights_of(random, [inner, out]), channels_axis_is_last=False)
    y = tf.matmul(x, weights)
    if random.integers(4) > 0:
        y = tf.nn.bias_add(y, tf.constant(weights_of(random, [out], 3)))
    case.output(activate(random, y), convolved_range(random, inner))


def pair(case, op):
    random = case.random
    shape = case.image()
    other = shape
    kind = random.integers(6)
    if kind == 0:
        other = [1, 1, 1, shape[3]]
    if kind == 1:
        other = [*shape[:3], 1]
    if kind == 2:
        other = [shape[0], 1, 1, shape[3]]
    case.output(activate(random, op(case.input(shape), case.input(other))))


def pool(case, op, same_range):
    random = case.random
    shape = case.image()
    limits = random_range(random)
    size = list(map(int, random.integers(1, 4, 2)))
    strides = list(map(int, random.integers(1, 4, 2)))
    y = op(case.input(shape, limits), size, strides, pick(random, "SAME", "VALID"))
    output = limits if same_range or random.integers(2) else None
    # TensorFlow Lite pools in the range of the input, and then converts the result: a step of either range may be lost.
    case.output(y, output)
    case.tolerance += 0 if output else (limits[1] - limits[0]) / 255 / case.step


def concat(case):
    random = case.random
    shape = case.image()
    axis = int(random.integers(1, 4))
    limits = random_range(random) if random.integers(2) else None
    inputs = []
    for _ in range(random.integers(2, 5)):
        shape[axis] = case.size(9)
        inputs.append(case.input(shape, limits))
    case.output(tf.concat(inputs, axis), limits)


def pad(case):
    random = case.random
    limits = random_range(random)
    paddings = [[0, 0], *random.integers(0, 3, [2, 2]).tolist(), [0, 0]]
    case.output(tf.pad(case.input(case.image(), limits), paddings), limits)


def mean(case):
    random = case.random
    axes = pick(random, [1, 2], [1, 2], [1], [2], [3], [1, 2, 3], [2, 3])
    limits = random_range(random)
    y = tf.reduce_mean(case.input(case.image(), limits), axes, keepdims=bool(random.integers(2)))
    if len(y.shape) < 2:
        y = tf.reshape(y, [-1, 1])
    case.output(y, limits if random.integers(3) == 0 else None)


def resize(case):
    random = case.random
    limits = random_range(random)
    size = [case.size(20), case.size(20)]
    case.output(v1.image.resize_nearest_neighbor(case.input(case.image(), limits), size), limits)


def reshape(case):
    random = case.random
    limits = random_range(random)
    shape = case.image()
    case.output(tf.reshape(case.input(shape, limits), [shape[0], -1, shape[3]]), limits)


def transpose(case):
    random = case.random
    limits = random_range(random)
    order = [int(i) for i in random.permutation(4)]
    case.output(tf.transpose(case.input(case.image(), limits), order), limits)


def function(case, op, limits):
    random = case.random
    output = limits if random.integers(3) > 0 else None
    # TensorFlow Lite computes the result with its own scale, and then converts it.
    case.output(op(case.input(case.image())), output)
    case.tolerance += 0 if output else (limits[1] - limits[0]) / 255 / case.step


def softmax(case):
    random = case.random
    shape = [case.size(6), 1 + case.size(300)]
    case.output(tf.nn.softmax(case.input(shape)), (0.0, 255 / 256))


def relu(case, op):
    case.output(op(case.input(case.image())))


def batch_matmul(case):
    random = case.random
    batch, heads, m, k, n = (case.size(9) for _ in range(5))
    adjoint = bool(random.integers(2))
    y = tf.matmul(case.input([batch, heads, m, k]), case.input([batch, heads, *((n, k) if adjoint else (k, n))]),
                  transpose_b=adjoint)
    case.output(y, convolved_range(random, k))


def matmul(case):
    random = case.random
    m, k, n = (case.size(30) for _ in range(3))
    adjoint = bool(random.integers(2))
    y = tf.matmul(case.input([m, k]), case.input([n, k] if adjoint else [k, n]), transpose_b=adjoint)
    case.output(y, convolved_range(random, k))


def requantize(case):
    random = case.random
    limits = random_range(random)
    # The converter drops the second of two adjacent ranges.
    case.output(tf.nn.max_pool2d(case.input(case.image(), limits), 1, 1, "VALID"))


KINDS = {
    "conv": conv,
    "depthwise": depthwise,
    "fully_connected": fully_connected,
    "add": lambda case: pair(case, tf.add),
    "mul": lambda case: pair(case, tf.multiply),
    "avg_pool": lambda case: pool(case, tf.nn.avg_pool2d, False),
    "max_pool": lambda case: pool(case, tf.nn.max_pool2d, True),
    "concat": concat,
    "pad": pad,
    "mean": mean,
    "resize": resize,
    "reshape": reshape,
    "transpose": transpose,
    "logistic": lambda case: function(case, tf.sigmoid, (0.0, 255 / 256)),
    "tanh": lambda case: function(case, tf.tanh, (-1.0, 127 / 128)),
    "softmax": softmax,
    "relu": lambda case: relu(case, tf.nn.relu),
    "relu6": lambda case: relu(case, tf.nn.relu6),
    "requantize": requantize,
    "batch_matmul": batch_matmul,
    "matmul": matmul,
}


# ---- Networks ----


def network(random, name):
    """Builds a random network of convolutions, residual sums, pools, concatenations and a fully connected layer."""
    case = Case(random, name)
    depth = int(random.integers(4, 17))
    x = case.input([4, 16, 16, 3], (-1.0, 0.99))

    def layer(x, out, size, stride, relu=True, limits=None):
        shape = [size, size, int(x.shape[3]), out]
        scale = 1.7 / np.sqrt(np.prod(shape[:3]))
        y = tf.nn.conv2d(x, fitted(weights_of(random, shape, scale)), [1, stride, stride, 1], "SAME")
        y = tf.nn.bias_add(y, tf.constant(weights_of(random, [out], 0.2)))
        bound = float(random.uniform(1.5, 2.5))
        if limits:
            return quantize(y, *limits)
        return quantize(tf.nn.relu6(y), 0, bound) if relu else quantize(y, -bound, bound * 0.9)

    def fitted(weights):
        if random.integers(2) == 0:
            bound = float(np.abs(weights).max())
            return quantize(tf.constant(weights), -bound, bound, narrow=True)
        bound = np.abs(weights.reshape(-1, weights.shape[-1])).max(0)
        return tf.quantization.fake_quant_with_min_max_vars_per_channel(weights, -bound, bound, narrow_range=True)

    x = layer(x, depth, 3, pick(random, 1, 2))
    for _ in range(random.integers(2, 6)):
        kind = random.integers(6)
        channels = int(x.shape[3])
        if kind == 0:
            x = layer(x, depth, 3, pick(random, 1, 2) if x.shape[1] > 4 else 1)
        elif kind == 1:
            weights = weights_of(random, [3, 3, channels, 1], 0.6)
            bound = np.abs(weights.reshape(-1, channels)).max(0)
            flat = tf.quantization.fake_quant_with_min_max_vars_per_channel(
                weights.reshape(1, 3, 3, channels), -bound, bound, narrow_range=True)
            y = tf.nn.depthwise_conv2d(x, tf.reshape(flat, weights.shape), [1, 1, 1, 1], "SAME")
            y = tf.nn.bias_add(y, tf.constant(weights_of(random, [channels], 0.2)))
            x = layer(quantize(tf.nn.relu6(y), 0, 2.5), depth, 1, 1)
        elif kind == 2:
            y = layer(layer(x, depth, 1, 1), channels, 3, 1, relu=False)
            x = quantize(tf.nn.relu(x + y), 0, float(random.uniform(2, 3.5)))
        elif kind == 3:
            # The inputs of a concatenation share a range, as `gradflow quantize` gives them. If they do not, the converter
            # gives them the range of the result.
            y = layer(x, depth, 1, 1, False, (-2.2, 2.1))
            z = layer(x, depth, 3, 1, False, (-2.2, 2.1))
            x = quantize(tf.concat([y, z], 3), -2.2, 2.1)
        elif kind == 4 and x.shape[1] > 2:
            x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        elif x.shape[1] > 2:
            x = quantize(tf.nn.avg_pool2d(x, 2, 2, "VALID"), *pick(random, (0, 2.1), (-1.5, 1.9)))
    x = quantize(tf.reduce_mean(x, [1, 2]), -0.5, float(random.uniform(0.8, 1.5)))
    weights = weights_of(random, [int(x.shape[1]), 10])
    bound = float(np.abs(weights).max())
    y = tf.matmul(x, quantize(tf.constant(weights), -bound, bound, narrow=True))
    y = tf.nn.bias_add(y, tf.constant(weights_of(random, [10], 0.2)))
    case.output(y, (-3.0, 3.1))
    return case


# ---- Runs ----


class Graph:
    """A graph with cases, converted and run by both sides."""

    def __init__(self, folder, make):
        self.folder = folder
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.cases = make()
            self.def_ = self.graph.as_graph_def()
        self.feeds = {name: value for case in self.cases for name, value in case.feeds.items()}

    def convert(self):
        """Returns TensorFlow Lite's model in integers."""
        # The converter of version 1 would choose uint8, and most ops would compute in floats.
        wrapped = v1.wrap_function(lambda: tf.import_graph_def(self.def_, name=""), [])
        function = wrapped.prune(
            [wrapped.graph.get_tensor_by_name(name + ":0") for name in self.feeds],
            [wrapped.graph.get_tensor_by_name(case.fetch + ":0") for case in self.cases],
        )
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return converter.convert()

    def run_tflite(self, model, reference):
        """Returns the results of the cases, and the ops that compute in floats."""
        resolver = tf.lite.experimental.OpResolverType
        interpreter = tf.lite.Interpreter(
            model_content=model,
            num_threads=1,
            experimental_op_resolver_type=resolver.BUILTIN_REF if reference else resolver.AUTO,
        )
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], self.feeds[detail["name"].split(":")[0]])
        interpreter.invoke()
        types = {detail["index"]: detail["dtype"] for detail in interpreter.get_tensor_details()}
        in_float = sorted({
            op["op_name"]
            for op in interpreter._get_ops_details()
            if op["op_name"] not in ("QUANTIZE", "DEQUANTIZE", "DELEGATE")
            and any(types.get(int(i)) == np.float32 for i in [*op["inputs"], *op["outputs"]])
        })
        results = {detail["name"].split(":")[0]: interpreter.get_tensor(detail["index"])
                   for detail in interpreter.get_output_details()}
        return [results[case.fetch] for case in self.cases], in_float

    def run_gradflow(self, gradflow, flag):
        path = self.folder / "graph.pb"
        path.write_bytes(self.def_.SerializeToString())
        command = [gradflow, "run", str(path), flag, "--threads", "1"]
        for name, value in self.feeds.items():
            np.save(self.folder / f"{name}.npy", value)
            command += ["--feed", f"{name}={self.folder}/{name}.npy"]
        for case in self.cases:
            command += ["--fetch", f"{case.name}_integers={self.folder}/{case.name}.npy"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        inspect = [gradflow, "inspect", str(path), "--plan", flag]
        plan = subprocess.run(inspect, check=True, capture_output=True, text=True).stdout
        in_float = plan.split("in float: ")[1]
        if not in_float.startswith("0\n"):
            raise RuntimeError(f"gradflow {flag} computes in floats: {in_float}")
        return [np.load(self.folder / f"{case.name}.npy")[:, :case.channels] for case in self.cases]


class Report:
    def __init__(self):
        self.counts = collections.Counter()
        self.kinds = collections.defaultdict(collections.Counter)
        self.recorded = []

    def add(self, kind, what):
        self.counts[what] += 1
        self.kinds[kind][what] += 1


def steps_between(a, b, step):
    return float(np.abs(a.reshape(-1) - b.reshape(-1)).max(initial=0)) / step


def compare_ops(args, report, folder, jobs):
    """Compares single ops of the kinds and seeds `jobs`."""

    def make():
        cases = []
        for kind, seed in jobs:
            case = Case(np.random.default_rng(seed), f"{kind}_{seed}", len(cases))
            KINDS[kind](case)
            cases.append(case)
        return cases

    graph = Graph(folder, make)
    try:
        model = graph.convert()
        expected, in_float = graph.run_tflite(model, True)
        failed = in_float and len(jobs) == 1
    except Exception as error:  # The converter does not support some ops, such as dilated depthwise convolutions.
        failed, in_float = len(jobs) == 1, [str(error).splitlines()[0][:100]]
    if in_float and len(jobs) > 1:
        for job in jobs:
            compare_ops(args, report, folder, [job])
        return
    if failed:
        report.add(jobs[0][0], "not in integers in TensorFlow Lite")
        if args.verbose:
            print(jobs[0], in_float)
        return
    try:
        optimized, _ = graph.run_tflite(model, False)
    except Exception as error:
        optimized = [None] * len(jobs)
        print("optimized kernels:", str(error)[:200])
    exact = graph.run_gradflow(args.gradflow, "--int8=tflite")
    nearest = graph.run_gradflow(args.gradflow, "--int8")
    for i, (kind, seed) in enumerate(jobs):
        case = graph.cases[i]
        report.add(kind, "compared")
        if np.array_equal(expected[i].reshape(-1), exact[i].reshape(-1)):
            report.add(kind, "equal bytes")
        else:
            distance = steps_between(expected[i], exact[i], case.step)
            different = (expected[i].reshape(-1) != exact[i].reshape(-1)).sum()
            print(f"{kind} {seed}: {different} of {expected[i].size} bytes differ, by up to {distance:.3g} steps")
        if optimized[i] is not None and np.array_equal(expected[i], optimized[i]):
            report.add(kind, "optimized kernels equal")
        distance = steps_between(expected[i], nearest[i], case.step)
        if case.tied:
            report.add(kind, "with a tie of a zero point or input")
            continue
        report.counts["largest difference of the default rounding"] = max(
            report.counts["largest difference of the default rounding"], round(distance, 3))
        if distance <= case.tolerance:
            report.add(kind, "within a step by default")
        else:
            report.add(kind, "beyond the tolerance")
            print(f"{kind} {seed}: the default rounding differs by {distance:.3g} steps")


def compare_networks(args, report, folder):
    differences = []
    for i in range(args.networks):
        graph = Graph(folder, lambda: [network(np.random.default_rng(args.seed + i), f"network_{i}")])
        model = graph.convert()
        (expected,), in_float = graph.run_tflite(model, True)
        (optimized,), _ = graph.run_tflite(model, False)
        if in_float:
            print(f"network {i}: TensorFlow Lite computes in floats: {in_float}")
        step = graph.cases[0].step
        (exact,) = graph.run_gradflow(args.gradflow, "--int8=tflite")
        (nearest,) = graph.run_gradflow(args.gradflow, "--int8")
        report.add("network", "compared")
        if np.array_equal(expected, exact):
            report.add("network", "equal bytes")
        else:
            print(f"network {i}: {(expected != exact).sum()} of {expected.size} bytes differ, by up to "
                  f"{steps_between(expected, exact, step):.3g} steps")
        if np.array_equal(expected, optimized):
            report.add("network", "optimized kernels equal")
        report.counts["rows"] += len(expected)
        # Ties of integers are the same class.
        best = np.take_along_axis(expected, nearest.argmax(-1)[:, None], -1)[:, 0]
        report.counts["rows with the same first class by default"] += int((best == expected.max(-1)).sum())
        differences.append(float(np.abs(expected - nearest).mean()) / step)
    if differences:
        print(f"networks: mean difference of the default rounding {np.mean(differences):.4f} steps, "
              f"greatest {np.max(differences):.4f}")


def record(args, folder):
    """Writes small single ops of all kinds."""

    def make():
        cases = []
        for kind in args.kind or KINDS:
            for seed in range(args.seed, args.seed + RECORDED):
                case = Case(np.random.default_rng(seed), f"{kind}_{seed}", len(cases), small=True)
                KINDS[kind](case)
                cases.append(case)
        return cases

    graph = Graph(folder, make)
    results, in_float = graph.run_tflite(graph.convert(), True)
    if in_float:
        raise RuntimeError(f"TensorFlow Lite computes in floats: {in_float}")
    with graph.graph.as_default():
        for name, value in graph.feeds.items():
            tf.constant(value, name=name + "_value")
        for case, result in zip(graph.cases, results):
            tf.constant(result.reshape(-1, case.channels), name=case.name + "_expected")
        graph_def = graph.graph.as_graph_def()
    for node in graph_def.node:
        node.attr.pop("_output_shapes", None)
    graph_def.ClearField("library")
    graph_def.ClearField("versions")
    path = folder / "tflite_ops.pb"
    path.write_bytes(graph_def.SerializeToString(deterministic=True))
    with tarfile.open(args.record, "w:xz") as archive:
        info = archive.gettarinfo(path, path.name)
        info.mtime = info.uid = info.gid = 0
        info.uname = info.gname = ""
        archive.addfile(info, path.open("rb"))
    exact = graph.run_gradflow(args.gradflow, "--int8=tflite")
    equal = sum(np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in zip(results, exact))
    print(f"{len(results)} ops recorded, {equal} with equal bytes")
    return 0 if equal == len(results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradflow")
    parser.add_argument("--ops", type=int, default=2000)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    report = Report()
    kinds = args.kind or list(KINDS)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.record:
            return record(args, folder)
        jobs = [(kinds[i % len(kinds)], args.seed + i) for i in range(args.ops)]
        for first in range(0, len(jobs), GROUP):
            compare_ops(args, report, folder, jobs[first:first + GROUP])
        compare_networks(args, report, folder)
    for kind, counts in report.kinds.items():
        print(f"{kind}: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    print(", ".join(f"{what}: {count}" for what, count in report.counts.items()))
    compared = report.counts["compared"]
    passed = compared > 0 and report.counts["equal bytes"] == compared and report.counts["beyond the tolerance"] == 0
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
