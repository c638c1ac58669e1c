"""Recordings of runs of TensorFlow: folders that gradflow replays.

A recording is a folder with a graph and the runs of one session, in order:

    graph.pb        a serialized GraphDef, pruned to what the runs need
    steps.json      {"steps": [STEP, ...]}
    0/feeds/x.npy   files of step 0, named and written like those of golden cases (testing/golden.h)
    0/expected/y@1.npy

Each STEP is an object with these members:

    "folder"           the folder of its files, relative to steps.json: "." if the recording has one step, "0", "1" otherwise
    "feeds"            names of tensors, "x" or "x:1". Their values are in FOLDER/feeds
    "string_feeds"     {name: {"shape": [...], "values": [...]}} for tensors of strings, in C order. Each character
                       stands for a byte, its code point
    "fetches"          names of tensors, in the order in which TensorFlow fetched them, also those of strings
    "string_fetches"   like "string_feeds": the expected values
    "targets"          names of nodes to run without fetching them
    "status"           "OK", or the code of the expected error, such as "INVALID_ARGUMENT"

A step that fails has no expected values. Fetches of types that neither file holds, such as variants, are targets.
"""

import io
import json
import re

import numpy as np

# Bytes of all files of a recording.
MAX_BYTES = 1 << 20


class Unstorable(Exception):
    """A recording that cannot be written. The text is the reason."""


# Names and files.


def tensor_name(name):
    """Returns "x" for "x:0"."""
    return name[:-2] if name.endswith(":0") else name


def node_of(name):
    """Returns the node of a tensor, or of an input of a node."""
    return name.lstrip("^").split(":")[0]


def file_name(tensor):
    return tensor.replace(":", "@") + ".npy"


def is_string(value):
    return value.dtype.kind in "OSU"


def storable(value):
    """Returns the array that the .npy file has."""
    if value.dtype.name == "bfloat16":
        return value.view(np.uint16) if value.ndim else np.asarray(value).reshape(1).view(np.uint16).reshape(())
    if value.dtype.kind not in "biufc" or value.dtype.isbuiltin != 1:
        raise Unstorable(f"type {value.dtype.name}")
    return np.asarray(value, order="C")


def json_of_strings(value):
    """Returns strings whose characters stand for bytes."""
    values = [(x if isinstance(x, bytes) else str(x).encode()).decode("latin-1") for x in value.ravel().tolist()]
    return {"shape": list(value.shape), "values": values}


def strings_of_json(value):
    array = np.empty(len(value["values"]), dtype=object)
    array[:] = [x.encode("latin-1") for x in value["values"]]
    return array.reshape(value["shape"])


class Step:
    """A run. Values are arrays by the tensor's name; those of `fetches` are None if the run fails."""

    def __init__(self, feeds, fetches, targets, status="OK"):
        self.feeds = feeds
        self.fetches = fetches
        self.targets = targets
        self.status = status


def write(folder, graph_def, steps):
    """Writes a recording, and returns its size. Raises Unstorable, and then writes nothing."""
    files = {"graph.pb": graph_def.SerializeToString(deterministic=True)}
    documents = []
    for i, step in enumerate(steps):
        place = "." if len(steps) == 1 else str(i)
        document = {"folder": place, "feeds": [], "fetches": list(step.fetches), "targets": step.targets, "status": step.status}
        strings = {"string_feeds": {}, "string_fetches": {}}
        for kind, values in (("feeds", step.feeds), ("fetches", step.fetches)):
            for name, value in values.items():
                if value is None:
                    continue
                if is_string(value):
                    strings["string_" + kind][name] = json_of_strings(value)
                    continue
                if kind == "feeds":
                    document["feeds"].append(name)
                path = f"{place}/{'feeds' if kind == 'feeds' else 'expected'}/{file_name(name)}"
                files[path.removeprefix("./")] = npy(storable(value))
        document.update({key: value for key, value in strings.items() if value})
        documents.append(document)
    files["steps.json"] = (json.dumps({"steps": documents}, indent=1) + "\n").encode()
    size = sum(map(len, files.values()))
    if size > MAX_BYTES:
        raise Unstorable("larger than 1 MB")
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return size


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def read(folder, graph_def):
    """Parses graph.pb into `graph_def`, and returns the steps. Values of bfloat16 stay uint16."""
    graph_def.ParseFromString((folder / "graph.pb").read_bytes())
    steps = []
    for document in json.loads((folder / "steps.json").read_text())["steps"]:
        place = folder / document["folder"]
        feeds = {name: np.load(place / "feeds" / file_name(name)) for name in document["feeds"]}
        feeds.update({name: strings_of_json(value) for name, value in document.get("string_feeds", {}).items()})
        strings = document.get("string_fetches", {})
        fetches = {}
        for name in document["fetches"]:
            if document["status"] != "OK":
                fetches[name] = None
            elif name in strings:
                fetches[name] = strings_of_json(strings[name])
            else:
                fetches[name] = np.load(place / "expected" / file_name(name))
        steps.append(Step(feeds, fetches, document["targets"], document["status"]))
    return steps


# Graphs.


def functions_of(attributes):
    """Yields the names of the functions in attributes."""
    for value in attributes.values():
        if value.HasField("func"):
            yield value.func.name
            yield from functions_of(value.func.attr)
        for function in value.list.func:
            yield function.name
            yield from functions_of(function.attr)


def reached_functions(nodes, functions, gradients):
    """Returns the names of the functions that the nodes reach, in order. `functions` maps a name to a FunctionDef or None."""
    reached, waiting = {}, []

    def visit(node):
        waiting.extend([node.op, *functions_of(node.attr)])

    for node in nodes:
        visit(node)
    while waiting:
        name = waiting.pop()
        definition = functions(name) if name not in reached else None
        if definition is None:
            continue
        reached[name] = definition
        waiting.extend(gradients.get(name, []))
        for node in definition.node_def:
            visit(node)
    return sorted(reached)


def prune(graph_def, roots):
    """Removes the nodes and functions that `roots`, names of nodes, do not need."""
    nodes = {node.name: node for node in graph_def.node}
    needed, waiting = set(), [node_of(name) for name in roots]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting.extend(map(node_of, nodes[name].input))
    kept = [node for node in graph_def.node if node.name in needed]
    functions = {f.signature.name: f for f in graph_def.library.function}
    gradients = {g.function_name: [g.gradient_func] for g in graph_def.library.gradient}
    reached = set(reached_functions(kept, functions.get, gradients))
    kept_functions = [f for f in graph_def.library.function if f.signature.name in reached]
    kept_gradients = [g for g in graph_def.library.gradient if g.function_name in reached]
    result = type(graph_def)(versions=graph_def.versions)
    result.node.extend(kept)
    result.library.function.extend(kept_functions)
    result.library.gradient.extend(kept_gradients)
    return result


def all_nodes(graph_def):
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def strip(graph_def):
    """Removes what tells of the machine or of the source: devices, colocation, stack traces, configurations."""
    for node in all_nodes(graph_def):
        node.ClearField("experimental_debug_info")
        node.device = ""
        node.attr.pop("_class", None)
        if "config_proto" in node.attr:
            node.attr["config_proto"].s = b""
    for function in graph_def.library.function:
        for name in ("forward_function_name", "backward_function_name", "_original_func_name"):
            function.attr.pop(name, None)
    graph_def.ClearField("debug_info")


def ops_of(graph_def):
    """Returns the sorted ops of the graph and its functions, without functions that serve as ops."""
    functions = {f.signature.name for f in graph_def.library.function}
    return sorted({node.op for node in all_nodes(graph_def)} - functions)


def calls_functions_as_ops(graph_def):
    functions = {f.signature.name for f in graph_def.library.function}
    return any(node.op in functions for node in all_nodes(graph_def))


PYTHON = re.compile(r"(Eager)?PyFunc(Stateless)?$")
OTHER_DEVICES = re.compile(r"Collective|RemoteCall|MultiDeviceIterator|_?(Host)?(Send|Recv)$|Nccl|TPU|Xla|XRT")
FILES = re.compile(
    r"(Save|Restore)(V2|Slices|Slice)?$|MergeV2Checkpoints|ReadFile|WriteFile|MatchingFiles|.*Reader(V2)?$|.*Summary.*Writer"
)
RANDOM = re.compile(r"(Stateless)?(Random|Multinomial|TruncatedNormal|ParameterizedTruncatedNormal|Sample)|Stateful(Standard|Uniform)")
PATH = re.compile(rb"/(tmp|work|usr|root|home|var)/|\.pyc?\b")


def check_graph(graph_def):
    """Raises Unstorable if the graph depends on more than its inputs."""
    for node in all_nodes(graph_def):
        if PYTHON.match(node.op):
            raise Unstorable("Python function")
        if OTHER_DEVICES.match(node.op) or (node.attr["_XlaMustCompile"].b if "_XlaMustCompile" in node.attr else False):
            raise Unstorable("op of other devices, or of XLA")
        if FILES.match(node.op):
            raise Unstorable("op that reads or writes files")
    for function in graph_def.library.function:
        if "_XlaMustCompile" in function.attr and function.attr["_XlaMustCompile"].b:
            raise Unstorable("op of other devices, or of XLA")
    if PATH.search(graph_def.SerializeToString()):
        raise Unstorable("path of a file in the graph")


# Replay by TensorFlow.


def same(expected, actual):
    actual = np.asarray(actual)
    if is_string(expected):
        return expected.shape == actual.shape and expected.ravel().tolist() == actual.ravel().tolist()
    if actual.dtype.name == "bfloat16":
        expected = (expected.astype(np.uint32) << 16).view(np.float32)
        actual = actual.astype(np.float32)
        return expected.shape == actual.shape and np.allclose(expected, actual, 1e-2, 1e-2, equal_nan=True)
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if expected.dtype.kind not in "fc":
        return np.array_equal(expected, actual)
    tolerance = 1e-3 if expected.dtype == np.float16 else 1e-5
    with np.errstate(all="ignore"):
        return bool(np.allclose(expected, actual, tolerance, tolerance / 10, equal_nan=True))


def replay(folder):
    """Runs a recording in a new session. Returns "" if all is as expected, otherwise the first difference."""
    import tensorflow as tf

    v1 = tf.compat.v1
    graph_def = v1.GraphDef()
    steps = read(folder, graph_def)
    with tf.Graph().as_default() as graph:
        try:
            tf.import_graph_def(graph_def, name="")
        except ValueError as error:
            return f"import: {error}"
        with v1.Session(graph=graph, config=v1.ConfigProto(operation_timeout_in_ms=20000)) as session:
            for i, step in enumerate(steps):
                difference = replay_step(session, step)
                if difference:
                    return f"step {i}: {difference}"
    return ""


def replay_step(session, step):
    import tensorflow as tf

    with_number = lambda name: name if ":" in name else name + ":0"  # noqa: E731
    feeds = {}
    for name, value in step.feeds.items():
        dtype = session.graph.get_tensor_by_name(with_number(name)).dtype.base_dtype
        feeds[with_number(name)] = value.view(dtype.as_numpy_dtype) if dtype == tf.bfloat16 else value
    try:
        values = session.run([*map(with_number, step.fetches), *map(session.graph.get_operation_by_name, step.targets)], feeds)
    except tf.errors.OpError as error:
        status = code_name(error.error_code)
        return "" if status == step.status else f"status {status}, expected {step.status}"
    if step.status != "OK":
        return f"status OK, expected {step.status}"
    for (name, expected), actual in zip(step.fetches.items(), values):
        if not same(expected, actual):
            return f"{name} differs"
    return ""


CODES = """OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED
    RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
    UNAUTHENTICATED""".split()


def code_name(code):
    return CODES[code]
