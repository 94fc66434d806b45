"""A library of arrays that give their memory by DLPack alone."""

import numpy


class Array:
    def __init__(self, numbers):
        self._numbers = numbers

    def __dlpack__(self, **_):
        return self._numbers.__dlpack__()

    def __dlpack_device__(self):
        return self._numbers.__dlpack_device__()

    def __reduce__(self):
        raise TypeError("cannot be pickled")

    def numpy(self):
        return self._numbers


def from_dlpack(x):
    return Array(numpy.asarray(x))


def negate(array):
    array.numpy()[...] *= -1
    return array


def read_only(array):
    array.numpy().flags.writeable = False
    return array
