#!/usr/bin/env python3
"""Compares ops/<folder>/sources.cmake with the sources: `sources_test.py OPS_DIR`.

Fails if a source is not listed, if a family is listed as a helper, or if USES lacks a helper whose
header the source includes. A build with GRADFLOW_OPS would lack such a helper.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^#include "gradflow/ops/([^"]+)\.h"', re.MULTILINE)
FAMILY = re.compile(r"^void Register\(Registry& registry\) \{", re.MULTILINE)
ENTRY = re.compile(r"^gradflow_op_(family|helper)\(([^)]*)\)", re.MULTILINE)

# Headers without a source of the same name, and the sources that define their functions.
IMPLEMENTED_BY = {"nn/conv_engine": ["nn/conv_blocked", "nn/conv_onednn", "nn/conv_gemm"]}

# Headers that a source includes only if the build has ops that use their package. The sources of
# these headers are then in the build, so USES need not list them.
CONDITIONAL = {"common/libraries": {"linalg/blas"}}


def listed(ops):
    """Returns {"<folder>/<name>": (kind, used sources)} of all sources.cmake."""
    result = {}
    for path in sorted(ops.glob("*/sources.cmake")):
        folder = path.parent.name
        for kind, words in ENTRY.findall(path.read_text()):
            name, *options = words.split()
            uses = options[options.index("USES") + 1:] if "USES" in options else []
            result[f"{folder}/{name}"] = (
                kind, {use if "/" in use else f"{folder}/{use}" for use in uses})
    return result


def needed(ops, source):
    """Returns the sources whose headers `source` includes, also through headers without a source."""
    result, seen = set(), set()
    pending = INCLUDE.findall((ops / f"{source}.cc").read_text())
    while pending:
        header = pending.pop()
        if header in seen:
            continue
        seen.add(header)
        if header in IMPLEMENTED_BY:
            result.update(IMPLEMENTED_BY[header])
        elif (ops / f"{header}.cc").exists():
            result.add(header)
        elif (ops / f"{header}.h").exists():
            pending += INCLUDE.findall((ops / f"{header}.h").read_text())
    return result - {source}


def is_implied(source):
    """Returns true for helpers that are in every build."""
    return source.startswith("common/") and source != "common/elementary_simd"


def main():
    ops = pathlib.Path(sys.argv[1])
    entries = listed(ops)
    sources = {str(path.relative_to(ops))[:-3] for path in ops.glob("*/*.cc")}
    if not sources:
        sys.exit(f"{ops} has no sources")
    faults = [f"{source}.cc is not in sources.cmake" for source in sources - entries.keys()]
    faults += [f"sources.cmake lists {source}.cc, which does not exist"
               for source in entries.keys() - sources]
    for source in sorted(sources & entries.keys()):
        kind, uses = entries[source]
        has_ops = FAMILY.search((ops / f"{source}.cc").read_text()) is not None
        if has_ops != (kind == "family"):
            faults.append(f"{source}.cc is listed as a {kind}")
        missing = {use for use in needed(ops, source) if not is_implied(use)} - uses
        missing -= CONDITIONAL.get(source, set())
        # The sources that implement an engine include its header.
        missing -= {use for names in IMPLEMENTED_BY.values() if source in names for use in names}
        faults += [f"{source}.cc uses {use}, which its USES lacks" for use in sorted(missing)]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
