#!/usr/bin/env python3
"""Runs the tests and examples of language bindings, unchanged, against an installed libtensorflow of gradflow.

usage: bindings.py PREFIX FOLDER [--suite rust|go|cppflow]... [--tensorflow SOURCES] [--cppflow SOURCES] [--jobs N]

PREFIX is the folder into which the CMake component `tensorflow_c` was installed. The suites are copied to FOLDER and
built there:

  rust     the crate `tensorflow` 0.21 of the registry with all of its features for a CPU: its unit tests, and its
           examples addition, regression, regression_savedmodel, xor and expressions. Needs cargo.
  go       tensorflow/go of TensorFlow's sources (--tensorflow). Needs go, protoc and protoc-gen-go.
  cppflow  the examples of cppflow's sources (--cppflow). Needs a C++ compiler, named by CXX or c++.

A suite is skipped, with a message, only if one of its tools or sources is missing. Prints the number of passed tests of
each suite and the names of the others. The exit status is 1 if a suite cannot be built, or if a program ends before all
of its tests have run.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

CRATE = "0.21.0"
RUST_FEATURES = "eager,tensorflow_unstable,ndarray,experimental"
RUST_EXAMPLES = {
    "addition": [],
    "regression": [],
    "regression_savedmodel": [],
    "xor": [],
    "expressions": ["tensorflow_unstable"],
}
CPPFLOW_EXAMPLES = ["load_model", "multi_input_output", "eager_op_multithread", "tensor", "load_frozen_graph"]
GO_MODULE = "github.com/tensorflow/tensorflow"
# The messages that the Go binding uses. Their imports are generated as well.
GO_PROTOS = [
    "tensorflow/core/framework/api_def.proto",
    "tensorflow/core/framework/op_def.proto",
    "tensorflow/core/framework/tensor_shape.proto",
    "tensorflow/core/framework/types.proto",
    "tensorflow/core/protobuf/config.proto",
    "tensorflow/core/protobuf/meta_graph.proto",
]


class Skipped(Exception):
    """A tool or the sources of a suite are missing."""


class Failed(Exception):
    """A suite cannot be built, or a test program has crashed."""


def need(tools):
    for tool in tools:
        if shutil.which(tool) is None:
            raise Skipped(f"{tool} is not installed")


class Installed:
    """The installed library, and the environment in which programs find it."""

    def __init__(self, prefix):
        found = sorted(prefix.rglob("tensorflow.pc"))
        if not found:
            raise SystemExit(f"error: {prefix} has no tensorflow.pc; install the component tensorflow_c")
        self.pkgconfig = found[0].parent
        self.lib = self.pkgconfig.parent
        headers = sorted(prefix.rglob("tensorflow/c/c_api.h"))
        self.include = headers[0].parent.parent.parent
        self.env = dict(
            os.environ,
            PKG_CONFIG_PATH=str(self.pkgconfig),
            LD_LIBRARY_PATH=str(self.lib),
            TF_CPP_MIN_LOG_LEVEL="3",
            CGO_CFLAGS=f"-I{self.include}",
            CGO_LDFLAGS=f"-L{self.lib}",
        )

    def run(self, command, folder, check=True):
        """Returns the exit status and the output."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=self.env,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if check and done.returncode != 0:
            sys.stderr.write(done.stdout[-4000:])
            raise Failed(f"{command[0]} ended with status {done.returncode}")
        return done.returncode, done.stdout


def report(suite, passed, failed):
    print(f"{suite}: {passed} of {passed + len(failed)} passed")
    for name in failed:
        print(f"  failed: {name}")


def report_tests(suite, listed, results, output):
    """`listed` are the names of all tests, and `results` maps the names of the tests that have ended to true or false."""
    missing = [name for name in listed if name not in results]
    if missing or not listed:
        sys.stderr.write(output[-4000:])
        raise Failed(f"the tests ended after {len(results)} of {len(listed)}; without a result: {', '.join(missing)}")
    report(suite, sum(results.values()), [name for name, passed in results.items() if not passed])


def report_programs(suite, installed, programs):
    """Runs programs, which pass if they return 0. `programs` are names, commands and folders."""
    failed = []
    crashed = []
    for name, command, folder in programs:
        status, output = installed.run(command, folder, check=False)
        if status == 0:
            continue
        failed.append(f"{name}: {output.strip()[-300:]}")
        # Cargo reports the signal that ended a program as text.
        if status < 0 or "(signal: " in output:
            crashed.append(name)
    report(suite, len(programs) - len(failed), failed)
    if crashed:
        raise Failed("crashed: " + ", ".join(crashed))


def rust(installed, folder, args):
    need(["cargo", "pkg-config"])
    probe = folder / "probe"
    (probe / "src").mkdir(parents=True, exist_ok=True)
    (probe / "src" / "lib.rs").write_text("")
    (probe / "Cargo.toml").write_text(
        '[package]\nname = "probe"\nversion = "0.1.0"\nedition = "2021"\n'
        f'[dependencies]\ntensorflow = {{ version = "={CRATE}", features = ["eager"] }}\n'
    )
    crate = folder / "crate"
    if not crate.exists():
        installed.run(["cargo", "vendor", folder / "vendor"], probe)
        shutil.copytree(folder / "vendor" / "tensorflow", crate)
    cargo = ["cargo", "test", f"-j{args.jobs}", "--features", RUST_FEATURES, "--lib"]
    installed.run([*cargo, "--no-run"], crate)
    _, listed = installed.run([*cargo, "--", "--list"], crate)
    # Output of other threads may stand between the name of a test and its result, except with one thread.
    _, output = installed.run([*cargo, "--", "--test-threads=1"], crate, check=False)
    results = dict(re.findall(r"^test (\S+) \.\.\. (?:.*\n)*?(ok|FAILED|ignored)$", output, re.M))
    ended = {name: result == "ok" for name, result in results.items() if result != "ignored"}
    ignored = [name for name, result in results.items() if result == "ignored"]
    names = [name for name in re.findall(r"^(\S+): test$", listed, re.M) if name not in ignored]
    report_tests("rust", names, ended, output)
    programs = []
    for name, features in RUST_EXAMPLES.items():
        command = ["cargo", "run", f"-j{args.jobs}", "--example", name]
        if features:
            command += ["--features", ",".join(features)]
        programs.append((name, command, crate))
    report_programs("rust examples", installed, programs)


def go_protos(installed, sources, module):
    """Generates the packages of messages that the binding imports."""
    xla = sources / "third_party" / "xla"
    roots = [root for root in (sources, xla, xla / "third_party" / "tsl") if root.exists()]
    packages = set()
    stack = list(GO_PROTOS)
    while stack:
        name = stack.pop()
        path = next((root / name for root in roots if (root / name).exists()), None)
        if name in packages or path is None:
            continue
        text = path.read_text()
        packages.add(name)
        stack += re.findall(r'^import (?:public )?"([^"]+)"', text, re.M)
    # Each other file becomes a package, because some of the packages that the files name import each other.
    options = [
        f"--go_opt=M{name}={GO_MODULE}/tensorflow/go/other/{pathlib.PurePath(name).with_suffix('')}"
        for name in packages
        if name not in GO_PROTOS
    ]
    include = [f"-I{root}" for root in roots]
    installed.run(
        ["protoc", *include, f"--go_out={module}", f"--go_opt=module={GO_MODULE}", *options, *sorted(packages)],
        sources,
    )


def go(installed, folder, args):
    need(["go", "protoc", "protoc-gen-go"])
    if args.tensorflow is None:
        raise Skipped("--tensorflow does not name TensorFlow's sources")
    module = folder / "module"
    if not module.exists():
        shutil.copytree(args.tensorflow / "tensorflow" / "go", module / "tensorflow" / "go")
        go_protos(installed, args.tensorflow, module)
        (module / "go.mod").write_text(f"module {GO_MODULE}\n\ngo 1.21\n")
        installed.run(["go", "mod", "tidy"], module)
    packages = ["./tensorflow/go", "./tensorflow/go/op"]
    _, listed = installed.run(["go", "test", f"-p={args.jobs}", "-list", "^Test", *packages], module)
    _, output = installed.run(["go", "test", "-v", f"-p={args.jobs}", *packages], module, check=False)
    results = re.findall(r"^--- (PASS|FAIL|SKIP): (\S+)", output, re.M)
    ended = {name: result != "FAIL" for result, name in results}
    report_tests("go", re.findall(r"^Test\w*$", listed, re.M), ended, output)


def cppflow(installed, folder, args):
    compiler = os.environ.get("CXX", "c++")
    need([compiler])
    if args.cppflow is None:
        raise Skipped("--cppflow does not name the sources of cppflow")
    programs = []
    for name in CPPFLOW_EXAMPLES:
        example = folder / name
        shutil.copytree(args.cppflow / "examples" / name, example, dirs_exist_ok=True)
        build = example / "build"
        build.mkdir(exist_ok=True)
        program = build / name
        installed.run(
            [
                compiler,
                "-std=c++17",
                f"-I{args.cppflow / 'include'}",
                f'-DMODEL_PATH="{example / "model"}"',
                f"-I{installed.include}",
                *sorted(example.glob("*.cpp")),
                f"-L{installed.lib}",
                "-ltensorflow",
                "-pthread",
                "-o",
                program,
            ],
            example,
        )
        # The example of a frozen graph looks for it in the folder above.
        programs.append((name, [program], build))
    report_programs("cppflow", installed, programs)


SUITES = {"rust": rust, "go": go, "cppflow": cppflow}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--tensorflow", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--cppflow", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    installed = Installed(args.prefix.resolve())
    status = 0
    for name in args.suite or SUITES:
        folder = args.folder.resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            SUITES[name](installed, folder, args)
        except Skipped as why:
            print(f"{name}: skipped: {why}")
        except Failed as why:
            print(f"{name}: error: {why}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
