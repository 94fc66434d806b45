import os
import subprocess
import sys

import pytest
import work

import extisolate

dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def scheduler():
    with extisolate.InterpreterPoolExecutor(2) as pool, dask.config.set(pool=pool):
        yield pool


def test_delayed_tasks(scheduler):
    @dask.delayed
    def where(x):
        return extisolate.get_current().id, x + 1

    found = dask.compute(*[where(i) for i in range(8)], scheduler="threads")
    assert [x for _, x in found] == list(range(1, 9)) and 0 not in {id for id, _ in found}


def test_arrays(scheduler):
    array = pytest.importorskip("dask.array")
    numpy = pytest.importorskip("numpy")
    given = numpy.arange(10000.0).reshape(100, 100)
    x = array.from_array(given, chunks=(50, 50))
    assert numpy.allclose((x @ x.T).compute(), given @ given.T)


def test_errors(scheduler):
    with pytest.raises(ValueError, match="second"):
        dask.delayed(work.raise_in_chain)().compute(scheduler="threads")


class Worker:
    """What the package needs of distributed's."""

    class state:
        nthreads = 2

    def __init__(self, threads):
        self.executors = {"default": threads}


def test_a_worker_gets_a_pool():
    import concurrent.futures

    import extisolate.dask

    worker = Worker(concurrent.futures.ThreadPoolExecutor(2))
    extisolate.dask.dask_setup(worker)
    with worker.executors["default"] as pool:
        assert pool.submit(work.names).result()[1] == 2
        assert pool.submit(work.interpreter_id).result() != 0


def test_the_example_of_two_workers():
    pytest.importorskip("distributed")
    pytest.importorskip("dask.dataframe")
    examples = os.environ.get("EXTI_EXAMPLES")
    if not os.environ.get("EXTI_ALL") or not examples:
        pytest.skip("two workers take long: EXTI_ALL=1 by make check-python-package starts them")
    done = subprocess.run(
        [sys.executable, os.path.join(examples, "dask_workers.py")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == [
        "2 workers, no task in a main interpreter: True",
        "array: 8000000000.0",
        "dataframe: {'a': 249500, 'b': 250000}",
    ], done.stderr
