"""Calls of ops/random/truncated_normal.cc, small enough for one block of TensorFlow's."""


def calls(add):
    inf = np.inf
    seed = i64([1, 2])
    cases = [(0, 1, -1, 1), (2, 3, -inf, 5), (1, 0.5, 2, inf), (0, 1, 3, 3.5), (0, 2, 5, 50), (-1, 1, -9, 8), (5, 1, -inf, 2)]
    for array in [f32, f64]:
        for mean, stddev, low, high in cases:
            params = [array(mean), array(stddev), array(low), array(high)]
            add("ParameterizedTruncatedNormal", [i32([7])] + params, seed=1, seed2=2, ulps=64)
            add("StatelessParameterizedTruncatedNormal", [i32([7]), seed] + params, ulps=64)
        params = [array([0, 1, 2]), array(1), array(-1.5), array([1, 4, 3])]
        add("ParameterizedTruncatedNormal", [i64([3, 2])] + params, seed=3, seed2=4, ulps=64)
        add("StatelessParameterizedTruncatedNormal", [i64([4, 3]), seed] + params, ulps=64)
        add("StatelessParameterizedTruncatedNormal", [i64([2, 1, 3]), seed, array([[1]])] + params[1:], ulps=64)
    one = [f32(0), f32(1), f32(-1), f32(1)]
    add("ParameterizedTruncatedNormal", [i32([])] + one)
    add("ParameterizedTruncatedNormal", [i32([2])] + [f32(0), f32(-1), f32(-1), f32(1)])
    add("ParameterizedTruncatedNormal", [i32([2])] + [f32(0), f32(1), f32(1), f32(-1)])
    add("ParameterizedTruncatedNormal", [i32([2])] + [f32([0, 1, 2]), f32(1), f32(-1), f32(1)])
    add("StatelessParameterizedTruncatedNormal", [i32([2]), seed, f32(0), f32(1), f32(-inf), f32(inf)])
    add("StatelessParameterizedTruncatedNormal", [i32([2]), seed, f32([0, 1, 2]), f32(1), f32(-1), f32(1)])
    add("StatelessParameterizedTruncatedNormal", [i32([0]), seed] + one)
