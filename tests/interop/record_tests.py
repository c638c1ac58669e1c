#!/usr/bin/env python3
"""Records what TensorFlow's own Python tests run, so that gradflow can replay it.

usage: record_tests.py TESTS OUTPUT [--file NAME]... [--only TEXT] [--timeout SECONDS]

Needs Python's tensorflow-cpu and numpy. TESTS is a folder with test files of TensorFlow's sources of the same version,
such as tensorflow/python/kernel_tests/control_flow/while_v2_test.py; the packages of TensorFlow do not contain them.
Without --file, all NAME_test.py of the folder run. Each test method runs once as in TensorFlow 2; methods that skip
themselves then run again as in TensorFlow 1. Hooks record

- each session: its graph and its runs, in order;
- each call of a tf.function outside of graphs: a graph with placeholders, the variables and a call of the function. Calls
  of one function are steps of one recording.
- calls and ops outside of graphs that variants link, as a gradient that takes the lists of its forward pass: a graph with
  all of them.

A recording is written only if TensorFlow replays it from its files twice with the same results. OUTPUT/FILE/METHOD-N are
the recordings (recordings.py describes their files), OUTPUT/index.json lists them with the ops that each needs, and
OUTPUT/report.json counts what was run, recorded and left out, by reason. OUTPUT/FILE is replaced.
"""

import argparse
import collections
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
# Plain kernels are the same on every machine.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402

import recordings  # noqa: E402
from recordings import Step, Unstorable  # noqa: E402

# The most steps of a session, and calls of a function, that a recording keeps: gradient checkers repeat them very often.
MAX_RUNS = 20
MAX_CALLS = 4
# The most recordings of linked calls that differ in values only, and the most calls of one.
MAX_LINKED = 2
MAX_NODES = 200


class SessionRecording:
    """The runs of a session."""

    def __init__(self):
        self.steps = []
        self.graph_def = None
        self.problem = None
        self.running = 0
        self.lock = threading.Lock()

    def run(self, session, original, arguments):
        handle, targets, fetches, feeds = arguments[:4]
        with self.lock:
            if handle is not None:
                self.problem = self.problem or "partial run"
            if self.running:
                self.problem = self.problem or "concurrent runs"
            self.running += 1
        if self.problem or len(self.steps) >= MAX_RUNS:
            step = None
        else:
            step = Step(
                {recordings.tensor_name(t.deref().name): array_of(t.deref().dtype, v) for t, v in feeds.items()},
                {recordings.tensor_name(t.name): None for t in fetches if not is_opaque(t)},
                list(dict.fromkeys([op.name for op in targets] + [t.op.name for t in fetches if is_opaque(t)])),
            )
        code = None
        try:
            results = original(session, *arguments)
            code = 0
            return results
        except errors.OpError as error:
            code = error.error_code
            raise
        finally:
            with self.lock:
                self.running -= 1
            if step is not None:
                self.finish(session, step, code, fetches, results if code == 0 else [])

    def finish(self, session, step, code, fetches, results):
        try:
            if code is None:
                raise Unstorable("error without a code")
            step.status = recordings.code_name(code)
            if step.status in ("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED"):
                raise Unstorable("run that was cancelled")
            for tensor, value in zip(fetches, results):
                if not is_opaque(tensor):
                    step.fetches[recordings.tensor_name(tensor.name)] = array_of(tensor.dtype.base_dtype, value)
            self.graph_def = session.graph.as_graph_def()
            self.steps.append(step)
        except Unstorable as problem:
            self.problem = self.problem or str(problem)
        except Exception as error:
            self.problem = self.problem or problem_of(error)

    def recordings(self):
        """Yields a graph and steps."""
        if self.problem:
            raise Unstorable(self.problem)
        if self.steps:
            roots = [name for step in self.steps for name in [*step.feeds, *step.fetches, *step.targets]]
            yield recordings.prune(self.graph_def, roots), self.steps


def problem_of(error):
    """Returns the reason for a recording that an error of the recorder prevents. The test goes on."""
    traceback.print_exception(error)
    return f"recorder: {type(error).__name__}"


def is_opaque(tensor):
    """Returns whether no file holds the tensor's value."""
    return tensor.dtype.base_dtype in (dtypes.resource, dtypes.variant)


def array_of(dtype, value):
    """Returns a copy. Arrays of NumPy's own strings would drop their last NULs."""
    return np.array(value, dtype=object if dtype == dtypes.string else None)


class Variable:
    """A resource variable that functions use."""

    def __init__(self, handle, dtype, shape):
        self.handle = handle
        self.dtype = dtype
        self.shape = shape

    def value(self):
        """Returns the value, or None if there is none yet."""
        with record.stop_recording():
            if not resource_ops.var_is_initialized_op(self.handle).numpy():
                return None
            return np.array(resource_ops.read_variable_op(self.handle, self.dtype).numpy())


class Call:
    """A call of a function, or an op outside of graphs.

    Its inputs are arrays, Variables, or pairs of an earlier call and the number of an output.
    """

    def __init__(self, name, number):
        self.name = name
        self.number = number
        self.inputs = []
        self.shapes = []
        self.outputs = []
        self.output_types = []
        self.before = {}
        self.after = {}
        self.status = "OK"
        self.problem = None
        # The node, and the functions that it needs.
        self.op = name
        self.attributes = {}
        self.library = {}

    def variables(self):
        return [x for x in self.inputs if isinstance(x, Variable)]

    def producers(self):
        return [x[0] for x in self.inputs if isinstance(x, tuple)]

    def key(self):
        """Calls with the same key differ in the values of their inputs only."""
        return self.name, tuple(id(x) if isinstance(x, Variable) else 0 for x in self.inputs)

    def of_function(self, function):
        self.op = "StatefulPartitionedCall" if function.call_options.is_stateful else "PartitionedCall"
        self.attributes = {"f": attr(func=attr_value_pb2.NameAttrList(name=self.name))}
        self.library = library_of(function)
        self.output_types = [t.dtype for t in function.function_type.flat_outputs]

    def of_op(self, attributes, outputs):
        """`attributes` alternates names and values, as callbacks get them."""
        given = dict(zip(attributes[::2], attributes[1::2]))
        for definition in op_def_registry.get(self.name).attr:
            if given.get(definition.name) is not None:
                self.attributes[definition.name] = attr_of(definition, given[definition.name])
        self.output_types = [t.dtype for t in outputs]

    def add_node(self, graph, name, inputs, types):
        attributes = dict(self.attributes)
        if self.library:
            attributes["Tin"] = attr(list=attr_value_pb2.AttrValue.ListValue(type=types))
            outputs = [t.as_datatype_enum for t in self.output_types]
            attributes["Tout"] = attr(list=attr_value_pb2.AttrValue.ListValue(type=outputs))
        graph.node(self.op, name, inputs, **attributes)
        graph.add_functions(self.library)


def attr(**value):
    return attr_value_pb2.AttrValue(**value)


def attr_of(definition, value):
    """Returns the attribute that has a value of Python's."""
    if definition.type == "type":
        return attr(type=dtypes.as_dtype(value).as_datatype_enum)
    if definition.type == "list(type)":
        return attr(list=attr_value_pb2.AttrValue.ListValue(type=[dtypes.as_dtype(x).as_datatype_enum for x in value]))
    if definition.type == "shape":
        return attr(shape=tensor_shape.as_shape(value).as_proto())
    if definition.type == "int":
        return attr(i=int(value))
    if definition.type == "bool":
        return attr(b=bool(value))
    if definition.type == "float":
        return attr(f=float(value))
    if definition.type == "string":
        return attr(s=value if isinstance(value, bytes) else str(value).encode())
    raise Unstorable(f"op with an attribute of type {definition.type}")


class Recorder:
    """Collects what one test method runs."""

    def __init__(self):
        self.active = False
        self.local = threading.local()
        self.clear()

    def clear(self):
        self.sessions = []
        self.calls = []
        self.variables = {}
        # Variants that calls have returned: by id, the tensor, the call and the number of the output.
        self.variants = {}
        self.left_out = collections.Counter()

    # Hooks.

    def run_session(self, session, original, arguments):
        if not self.active or getattr(self.local, "busy", False):
            return original(session, *arguments)
        recording = session.__dict__.get("_gradflow_recording")
        if recording is None:
            recording = session._gradflow_recording = SessionRecording()
            self.sessions.append(recording)
        return recording.run(session, original, arguments)

    def call_function(self, function, original, arguments):
        if not self.active or getattr(self.local, "busy", False) or not function._bound_context.executing_eagerly():
            return original(function, *arguments)
        self.local.busy = True
        try:
            call = Call(function.name.decode(), len(self.calls))
            self.calls.append(call)
            with self.problems_of(call):
                if context.context().is_async():
                    raise Unstorable("asynchronous execution")
                if cancellation.context() is not None:
                    raise Unstorable("call that can be cancelled")
                call.of_function(function)
                inputs = function.graph.inputs
                self.add_inputs(call, arguments, inputs if len(inputs) == len(arguments) else arguments)
            try:
                outputs = original(function, *arguments)
            except errors.OpError as error:
                call.status = recordings.code_name(error.error_code)
                raise
            except Exception:
                call.problem = call.problem or "error without a code"
                raise
            self.add_outputs(call, outputs or [])
            return outputs
        finally:
            self.local.busy = False

    def run_op(self, op, inputs, attributes, outputs, op_name=None, graph=None):
        """Notes an op outside of graphs that takes or returns variants."""
        if graph is not None or not self.active or getattr(self.local, "busy", False):
            return
        if not any(t.dtype == dtypes.variant for t in [*inputs, *outputs]):
            return
        self.local.busy = True
        try:
            call = Call(op, len(self.calls))
            self.calls.append(call)
            with self.problems_of(call):
                if context.context().is_async():
                    raise Unstorable("asynchronous execution")
                call.of_op(attributes, outputs)
                self.add_inputs(call, inputs, inputs)
            self.add_outputs(call, outputs)
        finally:
            self.local.busy = False

    @contextlib.contextmanager
    def problems_of(self, call):
        try:
            yield
        except Unstorable as problem:
            call.problem = str(problem)
        except Exception as error:
            call.problem = problem_of(error)

    def add_inputs(self, call, arguments, shaped):
        call.inputs = [self.input_of(argument) for argument in arguments]
        call.shapes = [t.shape for t in shaped]
        for variable in call.variables():
            call.before[variable] = variable.value()

    def add_outputs(self, call, outputs):
        if call.problem:
            return
        with self.problems_of(call):
            for i, tensor in enumerate(outputs):
                if tensor.dtype == dtypes.variant:
                    self.variants[id(tensor)] = (tensor, call, i)
                call.outputs.append(None if is_opaque(tensor) else array_of(tensor.dtype, tensor.numpy()))
            for variable in call.variables():
                call.after[variable] = variable.value()

    def input_of(self, argument):
        tensor = getattr(argument, "handle", argument)
        if tensor.dtype == dtypes.resource:
            return self.variable_of(tensor)
        if tensor.dtype == dtypes.variant:
            if id(tensor) not in self.variants:
                raise Unstorable("variant that no call has returned")
            return self.variants[id(tensor)][1:]
        return array_of(tensor.dtype, tensor.numpy())

    def variable_of(self, handle):
        if id(handle) not in self.variables:
            data = handle._handle_data
            if data is None or not data.is_set or len(data.shape_and_type) != 1:
                raise Unstorable("resource that is no variable")
            dtype = dtypes.as_dtype(data.shape_and_type[0].dtype)
            if dtype in (dtypes.variant, dtypes.resource, dtypes.string):
                raise Unstorable(f"variable of type {dtype.name}")
            self.variables[id(handle)] = Variable(handle, dtype, data.shape_and_type[0].shape)
        return self.variables[id(handle)]

    # Recordings of the method.

    def finish(self):
        """Yields pairs of a kind and a function that yields graphs with steps, or raises Unstorable."""
        for session in self.sessions:
            yield "session", session.recordings
        linked = {id(producer) for call in self.calls for producer in call.producers()}
        groups, components = {}, Components()
        for call in self.calls:
            if call.problem:
                self.left_out[call.problem] += 1
            elif any(producer.problem for producer in ancestors(call)):
                self.left_out["variant of a call that is left out"] += 1
            elif call.status != "OK" and call.producers():
                yield "function", lambda call=call: linked_recording(ancestors(call))
            elif call.producers() or id(call) in linked:
                components.add(call)
            elif call.library:
                groups.setdefault(call.key(), []).append(call)
        for calls in groups.values():
            yield "function", lambda calls=calls: group_recording(calls[:MAX_CALLS])
            if len(calls) > MAX_CALLS:
                self.left_out["repeated call of a function"] += len(calls) - MAX_CALLS
        repeated = collections.Counter()
        for calls in components.all():
            key = tuple(call.key() for call in calls)
            repeated[key] += 1
            if repeated[key] > MAX_LINKED:
                self.left_out["repeated call of a function"] += 1
            elif any(output is not None for call in calls for output in call.outputs):
                yield "function", lambda calls=calls: linked_recording(calls)


class Components:
    """Sets of calls that variants link."""

    def __init__(self):
        self.sets = {}

    def add(self, call):
        merged = [call]
        for producer in call.producers():
            other = self.sets.get(id(producer), [producer])
            if other is not merged:
                merged = other + [c for c in merged if c not in other]
                for each in merged:
                    self.sets[id(each)] = merged
        self.sets[id(call)] = merged

    def all(self):
        """Returns the sets, each in the order of its calls."""
        distinct = {id(calls): calls for calls in self.sets.values()}
        return [sorted(calls, key=lambda call: call.number) for calls in distinct.values()]


def ancestors(call):
    """Returns a call and all those that made its variants, in order."""
    found, waiting = {}, [call]
    while waiting:
        each = waiting.pop()
        if each.number not in found:
            found[each.number] = each
            waiting.extend(each.producers())
    return [found[number] for number in sorted(found)]


def library_of(function):
    """Returns the definitions of all functions that a function reaches, by name."""
    bound = function._bound_context
    definition = lambda name: bound.get_function_def(name) if bound.has_function(name) else None  # noqa: E731
    call = node_def_pb2.NodeDef(op=function.name.decode())
    return {name: definition(name) for name in recordings.reached_functions([call], definition, {})}


class FunctionGraph:
    """Builds a graph with calls of functions."""

    def __init__(self):
        self.graph_def = graph_pb2.GraphDef()
        self.graph_def.versions.producer = versions.GRAPH_DEF_VERSION
        self.variables = {}
        self.functions = set()

    def node(self, op, name, inputs=(), **attributes):
        node = self.graph_def.node.add(op=op, name=name, input=inputs)
        for key, value in attributes.items():
            node.attr[key].CopyFrom(value)
        return name

    def variable(self, variable):
        """Returns the name of the handle. NAME/init assigns NAME/value, and NAME/read reads."""
        if variable not in self.variables:
            name = f"variable{len(self.variables)}"
            dtype = attr(type=variable.dtype.as_datatype_enum)
            shape = attr(shape=variable.shape)
            self.node("VarHandleOp", name, dtype=dtype, shape=shape, shared_name=attr(s=name.encode()))
            self.node("Placeholder", f"{name}/value", dtype=dtype, shape=shape)
            self.node("AssignVariableOp", f"{name}/init", [name, f"{name}/value"], dtype=dtype)
            self.node("ReadVariableOp", f"{name}/read", [name], dtype=dtype)
            self.variables[variable] = name
        return self.variables[variable]

    def add_functions(self, library):
        for name, definition in library.items():
            if name not in self.functions:
                self.functions.add(name)
                self.graph_def.library.function.add().CopyFrom(definition)

    def call(self, call, name, nodes, after=None):
        """Adds a call named `name`. `nodes` has the names of earlier calls. Returns the feeds."""
        feeds, inputs, types = {}, [], []
        for i, (value, shape) in enumerate(zip(call.inputs, call.shapes)):
            if isinstance(value, Variable):
                inputs.append(self.variable(value))
                types.append(dtypes.resource.as_datatype_enum)
            elif isinstance(value, tuple):
                inputs.append(recordings.tensor_name(f"{nodes[value[0]]}:{value[1]}"))
                types.append(dtypes.variant.as_datatype_enum)
            else:
                dtype = dtypes.string if recordings.is_string(value) else dtypes.as_dtype(value.dtype)
                argument = f"{name}_input{i}"
                type_attr = attr(type=dtype.as_datatype_enum)
                if not call.library and dtype in (dtypes.int32, dtypes.int64):
                    # Sizes and shapes are constants in graphs; shape functions need some of them.
                    self.node("Const", argument, dtype=type_attr, value=attr(tensor=tensor_util.make_tensor_proto(value, dtype)))
                else:
                    self.node("Placeholder", argument, dtype=type_attr, shape=attr(shape=shape.as_proto()))
                    feeds[argument] = value
                inputs.append(argument)
                types.append(dtype.as_datatype_enum)
        call.add_node(self, name, inputs + ([f"^{after}"] if after else []), types)
        return feeds

    def init_step(self, values):
        """Returns the step that assigns values to variables."""
        names = {self.variables[variable]: value for variable, value in values.items()}
        return Step({f"{name}/value": value for name, value in names.items()}, {}, [f"{name}/init" for name in names])

    def read_step(self, values):
        return Step({}, {f"{self.variables[variable]}/read": value for variable, value in values.items()}, [])


def call_step(calls, names, feeds):
    """Returns the step that runs `calls`, of which only the last may fail."""
    step = Step(feeds, {}, [], calls[-1].status)
    for call in calls:
        name = names[call]
        for i, dtype in enumerate(call.output_types):
            tensor = recordings.tensor_name(f"{name}:{i}")
            if step.status != "OK":
                step.fetches.update({} if dtype in (dtypes.resource, dtypes.variant) else {tensor: None})
            elif call.outputs[i] is not None:
                step.fetches[tensor] = call.outputs[i]
    last = names[calls[-1]]
    if not any(recordings.node_of(tensor) == last for tensor in step.fetches):
        step.targets.append(last)
    return step


def initialized(values):
    return {variable: value for variable, value in values.items() if value is not None}


def unchanged(one, other):
    return (one is None) == (other is None) and (one is None or np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def check_status(call):
    if call.status in ("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED"):
        raise Unstorable("run that was cancelled")


def group_recording(calls):
    """Yields the graph and the steps of calls of one function, with the same variables."""
    graph = FunctionGraph()
    steps, state = [], {}
    for call in calls:
        check_status(call)
        if call is calls[0]:
            feeds = graph.call(call, "call", {})
            state = dict.fromkeys(call.variables())
        else:
            feeds = {f"call_input{i}": x for i, x in enumerate(call.inputs) if not isinstance(x, Variable)}
        changed = {variable: value for variable, value in call.before.items() if not unchanged(state[variable], value)}
        if any(value is None for value in changed.values()):
            raise Unstorable("variable that lost its value")
        if changed:
            steps.append(graph.init_step(changed))
        steps.append(call_step([call], {call: "call"}, feeds))
        if call.status != "OK":
            break
        state = call.after
        if initialized(state):
            steps.append(graph.read_step(initialized(state)))
    yield graph.graph_def, steps


def linked_recording(calls):
    """Yields the graph and the steps of calls that run in one step, in order. Only the last may fail."""
    if len(calls) > MAX_NODES:
        raise Unstorable(f"more than {MAX_NODES} linked calls")
    check_status(calls[-1])
    graph = FunctionGraph()
    names, feeds, before, after = {}, {}, {}, {}
    for i, call in enumerate(calls):
        names[call] = "call" if i == 0 else f"call{i}"
        feeds.update(graph.call(call, names[call], names, names[calls[i - 1]] if i > 0 else None))
        for variable, value in call.before.items():
            if variable in after and not unchanged(after[variable], value):
                raise Unstorable("variable that changes between calls")
            before.setdefault(variable, value)
        after.update(call.after)
    steps = []
    if initialized(before):
        steps.append(graph.init_step(initialized(before)))
    steps.append(call_step(calls, names, feeds))
    if calls[-1].status == "OK" and initialized(after):
        steps.append(graph.read_step(initialized(after)))
    yield graph.graph_def, steps


# The worker runs methods of a file in a process.


def import_tensorflow(mode):
    """Imports what the hooks need, and sets TensorFlow's behavior, "v1" or "v2"."""
    global attr_value_pb2, cancellation, context, dtypes, errors, graph_pb2, node_def_pb2, op_callbacks, op_def_registry
    global record, resource_ops, tensor_shape, tensor_util, versions
    import tensorflow as tf
    from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2
    from tensorflow.python.eager import cancellation, context, record
    from tensorflow.python.framework import dtypes, errors, op_callbacks, op_def_registry, tensor_shape, tensor_util, versions
    from tensorflow.python.ops import gen_resource_variable_ops as resource_ops

    if mode == "v1":
        tf.compat.v1.disable_v2_behavior()
    np.seterr(all="ignore")


def install_hooks(recorder):
    from tensorflow.python.client import session
    from tensorflow.python.eager.polymorphic_function import atomic_function

    run = session.BaseSession._do_run
    call_flat = atomic_function.AtomicFunction.call_flat
    session.BaseSession._do_run = lambda self, *arguments: recorder.run_session(self, run, arguments)
    atomic_function.AtomicFunction.call_flat = lambda self, *arguments: recorder.call_function(self, call_flat, arguments)

    def make_callable(self, fetches, feed_list=None, accept_options=False):
        return lambda *values, **options: self.run(fetches, dict(zip(feed_list or [], values)), **options)

    def callable_from_options(self, *arguments):
        if recorder.active:
            recorder.left_out["callable of a session"] += 1
        return original_callable(self, *arguments)

    session.BaseSession.make_callable = make_callable
    original_callable = session.BaseSession._make_callable_from_options
    session.BaseSession._make_callable_from_options = callable_from_options


def import_tests(path):
    from absl import flags

    if not flags.FLAGS.is_parsed():
        flags.FLAGS(sys.argv[:1])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def methods_of(module):
    """Returns {"Class.method": class}."""
    loader = unittest.TestLoader()
    methods = {}
    for case in vars(module).values():
        if isinstance(case, type) and issubclass(case, unittest.TestCase) and case.__module__ == module.__name__:
            methods.update({f"{case.__name__}.{name}": case for name in loader.getTestCaseNames(case)})
    return {test: case for test, case in methods.items() if not test.endswith(".test_session")}


def run_method(case, name):
    """Runs a test method. Returns "passed", "failed" or "skipped", and why."""
    result = unittest.TestResult()
    unittest.TestSuite([case(name)]).run(result)
    wrong = result.failures + result.errors
    if wrong:
        return "failed", wrong[0][1].strip().splitlines()[-1][:300]
    if result.skipped:
        return "skipped", result.skipped[0][1][:300]
    return "passed", ""


def free_folder(parent, method):
    stem = re.sub(r"[^A-Za-z0-9_]", "_", method)
    n = 1
    while (parent / f"{stem}-{n}").exists():
        n += 1
    return parent / f"{stem}-{n}"


def write_recording(folder, kind, graph_def, steps):
    """Writes and replays a recording. Returns its entry of the index."""
    recordings.strip(graph_def)
    recordings.check_graph(graph_def)
    size = recordings.write(folder, graph_def, steps)
    for _ in range(2):
        difference = recordings.replay(folder)
        if difference:
            shutil.rmtree(folder)
            short = "import" if difference.startswith("import") else "status" if "status" in difference else "values"
            error = Unstorable(f"replay differs: {short}")
            error.detail = difference
            raise error
    ops = recordings.ops_of(graph_def)
    outcomes = [step.status for step in steps if step.status != "OK"]
    return {
        "folder": f"{folder.parent.name}/{folder.name}",
        "kind": kind,
        "steps": len(steps),
        "fetches": sum(len(step.fetches) for step in steps),
        "outcome": outcomes[0] if outcomes else "OK",
        "bytes": size,
        "functions": len(graph_def.library.function),
        "functions_as_ops": recordings.calls_functions_as_ops(graph_def),
        "ops": ops,
    }


def record_method(recorder, case, test, folder):
    """Runs a method and writes its recordings. Returns what the driver reports."""
    recorder.clear()
    recorder.active = True
    callback = recorder.run_op
    op_callbacks.add_op_callback(callback)
    outcome, why = run_method(case, test.split(".")[1])
    recorder.active = False
    with contextlib.suppress(ValueError, KeyError):
        op_callbacks.remove_op_callback(callback)
    entries, problems = [], []
    for kind, make in recorder.finish():
        try:
            for graph_def, steps in make():
                entry = write_recording(free_folder(folder, test.split(".")[1]), kind, graph_def, steps)
                entries.append({"test": f"{folder.name}.{test}", "test_outcome": outcome, **entry})
        except Unstorable as problem:
            recorder.left_out[str(problem)] += 1
            problems.append(f"{kind}: {getattr(problem, 'detail', problem)}"[:500])
        except Exception as error:
            recorder.left_out[problem_of(error)] += 1
    left_out = dict(recorder.left_out)
    recorder.clear()
    return {"test": test, "outcome": outcome, "why": why, "recordings": entries, "left_out": left_out, "problems": problems}


def work(path, mode, output, log):
    """Records the methods named on standard input; without any, writes the names of all methods."""
    import_tensorflow(mode)
    recorder = Recorder()
    install_hooks(recorder)
    methods = methods_of(import_tests(path))
    wanted = sys.stdin.read().split()

    def say(**line):
        log.write(json.dumps(line) + "\n")
        log.flush()

    say(methods=list(methods))
    for test in wanted:
        say(start=test)
        say(done=record_method(recorder, methods[test], test, output))


# The driver.


class Worker:
    """A process that records some methods, and is replaced when it ends early."""

    def __init__(self, options, path, mode):
        self.options = options
        self.path = path
        self.mode = mode
        self.folder = options.output / path.stem
        self.log = options.output / f"{path.stem}.{mode}.log"

    def run_once(self, tests):
        """Returns the lines of the worker, and whether it took too long over a method."""
        command = [sys.executable, __file__, self.path.parent, self.options.output, "--worker", self.path.name, "--mode", self.mode]
        lines_path = self.options.output / f"{self.path.stem}.lines"
        lines_path.write_text("")
        with open(self.log, "a") as log, open(lines_path) as lines:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, text=True)
            process.stdin.write("\n".join(tests))
            process.stdin.close()
            found, part, last, late = [], "", time.monotonic(), False
            while True:
                ended = process.poll() is not None
                line = lines.readline()
                if line:
                    # The end of a line may follow later.
                    part += line
                    if part.endswith("\n"):
                        found.append(json.loads(part))
                        part = ""
                    last = time.monotonic()
                elif ended:
                    break
                elif time.monotonic() - last > self.options.timeout:
                    process.kill()
                    late = True
                else:
                    time.sleep(0.05)
        lines_path.unlink()
        return found, late

    def methods(self):
        lines, _ = self.run_once([])
        if not lines:
            raise RuntimeError(f"{self.path.name} cannot be imported; see {self.log}")
        return lines[0]["methods"]

    def record(self, tests):
        """Returns the results of all tests."""
        results = []
        while tests:
            lines, late = self.run_once(tests)
            done = [line["done"] for line in lines if "done" in line]
            started = [line["start"] for line in lines if "start" in line]
            results += done
            tests = tests[len(started):]
            if len(started) > len(done):
                nothing = {"recordings": [], "left_out": {}, "problems": []}
                why = "took too long" if late else "ended the process"
                results.append({"test": started[-1], "outcome": "crashed", "why": why, **nothing})
            elif not started and tests:
                raise RuntimeError(f"{self.path.name} runs no test; see {self.log}")
        return results


def record_file(options, path):
    """Records a file, and returns the results of its methods."""
    shutil.rmtree(options.output / path.stem, ignore_errors=True)
    (options.output / path.stem).mkdir(parents=True)
    results = {}
    for mode in ("v2", "v1"):
        worker = Worker(options, path, mode)
        worker.log.write_text("")
        if mode == "v2":
            tests = [test for test in worker.methods() if options.only in test]
        else:
            tests = [test for test, result in results.items() if result["outcome"] == "skipped"]
        for result in worker.record(tests):
            result["mode"] = mode
            if result["outcome"] != "skipped" or result["test"] not in results:
                results[result["test"]] = result
    print(f"{path.stem}: {summary(results.values())}", flush=True)
    return list(results.values())


def summary(results):
    outcomes = collections.Counter(result["outcome"] for result in results)
    counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
    return f"{len(results)} methods: {counts}; {sum(len(result['recordings']) for result in results)} recordings"


def report_of(results):
    entries = [entry for result in results for entry in result["recordings"]]
    left_out = collections.Counter()
    for result in results:
        left_out.update(result["left_out"])
    return {
        "methods": len(results),
        "outcomes": dict(collections.Counter(result["outcome"] for result in results)),
        "recordings": len(entries),
        "steps": sum(entry["steps"] for entry in entries),
        "bytes": sum(entry["bytes"] for entry in entries),
        "kinds": dict(collections.Counter(entry["kind"] for entry in entries)),
        "expected": dict(collections.Counter(entry["outcome"] for entry in entries)),
        "left_out": dict(left_out.most_common()),
        "ops": dict(collections.Counter(op for entry in entries for op in entry["ops"]).most_common()),
    }


def write_results(output, files):
    """Writes index.json and report.json of the results of `files` and of the other files that were recorded before."""
    path = output / "results.json"
    everything = json.loads(path.read_text()) if path.exists() else {}
    everything.update(files)
    path.write_text(json.dumps(everything, indent=1) + "\n")
    entries = []
    for name in sorted(everything):
        for result in everything[name]:
            for entry in result["recordings"]:
                is_random = any(recordings.RANDOM.match(op) for op in entry["ops"])
                entries.append({**entry, "mode": result["mode"], "random": is_random})
    (output / "index.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
    report = {name: report_of(everything[name]) for name in sorted(everything)}
    report["all"] = report_of([result for results in everything.values() for result in results])
    (output / "report.json").write_text(json.dumps(report, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--file", action="append", default=[], metavar="NAME", help="a file of TESTS, such as while_v2_test")
    parser.add_argument("--only", default="", metavar="TEXT", help="methods whose Class.method contains TEXT")
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="for a method and its replay")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.output = options.output.absolute()
    if options.worker:
        path = options.tests / options.worker
        with open(options.output / f"{path.stem}.lines", "a") as log, contextlib.suppress(BrokenPipeError):
            work(path, options.mode, options.output / path.stem, log)
        return
    options.output.mkdir(parents=True, exist_ok=True)
    names = options.file or sorted(path.stem for path in options.tests.glob("*_test.py"))
    for name in names:
        write_results(options.output, {name: record_file(options, options.tests / f"{name}.py")})


if __name__ == "__main__":
    main()
