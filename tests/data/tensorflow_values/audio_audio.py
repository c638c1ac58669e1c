"""Calls of DecodeWav, EncodeWav, AudioSpectrogram and Mfcc."""

import struct


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data


def wav(rate=8000, channels=1, samples=(0, 1, -1, 32767, -32768), **changes):
    fields = {"code": 1, "bits": 16, "bytes_per_frame": 2 * channels, "extra": b"", "before": b"", "after": b""}
    fields["bytes_per_second"] = rate * 2 * channels
    fields.update(changes)
    form = struct.pack(
        "<HHIIHH",
        fields["code"],
        channels,
        rate,
        fields["bytes_per_second"],
        fields["bytes_per_frame"],
        fields["bits"],
    )
    data = fields.get("data", struct.pack(f"<{len(samples)}h", *samples))
    body = b"WAVE" + fields["before"] + chunk(b"fmt ", form + fields["extra"]) + chunk(b"data", data) + fields["after"]
    return chunk(b"RIFF", body)


def calls(add):
    files = [wav(), wav(channels=2, samples=(1, 2, 3, 4, 5, 6)), wav(rate=44100, samples=()), wav(rate=0)]
    files += [wav(extra=b"\0\0"), wav(before=chunk(b"JUNK", b"abc")), wav(after=chunk(b"LIST", b"abcd"))]
    files += [wav(before=chunk(b"bext", b"") + chunk(b"axml", b"x")), wav(channels=3, samples=(1, 2, 3))]
    for contents in files:
        for channels in [-1, 1, 2]:
            for samples in [-1, 0, 2, 9]:
                add("DecodeWav", [text(contents)], desired_channels=channels, desired_samples=samples)
    bad = [b"", b"RIFF", b"RIFX" + wav()[4:], wav()[:-1], wav()[:40], wav(code=3), wav(bits=8), wav(channels=0)]
    bad += [wav(bytes_per_frame=4), wav(bytes_per_second=1), wav(extra=b"\0"), wav(before=chunk(b"xxxx", b""))]
    bad += [wav(after=b"ab"), wav(after=b"data\1\0\0\0a"), wav(after=b"LIST\xff\xff\xff\x7f"), wav(data=b"\1\0\2")]
    bad += [wav(before=b"JUNK\xff\xff\xff\xff"), wav().replace(b"data", b"dato"), wav(after=b"LIST\xff\xff\xff\xff")]
    bad += [wav(channels=2, samples=(1, 2, 3)), wav()[:36] + b"data\xff\xff\xff\x7f", wav()[:36] + b"data\0\0\0\x80"]
    for contents in bad:
        add("DecodeWav", [text(contents)])
    add("DecodeWav", [text([wav()])])
    add("DecodeWav", [text(wav())], desired_channels=-2)
    add("DecodeWav", [text(wav())], desired_samples=-2)

    for shape in [[0, 1], [1, 1], [5, 1], [5, 2], [3, 7]]:
        add("EncodeWav", [random(tf.float32, shape, -1.2, 1.2), i32(44100)])
    add("EncodeWav", [f32([[1], [-1], [0.99999], [1 / 65536], [-1 / 65536], [np.inf], [-np.inf]]), i32(1)])
    for audio, rate in [([[0]], 0), ([[0]], -1), ([[]], 8), ([0], 8), ([[0]], [8])]:
        add("EncodeWav", [f32(audio), i32(rate)])

    near = {"rtol": 2e-6, "atol": 1e-6}
    audio = random(tf.float32, [300, 2])
    for size in [2, 3, 16, 17, 100, 256, 300, 301]:
        for stride in [1, 7, 100, 500] if size < 20 else [50, 300]:
            for squared in [False, True]:
                attrs = {"window_size": size, "stride": stride, "magnitude_squared": squared}
                rows = audio if size * 2 > stride and stride > 1 else audio[:20]
                add("AudioSpectrogram", [rows[:, :1] if size < 20 else rows], **attrs, **near)
    for size, stride in [(1, 1), (0, 1), (4, 0), (4, -1)]:
        add("AudioSpectrogram", [audio[:9]], window_size=size, stride=stride)
    add("AudioSpectrogram", [audio[:0]], window_size=4, stride=1)
    add("AudioSpectrogram", [audio[:, :0]], window_size=4, stride=1)
    add("AudioSpectrogram", [audio[:, 0]], window_size=4, stride=1)
    tone = np.sin(np.arange(400, dtype=np.float32) * 0.3)[:, None] * 0.5
    add("AudioSpectrogram", [tone.astype(np.float32)], window_size=256, stride=64, rtol=2e-6, atol=1e-5)

    near = {"rtol": 1e-5, "atol": 1e-5}
    powers = random(tf.float32, [2, 3, 129], 0, 4)
    for rate in [8000, 16000, 44100]:
        add("Mfcc", [powers, i32(rate)], **near)
        add("Mfcc", [powers, i32(rate)], upper_frequency_limit=3000.0, lower_frequency_limit=100.0, **near)
        add("Mfcc", [powers, i32(rate)], filterbank_channel_count=10, dct_coefficient_count=10, **near)
        add("Mfcc", [powers, i32(rate)], filterbank_channel_count=100, dct_coefficient_count=3, **near)
    add("Mfcc", [powers[:, :, :33], i32(8000)], upper_frequency_limit=4000.0, **near)
    add("Mfcc", [powers, i32(4000)], **near)
    add("Mfcc", [powers * 0, i32(16000)], **near)
    add("Mfcc", [powers[:, :0], i32(16000)], **near)
    add("Mfcc", [powers[:, :, :1], i32(16000)])
    for rate in [0, -1, [16000]]:
        add("Mfcc", [powers[:1], i32(rate)])
    add("Mfcc", [powers[0], i32(16000)])
    for attrs in [
        {"filterbank_channel_count": 0},
        {"dct_coefficient_count": 0},
        {"dct_coefficient_count": 41},
        {"lower_frequency_limit": -1.0},
        {"lower_frequency_limit": 5000.0},
    ]:
        add("Mfcc", [powers[:1, :1], i32(16000)], **attrs)
