"""Runs dask.array and dask.dataframe jobs on two worker processes, whose tasks run in interpreters.

Usage: python3 dask_workers.py
"""

import contextlib
import socket
import subprocess
import sys

import dask.array
import dask.dataframe
import pandas
from distributed import Client

WORKERS, THREADS = 2, 2


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


@contextlib.contextmanager
def process(*words):
    """A command of dask, until the end of the block."""
    started = subprocess.Popen([sys.executable, "-m", "distributed.cli." + words[0], *words[1:]])
    try:
        yield started
    finally:
        started.terminate()
        started.wait()


@contextlib.contextmanager
def cluster():
    """A scheduler and workers on this machine; gives the scheduler's address."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            process("dask_scheduler", "--host=127.0.0.1", f"--port={port}", "--no-dashboard")
        )
        for _ in range(WORKERS):
            stack.enter_context(
                process(
                    "dask_worker",
                    address,
                    f"--nthreads={THREADS}",
                    "--no-nanny",
                    "--no-dashboard",
                    "--preload=extisolate.dask",
                    "--host=127.0.0.1",
                )
            )
        yield address


def where(_):
    """The process and the interpreter that a task runs in."""
    import os
    import time

    import extisolate

    time.sleep(0.1)
    return os.getpid(), extisolate.get_current().id


def main():
    with cluster() as address, Client(address, timeout=60) as client:
        client.wait_for_workers(WORKERS, timeout=60)
        places = set(client.gather(client.map(where, range(20), pure=False)))
        print(
            f"{len({pid for pid, _ in places})} workers, no task in a main interpreter:",
            all(id for _, id in places),
        )

        x = dask.array.ones((2000, 2000), chunks=(500, 500))
        print("array:", float((x @ x.T).sum().compute()))

        frame = pandas.DataFrame({"key": ["a", "b"] * 500, "value": range(1000)})
        sums = dask.dataframe.from_pandas(frame, npartitions=4).groupby("key")["value"].sum()
        print("dataframe:", {k: int(v) for k, v in sums.compute().items()})


if __name__ == "__main__":
    main()
