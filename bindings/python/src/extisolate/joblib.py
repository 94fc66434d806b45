"""A backend of joblib, and so of scikit-learn's ``n_jobs``; importing this registers it.

::

    import extisolate.joblib
    with joblib.parallel_backend("extisolate", n_jobs=4):
        search.fit(x, y)

Its interpreters are kept for the next call, with what they have imported, until another number of
them is asked for, ``shutdown()`` is called, or the program ends.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, wait
from typing import Any, Callable

import joblib
from joblib._parallel_backends import (
    AutoBatchingMixin,
    FallbackToBackend,
    ParallelBackendBase,
    SequentialBackend,
)

from ._pool import InterpreterPoolExecutor


class _Keeper:
    """Has the pool that was last given back.

    A pool in use is nobody else's: a call that waits for another one, nested in it or on another
    thread, never waits for workers that wait for it.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a forked child: it has neither the pool's threads nor the lock's owner."""
        self._lock = threading.Lock()
        self._pool: InterpreterPoolExecutor | None = None

    def put(self, pool: InterpreterPoolExecutor | None) -> InterpreterPoolExecutor | None:
        """Keep this pool, and give the one that was kept."""
        with self._lock:
            self._pool, before = pool, self._pool
        return before

    def take(self, count: int) -> InterpreterPoolExecutor:
        """Give a pool of so many interpreters."""
        pool = self.put(None)
        if pool is not None:
            if pool._has_workers(count):
                return pool
            pool.shutdown()
        return InterpreterPoolExecutor(count)

    def give_back(self, pool: InterpreterPoolExecutor) -> None:
        """Keep a pool that has nothing to do."""
        before = self.put(pool)
        if before is not None:
            before.shutdown()


_keeper = _Keeper()
os.register_at_fork(after_in_child=_keeper.forget)


def shutdown() -> None:
    """Close the interpreters that are kept; the next call starts new ones."""
    pool = _keeper.put(None)
    if pool is not None:
        pool.shutdown()


class _Outcome:
    """A future with joblib's name for its result."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def get(self, timeout: float | None = None) -> Any:
        return self._future.result(timeout)


class _Use:
    """A pool from the beginning to the end of a call of ``Parallel``."""

    def __init__(self, count: int, parallel: Any) -> None:
        self.count = count
        self.parallel = parallel
        self.pool = _keeper.take(count)
        self.pending: set[Future[Any]] = set()

    def submit(self, func: Callable[[], Any]) -> Future[Any]:
        future = self.pool.submit(func)
        self.pending.add(future)
        future.add_done_callback(self.pending.discard)
        return future

    def drop(self) -> None:
        """Wait for what runs, and let nothing else begin."""
        pending = self.pending.copy()
        for future in pending:
            future.cancel()
        wait(pending)

    def end(self) -> None:
        if all(future.done() for future in self.pending.copy()):
            _keeper.give_back(self.pool)
        else:  # waiting for it was interrupted
            self.pool.shutdown(cancel_futures=True)

    def renew(self) -> None:
        self.end()
        self.pool = _keeper.take(self.count)


class InterpretersBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs batches of tasks in a pool of interpreters."""

    uses_threads = False
    supports_sharedmem = False

    def __init__(self, **kwargs: Any) -> None:
        """Take no pool yet."""
        super().__init__(**kwargs)
        # A generator of tasks may call Parallel, which then has the same backend.
        self._uses: list[_Use] = []

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Count the interpreters for ``n_jobs``, of which joblib's rules for negative ones hold."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Take a pool; of a single job joblib's rule is that it runs where it is."""
        count = self.effective_n_jobs(n_jobs)
        if count == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self._uses.append(_Use(count, parallel))
        self.parallel = parallel
        return count

    def apply_async(self, func: Callable[[], Any], callback: Any = None) -> _Outcome:
        """Schedule a batch."""
        future = self._uses[-1].submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return _Outcome(future)

    submit = apply_async

    def terminate(self) -> None:
        """Give the pool back."""
        self._uses.pop().end()
        if self._uses:
            self.parallel = self._uses[-1].parallel
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Drop what has not begun, after an error; tasks that run are waited for."""
        self._uses[-1].drop()
        if ensure_ready:
            self._uses[-1].renew()


joblib.register_parallel_backend("extisolate", InterpretersBackend)
