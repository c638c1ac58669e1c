#!/usr/bin/env python3
"""Runs the blocks of the documents that are not C++: CMake, make and shell.

usage: blocks.py SOURCE_DIR [PREFIX COMPILER]

Checks each block of SOURCE_DIR/docs/*.md that is not C++. The class Runner runs blocks without changes. Other
blocks must be equal to a part of a file that other tests use (SAME), or their commands must be in `./dev help`
or in the manual page of gradflow, which a test compares with the program. All remaining blocks must be listed
(OUTLINES). PREFIX is an installed gradflow; without it, no block is run.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```|((?:^    [^\n]*\n)+)", re.S | re.M)
# For each page, the beginnings of blocks that are not commands to run: the output of a command, the
# contents of a folder, or a syntax.
OUTLINES = {
    # These commands build gradflow. tests/package/ops_subset.sh builds a part of gradflow.
    "getting_started": ["cmake -S . -B build/mine", "cmake -S . -B build/small"],
    "adding_an_op": ["ninja -C build/release", "add("],  # A line to add to a file.
    # Parts of a program, and files for launchers that the tests do not have.
    "distributed": ["SessionOptions options;", "DataParallel parallel", "machine1$", "#!/bin/sh", "mpirun", "apiVersion"],
    "quantization": ["in float: "],
    "runtime": ["Session::Run("],
    # These need an installed package, or another language.
    "c_api": ["export PKG_CONFIG_PATH", "find_package"],
    "c_api_cppflow": ["find_package"],
    "c_api_go": ["export CGO_CFLAGS"],
    "c_api_rust": ["[dependencies]", "export PKG_CONFIG_PATH"],
    "testing": ["cases/", "--atol", "# accumulates", "kernel 'mine'", "TensorEq(", "Value of:"],
}
# For each page, the files that contain the blocks with the given beginnings.
SAME = {
    "c_api": {"// Loads a SavedModel": "examples/c_api/main.c"},
    "custom_ops": {"gradflow_": "examples/custom_op/CMakeLists.txt"},
    "adding_an_op": {r"\w+ \| ": "tests/data/op_rows.txt", "gradflow_op_family": "ops/math/sources.cmake"},
}


def blocks(page):
    """Returns [(language or "", text)] for the blocks of a page, without C++."""
    found = []
    for match in BLOCK.finditer(page):
        text = match.group(2) if match.group(3) is None else re.sub(r"(?m)^    ", "", match.group(3))
        if match.group(1) != "cpp":
            found.append((match.group(1) or "", text))
    return found


def commands(text):
    """Returns the commands of a session: the lines after "$ ", or all lines if there is no "$ "."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line[2:] for line in lines if line.startswith("$ ")] or lines


class Checker:
    def __init__(self, source):
        self.source = source
        self.manual = (source / "docs/gradflow.1").read_text().replace("\\-", "-")
        self.dev = (source / "dev").read_text()

    def known(self, command):
        """Returns true for a command of ./dev or gradflow whose options exist."""
        words = command.split("#")[0].split()
        if words[:1] == ["./dev"] and len(words) > 1:
            return re.search(r"^  (\w+, )*%s\b" % words[1], self.dev, re.M) is not None
        if words[:2] == ["sudo", "apt"]:
            return True
        if words[:1] != ["gradflow"] or len(words) < 2:
            return False
        section = re.search(r"^\.SS gradflow %s\n(.*?)(?=^\.S[SH]|\Z)" % re.escape(words[1]), self.manual,
                            re.S | re.M)
        return section is not None and all(
            re.search(r"%s\b" % re.escape(word), section.group(1)) for word in words if re.match(r"--?[a-z]", word))

    def same(self, page, text):
        """Returns true if the lines are in the file that contains the page's blocks."""
        for start, name in SAME.get(page, {}).items():
            lines = [line for line in text.splitlines() if not re.match("find_package|target_link", line)]
            if lines and re.match(start, lines[0]):
                have = (self.source / name).read_text()
                # Programs have other names in the file.
                names = [re.escape(line).replace("my_program", r"\w+") for line in lines]
                return all(re.search(r"(?m)^ *%s" % line, have) for line in names)
        return False

    def check(self, page, text):
        if any(text.startswith(start) for start in OUTLINES.get(page, [])):
            return True
        return self.same(page, text) or all(self.known(command) for command in commands(text))


class Runner:
    """Builds the projects of the pages and runs their commands. The home folder has gradflow in ~/gradflow."""

    def __init__(self, source, prefix, compiler, home):
        self.source, self.home = source, home
        os.symlink(prefix, home / "gradflow")
        self.env = dict(os.environ, HOME=str(home), CXX=compiler)
        # The pages use g++.
        (home / "bin").mkdir()
        os.symlink(shutil.which(compiler), home / "bin" / "g++")
        self.env["PATH"] = "%s:%s" % (home / "bin", self.env["PATH"])

    def shell(self, folder, text):
        done = subprocess.run(["bash", "-euc", text], cwd=folder, env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise ValueError("fails:\n" + done.stdout[-4000:])
        return done.stdout

    def project(self, name, cmake, files, text=None):
        """Runs `text` in a folder with this CMakeLists.txt and copies of files of the sources."""
        folder = self.home / name
        folder.mkdir()
        if not cmake.startswith("cmake_minimum"):
            cmake = "cmake_minimum_required(VERSION 3.25)\nproject(%s LANGUAGES CXX)\n" % name + cmake
        (folder / "CMakeLists.txt").write_text(cmake)
        for to, origin in files.items():
            (folder / to).parent.mkdir(parents=True, exist_ok=True)
            os.symlink(self.source / origin, folder / to)
        return self.shell(folder, text or "cmake -S . -B build -DCMAKE_PREFIX_PATH=$HOME/gradflow\n"
                          "cmake --build build")

    def run(self, page, language, text):
        """Runs a block. Returns false if the block is not meant to be run."""
        readme = {"main.cc": "examples/readme/main.cc"}
        if page == "getting_started":
            if language == "cmake" and text.startswith("cmake_minimum"):
                self.first = text
            elif language == "cmake":
                self.project("fetched", "enable_language(CXX)\nadd_executable(first main.cc)\n" + text,
                             dict(readme, **{"third_party/gradflow": ""}), "cmake -S . -B build")
            elif text.startswith("cmake -S . -B build -D"):
                assert "values: 0 2 3 0>" in self.project("first", self.first, readme, text)
            elif text.startswith("export PKG_CONFIG_PATH"):
                out = self.project("by_hand", "", readme, text + "./a.out")
                assert "values: 0 2 3 0>" in out
            else:
                return False
        elif page == "tensorflow" and language == "cmake":
            kernel = "kernel_test" in text
            self.project("kernel" if kernel else "program", text,
                         {"kernel_test.cc": "tests/compat/input_test.cc"} if kernel else
                         {"main.cc": "tests/compat/matmul_program.cc"})
        elif page == "tensorflow" and language == "make":
            folder = self.home / "plugin"
            folder.mkdir()
            (folder / "Makefile").write_text(text)
            os.symlink(self.source / "tests/plugin/tensorflow_plugin.cc", folder / "zero_out.cc")
            self.shell(folder, "export PKG_CONFIG_PATH=$HOME/gradflow/lib/pkgconfig\nmake zero_out.so")
        elif page == "testing" and language == "cmake":
            golden = "golden" in text
            if not golden:
                (self.home / "my_test.cc").write_text('#include "gradflow/testing/kernel_test.h"\n'
                                                      "#include <gtest/gtest.h>\nTEST(A, B) {}\n")
            self.project("golden" if golden else "mine", text, {"testdata/accelerator/relu": "tests/consumer/golden/relu"}
                         if golden else {"my_test.cc": self.home / "my_test.cc"})
        else:
            return False
        return True


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    checker = Checker(source)
    failed = False
    with tempfile.TemporaryDirectory() as home:
        runner = Runner(source, os.path.abspath(sys.argv[2]), sys.argv[3], pathlib.Path(home)) if len(sys.argv) > 2 else None
        for path in sorted((source / "docs").glob("*.md")):
            for language, text in blocks(path.read_text()):
                try:
                    if runner is None:
                        fine = language in ("cmake", "make") or text.startswith(("cmake", "export")) or checker.check(
                            path.stem, text)
                    else:
                        fine = runner.run(path.stem, language, text) or checker.check(path.stem, text)
                    fault = "" if fine else "is not known to any test"
                except (ValueError, AssertionError) as error:
                    fault = str(error) or "prints something else"
                if fault:
                    print("%s: this block %s\n%s" % (path, fault, text), file=sys.stderr)
                    failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
