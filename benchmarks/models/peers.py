#!/usr/bin/env python3
"""Times the networks of the benchmark `models` against TensorFlow and ONNX Runtime, with the same weights.

usage: peers.py MODELS GRADFLOW [--model NAME]... [--batch N]... [--threads N]... [--repeat N] [--benchmark_out FILE]

Needs the Python packages tensorflow-cpu, onnx and onnxruntime; without the latter two, ONNX Runtime is left out. MODELS
is the benchmark program, which writes the graphs, and GRADFLOW is the command-line tool; `./dev bench models` passes
both if Python finds the peers. TensorFlow runs the graph itself. ONNX Runtime runs a model converted from the graph,
with images as [batch, channels, rows, columns]. Both use float32 and their default optimizations. The contestants run
in turn. Prints the medians of their times, and a warning if results differ by more than 1e-3 of the largest element.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

try:
    import onnx
    import onnxruntime
except ImportError:
    onnxruntime = None

NETWORKS = ["resnet50", "mobilenet_v2", "inception_v3", "lstm", "bert_layer"]
ROUNDS = 5
TOLERANCE = 1e-3


class OnnxModel:
    """Converts the nodes of a GraphDef to an ONNX model. Supports the ops of the benchmark."""

    SAME = {
        "Relu": "Relu",
        "AddV2": "Add",
        "Mul": "Mul",
        "Sub": "Sub",
        "Erf": "Erf",
        "MatMul": "MatMul",
        "BiasAdd": "Add",
        "Identity": "Identity",
        "Softmax": "Softmax",
    }

    def __init__(self, graph_def, shape):
        self.nodes = {node.name: node for node in graph_def.node}
        self.constants = {n.name: tf.make_ndarray(n.attr["value"].tensor) for n in graph_def.node if n.op == "Const"}
        self.made, self.parts, self.tensors = {}, [], {}
        # ONNX images are [batch, channels, rows, columns].
        self.is_image = len(shape) == 4
        self.shape = [shape[i] for i in (0, 3, 1, 2)] if self.is_image else shape
        output = self.convert("output")

        def value(name, dims):
            return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims)

        initializers = [onnx.numpy_helper.from_array(array, name) for name, array in self.tensors.items()]
        graph = onnx.helper.make_graph(
            self.parts, "g", [value("input", self.shape)], [value(output, None)], initializers
        )
        self.bytes = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8
        ).SerializeToString()

    def input(self, array):
        return np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if self.is_image else array

    def add(self, op, inputs, **attrs):
        name = f"v{len(self.parts)}"
        self.parts.append(onnx.helper.make_node(op, inputs, [name], **attrs))
        return name

    def tensor(self, array):
        name = f"w{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array)
        return name

    def convert(self, name):
        """Returns the value name in the model for a node's output, such as "n" or "n:6"."""
        if name not in self.made:
            self.made[name] = self.make(self.nodes[name.split(":")[0]])
        return self.made[name]

    def window(self, node, attr="strides"):
        return [int(i) for i in node.attr[attr].list.i][1:3]

    def pads(self, node, size):
        kind = node.attr["padding"].s
        if kind == b"SAME":  # only used with a stride of 1
            return [n // 2 for n in size] + [(n - 1) // 2 for n in size]
        explicit = [int(i) for i in node.attr["explicit_paddings"].list.i] if kind == b"EXPLICIT" else [0] * 8
        return [explicit[2], explicit[4], explicit[3], explicit[5]]

    def make(self, node):
        op, args = node.op, list(node.input)
        if op == "Placeholder":
            return "input"
        if op == "Const":
            return self.tensor(self.constants[node.name])
        if op in ("Conv2D", "DepthwiseConv2dNative"):
            weights = self.constants[args[1]]
            size, groups = list(weights.shape[:2]), 1
            if op != "Conv2D":
                groups, weights = weights.shape[2], weights.transpose(0, 1, 3, 2)
            weights = self.tensor(weights.transpose(3, 2, 0, 1))
            return self.add(
                "Conv",
                [self.convert(args[0]), weights],
                kernel_shape=size,
                group=groups,
                strides=self.window(node),
                pads=self.pads(node, size),
            )
        if op in ("MaxPool", "AvgPool"):
            size = self.window(node, "ksize")
            name = "MaxPool" if op == "MaxPool" else "AveragePool"
            return self.add(
                name, [self.convert(args[0])], kernel_shape=size, strides=self.window(node), pads=self.pads(node, size)
            )
        if op == "FusedBatchNormV3":
            parts = [self.convert(arg) for arg in args]
            return self.add("BatchNormalization", parts, epsilon=node.attr["epsilon"].f)
        if op == "Relu6":
            return self.add("Clip", [self.convert(args[0]), *(self.tensor(np.float32(x)) for x in (0, 6))])
        if op == "Mean":
            axes = np.atleast_1d(self.constants[args[1]])
            axes = [int(a) + 1 if self.is_image else int(a) for a in axes]
            return self.add("ReduceMean", [self.convert(args[0])], axes=axes, keepdims=int(node.attr["keep_dims"].b))
        if op == "ConcatV2":
            axis = 1 if self.is_image else int(self.constants[args[-1]])
            return self.add("Concat", [self.convert(arg) for arg in args[:-1]], axis=axis)
        if op == "Reshape":
            dims = self.tensor(self.constants[args[1]].astype(np.int64))
            return self.add("Reshape", [self.convert(args[0]), dims])
        if op == "Transpose":
            return self.add("Transpose", [self.convert(args[0])], perm=[int(i) for i in self.constants[args[1]]])
        if op == "BatchMatMulV2":
            x, y = (self.convert(arg) for arg in args)
            if node.attr["adj_y"].b:
                y = self.add("Transpose", [y], perm=[0, 1, 3, 2])
            return self.add("MatMul", [x, y])
        if op == "SquaredDifference":
            difference = self.add("Sub", [self.convert(arg) for arg in args])
            return self.add("Mul", [difference, difference])
        if op == "Rsqrt":
            return self.add("Reciprocal", [self.add("Sqrt", [self.convert(args[0])])])
        if op == "BlockLSTMV2":
            weights, bias = self.constants[args[4]], self.constants[args[8]]
            cells = bias.size // 4
            # BlockLSTMV2 orders the gates input, forget, cell, output. ONNX uses input, output, forget, cell.
            order = np.concatenate([np.arange(cells) + cells * gate for gate in (0, 3, 1, 2)])
            weights, bias = weights[:, order].T[None], np.concatenate([bias[order], np.zeros_like(bias)])[None]
            size = weights.shape[2] - cells
            parts = [weights[:, :, :size], weights[:, :, size:], bias]
            hidden = self.add("LSTM", [self.convert(args[1]), *map(self.tensor, parts)], hidden_size=cells)
            return self.add("Squeeze", [hidden, self.tensor(np.array([1]))])
        return self.add(self.SAME[op], [self.convert(arg) for arg in args])


def tensorflow_runner(graph_def, array, threads):
    v1 = tf.compat.v1
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    session = v1.Session(graph=graph, config=config)
    run = session.make_callable("output:0", ["input:0"])
    return lambda: run(array)


def onnx_runner(graph_def, array, threads):
    model = OnnxModel(graph_def, list(array.shape))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.bytes, options, providers=["CPUExecutionProvider"])
    feeds = {"input": model.input(array)}
    return lambda: session.run(None, feeds)[0]


def context(gradflow):
    """Returns the context of results in Google Benchmark's JSON format, with the versions of all contestants."""
    lines = subprocess.run([gradflow, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()
    versions = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines[1:])
    values = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "load_avg": list(os.getloadavg()),
        "gradflow": lines[0].split()[1],
        "simd": versions.pop("SIMD").split()[0],
    }
    versions["TensorFlow"] = tf.__version__
    if onnxruntime is not None:
        versions["ONNX Runtime"] = onnxruntime.__version__
    return values | {f"library {library}": version for library, version in versions.items()}


def benchmarks(name, batch, threads, medians):
    """Returns median milliseconds in Google Benchmark's JSON format."""
    case = f"{name}, batch {batch}, inference"
    cases = {"gradflow": case, "gradflow --fast": f"{case}, --fast"}
    peers = medians.keys() - cases.keys()
    return [
        {"name": f"{case}/{threads}/{who}", "real_time": ms, "cpu_time": ms, "time_unit": "ms"}
        for mode, case in cases.items()
        for who, ms in [("ours", medians[mode]), *((peer, medians[peer]) for peer in sorted(peers))]
    ]


def compare(args, folder, name, batch):
    """Prints the times of a network. Returns them in Google Benchmark's JSON format."""
    results = []
    path = folder / f"{name}.pb"
    subprocess.run(
        [args.models, "--model", name, "--batch", str(batch), "--write", str(folder)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    shape = next([d.size for d in node.attr["shape"].shape.dim] for node in graph_def.node if node.op == "Placeholder")
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.save(folder / "x.npy", array)
    flags = [str(path), "--feed", f"input={folder / 'x.npy'}"]
    subprocess.run(
        [args.gradflow, "run", *flags, "--fetch", f"output={folder / 'y.npy'}"], check=True, stdout=subprocess.DEVNULL
    )
    expected = np.load(folder / "y.npy")
    for threads in args.threads or [1, 2]:
        peers = {"TensorFlow": tensorflow_runner(graph_def, array, threads)}
        if onnxruntime is not None:
            peers["ONNX Runtime"] = onnx_runner(graph_def, array, threads)
        for peer, run in peers.items():
            difference = np.abs(run() - expected).max() / np.abs(expected).max()
            if not difference <= TOLERANCE:
                print(f"{name}: the result of {peer} differs by {difference:.2g}")
            run()
        times = {}
        for _ in range(ROUNDS):
            for mode in ([], ["--fast"]):
                command = [args.gradflow, "bench", *flags, *mode, "--fetch", "output", "--threads", str(threads)]
                command += ["--repeat", str(args.repeat), "--json"]
                result = subprocess.run(command, capture_output=True, text=True, check=True)
                times.setdefault(" ".join(["gradflow", *mode]), []).append(json.loads(result.stdout)["median_ms"])
            for peer, run in peers.items():
                samples = []
                for _ in range(args.repeat):
                    start = time.perf_counter()
                    run()
                    samples.append(1e3 * (time.perf_counter() - start))
                times.setdefault(peer, []).append(float(np.median(samples)))
        medians = {who: float(np.median(samples)) for who, samples in times.items()}
        fastest = min(medians[peer] for peer in peers)
        text = ", ".join(f"{who} {ms:.2f} ms" for who, ms in medians.items())
        ratios = " and ".join(f"{medians[who] / fastest:.2f}" for who in ("gradflow", "gradflow --fast"))
        print(f"{name} batch {batch}, {threads} threads: {text}; {ratios} of the fastest peer", flush=True)
        results += benchmarks(name, batch, threads, medians)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("gradflow")
    parser.add_argument("--model", action="append", choices=NETWORKS)
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=5, help="number of runs per round")
    parser.add_argument("--benchmark_out", type=pathlib.Path, help="file for times, in Google Benchmark's JSON format")
    args = parser.parse_args()
    results = {"context": context(args.gradflow), "benchmarks": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.model or NETWORKS:
            for batch in args.batch or [1, 8]:
                results["benchmarks"] += compare(args, pathlib.Path(folder), name, batch)
    if args.benchmark_out is not None:
        args.benchmark_out.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
