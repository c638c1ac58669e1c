"""Calls of RandomGamma and its stateless forms: ops/random/random_gamma.cc."""

KEY = [u64([5]), u64([7, 2**64 - 1]), i32(1)]


def calls(add):
    for array in [f16, f32, f64]:
        for alphas in [[0.3, 1, 2.5], [[0.05, 20], [1000, 0.99]]]:
            shape = [2] + list(np.shape(alphas))
            add("RandomGamma", [i32([2, 3]), array(alphas)], seed=1, seed2=2, ulps=4)
            add("StatelessRandomGammaV2", [i32(shape), i64([3, 4]), array(alphas)], ulps=4)
            add("StatelessRandomGammaV3", [i64(shape)] + KEY + [array(alphas)], ulps=4)
    odd = f32([-1, 0, np.nan, np.inf, -0.5])
    add("RandomGamma", [i32([2]), odd], seed=1, seed2=2)
    add("RandomGamma", [i32([]), f32(1.5)], seed=1, seed2=2, ulps=4)
    add("RandomGamma", [i32([0]), f32([1, 2])], seed=1, seed2=2)
    add("RandomGamma", [i32([2]), np.zeros([0], np.float32)], seed=1, seed2=2)
    add("RandomGamma", [i32(2), f32([1])], seed=1, seed2=2)
    add("StatelessRandomGammaV2", [i32([3, 3]), i32([1, 2]), f32([1, 2])])
    add("StatelessRandomGammaV2", [i32([3, 0]), i32([1, 2]), np.zeros([0], np.float32)])
