#!/usr/bin/env python3
"""Writes tests/data/tensorflow_kernels.txt: the types for which TensorFlow has kernels on the CPU.

tests/ops/kernel_types_test.cc compares gradflow with this file, which was written with
tensorflow-cpu 2.21.0. Tests never run this script. To write the file again:

    pip install tensorflow-cpu==2.21.0
    python3 tests/data/tensorflow_kernels.py

A row is "op | attribute=types; ...": the op has a kernel for each combination of these types. Ops
have several rows if their combinations are not a product. Attributes that are not listed may have
any type. Only ops of op_signatures.txt are listed.
"""

import collections
import os
import pathlib
import re

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import kernels

FOLDER = pathlib.Path(__file__).resolve().parent


def type_name(dtype):
    return types_pb2.DataType.Name(dtype)[len("DT_") :].lower()


def merged(combinations):
    """Returns products of types that cover the same combinations, dicts of attributes to types."""
    while True:
        for attr in sorted({name for c in combinations for name in c}):
            groups = collections.OrderedDict()
            for combination in combinations:
                others = tuple((k, v) for k, v in combination.items() if k != attr)
                groups.setdefault((others, attr in combination), []).append(combination)
            united = []
            for group in groups.values():
                result = dict(group[0])
                if attr in result:
                    result[attr] = tuple(sorted({t for c in group for t in c[attr]}))
                united.append(result)
            if len(united) < len(combinations):
                combinations = united
                break
        else:
            return combinations


def main():
    signatures = (FOLDER / "op_signatures.txt").read_text()
    ops = re.findall(r"^(\w+)\(", signatures, re.MULTILINE)
    registered = collections.defaultdict(list)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type == "CPU" and not kernel.label:
            constraints = {c.name: tuple(c.allowed_values.list.type) for c in kernel.constraint}
            registered[kernel.op].append(dict(sorted(constraints.items())))
    rows = []
    for op in sorted(ops):
        for types in merged(registered[op]):
            attrs = [f"{a}={','.join(type_name(t) for t in v)}" for a, v in types.items()]
            rows.append(" | ".join([op, "; ".join(attrs)]).rstrip())
    header = (
        f"# Types of TensorFlow {tf.__version__}'s kernels on the CPU, written by\n"
        "# tests/data/tensorflow_kernels.py: op | attribute=types; ...\n"
    )
    (FOLDER / "tensorflow_kernels.txt").write_text(header + "\n".join(rows) + "\n")
    print(f"{len(rows)} rows")


if __name__ == "__main__":
    main()
