"""What operations on objects of other interpreters are given: by value, or as proxies."""

from __future__ import annotations

import builtins
import collections
import enum
import io
import pickle
import sys

from . import _extisolate, _memory, _pickling
from ._message import PICKLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OBJECT, DATA, VALUE = range(3)

# Types whose objects are values and nothing more, of modules that have no other objects.
_VALUE_MODULES = frozenset(
    (
        *("datetime", "decimal", "fractions", "ipaddress", "uuid", "zoneinfo"),
        *("pathlib", "pathlib._local"),  # of CPython 3.13
    )
)
_COPIED_TYPES = (
    *(list, dict, set, frozenset, range),
    *(collections.OrderedDict, collections.defaultdict, collections.Counter),
)
# By one of these, objects offer their data to whoever wants them.
_DATA_METHODS = (
    "__array__",
    "__dlpack__",
    "__arrow_array__",
    "__arrow_c_array__",
    "__arrow_c_stream__",
    "__dataframe__",
)


def _is_copied(cls: type) -> bool:
    return any(cls is each for each in _COPIED_TYPES)  # metaclasses may compare in other ways


def _is_number(cls: type) -> bool:
    """Tell whether it is numpy's type of a number, or of a truth value, a date or a text."""
    numpy = sys.modules.get("numpy")
    return (
        numpy is not None
        and issubclass(cls, numpy.generic)
        and not issubclass(cls, (numpy.void, numpy.object_))
    )


def data_kind(cls: type) -> int:
    """Tell whether copies are given of objects of a type, and got, too."""
    if cls.__module__ in _VALUE_MODULES or _is_number(cls):
        return VALUE
    if _is_copied(cls) or issubclass(cls, (BaseException, enum.Enum)):
        return DATA
    return DATA if any(hasattr(cls, name) for name in _DATA_METHODS) else OBJECT


class _Pickler(pickle.Pickler):
    """Pickles lists, dicts and sets, and data in them; whatever else is in them is shared."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 5)
        self.shared: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        cls = type(obj)
        by_name = cls is type and (getattr(builtins, obj.__name__, None) is obj or _is_copied(obj))
        if by_name or _is_copied(cls) or obj is unpack_nested or obj is _memory.take_memory:
            return NotImplemented
        if cls is _memory.Held:
            obj, cls = obj.obj, type(obj.obj)
        if not issubclass(cls, (_extisolate.Linked, type)) and data_kind(cls):
            try:
                return self._nested(*_pickling.pickled(_memory.wrapped(obj, 0), 0))
            except RecursionError:
                raise
            except Exception:
                pass  # it has no copy
        self.shared.append(_extisolate.share(obj, True))
        return _memory.take_memory, (len(self.shared) - 1,)

    def _nested(self, kind: int, payload: Any, shared: tuple[Any, ...], own: int) -> Any:
        begin = len(self.shared)
        self.shared.extend(shared)
        return unpack_nested, (payload, begin, len(self.shared), own)


def unpack_nested(payload: bytes, begin: int, end: int, own: int) -> Any:
    """Give data that were in a container; for unpickling only."""
    shared = tuple(_memory.take_memory(i) for i in range(begin, end))
    return _pickling.unpack(PICKLED, payload, shared, own)


def packed(obj: Any) -> tuple[Any, ...]:
    """Make a message of what is data, or in which there may be some."""
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(_memory.holding(obj, (bytearray,)))  # which pickle would copy
    return file.getvalue(), tuple(pickler.shared)


def unpacked(payload: bytes, shared: tuple[Any, ...]) -> Any:
    return _pickling.unpack(PICKLED, payload, shared, 0)
