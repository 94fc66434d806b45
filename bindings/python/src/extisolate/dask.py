"""Tasks of dask in interpreters, one for each thread of a worker.

::

    dask worker --preload extisolate.dask tcp://scheduler:8786

For the scheduler of one machine no more is needed than a pool::

    with dask.config.set(pool=extisolate.InterpreterPoolExecutor(4)):
        array.sum().compute()
"""

from __future__ import annotations

from typing import Any

from ._pool import InterpreterPoolExecutor


def dask_setup(worker: Any) -> None:
    """Have the worker run its tasks in interpreters; dask calls this for ``--preload``."""
    threads = worker.executors["default"]
    worker.executors["default"] = InterpreterPoolExecutor(
        worker.state.nthreads, thread_name_prefix="Dask-Interpreter"
    )
    threads.shutdown(wait=False)
