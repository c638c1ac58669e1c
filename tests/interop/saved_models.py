#!/usr/bin/env python3
"""Exports SavedModels with TensorFlow and Keras, and compares gradflow's results with TensorFlow's.

usage: saved_models.py export FOLDER [NAME]...
       saved_models.py check FOLDER RUN_SAVED_MODELS [NAME]...
       saved_models.py written FOLDER RUN_SAVED_MODELS [NAME]...
       saved_models.py pack FOLDER tests/data/saved_models.tar.xz
       saved_models.py peers FOLDER [NAME]...
       saved_models.py list

Needs Python's tensorflow-cpu, Keras 3 and numpy. `export` writes FOLDER/NAME/model, a SavedModel from fixed seeds, and
FOLDER/NAME/calls.txt with the calls of its signatures in order; the tensors are .npy files next to it. The expected
outputs come from tf.saved_model.load, whose calls share the state of the model. `check` runs RUN_SAVED_MODELS
(tests/interop/run_saved_models.cc) for each model and prints a table. `written` lets gradflow make the calls and write
each model back, loads it with TensorFlow, and repeats the last call; the result must be that of TensorFlow after the same
calls of the exported model. `pack` packs small models for tests/saved_model/exported_model_test.cc. `peers` makes the
calls with TensorFlow Lite without its Flex ops, with ONNX Runtime and tf2onnx, and with OpenVINO, as far as Python has
them, and prints a table.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402

MODELS = {}
SERVE = "serving_default"


def model(kind, tolerance=1e-5):
    def add(function):
        MODELS[function.__name__] = (kind, tolerance, function)
        return function

    return add


def normal(*shape, seed=7):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tf():
    import tensorflow

    return tensorflow


def randomize(keras_model):
    """Makes the statistics of batch normalization differ from 0 and 1."""
    random = np.random.default_rng(1)
    for variable in keras_model.variables:
        kind = variable.path.rsplit("/", 1)[-1]
        shape = tuple(variable.shape)
        if kind in ("gamma", "moving_variance"):
            variable.assign(random.uniform(0.5, 1.5, shape))
        elif kind in ("beta", "moving_mean", "bias"):
            variable.assign(random.normal(0, 0.1, shape))


def export_keras(path, keras_model, *inputs):
    randomize(keras_model)
    keras_model.export(str(path), verbose=False)
    names = [x.name for x in keras_model.inputs] if keras_model.inputs else None
    return [(SERVE, dict(zip(names, inputs)))]


def save_module(path, module, signatures, *calls):
    tf().saved_model.save(module, str(path), signatures=signatures)
    return list(calls)


def layers():
    return tf().keras.layers


def sequential(*parts):
    return tf().keras.Sequential(list(parts))


def functional(inputs, outputs):
    return tf().keras.Model(inputs, outputs)


# ---- Keras applications ----


def application(name, size, **options):
    def export(path):
        apps = tf().keras.applications
        network = getattr(apps, name)(weights=None, input_shape=(size, size, 3), classifier_activation=None,
                                      classes=10, **options)
        return export_keras(path, network, normal(2, size, size, 3))

    export.__name__ = "app_" + name
    model("Keras application")(export)


application("MobileNet", 64, alpha=0.25)
application("MobileNetV2", 64, alpha=0.35)
application("MobileNetV3Small", 64, alpha=0.75)
application("EfficientNetB0", 64)
application("EfficientNetV2B0", 64)
application("DenseNet121", 64)
application("ResNet50", 64)
application("ResNet50V2", 64)
application("Xception", 96)
application("InceptionV3", 96)
application("NASNetMobile", 64)
application("ConvNeXtTiny", 64)


# ---- Recurrent networks ----


@model("LSTM")
def lstm(path):
    k = layers()
    return export_keras(path, sequential(k.Input((12, 5)), k.LSTM(9, return_sequences=True), k.LSTM(6), k.Dense(3)),
                        normal(2, 12, 5))


@model("LSTM, masked")
def lstm_masked(path):
    k = layers()
    ids = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0]], np.float32)
    return export_keras(path, sequential(k.Input((5,)), k.Embedding(10, 4, mask_zero=True), k.LSTM(6), k.Dense(2)), ids)


@model("GRU")
def gru(path):
    k = layers()
    return export_keras(path, sequential(k.Input((10, 4)), k.GRU(7, return_sequences=True), k.GRU(5)), normal(3, 10, 4))


@model("Simple RNN, bidirectional")
def bidirectional(path):
    k = layers()
    return export_keras(
        path, sequential(k.Input((8, 4)), k.Bidirectional(k.LSTM(5, return_sequences=True)),
                         k.Bidirectional(k.SimpleRNN(4))), normal(2, 8, 4))


@model("ConvLSTM")
def conv_lstm(path):
    k = layers()
    return export_keras(path, sequential(k.Input((4, 10, 10, 2)), k.ConvLSTM2D(3, 3, return_sequences=True, padding="same"),
                                         k.ConvLSTM2D(2, 3)), normal(2, 4, 10, 10, 2))


@model("Seq2seq with attention")
def seq2seq_attention(path):
    k = layers()
    source = k.Input((7, 4), name="source")
    target = k.Input((5, 4), name="target")
    encoded, h, c = k.LSTM(6, return_sequences=True, return_state=True)(source)
    decoded = k.LSTM(6, return_sequences=True)(target, initial_state=[h, c])
    context = k.Attention()([decoded, encoded])
    out = k.Dense(9, activation="softmax")(k.Concatenate()([decoded, context]))
    return export_keras(path, functional([source, target], out), normal(2, 7, 4), normal(2, 5, 4, seed=8))


# ---- Transformers ----


def transformer_block(x, causal=False, heads=2, size=8, memory=None):
    k = layers()
    y = k.MultiHeadAttention(heads, size // heads)(x, x, use_causal_mask=causal)
    x = k.LayerNormalization()(x + y)
    if memory is not None:
        x = k.LayerNormalization()(x + k.MultiHeadAttention(heads, size // heads)(x, memory))
    y = k.Dense(size)(k.Dense(2 * size, activation="gelu")(x))
    return k.LayerNormalization()(x + y)


@model("Transformer encoder")
def transformer_encoder(path):
    k = layers()
    ids = k.Input((6,), dtype="int32", name="ids")
    x = k.Embedding(20, 8)(ids)
    for _ in range(2):
        x = transformer_block(x)
    out = k.Dense(3)(k.GlobalAveragePooling1D()(x))
    return export_keras(path, functional(ids, out), np.array([[1, 5, 3, 7, 0, 2], [9, 19, 4, 4, 1, 0]], np.int32))


@model("Transformer decoder")
def transformer_decoder(path):
    k = layers()
    ids = k.Input((6,), dtype="int32", name="ids")
    memory = k.Input((4, 8), name="memory")
    x = transformer_block(k.Embedding(20, 8)(ids), causal=True, memory=memory)
    return export_keras(path, functional([ids, memory], k.Dense(20)(x)),
                        np.array([[1, 5, 3, 7, 0, 2]], np.int32), normal(1, 4, 8))


@model("Greedy decoding")
def greedy_decoding(path):
    t = tf()
    k = layers()
    ids = k.Input((None,), dtype="int32")
    net = functional(ids, k.Dense(17)(transformer_block(k.Embedding(17, 8)(ids), causal=True)))

    class Decoder(t.Module):
        def __init__(self):
            self.net = net

        @t.function(input_signature=[t.TensorSpec([None, None], t.int32, "prompt"), t.TensorSpec([], t.int32, "steps")])
        def decode(self, prompt, steps):
            tokens = prompt
            i = t.constant(0)
            while i < steps:
                t.autograph.experimental.set_loop_options(shape_invariants=[(tokens, t.TensorShape([None, None]))])
                logits = self.net(tokens)
                tokens = t.concat([tokens, t.argmax(logits[:, -1], -1, t.int32)[:, None]], 1)
                i += 1
            return {"tokens": tokens}

    module = Decoder()
    return save_module(path, module, {"decode": module.decode},
                       ("decode", {"prompt": np.array([[1, 2, 3], [4, 5, 6]], np.int32), "steps": np.int32(6)}))


# ---- Images, sound, generation ----


@model("U-Net")
def u_net(path):
    k = layers()
    x = k.Input((32, 32, 3), name="image")
    a = k.BatchNormalization()(k.Conv2D(6, 3, padding="same", activation="relu")(x))
    b = k.Conv2D(8, 3, padding="same", activation="relu")(k.MaxPooling2D()(a))
    c = k.Conv2D(8, 3, padding="same", activation="relu")(k.MaxPooling2D()(b))
    d = k.Concatenate()([k.Conv2DTranspose(8, 2, strides=2)(c), b])
    e = k.Concatenate()([k.UpSampling2D(interpolation="bilinear")(k.Conv2D(6, 3, padding="same")(d)), a])
    return export_keras(path, functional(x, k.Conv2D(2, 1, activation="sigmoid")(e)), normal(2, 32, 32, 3))


@model("3-D convolution")
def conv3d(path):
    k = layers()
    return export_keras(path, sequential(k.Input((8, 10, 10, 2)), k.Conv3D(4, 3, activation="relu"), k.MaxPooling3D(),
                                         k.Conv3D(5, 2), k.GlobalAveragePooling3D(), k.Dense(3)), normal(2, 8, 10, 10, 2))


@model("WaveNet")
def wavenet(path):
    k = layers()
    x = inputs = k.Input((64, 1), name="wave")
    x = k.Conv1D(6, 2, padding="causal")(x)
    skips = []
    for dilation in (1, 2, 4, 8):
        f = k.Conv1D(6, 2, padding="causal", dilation_rate=dilation, activation="tanh")(x)
        g = k.Conv1D(6, 2, padding="causal", dilation_rate=dilation, activation="sigmoid")(x)
        z = k.Multiply()([f, g])
        skips.append(k.Conv1D(6, 1)(z))
        x = k.Add()([x, k.Conv1D(6, 1)(z)])
    out = k.Conv1D(8, 1)(k.ReLU()(k.Add()(skips)))
    return export_keras(path, functional(inputs, out), normal(2, 64, 1))


@model("VAE")
def vae(path):
    t = tf()
    k = layers()
    encoder = sequential(k.Input((16,)), k.Dense(12, activation="relu"), k.Dense(6))
    decoder = sequential(k.Input((3,)), k.Dense(12, activation="relu"), k.Dense(16, activation="sigmoid"))

    class Vae(t.Module):
        def __init__(self):
            self.encoder, self.decoder = encoder, decoder

        @t.function(input_signature=[t.TensorSpec([None, 16], name="x"), t.TensorSpec([2], t.int32, "seed")])
        def call(self, x, seed):
            mean, log = t.split(self.encoder(x), 2, 1)
            z = mean + t.exp(0.5 * log) * t.random.stateless_normal(t.shape(mean), seed)
            kl = -0.5 * t.reduce_sum(1 + log - mean**2 - t.exp(log), 1)
            return {"decoded": self.decoder(z), "kl": kl, "z": z}

    module = Vae()
    return save_module(path, module, {SERVE: module.call},
                       (SERVE, {"x": normal(4, 16), "seed": np.array([3, 4], np.int32)}))


@model("GAN generator")
def gan_generator(path):
    k = layers()
    return export_keras(path, sequential(k.Input((10,)), k.Dense(4 * 4 * 6), k.Reshape((4, 4, 6)), k.BatchNormalization(),
                                         k.LeakyReLU(), k.Conv2DTranspose(4, 4, strides=2, padding="same"), k.ELU(),
                                         k.Conv2DTranspose(3, 4, strides=2, padding="same", activation="tanh")),
                        normal(2, 10))


def boxes(n=20, seed=3):
    random = np.random.default_rng(seed)
    corner = random.uniform(0, 0.7, (n, 2))
    return np.concatenate([corner, corner + random.uniform(0.05, 0.3, (n, 2))], 1).astype(np.float32)


@model("Detection, combined NMS")
def detection_combined_nms(path):
    t = tf()
    k = layers()
    backbone = sequential(k.Input((32, 32, 3)), k.Conv2D(6, 3, strides=4, padding="same", activation="relu"),
                          k.Conv2D(7, 3, strides=2, padding="same"), k.Reshape((16, 7)))

    class Detector(t.Module):
        def __init__(self):
            self.backbone = backbone
            self.anchors = t.constant(boxes(16))

        @t.function(input_signature=[t.TensorSpec([None, 32, 32, 3], name="image")])
        def detect(self, image):
            raw = self.backbone(image)
            b = self.anchors + 0.05 * t.tanh(raw[..., :4])
            s = t.sigmoid(raw[..., 4:])
            r = t.image.combined_non_max_suppression(b[:, :, None], s, 5, 10, 0.3, 0.2)
            return {"boxes": r[0], "scores": r[1], "classes": r[2], "valid": r[3]}

    module = Detector()
    return save_module(path, module, {SERVE: module.detect}, (SERVE, {"image": normal(2, 32, 32, 3)}))


@model("Detection, while")
def detection_while(path):
    t = tf()

    class Detector(t.Module):
        @t.function(input_signature=[t.TensorSpec([None, 4], name="boxes"), t.TensorSpec([None], name="scores")])
        def nms(self, boxes, scores):
            kept = t.TensorArray(t.int32, 0, dynamic_size=True)
            alive = t.ones_like(scores, t.bool)
            n = t.constant(0)
            while t.reduce_any(alive) and n < 8:
                best = t.argmax(t.where(alive, scores, -1.0), output_type=t.int32)
                kept = kept.write(n, best)
                n += 1
                b = boxes[best]
                lo = t.maximum(boxes[:, :2], b[:2])
                hi = t.minimum(boxes[:, 2:], b[2:])
                inter = t.reduce_prod(t.maximum(hi - lo, 0.0), 1)
                area = t.reduce_prod(boxes[:, 2:] - boxes[:, :2], 1)
                iou = inter / (area + t.reduce_prod(b[2:] - b[:2]) - inter)
                alive = t.logical_and(alive, iou < 0.3)
                alive = t.tensor_scatter_nd_update(alive, [[best]], [False])
            index = kept.stack()
            return {"index": index, "boxes": t.gather(boxes, index)}

    module = Detector()
    scores = np.random.default_rng(5).uniform(size=20).astype(np.float32)
    return save_module(path, module, {SERVE: module.nms}, (SERVE, {"boxes": boxes(), "scores": scores}))


@model("Image decoding and resizing")
def image_preprocessing(path):
    t = tf()
    k = layers()
    net = sequential(k.Input((16, 16, 3)), k.Conv2D(3, 3), k.GlobalMaxPooling2D())

    class Image(t.Module):
        def __init__(self):
            self.net = net

        @t.function(input_signature=[t.TensorSpec([], t.string, "png")])
        def call(self, png):
            image = t.cast(t.io.decode_png(png, 3), t.float32) / 255.0
            image = t.image.resize(image[None], [16, 16])
            return {"features": self.net(image)}

    pixels = np.random.default_rng(1).integers(0, 255, (20, 30, 3)).astype(np.uint8)
    png = t.io.encode_png(pixels).numpy()
    module = Image()
    # A fixed-width string drops zeros at its end.
    assert not png.endswith(b"\0")
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"png": np.array(png)}))


# ---- Modules with state ----


@model("Module with state")
def counter_module(path):
    t = tf()

    class Counter(t.Module):
        def __init__(self):
            self.total = t.Variable(t.zeros([3]), name="total")
            self.steps = t.Variable(0, dtype=t.int64, name="steps")

        @t.function(input_signature=[t.TensorSpec([3], name="x")])
        def add(self, x):
            self.steps.assign_add(1)
            return {"total": self.total.assign_add(x), "steps": self.steps.read_value()}

        @t.function(input_signature=[])
        def get(self):
            return {"mean": self.total / t.cast(t.maximum(self.steps, 1), t.float32)}

    module = Counter()
    x = normal(3)
    return save_module(path, module, {"add": module.add, "get": module.get}, ("get", {}), ("add", {"x": x}),
                       ("add", {"x": x * 2}), ("get", {}))


@model("Module with a running mean in a branch")
def branch_state(path):
    t = tf()

    class Branch(t.Module):
        def __init__(self):
            self.mean = t.Variable(t.zeros([2]))

        @t.function(input_signature=[t.TensorSpec([None, 2], name="x"), t.TensorSpec([], t.bool, "training")])
        def call(self, x, training):
            if training:
                self.mean.assign(0.9 * self.mean + 0.1 * t.reduce_mean(x, 0))
            return {"y": x - self.mean}

    module = Branch()
    x = normal(5, 2)
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": x, "training": np.bool_(False)}),
                       (SERVE, {"x": x, "training": np.bool_(True)}), (SERVE, {"x": x, "training": np.bool_(False)}))


@model("Random generator")
def random_generator(path):
    t = tf()

    class Random(t.Module):
        def __init__(self):
            self.rng = t.random.Generator.from_seed(42)

        @t.function(input_signature=[t.TensorSpec([], t.int32, "n")])
        def draw(self, n):
            return {"normal": self.rng.normal([n]), "uniform": self.rng.uniform([n, 2])}

    module = Random()
    return save_module(path, module, {SERVE: module.draw}, (SERVE, {"n": np.int32(5)}), (SERVE, {"n": np.int32(3)}))


@model("Dropout with a seed generator")
def dropout_training(path):
    t = tf()
    k = layers()
    net = sequential(k.Input((6,)), k.Dense(8), k.Dropout(0.4, seed=3), k.Dense(2))

    class Net(t.Module):
        def __init__(self):
            self.net = net
            # The state of the generator of random seeds.
            self.state = [v.value for v in net.variables]

        @t.function(input_signature=[t.TensorSpec([None, 6], name="x")])
        def call(self, x):
            return {"trained": self.net(x, training=True), "served": self.net(x)}

    module = Net()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": normal(2, 6)}), (SERVE, {"x": normal(2, 6)}))


# ---- Training ----


def trainer(path, optimizer, net, loss, x, y, steps=5, batch=None):
    t = tf()

    class Trainer(t.Module):
        def __init__(self):
            self.net = net
            self.optimizer = optimizer()
            self.optimizer.build(net.trainable_variables)

        @t.function(input_signature=[t.TensorSpec((None,) + x.shape[1:], x.dtype, "x"),
                                     t.TensorSpec((None,) + y.shape[1:], y.dtype, "y")])
        def train(self, x, y):
            with t.GradientTape() as tape:
                value = t.reduce_mean(loss(y, self.net(x, training=True)))
            gradients = tape.gradient(value, self.net.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.net.trainable_variables))
            return {"loss": value}

        @t.function(input_signature=[t.TensorSpec((None,) + x.shape[1:], x.dtype, "x")])
        def predict(self, x):
            return {"y": self.net(x, training=False)}

    module = Trainer()
    calls = [("train", {"x": x, "y": y})] * steps + [("predict", {"x": x})]
    return save_module(path, module, {"train": module.train, "predict": module.predict}, *calls)


def small_classifier():
    k = layers()
    return sequential(k.Input((8, 8, 2)), k.Conv2D(4, 3, padding="same", use_bias=False), k.BatchNormalization(), k.ReLU(),
                      k.MaxPooling2D(), k.Flatten(), k.Dense(5))


def cross_entropy(y, logits):
    return tf().nn.sparse_softmax_cross_entropy_with_logits(y, logits)


LABELS = np.array([0, 1, 2, 3, 4, 0], np.int32)


@model("Training, SGD", 1e-4)
def train_sgd(path):
    return trainer(path, lambda: tf().keras.optimizers.SGD(0.1), small_classifier(), cross_entropy, normal(6, 8, 8, 2), LABELS)


@model("Training, momentum", 1e-4)
def train_momentum(path):
    return trainer(path, lambda: tf().keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True), small_classifier(),
                   cross_entropy, normal(6, 8, 8, 2), LABELS)


@model("Training, Adam", 1e-4)
def train_adam(path):
    return trainer(path, lambda: tf().keras.optimizers.Adam(0.01), small_classifier(), cross_entropy, normal(6, 8, 8, 2),
                   LABELS)


@model("Training, RMSprop", 1e-4)
def train_rmsprop(path):
    return trainer(path, lambda: tf().keras.optimizers.RMSprop(0.01), small_classifier(), cross_entropy,
                   normal(6, 8, 8, 2), LABELS)


@model("Training, LSTM", 1e-4)
def train_lstm(path):
    k = layers()
    net = sequential(k.Input((6, 3)), k.LSTM(5), k.Dense(2))
    return trainer(path, lambda: tf().keras.optimizers.Adam(0.01), net, lambda y, p: (y - p)**2, normal(4, 6, 3),
                   normal(4, 2, seed=9))


@model("Training, QAT", 1e-4)
def train_qat(path):
    t = tf()

    class Qat(t.Module):
        def __init__(self):
            self.w1 = t.Variable(normal(3, 3, 2, 4) * 0.3)
            self.w2 = t.Variable(normal(4, 3, seed=9) * 0.5)
            self.range = t.Variable([-3.0, 3.0])

        def net(self, x):
            q = t.quantization.fake_quant_with_min_max_vars_per_channel
            x = t.quantization.fake_quant_with_min_max_vars(x, self.range[0], self.range[1])
            w = q(self.w1, t.reduce_min(self.w1, [0, 1, 2]), t.reduce_max(self.w1, [0, 1, 2]), narrow_range=True)
            x = t.nn.relu(t.nn.conv2d(x, w, 1, "SAME"))
            x = t.quantization.fake_quant_with_min_max_args(t.reduce_mean(x, [1, 2]), 0, 6)
            return t.matmul(x, self.w2)

        @t.function(input_signature=[t.TensorSpec([None, 6, 6, 2], name="x"), t.TensorSpec([None], t.int32, "y")])
        def train(self, x, y):
            with t.GradientTape() as tape:
                loss = t.reduce_mean(cross_entropy(y, self.net(x)))
            variables = [self.w1, self.w2, self.range]
            for v, g in zip(variables, tape.gradient(loss, variables)):
                v.assign_sub(0.1 * g)
            return {"loss": loss}

        @t.function(input_signature=[t.TensorSpec([None, 6, 6, 2], name="x")])
        def predict(self, x):
            return {"y": self.net(x)}

    module = Qat()
    x = normal(6, 6, 6, 2)
    y = np.array([0, 1, 2, 0, 1, 2], np.int32)
    return save_module(path, module, {"train": module.train, "predict": module.predict},
                       *[("train", {"x": x, "y": y})] * 5, ("predict", {"x": x}))


# Products of bfloat16 differ by a unit in the last place, 2^-8, if sums have another order.
@model("Mixed precision, bfloat16", 2e-2)
def mixed_bfloat16(path):
    t = tf()
    k = layers()
    t.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        net = sequential(k.Input((8,)), k.Dense(16, activation="relu"), k.Dense(4, dtype="float32"))
        return export_keras(path, net, normal(3, 8))
    finally:
        t.keras.mixed_precision.set_global_policy("float32")


# ---- Text, tables, assets ----


@model("String lookup")
def string_lookup(path):
    t = tf()
    k = layers()
    lookup = k.StringLookup(vocabulary=["cat", "dog", "fish"])
    embedding = k.Embedding(4, 3)
    embedding.build()

    class Text(t.Module):
        def __init__(self):
            self.lookup, self.embedding = lookup, embedding

        @t.function(input_signature=[t.TensorSpec([None], t.string, "words")])
        def call(self, words):
            ids = self.lookup(words)
            return {"ids": ids, "vectors": self.embedding(ids)}

    module = Text()
    return save_module(path, module, {SERVE: module.call},
                       (SERVE, {"words": np.array([b"dog", b"bird", b"cat", b"fish"])}))


@model("Table from an asset")
def table_asset(path):
    t = tf()
    vocabulary = path.parent / "vocabulary.txt"
    vocabulary.write_text("red\ngreen\nblue\n")

    class Text(t.Module):
        def __init__(self):
            self.table = t.lookup.StaticHashTable(
                t.lookup.TextFileInitializer(str(vocabulary), t.string, t.lookup.TextFileIndex.WHOLE_LINE, t.int64,
                                             t.lookup.TextFileIndex.LINE_NUMBER), -1)

        @t.function(input_signature=[t.TensorSpec([None], t.string, "words")])
        def call(self, words):
            return {"ids": self.table.lookup(words)}

    module = Text()
    calls = save_module(path, module, {SERVE: module.call},
                        (SERVE, {"words": np.array([b"blue", b"grey", b"red"])}))
    vocabulary.unlink()
    return calls


@model("Text vectorization")
def text_vectorization(path):
    t = tf()
    k = layers()
    vectorize = k.TextVectorization(vocabulary=["the", "cat", "sat"], output_sequence_length=6)

    class Text(t.Module):
        def __init__(self):
            self.vectorize = vectorize

        @t.function(input_signature=[t.TensorSpec([None], t.string, "text")])
        def call(self, text):
            return {"ids": self.vectorize(text)}

    module = Text()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"text": np.array([b"The cat sat.", b"A cat!"])}))


@model("Mutable table")
def mutable_table(path):
    t = tf()

    class Table(t.Module):
        def __init__(self):
            self.table = t.lookup.experimental.MutableHashTable(t.int64, t.float32, -1.0)
            self.table.insert(t.constant([1, 2], t.int64), t.constant([0.5, 0.25]))

        @t.function(input_signature=[t.TensorSpec([None], t.int64, "k"), t.TensorSpec([None], t.float32, "v")])
        def insert(self, k, v):
            self.table.insert(k, v)
            return {"size": self.table.size()}

        @t.function(input_signature=[t.TensorSpec([None], t.int64, "k")])
        def find(self, k):
            return {"v": self.table.lookup(k)}

    module = Table()
    keys = np.array([1, 2, 3], np.int64)
    return save_module(path, module, {"insert": module.insert, "find": module.find}, ("find", {"k": keys}),
                       ("insert", {"k": np.array([3], np.int64), "v": np.array([9], np.float32)}),
                       ("find", {"k": keys}))


@model("Normalization, discretization, category encoding")
def preprocessing_layers(path):
    k = layers()
    x = k.Input((3,), name="x")
    norm = k.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0])
    bins = k.Discretization([-1.0, 0.0, 1.0])
    one_hot = k.CategoryEncoding(4, output_mode="multi_hot")
    return export_keras(path, functional(x, [norm(x), one_hot(bins(x))]), normal(4, 3))


# ---- Control flow ----


@model("Switch case")
def switch_case(path):
    t = tf()

    class Cases(t.Module):
        def __init__(self):
            self.w = [t.Variable(normal(3, 3, seed=i)) for i in range(3)]

        @t.function(input_signature=[t.TensorSpec([None, 3], name="x"), t.TensorSpec([], t.int32, "which")])
        def call(self, x, which):
            return {"y": t.switch_case(which, [lambda i=i: x @ self.w[i] for i in range(3)])}

    module = Cases()
    return save_module(path, module, {SERVE: module.call}, *[(SERVE, {"x": normal(2, 3), "which": np.int32(i)})
                                                             for i in (0, 1, 2, 7)])


@model("map_fn and scan")
def map_and_scan(path):
    t = tf()

    class Maps(t.Module):
        def __init__(self):
            self.w = t.Variable(normal(4, 4))

        @t.function(input_signature=[t.TensorSpec([None, 4], name="x")])
        def call(self, x):
            mapped = t.map_fn(lambda row: t.tanh(t.linalg.matvec(self.w, row)), x)
            scanned = t.scan(lambda a, row: 0.5 * a + row, x)
            folded = t.foldl(lambda a, row: a + t.reduce_sum(row), x, initializer=t.constant(0.0))
            return {"mapped": mapped, "scanned": scanned, "folded": folded}

    module = Maps()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": normal(5, 4)}))


@model("Recursive sum, Newton iteration")
def newton(path):
    t = tf()

    class Newton(t.Module):
        @t.function(input_signature=[t.TensorSpec([None], name="x")])
        def call(self, x):
            y = t.identity(x)
            for _ in t.range(20):
                y = 0.5 * (y + x / y)
                if t.reduce_max(t.abs(y * y - x)) < 1e-6:
                    break
            return {"root": y}

    module = Newton()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": np.array([2, 9, 100], np.float32)}))


# ---- Other layers and ops ----


@model("Multi-layer perceptron")
def mlp(path):
    k = layers()
    return export_keras(path, sequential(k.Input((20,)), k.Dense(32, activation="relu"), k.Dropout(0.5),
                                         k.Dense(16, activation="swish"), k.Dense(4, activation="softmax")), normal(5, 20))


@model("Several inputs and outputs")
def multi_io(path):
    k = layers()
    a = k.Input((4,), name="a")
    b = k.Input((6,), name="b")
    c = k.Concatenate()([k.Dense(5)(a), k.Dense(5)(b)])
    return export_keras(path, functional({"a": a, "b": b}, {"sum": k.Dense(2)(c), "gate": k.Dense(1, "sigmoid")(c)}),
                        normal(3, 4), normal(3, 6))


@model("Separable and grouped convolution")
def separable(path):
    k = layers()
    return export_keras(path, sequential(k.Input((16, 16, 4)), k.SeparableConv2D(6, 3, activation="relu"),
                                         k.DepthwiseConv2D(3, depth_multiplier=2), k.Conv2D(8, 3, groups=2),
                                         k.GroupNormalization(4), k.AveragePooling2D(2)), normal(2, 16, 16, 4))


@model("Dilated convolution")
def dilated(path):
    k = layers()
    return export_keras(path, sequential(k.Input((20, 20, 2)), k.Conv2D(4, 3, dilation_rate=2, activation="relu"),
                                         k.Conv2D(3, 3, dilation_rate=3), k.UnitNormalization()), normal(2, 20, 20, 2))


@model("Embedding bag")
def embedding_bag(path):
    k = layers()
    return export_keras(path, sequential(k.Input((7,)), k.Embedding(30, 8), k.GlobalAveragePooling1D(), k.Dense(3)),
                        np.random.default_rng(2).integers(0, 30, (4, 7)).astype(np.float32))


@model("Siamese network")
def siamese(path):
    k = layers()
    shared = sequential(k.Input((10,)), k.Dense(8, activation="tanh"), k.Dense(4))
    a = k.Input((10,), name="left")
    b = k.Input((10,), name="right")
    return export_keras(path, functional([a, b], k.Dot(1, normalize=True)([shared(a), shared(b)])), normal(3, 10),
                        normal(3, 10, seed=8))


@model("Autoencoder, 1-D")
def autoencoder_1d(path):
    k = layers()
    return export_keras(path, sequential(k.Input((32, 2)), k.Conv1D(4, 3, strides=2, padding="same", activation="relu"),
                                         k.Conv1D(6, 3, strides=2, padding="same"), k.Conv1DTranspose(4, 4, strides=2, padding="same"),
                                         k.UpSampling1D(2), k.Conv1D(2, 3, padding="same")), normal(2, 32, 2))


@model("Einsum dense")
def einsum_dense(path):
    k = layers()
    return export_keras(path, sequential(k.Input((5, 6)), k.EinsumDense("abc,cd->abd", output_shape=(None, 7), bias_axes="d"),
                                         k.EinsumDense("abd,de->abe", output_shape=(None, 3), activation="softplus")),
                        normal(2, 5, 6))


@model("Signal processing")
def stft(path):
    t = tf()

    class Stft(t.Module):
        @t.function(input_signature=[t.TensorSpec([None, 128], name="wave")])
        def call(self, wave):
            spectrum = t.abs(t.signal.stft(wave, 32, 16))
            mel = t.tensordot(spectrum, t.signal.linear_to_mel_weight_matrix(8, 17, 8000), 1)
            return {"spectrum": spectrum, "log_mel": t.math.log(mel + 1e-3)}

    module = Stft()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"wave": normal(2, 128)}))


@model("Linear algebra")
def linear_algebra(path):
    t = tf()

    class Linear(t.Module):
        @t.function(input_signature=[t.TensorSpec([None, 4, 4], name="a"), t.TensorSpec([None, 4, 2], name="b")])
        def call(self, a, b):
            s = t.matmul(a, a, transpose_b=True) + 4.0 * t.eye(4)
            return {"chol": t.linalg.cholesky(s), "solved": t.linalg.solve(s, b), "det": t.linalg.det(s),
                    "inv": t.linalg.inv(s)}

    module = Linear()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"a": normal(2, 4, 4), "b": normal(2, 4, 2)}))


@model("Sorting and gathering")
def sorting(path):
    t = tf()

    class Sort(t.Module):
        @t.function(input_signature=[t.TensorSpec([None, None], name="x")])
        def call(self, x):
            top = t.math.top_k(x, 3)
            return {"sorted": t.sort(x, -1), "values": top.values, "indices": top.indices,
                    "unique": t.unique(t.cast(t.reshape(x, [-1]) * 2, t.int32)).y, "cumsum": t.cumsum(x, 1),
                    "where": t.where(x > 0)}

    module = Sort()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": normal(3, 7)}))


@model("Inputs with default values")
def defaults(path):
    t = tf()

    class Defaults(t.Module):
        def __init__(self):
            self.scale = t.Variable(2.0)

        @t.function(input_signature=[t.TensorSpec([None], name="x")])
        def call(self, x):
            return {"y": self.scale * x, "n": t.size(x)}

    module = Defaults()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": normal(4)}))


@model("Types of integers, halves and complex numbers")
def dtypes(path):
    t = tf()

    class Types(t.Module):
        def __init__(self):
            self.half = t.Variable(normal(4).astype(np.float16))
            self.double = t.Variable(normal(4).astype(np.float64))
            self.int8 = t.Variable(np.arange(4, dtype=np.int8))
            self.flag = t.Variable([True, False, True, False])
            self.complex = t.Variable((normal(4) + 1j * normal(4, seed=8)).astype(np.complex64))
            self.text = t.Variable(["a", "bb", "", "dddd"])

        @t.function(input_signature=[t.TensorSpec([4], name="x")])
        def call(self, x):
            return {"half": self.half * t.cast(x, t.float16), "double": self.double * t.cast(x, t.float64),
                    "int8": self.int8 + t.cast(x, t.int8), "flag": t.logical_not(self.flag),
                    "complex": self.complex * t.complex(x, x), "text": t.identity(self.text)}

    module = Types()
    return save_module(path, module, {SERVE: module.call}, (SERVE, {"x": normal(4)}))


# ---- TensorFlow 1 ----


def save_v1(path, build, resource=False, tags=None, **options):
    """Exports with tf.compat.v1's builder. `build` returns inputs, outputs and optional arguments of the builder."""
    v1 = tf().compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        with v1.variable_scope("", use_resource=resource):
            inputs, outputs, more = build(v1)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.builder.SavedModelBuilder(str(path))
        signature = v1.saved_model.signature_def_utils.predict_signature_def(inputs, outputs)
        builder.add_meta_graph_and_variables(session, tags or ["serve"], {SERVE: signature}, **more, **options)
        builder.save()


@model("TensorFlow 1, reference variables")
def v1_reference(path):
    def build(v1):
        x = v1.placeholder(v1.float32, [None, 3], "x")
        w = v1.Variable(normal(3, 2), use_resource=False, name="w")
        b = v1.Variable(normal(2, seed=3), use_resource=False, name="b")
        return {"x": x}, {"y": v1.nn.relu(v1.matmul(x, w) + b)}, {}

    save_v1(path, build)
    return [(SERVE, {"x": normal(4, 3)})]


@model("TensorFlow 1, resource variables")
def v1_resource(path):
    def build(v1):
        x = v1.placeholder(v1.float32, [None, 8, 8, 3], "x")
        w = v1.get_variable("w", [3, 3, 3, 4], use_resource=True)
        y = v1.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
        gamma = v1.get_variable("gamma", [4], initializer=v1.ones_initializer())
        y, _, _ = v1.nn.fused_batch_norm(y, gamma, gamma * 0.1, gamma * 0.2, gamma, is_training=False)
        return {"x": x}, {"y": v1.nn.max_pool(y, 2, 2, "VALID")}, {}

    save_v1(path, build, resource=True)
    return [(SERVE, {"x": normal(2, 8, 8, 3)})]


@model("TensorFlow 1, sharded saver")
def v1_sharded(path):
    def build(v1):
        x = v1.placeholder(v1.float32, [None, 3], "x")
        w = v1.get_variable("w", [3, 5])
        v = v1.get_variable("v", [5, 2])
        return {"x": x}, {"y": v1.matmul(v1.tanh(v1.matmul(x, w)), v)}, {"saver": v1.train.Saver(sharded=True)}

    save_v1(path, build)
    return [(SERVE, {"x": normal(4, 3)})]


@model("TensorFlow 1, partitioned variable")
def v1_partitioned(path):
    def build(v1):
        ids = v1.placeholder(v1.int64, [None], "ids")
        table = v1.get_variable("table", [10, 4], partitioner=v1.fixed_size_partitioner(3))
        return {"ids": ids}, {"rows": v1.nn.embedding_lookup(table, ids, partition_strategy="div")}, {}

    save_v1(path, build)
    return [(SERVE, {"ids": np.array([0, 9, 4, 3], np.int64)})]


@model("TensorFlow 1, cond and while_loop of version 2")
def v1_control_flow_v2(path):
    def build(v1):
        v1.enable_control_flow_v2()
        x = v1.placeholder(v1.float32, [3], "x")
        w = v1.get_variable("w", [3], use_resource=True)
        y = v1.cond(v1.reduce_sum(x) > 0, lambda: x * w, lambda: x - w)
        _, z = v1.while_loop(lambda i, _: i < 4, lambda i, a: [i + 1, a * 0.5 + y], [0, y])
        v1.disable_control_flow_v2()
        return {"x": x}, {"y": y, "z": z}, {}

    save_v1(path, build, resource=True)
    return [(SERVE, {"x": normal(3)}), (SERVE, {"x": -normal(3)})]


@model("TensorFlow 1, cond and while_loop of version 1")
def v1_control_flow_v1(path):
    def build(v1):
        v1.disable_control_flow_v2()
        x = v1.placeholder(v1.float32, [3], "x")
        w = v1.get_variable("w", [3], use_resource=False)
        y = v1.cond(v1.reduce_sum(x) > 0, lambda: x * w, lambda: x - w)
        _, z = v1.while_loop(lambda i, _: i < 4, lambda i, a: [i + 1, a * 0.5 + y], [0, y])
        return {"x": x}, {"y": y, "z": z}, {}

    save_v1(path, build)
    return [(SERVE, {"x": normal(3)}), (SERVE, {"x": -normal(3)})]


@model("TensorFlow 1, table and asset")
def v1_table(path):
    vocabulary = path.parent / "words.txt"
    vocabulary.write_text("one\ntwo\nthree\n")

    def build(v1):
        words = v1.placeholder(v1.string, [None], "words")
        file = v1.constant(str(vocabulary), name="vocabulary")
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, file)
        table = v1.lookup.StaticHashTable(
            v1.lookup.TextFileInitializer(file, v1.string, v1.lookup.TextFileIndex.WHOLE_LINE, v1.int64,
                                          v1.lookup.TextFileIndex.LINE_NUMBER), -1)
        return {"words": words}, {"ids": table.lookup(words)}, {
            "assets_collection": v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), "main_op": v1.tables_initializer()}

    save_v1(path, build)
    vocabulary.unlink()
    return [(SERVE, {"words": np.array([b"two", b"four", b"one"])})]


@model("TensorFlow 1, legacy init op")
def v1_legacy_init(path):
    def build(v1):
        x = v1.placeholder(v1.float32, [], "x")
        a = v1.Variable(0.5, use_resource=True, name="a")
        offset = v1.Variable(0.0, use_resource=True, name="offset", collections=[v1.GraphKeys.LOCAL_VARIABLES])
        init = v1.group(v1.assign(offset, 2.0), name="init_offset")
        return {"x": x}, {"y": a * x + offset}, {"legacy_init_op": init}

    v1 = tf().compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        inputs, outputs, more = build(v1)
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        builder = v1.saved_model.builder.SavedModelBuilder(str(path))
        signature = v1.saved_model.signature_def_utils.predict_signature_def(inputs, outputs)
        v1.add_to_collection("legacy_init_op", more["legacy_init_op"])
        builder.add_meta_graph_and_variables(session, ["serve"], {SERVE: signature})
        builder.save()
    return [(SERVE, {"x": np.float32(3)})]


@model("TensorFlow 1, two graphs in one model")
def v1_two_graphs(path):
    v1 = tf().compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(v1.float32, [None], "x")
        a = v1.Variable(0.5, use_resource=True, name="a")
        y = a * x + 2.0
        train = v1.assign_add(a, 1.0)
        session.run(v1.global_variables_initializer())
        predict = v1.saved_model.signature_def_utils.predict_signature_def
        builder = v1.saved_model.builder.SavedModelBuilder(str(path))
        builder.add_meta_graph_and_variables(session, ["train"], {"train": predict({"x": x}, {"a": train})})
        builder.add_meta_graph(["serve"], {SERVE: predict({"x": x}, {"y": y})})
        builder.save()
    return [(SERVE, {"x": normal(4)})]


# ---- Export and comparison ----


def expected_outputs(path, calls):
    """Returns the outputs of the calls, on one loaded model."""
    t = tf()
    loaded = t.saved_model.load(str(path), tags=["serve"])
    results = []
    for signature, inputs in calls:
        function = loaded.signatures[signature]
        args = {name: t.constant(value) for name, value in inputs.items()}
        results.append({name: value.numpy() for name, value in function(**args).items()})
    return results


def to_npy(array):
    array = np.asarray(array)
    if array.dtype == object:
        array = array.astype("S")
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    return array


def export(folder, names):
    failed = []
    for name in names:
        place = folder / name
        if (place / "calls.txt").exists():
            continue
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            tf().keras.utils.set_random_seed(1)
            kind, tolerance, function = MODELS[name]
            calls = function(place / "model")
            lines = [f"tolerance {tolerance}"]
            for i, ((signature, inputs), outputs) in enumerate(zip(calls, expected_outputs(place / "model", calls))):
                lines.append(f"call {signature}")
                for word, tensors in (("feed", inputs), ("expect", outputs)):
                    for key, value in tensors.items():
                        file = f"{i}_{word}_{len(lines)}.npy"
                        np.save(place / file, to_npy(value))
                        lines.append(f"{word} {key} {file}")
            (place / "calls.txt").write_text("\n".join(lines) + "\n")
            print(name, "exported", flush=True)
        except Exception:  # The others are still exported.
            failed.append(name)
            traceback.print_exc()
        tf().keras.backend.clear_session()
    if failed:
        sys.exit("not exported: " + ", ".join(failed))


def check(folder, program, names):
    agreed = 0
    for name in names:
        if not (folder / name / "calls.txt").exists():
            result = "not exported"
        else:
            try:
                run = subprocess.run([program, str(folder / name)], capture_output=True, text=True, timeout=300)
                result = (run.stdout.strip() or run.stderr.strip() or f"exit status {run.returncode}").splitlines()[-1]
            except subprocess.TimeoutExpired:
                result = "more than 300 s"
        agreed += result.startswith("agrees")
        print(f"| {name} | {MODELS[name][0]} | {result} |", flush=True)
    print(f"{agreed} of {len(names)} agree")
    return 0 if agreed == len(names) else 1


PACKED = [
    "branch_state", "counter_module", "detection_while", "dtypes", "greedy_decoding", "gru", "lstm", "map_and_scan",
    "switch_case", "train_qat", "train_sgd", "v1_control_flow_v2", "v1_legacy_init", "v1_partitioned", "v1_reference",
    "v1_resource", "v1_sharded", "v1_two_graphs", "vae"
]


def pack(folder, archive):
    def plain(member):
        member.mtime = member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for name in PACKED:
            files = [folder / name / "calls.txt"]
            files += sorted((folder / name).glob("*.npy"))
            files += sorted(path for path in (folder / name / "model").rglob("*") if path.is_file())
            for path in files:
                tar.add(path, pathlib.Path("saved_models") / path.relative_to(folder), filter=plain)
    print(archive.stat().st_size, "bytes")
    return 0


def read_calls(place):
    """Returns (signature, inputs, outputs) for each call."""
    calls = []
    for line in (place / "calls.txt").read_text().splitlines():
        words = line.split()
        if words[0] == "call":
            calls.append((words[1], {}, {}))
        elif words[0] in ("feed", "expect"):
            calls[-1][1 if words[0] == "feed" else 2][words[1]] = np.load(place / words[2])
    return calls


def compare(expected, found):
    """Returns the largest difference, relative to the largest element of its tensor."""
    difference = 0.0
    for key, value in expected.items():
        if value.shape != found[key].shape:
            return float("inf")
        if value.dtype.kind in "SO":
            difference = max(difference, float((value != found[key]).any()))
            continue
        value = value.astype(np.complex128)
        largest = max(np.abs(value).max(initial=0), 1e-30)
        differences = np.abs(value - found[key])
        if np.isnan(differences).any():
            return float("inf")
        difference = max(difference, differences.max(initial=0) / largest)
    return difference


def check_written(folder, program, names):
    agreed = 0
    for name in names:
        place = folder / name
        written = place / "written"
        try:
            run = subprocess.run([program, str(place), str(written)], capture_output=True, text=True, timeout=300)
            if run.returncode != 0:
                raise RuntimeError(run.stdout.strip() or run.stderr.strip())
            calls = [call[:2] for call in read_calls(place)]
            expected = expected_outputs(place / "model", calls + calls[-1:])[-1]
            found = expected_outputs(written, calls[-1:])[0]
            difference = compare(expected, found)
            tolerance = max(MODELS[name][1], 1e-5)
            result = f"{'agrees' if difference <= tolerance else 'differs'}, {difference:.3g}"
        except Exception as error:  # The others are still tested.
            result = str(error).splitlines()[0][:300]
        agreed += result.startswith("agrees")
        print(f"| {name} | {MODELS[name][0]} | {result} |", flush=True)
    print(f"{agreed} of {len(names)} agree")
    return 0 if agreed == len(names) else 1


# ---- Peers ----


def tflite_caller(path, signatures):
    converter = tf().lite.TFLiteConverter.from_saved_model(str(path), signature_keys=signatures)
    interpreter = tf().lite.Interpreter(model_content=converter.convert())
    return lambda signature, inputs: interpreter.get_signature_runner(signature)(**inputs)


def onnx_caller(path, signatures):
    import onnxruntime

    sessions = {}
    for signature in signatures:
        file = f"{path}_{signature}.onnx"
        subprocess.run([
            sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(path), "--signature_def", signature, "--opset",
            "18", "--output", file
        ], check=True, capture_output=True)
        sessions[signature] = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        os.remove(file)

    def call(signature, inputs):
        session = sessions[signature]
        feeds = {i.name: inputs[i.name.split(":")[0]] for i in session.get_inputs()}
        outputs = session.run(None, feeds)
        return {o.name.split(":")[0]: value for o, value in zip(session.get_outputs(), outputs)}

    return call


def openvino_caller(path, signatures):
    import openvino

    if signatures != [SERVE]:
        raise RuntimeError("OpenVINO has only the signature " + SERVE)
    # The default may be bfloat16.
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(openvino.convert_model(str(path)), "CPU", precision)

    def call(_, inputs):
        results = compiled(inputs)
        return {name: value for output, value in results.items() for name in output.get_names()}

    return call


PEERS = {"TFLite": tflite_caller, "ONNX Runtime": onnx_caller, "OpenVINO": openvino_caller}


def call_peer(peer, folder, names):
    """Prints for each model whether a peer makes its calls with the expected results."""
    for name in names:
        place = folder / name
        try:
            calls = read_calls(place)
            call = PEERS[peer](place / "model", sorted({signature for signature, _, _ in calls}))
            difference = max(compare(outputs, call(signature, inputs)) for signature, inputs, outputs in calls)
            result = "agrees" if difference <= max(MODELS[name][1], 1e-5) else f"wrong, {difference:.3g}"
        except Exception as error:  # The others are still tested.
            result = "fails: " + (str(error).strip().splitlines() or [type(error).__name__])[0][:100]
        print(f"result {name} {result}", flush=True)
    return 0


def check_peers(folder, names):
    results = {}
    for peer in PEERS:
        left = list(names)
        while left:
            # A peer may end its process, or never end.
            command = [sys.executable, __file__, "peer", peer, str(folder), *left]
            try:
                output = subprocess.run(command, capture_output=True, text=True, timeout=60 + 120 * len(left)).stdout
            except subprocess.TimeoutExpired as error:
                output = (error.stdout or b"").decode()
            for line in output.splitlines():
                if line.startswith("result "):
                    _, name, result = line.split(" ", 2)
                    results[name, peer] = result
                    left.remove(name)
            if left:
                results[left.pop(0), peer] = "crashes"
    print("| model | " + " | ".join(PEERS) + " |")
    for name in names:
        print(f"| {name} | " + " | ".join(results[name, peer] for peer in PEERS) + " |")
    counts = {peer: sum(results[name, peer] == "agrees" for name in names) for peer in PEERS}
    print("agree of", len(names), "models:", ", ".join(f"{peer} {count}" for peer, count in counts.items()))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list")
    for command in ("export", "check", "written"):
        sub = commands.add_parser(command)
        sub.add_argument("folder", type=pathlib.Path)
        if command != "export":
            sub.add_argument("program")
        sub.add_argument("names", nargs="*", metavar="NAME")
    sub = commands.add_parser("peers")
    sub.add_argument("folder", type=pathlib.Path)
    sub.add_argument("names", nargs="*", metavar="NAME")
    # Runs one peer for `peers`.
    sub = commands.add_parser("peer")
    sub.add_argument("peer", choices=list(PEERS))
    sub.add_argument("folder", type=pathlib.Path)
    sub.add_argument("names", nargs="+", metavar="NAME")
    sub = commands.add_parser("pack")
    sub.add_argument("folder", type=pathlib.Path)
    sub.add_argument("archive", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "list":
        print("\n".join(MODELS))
        return 0
    if args.command == "pack":
        return pack(args.folder, args.archive)
    if args.command == "peer":
        return call_peer(args.peer, args.folder, args.names)
    names = args.names or list(MODELS)
    if args.command == "peers":
        return check_peers(args.folder, names)
    if args.command == "export":
        return export(args.folder, names)
    return (check if args.command == "check" else check_written)(args.folder, args.program, names)


if __name__ == "__main__":
    sys.exit(main())
