#!/usr/bin/env python3
"""Selects small, diverse recordings, and packs them.

usage: sample_recordings.py RECORDINGS SAMPLE [--count N] [--largest BYTES] [--file NAME]... [--replay]

RECORDINGS is the output of record_tests.py. SAMPLE gets a folder `recordings` with the selected recordings and their part
of index.json, and the same as recordings.tar.xz, which is byte for byte the same for the same recordings. Ops, errors
and methods that no selected recording has come first; among equals, small recordings do. `--replay` runs each selected
recording in TensorFlow once more, which needs Python's tensorflow-cpu.
"""

import argparse
import io
import json
import lzma
import os
import pathlib
import shutil
import sys
import tarfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# Plain kernels are the same on every machine.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import recordings  # noqa: E402

MAX_PACKED_BYTES = 3 << 20


def features(entry):
    """What a recording shows: its ops, its error, and that its method is tested."""
    yield from entry["ops"]
    yield ("method", entry["test"], entry["kind"])
    yield ("kind", entry["kind"], entry["outcome"], min(entry["steps"], 4))
    if entry["outcome"] != "OK":
        yield from ((op, entry["outcome"]) for op in entry["ops"])


def select(entries, count):
    """Selects `count` entries, one after the other: the one with the most new features by the root of its size."""
    seen, selected = set(), []
    left = [(entry, set(features(entry))) for entry in entries]
    while left and len(selected) < count:
        best = max(left, key=lambda pair: (len(pair[1] - seen) / pair[0]["bytes"] ** 0.5, -pair[0]["bytes"], pair[0]["folder"]))
        left.remove(best)
        selected.append(best[0])
        seen |= best[1]
    return sorted(selected, key=lambda entry: entry["folder"])


def check(folder):
    """Raises ValueError if a file names a path of the machine that recorded."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and recordings.PATH.search(path.read_bytes()):
            raise ValueError(f"{path} has the path of a file")


def pack(folder, path):
    """Writes all files of a folder to a .tar.xz, without times and owners."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                member = tarfile.TarInfo(str(file.relative_to(folder.parent)))
                member.size = file.stat().st_size
                tar.addfile(member, io.BytesIO(file.read_bytes()))
    path.write_bytes(lzma.compress(data.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", type=pathlib.Path)
    parser.add_argument("sample", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=320)
    parser.add_argument("--largest", type=int, default=64 << 10, metavar="BYTES")
    parser.add_argument("--file", action="append", default=[], metavar="NAME", help="a test file, such as while_v2_test")
    parser.add_argument("--replay", action="store_true")
    options = parser.parse_args()
    entries = json.loads((options.recordings / "index.json").read_text())
    entries = [e for e in entries if e["bytes"] <= options.largest and (not options.file or e["folder"].split("/")[0] in options.file)]
    selected = select(entries, options.count)
    folder = options.sample / "recordings"
    shutil.rmtree(folder, ignore_errors=True)
    for entry in selected:
        shutil.copytree(options.recordings / entry["folder"], folder / entry["folder"])
    (folder / "index.json").write_text("[\n" + ",\n".join(map(json.dumps, selected)) + "\n]\n")
    check(folder)
    packed = options.sample / "recordings.tar.xz"
    pack(folder, packed)
    ops = {op for entry in selected for op in entry["ops"]}
    size = packed.stat().st_size
    print(f"{len(selected)} recordings of {len({entry['test'] for entry in selected})} methods, {len(ops)} ops, {size} bytes packed")
    ok = size <= MAX_PACKED_BYTES
    if options.replay:
        differences = {entry["folder"]: recordings.replay(folder / entry["folder"]) for entry in selected}
        for name, difference in differences.items():
            if difference:
                print(f"{name}: {difference}")
        ok &= not any(differences.values())
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
