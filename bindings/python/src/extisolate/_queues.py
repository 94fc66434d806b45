"""Queues between interpreters, with the interface of concurrent.interpreters."""

from __future__ import annotations

import queue
import time
import weakref
from typing import Any, ClassVar

from . import _extisolate, _pickling
from ._numbered import Numbered

# A wait is cut into pieces, so that signals and interrupts are seen.
_PIECE = 0.1


class QueueError(RuntimeError):
    """An error of a queue between interpreters."""


class QueueNotFoundError(QueueError):
    """There is no such queue, or no more."""


class QueueEmpty(QueueError, queue.Empty):
    """The queue is empty."""


class QueueFull(QueueError, queue.Full):
    """The queue is full."""


class Queue(Numbered):
    """A queue that any thread of any interpreter may use.

    It is made by ``create_queue()``, and sent to others as any object.  What was put into it is
    readable also after the interpreter that put it is closed.
    """

    _known: ClassVar[weakref.WeakValueDictionary[int, Queue]] = weakref.WeakValueDictionary()
    _owned: bool

    def __new__(cls, id: int, /) -> Queue:
        """Give the object for a queue that there is."""
        cls._check(id)
        if _extisolate.queue_count(id) is None:
            raise QueueNotFoundError(f"queue {id} not found")
        found = cls._known.get(id)
        if found is None:
            found = super().__new__(cls)
            found._id, found._owned = id, False
            cls._known[id] = found
        return found

    def __reduce__(self) -> Any:
        self._owned = False  # others have it now, for as long as the process lives
        return type(self), (self._id,)

    def __del__(self) -> None:
        if getattr(self, "_owned", False):
            _extisolate.queue_free(self._id)

    def _counts(self) -> tuple[int, int]:
        counts = _extisolate.queue_count(self._id)
        if counts is None:
            raise QueueNotFoundError(f"queue {self._id} not found")
        return counts

    @property
    def id(self) -> int:
        """Its number."""
        return self._id

    @property
    def maxsize(self) -> int:
        """How many items may be in it; 0: any number."""
        return self._counts()[1]

    def qsize(self) -> int:
        """Count its items."""
        return self._counts()[0]

    def empty(self) -> bool:
        """Tell whether it has no items."""
        return self.qsize() == 0

    def full(self) -> bool:
        """Tell whether it has as many items as it may."""
        count, most = self._counts()
        return 0 < most <= count

    def put(self, obj: object, block: bool = True, timeout: float | None = None) -> None:
        """Add an item; QueueFull: there was no room in time."""
        item = _pickling.pack(obj)
        end = _end_of(block, timeout)
        while not _extisolate.queue_put(self._id, item, _piece(end)):
            if time.monotonic() >= end:
                raise QueueFull

    def put_nowait(self, obj: object) -> None:
        """Add an item, or raise QueueFull."""
        self.put(obj, block=False)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item; QueueEmpty: there was none in time.

        >>> q = create_queue()
        >>> q.put("one")
        >>> q.get()
        'one'
        """
        end = _end_of(block, timeout)
        while True:
            item = _extisolate.queue_get(self._id, _piece(end))
            if item is not None:
                return _pickling.unpack(*item)
            if time.monotonic() >= end:
                raise QueueEmpty

    def get_nowait(self) -> Any:
        """Take the first item, or raise QueueEmpty."""
        return self.get(block=False)


def _end_of(block: bool, timeout: float | None) -> float:
    if not block:
        return 0.0
    if timeout is None:
        return float("inf")
    if timeout < 0:
        raise ValueError(f"timeout value must be 0 or more, got {timeout!r}")
    return time.monotonic() + timeout


def _piece(end: float) -> float:
    return min(max(end - time.monotonic(), 0.0), _PIECE)


def create_queue(maxsize: int = 0) -> Queue:
    """Make a queue, which has room for ``maxsize`` items; 0: for any number."""
    if not isinstance(maxsize, int):
        raise TypeError(f"maxsize must be an int, got {maxsize!r}")
    made = Queue(_extisolate.queue_new(maxsize))
    made._owned = True
    return made


def is_shareable(obj: object) -> bool:
    """Tell whether an object can be given to other interpreters without being pickled.

    >>> is_shareable((1, "two", None)), is_shareable([])
    (True, False)
    """
    return _extisolate.plain(obj, 0) or isinstance(obj, Queue)
