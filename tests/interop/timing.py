"""Compares the times of gradflow and of another library on the same graph. op_times.py and data_op_times.py use it."""

import argparse
import json
import os
import subprocess
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402

ROUNDS = 5


def parse_arguments(description, repeat):
    """Returns the arguments of the command line. `repeat` is the default number of runs in a round."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gradflow")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=repeat)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    args.threads = args.threads or [1, 2]
    return args


def milliseconds(run, repeat):
    run()
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def bench_command(args, graph, feeds, threads):
    """Returns the command that runs a graph and fetches y. `feeds` are paths of .npy files by name."""
    command = [args.gradflow, "bench", str(graph), "--fetch", "y", "--threads", str(threads)]
    command += ["--repeat", str(args.repeat), "--json"]
    for name, path in feeds.items():
        command += ["--feed", f"{name}={path}"]
    return command


def compare(title, command, run, repeat, peer="TensorFlow"):
    """Runs the command and the function in turn, and prints the medians of their times."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        bench = subprocess.run(command, capture_output=True, text=True, check=False)
        if bench.returncode != 0:
            print(f"{title}: {bench.stderr.strip()}", flush=True)
            return
        ours.append(json.loads(bench.stdout)["median_ms"])
        theirs.append(milliseconds(run, repeat))
    ours, theirs = np.median(ours), np.median(theirs)
    print(f"{title}: gradflow {ours:.3f}, {peer} {theirs:.3f}, ratio {ours / theirs:.2f}", flush=True)
