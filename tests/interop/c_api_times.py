#!/usr/bin/env python3
"""Compares the costs of the C API of an installed gradflow with those of TensorFlow's Python package.

usage: c_api_times.py PREFIX MODEL [--tensorflow FOLDER] [--turns N]

PREFIX is the folder into which the CMake component `tensorflow_c` was installed. MODEL is the SavedModel half_plus_two of
TensorFlow's sources (tensorflow/cc/saved_model/testdata/half_plus_two/00000123). FOLDER is the folder `tensorflow` of an
installed Python package. Both libraries run the same program in turn. Prints the best time of each call in microseconds,
the size of the library, and the size of all shared libraries that it loads, in MB.
"""

import argparse
import os
import pathlib
import re
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).with_suffix(".c")


def env_of(folder):
    return dict(os.environ, LD_LIBRARY_PATH=str(folder), TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")


def times_of(program, folder, model):
    """Returns {call: microseconds}."""
    done = subprocess.run([program, model], env=env_of(folder), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return {name: float(time) for name, time in (line.split("\t") for line in done.stdout.splitlines())}


def sizes_of(program, folder):
    """Returns the size of libtensorflow and of all libraries that it loads, in MB, except the libraries of C and C++."""
    done = subprocess.run(["ldd", program], env=env_of(folder), text=True, stdout=subprocess.PIPE, check=True)
    paths = {os.path.realpath(path) for path in re.findall(r"=> (/\S+)", done.stdout)}
    sizes = {path: os.path.getsize(path) / 1e6 for path in paths
             if not re.match(r"(libc|libm|libstdc\+\+|libgcc_s|ld-linux\S*)\.so", os.path.basename(path))}
    library = os.path.getsize(folder / "libtensorflow.so.2") / 1e6
    return library, sum(sizes.values()) - library


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("--tensorflow", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    found = sorted(args.prefix.resolve().rglob("libtensorflow.so.2"))
    if not found:
        raise SystemExit(f"error: {args.prefix} has no libtensorflow.so.2")
    headers = sorted(args.prefix.resolve().rglob("tensorflow/c/c_api.h"))[0].parent.parent.parent
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "c_api_times")
        subprocess.run(["cc", "-O2", f"-I{headers}", SOURCE, f"-L{found[0].parent}", "-ltensorflow", "-o", program],
                       check=True)
        folders = {"gradflow": found[0].parent}
        if args.tensorflow:
            peer = pathlib.Path(scratch, "peer")
            peer.mkdir()
            package = args.tensorflow.resolve()
            (peer / "libtensorflow.so.2").symlink_to(package / "libtensorflow_cc.so.2")
            (peer / "libtensorflow_framework.so.2").symlink_to(package / "libtensorflow_framework.so.2")
            folders["TensorFlow"] = peer
        best = {name: {} for name in folders}
        for _ in range(args.turns):
            for name, folder in folders.items():
                for call, time in times_of(program, folder, args.model).items():
                    best[name][call] = min(time, best[name].get(call, time))
        for name, folder in folders.items():
            library, others = sizes_of(program, folder)
            print(f"{name}: library {library:.1f} MB, other libraries {others:.1f} MB")
            for call, time in best[name].items():
                print(f"  {call}: {time:.2f} us")


if __name__ == "__main__":
    main()
