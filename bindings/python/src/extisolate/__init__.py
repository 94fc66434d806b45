"""Interpreters with a GIL, a memory and extension modules of their own, in one process.

The interface is that of ``concurrent.interpreters`` and of
``concurrent.futures.InterpreterPoolExecutor``, for CPython from 3.9 on, with any extension module.
"""

from typing import Union

from . import _extisolate
from ._extisolate import InterpreterError, InterpreterNotFoundError
from ._interpreters import (
    ExecutionFailed,
    Interpreter,
    create,
    get_current,
    get_main,
    list_all,
)
from ._pickling import NotShareableError
from ._pool import BrokenInterpreterPool, InterpreterPoolExecutor
from ._queues import (
    Queue,
    QueueEmpty,
    QueueError,
    QueueFull,
    QueueNotFoundError,
    create_queue,
    is_shareable,
)

__all__ = [
    "BrokenInterpreterPool",
    "ExecutionFailed",
    "Interpreter",
    "InterpreterError",
    "InterpreterNotFoundError",
    "InterpreterPoolExecutor",
    "NotShareableError",
    "Queue",
    "QueueEmpty",
    "QueueError",
    "QueueFull",
    "QueueNotFoundError",
    "create",
    "create_queue",
    "get_current",
    "get_main",
    "is_shareable",
    "list_all",
]


def __getattr__(name: str) -> Union[int, str]:
    """Give ``index``, ``count`` and ``name``, as in contexts of ``extisolate run``."""
    if name == "index":
        return _extisolate.current()
    if name == "count":
        return len(_extisolate.interpreters())
    if name == "name":
        return _extisolate.describe(_extisolate.current())[1]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
