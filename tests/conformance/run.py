#!/usr/bin/env python3
"""Compiles TensorFlow's tests, unchanged, against an installed gradflow, and counts the tests that pass.

usage: run.py PREFIX SOURCES [GROUP...] [--v1] [--without-internals] [--c-library ARCHIVE] [--only TEXT] [--jobs N]
              [--errors N]

PREFIX is an installed gradflow, and SOURCES is a git repository with TensorFlow's sources, which gradflow
does not contain. groups.txt defines the groups; by default, all groups run. If a file does not compile, all of its
tests fail. The tests of a file run in one process, because some of them need what an earlier test has set. A test that
ends this process is left out, and the others run again. Each test that does not pass then runs in a separate process. A program counts as a test, which passes if it exits with 0.
Exits with 1 if a test fails.

--without-internals leaves out the tests that do not compile without TensorFlow's internal headers, and lists them.
--c-library is the archive of the C API in the build tree, libgradflow_tensorflow_c.a, for the group `c`.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import internals

DECLARATION = re.compile(r"^\s*(?:REGISTER_TEST\w*|(?:TYPED_)?TEST(?:_[FP])?)\s*\(", re.M)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(conformance CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(gradflow CONFIG REQUIRED COMPONENTS @KIND@ tensorflow_compat testing)
find_package(GTest REQUIRED)
add_executable(program program.cc)
target_link_libraries(program PRIVATE gradflow::tensorflow_compat@V1@ gradflow::testing GTest::gmock
                                      GTest::gtest_main)
# A test of SavedModels reads JSON.
find_package(jsoncpp QUIET)
if(TARGET jsoncpp_lib)
  target_link_libraries(program PRIVATE jsoncpp_lib)
endif()
"""
# Functions that tests of the C API share.
C_HELPERS = ["tensorflow/c/c_test_util", "tensorflow/c/eager/c_api_test_util"]


def read_groups():
    """Returns {group: [path of a test]}."""
    groups, name, folder, suffix = {}, "", "", ""
    for line in (pathlib.Path(__file__).parent / "groups.txt").read_text().splitlines():
        if line.startswith("  "):
            for test in line.split():
                groups[name].append(test[1:] + suffix if test[0] == "/" else f"tensorflow/{folder}/{test}{suffix}")
        elif line and not line.startswith("#"):
            name, folder, *kind = line.split()
            suffix = ".cc" if kind == ["programs"] else "_test.cc"
            groups[name] = []
    return groups


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          **options)


class Tester:
    """Compiles and runs files. `of_c_api` is true for tests of the C API, which link the archive."""

    def __init__(self, options, scratch, of_c_api):
        self.options, self.scratch = options, scratch
        project = scratch / "project"
        self.build = project / "build"
        self.build.mkdir(parents=True)
        (project / "CMakeLists.txt").write_text(
            PROJECT.replace("@V1@", "_v1" if options.v1 else "").replace("@KIND@", "static" if of_c_api else ""))
        (project / "program.cc").write_text("")
        done = run(["cmake", "-G", "Unix Makefiles", "-S", project, "-B", self.build,
                    "-DCMAKE_PREFIX_PATH=" + os.path.abspath(options.prefix)])
        if done.returncode:
            sys.exit(done.stdout)
        target = self.build / "CMakeFiles" / "program.dir"
        flags = (target / "flags.make").read_text()
        self.flags = [f for line in re.findall(r"CXX_(?:DEFINES|INCLUDES|FLAGS) = (.*)", flags) for f in line.split()]
        self.link = (target / "link.txt").read_text().strip()
        self.objects = ""
        internals.write_headers(self.scratch / "internals")
        if of_c_api:
            self.link_c_api()
        elif options.without_internals:
            self.flags.append(f"-I{self.scratch / 'internals'}")

    def link_c_api(self):
        """Adds the headers and the archive of the C API, and the functions that its tests share."""
        # Before the headers for C++, some of which have the same names.
        headers = os.path.abspath(self.options.prefix) + "/include/gradflow/tensorflow_c"
        self.flags[:0] = [f"-I{folder}" for folder in (self.scratch / "internals", headers, self.scratch / "src")]
        for helper in C_HELPERS:
            self.source(helper + ".h")
            path = self.source(helper + ".cc")
            internals.leave_out(lambda: self.check(path), path)
            self.compile(path)
            self.objects += f"{path}.o "
        self.objects += os.path.abspath(self.options.c_library)

    def compile(self, path):
        """Returns the output of the compiler, or nothing if it succeeds."""
        done = run(["c++", *self.flags, "-O1", "-w", "-fmax-errors=0", "-c", path, "-o", f"{path}.o"])
        return done.stdout if done.returncode else ""

    def check(self, path):
        """Returns the errors of the compiler, without making an object file."""
        done = run(["c++", *self.flags, "-O0", "-w", "-fmax-errors=0", "-fsyntax-only", path])
        return done.stdout if done.returncode else ""

    def source(self, name):
        path = self.scratch / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as f:
            subprocess.run(["git", "-C", self.options.sources, "show", "HEAD:" + name], stdout=f, check=True)
        return path

    def extract(self, folder):
        """Writes the files of a folder, which tests read."""
        # HEAD:folder reads only this tree. With a path, git reads the whole repository, which may be incomplete.
        archive = subprocess.run(["git", "-C", self.options.sources, "archive", f"--prefix={folder}/", "HEAD:" + folder],
                                 stdout=subprocess.PIPE)
        if archive.returncode == 0:
            (self.scratch / "src").mkdir(exist_ok=True)
            subprocess.run(["tar", "-x", "-C", self.scratch / "src"], input=archive.stdout, check=True)

    def first(self, pattern, text):
        lines = list(dict.fromkeys(re.findall(pattern, text))) or [text[-200:]]
        return "".join("\n    " + line[:200] for line in lines[:self.options.errors])

    def test(self, name):
        """Returns (name, number of passing tests, number of tests, reasons)."""
        path = self.source(name)
        is_program = not name.endswith("_test.cc")
        declared = 1 if is_program else len(DECLARATION.findall(path.read_text(errors="replace")))
        object_file, program = str(path) + ".o", str(path) + ".exe"
        left_out = {}
        if self.options.without_internals and not is_program:
            left_out, output = internals.leave_out(lambda: self.check(path), path)
            output = output or self.compile(path)
            declared -= len(left_out)
        else:
            output = self.compile(path)
        if output:
            return name, 0, declared, "does not compile" + self.first(r"error: (.*)", output)
        link = self.link.replace("CMakeFiles/program.dir/program.cc.o", object_file + " " + self.objects)
        done = run(["bash", "-c", link.replace("-o program ", "-o %s " % program)], cwd=self.build)
        if done.returncode:
            return name, 0, declared, "does not link" + self.first(r"undefined reference to (.*)", done.stdout)
        if is_program:
            try:
                done = run([program], timeout=120, cwd=self.scratch)
            except subprocess.TimeoutExpired:
                return name, 0, 1, "does not end"
            return name, int(done.returncode == 0), 1, "ends with %d" % done.returncode if done.returncode else ""
        tests, suite = [], ""
        for line in run([program, "--gtest_list_tests"]).stdout.splitlines():
            word = line.split("#")[0].strip()
            if line.startswith("  "):
                tests.append(suite + word)
            elif word.endswith("."):
                suite = word
        passed = self.passed_together(program)
        failed = [test for test in tests if test not in passed and not self.passed(program, test)[0]]
        reasons = "fails" + "".join("\n    " + t for t in failed[:self.options.errors]) if failed else ""
        reasons += "".join(f"\n    left out: {test}: {error[:120]}" for test, error in left_out.items())
        return name, len(tests) - len(failed), max(declared, len(tests)), reasons

    def passed_together(self, program):
        """Runs all tests in one process. If a test ends the process, the other tests run again without this test."""
        ending = []
        while True:
            passed, last = self.passed(program, "*" + "".join(":" + test for test in ending).replace(":", "-", 1))
            if last is None or last in ending:
                return passed
            ending.append(last)

    def passed(self, program, tests):
        """Runs tests. Returns the names of those that pass, and the test that ends the process, or none."""
        env = dict(os.environ, TEST_TMPDIR=str(self.scratch), TEST_SRCDIR=str(self.scratch / "src"))
        try:
            done = run([program, "--gtest_filter=" + tests], timeout=120, env=env, cwd=self.scratch)
        except subprocess.TimeoutExpired:
            return set(), None
        # Exits with 1 if a test fails.
        if done.returncode not in (0, 1):
            started = re.findall(r"^\[ RUN      \] (\S+)$", done.stdout, re.M)
            return set(), started[-1] if started else None
        return set(re.findall(r"^\[ +(?:OK|SKIPPED) \] (\S+) \(", done.stdout, re.M)), None


def check_headers(prefix, files):
    """Counts TensorFlow's headers that are installed or explain an alternative. Returns true if none is missing."""
    folders = re.compile(r"tensorflow/(cc|core/(framework|graph|lib|platform|public|util))/(?!.*windows/).*\.h$")
    headers = sorted(name for name in files if folders.match(name))
    missing = [name for name in headers if not (prefix / "include/gradflow/compat" / name).exists()]
    faces = sum("#error \"gradflow does not have" not in (prefix / "include/gradflow/compat" / name).read_text()
                for name in set(headers) - set(missing))
    print("headers: %d of %d are there, %d say what to do instead, and %d are missing%s" %
          (faces, len(headers), len(headers) - len(missing) - faces, len(missing),
           "".join("\n    " + name for name in missing)), flush=True)
    return not missing


def main():
    groups = read_groups()
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("sources")
    parser.add_argument("groups", nargs="*")
    parser.add_argument("--v1", action="store_true", help="link the target for programs of TensorFlow 1.x")
    parser.add_argument("--without-internals", action="store_true", help="leave out tests of TensorFlow's internals")
    parser.add_argument("--c-library", help="the archive of the C API")
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--errors", type=int, default=3, help="the number of errors to print for each file")
    options = parser.parse_intermixed_args()
    unknown = [g for g in options.groups if g not in groups]
    if unknown:
        sys.exit("no group %s; the groups are %s" % (", ".join(unknown), ", ".join(groups)))
    listed = run(["git", "-C", options.sources, "ls-tree", "-r", "--name-only", "HEAD", "tensorflow/c", "tensorflow/cc",
                  "tensorflow/core", "third_party/xla/third_party/tsl"])
    files = set(listed.stdout.split())
    if listed.returncode or not files:
        sys.exit("no sources of TensorFlow in " + options.sources)
    whole = check_headers(pathlib.Path(options.prefix), files)
    for group in options.groups or groups:
        with tempfile.TemporaryDirectory() as scratch:
            tester = Tester(options, pathlib.Path(scratch), of_c_api=group == "c")
            # TensorFlow 1.x has no folder for images.
            names = [n if n in files else n.replace("/image/", "/") for n in groups[group] if options.only in n]
            passed = total = 0
            if group in ("c", "saved_model"):
                tester.extract("tensorflow/cc/saved_model/testdata")
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for name, good, count, why in pool.map(tester.test, [n for n in names if n in files]):
                    passed, total = passed + good, total + count
                    print("%-56s %3d of %3d  %s" % (name.removeprefix("tensorflow/"), good, count, why), flush=True)
            print("%s: %d of %d tests" % (group, passed, total), flush=True)
            whole &= passed == total
    sys.exit(not whole)


main()
