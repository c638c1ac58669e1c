#!/usr/bin/env python3
"""Tests of rules.py, and that the script finds faults in every folder of sources."""

import pathlib
import subprocess
import sys
import unittest

import rules


def changes(line):
    """Returns the changed lines that the rules make from a line inside of a function."""
    source = "void F() {\n  a;\n  " + line + "\n}\n"
    return [f.text.split("\n")[2].strip() for f in rules.faults(source) if f.line == 3]


class RulesTest(unittest.TestCase):
    def test_changes_edges_operators_and_constants(self):
        self.assertEqual(
            sorted(changes("if (a <= b && !c) return 10;")),
            ["if (a < b && !c) return 10;", "if (a <= b && !c) return 11;",
             "if (a <= b || !c) return 10;"])
        self.assertIn("if (b < a) return;", changes("if (a < b) return;"))
        self.assertIn("x = b - a;", changes("x = a - b;"))
        self.assertIn("x = true;", changes("x = false;"))
        self.assertIn("if (c) return;", changes("if (!c) return;"))

    def test_drops_whole_statements_only(self):
        self.assertIn(";", changes("Add(x);"))
        self.assertIn(";", changes("GRADFLOW_RETURN_IF_ERROR(Check(x));"))
        self.assertIn(";", changes("found |= other;"))
        self.assertIn("found = other;", changes("found |= other;"))
        for line in ("return Add(x);", "int x = Add(y);", "const auto x = y;", "Add(x,"):
            self.assertNotIn(";", changes(line))

    def test_leaves_literals_and_comments(self):
        for line in ('Add("a < b && 1");', "Add(' ');  // a < b && 1", 'Add(R"(a < b && 1)");'):
            self.assertEqual(changes(line), [";"])
        self.assertEqual(changes("#include <x>"), [])
        self.assertEqual(changes("x = 10'000;"), [";"])

    def test_keeps_the_other_lines(self):
        source = "void F() {\n  if (a < 1) b();\n  c();\n}\n"
        for fault in rules.faults(source):
            lines = fault.text.split("\n")
            self.assertEqual(len(lines), 5)
            different = [i for i, line in enumerate(lines) if line != source.split("\n")[i]]
            self.assertEqual(different, [fault.line - 1])

    def test_finds_faults_in_every_folder(self):
        script = pathlib.Path(__file__).with_name("mutate.py")
        for folder in ("core", "graph", "runtime", "tools", "compat", "ops/math", "io"):
            listed = subprocess.run(
                [sys.executable, str(script), folder, "--list", "--seed", "1", "--count", "5"],
                check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
            self.assertEqual(len(listed), 6, folder)


if __name__ == "__main__":
    unittest.main()
