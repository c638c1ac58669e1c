"""Leaves out the parts of a test that use internals of TensorFlow."""

import re

# Headers of internals, headers of clusters, which gradflow does not have, and headers under other names.
HEADERS = {
    # Tests use a constant of shape inference that this header includes.
    "tensorflow/c/c_api_internal.h": '#include "tensorflow/core/framework/shape_inference.h"',
    "tensorflow/c/eager/c_api_internal.h": "",
    "tensorflow/c/eager/tfe_op_internal.h": "",
    "tensorflow/c/eager/tfe_tensorhandle_internal.h": "",
    "tensorflow/c/tf_buffer_internal.h": "",
    "tensorflow/core/common_runtime/eager/eager_operation.h": "",
    "tensorflow/core/common_runtime/eager/tensor_handle.h": "",
    "tensorflow/core/common_runtime/type_inference.h": "",
    "tensorflow/core/distributed_runtime/rpc/grpc_server_lib.h": "",
    "tensorflow/core/framework/api_def.pb.h": (
        '#include "gradflow/proto/api_def.pb.h"\nnamespace tensorflow { using gradflow::ApiDef; }'
    ),
    "tensorflow/core/graph/tensor_id.h": "",
    "tensorflow/core/lib/strings/proto_serialization.h": "",
    "tensorflow/core/protobuf/tensorflow_server.pb.h": "namespace tensorflow { class ServerDef; }",
    "tsl/platform/ctstring.h": '#include <string.h>\n#include "tensorflow/c/tf_tstring.h"',
    "tsl/platform/ctstring_internal.h": "",
    "include/dlpack/dlpack.h": "#include <dlpack/dlpack.h>",
}
# Parts of tests that use internals although they compile, and what they do.
USES = {
    r"\bC_CTX\(": "passes an InferenceContext of C++ as a TF_ShapeInferenceContext",
    r"\bTF_TensorToTensor\(": "calls TF_TensorToTensor(), which the C API does not export",
    r"\bTF_TensorFromTensor\(": "calls TF_TensorFromTensor(), which the C API does not export",
    r"\bdown_cast<AsyncOpKernel\*>": "takes a kernel in C for TensorFlow's class of asynchronous kernels",
}
TEST = re.compile(r"(?:TYPED_)?TEST(?:_[FP])?\((\w+), *(\w+)\)")


def write_headers(folder):
    """Writes the headers, which have no declarations of internals."""
    for name, text in HEADERS.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#pragma once\n" + text + "\n")


def code_of(lines):
    """Returns the lines with raw strings of several lines emptied, whose text may look like the end of a definition."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', lambda raw: '""' + "\n " * raw[0].count("\n"), "\n".join(lines), flags=re.S)
    return text.split("\n")


def block_of(lines, index):
    """Returns the first and last line of the definition around a line of clang-format's style."""
    lines = code_of(lines)
    first = index
    while first > 0 and (not lines[first].strip() or lines[first][0] in " }\n"):
        first -= 1
    # The head of a definition may have several lines, which begin with words.
    while first > 0 and lines[first - 1].strip() and lines[first - 1][0] not in " }/#" and not lines[first - 1].endswith(";"):
        first -= 1
    last = index
    while last + 1 < len(lines) and not lines[last].startswith("}") and not (last == first and lines[last].endswith(";")):
        last += 1
    return first, last


def leave_out_uses(path):
    """Empties the tests and functions that match USES. Returns {name of test: use}."""
    tests = {}
    lines = path.read_text().split("\n")
    for index in range(len(lines)):
        use = next((use for pattern, use in USES.items() if re.search(pattern, lines[index])), None)
        # Declarations stay.
        if use is None or not lines[index].startswith(" "):
            continue
        first, last = block_of(lines, index)
        test = TEST.match(lines[first])
        if test:
            tests["%s.%s" % test.groups()] = use
        lines[first : last + 1] = [""] * (last + 1 - first)
    path.write_text("\n".join(lines))
    return tests


def leave_out(compile_source, path):
    """Empties the tests that match USES, and the definitions that do not compile.

    Returns the tests among them as {name: error}, and the last output.

    `compile_source` compiles the file and returns the output of the compiler, which is empty on success.
    """
    tests = leave_out_uses(path)
    output = compile_source()
    while output:
        lines = path.read_text().split("\n")
        errors = {}
        for line, error in re.findall(re.escape(str(path)) + r":(\d+):\d+: (?:error: (.*)|  required from here)", output):
            errors.setdefault(int(line) - 1, error or "a template fails")
        changed = False
        for index, error in errors.items():
            # Several errors may be in one definition, which the first of them has emptied.
            if not lines[index].strip():
                continue
            first, last = block_of(lines, index)
            changed = True
            test = TEST.match(lines[first])
            if test:
                tests["%s.%s" % test.groups()] = error
            lines[first : last + 1] = [""] * (last + 1 - first)
        if not changed:
            break
        path.write_text("\n".join(lines))
        output = compile_source()
    return tests, output
