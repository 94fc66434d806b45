"""A pool of interpreters, with the interface of concurrent.futures.InterpreterPoolExecutor."""

from __future__ import annotations

import contextlib
import itertools
import math
import pickle
import threading
import time
from concurrent.futures import Future, _base
from concurrent.futures.thread import BrokenThreadPool, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _dispatch, _extisolate
from ._extisolate import InterpreterError
from ._interpreters import Interpreter, is_forked, policy_of, raised_by, start
from ._settings import Settings, check

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Unpack

_numbers = itertools.count()
_submit = ThreadPoolExecutor.submit  # as super() costs more
_result, _exception = Future.result, Future.exception
_UNENDED = (_base.PENDING, _base.RUNNING)
_LONGEST_WAIT = 0.1  # seconds

_T = TypeVar("_T")


def _chunks(items: Iterator[_T], size: int) -> Iterator[tuple[_T, ...]]:
    """Give the items in tuples of so many; the last one may be shorter."""
    while chunk := tuple(itertools.islice(items, size)):
        yield chunk


def _nothing() -> None:
    """Do nothing."""


class BrokenInterpreterPool(BrokenThreadPool):
    """The initializer of a worker failed."""


class _Owner:
    """Closes an interpreter with its thread, whoever has an Interpreter or a traceback of it."""

    def __init__(self, interp: Interpreter) -> None:
        self._interp = interp

    def __del__(self) -> None:
        if not is_forked():
            with contextlib.suppress(InterpreterError):  # the process ends, which closes it
                self._interp.close()


class _Worker(_dispatch.Caller):
    """Calls a thread's interpreter."""

    def __init__(self, interp: Interpreter) -> None:
        self._id, self._policy = interp.id, interp._policy

    def _raised(self, remote: _dispatch.Remote) -> BaseException:
        """Give the exception itself, with what was raised there as its cause."""
        raised = raised_by(remote)
        if remote.pickled is not None:
            try:
                original = pickle.loads(remote.pickled)
            except Exception:  # its class is not known here
                return raised
            if isinstance(original, BaseException):
                original.__cause__ = raised
                return original
        return raised


class _Workers(_extisolate.OwnCaller):
    """What the threads of one pool have in common."""

    def __init__(
        self,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        policy: int,
        settings: Settings,
    ) -> None:
        self.initializer = initializer
        self.initargs = initargs
        self.policy = policy
        self.settings = settings
        self.count = 0  # of threads at most, each of which has a number
        self.numbers = itertools.count()
        self.ids: set[int] = set()  # of the interpreters
        self.own = threading.local()

    def start(self) -> None:
        self._start(next(self.numbers))

    def _exited(self) -> None:
        """Start another one in the place of the thread's, whose code has ended it."""
        if self.own.starting:  # by the initializer, which would end that one as well
            return
        self.ids.discard(self.own.id)
        self._start(self.own.index)

    def _start(self, index: int) -> None:
        place = {"index": index, "count": self.count}
        interp = start(self.policy, self.settings, place)
        self.own.id, self.own.index, self.own.starting = interp.id, index, False
        self.ids.add(interp.id)
        self.own.interp = _Owner(interp)
        self.keep(_Worker(interp))
        if self.initializer is not None:
            self._initialize(self.initializer)

    def _initialize(self, initializer: Callable[..., object]) -> None:
        self.own.starting = True
        try:
            self.call(initializer, *self.initargs)
        finally:
            self.own.starting = False


class _Task(Future[Any]):
    """A task, for whose end one waits without disturbing who is about to wait as well.

    A worker that ends it has the GIL, and keeps it until it waits for the next task.  Futures wake
    who waits for them at once, who then waits for the GIL.
    """

    def _await(self, timeout: float | None) -> float | None:
        """Wait for its end, and give how long is to be waited for it yet."""
        if timeout is not None and not 0 < timeout <= threading.TIMEOUT_MAX:
            return timeout
        gate = _extisolate.Gate()
        with self._condition:
            if self._state not in _UNENDED:
                return timeout
            self._waiters.append(gate)  # type: ignore[arg-type]
        ended = False
        try:
            ended = self._pass(gate, timeout)
        finally:
            if not ended:
                with self._condition:
                    self._waiters.remove(gate)  # type: ignore[arg-type]
        return timeout if ended else 0

    def _pass(self, gate: _extisolate.Gate, timeout: float | None) -> bool:
        """Wait at the gate; tell whether the task has ended.

        Before it opens gates, a worker lets go of the task's arguments, whose ``__del__`` may take
        long, and may wait for who waits here.
        """
        end = math.inf if timeout is None else time.monotonic() + timeout
        while self._state in _UNENDED:
            left = end - time.monotonic()
            if left <= 0:
                return False
            if gate.wait(min(left, _LONGEST_WAIT)):
                break
        return True

    def result(self, timeout: float | None = None) -> Any:
        """Give what the task returned, or raise what it raised; see Future.result."""
        if self._state in _UNENDED:
            timeout = self._await(timeout)
        try:
            return _result(self, timeout)
        finally:
            del self  # whose exception has this frame in its traceback

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Give what the task raised, if anything; see Future.exception."""
        if self._state in _UNENDED:
            timeout = self._await(timeout)
        return _exception(self, timeout)

    def cancel(self) -> bool:
        """Cancel the task unless it runs or has ended; see Future.cancel.

        That one calls the callbacks before it returns, and they may wait for who waits at a gate.
        """
        with self._condition:
            if self._state != _base.PENDING:
                return self.cancelled()
            self._state = _base.CANCELLED
            self._condition.notify_all()
            for waiter in self._waiters:
                if isinstance(waiter, _extisolate.Gate):
                    waiter.open()
        self._invoke_callbacks()  # type: ignore[attr-defined]
        return True


class _Uncounted(threading.Semaphore):
    """For an executor that has all its threads, and need not know which are idle.

    A worker releases it after each task, before it lets those who wait for the task on.
    """

    def release(self, n: int = 1) -> None:
        """Do nothing."""


class InterpreterPoolExecutor(ThreadPoolExecutor):
    """An executor whose threads have an interpreter each.

    ``initializer`` is called in each of them first, with ``initargs``.  Further keywords are those
    of ``create()``.  In the interpreters ``extisolate.index`` counts them from 0, and
    ``extisolate.count`` is ``max_workers``.  A task that ends its interpreter, by ``os._exit`` for
    instance, fails with InterpreterExitedError, and the thread gets another one.  Exceptions are
    raised as they are where they can be pickled, with an ExecutionFailed as their cause, and else
    as an ExecutionFailed.

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
        **settings: Unpack[Settings],
    ) -> None:
        """Start no interpreter yet: each is started when a task first needs it."""
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        check(settings)
        self._workers = _Workers(initializer, initargs, policy_of(readonly, copy), settings)
        super().__init__(
            max_workers,
            thread_name_prefix or f"InterpreterPoolExecutor-{next(_numbers)}",
            self._workers.start,
        )
        self._work_queue = _extisolate.TaskQueue()  # type: ignore[assignment]
        self._workers.count = self._max_workers
        self._call = self._workers.call

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call in one of the interpreters; see Executor.submit."""
        task = _submit(self, self._call, fn, *args, **kwargs)
        task.__class__ = _Task
        return task

    def map(
        self,
        fn: Callable[..., _T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        **kwargs: Any,
    ) -> Iterator[_T]:
        """Call it with the items of the iterables, as many at a time as ``chunksize`` says.

        See Executor.map.  A task costs about 10 us beside what it does, and a larger
        ``chunksize`` spares most tasks that.  If one of a chunk raises, the others' results are
        lost, as with ProcessPoolExecutor.

        >>> with InterpreterPoolExecutor(2) as pool:
        ...     sum(pool.map(pow, range(100), range(100), chunksize=25)) % 1000
        921
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **kwargs)
        chunks = _chunks(zip(*iterables), chunksize)
        results = super().map(
            _dispatch.call_each, itertools.repeat(fn), chunks, timeout=timeout, **kwargs
        )
        return itertools.chain.from_iterable(results)

    def _has_workers(self, count: int) -> bool:
        """Tell whether it takes tasks, and has so many workers, all of them with an interpreter."""
        return (
            self._max_workers == count
            and not (self._broken or self._shutdown)
            and self._workers.ids <= set(_extisolate.interpreters())
        )

    def _adjust_thread_count(self) -> None:
        super()._adjust_thread_count()
        if len(self._threads) == self._max_workers:
            # Nobody asks whether one is idle from now on.
            self._idle_semaphore = _Uncounted()
            self._adjust_thread_count = _nothing  # type: ignore[method-assign]
