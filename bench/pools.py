#!/usr/bin/env python3
"""pools.py [WORKERS]: what tasks cost in pools of interpreters, of threads and of processes; prints a table.

Needs the packages extisolate and numpy.  Times are the best of five rounds.
"""

from concurrent import futures
import multiprocessing
import sys
import time

import extisolate
import numpy

MEGABYTES = 100


def nothing():
    return None


def same(value):
    return value


def import_numpy(_):
    import numpy as imported

    return imported.zeros(1).sum()


def size(value):
    return len(value)


def best(function, times, rounds=5):
    """The best round's microseconds for each time."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(times):
            function()
        found.append((time.perf_counter() - started) / times * 1e6)
    return min(found)


def pools():
    yield "interpreters", extisolate.InterpreterPoolExecutor
    yield "threads", futures.ThreadPoolExecutor
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        yield f"processes, {method}", lambda n, c=context: futures.ProcessPoolExecutor(n, c)


def row(make, workers):
    array, data = numpy.ones(MEGABYTES << 20, "u1"), bytes(MEGABYTES << 20)
    started = time.perf_counter()
    with make(workers) as pool:
        list(pool.map(import_numpy, range(workers)))
        yield f"{(time.perf_counter() - started) * 1e3:.0f} ms"
    with make(1) as pool:
        pool.submit(nothing).result()
        yield f"{best(lambda: pool.submit(nothing).result(), 1000):.0f} us"
        yield f"{best(lambda: list(pool.map(same, range(2000))), 1) / 2000:.0f} us"
        yield f"{best(lambda: pool.submit(same, array).result(), 3) / 1e3:.2f} ms"
        yield f"{best(lambda: pool.submit(size, data).result(), 3) / 1e3:.1f} ms"


def direct():
    with extisolate.create() as interp:
        yield "-"
        yield f"{best(lambda: interp.call(nothing), 5000):.1f} us"
        yield "-"
        array = numpy.ones(MEGABYTES << 20, "u1")
        yield f"{best(lambda: interp.call(same, array), 100) / 1e3:.2f} ms"
        yield f"{best(lambda: interp.call(size, bytes(MEGABYTES << 20)), 3) / 1e3:.1f} ms"


def main():
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    columns = (
        f"{workers} start, numpy",
        "empty call",
        "one of map",
        f"{MEGABYTES} MB array in, out",
        f"{MEGABYTES} MB bytes in",
    )
    print(f"| pool | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name, make in pools():
        print(f"| {name} | {' | '.join(row(make, workers))} |", flush=True)
    print(f"| Interpreter.call | {' | '.join(direct())} |")


if __name__ == "__main__":
    # By their own module, as the tasks of a program are.
    import pools as module

    module.main()
