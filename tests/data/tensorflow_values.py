#!/usr/bin/env python3
"""Writes tests/data/tensorflow_values/*.txt: values that TensorFlow's CPU kernels compute.

tests/ops/tensorflow_values_test.cc compares gradflow with these files. Tests never run this script.
The files were written with tensorflow-cpu 2.21.0. To write them again, all or some:

    pip install tensorflow-cpu==2.21.0
    python3 tests/data/tensorflow_values.py [FAMILY...]

A family is a module tests/data/tensorflow_values/FAMILY.py, named <folder>_<file> after the source
in ops/ that it covers. It has a function that lists calls:

    def calls(add):
        add("Tile", [f32([1, 2]), i32([2])])
        add("Cast", [f32([1.5])], DstT=tf.int32)
        add("Exp", [f32([1, 2])], ulps=1)

The names f32, i32, ... make arrays of a type; c64, c128 and text make complex numbers and strings;
random(dtype, shape, low, high) makes numbers with a fixed seed. Inputs are in the order of the op's
definition, with lists as Python lists. Attributes that follow from the inputs may be left out. For a
resource variable, variable(array) is its value; its value after the call follows the outputs. For a
table, table(keys, values) are its entries; with mutable=True, the table is a mutable one.

Outputs that TensorFlow leaves uninitialized are listed as `unset`; rows have "?" instead.

Without `ulps` (units in the last place) or `atol` and `rtol`, outputs must be equal. A call that
TensorFlow rejects becomes a row with the code of its error.

A row is "op | attributes | inputs | outputs | tolerance", with tensors as in op_rows.h:

    Exp | | float[2]={1, 2} | float[2]={2.7182817, 7.389056} | 1 ulps
    BroadcastTo | | float[2]={1, 2}; int32[1]={3} | INVALID_ARGUMENT |
"""

import importlib.util
import inspect
import os
import pathlib
import sys

# oneDNN computes some ops in another order than TensorFlow's own kernels.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import error_codes_pb2
from tensorflow.python.framework import op_def_registry

# Graphs from this version on may not have an op that is deprecated since then.
GRAPH_VERSION = tf.version.GRAPH_DEF_VERSION
# Attributes that Python renames.
RENAMED_ATTRS = {("Squeeze", "squeeze_dims"): "axis"}

FOLDER = pathlib.Path(__file__).resolve().parent / "tensorflow_values"


def number_text(value):
    """Returns the shortest text that parses to the number."""
    text = str(value)
    return text[:-2] if text.endswith(".0") else text


def string_text(data):
    """Returns the bytes between quotes. The separators of rows become octal escapes."""
    text = ""
    for byte in data:
        char = chr(byte)
        plain = 32 <= byte < 127 and char not in '"\\,;|{}'
        text += char if plain else "\\%03o" % byte
    return '"' + text + '"'


def element_text(value, dtype):
    if dtype == tf.string:
        return string_text(value)
    if dtype == tf.bool:
        return str(int(value))
    if dtype.is_complex:
        return number_text(value.real) + ":" + number_text(value.imag)
    if dtype.is_floating:
        # 16-bit numbers are exact as floats.
        return number_text(value if dtype.size > 2 else np.float32(value))
    return str(int(value))


def type_name(dtype):
    names = {"float16": "half", "float32": "float", "float64": "double"}
    return names.get(dtype.name, dtype.name)


def tensor_text(tensor):
    values = tensor.numpy()
    values = np.asarray(values, dtype=object) if tensor.dtype == tf.string else np.asarray(values)
    shape = ",".join(str(size) for size in tensor.shape)
    elements = ", ".join(element_text(v, tensor.dtype) for v in values.reshape(-1))
    return f"{type_name(tensor.dtype)}[{shape}]" + ("={" + elements + "}" if elements else "")


def attr_text(value):
    """Returns the value in protobuf's text format, as ParseAttrValue reads it."""
    if isinstance(value, tf.DType):
        return "DT_" + type_name(value).upper()
    if isinstance(value, tf.TensorShape):
        if value.rank is None:
            return "{ unknown_rank: true }"
        dims = " ".join("dim { size: %d }" % (-1 if d is None else d) for d in value.as_list())
        return "{ " + dims + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attr_text(v) for v in value) + "]"
    if isinstance(value, (str, bytes)):
        data = value.encode() if isinstance(value, str) else value
        return string_text(data)
    return repr(value)


def call_deprecated(op, inputs, attrs):
    """Returns the outputs of an op that graphs of today may not have, in a graph of its time."""
    definition = op_def_registry.get(op)
    graph_def = tf.compat.v1.GraphDef()
    graph_def.versions.producer = definition.deprecation.version - 1
    node = tf.compat.v1.NodeDef(name="node", op=op)
    feeds = {}
    for arg, value in zip(definition.input_arg, inputs, strict=True):
        placeholder = graph_def.node.add(name=arg.name, op="Placeholder")
        placeholder.attr["dtype"].type = value.dtype.as_datatype_enum
        node.attr[arg.type_attr].type = value.dtype.as_datatype_enum
        node.input.append(arg.name)
        feeds[arg.name + ":0"] = value.numpy()
    kinds = {attr.name: attr.type for attr in definition.attr}
    for name, value in attrs.items():
        if kinds[name] == "list(int)":
            node.attr[name].list.i.extend(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            setattr(node.attr[name], {"bool": "b", "float": "f", "string": "s"}[kinds[name]], value)
    graph_def.node.append(node)
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        tf.import_graph_def(graph_def, name="")
        fetches = [f"node:{i}" for i in range(len(definition.output_arg))]
        outputs = session.run(fetches, feeds)
    return [tf.constant(value) for value in outputs]


def call(op, inputs, attrs):
    """Returns the outputs of the op, or the name of an error's code."""
    definition = op_def_registry.get(op)
    if definition.HasField("deprecation") and definition.deprecation.version <= GRAPH_VERSION:
        return call_deprecated(op, inputs, attrs)
    names = [arg.name for arg in definition.input_arg]
    function = getattr(tf.raw_ops, op)
    if not set(names) <= set(inspect.signature(function).parameters):
        # Python renames some arguments.
        names = list(inspect.signature(function).parameters)[: len(inputs)]
    attrs = {RENAMED_ATTRS.get((op, name), name): value for name, value in attrs.items()}
    try:
        result = function(**dict(zip(names, inputs, strict=True)), **attrs)
    except (tf.errors.OpError, ValueError) as error:
        return error_codes_pb2.Code.Name(getattr(error, "error_code", tf.errors.INVALID_ARGUMENT))
    if result is None:
        return []
    if isinstance(result, tf.Tensor):
        return [result]
    return [tensor for part in result for tensor in (part if isinstance(part, list) else [part])]


def constant(value):
    """Returns a tensor; arrays of objects are strings."""
    is_string = isinstance(value, np.ndarray) and value.dtype == object
    return tf.constant(value, tf.string, value.shape) if is_string else tf.constant(value)


class Variable:
    """The value of a resource variable."""

    def __init__(self, value):
        self.value = value


class Table:
    """The entries of a table."""

    def __init__(self, keys, values, mutable=False):
        self.keys = constant(keys)
        self.values = constant(values)
        self.mutable = mutable

    def text(self):
        kind = "mutable" if self.mutable else "table"
        return f"{kind}:{tensor_text(self.keys)}/{tensor_text(self.values)}"

    def handle(self):
        types = {"key_dtype": self.keys.dtype, "value_dtype": self.values.dtype}
        if not self.mutable:
            handle = tf.raw_ops.AnonymousHashTable(**types)
        elif self.values.shape.rank > 1:
            shape = self.values.shape[1:]
            handle = tf.raw_ops.AnonymousMutableHashTableOfTensors(value_shape=shape, **types)
        else:
            handle = tf.raw_ops.AnonymousMutableHashTable(**types)
        tf.raw_ops.LookupTableImportV2(table_handle=handle, keys=self.keys, values=self.values)
        return handle


def write(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(HELPERS)
    spec.loader.exec_module(module)
    rows = []

    def add(op, inputs, ulps=0, atol=None, rtol=None, unset=(), **attrs):
        tf.random.set_seed(1)
        variables = []

        def argument(value):
            if isinstance(value, list):
                return [argument(v) for v in value]
            if isinstance(value, Variable):
                variables.append(tf.Variable(value.value))
                return variables[-1].handle
            if isinstance(value, Table):
                return value.handle()
            return constant(value)

        # Before the call, as some ops write into their inputs.
        flat = [v for value in inputs for v in (value if isinstance(value, list) else [value])]
        flat = [constant(v.value) if isinstance(v, Variable) else v for v in flat]
        flat = "; ".join(v.text() if isinstance(v, Table) else tensor_text(constant(v)) for v in flat)
        outputs = call(op, [argument(value) for value in inputs], attrs)
        if not isinstance(outputs, str):
            outputs = outputs + [variable.read_value() for variable in variables]
        if isinstance(outputs, str):
            results, tolerance = outputs, ""
        else:
            texts = ["?" if i in unset else tensor_text(t) for i, t in enumerate(outputs)]
            results = "; ".join(texts)
            tolerance = f"{ulps} ulps" if ulps else ""
            if atol is not None or rtol is not None:
                tolerance = f"atol {atol or 0} rtol {rtol or 0}"
        # Lists of one length need no attribute for it.
        lists = [value for value in inputs if isinstance(value, list)]
        if len({len(value) for value in lists}) > 1:
            for arg, value in zip(op_def_registry.get(op).input_arg, inputs, strict=True):
                if arg.number_attr:
                    attrs[arg.number_attr] = len(value)
                elif arg.type_list_attr:
                    attrs[arg.type_list_attr] = [constant(v).dtype for v in value]
        attributes = "; ".join(f"{name}={attr_text(v)}" for name, v in sorted(attrs.items()))
        row = [op, attributes, flat, results, tolerance]
        rows.append(" | ".join(row).rstrip())

    module.calls(add)
    header = (
        f"# Values of TensorFlow {tf.__version__}, written by tests/data/tensorflow_values.py from\n"
        f"# {path.name}: op | attributes | inputs | outputs | tolerance\n"
    )
    path.with_suffix(".txt").write_text(header + "\n".join(rows) + "\n")
    print(f"{path.stem}: {len(rows)} rows")


def array_of(dtype):
    return lambda values: np.array(values, dtype=dtype)


def random(dtype, shape, low=-1, high=1, seed=1):
    """Returns an array of numbers, uniform in [low, high); `dtype` is a tf.DType."""
    generator = np.random.RandomState(seed)
    values = generator.uniform(low, high, shape)
    if dtype.is_complex:
        values = values + 1j * generator.uniform(low, high, shape)
    return values.astype(dtype.as_numpy_dtype)


HELPERS = {
    "np": np,
    "tf": tf,
    "random": random,
    "f16": array_of(np.float16),
    "bf16": array_of(tf.bfloat16.as_numpy_dtype),
    "f32": array_of(np.float32),
    "f64": array_of(np.float64),
    "i8": array_of(np.int8),
    "i16": array_of(np.int16),
    "i32": array_of(np.int32),
    "i64": array_of(np.int64),
    "u8": array_of(np.uint8),
    "u16": array_of(np.uint16),
    "u32": array_of(np.uint32),
    "u64": array_of(np.uint64),
    "c64": array_of(np.complex64),
    "c128": array_of(np.complex128),
    "boolean": array_of(np.bool_),
    "table": Table,
    "variable": Variable,
    "text": lambda values: np.array(values, dtype=object),
}


def main():
    families = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.py"))
    for family in families:
        write(FOLDER / f"{family}.py")


if __name__ == "__main__":
    main()
