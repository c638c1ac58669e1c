"""Calls of the ops in ops/quant/fake_quant.cc and fake_quant_gradient.cc, and of Dequantize."""


def calls(add):
    x = f32([-10, -1.01, -1, -0.5, -0.1, 0, 0.06, 0.3, 0.999, 1, 2.5, 7, np.inf, -np.inf])
    dy = random(tf.float32, x.shape)
    ranges = [(-1, 1), (0, 6), (-0.1, 2.9), (-6, 0), (1, 2), (-3, -1)]
    for bits, narrow in [(8, False), (8, True), (4, False), (2, True), (16, False)]:
        attrs = dict(num_bits=bits, narrow_range=narrow)
        for low, high in ranges:
            add("FakeQuantWithMinMaxArgs", [x], min=float(low), max=float(high), **attrs)
            add("FakeQuantWithMinMaxArgsGradient", [dy, x], min=float(low), max=float(high), **attrs)
            add("FakeQuantWithMinMaxVars", [x, f32(low), f32(high)], **attrs)
            add("FakeQuantWithMinMaxVarsGradient", [dy, x, f32(low), f32(high)], atol=1e-6,
                rtol=1e-6, **attrs)
        rows = x[:12].reshape([2, 2, 3])
        low, high = f32([-1, 0, -3]), f32([1, 6, 0.5])
        add("FakeQuantWithMinMaxVarsPerChannel", [rows, low, high], **attrs)
        add("FakeQuantWithMinMaxVarsPerChannelGradient",
            [random(tf.float32, rows.shape), rows, low, high], atol=1e-6, rtol=1e-6, **attrs)
    add("FakeQuantWithMinMaxVars", [x, f32(0), f32(0)])
    add("FakeQuantWithMinMaxVarsGradient", [dy, x, f32(0), f32(0)], atol=1e-6)
    add("FakeQuantWithMinMaxArgs", [x], min=1.0, max=-1.0)
    add("FakeQuantWithMinMaxArgs", [x], num_bits=17)
    add("FakeQuantWithMinMaxVars", [x, f32([0]), f32(1)])
    add("FakeQuantWithMinMaxVarsPerChannel", [rows, low[:2], high])
    add("FakeQuantWithMinMaxVarsGradient", [dy[:3], x, f32(0), f32(1)])
