"""What bench/pools.py measures, one pool in each process: reads the names of measurements, a line each, and
answers with seconds for each call as JSON, or with a text that says why there are none."""

from concurrent import futures
import functools
import importlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
import types
import warnings

MEGABYTES = 100
TASKS = 1000
STARTED = 4
WORKERS = 2


def nothing():
    return None


def same(value):
    return value


def count_to(n):
    """About two milliseconds of Python code."""
    total = 0
    for i in range(n):
        total += i * i
    return total


def import_numpy(meeting):
    """Imports numpy, and waits in the folder for the others, so that each of the workers does it."""
    importlib.import_module("numpy").zeros(1).sum()
    os.close(tempfile.mkstemp(dir=meeting)[0])
    while len(os.listdir(meeting)) < STARTED:
        time.sleep(0.0005)


def per_call(function, seconds):
    """Calls it for about so long, and at least once."""
    started = now = time.perf_counter()
    calls = 0
    while calls == 0 or now < started + seconds:
        function()
        calls += 1
        now = time.perf_counter()
    return (now - started) / calls


def best_per_call(function, *args):
    """The best of many short rounds, as bench/embed.c has it, which these times are compared with."""
    best = float("inf")
    for _ in range(100):
        started = time.perf_counter()
        for _ in range(200):
            function(*args)
        best = min(best, time.perf_counter() - started)
    return best / 200


class Subject:
    """Pools of one kind.  `chunk`: how many tasks its map hands out at once, if it does."""

    def __init__(self, make, backend=None, chunk=1):
        self.make, self.backend, self.chunk = make, backend, chunk

    @functools.cached_property
    def one(self):
        return self.make(1)

    @functools.cached_property
    def many(self):
        return self.make(WORKERS)

    @functools.cached_property
    def array(self):
        return importlib.import_module("numpy").ones(MEGABYTES << 20, "u1")

    def empty(self):
        return per_call(lambda: self.one.submit(nothing).result(), 0.02)

    def arrays(self):
        array = self.array
        return per_call(lambda: self.one.submit(same, array).result(), 0.02)

    def start(self):
        def started():
            with tempfile.TemporaryDirectory() as meeting, self.make(STARTED) as pool:
                list(pool.map(import_numpy, [meeting] * STARTED))

        return per_call(started, 0)

    def map(self):
        return per_call(lambda: list(self.many.map(count_to, [30000] * TASKS, chunksize=self.chunk)), 0)

    def search(self):
        if self.backend is None:
            return "-"
        import joblib
        from sklearn.datasets import load_digits
        from sklearn.model_selection import GridSearchCV
        from sklearn.svm import SVC

        digits = load_digits()
        search = GridSearchCV(SVC(), {"C": [0.1, 1, 10], "gamma": [0.0005, 0.001]}, refit=False)
        with joblib.parallel_backend(self.backend, n_jobs=WORKERS):
            return per_call(lambda: search.fit(digits.data, digits.target), 0)


class Interpreters(Subject):
    def __init__(self):
        import extisolate.joblib

        super().__init__(extisolate.InterpreterPoolExecutor, "extisolate", 25)


class Direct(Subject):
    """Interpreter.call, on the calling thread."""

    def __init__(self):
        import extisolate

        self.interp = extisolate.create()

    def empty(self):
        return best_per_call(self.interp.call, nothing)

    def arrays(self):
        return best_per_call(self.interp.call, same, self.array)

    def start(self):
        return "-"

    map = search = start


class OfProgram(Direct):
    """Likewise, of a function of the program itself, which no other interpreter can import."""

    def empty(self):
        own = types.FunctionType(nothing.__code__, vars(sys.modules["__main__"]))
        return best_per_call(self.interp.call, own)

    def arrays(self):
        return "-"


def processes(method, backend=None):
    context = multiprocessing.get_context(method)
    return Subject(lambda n: futures.ProcessPoolExecutor(n, context), backend, 25)


def loky():
    from joblib.externals.loky import ProcessPoolExecutor

    return Subject(ProcessPoolExecutor, "loky", 25)


class SubInterpreters(Subject):
    """Those of CPython, which extension modules have to be made for."""

    def __init__(self):
        super().__init__(futures.InterpreterPoolExecutor)

    def refused(self, measure):
        importlib.import_module("numpy")
        try:
            return measure()
        except Exception as e:
            return f"refused: {type(e).__name__}"

    def arrays(self):
        return self.refused(super().arrays)

    def start(self):
        return self.refused(super().start)


class FreeThreads(Subject):
    """Threads of a CPython without a GIL."""

    def __init__(self):
        if sys._is_gil_enabled():
            raise RuntimeError(f"{sys.executable} has a GIL")
        super().__init__(futures.ThreadPoolExecutor)


SUBJECTS = {
    "interpreters": Interpreters,
    "threads": lambda: Subject(futures.ThreadPoolExecutor, "threading"),
    "processes, fork": lambda: processes("fork", "multiprocessing"),
    "processes, spawn": lambda: processes("spawn"),
    "processes, forkserver": lambda: processes("forkserver"),
    "loky": loky,
    "processes, fork, of libpython": lambda: processes("fork"),
    "sub-interpreters": SubInterpreters,
    "free threads": FreeThreads,
    "Interpreter.call": Direct,
    "Interpreter.call, the program's own": OfProgram,
}


def measured(subject, name):
    try:
        return getattr(subject, name)()
    except ImportError as e:
        return f"no {e.name}"


def main():
    warnings.simplefilter("ignore")
    subject = SUBJECTS[sys.argv[1]]()
    # Programs print too; the answers are this one's alone.
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(measured(subject, line.strip())), file=answers, flush=True)


if __name__ == "__main__":
    # By their own module, as the tasks of a program are.
    import pool_subjects

    pool_subjects.main()
