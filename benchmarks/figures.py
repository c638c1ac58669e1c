#!/usr/bin/env python3
"""Maintains the record of benchmark results.

usage: figures.py record PROGRAM RESULTS   add results in Google Benchmark's JSON format to the record
       figures.py write                    write the tables of docs/performance.md
       figures.py check                    fail if `write` would change these tables or the record

figures.jsonl, in JSON Lines, holds one value per line, so that a new figure changes one line. A line with "program" is
a measurement: the program, the processor and other fields that the figures below it share. Instead of a program, it may
name a subject: "details" has the costs of details of the code and of alternatives. Unknown fields are empty or missing.
The "label" is a short name that the tables show instead of the processor.

Every other line is a figure of the measurement above it:
  case     what was measured
  threads  the number of threads; missing if the benchmark does not set it
  ms       median milliseconds by contestant: "ours" or the name of a peer. `conv` reports the shortest time
  ratios   our time divided by the time of each peer, such as a memory triad. Below 1, gradflow is faster
  counters medians of the benchmark's other values
A value with two numbers is a range.
"""
import argparse
import itertools
import json
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIGURES = ROOT / "benchmarks/figures.jsonl"
DOCUMENT = ROOT / "docs/performance.md"
BEGIN = "<!-- Written by benchmarks/figures.py from benchmarks/figures.jsonl. -->\n"
END = "<!-- End of what benchmarks/figures.py writes. -->\n"

# Fields of a benchmark in Google Benchmark's JSON that are not counters.
STANDARD_FIELDS = {
    "name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
    "repetition_index", "threads", "iterations", "real_time", "cpu_time", "time_unit", "label",
}  # fmt: skip
MS_PER_UNIT = {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}
# The suffixes that Google Benchmark appends to a name.
OPTIONS = re.compile(r"(/(iterations:\d+|repeats:\d+|min_time:[^/]*|process_time|real_time|manual_time))+$")
NAME = re.compile(r"(.+)/(\d+)/([^/]+)")


class Error(Exception):
    pass


def parse(text):
    """Returns the measurements, each a dictionary with the list "figures"."""
    measurements = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise Error(f"{FIGURES.name}:{number}: expected JSON: {error}") from error
        if "program" in value:
            measurements.append({**value, "figures": []})
        elif "case" in value and measurements:
            measurements[-1]["figures"].append(value)
        else:
            raise Error(f"{FIGURES.name}:{number}: expected a measurement, or a figure below one")
    return measurements


def serialize(measurements):
    lines = []
    for measurement in measurements:
        lines.append(header(measurement))
        lines += measurement["figures"]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def header(measurement):
    return {key: value for key, value in measurement.items() if key != "figures"}


def rounded(value):
    return float(f"{value:.4g}")


def figures_of(results):
    """Returns the figures of results in Google Benchmark's JSON format, in the order of their names."""
    times, counters = {}, {}
    for run in results["benchmarks"]:
        if run.get("run_type", "iteration") != "iteration" or run.get("error_occurred") or run.get("skipped"):
            continue
        full_name = run.get("run_name", run["name"])
        name = OPTIONS.sub("", full_name)
        match = NAME.fullmatch(name)
        case, threads, who = (match[1], int(match[2]), match[3]) if match else (name, None, "ours")
        # If a program measures both clocks, its table shows the CPU time for one thread.
        clock = "cpu_time" if threads == 1 and "/process_time" in full_name else "real_time"
        ms = run[clock] * MS_PER_UNIT[run["time_unit"]]
        times.setdefault((case, threads), {}).setdefault(who, []).append(ms)
        if who == "ours":
            for key in run.keys() - STANDARD_FIELDS:
                counters.setdefault((case, threads), {}).setdefault(key, []).append(run[key])
    figures = []
    for key in sorted(times, key=lambda key: (key[0], key[1] or 0)):
        medians = {who: statistics.median(samples) for who, samples in times[key].items()}
        ours = medians.get("ours")
        figure = {"case": key[0]}
        if key[1] is not None:
            figure["threads"] = key[1]
        peers = sorted(medians.keys() - {"ours"})
        figure["ms"] = {who: rounded(medians[who]) for who in ["ours", *peers] if who in medians}
        if ours and peers:
            figure["ratios"] = {who: rounded(ours / medians[who]) for who in peers}
        if key in counters:
            figure["counters"] = {
                name: rounded(statistics.median(samples)) for name, samples in sorted(counters[key].items())
            }
        figures.append(figure)
    return figures


def processor():
    """Returns the model of the processor. Virtual machines may hide all except the numbers of its family and model."""
    fields = dict(
        re.split(r"\s*:\s*", line, maxsplit=1)
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        if ":" in line
    )
    if "model name" not in fields:
        return platform.machine()
    return ", ".join(
        [fields["model name"]]
        + [f"{name} {fields[key]}" for name, key in (("family", "cpu family"), ("model", "model")) if key in fields]
    )


def commit():
    """Returns the commit of the sources; "" outside a repository."""
    if not (ROOT / ".git").exists():
        return ""

    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    # Ignores the record itself, which changes with each benchmark.
    changes = git("status", "--porcelain", "--", ".", ":!benchmarks/figures.jsonl", ":!docs/performance.md")
    return git("rev-parse", "--short=12", "HEAD") + (" with changes" if changes else "")


def add(measurements, new):
    """Adds a measurement. Replaces the figures of the same cases on the same processor."""

    def is_replaced(old):
        same = old["program"] == new["program"] and old["processor"] == new["processor"]
        # Old figures may lack the instruction set.
        return same and old.get("simd", "") in ("", new.get("simd", ""))

    replaced = {(figure["case"], figure.get("threads")) for figure in new["figures"]}
    for old in measurements:
        if is_replaced(old):
            old["figures"] = [f for f in old["figures"] if (f["case"], f.get("threads")) not in replaced]
    measurements[:] = [measurement for measurement in measurements if measurement["figures"]]
    for old in measurements:
        if header(old) == header(new):
            old["figures"] = sorted(old["figures"] + new["figures"], key=lambda f: (f["case"], f.get("threads") or 0))
            return
    # Inserts the measurement after the other measurements of the program.
    last = max((i for i, old in enumerate(measurements) if old["program"] == new["program"]), default=None)
    measurements.insert(len(measurements) if last is None else last + 1, new)


def record(measurements, program, results):
    """Adds the results of a program on this machine to the measurements."""
    context = results["context"]
    figures = figures_of(results)
    if not figures:
        raise Error(f"the results of {program} have no times: nothing to record")
    prefix = "library "
    new = {
        "program": program,
        "processor": processor(),
        "simd": context["simd"],
        "date": context["date"][:10],
        "commit": commit(),
        "gradflow": context["gradflow"],
        "libraries": {key[len(prefix) :]: context[key] for key in sorted(context) if key.startswith(prefix)},
        "figures": figures,
    }
    add(measurements, new)
    load = context.get("load_avg", [0])
    if load and load[0] > 0.5:
        print(f"figures.py: other programs were running (load {load[0]:.1f}): do not commit figures of a busy machine")


def cell(value):
    """Returns a number or a range as text."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " to ".join(cell(number) for number in value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def joined(figures, kind, key):
    """Returns the values of figures that differ in the number of threads; "" if there are none."""
    cells = [cell(figure.get(kind, {}).get(key)) for figure in figures]
    return ", ".join(text or "-" for text in cells) if any(cells) else ""


def listed(figures, kind, keys):
    """Returns the values of several keys as one text."""
    texts = {key: joined(figures, kind, key) for key in keys}
    return "; ".join(f"{key} {text}" for key, text in texts.items() if text)


def keys_of(measurements, kind):
    """Returns the keys of a field of the figures, in the order of their first use."""
    return list(dict.fromkeys(k for m in measurements for figure in m["figures"] for k in figure.get(kind, {})))


def describe(measurement):
    """Returns the line of a measurement above the table."""
    label = measurement.get("label") or measurement["processor"]
    parts = []
    if measurement["processor"] != label:
        parts.append(measurement["processor"])
    if measurement.get("simd"):
        parts.append(measurement["simd"])
    versions = dict(measurement.get("libraries", {}))
    if measurement.get("gradflow"):
        versions = {"gradflow": measurement["gradflow"], **versions}
    versions = ", ".join(f"{name} {version}".strip() for name, version in versions.items() if version != "none")
    dated = " ".join(filter(None, [measurement.get("date"), measurement.get("commit")]))
    parts += [versions, dated, measurement.get("conditions", "")]
    text = "; ".join(filter(None, parts))
    return textwrap.fill(f"- {label}{': ' if text else ''}{text}", 120, subsequent_indent="  ") + "\n"


def table(measurements):
    """Returns the table of a program. Rows of a case are adjacent; a row has all numbers of threads."""
    peers = keys_of(measurements, "ratios")
    figures = [figure for measurement in measurements for figure in measurement["figures"]]
    # A ratio replaces the time of its peer.
    shown = {who for figure in figures for who in figure.get("ms", {}) if who not in figure.get("ratios", {})}
    contestants = [who for who in keys_of(measurements, "ms") if who in shown]
    counters = keys_of(measurements, "counters")
    # Columns that are almost empty are hard to read.
    has_columns = len(peers) <= 4
    columns = ["Case", "Measured on", "Threads"]
    columns += ["ms" if who == "ours" else f"ms of {who}" for who in contestants] if has_columns else ["ms"]
    columns += [f"/ {peer}" for peer in peers] if has_columns else ["Ratio"]
    columns += ["Other"] if counters else []
    rows = {}
    for measurement in measurements:
        label = measurement.get("label") or measurement["processor"]
        groups = {}
        for figure in measurement["figures"]:
            groups.setdefault(figure["case"], []).append(figure)
        for case, group in groups.items():
            row = [case, label, ", ".join(str(figure["threads"]) for figure in group if "threads" in figure)]
            if has_columns:
                row += [joined(group, "ms", who) for who in contestants]
                row += [joined(group, "ratios", peer) for peer in peers]
            else:
                row.append(joined(group, "ms", "ours"))
                row.append(listed(group, "ratios", peers))
            if counters:
                row.append(listed(group, "counters", counters))
            rows.setdefault(case, []).append(row)
    lines = [columns, ["---"] * len(columns)]
    for of_case in rows.values():
        # The first row of a case names the case; the other rows leave the name empty.
        lines += [row if i == 0 else ["", *row[1:]] for i, row in enumerate(of_case)]
    return "".join("|" + "|".join(f" {text} " if text else " " for text in line) + "|\n" for line in lines)


def sections(measurements):
    """Returns the text between the markers of the document."""
    programs = {}
    for measurement in measurements:
        programs.setdefault(measurement["program"], []).append(measurement)
    text = ""
    for program, of_program in programs.items():
        text += f"\n### {program}\n\n"
        text += "".join(dict.fromkeys(describe(measurement) for measurement in of_program))
        text += "\n" + table(of_program)
    return text + "\n"


def with_tables(document, measurements):
    """Returns the document with updated tables."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise Error(f"{DOCUMENT.name}: expected one line '{BEGIN.strip()}' and below it one line '{END.strip()}'")
    before, rest = document.split(BEGIN)
    return before + BEGIN + sections(measurements) + END + rest.split(END)[1]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record")
    command.add_argument("program")
    command.add_argument("results", type=pathlib.Path)
    commands.add_parser("write")
    commands.add_parser("check")
    args = parser.parse_args(arguments)
    text = FIGURES.read_text(encoding="utf-8")
    document = DOCUMENT.read_text(encoding="utf-8")
    measurements = parse(text)
    if args.command == "record":
        try:
            results = json.loads(args.results.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Error(f"{args.results}: expected results in JSON: {error}") from error
        record(measurements, args.program, results)
    new_text = serialize(measurements)
    new_document = with_tables(document, measurements)
    if args.command == "check":
        for path, old, new in ((FIGURES, text, new_text), (DOCUMENT, document, new_document)):
            if old != new:
                lines = itertools.zip_longest(old.splitlines(True), new.splitlines(True))
                number = next(i for i, (line, other) in enumerate(lines, 1) if line != other)
                raise Error(f"{path.name}:{number} is not what `benchmarks/figures.py write` writes")
        return
    FIGURES.write_text(new_text, encoding="utf-8")
    DOCUMENT.write_text(new_document, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Error as error:
        sys.exit(f"figures.py: {error}")
