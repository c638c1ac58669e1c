#!/usr/bin/env python3
"""Makes tests of the C++ snippets of the documents.

usage: snippets.py DOCS_DIR TEMPLATES_DIR OUTPUT_DIR

TEMPLATES_DIR/<page>.cc.in is the test of DOCS_DIR/<page>.md. A line `@snippet N@` is replaced by the
N-th C++ block of the page. The #include lines of blocks move to the beginning of the file.
`@skip N: reason@` names a block that is not code. A page fails if a block is neither used nor
skipped, or if the template names a block that does not exist. OUTPUT_DIR/<page>_snippets.cc is
written if it differs. Pages without a template must not have C++ blocks. The program of README.md is
examples/readme.
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.S | re.M)
MARK = re.compile(r"^ *@(snippet|skip) (\d+)(?:: [^@]+)?@\n", re.M)


def expand(page, template):
    """Returns the test of a page. The template is None if the page has no template. Raises ValueError."""
    blocks = BLOCK.findall(page)
    if template is None:
        if blocks:
            raise ValueError("has C++ snippets, but no template")
        return None
    used = [int(mark.group(2)) for mark in MARK.finditer(template)]
    for n in used:
        if not 1 <= n <= len(blocks):
            raise ValueError("has no snippet %d" % n)
    missing = set(range(1, len(blocks) + 1)) - set(used)
    if missing:
        raise ValueError("snippets %s are not in the template" % sorted(missing))
    if len(used) != len(set(used)):
        raise ValueError("a snippet is in the template twice")
    includes = []

    def insert(mark):
        if mark.group(1) == "skip":
            return ""
        lines = blocks[int(mark.group(2)) - 1].splitlines(True)
        includes.extend(line for line in lines if line.startswith("#include"))
        return "".join(line for line in lines if not line.startswith("#include"))

    body = MARK.sub(insert, template)
    return "".join(dict.fromkeys(includes)) + body


def main():
    docs, templates, output = map(pathlib.Path, sys.argv[1:])
    output.mkdir(parents=True, exist_ok=True)
    failed = False
    for path in sorted(docs.glob("*.md")):
        template = templates / (path.stem + ".cc.in")
        try:
            text = expand(path.read_text(), template.read_text() if template.exists() else None)
        except ValueError as error:
            print("%s: %s" % (path, error), file=sys.stderr)
            failed = True
            continue
        out = output / (path.stem + "_snippets.cc")
        if text is not None and (not out.exists() or out.read_text() != text):
            out.write_text(text)
    sys.exit(failed)


if __name__ == "__main__":
    main()
