"""Memory that messages share: what of an object it is, and how the object is made of it again."""

from __future__ import annotations

import contextlib
import sys
import threading

from . import _extisolate

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pickle
    from collections.abc import Iterator
    from typing import Any

COPY, READONLY = 1, 2

# What unpickles on this thread, for the shared memory that is not the pickle's own.
_loading = threading.local()


@contextlib.contextmanager
def given(memory: tuple[Any, ...]) -> Iterator[None]:
    """Let what is unpickled meanwhile have this memory."""
    outer = getattr(_loading, "memory", None)
    _loading.memory = memory
    try:
        yield
    finally:
        _loading.memory = outer


# ---- on the side that receives ----


def take_memory(index: int) -> Any:
    """Give the memory of this number, or the proxy; for unpickling only."""
    return _loading.memory[index]


def copied_memory(data: bytes, format: str, shape: tuple[int, ...], readonly: bool) -> memoryview:
    """Make a memoryview of memory of its own."""
    memory = memoryview(data if readonly else bytearray(data))
    return memory if (format, len(shape)) == ("B", 1) else memory.cast(format, shape)  # type: ignore


def array_of(memory: memoryview, dtype: Any) -> Any:
    """Make an array of shared memory, whose items are of a type that buffers cannot name."""
    import numpy

    array = numpy.asarray(memory)
    return array if dtype is None else array.view(dtype)


def tensor_of(array: Any, dtype: Any, requires_grad: bool) -> Any:
    """Make a tensor that has the array's memory, of a type that numpy may not have."""
    import torch

    tensor = torch.from_numpy(array)
    if dtype is not None:
        tensor = tensor.view(dtype)
    return tensor.requires_grad_(requires_grad)


# ---- on the side that gives ----


class Held:
    """A bytearray, array or mmap, to which pickle would do what it likes."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj


def _held_types(policy: int) -> tuple[type, ...]:
    """Give the types whose memory is shared, and that cannot be made of shared memory again."""
    found: list[type] = []
    array, mmap = sys.modules.get("array"), sys.modules.get("mmap")
    if mmap is not None:
        found.append(mmap.mmap)
    if not policy & COPY:
        found.append(bytearray)
        if array is not None:
            found.append(array.array)
    return tuple(found)


def _wrap(obj: Any, wanted: tuple[type, ...], known: dict[int, Any]) -> Any:
    if id(obj) in known:
        return known[id(obj)]
    cls = type(obj)
    made = obj
    if cls in wanted and not (cls.__name__ == "array" and obj.typecode in "uw"):
        made = Held(obj)
    elif cls is list:
        made = known[id(obj)] = []
        made.extend(_wrap(item, wanted, known) for item in obj)
    elif cls is dict:
        made = known[id(obj)] = {}
        made.update((key, _wrap(item, wanted, known)) for key, item in obj.items())
    elif cls is tuple:
        made = tuple(_wrap(item, wanted, known) for item in obj)
        made = known.get(id(obj), made)  # by way of what is in it
    known[id(obj)] = made
    return made


def holding(obj: object, wanted: tuple[type, ...]) -> object:
    """Give the object to pickle: one in which those of these types are held."""
    return _wrap(obj, wanted, {}) if wanted and _extisolate.holds(obj, wanted) else obj


def wrapped(obj: object, policy: int) -> object:
    """Give the object to pickle: one in which bytearrays, arrays and mmaps can be recognised."""
    return holding(obj, _held_types(policy))


class Sharing:
    """The memory that a message shares."""

    def __init__(self, policy: int) -> None:
        self.policy = policy
        self.buffers: list[memoryview] = []  # the pickle's own, in its order
        self.memory: list[Any] = []  # by number; proxies, too

    def _as_asked(self, memory: memoryview) -> memoryview:
        return memory.toreadonly() if self.policy & READONLY else memory

    def add_buffer(self, buffer: pickle.PickleBuffer) -> None:
        """Share what the pickle asks for."""
        self.buffers.append(self._as_asked(buffer.raw()))

    def _add_memory(self, memory: memoryview) -> Any:
        if "O" in "".join(memory.format.split(":")[::2]):  # names of fields are between colons
            raise TypeError("memory in which objects are belongs to their interpreter")
        if self.policy & COPY:
            return copied_memory, (memory.tobytes(), memory.format, memory.shape, memory.readonly)
        self.memory.append(self._as_asked(memory))
        return take_memory, (len(self.memory) - 1,)

    def _reduce_array(self, array: Any) -> Any:
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

    def _reduce_tensor(self, tensor: Any) -> Any:
        import torch

        if self.policy or tensor.device.type != "cpu":  # torch has no read-only memory
            return NotImplemented
        if tensor.layout is not torch.strided or tensor.__dict__ or tensor._backward_hooks:
            return NotImplemented
        # A tensor may say that its numbers are to be conjugated, which memory alone does not.
        data, dtype = tensor.detach().resolve_conj().resolve_neg(), None
        try:
            try:
                array = data.numpy()
            except TypeError:  # a type that numpy has not, as bfloat16
                size, dtype = tensor.element_size(), tensor.dtype
                array = data.view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[size]).numpy()
        except (KeyError, TypeError, RuntimeError):  # no plain numbers: quantized
            return NotImplemented
        return tensor_of, (array, dtype, tensor.requires_grad)

    def reduce(self, obj: Any) -> Any:
        """Reduce for pickle what has memory to share, else give NotImplemented."""
        cls = type(obj)
        if issubclass(cls, _extisolate.Linked):
            self.memory.append(obj)
            return take_memory, (len(self.memory) - 1,)
        if cls in (memoryview, Held):
            return self._add_memory(obj if cls is memoryview else memoryview(obj.obj))
        if cls.__module__ == "numpy" and cls.__name__ == "ndarray":
            return self._reduce_array(obj)
        if cls.__module__ == "torch" and cls.__name__ == "Tensor":
            return self._reduce_tensor(obj)
        if hasattr(cls, "__dlpack__") and not self.policy:  # DLPack has no read-only memory
            from . import _dlpack

            return _dlpack.reduce(obj)
        return NotImplemented
