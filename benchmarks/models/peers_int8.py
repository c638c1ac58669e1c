#!/usr/bin/env python3
"""Times networks in 8-bit integers against TensorFlow Lite and ONNX Runtime, with the same weights and data.

usage: peers_int8.py MODELS GRADFLOW [--model NAME]... [--batch N]... [--threads N]... [--repeat N]

Needs the Python packages tensorflow-cpu, onnx and onnxruntime. MODELS is the benchmark program, which writes the float
graphs, and GRADFLOW is the command-line tool. `gradflow quantize` inserts the ranges. TensorFlow Lite converts the
same graph, so it has the same ranges, and runs it with XNNPACK. ONNX Runtime quantizes the float model with the same
data: static, QDQ, unsigned activations, signed weights with a range for each channel. The contestants run in turn.
Prints the medians of their CPU times, which other processes on the machine hardly change, divided by the number of
runs. Prints the share of rows in which each contestant and gradflow's float graph have the same largest element.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
import onnxruntime.quantization as ort_quantization
import tensorflow as tf

import peers

NETWORKS = ["mobilenet_v2", "resnet50", "bert_layer"]
ROUNDS = 5


def cpu_time(run, repeat):
    """Returns the milliseconds of CPU time that a run takes, on all threads."""
    start = time.process_time()
    for _ in range(repeat):
        run()
    return 1e3 * (time.process_time() - start) / repeat


def child_cpu_time(command):
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return 1e3 * (after.children_user - before.children_user + after.children_system - before.children_system)


def gradflow_time(bench, repeat):
    """Returns the CPU time of a run: that of a long benchmark less that of a short one."""
    long, short = (child_cpu_time([*bench, "--repeat", str(n)]) for n in (4 * repeat, repeat))
    return (long - short) / (3 * repeat)


def tflite_runner(graph_def, array, threads):
    # The converter of version 1 would choose uint8, and convolutions would compute in floats.
    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), [])
    function = wrapped.prune(wrapped.graph.get_tensor_by_name("input:0"), wrapped.graph.get_tensor_by_name("output:0"))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    interpreter = tf.lite.Interpreter(model_content=converter.convert(), num_threads=threads)
    interpreter.allocate_tensors()
    x, y = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def run():
        interpreter.set_tensor(x, array)
        interpreter.invoke()
        return interpreter.get_tensor(y)

    return run


class Reader(ort_quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = [feeds]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def onnx_runner(graph_def, array, threads, folder):
    model = peers.OnnxModel(graph_def, list(array.shape))
    feeds = {"input": model.input(array)}
    path = folder / "float.onnx"
    path.write_bytes(model.bytes)
    ort_quantization.quantize_static(
        str(path),
        str(folder / "int8.onnx"),
        Reader(feeds),
        quant_format=ort_quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=ort_quantization.QuantType.QUInt8,
        weight_type=ort_quantization.QuantType.QInt8,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(folder / "int8.onnx"), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)[0]


def compare(args, folder, name, batch):
    """Prints the times of a network."""
    command = [args.models, "--model", name, "--batch", str(batch), "--write", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    path, quantized = folder / f"{name}.pb", folder / "quantized.pb"
    graph_def = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    shape = next([d.size for d in node.attr["shape"].shape.dim] for node in graph_def.node if node.op == "Placeholder")
    array = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.save(folder / "x.npy", array)
    feed = f"input={folder / 'x.npy'}"
    subprocess.run([args.gradflow, "quantize", str(path), "--data", feed, "-o", str(quantized)], check=True)
    quantized_def = tf.compat.v1.GraphDef.FromString(quantized.read_bytes())

    def result(model, *flags):
        output = folder / "y.npy"
        command = [args.gradflow, "run", str(model), "--feed", feed, "--fetch", f"output={output}", *flags]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return np.load(output)

    classes = result(path).reshape(batch, -1).argmax(-1)
    for threads in args.threads or [1, 2]:
        runners = {
            "TensorFlow Lite": lambda: tflite_runner(quantized_def, array, threads),
            "ONNX Runtime": lambda: onnx_runner(graph_def, array, threads, folder),
        }
        runs, same = {}, {"int8": result(quantized, "--int8")}
        for peer, make in runners.items():
            try:
                runs[peer] = make()
                same[peer] = runs[peer]()
            except Exception as error:  # a converter may not support a network
                print(f"{name}: {peer} fails: {str(error)[:200]}")
                runs.pop(peer, None)
        bench = [args.gradflow, "bench", "--feed", feed, "--fetch", "output", "--threads", str(threads)]
        times = {}
        for _ in range(args.rounds):
            for who, flags in {"float": [path], "--fast": [path, "--fast"], "int8": [quantized, "--int8"]}.items():
                times.setdefault(who, []).append(gradflow_time([*bench, *map(str, flags)], args.repeat))
            for peer, run in runs.items():
                times.setdefault(peer, []).append(cpu_time(run, args.repeat))
        medians = {who: float(np.median(samples)) for who, samples in times.items()}
        text = ", ".join(f"{who} {ms:.2f}" for who, ms in medians.items())
        ratios = [f"int8 is {medians['float'] / medians['int8']:.2f} times as fast as float"]
        if runs:
            ratios.append(f"takes {medians['int8'] / min(medians[peer] for peer in runs):.2f} of the faster peer")
        agreement = {who: (y.reshape(batch, -1).argmax(-1) == classes).mean() for who, y in same.items()}
        print(f"{name} batch {batch}, {threads} threads, CPU ms: {text}; {', '.join(ratios)}; {agreement}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models")
    parser.add_argument("gradflow")
    parser.add_argument("--model", action="append", choices=NETWORKS)
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=10, help="number of runs per round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.model or NETWORKS:
            for batch in args.batch or [1, 8]:
                compare(args, pathlib.Path(folder), name, batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
