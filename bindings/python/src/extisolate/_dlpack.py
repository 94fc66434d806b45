"""Arrays of other libraries that give their memory by DLPack, and not by the buffer protocol."""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any

# Their own pickling shares memory, or what is shared of them is said elsewhere.
_OTHERS = {"numpy", "pyarrow", "torch"}
_CPU = 1
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # those that numpy has, too


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Memory:
    """What numpy makes an array of; keeps the memory by its capsule, which nobody consumes."""

    def __init__(self, capsule: Any, tensor: _Tensor) -> None:
        size = tensor.bits // 8
        dims = range(tensor.ndim)
        self.capsule = capsule
        self.__array_interface__ = {
            "version": 3,
            "data": ((tensor.data or 0) + tensor.byte_offset, False),
            "typestr": f"{'<' if sys.byteorder == 'little' else '>'}{_KINDS[tensor.code]}{size}",
            "shape": tuple(tensor.shape[i] for i in dims),
            "strides": tuple(tensor.strides[i] * size for i in dims) if tensor.strides else None,
        }


def _array_of(obj: Any) -> Any:
    """Give the object's memory as numpy's array; numpy itself would take it for read-only."""
    import numpy

    capsule = obj.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    if tensor.lanes != 1 or tensor.bits % 8 or tensor.code not in _KINDS:
        return None
    return numpy.asarray(_Memory(capsule, tensor))


def _module_of(obj: Any) -> str | None:
    """Name the module that makes such objects of memory."""
    if hasattr(obj, "__array_namespace__"):
        module = obj.__array_namespace__()
    else:
        module = sys.modules.get(type(obj).__module__.partition(".")[0])
    return module.__name__ if hasattr(module, "from_dlpack") else None


def from_array(module: str, array: Any) -> Any:
    """Make an object of the other library's kind of the array's memory."""
    return importlib.import_module(module).from_dlpack(array)


def reduce(obj: Any) -> Any:
    """Reduce for pickle what has memory that the processor reads, else give NotImplemented."""
    cls = type(obj)
    if not {base.__module__.partition(".")[0] for base in cls.__mro__}.isdisjoint(_OTHERS):
        return NotImplemented
    if not hasattr(cls, "__dlpack_device__") or obj.__dlpack_device__()[0] != _CPU:
        return NotImplemented
    module = _module_of(obj)
    try:
        array = None if module is None else _array_of(obj)
    except (ImportError, BufferError):  # no numpy; memory that may not be written to
        array = None
    return NotImplemented if array is None else (from_array, (module, array))
