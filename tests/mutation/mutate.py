#!/usr/bin/env python3
"""Puts small faults into the sources of a folder, one at a time, and runs the folder's tests.

    tests/mutation/mutate.py FOLDER [--count N] [--seed N] [--only FILE:LINE]... [--list]

A fault that no test notices is a line that could be wrong without anyone knowing. `./dev mutate`
builds the tests first. The sources are restored after each fault, and when the script is stopped.

Rules (rules.py) make faults from lines inside of functions in the .cc files that the tests of the
folder link. No coverage build is needed. If no test calls a function, its faults are listed as
unnoticed.
"""

import argparse
import os
import pathlib
import random
import re
import selectors
import signal
import subprocess
import sys
import time

import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
# The path and the original content of a changed file, in case the script is killed.
BACKUP = ROOT / "build" / "mutate.backup"


def test_program(folder):
    """Returns the test program of a folder, and its target."""
    if folder.parts[0] == "ops" and len(folder.parts) > 1 and folder.parts[1] != "common":
        name = "ops_" + folder.parts[1]
    else:
        name = folder.parts[0]
    target = f"gradflow_{name}_tests"
    return BUILD / "tests" / target, target


def sources(folder):
    """Returns the .cc files of a folder."""
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


def run_tests(program, silence, times=None, tests="*"):
    """Runs the tests. They count as hanging if no test begins or ends for `silence` seconds.

    Returns the name of the test that fails, or None if all pass. Stores the seconds that each test
    takes in `times`, unless it is None.
    """
    # A fault may allocate any amount of memory.
    limit = "ulimit -v 16777216; exec \"$@\""
    process = subprocess.Popen(
        ["bash", "-c", limit, "bash", str(program), "--gtest_fail_fast",
         "--gtest_filter=" + tests],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=BUILD, start_new_session=True)
    output, test = b"", "no test"
    failed = None
    last_line = time.monotonic()
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                # A line counts as progress if it names a test.
                left = last_line + silence - time.monotonic()
                if left <= 0 or not selector.select(left):
                    # A program started by a test may keep the pipe open.
                    if process.poll() is not None:
                        break
                    return f"{test} hangs"
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    break
                *lines, output = (output + chunk).split(b"\n")
                for line in lines:
                    # A test may print text before and after the output of GoogleTest.
                    match = re.search(r"\[( RUN      |       OK |  FAILED  )\] (\S+\.[^\s,]+)",
                                      line.decode(errors="replace"))
                    if not match:
                        continue
                    now = time.monotonic()
                    test = match.group(2)
                    if times is not None and match.group(1) != " RUN      ":
                        times[test] = now - last_line
                    last_line = now
                    if match.group(1) == "  FAILED  " and failed is None:
                        failed = test
        if process.wait() == 0:
            return None
        return failed or f"{test} ends with exit status {process.returncode}"
    finally:
        # Also kills the programs that a test has started.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="such as graph or ops/math")
    parser.add_argument("--count", type=int, default=30, help="number of faults")
    parser.add_argument("--seed", type=int, help="default: from the clock")
    parser.add_argument("--only", action="append", default=[], metavar="FILE:LINE",
                        help="all faults of this line, instead of a random choice")
    parser.add_argument("--list", action="store_true", help="print the faults, build nothing")
    arguments = parser.parse_args()
    folder = pathlib.Path(os.path.normpath(arguments.folder))
    seed = arguments.seed if arguments.seed is not None else time.time_ns() % 1_000_000
    program, target = test_program(folder)
    files = sources(folder)
    if not files:
        sys.exit(f"mutate: there are no sources in {folder}")
    # --list must not restore the change of a run in progress.
    workspace = None if arguments.list else Workspace()
    faults = [(path, fault) for path in files for fault in rules.faults(path.read_text())]
    random.Random(seed).shuffle(faults)
    if arguments.only:
        place = lambda fault: f"{fault[0].relative_to(ROOT)}:{fault[1].line}"
        missing = set(arguments.only) - {place(fault) for fault in faults}
        if missing:
            sys.exit(f"mutate: no fault fits {', '.join(sorted(missing))} (expected a place such as graph/scope.cc:78)")
        faults = [fault for fault in faults if place(fault) in arguments.only]
        arguments.count = len(faults)
    else:
        # Takes at most one fault per line.
        seen = set()
        faults = [f for f in faults
                  if (f[0], f[1].line) not in seen and not seen.add((f[0], f[1].line))]
    print(f"seed {seed}: {arguments.count} of {len(faults)} faults of {folder}", flush=True)
    if arguments.list:
        for path, fault in faults[:arguments.count]:
            print(f"{path.relative_to(ROOT)}:{fault.line}: {fault}")
        return 0

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    if not build(target):
        sys.exit(f"mutate: {target} does not build")
    times = {}
    failure = run_tests(program, 600, times)
    if failure is not None:
        sys.exit(f"mutate: without a fault, {failure} fails")
    silence = 10 + 5 * max(times.values(), default=0)
    # Runs the fast tests first, because they notice most faults.
    slow = ":".join(test for test, seconds in times.items() if seconds > 0.1)
    passes = ["-" + slow, slow] if slow else ["*"]

    unnoticed, done = [], 0
    try:
        for path, fault in faults:
            if done == arguments.count:
                break
            workspace.change(path, fault.text)
            # Faults that do not compile, often because of an unused name, do not count.
            if build(target):
                done += 1
                failure = None
                for tests in passes:
                    failure = failure or run_tests(program, silence, tests=tests)
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
