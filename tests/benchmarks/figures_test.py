#!/usr/bin/env python3
"""Tests of benchmarks/figures.py.

usage: figures_test.py FOLDER_OF_BENCHMARKS
"""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
sys.dont_write_bytecode = True

import figures  # noqa: E402


def run(name, real_time, **fields):
    return {"name": name, "run_type": "iteration", "real_time": real_time, "cpu_time": 0, "time_unit": "ms", **fields}


def measurement(processor="P", commit="1", figures=(), **fields):
    return {"program": "kernels", "processor": processor, "commit": commit, **fields, "figures": list(figures)}


def figure(case, ratio):
    return {"case": case, "threads": 1, "ratios": {"triad": ratio}}


class ResultsTest(unittest.TestCase):
    def test_takes_medians_of_repetitions_and_divides_by_medians_of_peers(self):
        runs = [run("Neg/[4]/2/ours/real_time", ms) for ms in (3, 1, 2)]
        runs += [run("Neg/[4]/2/triad/real_time", ms, time_unit="us") for ms in (4000, 4000, 9000)]
        runs += [run("Neg/[4]/2/triad/real_time_median", 1, run_type="aggregate")]
        self.assertEqual(
            figures.figures_of({"benchmarks": runs}),
            [{"case": "Neg/[4]", "threads": 2, "ms": {"ours": 2.0, "triad": 4.0}, "ratios": {"triad": 0.5}}],
        )

    def test_process_time_on_one_thread_is_the_processor_time(self):
        name = "/ours/process_time/real_time"
        results = {"benchmarks": [run(f"Neg/{threads}{name}", 7, cpu_time=5) for threads in (1, 2)]}
        self.assertEqual([f["ms"] for f in figures.figures_of(results)], [{"ours": 5.0}, {"ours": 7.0}])

    def test_omits_benchmarks_that_did_not_run(self):
        runs = [run("Neg/1/ours", 2), run("Neg/1/libtorch", 0, error_occurred=True), run("Neg/1/copy", 0, skipped=True)]
        self.assertEqual(
            figures.figures_of({"benchmarks": runs}), [{"case": "Neg", "threads": 1, "ms": {"ours": 2.0}}]
        )

    def test_keeps_counters_and_names_without_threads(self):
        runs = [run("gradients/chain/iterations:1", 2, nodes=n, iterations=1) for n in (10, 30, 20)]
        self.assertEqual(
            figures.figures_of({"benchmarks": runs}),
            [{"case": "gradients/chain", "ms": {"ours": 2.0}, "counters": {"nodes": 20.0}}],
        )

    def test_records_date_libraries_processor_and_commit(self):
        context = {"date": "2026-01-02T03:04:05+00:00", "gradflow": "0.1.0", "simd": "avx2", "library oneTBB": "2021.8"}
        results = {"context": context, "benchmarks": [run("Neg/1/ours", 2)]}
        record = []
        figures.record(record, "kernels", results)
        self.assertEqual(len(record), 1)
        self.assertEqual(record[0]["date"], "2026-01-02")
        self.assertEqual(record[0]["libraries"], {"oneTBB": "2021.8"})
        self.assertEqual(record[0]["processor"], figures.processor())
        self.assertRegex(record[0]["commit"], "^([0-9a-f]{12}( with changes)?)?$")

    def test_refuses_results_without_times(self):
        with self.assertRaisesRegex(figures.Error, "the results of conv have no times"):
            figures.record([], "conv", {"context": {}, "benchmarks": []})


class RecordTest(unittest.TestCase):
    def test_replaces_figures_of_the_same_case_and_processor(self):
        record = [
            measurement("P", "1", [figure("a", 1), figure("b", 1)]),
            measurement("Q", "1", [figure("a", 1)]),
        ]
        figures.add(record, measurement("P", "2", [figure("a", 2)]))
        self.assertEqual(
            record,
            [
                measurement("P", "1", [figure("b", 1)]),
                measurement("Q", "1", [figure("a", 1)]),
                measurement("P", "2", [figure("a", 2)]),
            ],
        )

    def test_keeps_figures_of_other_instructions(self):
        record = [measurement("P", simd=simd, figures=[figure("a", 1)]) for simd in ("", "avx2", "avx3")]
        figures.add(record, measurement("P", simd="avx2", figures=[figure("a", 2)]))
        self.assertEqual(
            record,
            [
                measurement("P", simd="avx3", figures=[figure("a", 1)]),
                measurement("P", simd="avx2", figures=[figure("a", 2)]),
            ],
        )

    def test_drops_a_measurement_without_figures(self):
        record = [measurement("P", "1", [figure("a", 1)])]
        figures.add(record, measurement("P", "2", [figure("a", 2)]))
        self.assertEqual(record, [measurement("P", "2", [figure("a", 2)])])

    def test_adds_to_a_measurement_in_the_same_state(self):
        record = [measurement("P", "1", [figure("b", 1)])]
        figures.add(record, measurement("P", "1", [figure("a", 1)]))
        self.assertEqual(record, [measurement("P", "1", [figure("a", 1), figure("b", 1)])])

    def test_reads_what_it_writes(self):
        record = [measurement("P", "1", [figure("a", 1)]), measurement("Q", "1", [figure("b", [1, 2])])]
        self.assertEqual(figures.parse(figures.serialize(record)), record)

    def test_names_the_wrong_line_of_the_record(self):
        with self.assertRaisesRegex(figures.Error, "figures.jsonl:1: expected a measurement, or a figure below one"):
            figures.parse('{"case": "a"}\n')
        with self.assertRaisesRegex(figures.Error, "figures.jsonl:2: expected JSON"):
            figures.parse('{"program": "kernels"}\n{\n')


class TableTest(unittest.TestCase):
    def test_rows_have_all_numbers_of_threads_and_adjacent_processors(self):
        two = {**figure("a", [2, 3]), "threads": 2}
        self.assertEqual(
            figures.table([measurement("P", "1", [figure("a", 1.5), two, figure("b", 3)]),
                           measurement("Q", "1", [figure("a", 0.25)], label="Zen")]),
            "| Case | Measured on | Threads | / triad |\n"
            "| --- | --- | --- | --- |\n"
            "| a | P | 1, 2 | 1.5, 2 to 3 |\n"
            "| | Zen | 1 | 0.25 |\n"
            "| b | P | 1 | 3 |\n",
        )  # fmt: skip

    def test_shows_times_of_peers_that_have_no_ratio(self):
        times = {"case": "a", "ms": {"ours": 1.0, "TensorFlow": 2.0, "copy": 3.0}, "ratios": {"copy": 0.333}}
        self.assertEqual(
            figures.table([measurement("P", "1", [times])]),
            "| Case | Measured on | Threads | ms | ms of TensorFlow | / copy |\n"
            "| --- | --- | --- | --- | --- | --- |\n"
            "| a | P | | 1 | 2 | 0.333 |\n",
        )

    def test_many_peers_share_a_column(self):
        ratios = [{"case": peer, "ratios": {peer: 2}} for peer in "abcde"]
        self.assertIn("| c | P | | | c 2 |\n", figures.table([measurement("P", "1", ratios)]))


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        saved = figures.FIGURES, figures.DOCUMENT
        self.addCleanup(lambda: setattr(figures, "FIGURES", saved[0]) or setattr(figures, "DOCUMENT", saved[1]))
        figures.FIGURES = pathlib.Path(folder.name) / "figures.jsonl"
        figures.DOCUMENT = pathlib.Path(folder.name) / "performance.md"
        figures.FIGURES.write_text(figures.serialize([measurement("P", "1", [figure("a", 1.5)])]))
        figures.DOCUMENT.write_text("above\n" + figures.BEGIN + "old\n" + figures.END + "below\n")

    def test_writes_only_between_the_markers(self):
        with self.assertRaisesRegex(figures.Error, "performance.md:3 is not what"):
            figures.main(["check"])
        figures.main(["write"])
        text = figures.DOCUMENT.read_text()
        self.assertTrue(text.startswith("above\n" + figures.BEGIN + "\n### kernels\n"), text)
        self.assertTrue(text.endswith("| a | P | 1 | 1.5 |\n\n" + figures.END + "below\n"), text)
        figures.main(["check"])

    def test_notices_an_edited_table_and_an_edited_record(self):
        figures.main(["write"])
        text = figures.DOCUMENT.read_text()
        figures.DOCUMENT.write_text(text.replace("1.5 |", "1.4 |"))
        with self.assertRaisesRegex(figures.Error, "performance.md:10 is not what"):
            figures.main(["check"])
        figures.DOCUMENT.write_text(text)
        figures.FIGURES.write_text(figures.FIGURES.read_text().replace("1.5", "1.4"))
        with self.assertRaisesRegex(figures.Error, "performance.md:10 is not what"):
            figures.main(["check"])

    def test_needs_the_markers(self):
        figures.DOCUMENT.write_text("nothing\n")
        with self.assertRaisesRegex(figures.Error, "expected one line"):
            figures.main(["write"])

    def test_records_a_file_and_warns_of_a_busy_machine(self):
        results = {
            "context": {"date": "2026-01-02", "gradflow": "0.1.0", "simd": "avx2", "load_avg": [3.5, 0, 0]},
            "benchmarks": [run("Neg/1/ours", 2)],
        }
        path = figures.FIGURES.with_name("results.json")
        path.write_text(json.dumps(results))
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            figures.main(["record", "ops", str(path)])
        self.assertIn("other programs were running (load 3.5)", output.getvalue())
        self.assertIn("\n### ops\n", figures.DOCUMENT.read_text())
        figures.main(["check"])

    def test_refuses_results_that_are_not_json(self):
        # If no benchmark matches the filter, Google Benchmark leaves an empty file.
        path = figures.FIGURES.with_name("results.json")
        path.write_text("")
        with self.assertRaisesRegex(figures.Error, "results.json: expected results in JSON"):
            figures.main(["record", "ops", str(path)])


if __name__ == "__main__":
    unittest.main()
