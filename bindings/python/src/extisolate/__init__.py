"""Interpreters with a GIL, a memory and extension modules of their own, in one process.

The interface is that of ``concurrent.interpreters`` and of
``concurrent.futures.InterpreterPoolExecutor``, for CPython from 3.9 on, with any extension module.
"""

from __future__ import annotations

import importlib
import sys

if "t" in sys.abiflags:
    raise ImportError(
        "extisolate gives each interpreter a GIL of its own; this is a free-threaded CPython, "
        "which needs none: use a build with the GIL"
    )

from . import _extisolate
from ._extisolate import (
    InterpreterError,
    InterpreterExitedError,
    InterpreterNotFoundError,
    Proxy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._dispatch import ExecutionFailed
    from ._interpreters import (
        Interpreter,
        Proof,
        collect,
        create,
        get_current,
        get_main,
        list_all,
    )
    from ._pickling import NotShareableError
    from ._pool import BrokenInterpreterPool, InterpreterPoolExecutor
    from ._proxies import copied, share
    from ._queues import (
        Queue,
        QueueEmpty,
        QueueError,
        QueueFull,
        QueueNotFoundError,
        create_queue,
        is_shareable,
    )
    from ._run import CompletedRun, run
    from ._settings import Settings

# Imported when they are first asked for: interpreters need few of them, and start the sooner.
_MODULES = {
    "_dispatch": ("ExecutionFailed",),
    "_interpreters": (
        "Interpreter",
        "Proof",
        "collect",
        "create",
        "get_current",
        "get_main",
        "list_all",
    ),
    "_pickling": ("NotShareableError",),
    "_proxies": ("copied", "share"),
    "_pool": ("BrokenInterpreterPool", "InterpreterPoolExecutor"),
    "_queues": (
        "Queue",
        "QueueEmpty",
        "QueueError",
        "QueueFull",
        "QueueNotFoundError",
        "create_queue",
        "is_shareable",
    ),
    "_run": ("CompletedRun", "run"),
    "_settings": ("Settings",),
}

__all__ = [
    "BrokenInterpreterPool",
    "CompletedRun",
    "ExecutionFailed",
    "Interpreter",
    "InterpreterError",
    "InterpreterExitedError",
    "InterpreterNotFoundError",
    "InterpreterPoolExecutor",
    "NotShareableError",
    "Proof",
    "Proxy",
    "Queue",
    "QueueEmpty",
    "QueueError",
    "QueueFull",
    "QueueNotFoundError",
    "Settings",
    "collect",
    "copied",
    "create",
    "create_queue",
    "get_current",
    "get_main",
    "is_shareable",
    "list_all",
    "run",
    "share",
]


def __getattr__(name: str) -> int | str:
    """Give ``index``, ``count`` and ``name``, as in contexts of ``extisolate run``."""
    if name == "index":
        return _extisolate.current()
    if name == "count":
        return len(_extisolate.interpreters())
    if name == "name":
        return _extisolate.describe(_extisolate.current())[1]
    for module, names in _MODULES.items():
        if name in names:
            found = getattr(importlib.import_module(f".{module}", __name__), name)
            globals()[name] = found
            return found  # type: ignore[no-any-return]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Give what there is, and what is imported when it is asked for."""
    return sorted({*globals(), *__all__})
