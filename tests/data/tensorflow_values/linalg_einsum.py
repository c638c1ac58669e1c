"""Calls of the op in ops/linalg/einsum.cc."""


def calls(add):
    # The tolerance makes 0 and -0 equal.
    def einsum(equation, *shapes, dtype=tf.float64):
        inputs = [random(dtype, s, -5, 5, seed=i + 1).round() for i, s in enumerate(shapes)]
        add("Einsum", [inputs], equation=equation, rtol=1e-6)

    for dtype in [tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64,
                  tf.complex128]:
        einsum("ij,jk->ik", [2, 3], [3, 2], dtype=dtype)
        einsum("ij->ji", [2, 3], dtype=dtype)
        einsum("iij->j", [2, 2, 3], dtype=dtype)
    einsum("bij,bkj->bki", [2, 2, 3], [2, 3, 3])
    einsum("abcd,dcef->efab", [2, 1, 3, 2], [2, 3, 2, 2])
    einsum("...ij,...jk->...ik", [3, 1, 2, 2], [2, 2, 1])
    einsum("ij...,jk...->ik...", [2, 3, 2], [3, 2, 2])
    einsum("...,...->...", [2, 1], [3])
    einsum("i...->...", [2, 3])
    einsum("i,j->ij", [2], [3])
    einsum("i,i->", [3], [3])
    einsum("i->ii", [3])
    einsum("ij->ijj", [2, 3])
    einsum("ii,i->i", [3, 3], [3])
    einsum(",->", [], [])
    einsum("i,->i", [2], [])
    einsum("ij,jk->ik", [0, 3], [3, 2])
    einsum("ij,jk->ik", [2, 0], [0, 2])
    einsum("ij", [2, 3])
    einsum("ij->i->j", [2, 3])
    einsum("...i->i", [2, 3])
    einsum("ij,jk->ik", [2, 3], [2, 3])
    einsum("ii->i", [2, 3])
    einsum("i,j->ij", [2, 3], [2])
