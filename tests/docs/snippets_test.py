#!/usr/bin/env python3
"""Tests of snippets.py."""
import unittest

import snippets

PAGE = 'Text\n```cpp\n#include "a.h"\nint a;\n```\n```cmake\nx()\n```\n```cpp\n…\n```\n'


class Expand(unittest.TestCase):
    def test_inserts_snippets_and_hoists_includes(self):
        self.assertEqual(
            snippets.expand(PAGE, "void F() {\n  @snippet 1@\n}\n@skip 2: an outline@\n"),
            '#include "a.h"\nvoid F() {\nint a;\n}\n')

    def test_each_snippet_is_used_or_skipped_once(self):
        for template in ("@snippet 1@\n", "@snippet 1@\n@snippet 2@\n@snippet 3@\n",
                         "@snippet 1@\n@snippet 1@\n@skip 2: why@\n", None):
            with self.assertRaises(ValueError):
                snippets.expand(PAGE, template)

    def test_page_without_snippets_needs_no_template(self):
        self.assertIsNone(snippets.expand("Text\n", None))


unittest.main()
