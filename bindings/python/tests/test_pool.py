import asyncio
import concurrent.futures
import os
import threading
import time

import pytest
import work

import extisolate


def set_base(value):
    work.kept.append(value)


def kept_value():
    return work.kept[0]


def kept_count():
    return len(work.kept)


@pytest.fixture(scope="module")
def pool():
    with extisolate.InterpreterPoolExecutor(2) as made:
        yield made


def test_map_and_submit(pool):
    assert list(pool.map(work.add, range(50), range(50))) == [2 * i for i in range(50)]
    assert pool.submit(work.add, 1, b=5).result() == 6
    assert isinstance(pool, concurrent.futures.Executor)


def test_map_by_chunks(pool):
    expected = [2 * i for i in range(50)]
    for chunksize in (1, 7, 50, 1000):
        assert list(pool.map(work.add, range(50), range(60), chunksize=chunksize)) == expected
    assert list(pool.map(work.add, [], chunksize=5)) == []
    assert list(pool.map(lambda x: x * 3, range(10), chunksize=4)) == [3 * i for i in range(10)]
    with pytest.raises(ValueError, match="chunksize must be >= 1"):
        pool.map(work.add, range(3), chunksize=0)


def test_a_chunk_is_one_task():
    with extisolate.InterpreterPoolExecutor(1) as one:
        one.submit(work.keep, 0).result()
        items = list(one.map(work.echo, range(10), chunksize=4))
        assert items == [((i,), {}) for i in range(10)]
        ids = list(one.map(work.call_number, range(10), chunksize=4))
    assert [ids.count(n) for n in sorted(set(ids))] == [4, 4, 2]


def test_an_exception_in_a_chunk_comes_in_its_turn(pool):
    results = pool.map(divmod, [1] * 8, [1, 1, 1, 1, 1, 0, 1, 1], chunksize=2)
    assert [next(results) for _ in range(4)] == [(1, 0)] * 4
    with pytest.raises(ZeroDivisionError):
        next(results)
    # The rest of its chunk is lost, as in pools of processes.
    assert list(results) == []


def test_map_by_chunks_times_out(pool):
    results = pool.map(work.sleep, [0.5] * 4, chunksize=2, timeout=0.1)
    with pytest.raises(concurrent.futures.TimeoutError):
        list(results)


def test_as_completed_wait_and_cancel(pool):
    futures = [pool.submit(work.sleep, 0.05) for _ in range(4)]
    assert set(concurrent.futures.as_completed(futures, timeout=20)) == set(futures)
    blocking = [pool.submit(work.sleep, 0.3) for _ in range(2)]
    waiting = pool.submit(work.add, 1)
    assert waiting.cancel()
    done, not_done = concurrent.futures.wait(blocking, timeout=20)
    assert len(done) == 2 and not not_done


def test_each_worker_has_an_interpreter(pool):
    ids = set()
    end = time.monotonic() + 20
    while len(ids) < 2 and time.monotonic() < end:
        ids.update(pool.map(interpreter_slowly, range(4)))
    assert len(ids) == 2 and 0 not in ids


def interpreter_slowly(_):
    time.sleep(0.05)
    return work.interpreter_id()


def test_initializer():
    with extisolate.InterpreterPoolExecutor(1, initializer=set_base, initargs=(7,)) as pool:
        assert pool.submit(kept_value).result() == 7


def test_failing_initializer():
    with extisolate.InterpreterPoolExecutor(1, initializer=work.raise_in_chain) as pool:
        future = pool.submit(work.add, 1)
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            future.result()
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            pool.submit(work.add, 1)


def test_arguments_are_checked():
    with pytest.raises(TypeError):
        extisolate.InterpreterPoolExecutor(initializer=1)
    with pytest.raises(ValueError):
        extisolate.InterpreterPoolExecutor(0)


def test_interpreters_end_with_the_pool():
    before = {i.id for i in extisolate.list_all()}
    with extisolate.InterpreterPoolExecutor(2, thread_name_prefix="named") as pool:
        list(pool.map(work.sleep, [0.1] * 4))
        assert {i.id for i in extisolate.list_all()} > before
        assert any(t.name.startswith("named") for t in threading.enumerate())
    assert {i.id for i in extisolate.list_all()} == before


def test_an_exception_keeps_no_interpreter():
    before = {i.id for i in extisolate.list_all()}
    with extisolate.InterpreterPoolExecutor(1) as pool:
        raised = pool.submit(work.raise_in_chain).exception()
    assert str(raised) == "second" and raised.__traceback__
    assert {i.id for i in extisolate.list_all()} == before


def test_a_forgotten_pool_ends():
    before = {i.id for i in extisolate.list_all()}
    pool = extisolate.InterpreterPoolExecutor(1)
    assert pool.submit(work.add, 1).result() == 2
    del pool
    end = time.monotonic() + 20
    while {i.id for i in extisolate.list_all()} != before and time.monotonic() < end:
        time.sleep(0.01)
    assert {i.id for i in extisolate.list_all()} == before


def test_asyncio(pool):
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(own)
        calls = [loop.run_in_executor(pool, work.add, i) for i in range(10)]
        return await asyncio.gather(*calls), await loop.run_in_executor(None, work.add, 1)

    own = extisolate.InterpreterPoolExecutor(1)
    assert asyncio.run(main()) == (list(range(1, 11)), 2)


def test_tqdm(pool):
    tqdm = pytest.importorskip("tqdm")
    import io

    bar = io.StringIO()
    found = list(tqdm.tqdm(pool.map(work.add, range(20)), total=20, file=bar))
    assert found == list(range(1, 21)) and "20/20" in bar.getvalue()
    futures = [pool.submit(work.add, i) for i in range(20)]
    done = tqdm.tqdm(concurrent.futures.as_completed(futures), total=20, file=bar)
    assert sorted(f.result() for f in done) == list(range(1, 21))


def test_tqdm_in_an_interpreter():
    pytest.importorskip("tqdm")
    errors = []
    with extisolate.create(stderr=errors.append) as interp:
        interp.exec("import tqdm\nfor _ in tqdm.tqdm(range(3)): pass")
    assert "3/3" in "".join(errors)


def test_a_cancelled_map_begins_no_more():
    with extisolate.InterpreterPoolExecutor(1) as pool:
        running = pool.submit(work.sleep, 0.3)
        while not running.running():
            time.sleep(0.01)
        waiting = [pool.submit(work.add, i) for i in range(5)]
        pool.shutdown(wait=False, cancel_futures=True)
        assert all(f.cancelled() for f in waiting)
        assert concurrent.futures.wait([running], timeout=20).done == {running}


def test_asyncio_cancels_what_has_not_begun():
    async def main(pool):
        loop = asyncio.get_running_loop()
        first = loop.run_in_executor(pool, work.sleep, 0.2)
        second = loop.run_in_executor(pool, work.add, 1)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(second, 0.05)
        return await first

    with extisolate.InterpreterPoolExecutor(1) as pool:
        assert asyncio.run(main(pool)) != threading.get_ident()


def test_options():
    numpy = pytest.importorskip("numpy")
    with extisolate.InterpreterPoolExecutor(1, copy=True) as pool:
        given = numpy.zeros(3)
        pool.submit(work.write, given, 0, 5).result()
        assert given[0] == 0
    with extisolate.InterpreterPoolExecutor(1, readonly=True) as pool, pytest.raises(ValueError):
        pool.submit(work.write, given, 0, 5).result()


def test_arrays_through_map(pool):
    numpy = pytest.importorskip("numpy")
    arrays = [numpy.full(1000, float(i)) for i in range(20)]
    returned = list(pool.map(work.identity, arrays))
    assert all(numpy.shares_memory(a, b) for a, b in zip(arrays, returned))


def test_a_task_that_ends_its_interpreter_fails_and_another_takes_its_place():
    with extisolate.InterpreterPoolExecutor(1, initializer=set_base, initargs=(7,)) as pool:
        error = pool.submit(os._exit, 3).exception(timeout=60)
        assert isinstance(error, extisolate.InterpreterExitedError) and error.status == 3
        with pytest.raises(extisolate.InterpreterExitedError, match="status is 4"):
            pool.submit(work.execute, 4).result(timeout=60)
        assert pool.submit(kept_value).result(timeout=60) == 7
        assert pool.submit(work.place).result(timeout=60) == (0, 1)


def test_an_initializer_that_ends_its_interpreter_breaks_the_pool():
    with extisolate.InterpreterPoolExecutor(1, initializer=os._exit, initargs=(3,)) as pool:
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            pool.submit(pow, 2, 3).result(timeout=60)


def test_a_task_that_raises_the_error_keeps_its_interpreter():
    with extisolate.InterpreterPoolExecutor(1, initializer=set_base, initargs=(7,)) as pool:
        pool.submit(set_base, 8).result(timeout=60)
        error = pool.submit(work.raise_exited).exception(timeout=60)
        assert isinstance(error, extisolate.InterpreterExitedError) and error.status is None
        assert pool.submit(kept_count).result(timeout=60) == 2
