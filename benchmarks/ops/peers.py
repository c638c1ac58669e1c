#!/usr/bin/env python3
"""Times single ops in gradflow and in TensorFlow.

usage: peers.py TIMER LIBRARY [--only REGEX]... [--threads N]... [--rounds N] [--seconds S] [--above RATIO]
                [--benchmark_out FILE] [--list]

Needs the Python packages tensorflow-cpu and numpy. TIMER is the program graph_timer, and LIBRARY is gradflow's
libtensorflow.so.2; `./dev bench ops` passes both if Python finds the packages. peer_cases.py has the cases.

Each library runs in its own process for each number of threads, through TensorFlow's C API. The contestants run in turn
for short rounds. A time is the shortest of all rounds, because other programs can only make a round longer. Prints wall
times in microseconds, and the ratios of wall times and of CPU times: below 1, gradflow is faster. A result that differs
from TensorFlow's result is an error of the case, except for random numbers.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np  # noqa: E402
import peer_cases  # noqa: E402
import tensorflow as tf  # noqa: E402

TENSORFLOW = pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"


class Failure(Exception):
    pass


class Timer:
    """A process that times graphs in one library."""

    def __init__(self, program, library, threads):
        command = [program, str(library), str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def execute(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error: "):
            raise Failure(answer or "the process ended")
        return answer

    def run(self, seconds):
        """Returns the shortest wall time and the CPU time of a run."""
        _, shortest, _, cpu = self.execute("run", seconds).split()
        return float(shortest), float(cpu)


def write_case(case, folder):
    """Writes the graph and the inputs of a case. Returns the type of the result."""
    random = case.seed()
    with tf.Graph().as_default() as graph, open(folder / "inputs", "wb") as file:
        tensors = []
        for i, spec in enumerate(case.inputs):
            array = spec.values(random + i)
            dtype = tf.string if spec.dtype is bytes else tf.as_dtype(array.dtype)
            tensors.append(tf.compat.v1.placeholder(dtype, array.shape, name=f"x{i}"))
            if dtype == tf.string:
                data = b"".join(len(s).to_bytes(4, "little") + s for s in array.ravel())
            else:
                data = array.tobytes()
            header = [f"x{i}", dtype.as_datatype_enum, len(data), array.ndim, *array.shape]
            file.write(" ".join(map(str, header)).encode() + b"\n" + data)
        y = case.build(*tensors)
        if isinstance(y, tf.Operation):
            with tf.control_dependencies([y]):
                tf.no_op(name="y")
            dtype = None
        else:
            dtype = tf.identity(y, name="y").dtype
    (folder / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return dtype


def difference(ours, theirs, dtype):
    """Returns a text about differing results, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} bytes instead of {len(theirs)}"
    if dtype.is_floating or dtype.is_complex:
        kind = np.dtype(dtype.as_numpy_dtype)
        wide = np.complex128 if dtype.is_complex else np.float64
        a, b = (np.frombuffer(x, kind).astype(wide) for x in (ours, theirs))
        with np.errstate(all="ignore"):
            error = np.abs(a - b)
            finite = np.isfinite(a) & np.isfinite(b)
            if np.any(finite != np.isfinite(b)):
                return "infinite or NaN"
            largest = np.max(error[finite], initial=0) / max(1e-30, np.max(np.abs(b[finite]), initial=0))
        return None if largest <= (2e-2 if dtype.size == 2 else 1e-3) else f"by {largest:.2g} of the largest element"
    count = np.count_nonzero(np.frombuffer(ours, np.uint8) != np.frombuffer(theirs, np.uint8))
    return f"in {count} of {len(ours)} bytes" if count else None


def compare(args, case, folder, timers, threads):
    """Returns the times of both contestants, wall and CPU, in seconds."""
    ours, theirs = timers
    for timer in timers:
        timer.execute("load", folder / "graph.pb", folder / "inputs", case.init or "")
    rounds = collections.defaultdict(list)
    for i in range(args.rounds):
        for who, timer in (("ours", ours), ("TensorFlow", theirs)):
            rounds[who].append(timer.run(args.seconds))
    return {who: np.min(times, 0) for who, times in rounds.items()}


def check(case, folder, timers, dtype):
    if dtype is None or dtype == tf.string or case.group == "random" or "Random" in case.name or "Dropout" in case.name:
        return
    outputs = []
    for timer in timers:
        timer.execute("write", folder / "y")
        outputs.append((folder / "y").read_bytes())
    text = difference(*outputs, dtype)
    if text:
        print(f"{case.name}: results differ {text}", flush=True)


def context(load):
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "load_avg": list(load),
        "library TensorFlow": tf.__version__,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timer")
    parser.add_argument("library")
    parser.add_argument("--only", action="append", help="a regular expression that the group and name contain")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.03, help="the time of a round")
    parser.add_argument("--above", type=float, default=1.1, help="list cases above this ratio at the end")
    parser.add_argument("--benchmark_out", type=pathlib.Path, help="file for times, in Google Benchmark's JSON format")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    args = parser.parse_args()
    cases = [
        c for c in peer_cases.CASES if not args.only or any(re.search(o, f"{c.group} {c.name}") for o in args.only)
    ]
    if args.list:
        for case in cases:
            print(f"{case.group}: {case.name}")
        return 0
    results = {"context": context(os.getloadavg()), "benchmarks": []}
    ratios, failures = {}, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        timers = {}
        for case in cases:
            try:
                dtype = write_case(case, folder)
            except Exception as error:  # noqa: BLE001: a case that TensorFlow refuses is a bug in the table
                print(f"{case.name}: {error}", flush=True)
                failures += 1
                continue
            for threads in args.threads or [1, 2]:
                if threads not in timers:
                    timers[threads] = [Timer(args.timer, library, threads) for library in (args.library, TENSORFLOW)]
                try:
                    times = compare(args, case, folder, timers[threads], threads)
                    if threads == (args.threads or [1])[0]:
                        check(case, folder, timers[threads], dtype)
                    for timer in timers[threads]:
                        timer.execute("close")
                except (Failure, OSError) as error:
                    print(f"{case.name}: {error}", flush=True)
                    failures += 1
                    for timer in timers.pop(threads):
                        timer.process.kill()
                        timer.process.wait()
                    continue
                wall, cpu = times["ours"] / times["TensorFlow"]
                ratios[case.name, threads] = (wall, cpu)
                print(
                    f"{wall:6.2f} {cpu:6.2f}  {1e6 * times['ours'][0]:10.1f} {1e6 * times['TensorFlow'][0]:10.1f}  "
                    f"{threads}  {case.group}: {case.name}",
                    flush=True,
                )
                results["benchmarks"] += [
                    {
                        "name": f"{case.name}/{threads}/{who}",
                        "real_time": 1e3 * wall_time,
                        "cpu_time": 1e3 * cpu_time,
                        "time_unit": "ms",
                    }
                    for who, (wall_time, cpu_time) in times.items()
                ]
        for pair in timers.values():
            for timer in pair:
                timer.process.stdin.close()
                timer.process.wait()
    for threads in args.threads or [1, 2]:
        mine = {name: pair[0] for (name, t), pair in ratios.items() if t == threads}
        if not mine:
            continue
        mean = np.exp(np.mean(np.log(list(mine.values()))))
        slow = sorted(((ratio, name) for name, ratio in mine.items() if ratio > args.above), reverse=True)
        print(f"\n{threads} threads: {len(mine)} cases, geometric mean {mean:.3f}, {len(slow)} above {args.above}")
        for ratio, name in slow:
            print(f"{ratio:6.2f}  {name}")
    if args.benchmark_out is not None:
        args.benchmark_out.write_text(json.dumps(results, indent=1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
