#!/usr/bin/env python3
"""Prints the bytes of .text and .rodata in gradflow's object files: `link_map.py MAP`.

MAP is written by the linker's option -Map. Generated protobuf code is counted separately.
"""
import collections
import re
import sys

# " .text.name  0xaddress  0xsize  object". A long name is on a separate line.
ENTRY = re.compile(r"^ (\.(?:text|rodata)\S*)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)\s+(\S.*)$")


def main():
    sizes = collections.Counter()
    discarded = True
    pending = ""
    for line in open(sys.argv[1], encoding="utf-8", errors="replace"):
        if line.startswith("Linker script and memory map"):
            discarded = False
        if discarded:
            continue
        line = line.rstrip("\n")
        if re.fullmatch(r" \.(?:text|rodata)\S*", line):
            pending = line
            continue
        match = ENTRY.match(pending + line)
        pending = ""
        if match is None:
            continue
        section, size, origin = match.groups()
        kind = ".text" if section.startswith(".text") else ".rodata"
        if "libgradflow" not in origin:
            continue
        part = "generated protobuf code" if ".pb.cc" in origin else "gradflow"
        sizes[part, kind] += int(size, 16)
    if not sizes:
        sys.exit(f"{sys.argv[1]} names no object of gradflow")
    for part in ("gradflow", "generated protobuf code"):
        text, rodata = sizes[part, ".text"], sizes[part, ".rodata"]
        print(f"{part}: {text + rodata} bytes ({text} of .text, {rodata} of .rodata)")


if __name__ == "__main__":
    main()
