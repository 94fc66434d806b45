"""A pool of 4 calls each package's job CALLS times; prints results as lines for tests/run.sh.

python calls.py CALLS
"""

import sys
from collections import deque

import jobs

import extisolate


def there(job):
    try:
        job(0)  # its package may lack what is built for each CPython
    except ImportError as e:
        print(f"skip {job.__name__}: {e}")
        return False
    return True


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def main(calls):
    found = [job for job in jobs.ALL if there(job)]
    expected = {job: [job(n) for n in range(200)] for job in found}
    wrong = dict.fromkeys(found, 0)
    sizes = []
    with extisolate.InterpreterPoolExecutor(4) as pool:
        waiting = deque()

        def take():
            job, n, future = waiting.popleft()
            wrong[job] += future.result() != expected[job][n]

        for turn in range(calls):
            for job in found:
                n = turn % 200
                waiting.append((job, n, pool.submit(job, n)))
            while len(waiting) > 64:
                take()
            if turn % (calls // 100 or 1) == 0:
                sizes.append(resident())
        while waiting:
            take()
        sizes.append(resident())
        leaks = [leak for i in extisolate.list_all() if i.id for leak in i.prove().leaks]
    for job in found:
        print("ok" if not wrong[job] else "not ok", f"{calls}_calls_of_{job.__name__}")
    print("ok" if not leaks else "not ok", "proof", *leaks[:3])
    middle = max(sizes[len(sizes) // 2 - 4 : len(sizes) // 2 + 1])
    growth = (max(sizes[-5:]) - middle) / middle
    print(
        "ok" if growth < 0.01 else "not ok",
        f"resident_memory_of_the_last_half_grows_by_{100 * growth:.2f}_percent",
    )
    print(f"# resident: {' '.join(str(size >> 20) for size in sizes[::5])} MB", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]))
