"""Calls of the ops in ops/logging/summary.cc, and of ShardedFilename and ShardedFilespec."""


def calls(add):
    for array in [f16, f32, f64, i32, i64]:
        add("ScalarSummary", [text("a"), array(2)])
        add("ScalarSummary", [text(["a", "b/c"]), array([2, 3])])
        add("HistogramSummary", [text("h"), array([1, 2, 2, 100, -3])])
    add("ScalarSummary", [text(["a"]), f32([2, 3])])
    add("HistogramSummary", [text("h"), f32([])])
    add("HistogramSummary", [text("h"), f32([np.nan])])
    add("HistogramSummary", [text("h"), f32([np.inf])])
    add("HistogramSummary", [text(["h"]), f32([1])])
    add("TensorSummaryV2", [text("t"), f32([1, 2]), text(b"\n\x03abc")])
    add("TensorSummaryV2", [text("t"), text(["x"]), text(b"")])
    add("MergeSummary", [[text(b"\n\x08\n\x01a\x15\x00\x00\x80?"), text([b"\n\x08\n\x01b\x15\x00\x00\x80?"])]])
    add("MergeSummary", [[text(b"\n\x08\n\x01a\x15\x00\x00\x80?")] * 2])
    add("ShardedFilename", [text("x"), i32(2), i32(5)])
    add("ShardedFilespec", [text("x"), i32(5)])
