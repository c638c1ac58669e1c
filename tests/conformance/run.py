#!/usr/bin/env python3
"""Compiles TensorFlow's tests, unchanged, against an installed gradflow, and counts the tests that pass.

usage: run.py PREFIX SOURCES [GROUP...] [--v1] [--only TEXT] [--jobs N] [--errors N]

PREFIX is an installed gradflow, and SOURCES is a git repository with TensorFlow's sources, which gradflow
does not contain. groups.txt defines the groups; by default, all groups run. If a file does not compile, all of its
tests fail. Each test runs in a separate process. A program counts as a test, which passes if it exits with 0.
Exits with 1 if a test fails.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

DECLARATION = re.compile(r"^\s*(?:REGISTER_TEST\w*|(?:TYPED_)?TEST(?:_[FP])?)\s*\(", re.M)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(conformance CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(gradflow CONFIG REQUIRED COMPONENTS tensorflow_compat testing)
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


def read_groups():
    """Returns {group: [path of a test]}."""
    groups, name, folder, suffix = {}, "", "", ""
    for line in (pathlib.Path(__file__).parent / "groups.txt").read_text().splitlines():
        if line.startswith("  "):
            groups[name] += ["tensorflow/%s/%s%s" % (folder, test, suffix) for test in line.split()]
        elif line and not line.startswith("#"):
            name, folder, *kind = line.split()
            suffix = ".cc" if kind == ["programs"] else "_test.cc"
            groups[name] = []
    return groups


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          **options)


class Tester:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        project = scratch / "project"
        self.build = project / "build"
        self.build.mkdir(parents=True)
        (project / "CMakeLists.txt").write_text(PROJECT.replace("@V1@", "_v1" if options.v1 else ""))
        (project / "program.cc").write_text("")
        done = run(["cmake", "-G", "Unix Makefiles", "-S", project, "-B", self.build,
                    "-DCMAKE_PREFIX_PATH=" + os.path.abspath(options.prefix)])
        if done.returncode:
            sys.exit(done.stdout)
        target = self.build / "CMakeFiles" / "program.dir"
        flags = (target / "flags.make").read_text()
        self.flags = [f for line in re.findall(r"CXX_(?:DEFINES|INCLUDES|FLAGS) = (.*)", flags) for f in line.split()]
        self.link = (target / "link.txt").read_text().strip()

    def source(self, name):
        path = self.scratch / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as f:
            subprocess.run(["git", "-C", self.options.sources, "show", "HEAD:" + name], stdout=f, check=True)
        return path

    def extract(self, folder):
        """Writes the files of a folder, which tests read."""
        archive = subprocess.run(["git", "-C", self.options.sources, "archive", "HEAD", folder], stdout=subprocess.PIPE)
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
        done = run(["c++", *self.flags, "-O1", "-w", "-c", path, "-o", object_file])
        if done.returncode:
            return name, 0, declared, "does not compile" + self.first(r"error: (.*)", done.stdout)
        link = self.link.replace("CMakeFiles/program.dir/program.cc.o", object_file)
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
        failed = [test for test in tests if not self.passes(program, test)]
        reasons = "fails" + "".join("\n    " + t for t in failed[:self.options.errors]) if failed else ""
        return name, len(tests) - len(failed), max(declared, len(tests)), reasons

    def passes(self, program, test):
        env = dict(os.environ, TEST_TMPDIR=str(self.scratch), TEST_SRCDIR=str(self.scratch / "src"))
        try:
            done = run([program, "--gtest_filter=" + test], timeout=120, env=env, cwd=self.scratch)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0 and re.search(r"\[  (PASSED |SKIPPED) \] 1 test", done.stdout) is not None


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
    parser.add_argument("--only", default="", help="only files whose path contains this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--errors", type=int, default=3, help="the number of errors to print for each file")
    options = parser.parse_args()
    unknown = [g for g in options.groups if g not in groups]
    if unknown:
        sys.exit("no group %s; the groups are %s" % (", ".join(unknown), ", ".join(groups)))
    listed = run(["git", "-C", options.sources, "ls-tree", "-r", "--name-only", "HEAD", "tensorflow/cc",
                  "tensorflow/core"])
    files = set(listed.stdout.split())
    if listed.returncode or not files:
        sys.exit("no sources of TensorFlow in " + options.sources)
    whole = check_headers(pathlib.Path(options.prefix), files)
    with tempfile.TemporaryDirectory() as scratch:
        tester = Tester(options, pathlib.Path(scratch))
        for group in options.groups or groups:
            # TensorFlow 1.x has no folder for images.
            names = [n if n in files else n.replace("/image/", "/") for n in groups[group] if options.only in n]
            passed = total = 0
            if group == "saved_model":
                tester.extract("tensorflow/cc/saved_model/testdata")
            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for name, good, count, why in pool.map(tester.test, [n for n in names if n in files]):
                    passed, total = passed + good, total + count
                    print("%-56s %3d of %3d  %s" % (name[len("tensorflow/"):], good, count, why), flush=True)
            print("%s: %d of %d tests" % (group, passed, total), flush=True)
            whole &= passed == total
    sys.exit(not whole)


main()
