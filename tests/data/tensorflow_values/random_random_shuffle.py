"""Calls of RandomShuffle and StatelessShuffle: ops/random/random_shuffle.cc."""

KEY = [u64([5]), u64([7, 9]), i32(1)]


def calls(add):
    for value in [
        i32(3),
        f32([1]),
        i8(range(40)),
        i64([[1, 2], [3, 4], [5, 6]]),
        c128([[1, 2j], [3, 4j], [5, 6]]),
        text([b"a", b"bc", b"", b"def"]),
        np.ones([0, 2], np.float32),
    ]:
        add("RandomShuffle", [value], seed=1, seed2=2)
        add("StatelessShuffle", [value] + KEY)
    add("StatelessShuffle", [i32([1, 2]), u64([5]), u64([7, 9]), i32(2)])
