"""Objects as messages: a pickle, and beside it the memory that is shared and not copied."""

from __future__ import annotations

import io
import pickle
from types import FunctionType

from . import _extisolate, _functions, _memory
from ._memory import COPY, Sharing
from ._message import PICKLED, PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._message import Message

# Bytes up to this size are copied twice; they are too few to matter.
_BYTES_COPIED = 1 << 16


class NotShareableError(TypeError):
    """An object that cannot be given to another interpreter."""


class _ByValueError(Exception):
    """Pickle would name what another interpreter cannot import by that name."""


class _Pickler(pickle.Pickler):
    """Names functions and classes; notes if that would not do."""

    def __init__(self, file: io.BytesIO, sharing: Sharing, by_value: bool) -> None:
        callback = None if sharing.policy & COPY else sharing.add_buffer
        super().__init__(file, 5, buffer_callback=callback)
        self._sharing = sharing
        self._by_value = by_value

    def reducer_override(self, obj: Any) -> Any:
        """Reduce what pickle would copy, or could not name."""
        if issubclass(type(obj), _extisolate.Linked):
            return self._sharing.reduce(obj)
        if type(obj) is FunctionType:
            if _functions.importable(obj):
                return NotImplemented
            from . import _kept

            # Cloudpickle takes longer to import than the interpreter to start.
            if not self._by_value and not _kept.is_closed(obj):
                raise _ByValueError
            return _functions.reduce_function(obj)
        if isinstance(obj, type):
            from . import _classes

            if obj.__module__ == "__main__" and not self._by_value:
                raise _ByValueError
            return _classes.reduce_class(obj) if _classes.is_own(obj) else NotImplemented
        reduced = self._sharing.reduce(obj)
        if reduced is NotImplemented and self._by_value:
            from . import _classes

            return _classes.reduce_part(obj)
        return reduced


def _cloud_pickler() -> Callable[[io.BytesIO, Sharing], pickle.Pickler] | None:
    try:
        import cloudpickle
    except ImportError:
        return None

    class CloudPickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def __init__(self, file: io.BytesIO, sharing: Sharing) -> None:
            callback = None if sharing.policy & COPY else sharing.add_buffer
            super().__init__(file, 5, buffer_callback=callback)
            self._sharing = sharing

        def reducer_override(self, obj: Any) -> Any:
            reduced = self._sharing.reduce(obj)
            return super().reducer_override(obj) if reduced is NotImplemented else reduced

    return CloudPickler


_cloud: list[Any] = []  # the pickler, or None, once it was looked for


def _by_value_pickler(file: io.BytesIO, sharing: Sharing) -> pickle.Pickler:
    if not _cloud:
        _cloud.append(_cloud_pickler())
    if _cloud[0] is not None:
        pickler: pickle.Pickler = _cloud[0](file, sharing)
        return pickler
    return _Pickler(file, sharing, True)


def pickled(obj: object, policy: int) -> Message:
    """Make a message of an object by pickle, with whatever exception that raises."""
    file, sharing = io.BytesIO(), Sharing(policy)
    try:
        _Pickler(file, sharing, False).dump(obj)
    except _ByValueError:
        file, sharing = io.BytesIO(), Sharing(policy)
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
    if _extisolate.plain(obj, policy):
        return (PLAIN, obj, (), 0)
    try:
        return pickled(_memory.wrapped(obj, policy), policy)
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


def unpack(kind: int, payload: Any, shared: tuple[Any, ...], own: int) -> Any:
    """Give the object that the message is of."""
    if kind == PLAIN:
        return payload
    with _memory.given(shared[own:]):
        return _Unpickler(io.BytesIO(payload), buffers=shared[:own]).load()
