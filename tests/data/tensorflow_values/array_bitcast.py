"""Calls of Bitcast."""


def calls(add):
    add("Bitcast", [f32([1, -2])], type=tf.uint8)
    add("Bitcast", [f32([1, -2])], type=tf.int32)
    add("Bitcast", [f64([1.5])], type=tf.half)
    add("Bitcast", [u8([[1, 2, 3, 4], [5, 6, 7, 8]])], type=tf.int32)
    add("Bitcast", [i32([[1, 2], [3, 4]])], type=tf.complex64)
    add("Bitcast", [u16([[1, 2]])], type=tf.uint32)
    add("Bitcast", [i8([1, -1])], type=tf.qint8)
    add("Bitcast", [u8([1, 2, 3])], type=tf.float32)
    add("Bitcast", [u8(1)], type=tf.uint16)
