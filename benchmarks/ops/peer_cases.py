"""The cases of peers.py: ops, their inputs, and the graphs of TensorFlow that contain them.

Each group of ops has cases of several classes: short inner dimensions, odd sizes, tiny and large tensors, integers,
half precision, double precision and complex numbers. A case is one line of a table where the ops of a group allow it.
"""

import dataclasses
import typing
import zlib

import numpy as np
import tensorflow as tf

raw = tf.raw_ops
f16, bf16, f32, f64 = np.float16, tf.bfloat16.as_numpy_dtype, np.float32, np.float64
c64, c128, i8, u8, i32, i64 = np.complex64, np.complex128, np.int8, np.uint8, np.int32, np.int64
MANY = 1 << 20


@dataclasses.dataclass
class Array:
    """Random numbers of a type and shape, from `low` up to `high`, or what `make` makes of them."""

    dtype: typing.Any
    shape: tuple
    low: float = -3
    high: float = 3
    make: typing.Any = None

    def values(self, seed):
        random = np.random.default_rng(seed)
        if self.dtype is bool:
            array = random.random(self.shape) < (0.5 if self.high == 3 else self.high)
        elif np.issubdtype(self.dtype, np.complexfloating):
            array = random.uniform(self.low, self.high, self.shape) + 1j * random.uniform(
                self.low, self.high, self.shape
            )
        elif np.issubdtype(self.dtype, np.integer):
            low = max(self.low, np.iinfo(self.dtype).min)
            array = random.integers(low, max(low + 1, self.high), self.shape)
        else:
            array = random.uniform(self.low, self.high, self.shape)
        array = np.asarray(array)
        if self.make is not None:
            array = self.make(random, array)
        return array if self.dtype is bytes else array.astype(self.dtype, order="C")

    def __str__(self):
        if self.dtype is bytes:
            name = "string"
        else:
            name = np.dtype(self.dtype).name
        return f"{name} {list(self.shape)}"


@dataclasses.dataclass
class Case:
    group: str
    name: str
    build: typing.Callable
    inputs: tuple
    # Makes an operation that runs once, before the first run.
    init: typing.Any = None

    def seed(self):
        return zlib.crc32(self.name.encode())


CASES = []


def add(group, label, build, *inputs):
    shapes = ", ".join(map(str, inputs))
    CASES.append(Case(group, f"{label} {shapes}".strip(), build, inputs))


def integers(shape, high, dtype=i32):
    return Array(dtype, shape, 0, high)


# Elementwise functions: op, type, lowest and highest argument.
def add_functions():
    group = "functions"
    for name, low, high in (
        ("Exp", -10, 10),
        ("Expm1", -3, 3),
        ("Log", 0.1, 100),
        ("Log1p", -0.5, 10),
        ("Tanh", -5, 5),
        ("Sigmoid", -8, 8),
        ("Erf", -3, 3),
        ("Erfc", -3, 3),
        ("Erfinv", -0.99, 0.99),
        ("Ndtri", 0.01, 0.99),
        ("Sin", -10, 10),
        ("Cos", -10, 10),
        ("Tan", -1.5, 1.5),
        ("Asin", -1, 1),
        ("Acos", -1, 1),
        ("Atan", -5, 5),
        ("Sinh", -3, 3),
        ("Cosh", -3, 3),
        ("Asinh", -5, 5),
        ("Acosh", 1.1, 10),
        ("Atanh", -0.9, 0.9),
        ("Sqrt", 0.1, 10),
        ("Rsqrt", 0.1, 10),
        ("Reciprocal", 0.1, 10),
        ("Inv", 0.1, 10),
        ("Softplus", -10, 10),
        ("Softsign", -5, 5),
        ("Elu", -5, 5),
        ("Selu", -5, 5),
        ("Lgamma", 0.1, 20),
        ("Digamma", 0.1, 20),
        ("BesselI0e", -5, 5),
        ("BesselJ0", -5, 5),
        ("Rint", -9, 9),
        ("Round", -9, 9),
        ("Floor", -9, 9),
        ("Ceil", -9, 9),
        ("Sign", -3, 3),
        ("Abs", -3, 3),
        ("Neg", -3, 3),
        ("Square", -3, 3),
        ("Relu", -3, 3),
        ("Relu6", -9, 9),
        ("LeakyRelu", -3, 3),
        ("IsNan", -3, 3),
        ("IsFinite", -3, 3),
    ):
        op = getattr(raw, name)
        key = "features" if name in ("Softplus", "Softsign", "Elu", "Selu", "Relu", "Relu6", "LeakyRelu") else "x"
        add(group, name, lambda x, op=op, key=key: op(**{key: x}), Array(f32, (MANY,), low, high))
        if name in ("Exp", "Log", "Tanh", "Erf", "Sigmoid", "Sqrt", "Rsqrt", "Sin", "Neg", "Square", "Atan", "Log1p"):
            add(group, name, lambda x, op=op, key=key: op(**{key: x}), Array(f64, (1 << 18,), low, high))
        if name in ("Exp", "Tanh", "Sigmoid", "Rsqrt", "Log", "Relu", "Neg", "Erf"):
            half = Array(f16, (1 << 18,), max(low, -5), min(high, 5))
            add(group, name, lambda x, op=op, key=key: op(**{key: x}), half)
            add(group, name, lambda x, op=op, key=key: op(**{key: x}), dataclasses.replace(half, dtype=bf16))
        if name in ("Exp", "Log", "Tanh", "Sqrt", "Square", "Reciprocal", "Sin"):
            add(group, name, lambda x, op=op, key=key: op(**{key: x}), Array(c64, (1 << 16,), 0.1, 3))
        if name in ("Tanh", "Erf", "Exp", "Relu", "Sqrt", "Neg"):
            add(group, name, lambda x, op=op, key=key: op(**{key: x}), Array(f32, (33,), max(low, -5), min(high, 5)))
    for name in ("Abs", "Neg", "Square", "Sign", "Invert", "PopulationCount"):
        op = getattr(raw, name)
        for dtype in (i32, i64, i8):
            add(group, name, lambda x, op=op: op(x=x), Array(dtype, (MANY,), -100, 100))
    for name, a in (("ComplexAbs", {}), ("Angle", {}), ("Conj", {}), ("Real", {}), ("Imag", {})):
        op = getattr(raw, name)
        key = "x" if name == "ComplexAbs" else "input"
        add(group, name, lambda x, op=op, key=key: op(**{key: x}), Array(c64, (1 << 18,)))
    add(group, "GELU", lambda x: tf.nn.gelu(x), Array(f32, (8, 128, 3072)))
    add(group, "GELU", lambda x: tf.nn.gelu(x, approximate=True), Array(f32, (8, 128, 768)))
    add(group, "Swish", lambda x: x * tf.sigmoid(x), Array(f32, (8, 56, 56, 96)))
    add(group, "Mish", lambda x: x * tf.tanh(tf.nn.softplus(x)), Array(f32, (8, 56, 56, 32)))
    add(group, "Clip", lambda x: tf.clip_by_value(x, -1.0, 1.0), Array(f32, (MANY,)))
    add(
        group, "Clip", lambda x: raw.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0), Array(f32, (1000, 1001))
    )
    for name in ("TanhGrad", "SigmoidGrad", "RsqrtGrad", "SqrtGrad", "ReluGrad", "SoftplusGrad", "EluGrad"):
        op = getattr(raw, name)
        keys = ("y", "dy")
        if name == "ReluGrad" or name == "SoftplusGrad":
            keys = ("features", "gradients")
        elif name == "EluGrad":
            keys = ("outputs", "gradients")
        add(
            group,
            name,
            lambda x, y, op=op, keys=keys: op(**{keys[0]: x, keys[1]: y}),
            Array(f32, (MANY,), 0.1, 0.9),
            Array(f32, (MANY,)),
        )


# Two arguments: op, types, lowest and highest argument.
def add_binary():
    group = "binary"
    for name, dtypes, low, high in (
        ("AddV2", (f32, f64, f16, bf16, i32, i64, i8, c64), -9, 9),
        ("Sub", (f32, i32), -9, 9),
        ("Mul", (f32, f16, i32, i64, u8, c64, c128), -9, 9),
        ("RealDiv", (f32, f64, c64), 1, 9),
        ("Div", (i32,), 1, 9),
        ("FloorDiv", (f32, i32, i64), 1, 99),
        ("FloorMod", (f32, i32, i64), 1, 99),
        ("Mod", (i32,), 1, 99),
        ("Maximum", (f32, i32, f16), -9, 9),
        ("Minimum", (f32, i64), -9, 9),
        ("Pow", (f32, f64, i32), 1, 3),
        ("SquaredDifference", (f32, i32), -9, 9),
        ("Atan2", (f32, f64), -9, 9),
        ("Xdivy", (f32,), 1, 9),
        ("Xlogy", (f32,), 1, 9),
        ("Xlog1py", (f32,), 1, 9),
        ("Igamma", (f32,), 1, 5),
        ("Zeta", (f32,), 1.5, 5),
        ("DivNoNan", (f32,), -9, 9),
        ("MulNoNan", (f32,), -9, 9),
        ("TruncateDiv", (i32,), 1, 99),
        ("NextAfter", (f32,), 1, 9),
        ("Less", (f32, i32, f64), -9, 9),
        ("GreaterEqual", (f32, i64), -9, 9),
        ("Equal", (f32, i32, u8), 0, 9),
        ("NotEqual", (f32, bool), 0, 9),
        ("LogicalAnd", (bool,), 0, 3),
        ("LogicalOr", (bool,), 0, 3),
        ("BitwiseAnd", (i32, u8), 0, 99),
        ("BitwiseXor", (i64,), 0, 99),
        ("LeftShift", (i32,), 0, 9),
        ("Complex", (f32,), -9, 9),
        ("TruncateMod", (f32,), 1, 99),
        ("ApproximateEqual", (f32,), 0, 2),
    ):
        op = getattr(raw, name)
        keys = (
            ("real", "imag")
            if name == "Complex"
            else (
                ("a", "x")
                if name in ("Igamma",)
                else ("x", "q") if name == "Zeta" else (("x1", "x2") if name == "NextAfter" else ("x", "y"))
            )
        )
        for dtype in dtypes:
            a = Array(dtype, (MANY if name not in ("Igamma", "Zeta") else 1 << 16,), low, high)
            add(group, name, lambda x, y, op=op, keys=keys: op(**{keys[0]: x, keys[1]: y}), a, a)
    sum_ = lambda x, y: raw.AddV2(x=x, y=y)  # noqa: E731
    mul = lambda x, y: raw.Mul(x=x, y=y)  # noqa: E731
    for op, name, dtype, x, y in (
        (sum_, "AddV2", f32, (1024, 1024), (1024,)),
        (sum_, "AddV2", f32, (1024, 1024), (1024, 1)),
        (mul, "Mul", f32, (32, 56, 56, 64), (64,)),
        (sum_, "AddV2", f32, (100000, 3), (3,)),
        (mul, "Mul", f32, (8, 224, 224, 3), (1, 1, 1, 3)),
        (mul, "Mul", f32, (8, 56, 56, 64), (8, 1, 1, 64)),
        (sum_, "AddV2", f32, (64, 1, 17), (1, 33, 17)),
        (sum_, "AddV2", f32, (512, 1), (1, 512)),
        (mul, "Mul", f32, (MANY,), ()),
        (sum_, "AddV2", f32, (8, 12, 128, 128), (8, 1, 1, 128)),
        (sum_, "AddV2", f32, (10000, 7, 1), (1, 7, 5)),
        (mul, "Mul", f32, (4, 64, 100, 101), (64, 1, 1)),
        (sum_, "AddV2", i32, (1000, 257), (257,)),
        (mul, "Mul", f64, (1000, 257), (1000, 1)),
        (sum_, "AddV2", f16, (1000, 256), (256,)),
        (mul, "Mul", c64, (1000, 33), (33,)),
        (sum_, "AddV2", f32, (8,), (8,)),
        (mul, "Mul", f32, (1, 10), (1, 10)),
        (sum_, "AddV2", f32, (), ()),
        (sum_, "AddV2", f32, (20, 1, 60, 30), (1, 40, 60, 1)),
        (sum_, "AddV2", f32, (1 << 24,), (1 << 24,)),
    ):
        add(group, name, op, Array(dtype, x), Array(dtype, y))
    for dtype, shape in (
        (f32, (MANY,)),
        (i32, (MANY,)),
        (f64, (MANY,)),
        (f16, (MANY,)),
        (f32, (7,)),
        (u8, (MANY,)),
        (c64, (1 << 18,)),
    ):
        add(
            group,
            "SelectV2",
            lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y),
            Array(bool, shape),
            Array(dtype, shape, 0),
            Array(dtype, shape, 0),
        )
    add(
        group,
        "SelectV2",
        lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y),
        Array(bool, (512, 1)),
        Array(f32, (512, 1000)),
        Array(f32, ()),
    )
    add(
        group,
        "SelectV2",
        lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y),
        Array(bool, (1, 1, 128, 128)),
        Array(f32, (8, 12, 128, 128)),
        Array(f32, ()),
    )
    add(
        group,
        "Select",
        lambda c, x, y: raw.Select(condition=c, x=x, y=y),
        Array(bool, (1000,)),
        Array(f32, (1000, 512)),
        Array(f32, (1000, 512)),
    )
    for a, b in (
        (f32, i32),
        (i32, f32),
        (f32, f16),
        (f16, f32),
        (f32, bf16),
        (bf16, f32),
        (f32, f64),
        (f64, f32),
        (u8, f32),
        (f32, u8),
        (i64, i32),
        (bool, f32),
        (f32, bool),
        (f32, c64),
        (i32, i64),
        (f64, i64),
        (f16, i32),
    ):
        to = tf.as_dtype(b)
        add(group, f"Cast to {to.name}", lambda x, to=to: raw.Cast(x=x, DstT=to), Array(a, (MANY,), 0, 100))
    add(group, "AddN", lambda *x: raw.AddN(inputs=list(x)), *[Array(f32, (1000, 501))] * 4)
    add(group, "AccumulateNV2", lambda *x: raw.AddN(inputs=list(x)), *[Array(f32, (64, 64))] * 8)
    add(group, "Lerp", lambda x, y: x + 0.3 * (y - x), Array(f32, (8, 56, 56, 64)), Array(f32, (8, 56, 56, 64)))


def add_reductions():
    group = "reductions"
    for name, dtype, shape, axes in (
        ("Sum", f32, (1024, 1024), [1]),
        ("Sum", f32, (1024, 1024), [0]),
        ("Sum", f32, (1024, 1024), [0, 1]),
        ("Mean", f32, (32, 56, 56, 64), [1, 2]),
        ("Mean", f32, (8, 7, 7, 2048), [1, 2]),
        ("Sum", f32, (1000, 7, 13), [1]),
        ("Sum", f32, (100000, 3), [1]),
        ("Sum", f32, (100000, 3), [0]),
        ("Sum", f32, (3, 100000), [0]),
        ("Max", f32, (100000, 7), [1]),
        ("Max", f32, (7, 100000), [0]),
        ("Max", f32, (1024, 1000), [1]),
        ("Min", f32, (1024, 1000), [0]),
        ("Prod", f32, (1024, 100), [1]),
        ("Prod", f32, (MANY,), [0]),
        ("Sum", f64, (1000, 999), [1]),
        ("Sum", f64, (1000, 999), [0]),
        ("Sum", f16, (1000, 1000), [1]),
        ("Mean", bf16, (1000, 1000), [0]),
        ("Sum", i32, (1000, 1000), [1]),
        ("Sum", i32, (1000, 1000), [0]),
        ("Sum", i64, (MANY,), [0]),
        ("Max", i32, (1000, 1000), [1]),
        ("Max", u8, (8, 224, 224, 3), [1, 2]),
        ("Min", i64, (1000, 1001), [0]),
        ("Max", f16, (1000, 1000), [1]),
        ("Sum", c64, (1000, 256), [1]),
        ("Sum", c64, (1000, 256), [0]),
        ("Mean", f64, (100, 100, 100), [0, 2]),
        ("Sum", f32, (16, 16, 16, 16, 16), [1, 3]),
        ("Sum", f32, (64, 12, 128, 128), [0]),
        ("Sum", f32, (8, 128, 768), [0, 1]),
        ("Mean", f32, (8, 128, 768), [2]),
        ("Sum", f32, (10,), [0]),
        ("Max", f32, (4, 10), [1]),
        ("Sum", f32, (1 << 24,), [0]),
        ("EuclideanNorm", f32, (1000, 1000), [1]),
        ("EuclideanNorm", f32, (MANY,), [0]),
        ("Prod", i32, (1000, 1000), [1]),
    ):
        op = getattr(raw, name)
        add(
            group,
            f"{name} axes {axes}",
            lambda x, op=op, axes=axes: op(input=x, axis=axes),
            Array(dtype, shape, -3 if name != "Prod" else 0.9, 3 if name != "Prod" else 1.1),
        )
    for name in ("Any", "All"):
        op = getattr(raw, name)
        low = 1e-7 if name == "Any" else 1 - 1e-7
        for shape, axes in (((1000, 1000), [1]), ((1000, 1000), [0]), ((MANY,), [0])):
            add(
                group,
                f"{name} axes {axes}",
                lambda x, op=op, axes=axes: op(input=x, axis=axes),
                Array(bool, shape, 0, low),
            )
    for name, dtype, shape, axis in (
        ("ArgMax", f32, (1024, 1000), 1),
        ("ArgMax", f32, (1024, 1000), 0),
        ("ArgMin", f32, (MANY,), 0),
        ("ArgMax", f32, (100000, 10), 1),
        ("ArgMax", f32, (8, 64, 64, 21), 3),
        ("ArgMax", i32, (1000, 1000), 1),
        ("ArgMax", f64, (1000, 1000), 1),
        ("ArgMax", f16, (1000, 1000), 1),
        ("ArgMax", u8, (1000, 1000), 1),
    ):
        op = getattr(raw, name)
        add(group, f"{name} axis {axis}", lambda x, op=op, axis=axis: op(input=x, dimension=axis), Array(dtype, shape))
    for name, dtype, shape, axis in (
        ("Cumsum", f32, (1000, 1000), 1),
        ("Cumsum", f32, (1000, 1000), 0),
        ("Cumsum", f32, (MANY,), 0),
        ("Cumsum", f64, (1000, 999), 1),
        ("Cumsum", i32, (1000, 1000), 1),
        ("Cumprod", f32, (1000, 1000), 1),
        ("Cumsum", f32, (10000, 7, 5), 1),
        ("Cumsum", i64, (MANY,), 0),
        ("CumulativeLogsumexp", f32, (100, 1000), 1),
    ):
        op = getattr(raw, name)
        add(group, f"{name} axis {axis}", lambda x, op=op, axis=axis: op(x=x, axis=axis), Array(dtype, shape, -1, 1.1))
    add(group, "LogSumExp", lambda x: tf.reduce_logsumexp(x, 1), Array(f32, (1000, 1000)))
    add(group, "Moments", lambda x: tf.nn.moments(x, [0, 1, 2])[1], Array(f32, (8, 56, 56, 64)))
    add(group, "Variance", lambda x: tf.math.reduce_variance(x, 1), Array(f32, (1000, 1000)))
    ids = lambda n, k: Array(i32, (n,), 0, k, lambda r, a: np.sort(a))  # noqa: E731
    for name, dtype, shape in (
        ("SegmentSum", f32, (100000, 16)),
        ("SegmentMean", f32, (100000, 16)),
        ("SegmentMax", f32, (100000, 1)),
        ("SegmentSum", f64, (10000, 33)),
        ("SegmentSum", i32, (100000,)),
    ):
        op = getattr(raw, name)
        add(group, name, lambda x, i, op=op: op(data=x, segment_ids=i), Array(dtype, shape), ids(shape[0], 1000))
    for name, dtype, shape in (
        ("UnsortedSegmentSum", f32, (100000, 16)),
        ("UnsortedSegmentMax", f32, (100000, 16)),
        ("UnsortedSegmentSum", f32, (MANY,)),
        ("UnsortedSegmentProd", f32, (100000, 3)),
        ("UnsortedSegmentSum", i64, (100000,)),
    ):
        op = getattr(raw, name)
        add(
            group,
            name,
            lambda x, i, op=op: op(data=x, segment_ids=i, num_segments=1000),
            Array(dtype, shape),
            integers((shape[0],), 1000),
        )
    for name in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        op = getattr(raw, name)
        add(
            group,
            name,
            lambda x, j, i, op=op: op(data=x, indices=j, segment_ids=i),
            Array(f32, (10000, 64)),
            integers((50000,), 10000),
            ids(50000, 1000),
        )
    add(group, "Bincount", lambda x: tf.math.bincount(x, minlength=1000, maxlength=1000), integers((MANY,), 1000))
    add(
        group,
        "DenseBincount",
        lambda x: raw.DenseBincount(input=x, size=256, weights=tf.zeros([0], tf.int32)),
        integers((100, 10000), 256),
    )
    add(
        group,
        "HistogramFixedWidth",
        lambda x: raw.HistogramFixedWidth(values=x, value_range=[-3.0, 3.0], nbins=100),
        Array(f32, (MANY,)),
    )
    add(
        group,
        "Bucketize",
        lambda x: raw.Bucketize(input=x, boundaries=[-2.0, -1.0, 0.0, 1.0, 2.0]),
        Array(f32, (MANY,)),
    )
    add(group, "L2Loss", lambda x: raw.L2Loss(t=x), Array(f32, (MANY,)))
    add(group, "L2Normalize", lambda x: tf.math.l2_normalize(x, 1), Array(f32, (1000, 512)))


def add_movement():
    group = "movement"
    for dtype, shape, perm in (
        (f32, (1024, 1024), (1, 0)),
        (f32, (1000, 1001), (1, 0)),
        (f32, (4096, 14, 2, 14, 2), (0, 1, 3, 2, 4)),
        (f32, (1000, 7, 11, 13), (2, 0, 3, 1)),
        (f32, (8, 112, 112, 64), (0, 3, 1, 2)),
        (f32, (8, 224, 224, 3), (0, 3, 1, 2)),
        (f32, (8, 3, 224, 224), (0, 2, 3, 1)),
        (f32, (8, 128, 12, 64), (0, 2, 1, 3)),
        (f32, (100000, 3), (1, 0)),
        (f32, (3, 100000), (1, 0)),
        (f32, (100000, 2), (1, 0)),
        (f32, (5, 50000), (1, 0)),
        (f32, (256, 7, 7, 32), (0, 2, 1, 3)),
        (f32, (64, 3, 3, 64), (3, 1, 2, 0)),
        (f32, (3, 3, 128, 256), (3, 2, 0, 1)),
        (f32, (32, 16, 16, 16), (3, 2, 1, 0)),
        (f32, (10000, 2, 2), (0, 2, 1)),
        (f32, (10000, 3, 5), (0, 2, 1)),
        (f32, (10000, 4, 4), (0, 2, 1)),
        (f32, (1000, 13, 17), (0, 2, 1)),
        (f32, (2000, 5, 3, 7), (0, 2, 1, 3)),
        (f32, (50, 60, 70), (2, 1, 0)),
        (f32, (50, 60, 70), (1, 0, 2)),
        (f32, (50, 60, 70), (1, 2, 0)),
        (f32, (8, 8, 8, 8, 8, 8), (5, 4, 3, 2, 1, 0)),
        (f32, (4, 28, 2, 28, 2, 16), (0, 1, 3, 2, 4, 5)),
        (f32, (64, 28, 2, 28, 2, 3), (0, 1, 3, 2, 4, 5)),
        (f32, (4096, 28, 28, 1), (0, 3, 1, 2)),
        (f64, (1000, 1001), (1, 0)),
        (f64, (1000, 7, 11, 3), (2, 0, 3, 1)),
        (f16, (1024, 1000), (1, 0)),
        (f16, (1000, 14, 2, 14, 2), (0, 1, 3, 2, 4)),
        (u8, (8, 224, 224, 3), (0, 3, 1, 2)),
        (u8, (8, 3, 224, 224), (0, 2, 3, 1)),
        (u8, (1000, 1000), (1, 0)),
        (i8, (1000, 7, 11, 13), (2, 0, 3, 1)),
        (i32, (500, 3, 501), (2, 1, 0)),
        (i64, (1000, 4, 4, 3), (0, 2, 1, 3)),
        (c64, (500, 501), (1, 0)),
        (c128, (300, 301), (1, 0)),
        (f32, (3, 4), (1, 0)),
        (f32, (1, 8, 16, 4), (0, 2, 1, 3)),
        (f32, (2048, 2048), (1, 0)),
    ):
        add(group, f"Transpose {list(perm)}", lambda x, perm=perm: raw.Transpose(x=x, perm=perm), Array(dtype, shape))
    for dtype, shapes, axis in (
        (f32, [(8, 56, 56, 64)] * 2, 3),
        (f32, [(65536, 3)] * 4, 1),
        (f32, [(1000, 1)] * 8, 1),
        (f32, [(100, 1000)] * 3, 0),
        (f32, [(64, 28, 28, 17), (64, 28, 28, 5)], 3),
        (i32, [(1000, 33)] * 3, 1),
        (u8, [(1000, 33)] * 3, 1),
        (f64, [(1000, 33)] * 3, 1),
        (f32, [(1, 10)] * 3, 1),
        (f16, [(8, 56, 56, 32)] * 3, 3),
    ):
        add(
            group,
            f"ConcatV2 axis {axis} of {len(shapes)}",
            lambda *x, axis=axis: raw.ConcatV2(values=list(x), axis=axis),
            *[Array(dtype, shape) for shape in shapes],
        )
    for dtype, shape, axis, n in (
        (f32, (1000, 1024), 1, 4),
        (f32, (1000, 12), 1, 4),
        (f32, (64, 1000), 0, 4),
        (u8, (1000, 300), 1, 3),
        (f32, (4, 8), 1, 2),
    ):
        add(
            group,
            f"Split axis {axis} in {n}",
            lambda x, axis=axis, n=n: raw.Split(axis=axis, value=x, num_split=n)[1],
            Array(dtype, shape),
        )
    add(
        group,
        "SplitV",
        lambda x: raw.SplitV(value=x, size_splits=[100, 200, 212], axis=1, num_split=3)[2],
        Array(f32, (1000, 512)),
    )
    for dtype, shape, pads in (
        (f32, (8, 56, 56, 64), [[0, 0], [1, 1], [1, 1], [0, 0]]),
        (f32, (8, 224, 224, 3), [[0, 0], [3, 3], [3, 3], [0, 0]]),
        (f32, (1000, 100), [[0, 0], [1, 2]]),
        (f32, (MANY,), [[5, 5]]),
        (u8, (8, 224, 224, 3), [[0, 0], [3, 3], [3, 3], [0, 0]]),
        (f64, (100, 7, 7, 5), [[0, 0], [1, 1], [1, 1], [0, 0]]),
        (f32, (2, 3), [[1, 1], [1, 1]]),
    ):
        add(group, "Pad", lambda x, pads=pads: raw.Pad(input=x, paddings=pads), Array(dtype, shape))
    for mode in ("REFLECT", "SYMMETRIC"):
        add(
            group,
            f"MirrorPad {mode}",
            lambda x, mode=mode: raw.MirrorPad(input=x, paddings=[[0, 0], [3, 3], [3, 3], [0, 0]], mode=mode),
            Array(f32, (8, 112, 112, 3)),
        )
    add(
        group,
        "PadV2",
        lambda x: raw.PadV2(input=x, paddings=[[1, 1], [2, 2]], constant_values=1.0),
        Array(f32, (1000, 1001)),
    )
    for dtype, shape, n in (
        (f32, (1000, 100), (1, 10)),
        (f32, (1000, 1), (1, 1000)),
        (f32, (1, 1000), (1000, 1)),
        (f32, (100, 3), (10, 7)),
        (i32, (1000, 33), (2, 3)),
        (u8, (100, 7), (10, 20)),
        (f32, (2, 2), (2, 2)),
        (f32, (64, 1, 1, 32), (1, 16, 16, 1)),
    ):
        add(group, f"Tile {list(n)}", lambda x, n=n: raw.Tile(input=x, multiples=n), Array(dtype, shape))
    for dtype, shape, to in (
        (f32, (1000, 1), (1000, 1000)),
        (f32, (1000,), (1000, 1000)),
        (f32, (64, 1, 1, 32), (64, 16, 16, 32)),
        (i32, (), (MANY,)),
        (f32, (100, 7, 1), (100, 7, 9)),
        (u8, (1000, 1), (1000, 1000)),
    ):
        add(group, f"BroadcastTo {list(to)}", lambda x, to=to: raw.BroadcastTo(input=x, shape=to), Array(dtype, shape))
    for dtype, shape, begin, size in (
        (f32, (1000, 1000), (10, 10), (900, 900)),
        (f32, (8, 226, 226, 64), (0, 1, 1, 0), (8, 224, 224, 64)),
        (f32, (100000, 5), (0, 1), (100000, 3)),
        (u8, (1000, 1000), (10, 10), (900, 33)),
        (f32, (10, 10), (1, 1), (5, 5)),
        (f32, (100, 50, 20, 3), (0, 5, 5, 0), (100, 40, 10, 2)),
    ):
        add(
            group,
            f"Slice {list(size)}",
            lambda x, b=begin, s=size: raw.Slice(input=x, begin=b, size=s),
            Array(dtype, shape),
        )
    for label, dtype, shape, index in (
        ("[::2]", f32, (1000, 1000), np.s_[::2]),
        ("[:,::2]", f32, (1000, 1000), np.s_[:, ::2]),
        ("[:,::-1]", f32, (1000, 1000), np.s_[:, ::-1]),
        ("[:,1:-1,1:-1]", f32, (8, 114, 114, 32), np.s_[:, 1:-1, 1:-1]),
        ("[:,0]", f32, (1000, 128, 64), np.s_[:, 0]),
        ("[...,0]", f32, (8, 224, 224, 3), np.s_[..., 0]),
        ("[...,::-1]", f32, (8, 224, 224, 3), np.s_[..., ::-1]),
        ("[:,::2,::2]", f32, (8, 112, 112, 64), np.s_[:, ::2, ::2]),
        ("[...,::2]", u8, (8, 224, 224, 4), np.s_[..., ::2]),
        ("[...,1]", i64, (100000, 2), np.s_[..., 1]),
        ("[1]", f32, (8,), np.s_[1]),
        ("[::3,::5]", f64, (1000, 1000), np.s_[::3, ::5]),
    ):
        add(group, f"StridedSlice {label}", lambda x, index=index: x[index], Array(dtype, shape))
    add(
        group,
        "StridedSliceGrad",
        lambda x: raw.StridedSliceGrad(shape=[1000, 1000], begin=[1, 1], end=[999, 999], strides=[1, 1], dy=x),
        Array(f32, (998, 998)),
    )
    for dtype, shape, axes in (
        (f32, (1000, 1000), [1]),
        (f32, (1000, 1000), [0]),
        (f32, (8, 224, 224, 3), [2]),
        (f32, (100000, 3), [1]),
        (u8, (8, 224, 224, 3), [2]),
        (f64, (1000, 999), [0, 1]),
    ):
        add(group, f"ReverseV2 {axes}", lambda x, axes=axes: raw.ReverseV2(tensor=x, axis=axes), Array(dtype, shape))
    for shape, shift, axes in (((1000, 1000), [3], [1]), ((8, 56, 56, 96), [3, 3], [1, 2]), ((MANY,), [100], [0])):
        add(group, f"Roll {shift}", lambda x, s=shift, a=axes: raw.Roll(input=x, shift=s, axis=a), Array(f32, shape))
    for dtype, shape, n, axis, batch in (
        (f32, (30000, 768), (1024,), 0, 0),
        (f32, (10000, 64), (65536,), 0, 0),
        (f32, (100000,), (MANY,), 0, 0),
        (f32, (1000, 1000), (500,), 1, 0),
        (f32, (10000, 33), (16,), 1, 0),
        (f32, (64, 100, 32), (64, 50), 1, 1),
        (f32, (10000, 3), (100000,), 0, 0),
        (f32, (32, 50, 20), (30,), 1, 0),
        (f32, (10000, 100), (10000, 1), 1, 1),
        (i32, (10000, 5), (50000,), 0, 0),
        (u8, (10000, 3), (50000,), 0, 0),
        (f64, (10000, 3), (50000,), 0, 0),
        (f16, (10000, 64), (50000,), 0, 0),
        (i64, (1000, 1000), (300,), 1, 0),
        (f32, (10, 4), (3,), 0, 0),
        (c64, (1000, 100), (100,), 1, 0),
    ):
        add(
            group,
            f"GatherV2 axis {axis} batch dims {batch}",
            lambda x, i, a=axis, b=batch: raw.GatherV2(params=x, indices=i, axis=a, batch_dims=b),
            Array(dtype, shape),
            integers(n, shape[axis]),
        )
    add(
        group,
        "GatherNd",
        lambda x, i: raw.GatherNd(params=x, indices=i),
        Array(f32, (1000, 1000)),
        integers((100000, 2), 1000),
    )
    add(
        group,
        "GatherNd",
        lambda x, i: raw.GatherNd(params=x, indices=i),
        Array(f32, (100, 100, 64)),
        integers((10000, 2), 100),
    )
    add(
        group,
        "ScatterNd",
        lambda x, i: raw.ScatterNd(indices=i, updates=x, shape=[1000, 64]),
        Array(f32, (10000, 64)),
        integers((10000, 1), 1000),
    )
    add(
        group,
        "ScatterNd",
        lambda x, i: raw.ScatterNd(indices=i, updates=x, shape=[MANY]),
        Array(f32, (100000,)),
        integers((100000, 1), MANY),
    )
    add(
        group,
        "TensorScatterUpdate",
        lambda t, x, i: raw.TensorScatterUpdate(tensor=t, indices=i, updates=x),
        Array(f32, (10000, 64)),
        Array(f32, (1000, 64)),
        integers((1000, 1), 10000),
    )
    add(
        group,
        "TensorScatterAdd",
        lambda t, x, i: raw.TensorScatterAdd(tensor=t, indices=i, updates=x),
        Array(f32, (1000, 1000)),
        Array(f32, (10000,)),
        integers((10000, 2), 1000),
    )
    for dtype, shape, axis, n in (
        (f32, (1000, 100), 0, 8),
        (f32, (1000, 100), 1, 8),
        (f32, (100000,), 1, 2),
        (i32, (1000,), 1, 3),
        (f32, (10,), 0, 3),
    ):
        add(group, f"Pack axis {axis}", lambda *x, a=axis: raw.Pack(values=list(x), axis=a), *[Array(dtype, shape)] * n)
    add(group, "Unpack axis 1", lambda x: raw.Unpack(value=x, num=8, axis=1)[3], Array(f32, (1000, 8, 100)))
    add(group, "Unpack axis 2", lambda x: raw.Unpack(value=x, num=3, axis=2)[1], Array(f32, (224, 224, 3)))
    for dtype, n, depth in ((f32, (4096,), 1000), (f32, (100000,), 10), (i32, (1000,), 100), (f32, (8, 128), 2)):
        add(
            group,
            f"OneHot {depth} {np.dtype(dtype).name}",
            lambda i, d=depth, t=dtype: raw.OneHot(indices=i, depth=d, on_value=t(1), off_value=t(0)),
            integers(n, depth),
        )
    for name, dtype, shape, block in (
        ("SpaceToDepth", f32, (8, 112, 112, 32), 2),
        ("DepthToSpace", f32, (8, 56, 56, 64), 2),
        ("SpaceToDepth", f32, (8, 224, 224, 3), 4),
        ("DepthToSpace", f32, (8, 56, 56, 12), 2),
        ("SpaceToDepth", u8, (8, 224, 224, 3), 2),
    ):
        op = getattr(raw, name)
        add(group, f"{name} {block}", lambda x, op=op, b=block: op(input=x, block_size=b), Array(dtype, shape))
    add(
        group,
        "SpaceToBatchND",
        lambda x: raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[0, 0], [0, 0]]),
        Array(f32, (8, 56, 56, 64)),
    )
    add(
        group,
        "BatchToSpaceND",
        lambda x: raw.BatchToSpaceND(input=x, block_shape=[2, 2], crops=[[0, 0], [0, 0]]),
        Array(f32, (32, 28, 28, 64)),
    )
    for high in (0.01, 0.5):
        add(group, f"Where {high}", lambda x: raw.Where(condition=x), Array(bool, (1000, 1000), 0, high))
    add(
        group,
        "Where float",
        lambda x: raw.Where(condition=x),
        Array(f32, (100000,), -1, 1, lambda r, a: np.where(a > 0, a, 0)),
    )
    add(group, "BooleanMask", lambda x, m: tf.boolean_mask(x, m), Array(f32, (100000, 16)), Array(bool, (100000,)))
    add(group, "BooleanMask", lambda x, m: tf.boolean_mask(x, m), Array(f32, (MANY,)), Array(bool, (MANY,)))
    add(
        group,
        "MatrixDiagV3",
        lambda x: raw.MatrixDiagV3(diagonal=x, k=0, num_rows=-1, num_cols=-1, padding_value=0.0),
        Array(f32, (100, 100)),
    )
    add(
        group,
        "MatrixDiagPartV3",
        lambda x: raw.MatrixDiagPartV3(input=x, k=0, padding_value=0.0),
        Array(f32, (100, 100, 100)),
    )
    add(
        group,
        "MatrixSetDiagV3",
        lambda x, d: raw.MatrixSetDiagV3(input=x, diagonal=d, k=0),
        Array(f32, (100, 100, 100)),
        Array(f32, (100, 100)),
    )
    add(
        group,
        "MatrixBandPart",
        lambda x: raw.MatrixBandPart(input=x, num_lower=tf.constant(-1), num_upper=tf.constant(0)),
        Array(f32, (64, 128, 128)),
    )
    for dtype, high in ((i32, 1000), (i64, 1000000), (i32, 100000)):
        add(group, f"Unique below {high}", lambda x: raw.Unique(x=x)[1], integers((100000,), high, dtype))
    add(group, "UniqueWithCounts", lambda x: raw.UniqueWithCounts(x=x)[2], integers((100000,), 1000, i64))
    for dtype, shape, k in (
        (f32, (MANY,), 10),
        (f32, (1000, 1000), 5),
        (f32, (64, 50000), 50),
        (f32, (1000, 100), 100),
        (i32, (1000, 1000), 5),
        (f32, (8, 10), 3),
    ):
        add(group, f"TopKV2 {k}", lambda x, k=k: raw.TopKV2(input=x, k=k)[1], Array(dtype, shape, -1000000, 1000000))
    for dtype, shape in ((f32, (100000,)), (f32, (1000, 1000)), (i32, (100000,)), (f64, (1000, 100))):
        add(group, "Sort", lambda x: tf.sort(x), Array(dtype, shape, -1000000, 1000000))
    add(group, "ArgSort", lambda x: tf.argsort(x), Array(f32, (1000, 1000)))
    for name in ("LowerBound", "UpperBound"):
        op = getattr(raw, name)
        add(
            group,
            name,
            lambda s, v, op=op: op(sorted_inputs=s, values=v),
            Array(f32, (1, 10000), 0, 1, lambda r, a: np.sort(a)),
            Array(f32, (1, 100000), 0, 1),
        )
    add(
        group,
        "SearchSorted",
        lambda s, v: tf.searchsorted(s, v),
        Array(f32, (64, 100), 0, 1, lambda r, a: np.sort(a)),
        Array(f32, (64, 1000), 0, 1),
    )
    add(
        group,
        "SearchSorted",
        lambda s, v: tf.searchsorted(s, v),
        Array(i32, (1000000,), 0, 1 << 30, lambda r, a: np.sort(a)),
        Array(i32, (100000,), 0, 1 << 30),
    )
    add(
        group,
        "InTopKV2",
        lambda p, t: raw.InTopKV2(predictions=p, targets=t, k=5),
        Array(f32, (1000, 1000)),
        integers((1000,), 1000),
    )
    add(
        group,
        "DynamicPartition",
        lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=4)[1],
        Array(f32, (100000, 16)),
        integers((100000,), 4),
    )
    add(
        group,
        "DynamicPartition",
        lambda x, p: raw.DynamicPartition(data=x, partitions=p, num_partitions=4)[1],
        Array(f32, (MANY,)),
        integers((MANY,), 4),
    )
    add(
        group,
        "DynamicStitch",
        lambda i, x: raw.DynamicStitch(indices=[i], data=[x]),
        Array(i32, (100000,), 0, 9, lambda r, a: r.permutation(len(a))),
        Array(f32, (100000, 16)),
    )
    add(
        group,
        "ReverseSequence",
        lambda x, n: raw.ReverseSequence(input=x, seq_lengths=n, seq_dim=1, batch_dim=0),
        Array(f32, (64, 100, 128)),
        integers((64,), 100),
    )
    add(group, "SequenceMask", lambda n: tf.sequence_mask(n, 512), integers((256,), 512))
    add(
        group,
        "ExtractImagePatches",
        lambda x: raw.ExtractImagePatches(
            images=x, ksizes=[1, 3, 3, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"
        ),
        Array(f32, (8, 56, 56, 32)),
    )
    add(
        group,
        "InvertPermutation",
        lambda x: raw.InvertPermutation(x=x),
        Array(i32, (100000,), 0, 9, lambda r, a: r.permutation(len(a))),
    )
    add(
        group,
        "Range",
        lambda n: raw.Range(start=tf.constant(0), limit=n, delta=tf.constant(1)),
        Array(i32, (), MANY, MANY + 1),
    )
    add(group, "Fill", lambda n: raw.Fill(dims=n, value=1.0), Array(i32, (2,), 1000, 1001))
    add(group, "LinSpace", lambda n: raw.LinSpace(start=0.0, stop=1.0, num=n), Array(i32, (), MANY, MANY + 1))
    add(group, "Reshape", lambda x: raw.Reshape(tensor=x, shape=[-1]), Array(f32, (1000, 1000)))
    add(group, "Diag", lambda x: raw.Diag(diagonal=x), Array(f32, (1000,)))
    add(group, "Bitcast", lambda x: raw.Bitcast(input=x, type=tf.int32), Array(f32, (1000, 1000)))
    add(group, "CheckNumerics", lambda x: raw.CheckNumerics(tensor=x, message="x"), Array(f32, (MANY,)))


def add_products():
    group = "products"
    for dtype, m, k, n in (
        (f32, 64, 64, 64),
        (f32, 256, 256, 256),
        (f32, 1024, 1024, 1024),
        (f32, 1, 1024, 1024),
        (f32, 8, 2048, 1000),
        (f32, 128, 768, 3072),
        (f32, 1000, 3, 1000),
        (f32, 1000, 1000, 3),
        (f32, 3, 100000, 3),
        (f32, 37, 41, 43),
        (f32, 4, 4, 4),
        (f32, 100000, 4, 4),
        (f32, 10000, 64, 1),
        (f32, 1, 10000, 1),
        (f32, 50000, 16, 32),
        (f64, 256, 256, 256),
        (f64, 100, 33, 77),
        (f64, 1, 1000, 1000),
        (c64, 128, 128, 128),
        (c64, 16, 16, 16),
        (c128, 100, 100, 100),
        (i32, 128, 128, 128),
        (i32, 1000, 64, 64),
        (i32, 1, 1000, 1000),
        (i64, 100, 100, 100),
        (f16, 128, 128, 128),
        (bf16, 128, 128, 128),
        (f16, 1, 1000, 1000),
        (bf16, 128, 768, 768),
    ):
        add(group, "MatMul", lambda x, y: raw.MatMul(a=x, b=y), Array(dtype, (m, k)), Array(dtype, (k, n)))
    add(
        group,
        "MatMul transposed a",
        lambda x, y: raw.MatMul(a=x, b=y, transpose_a=True),
        Array(f32, (512, 256)),
        Array(f32, (512, 128)),
    )
    add(
        group,
        "MatMul transposed b",
        lambda x, y: raw.MatMul(a=x, b=y, transpose_b=True),
        Array(f32, (256, 512)),
        Array(f32, (128, 512)),
    )
    add(
        group,
        "MatMul transposed b",
        lambda x, y: raw.MatMul(a=x, b=y, transpose_b=True),
        Array(i32, (100, 64)),
        Array(i32, (100, 64)),
    )
    add(
        group,
        "MatMul transposed a",
        lambda x, y: raw.MatMul(a=x, b=y, transpose_a=True),
        Array(f64, (65, 100)),
        Array(f64, (65, 101)),
    )
    for dtype, x, y in (
        (f32, (96, 128, 64), (96, 64, 128)),
        (f32, (96, 128, 128), (96, 128, 64)),
        (f32, (10000, 8, 8), (10000, 8, 8)),
        (f32, (10000, 3, 3), (10000, 3, 3)),
        (f32, (10000, 4, 4), (10000, 4, 4)),
        (f32, (10000, 4, 4), (10000, 4, 1)),
        (f32, (1000, 16, 16), (1000, 16, 16)),
        (f32, (1000, 5, 7), (1000, 7, 9)),
        (f32, (100, 32, 32), (100, 32, 32)),
        (f32, (64, 1, 64), (64, 64, 128)),
        (f32, (1000, 1, 64), (1000, 64, 1)),
        (f32, (1000, 8, 8), (8, 8)),
        (f32, (8, 128, 64), (64, 64)),
        (f64, (1000, 8, 8), (1000, 8, 8)),
        (f64, (1000, 3, 3), (1000, 3, 3)),
        (c64, (1000, 8, 8), (1000, 8, 8)),
        (c64, (100, 16, 16), (100, 16, 16)),
        (c128, (1000, 4, 4), (1000, 4, 4)),
        (i32, (1000, 8, 8), (1000, 8, 8)),
        (i32, (10, 64, 64), (10, 64, 64)),
        (i64, (100, 16, 16), (100, 16, 16)),
        (f16, (100, 16, 16), (100, 16, 16)),
        (bf16, (100, 32, 32), (100, 32, 32)),
        (f32, (2, 3, 4), (2, 4, 5)),
    ):
        add(group, "BatchMatMulV2", lambda x, y: raw.BatchMatMulV2(x=x, y=y), Array(dtype, x), Array(dtype, y))
    add(
        group,
        "BatchMatMulV2 adjoint y",
        lambda x, y: raw.BatchMatMulV2(x=x, y=y, adj_y=True),
        Array(f32, (96, 128, 64)),
        Array(f32, (96, 128, 64)),
    )
    add(
        group,
        "BatchMatMulV2 adjoint x",
        lambda x, y: raw.BatchMatMulV2(x=x, y=y, adj_x=True),
        Array(f32, (1000, 8, 8)),
        Array(f32, (1000, 8, 8)),
    )
    add(
        group,
        "BatchMatMulV2 adjoint y",
        lambda x, y: raw.BatchMatMulV2(x=x, y=y, adj_y=True),
        Array(c64, (100, 12, 12)),
        Array(c64, (100, 12, 12)),
    )
    for eq, x, y in (
        ("bhqd,bhkd->bhqk", (8, 12, 64, 64), (8, 12, 64, 64)),
        ("bqhd,bkhd->bhqk", (4, 64, 12, 64), (4, 64, 12, 64)),
        ("abc,cd->abd", (8, 128, 256), (256, 128)),
        ("ij,ij->i", (1000, 500), (1000, 500)),
        ("ij,jk->ki", (100, 200), (200, 300)),
        ("bij,bjk->bik", (1000, 6, 6), (1000, 6, 6)),
    ):
        add(
            group,
            f"Einsum {eq}",
            lambda x, y, eq=eq: raw.Einsum(inputs=[x, y], equation=eq),
            Array(f32, x),
            Array(f32, y),
        )
    add(group, "Cross", lambda x, y: raw.Cross(a=x, b=y), Array(f32, (100000, 3)), Array(f32, (100000, 3)))

    def sparse(n, rows, columns):
        def make(random, _):
            places = np.unique(random.integers(0, rows * columns, n))
            return np.stack([places // columns, places % columns], 1)

        return make

    group = "sparse"
    entries = Array(i64, (100000, 2), 0, 9, sparse(100000, 10**5, 10**5))
    for columns in (1, 8, 64):
        for adjoint in (False, True):
            add(
                group,
                "SparseTensorDenseMatMul" + " adjoint" * adjoint,
                lambda i, b, adjoint=adjoint: raw.SparseTensorDenseMatMul(
                    a_indices=i, a_values=tf.cast(i[:, 0], tf.float32), a_shape=[10**5, 10**5], b=b, adjoint_a=adjoint
                ),
                entries,
                Array(f32, (10**5, columns)),
            )
    entries = Array(i64, (50000, 2), 0, 9, sparse(50000, 1000, 1000))
    values = lambda i: tf.cast(i[:, 1], tf.float32)  # noqa: E731
    add(
        group,
        "SparseToDense",
        lambda i: raw.SparseToDense(
            sparse_indices=i,
            output_shape=tf.constant([1000, 1000], tf.int64),
            sparse_values=values(i),
            default_value=0.0,
        ),
        entries,
    )
    add(
        group,
        "SparseReduceSum",
        lambda i: raw.SparseReduceSum(
            input_indices=i, input_values=values(i), input_shape=[1000, 1000], reduction_axes=[1]
        ),
        entries,
    )
    add(
        group,
        "SparseAdd",
        lambda i: raw.SparseAdd(
            a_indices=i,
            a_values=values(i),
            a_shape=[1000, 1000],
            b_indices=i,
            b_values=values(i),
            b_shape=[1000, 1000],
            thresh=0.0,
        )[1],
        entries,
    )
    add(
        group,
        "SparseReorder",
        lambda i: raw.SparseReorder(input_indices=i[::-1], input_values=values(i), input_shape=[1000, 1000])[1],
        entries,
    )
    add(
        group,
        "SparseSoftmax",
        lambda i: raw.SparseSoftmax(sp_indices=i, sp_values=values(i), sp_shape=[1000, 1000]),
        entries,
    )
    add(
        group,
        "SparseConcat",
        lambda i: raw.SparseConcat(
            indices=[i, i], values=[values(i)] * 2, shapes=[tf.constant([1000, 1000], tf.int64)] * 2, concat_dim=1
        )[1],
        entries,
    )
    add(
        group,
        "SparseFillEmptyRows",
        lambda i: raw.SparseFillEmptyRows(indices=i, values=values(i), dense_shape=[1000, 1000], default_value=0.0)[1],
        entries,
    )
    add(
        group,
        "SparseDenseCwiseMul",
        lambda i, x: raw.SparseDenseCwiseMul(sp_indices=i, sp_values=values(i), sp_shape=[1000, 1000], dense=x),
        entries,
        Array(f32, (1000, 1000)),
    )


def add_linalg():
    group = "linalg"

    def definite(random, a):
        return a @ np.swapaxes(a, -1, -2).conj() + a.shape[-1] * np.eye(a.shape[-1])

    def regular(random, a):
        return a + 2 * a.shape[-1] * np.eye(a.shape[-1])

    one = lambda f: lambda x: f(x)  # noqa: E731
    for name, f, make, shapes in (
        (
            "Cholesky",
            lambda x: raw.Cholesky(input=x),
            definite,
            [(f32, (256, 256)), (f32, (500, 8, 8)), (f64, (100, 100)), (f32, (1000, 3, 3)), (c64, (64, 64))],
        ),
        (
            "MatrixInverse",
            lambda x: raw.MatrixInverse(input=x),
            regular,
            [(f32, (256, 256)), (f32, (500, 8, 8)), (f32, (1000, 3, 3)), (f64, (100, 100)), (c64, (50, 50))],
        ),
        (
            "MatrixDeterminant",
            lambda x: raw.MatrixDeterminant(input=x),
            regular,
            [(f32, (100, 100)), (f32, (1000, 4, 4)), (f64, (500, 3, 3))],
        ),
        ("LogMatrixDeterminant", lambda x: raw.LogMatrixDeterminant(input=x)[1], regular, [(f32, (100, 16, 16))]),
        (
            "Qr",
            lambda x: raw.Qr(input=x)[1],
            None,
            [(f32, (128, 128)), (f32, (500, 8, 8)), (f64, (200, 50)), (f32, (1000, 4, 3))],
        ),
        (
            "Svd",
            lambda x: raw.Svd(input=x)[0],
            None,
            [(f32, (128, 128)), (f32, (500, 4, 4)), (f64, (100, 50)), (f32, (100, 16, 8)), (c64, (32, 32))],
        ),
        (
            "SelfAdjointEigV2",
            lambda x: raw.SelfAdjointEigV2(input=x)[0],
            definite,
            [(f32, (128, 128)), (f32, (1000, 3, 3)), (f64, (100, 100)), (f32, (100, 16, 16)), (c64, (32, 32))],
        ),
        ("Lu", lambda x: raw.Lu(input=x)[0], regular, [(f32, (256, 256)), (f32, (500, 8, 8)), (f64, (100, 100))]),
        ("MatrixExponential", lambda x: tf.linalg.expm(x), None, [(f32, (64, 64)), (f32, (100, 4, 4))]),
        ("MatrixLogarithm", lambda x: raw.MatrixLogarithm(input=x), definite, [(c64, (16, 16))]),
        ("MatrixSquareRoot", lambda x: raw.MatrixSquareRoot(input=x), definite, [(f32, (32, 32))]),
        ("Eig", lambda x: raw.Eig(input=x, Tout=tf.complex64)[0], None, [(f32, (50, 50))]),
    ):
        for dtype, shape in shapes:
            add(group, name, one(f), Array(dtype, shape, -1, 1, make))
    for dtype, n, k, batch in (
        (f32, 256, 1, ()),
        (f32, 256, 64, ()),
        (f32, 8, 1, (500,)),
        (f32, 3, 3, (1000,)),
        (f64, 100, 10, ()),
        (c64, 32, 4, ()),
    ):
        a, b = Array(dtype, (*batch, n, n), -1, 1, regular), Array(dtype, (*batch, n, k), -1, 1)
        add(group, "MatrixSolve", lambda x, y: raw.MatrixSolve(matrix=x, rhs=y), a, b)
        add(group, "MatrixTriangularSolve", lambda x, y: raw.MatrixTriangularSolve(matrix=x, rhs=y), a, b)
    add(
        group,
        "MatrixSolveLs",
        lambda x, y: raw.MatrixSolveLs(matrix=x, rhs=y, l2_regularizer=tf.constant(0.1, tf.float64), fast=True),
        Array(f32, (500, 20)),
        Array(f32, (500, 2)),
    )
    add(
        group,
        "CholeskyGrad",
        lambda x: tf.gradients(tf.linalg.cholesky(x), x)[0],
        Array(f32, (64, 64), -1, 1, definite),
    )
    add(
        group,
        "TridiagonalSolve",
        lambda x, y: raw.TridiagonalSolve(diagonals=x, rhs=y),
        Array(f32, (100, 3, 100), 1, 2, lambda r, a: a + np.array([0, 9, 0])[:, None]),
        Array(f32, (100, 100, 1)),
    )
    group = "fourier"
    for name, dtype, shape in (
        ("FFT", c64, (1024,)),
        ("FFT", c64, (100, 1024)),
        ("FFT", c64, (100, 1000)),
        ("FFT", c64, (1000, 16)),
        ("FFT", c64, (10, 997)),
        ("FFT", c64, (1 << 16,)),
        ("FFT", c128, (100, 512)),
        ("IFFT", c64, (100, 1024)),
        ("FFT2D", c64, (256, 256)),
        ("FFT2D", c64, (10, 100, 100)),
        ("FFT2D", c64, (32, 28, 28)),
        ("IFFT2D", c64, (128, 128)),
        ("FFT3D", c64, (32, 32, 32)),
        ("FFT3D", c64, (30, 20, 18)),
        ("FFT", c64, (8,)),
        ("FFT", c64, (100, 243)),
        ("FFT", c64, (100, 441)),
        ("IFFT", c128, (10, 1009)),
        ("FFT", c64, (1, 100000)),
    ):
        op = getattr(raw, name)
        add(group, name, lambda x, op=op: op(input=x), Array(dtype, shape))
    for name, dtype, shape, n in (
        ("RFFT", f32, (100, 1000), [1000]),
        ("RFFT", f32, (100, 1024), [1024]),
        ("RFFT", f32, (1000, 512), [512]),
        ("RFFT", f32, (1000, 600), [512]),
        ("RFFT", f32, (100, 480), [480]),
        ("RFFT2D", f32, (256, 256), [256, 256]),
        ("RFFT2D", f32, (10, 100, 100), [100, 100]),
        ("IRFFT", c64, (100, 513), [1024]),
        ("IRFFT", c64, (100, 501), [1000]),
        ("IRFFT2D", c64, (10, 64, 33), [64, 64]),
        ("RFFT", f32, (1000, 31), [31]),
        ("RFFT3D", f32, (16, 32, 32), [16, 32, 32]),
        ("RFFT", f32, (16,), [16]),
    ):
        op = getattr(raw, name)
        add(group, f"{name} {n}", lambda x, op=op, n=n: op(input=x, fft_length=n), Array(dtype, shape))
    add(group, "STFT", lambda x: tf.signal.stft(x, 400, 160, 512), Array(f32, (16000,)))
    add(
        group,
        "AudioSpectrogram",
        lambda x: raw.AudioSpectrogram(input=x, window_size=400, stride=160),
        Array(f32, (16000, 1), -1, 1),
    )


def add_networks():
    group = "networks"
    for dtype, x, w, stride, padding in (
        (f32, (1, 224, 224, 3), (7, 7, 3, 64), 2, "SAME"),
        (f32, (1, 56, 56, 64), (3, 3, 64, 64), 1, "SAME"),
        (f32, (8, 56, 56, 64), (1, 1, 64, 256), 1, "SAME"),
        (f32, (8, 14, 14, 256), (3, 3, 256, 256), 1, "SAME"),
        (f32, (1, 7, 7, 512), (3, 3, 512, 512), 1, "SAME"),
        (f32, (64, 28, 28, 1), (3, 3, 1, 32), 1, "VALID"),
        (f32, (8, 17, 19, 13), (3, 5, 13, 11), 2, "VALID"),
        (f32, (1, 5, 5, 3), (3, 3, 3, 4), 1, "SAME"),
        (f64, (1, 28, 28, 16), (3, 3, 16, 16), 1, "SAME"),
        (f16, (1, 28, 28, 32), (3, 3, 32, 32), 1, "SAME"),
        (f32, (1, 1, 1000, 64), (1, 9, 64, 64), 1, "SAME"),
    ):
        add(
            group,
            f"Conv2D / {stride}",
            lambda x, w, s=stride, p=padding: raw.Conv2D(input=x, filter=w, strides=[1, s, s, 1], padding=p),
            Array(dtype, x),
            Array(dtype, w),
        )
    for x, w, stride in (
        ((1, 112, 112, 32), (3, 3, 32, 1), 1),
        ((8, 56, 56, 96), (3, 3, 96, 1), 2),
        ((8, 14, 14, 256), (5, 5, 256, 1), 1),
        ((8, 17, 17, 9), (3, 3, 9, 2), 1),
    ):
        add(
            group,
            f"DepthwiseConv2dNative / {stride}",
            lambda x, w, s=stride: raw.DepthwiseConv2dNative(input=x, filter=w, strides=[1, s, s, 1], padding="SAME"),
            Array(f32, x),
            Array(f32, w),
        )
    add(
        group,
        "Conv2DBackpropInput",
        lambda w, y: raw.Conv2DBackpropInput(
            input_sizes=[8, 28, 28, 64], filter=w, out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"
        ),
        Array(f32, (3, 3, 64, 64)),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "Conv2DBackpropFilter",
        lambda x, y: raw.Conv2DBackpropFilter(
            input=x, filter_sizes=[3, 3, 64, 64], out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"
        ),
        Array(f32, (8, 28, 28, 64)),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "DepthwiseConv2dNativeBackpropInput",
        lambda w, y: raw.DepthwiseConv2dNativeBackpropInput(
            input_sizes=[8, 28, 28, 64], filter=w, out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"
        ),
        Array(f32, (3, 3, 64, 1)),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "DepthwiseConv2dNativeBackpropFilter",
        lambda x, y: raw.DepthwiseConv2dNativeBackpropFilter(
            input=x, filter_sizes=[3, 3, 64, 1], out_backprop=y, strides=[1, 1, 1, 1], padding="SAME"
        ),
        Array(f32, (8, 28, 28, 64)),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "Conv3D",
        lambda x, w: raw.Conv3D(input=x, filter=w, strides=[1, 1, 1, 1, 1], padding="SAME"),
        Array(f32, (1, 16, 28, 28, 16)),
        Array(f32, (3, 3, 3, 16, 32)),
    )
    for name, dtype, x, k, stride in (
        ("MaxPool", f32, (8, 112, 112, 64), 3, 2),
        ("AvgPool", f32, (8, 56, 56, 64), 2, 2),
        ("MaxPool", f32, (8, 55, 55, 7), 3, 2),
        ("AvgPool", f32, (8, 35, 35, 192), 3, 1),
        ("AvgPool", f32, (8, 7, 7, 2048), 7, 1),
        ("MaxPool", f16, (8, 56, 56, 64), 2, 2),
        ("MaxPool", f32, (64, 28, 28, 1), 2, 2),
        ("AvgPool", f64, (8, 28, 28, 33), 2, 2),
    ):
        op = getattr(raw, name)
        key = "input" if name == "MaxPool" else "value"
        add(
            group,
            f"{name} {k} / {stride}",
            lambda x, op=op, k=k, s=stride, key=key: op(
                **{key: x}, ksize=[1, k, k, 1], strides=[1, s, s, 1], padding="SAME"
            ),
            Array(dtype, x),
        )
    add(
        group,
        "MaxPoolGrad",
        lambda x, y: raw.MaxPoolGrad(
            orig_input=x, orig_output=y, grad=y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
        ),
        Array(f32, (8, 56, 56, 64)),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "AvgPoolGrad",
        lambda y: raw.AvgPoolGrad(
            orig_input_shape=[8, 56, 56, 64], grad=y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
        ),
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "MaxPoolWithArgmax",
        lambda x: raw.MaxPoolWithArgmax(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")[1],
        Array(f32, (8, 56, 56, 32)),
    )
    add(
        group,
        "MaxPool3D",
        lambda x: raw.MaxPool3D(input=x, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME"),
        Array(f32, (2, 16, 56, 56, 16)),
    )
    for name in ("Softmax", "LogSoftmax"):
        op = getattr(raw, name)
        for dtype, shape in (
            (f32, (1024, 1000)),
            (f32, (8 * 12 * 128, 128)),
            (f32, (100000, 10)),
            (f32, (10000, 3)),
            (f32, (1, 50257)),
            (f64, (1000, 100)),
            (f16, (1000, 1000)),
            (bf16, (1000, 100)),
            (f32, (1, 10)),
        ):
            add(group, name, lambda x, op=op: op(logits=x), Array(dtype, shape))
    add(
        group,
        "SoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SoftmaxCrossEntropyWithLogits(features=x, labels=y)[1],
        Array(f32, (1024, 1000)),
        Array(f32, (1024, 1000), 0, 1),
    )
    add(
        group,
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)[0],
        Array(f32, (1024, 1000)),
        integers((1024,), 1000),
    )
    add(
        group,
        "SparseSoftmaxCrossEntropyWithLogits",
        lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)[1],
        Array(f32, (4096, 10)),
        integers((4096,), 10),
    )
    add(
        group,
        "SigmoidCrossEntropy",
        lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x),
        Array(f32, (1000, 1000)),
        Array(f32, (1000, 1000), 0, 1),
    )
    add(group, "LRN", lambda x: raw.LRN(input=x), Array(f32, (8, 28, 28, 192)))
    add(
        group,
        "LRN radius 2",
        lambda x: raw.LRN(input=x, depth_radius=2, bias=1.0, alpha=1e-4, beta=0.75),
        Array(f32, (8, 55, 55, 96)),
    )
    add(
        group,
        "LRNGrad",
        lambda x, y: raw.LRNGrad(input_grads=y, input_image=x, output_image=x, depth_radius=2),
        Array(f32, (2, 28, 28, 96)),
        Array(f32, (2, 28, 28, 96)),
    )
    for dtype, shape in ((f32, (8, 56, 56, 64)), (f32, (64, 7, 7, 512)), (f32, (8, 33, 35, 7))):
        c = Array(dtype, (shape[-1],), 0.1, 2)
        for training in (False, True):
            add(
                group,
                f"FusedBatchNormV3 training {training}",
                lambda x, s, o, m, v, t=training: raw.FusedBatchNormV3(
                    x=x,
                    scale=s,
                    offset=o,
                    mean=m if not t else tf.zeros([0]),
                    variance=v if not t else tf.zeros([0]),
                    is_training=t,
                )[0],
                Array(dtype, shape),
                c,
                c,
                c,
                c,
            )
    c = Array(f32, (64,), 0.1, 2)
    add(
        group,
        "FusedBatchNormGradV3",
        lambda y, x, s, m, v: raw.FusedBatchNormGradV3(
            y_backprop=y, x=x, scale=s, reserve_space_1=m, reserve_space_2=v, reserve_space_3=tf.zeros([0])
        )[0],
        Array(f32, (8, 56, 56, 64)),
        Array(f32, (8, 56, 56, 64)),
        c,
        c,
        c,
    )

    def layer_norm(x, scale, offset):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-6) * scale + offset

    for shape in ((8, 128, 768), (64, 49, 96), (1, 1, 768)):
        add(group, "LayerNorm", layer_norm, Array(f32, shape), Array(f32, shape[-1:]), Array(f32, shape[-1:]))
    for dtype, shape in (
        (f32, (8, 56, 56, 64)),
        (f32, (1024, 1000)),
        (f16, (8, 28, 28, 64)),
        (f32, (8, 224, 224, 3)),
        (f32, (1, 10)),
        (i32, (1000, 100)),
    ):
        add(group, "BiasAdd", lambda x, b: raw.BiasAdd(value=x, bias=b), Array(dtype, shape), Array(dtype, shape[-1:]))
    add(
        group,
        "BiasAdd NCHW",
        lambda x, b: raw.BiasAdd(value=x, bias=b, data_format="NCHW"),
        Array(f32, (8, 64, 56, 56)),
        Array(f32, (64,)),
    )
    for shape in ((8, 56, 56, 64), (1024, 1000), (100000, 3)):
        add(group, "BiasAddGrad", lambda x: raw.BiasAddGrad(out_backprop=x), Array(f32, shape))
    for t, b, n in ((16, 1, 256), (16, 32, 128)):
        add(
            group,
            "BlockLSTMV2",
            lambda x, w, bias, t=t, b=b, n=n: raw.BlockLSTMV2(
                seq_len_max=tf.constant(t, tf.int64),
                x=x,
                cs_prev=tf.zeros([b, n]),
                h_prev=tf.zeros([b, n]),
                w=w,
                wci=tf.zeros([n]),
                wcf=tf.zeros([n]),
                wco=tf.zeros([n]),
                b=bias,
            )[6],
            Array(f32, (t, b, n)),
            Array(f32, (2 * n, 4 * n), -0.1, 0.1),
            Array(f32, (4 * n,)),
        )
    add(
        group,
        "GRUBlockCell",
        lambda x, h, a, b: raw.GRUBlockCell(x=x, h_prev=h, w_ru=a, w_c=b, b_ru=tf.zeros([256]), b_c=tf.zeros([128]))[3],
        Array(f32, (32, 128)),
        Array(f32, (32, 128)),
        Array(f32, (256, 256), -0.1, 0.1),
        Array(f32, (256, 128), -0.1, 0.1),
    )
    add(
        group,
        "Attention",
        lambda q, k, v: tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.125), v),
        *[Array(f32, (4, 12, 128, 64), -1, 1)] * 3,
    )
    add(
        group,
        "CTCLoss",
        lambda x: raw.CTCLoss(
            inputs=x,
            labels_indices=np.stack([np.arange(80) // 10, np.arange(80) % 10], 1).astype(i64),
            labels_values=np.arange(80, dtype=i32) % 27,
            sequence_length=[50] * 8,
        )[0],
        Array(f32, (50, 8, 28)),
    )
    add(
        group,
        "CTCGreedyDecoder",
        lambda x: raw.CTCGreedyDecoder(inputs=x, sequence_length=[50] * 8)[1],
        Array(f32, (50, 8, 28)),
    )
    add(
        group,
        "Dilation2D",
        lambda x, w: raw.Dilation2D(input=x, filter=w, strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="SAME"),
        Array(f32, (2, 56, 56, 16)),
        Array(f32, (3, 3, 16)),
    )
    add(
        group,
        "DropoutMask",
        lambda x: x * tf.cast(raw.RandomUniform(shape=tf.shape(x), dtype=tf.float32) >= 0.1, tf.float32) * 1.1,
        Array(f32, (8, 128, 768)),
    )
    add(
        group,
        "FractionalAvgPool",
        lambda x: raw.FractionalAvgPool(
            value=x, pooling_ratio=[1.0, 1.44, 1.73, 1.0], deterministic=True, seed=1, seed2=1
        )[0],
        Array(f32, (2, 56, 56, 16)),
    )
    group = "optimizers"
    for label, f in (
        (
            "ResourceApplyGradientDescent",
            lambda v, x: raw.ResourceApplyGradientDescent(var=v[0].handle, alpha=0.01, delta=x),
        ),
        (
            "ResourceApplyMomentum",
            lambda v, x: raw.ResourceApplyMomentum(var=v[0].handle, accum=v[1].handle, lr=0.01, grad=x, momentum=0.9),
        ),
        (
            "ResourceApplyAdam",
            lambda v, x: raw.ResourceApplyAdam(
                var=v[0].handle,
                m=v[1].handle,
                v=v[2].handle,
                beta1_power=0.9,
                beta2_power=0.999,
                lr=0.001,
                beta1=0.9,
                beta2=0.999,
                epsilon=1e-7,
                grad=x,
            ),
        ),
        (
            "ResourceApplyRMSProp",
            lambda v, x: raw.ResourceApplyRMSProp(
                var=v[0].handle, ms=v[1].handle, mom=v[2].handle, lr=0.01, rho=0.9, momentum=0.9, epsilon=1e-7, grad=x
            ),
        ),
        (
            "ResourceApplyAdagradV2",
            lambda v, x: raw.ResourceApplyAdagradV2(var=v[0].handle, accum=v[1].handle, lr=0.01, epsilon=1e-7, grad=x),
        ),
        ("AssignAddVariableOp", lambda v, x: raw.AssignAddVariableOp(resource=v[0].handle, value=x)),
    ):
        for shape in ((MANY,), (64, 10)):

            def build(x, f=f, shape=shape):
                v = [
                    tf.compat.v1.get_variable(f"v{i}", initializer=tf.ones(shape), use_resource=True) for i in range(3)
                ]
                tf.group(*[variable.initializer for variable in v], name="init")
                return f(v, x)

            add(group, label, build, Array(f32, shape))
            CASES[-1].init = "init"


def add_quantization():
    group = "quantization"
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for dtype in (tf.quint8, tf.qint8):
            add(
                group,
                f"QuantizeV2 {mode} {dtype.name}",
                lambda x, m=mode, t=dtype: raw.QuantizeV2(input=x, min_range=-3.0, max_range=3.0, T=t, mode=m)[0],
                Array(f32, (8, 56, 56, 64)),
            )
    add(
        group,
        "QuantizeV2 per channel",
        lambda x: raw.QuantizeV2(
            input=x, min_range=[-3.0] * 64, max_range=[3.0] * 64, T=tf.qint8, mode="SCALED", axis=3
        )[0],
        Array(f32, (8, 28, 28, 64)),
    )
    add(
        group,
        "QuantizeV2 small",
        lambda x: raw.QuantizeV2(input=x, min_range=-3.0, max_range=3.0, T=tf.quint8)[0],
        Array(f32, (1, 1000)),
    )
    add(
        group,
        "QuantizeV2 qint32",
        lambda x: raw.QuantizeV2(input=x, min_range=-3.0, max_range=3.0, T=tf.qint32)[0],
        Array(f32, (100, 1000)),
    )
    for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
        for dtype in (tf.quint8, tf.qint8):
            add(
                group,
                f"Dequantize {mode} {dtype.name}",
                lambda x, m=mode, t=dtype: raw.Dequantize(
                    input=raw.Bitcast(input=x, type=t), min_range=-3.0, max_range=3.0, mode=m
                ),
                Array(u8, (8, 56, 56, 64), 0, 256),
            )
    add(
        group,
        "QuantizeAndDequantizeV2",
        lambda x: raw.QuantizeAndDequantizeV2(input=x, input_min=-3.0, input_max=3.0, range_given=True),
        Array(f32, (8, 56, 56, 64)),
    )
    add(
        group,
        "QuantizeAndDequantizeV4",
        lambda x: raw.QuantizeAndDequantizeV4(input=x, input_min=-3.0, input_max=3.0),
        Array(f32, (1000, 1001)),
    )
    add(
        group,
        "QuantizeAndDequantizeV3",
        lambda x: raw.QuantizeAndDequantizeV3(input=x, input_min=0.0, input_max=0.0, num_bits=8, range_given=False),
        Array(f32, (1000, 1001)),
    )
    for shape in ((8, 56, 56, 64), (1000, 33)):
        add(
            group,
            "FakeQuantWithMinMaxVars",
            lambda x: raw.FakeQuantWithMinMaxVars(inputs=x, min=-2.0, max=2.0),
            Array(f32, shape),
        )
        c = Array(f32, shape[-1:], 1, 2)
        add(
            group,
            "FakeQuantWithMinMaxVarsPerChannel",
            lambda x, c: raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=-c, max=c),
            Array(f32, shape),
            c,
        )
        add(
            group,
            "FakeQuantWithMinMaxVarsGradient",
            lambda g, x: raw.FakeQuantWithMinMaxVarsGradient(gradients=g, inputs=x, min=-2.0, max=2.0)[1],
            Array(f32, shape),
            Array(f32, shape),
        )
        add(
            group,
            "FakeQuantWithMinMaxVarsPerChannelGradient",
            lambda g, x, c: raw.FakeQuantWithMinMaxVarsPerChannelGradient(gradients=g, inputs=x, min=-c, max=c)[1],
            Array(f32, shape),
            Array(f32, shape),
            c,
        )
    add(group, "FakeQuantWithMinMaxArgs", lambda x: raw.FakeQuantWithMinMaxArgs(inputs=x), Array(f32, (MANY,), -9, 9))

    def quantized(x, t=tf.quint8):
        return raw.Bitcast(input=x, type=t)

    for m, k, n in ((128, 128, 128), (1, 1024, 1000), (256, 64, 17)):
        add(
            group,
            "QuantizedMatMul",
            lambda x, y: raw.QuantizedMatMul(
                a=quantized(x), b=quantized(y), min_a=0.0, max_a=1.0, min_b=0.0, max_b=1.0, Toutput=tf.qint32
            )[0],
            Array(u8, (m, k), 0, 255),
            Array(u8, (k, n), 0, 255),
        )
    add(
        group,
        "QuantizedConv2D",
        lambda x, y: raw.QuantizedConv2D(
            input=quantized(x),
            filter=quantized(y),
            min_input=0.0,
            max_input=1.0,
            min_filter=0.0,
            max_filter=1.0,
            strides=[1, 1, 1, 1],
            padding="SAME",
        )[0],
        Array(u8, (1, 28, 28, 32), 0, 255),
        Array(u8, (3, 3, 32, 32), 0, 255),
    )
    add(
        group,
        "QuantizedAdd",
        lambda x, y: raw.QuantizedAdd(
            x=quantized(x), y=quantized(y), min_x=0.0, max_x=1.0, min_y=0.0, max_y=1.0, Toutput=tf.qint32
        )[0],
        Array(u8, (1000, 1000), 0, 255),
        Array(u8, (1000, 1000), 0, 255),
    )
    add(
        group,
        "QuantizedRelu",
        lambda x: raw.QuantizedRelu(features=quantized(x), min_features=-1.0, max_features=1.0, out_type=tf.quint8)[0],
        Array(u8, (1000, 1000), 0, 255),
    )
    add(
        group,
        "QuantizedMaxPool",
        lambda x: raw.QuantizedMaxPool(
            input=quantized(x), min_input=0.0, max_input=1.0, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
        )[0],
        Array(u8, (8, 56, 56, 64), 0, 255),
    )
    add(
        group,
        "QuantizedBiasAdd",
        lambda x, y: raw.QuantizedBiasAdd(
            input=quantized(x),
            bias=quantized(y),
            min_input=0.0,
            max_input=1.0,
            min_bias=0.0,
            max_bias=1.0,
            out_type=tf.qint32,
        )[0],
        Array(u8, (1000, 256), 0, 255),
        Array(u8, (256,), 0, 255),
    )
    add(
        group,
        "Requantize",
        lambda x: raw.Requantize(
            input=raw.Bitcast(input=x, type=tf.qint32),
            input_min=-1.0,
            input_max=1.0,
            requested_output_min=0.0,
            requested_output_max=0.5,
            out_type=tf.quint8,
        )[0],
        Array(i32, (1000, 1000), -(1 << 30), 1 << 30),
    )
    add(
        group,
        "RequantizationRange",
        lambda x: raw.RequantizationRange(input=raw.Bitcast(input=x, type=tf.qint32), input_min=-1.0, input_max=1.0)[0],
        Array(i32, (1000, 1000), -(1 << 30), 1 << 30),
    )


def add_images():
    group = "images"
    for name, shape, size in (
        ("ResizeBilinear", (8, 224, 224, 3), 112),
        ("ResizeBilinear", (8, 112, 112, 3), 224),
        ("ResizeBilinear", (8, 32, 32, 64), 64),
        ("ResizeNearestNeighbor", (8, 112, 112, 3), 224),
        ("ResizeNearestNeighbor", (8, 28, 28, 64), 56),
        ("ResizeBicubic", (8, 112, 112, 3), 224),
        ("ResizeBicubic", (2, 56, 56, 17), 100),
        ("ResizeArea", (8, 224, 224, 3), 100),
    ):
        op = getattr(raw, name)
        more = {} if name == "ResizeArea" else {"half_pixel_centers": True}
        add(
            group,
            f"{name} {size}",
            lambda x, op=op, size=size, more=more: op(images=x, size=[size, size], **more),
            Array(f32, shape, 0, 1),
        )
    add(
        group,
        "ResizeBilinear 224",
        lambda x: raw.ResizeBilinear(images=x, size=[224, 224], half_pixel_centers=True),
        Array(u8, (1, 480, 640, 3), 0, 256),
    )
    add(
        group,
        "ResizeBilinearGrad",
        lambda g: raw.ResizeBilinearGrad(grads=g, original_image=tf.zeros([8, 56, 56, 16]), half_pixel_centers=True),
        Array(f32, (8, 112, 112, 16)),
    )
    add(
        group,
        "ResizeBicubicGrad",
        lambda g: raw.ResizeBicubicGrad(grads=g, original_image=tf.zeros([8, 56, 56, 16]), half_pixel_centers=True),
        Array(f32, (8, 28, 28, 16)),
    )
    add(
        group,
        "ScaleAndTranslate",
        lambda x: raw.ScaleAndTranslate(images=x, size=[100, 100], scale=[0.5, 0.5], translation=[0.0, 0.0]),
        Array(f32, (2, 200, 200, 3)),
    )
    for name in ("RGBToHSV", "HSVToRGB"):
        op = getattr(raw, name)
        add(group, name, lambda x, op=op: op(images=x), Array(f32, (8, 224, 224, 3), 0, 1))
    add(group, "AdjustHue", lambda x: raw.AdjustHue(images=x, delta=0.2), Array(f32, (8, 224, 224, 3), 0, 1))
    add(
        group,
        "AdjustSaturation",
        lambda x: raw.AdjustSaturation(images=x, scale=0.7),
        Array(f32, (8, 224, 224, 3), 0, 1),
    )
    add(
        group,
        "AdjustContrastv2",
        lambda x: raw.AdjustContrastv2(images=x, contrast_factor=0.7),
        Array(f32, (8, 224, 224, 3), 0, 1),
    )
    boxes = Array(
        f32,
        (1000, 4),
        0,
        1,
        lambda r, a: np.concatenate([np.minimum(a[:, :2], a[:, 2:]), np.maximum(a[:, :2], a[:, 2:])], 1),
    )
    add(
        group,
        "NonMaxSuppressionV3",
        lambda b, s: raw.NonMaxSuppressionV3(
            boxes=b, scores=s, max_output_size=100, iou_threshold=0.5, score_threshold=0.1
        ),
        boxes,
        Array(f32, (1000,), 0, 1),
    )
    add(
        group,
        "NonMaxSuppressionV5 soft",
        lambda b, s: raw.NonMaxSuppressionV5(
            boxes=b, scores=s, max_output_size=100, iou_threshold=0.5, score_threshold=0.1, soft_nms_sigma=0.5
        )[0],
        boxes,
        Array(f32, (1000,), 0, 1),
    )
    add(
        group,
        "CombinedNonMaxSuppression",
        lambda b, s: raw.CombinedNonMaxSuppression(
            boxes=tf.reshape(b, [1, 1000, 1, 4]),
            scores=s,
            max_output_size_per_class=20,
            max_total_size=50,
            iou_threshold=0.5,
            score_threshold=0.1,
        )[0],
        boxes,
        Array(f32, (1, 1000, 10), 0, 1),
    )
    add(
        group,
        "CropAndResize",
        lambda x, b, i: raw.CropAndResize(image=x, boxes=b, box_ind=i, crop_size=[7, 7]),
        Array(f32, (4, 64, 64, 64)),
        dataclasses.replace(boxes, shape=(100, 4)),
        integers((100,), 4),
    )
    add(
        group,
        "DrawBoundingBoxesV2",
        lambda x, b: raw.DrawBoundingBoxesV2(images=x, boxes=tf.reshape(b, [2, 500, 4]), colors=tf.ones([1, 3])),
        Array(f32, (2, 200, 200, 3), 0, 1),
        boxes,
    )
    add(
        group,
        "ImageProjectiveTransformV3",
        lambda x: raw.ImageProjectiveTransformV3(
            images=x,
            transforms=[[0.9, 0.1, 0.0, -0.1, 0.9, 0.0, 0.0, 0.0]],
            output_shape=[200, 200],
            fill_value=0.0,
            interpolation="BILINEAR",
        ),
        Array(f32, (2, 200, 200, 3)),
    )
    image = lambda x: tf.cast(tf.image.resize(tf.cast(x, tf.float32), [300, 400]), tf.uint8)  # noqa: E731
    smooth = Array(u8, (40, 50, 3), 0, 256)
    add(group, "EncodeJpeg", lambda x: raw.EncodeJpeg(image=image(x)), smooth)
    add(group, "DecodeJpeg", lambda x: raw.DecodeJpeg(contents=raw.EncodeJpeg(image=image(x))), smooth)
    add(group, "DecodePng", lambda x: raw.DecodePng(contents=raw.EncodePng(image=image(x))), smooth)
    group = "random"
    for dtype in (tf.float32, tf.float16, tf.float64):
        add(
            group,
            f"RandomUniform {dtype.name}",
            lambda n, t=dtype: raw.RandomUniform(shape=n, dtype=t, seed=1),
            Array(i32, (1,), MANY, MANY + 1),
        )
        add(
            group,
            f"RandomStandardNormal {dtype.name}",
            lambda n, t=dtype: raw.RandomStandardNormal(shape=n, dtype=t, seed=1),
            Array(i32, (1,), MANY, MANY + 1),
        )
    n = Array(i32, (1,), 1 << 18, (1 << 18) + 1)
    add(group, "TruncatedNormal", lambda n: raw.TruncatedNormal(shape=n, dtype=tf.float32, seed=1), n)
    add(group, "RandomUniformInt", lambda n: raw.RandomUniformInt(shape=n, minval=0, maxval=100, seed=1), n)
    add(
        group,
        "StatelessRandomUniformV2",
        lambda n: raw.StatelessRandomUniformV2(
            shape=n, key=tf.constant([1], tf.uint64), counter=tf.constant([1, 2], tf.uint64), alg=1
        ),
        n,
    )
    add(
        group,
        "StatelessRandomNormalV2",
        lambda n: raw.StatelessRandomNormalV2(
            shape=n, key=tf.constant([1], tf.uint64), counter=tf.constant([1, 2], tf.uint64), alg=1
        ),
        n,
    )
    add(group, "RandomGamma", lambda a: raw.RandomGamma(shape=[1000], alpha=a, seed=1), Array(f32, (10,), 0.5, 5))
    add(
        group,
        "RandomPoissonV2",
        lambda a: raw.RandomPoissonV2(shape=[1000], rate=a, seed=1),
        Array(f32, (10,), 0.5, 50),
    )
    add(group, "RandomShuffle", lambda x: raw.RandomShuffle(value=x, seed=1), Array(f32, (10000, 16)))
    add(group, "Multinomial", lambda x: raw.Multinomial(logits=x, num_samples=100, seed=1), Array(f32, (64, 1000)))
    add(
        group,
        "RandomUniform small",
        lambda n: raw.RandomUniform(shape=n, dtype=tf.float32, seed=1),
        Array(i32, (1,), 16, 17),
    )


def add_strings():
    group = "strings"

    def words(random, a):
        letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz    ", np.uint8)
        rows = letters[random.integers(0, 30, (len(a), 40))]
        rows[:, -1] = ord("z")
        return np.array([row.tobytes() for row in rows], dtype=object).reshape(a.shape)

    def numbers(random, a):
        return np.array([b"%.3f" % x for x in a.ravel()], dtype=object)

    text, digits = Array(bytes, (10000,), 0, 1, words), Array(bytes, (10000,), 0, 1000, numbers)
    add(group, "StringSplitV2", lambda x: raw.StringSplitV2(input=x, sep=" ")[1], text)
    add(group, "StaticRegexReplace", lambda x: raw.StaticRegexReplace(input=x, pattern="[aeiou]+t", rewrite="<>"), text)
    add(group, "StaticRegexFullMatch", lambda x: raw.StaticRegexFullMatch(input=x, pattern="[a-z ]*qu[a-z ]*"), text)
    add(group, "StringLower", lambda x: raw.StringLower(input=x), text)
    add(group, "StringLength", lambda x: raw.StringLength(input=x), text)
    add(group, "StringStrip", lambda x: raw.StringStrip(input=x), text)
    add(group, "Substr", lambda x: raw.Substr(input=x, pos=3, len=10), text)
    add(group, "StringJoin", lambda x, y: raw.StringJoin(inputs=[x, y], separator="-"), text, text)
    add(group, "ReduceJoin", lambda x: raw.ReduceJoin(inputs=tf.reshape(x, [100, 100]), reduction_indices=[1]), text)
    add(group, "StringToHashBucketFast", lambda x: raw.StringToHashBucketFast(input=x, num_buckets=1000), text)
    add(
        group,
        "StringToHashBucketStrong",
        lambda x: raw.StringToHashBucketStrong(input=x, num_buckets=1000, key=[1, 2]),
        text,
    )
    add(group, "UnicodeDecode", lambda x: raw.UnicodeDecode(input=x, input_encoding="UTF-8")[1], text)
    add(group, "StringToNumber", lambda x: raw.StringToNumber(string_tensor=x), digits)
    add(
        group,
        "StringNGrams",
        lambda x: raw.StringNGrams(
            data=x,
            data_splits=np.arange(0, 10001, 10, dtype=i64),
            separator=" ",
            ngram_widths=[2],
            left_pad="",
            right_pad="",
            pad_width=0,
            preserve_short_sequences=False,
        )[0],
        text,
    )
    add(group, "Equal", lambda x, y: raw.Equal(x=x, y=y), text, text)
    add(group, "Gather", lambda x, i: raw.GatherV2(params=x, indices=i, axis=0), text, integers((10000,), 10000))
    add(group, "AsString", lambda x: raw.AsString(input=x), Array(f32, (10000,)))
    add(group, "AsString", lambda x: raw.AsString(input=x), Array(i32, (10000,), 0, 100000))
    add(group, "EncodeBase64", lambda x: raw.EncodeBase64(input=x), text)
    add(
        group,
        "DecodeCSV",
        lambda x: raw.DecodeCSV(records=tf.strings.join([x, x, x], ","), record_defaults=[[0.0]] * 3)[1],
        digits,
    )
    add(group, "DecodeRaw", lambda x: raw.DecodeRaw(bytes=x, out_type=tf.uint8), text)
    add(group, "Unique", lambda x: raw.Unique(x=x)[1], text)


for function in (
    add_functions,
    add_binary,
    add_reductions,
    add_movement,
    add_products,
    add_linalg,
    add_networks,
    add_quantization,
    add_images,
    add_strings,
):
    function()
