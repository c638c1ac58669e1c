#!/usr/bin/env python3
"""Puts small faults into the sources of a folder, one at a time, and runs the folder's tests.

    tests/mutation/mutate.py FOLDER [--count N] [--seed N] [--list]

A fault that no test notices is a line that could be wrong without anyone knowing. `./dev mutate`
builds the tests first. The sources are restored after each fault, and when the script is stopped.

Faults are made by rules (rules.py) from lines inside of functions in the .cc files that the tests
of the folder link. This takes no coverage build; a fault in a function that no test calls is
listed as unnoticed, which is what it is.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
# Files and originals of a run that was killed.
BACKUP = ROOT / "build" / "mutate.backup"


def test_program(folder):
    """Returns the program with the tests of a folder, and its target."""
    if folder.parts[0] == "ops" and len(folder.parts) > 1 and folder.parts[1] != "common":
        name = "ops_" + folder.parts[1]
    else:
        name = folder.parts[0]
    target = f"gradflow_{name}_tests"
    return BUILD / "tests" / target, target


def sources(folder):
    """Returns the .cc files of a folder, those that only generate code aside."""
    files = subprocess.run(
        ["git", "ls-files", "--", f"{folder}/*.cc"], cwd=ROOT, check=True, text=True,
        stdout=subprocess.PIPE).stdout.split()
    return [ROOT / f for f in files]


class Workspace:
    """Changes one file at a time and puts the original back."""

    def __init__(self):
        self.path = None
        self.restore_backup()

    def restore_backup(self):
        if not BACKUP.exists():
            return
        name, _, text = BACKUP.read_text().partition("\n")
        (ROOT / name).write_text(text)
        BACKUP.unlink()
        print(f"restored {name}, which an earlier run had left changed")

    def change(self, path, text):
        self.path, self.original = path, path.read_text()
        BACKUP.write_text(f"{path.relative_to(ROOT)}\n{self.original}")
        path.write_text(text)

    def restore(self):
        if self.path is not None:
            self.path.write_text(self.original)
            self.path = None
            BACKUP.unlink(missing_ok=True)


def build(target):
    return subprocess.run(["ninja", "-C", str(BUILD), target], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def run_tests(program, timeout):
    """Returns the name of a test that fails, or None if all pass."""
    # Faults may ask for any memory.
    limit = "ulimit -v 16777216; exec \"$@\""
    try:
        result = subprocess.run(
            ["bash", "-c", limit, "bash", str(program), "--gtest_fail_fast", "--gtest_brief=1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, cwd=BUILD)
    except subprocess.TimeoutExpired:
        return "the time limit"
    if result.returncode == 0:
        return None
    for line in result.stdout.decode(errors="replace").splitlines():
        if line.startswith("[  FAILED  ] "):
            return line[len("[  FAILED  ] "):].split(" ")[0].rstrip(",")
    return f"exit status {result.returncode}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="such as graph or ops/math")
    parser.add_argument("--count", type=int, default=30, help="number of faults")
    parser.add_argument("--seed", type=int, help="default: from the clock")
    parser.add_argument("--list", action="store_true", help="print the faults, build nothing")
    arguments = parser.parse_args()
    folder = pathlib.Path(os.path.normpath(arguments.folder))
    seed = arguments.seed if arguments.seed is not None else time.time_ns() % 1_000_000
    program, target = test_program(folder)
    files = sources(folder)
    if not files:
        sys.exit(f"mutate: there are no sources in {folder}")
    # A list is no reason to restore what a run in progress has changed.
    workspace = None if arguments.list else Workspace()
    faults = [(path, fault) for path in files for fault in rules.faults(path.read_text())]
    random.Random(seed).shuffle(faults)
    # At most one of a line.
    seen = set()
    faults = [f for f in faults
              if (f[0], f[1].line) not in seen and not seen.add((f[0], f[1].line))]
    print(f"seed {seed}: {arguments.count} of {len(faults)} lines of {folder}", flush=True)
    if arguments.list:
        for path, fault in faults[:arguments.count]:
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault}")
        return 0

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    if not build(target):
        sys.exit(f"mutate: {target} does not build")
    start = time.monotonic()
    failure = run_tests(program, 600)
    if failure is not None:
        sys.exit(f"mutate: without a fault, {failure} fails")
    timeout = 20 + 5 * (time.monotonic() - start)

    unnoticed, done = [], 0
    try:
        for path, fault in faults:
            if done == arguments.count:
                break
            workspace.change(path, fault.text)
            # Those that do not compile, often for an unused name, do not count.
            if build(target):
                done += 1
                failure = run_tests(program, timeout)
                place = f"{path.relative_to(ROOT)}:{fault.line}"
                print(f"[{done}/{arguments.count}] {place}: {fault}: " +
                      ("UNNOTICED" if failure is None else failure), flush=True)
                if failure is None:
                    unnoticed.append(f"{place}: {fault}")
            workspace.restore()
    finally:
        workspace.restore()
        build(target)
    share = 100 * (done - len(unnoticed)) / max(done, 1)
    print(f"{done - len(unnoticed)} of {done} faults noticed ({share:.0f} %), seed {seed}")
    for line in unnoticed:
        print(f"unnoticed: {line}")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
