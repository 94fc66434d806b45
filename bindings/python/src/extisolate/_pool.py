"""A pool of interpreters, with the interface of concurrent.futures.InterpreterPoolExecutor."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import threading
from concurrent.futures import Future
from concurrent.futures.thread import BrokenThreadPool, ThreadPoolExecutor
from typing import Any, Callable

from . import _dispatch
from ._extisolate import InterpreterError
from ._interpreters import Interpreter, _raised, create

_numbers = itertools.count()


class BrokenInterpreterPool(BrokenThreadPool):
    """The initializer of a worker failed."""


class _Worker:
    """A thread's interpreter, which ends with the thread."""

    def __init__(self, interp: Interpreter) -> None:
        self.interp = interp

    def __del__(self) -> None:
        with contextlib.suppress(InterpreterError):  # the process ends, which closes it
            self.interp.close()


def _original(remote: _dispatch.Remote) -> BaseException:
    """Give the exception itself, with what was raised there as its cause."""
    raised = _raised(remote)
    if remote.pickled is not None:
        try:
            original = pickle.loads(remote.pickled)
        except Exception:  # its class is not known here
            return raised
        if isinstance(original, BaseException):
            original.__cause__ = raised
            return original
    return raised


class _Workers:
    """What the threads of one pool have in common."""

    def __init__(
        self,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        options: dict[str, bool],
    ) -> None:
        self.initializer = initializer
        self.initargs = initargs
        self.options = options
        self.local = threading.local()

    def start(self) -> None:
        interp = create(**self.options)
        self.local.worker = _Worker(interp)
        if self.initializer is not None:
            self.call(self.initializer, self.initargs, {})

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        interp = self.local.worker.interp
        try:
            return _dispatch.call(interp.id, function, args, kwargs, interp._policy)
        except _dispatch.Remote as e:
            raised = _original(e)
        raise raised


class InterpreterPoolExecutor(ThreadPoolExecutor):
    """An executor whose threads have an interpreter each.

    ``initializer`` is called in each of them first, with ``initargs``.  ``readonly`` and ``copy``
    are those of ``create()``.  Exceptions are raised as they are where they can be pickled, with an
    ExecutionFailed as their cause, and else as an ExecutionFailed.

    >>> with InterpreterPoolExecutor(2) as pool:
    ...     list(pool.map(pow, [2, 3], [10, 2]))
    [1024, 9]
    """

    BROKEN = BrokenInterpreterPool

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        readonly: bool = False,
        copy: bool = False,
    ) -> None:
        """Start no interpreter yet: each is started when a task first needs it."""
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        self._workers = _Workers(initializer, initargs, {"readonly": readonly, "copy": copy})
        super().__init__(
            max_workers,
            thread_name_prefix or f"InterpreterPoolExecutor-{next(_numbers)}",
            self._workers.start,
        )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call in one of the interpreters; see Executor.submit."""
        return super().submit(self._workers.call, fn, args, kwargs)
