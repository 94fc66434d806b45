"""A backend of joblib, and so of scikit-learn's ``n_jobs``; importing this registers it.

::

    import extisolate.joblib
    with joblib.parallel_backend("extisolate", n_jobs=4):
        search.fit(x, y)
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any, Callable

import joblib
from joblib._parallel_backends import AutoBatchingMixin, ParallelBackendBase

from ._pool import InterpreterPoolExecutor


class _Outcome:
    """A future with joblib's name for its result."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def get(self, timeout: float | None = None) -> Any:
        return self._future.result(timeout)


class InterpretersBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Runs batches of tasks in a pool of interpreters."""

    uses_threads = False
    supports_sharedmem = False

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Count the interpreters for ``n_jobs``, of which joblib's rules for negative ones hold."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max((os.cpu_count() or 1) + 1 + n_jobs, 1)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Make the pool."""
        self.parallel = parallel
        count = self.effective_n_jobs(n_jobs)
        self._pool = InterpreterPoolExecutor(count)
        return count

    def apply_async(self, func: Callable[[], Any], callback: Any = None) -> _Outcome:
        """Schedule a batch."""
        future = self._pool.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return _Outcome(future)

    submit = apply_async

    def terminate(self) -> None:
        """End the pool."""
        self._pool.shutdown()
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Drop what has not begun, after an error; tasks that run are waited for."""
        self._pool.shutdown(cancel_futures=True)
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)


joblib.register_parallel_backend("extisolate", InterpretersBackend)
