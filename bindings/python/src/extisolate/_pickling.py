"""Objects as messages: a pickle, and beside it the memory that is shared and not copied."""

from __future__ import annotations

import importlib.util
import io
import pickle
import threading
from types import FunctionType
from typing import Any, Callable

from . import _extisolate, _functions

PLAIN, PICKLED, BYTES = range(3)
COPY, READONLY = 1, 2

# kind, payload, shared memory, and how much of that are buffers of the pickle's own.
Message = tuple[int, Any, tuple[memoryview, ...], int]

# Bytes up to this size are copied twice; they are too few to matter.
_BYTES_COPIED = 1 << 16


class NotShareableError(TypeError):
    """An object that cannot be given to another interpreter."""


class _ByValueError(Exception):
    """Pickle would name what another interpreter cannot import by that name."""


# What unpickles on this thread, for the shared memory that is not the pickle's own.
_loading = threading.local()


def take_memory(index: int) -> memoryview:
    """Give the memory of this number; for unpickling only."""
    memory: memoryview = _loading.memory[index]
    return memory


def copied_memory(data: bytes, format: str, shape: tuple[int, ...], readonly: bool) -> memoryview:
    """Make a memoryview of memory of its own."""
    memory = memoryview(data if readonly else bytearray(data))
    return memory if (format, len(shape)) == ("B", 1) else memory.cast(format, shape)  # type: ignore


def array_of(memory: memoryview, dtype: Any) -> Any:
    """Make an array of shared memory, whose items are of a type that buffers cannot name."""
    import numpy

    array = numpy.asarray(memory)
    return array if dtype is None else array.view(dtype)


def tensor_of(array: Any) -> Any:
    """Make a tensor that has the array's memory."""
    import torch

    return torch.from_numpy(array)


class _Sharing:
    """The memory that a message shares."""

    def __init__(self, policy: int) -> None:
        self.policy = policy
        self.buffers: list[memoryview] = []  # the pickle's own, in its order
        self.memory: list[memoryview] = []  # by number

    def _as_asked(self, memory: memoryview) -> memoryview:
        return memory.toreadonly() if self.policy & READONLY else memory

    def add_buffer(self, buffer: pickle.PickleBuffer) -> None:
        self.buffers.append(self._as_asked(buffer.raw()))

    def add_memory(self, memory: memoryview) -> Any:
        if self.policy & COPY:
            return copied_memory, (memory.tobytes(), memory.format, memory.shape, memory.readonly)
        self.memory.append(self._as_asked(memory))
        return take_memory, (len(self.memory) - 1,)

    def reduce_array(self, array: Any) -> Any:
        """Share what numpy would copy: an array with gaps, or with a type that no buffer has."""
        if self.policy & COPY or array.dtype.hasobject or array.dtype.names:
            return NotImplemented
        dtype = array.dtype if array.dtype.kind in "mM" else None
        if dtype is None and (array.flags.c_contiguous or array.flags.f_contiguous):
            return NotImplemented
        if array.ndim == 0:
            return NotImplemented
        if dtype is not None:
            array = array.view("i8")
        return array_of, (memoryview(array), dtype)

    def reduce_tensor(self, tensor: Any) -> Any:
        import torch

        if self.policy & COPY or tensor.device.type != "cpu" or tensor.requires_grad:
            return NotImplemented
        if tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
            return NotImplemented
        try:
            return tensor_of, (tensor.numpy(),)
        except (TypeError, RuntimeError):  # a type that numpy has not
            return NotImplemented

    def reduce(self, obj: Any) -> Any:
        cls = type(obj)
        if cls is memoryview:
            return self.add_memory(obj)
        if cls.__module__ == "numpy" and cls.__name__ == "ndarray":
            return self.reduce_array(obj)
        if cls.__module__ == "torch" and cls.__name__ == "Tensor":
            return self.reduce_tensor(obj)
        return NotImplemented


class _Pickler(pickle.Pickler):
    """Names functions and classes; notes if that would not do."""

    def __init__(self, file: io.BytesIO, sharing: _Sharing, by_value: bool) -> None:
        callback = None if sharing.policy & COPY else sharing.add_buffer
        super().__init__(file, 5, buffer_callback=callback)
        self._sharing = sharing
        self._by_value = by_value

    def reducer_override(self, obj: Any) -> Any:
        """Reduce what pickle would copy, or could not name."""
        if type(obj) is FunctionType:
            if _functions.importable(obj):
                return NotImplemented
            if not self._by_value:
                raise _ByValueError
            return _functions.reduce_function(obj)
        if isinstance(obj, type):
            if obj.__module__ == "__main__" and not self._by_value:
                raise _ByValueError
            return NotImplemented
        return self._sharing.reduce(obj)


def _cloud_pickler() -> Callable[[io.BytesIO, _Sharing], pickle.Pickler] | None:
    if importlib.util.find_spec("cloudpickle") is None:
        return None
    import cloudpickle

    class CloudPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def __init__(self, file: io.BytesIO, sharing: _Sharing) -> None:
            callback = None if sharing.policy & COPY else sharing.add_buffer
            super().__init__(file, 5, buffer_callback=callback)
            self._sharing = sharing

        def reducer_override(self, obj: Any) -> Any:
            reduced = self._sharing.reduce(obj)
            return super().reducer_override(obj) if reduced is NotImplemented else reduced

    return CloudPickler


_cloud: list[Any] = []  # the pickler, or None, once it was looked for


def _by_value_pickler(file: io.BytesIO, sharing: _Sharing) -> pickle.Pickler:
    if not _cloud:
        _cloud.append(_cloud_pickler())
    if _cloud[0] is not None:
        pickler: pickle.Pickler = _cloud[0](file, sharing)
        return pickler
    return _Pickler(file, sharing, True)


def _pickle(obj: object, policy: int) -> Message:
    file, sharing = io.BytesIO(), _Sharing(policy)
    try:
        _Pickler(file, sharing, False).dump(obj)
    except _ByValueError:
        file, sharing = io.BytesIO(), _Sharing(policy)
        _by_value_pickler(file, sharing).dump(obj)
    return (PICKLED, file.getvalue(), (*sharing.buffers, *sharing.memory), len(sharing.buffers))


class _Bytes:
    """Bytes as shared memory, of which the other side makes bytes: the only copy."""

    def __init__(self, value: bytes) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        return bytes, (memoryview(self.value),)


def light(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give the arguments with as little for pickle to copy as can be."""
    return tuple(_Bytes(a) if type(a) is bytes and len(a) > _BYTES_COPIED else a for a in args)


def pack(obj: object, policy: int = 0) -> Message:
    """Make a message of an object; NotShareableError: it has none."""
    if type(obj) is bytes and len(obj) > _BYTES_COPIED:
        return (BYTES, memoryview(obj), (), 0)
    if _extisolate.plain(obj):
        return (PLAIN, obj, (), 0)
    try:
        return _pickle(obj, policy)
    except RecursionError:
        raise
    except Exception as e:
        raise NotShareableError(
            f"{type(obj).__name__!r} cannot be given to another interpreter: {e}"
        ) from e


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module not in _functions.MAIN_NAMES:
            return super().find_class(module, name)
        try:
            return super().find_class("__main__", name)
        except AttributeError:
            return getattr(_functions.main_program(), name)


def unpack(kind: int, payload: Any, shared: tuple[memoryview, ...], own: int) -> Any:
    """Give the object that the message is of."""
    if kind == PLAIN:
        return payload
    if kind == BYTES:
        return bytes(payload)
    outer = getattr(_loading, "memory", None)
    _loading.memory = shared[own:]
    try:
        return _Unpickler(io.BytesIO(payload), buffers=shared[:own]).load()
    finally:
        _loading.memory = outer
