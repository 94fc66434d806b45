"""Opens, uses and closes interpreters with a package, one after the other: nothing of them is left.

Each is called from the main thread and from four others, which live on.
python contexts.py PACKAGE INTERPRETERS
"""

import os
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import jobs

import extisolate


def left():
    """Count mapped copies, descriptors and threads."""
    with open("/proc/self/maps") as f:
        copies = sum("/exti-" in line for line in f)
    return copies, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def use(threads, job, n):
    """Give what was wrong with one interpreter."""
    with extisolate.create() as interp:
        results = {f.result() for f in [threads.submit(interp.call, job, n) for _ in range(4)]}
        results.add(interp.call(job, n))
        leaks = interp.prove().leaks
    return leaks[:1] or (["results differ"] if len(results) != 1 else [])


def main(package, number):
    warnings.simplefilter("error")
    job = getattr(jobs, package)
    wrong, sizes = [], []
    barrier = threading.Barrier(4)
    with ThreadPoolExecutor(4, initializer=barrier.wait) as threads:
        list(threads.map(bool, range(4)))
        wrong += use(threads, job, 0)
        before = left()
        for n in range(1, number):
            wrong += use(threads, job, n)
            sizes.append(resident())
        after = left()
    print("ok" if not wrong else "not ok", f"{number}_interpreters_with_{package}", *wrong[:3])
    print("ok" if after == before else "not ok", f"nothing_is_left: {before} {after}")
    grown = (sizes[-1] - sizes[len(sizes) // 2]) / (len(sizes) - len(sizes) // 2)
    print(f"# memory kept by each {package}: {grown / 1024:.0f} KB", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
