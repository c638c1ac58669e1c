"""Calls of the ops in ops/math/fft.cc. TensorFlow has no kernels of FFTND and the like."""


def calls(add):
    for real, complex_, rtol in [(tf.float32, tf.complex64, 1e-5), (tf.float64, tf.complex128, 1e-13)]:
        near = dict(atol=rtol, rtol=rtol)
        z = random(complex_, [2, 3, 4], -2, 2)
        x = random(real, [2, 3, 5], -2, 2)
        for op in ["FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"]:
            add(op, [z], **near)
        for lengths in [[5], [4], [1]]:
            add("RFFT", [x, i32(lengths)], Tcomplex=complex_, **near)
        for lengths in [[7], [6], [4], [1]]:
            add("IRFFT", [z, i32(lengths)], Treal=real, **near)
        for lengths in [[3, 5], [2, 4]]:
            add("RFFT2D", [x, i32(lengths)], Tcomplex=complex_, **near)
            add("IRFFT2D", [z, i32(lengths)], Treal=real, **near)
        for lengths in [[2, 3, 5], [1, 2, 4]]:
            add("RFFT3D", [x, i32(lengths)], Tcomplex=complex_, **near)
            add("IRFFT3D", [z, i32(lengths)], Treal=real, **near)
        add("FFT", [random(complex_, [23], -2, 2)], atol=10 * rtol, rtol=rtol)
    x = f32([1, 2, 3, 4])
    for lengths in [[6], [4, 4], 4]:
        add("RFFT", [x, i32(lengths)])
    add("RFFT", [np.zeros([0, 4], np.float32), i32([4])])
    add("IRFFT", [c64([1, 2, 3]), i32([8])])
    add("RFFT", [x, i32([4])], Tcomplex=tf.complex128)
    add("FFT", [c64(1)])
    add("FFT2D", [c64([1])])
    add("FFT", [np.zeros([2, 0], np.complex64)])
    # Transforms of length 0. Where only the last length is 0, TensorFlow ends the process.
    for shape, lengths in [((1, 3), [0, 2]), ((2, 2, 2), [0, 1, 2]), ((2, 2, 2), [1, 0, 2])]:
        x = np.ones(shape, np.float32)
        rank = len(lengths)
        add(f"RFFT{rank}D", [x, i32(lengths)])
        add(f"IRFFT{rank}D", [x + 0j * c64(x), i32(lengths)])
    for shape in [(0,), (2, 0), (0, 2)]:
        x = np.zeros(shape, np.float32)
        add("RFFT", [x, i32([0])])
        add("IRFFT", [c64(x), i32([0])])
