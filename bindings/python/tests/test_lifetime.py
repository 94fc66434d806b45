import gc
import os
import threading
import time
import warnings

import pytest
import work
from test_process import run

import extisolate
from extisolate import _extisolate


def test_memory_outlives_its_interpreter(nothing_lingers):
    made = extisolate.create()
    view = made.call(work.own_memory, 100)
    made.close()
    assert _extisolate.lingering() == 1
    assert bytes(view) == bytes(range(100))
    view[0] = 9
    assert view[0] == 9
    del view


def test_importers_read_while_the_exporter_goes(nothing_lingers):
    made = extisolate.create()
    readers = [extisolate.create() for _ in range(4)]
    view = made.call(work.own_memory, 200)
    for r in readers:
        r.call(work.keep, view)
    del view
    made.close()
    for _ in range(20):
        assert [r.call(work.sum_kept) for r in readers] == [sum(range(200))] * 4
    for r in readers:
        r.close()


def test_interpreters_that_keep_memory_of_others_close(nothing_lingers):
    numpy = pytest.importorskip("numpy")
    given = numpy.arange(1000.0)
    for _ in range(3):
        with extisolate.create() as made:
            made.call(work.keep, given)
    assert given.sum() == 499500


def test_a_close_that_is_refused_disturbs_no_call():
    with extisolate.create() as made:
        spinning, stop = made.call_in_thread(work.spin, 3), threading.Event()
        while not made.is_running():
            time.sleep(0.001)

        def close():
            while not stop.is_set():
                with pytest.raises(extisolate.InterpreterError, match="running"):
                    made.close()

        closing = threading.Thread(target=close)
        closing.start()
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            assert made.call(work.add, 1) == 2
        stop.set()
        closing.join()
        spinning.join()


def test_a_thread_that_ends_within_a_call_is_not_in_it():
    done = run("""
import extisolate, threading, time
interp = extisolate.create()
def end():
    interp.exec("import ctypes; ctypes.CDLL(None).pthread_exit(None)")
threading.Thread(target=end, daemon=True).start()
time.sleep(0.3)
while interp.is_running():
    time.sleep(0.01)
interp.close()
print("closed", flush=True)
""")
    assert (done.stdout, done.returncode) == ("closed\n", 0), done.stderr


def test_closing_while_called_from_eight_threads(nothing_lingers):
    for _ in range(3):
        made = extisolate.create()
        id, counts, ends = made.id, [], []

        def call(id=id, counts=counts, ends=ends):
            try:
                for n in range(10**6):
                    _extisolate_call(id, n)
                    counts.append(1)
            except extisolate.InterpreterNotFoundError as e:
                ends.append(e)

        threads = [threading.Thread(target=call) for _ in range(8)]
        for t in threads:
            t.start()
        while len(counts) < 200:
            time.sleep(0.001)
        close_for_sure(made)
        for t in threads:
            t.join(30)
            assert not t.is_alive()
        assert len(ends) == 8


def _extisolate_call(id, n):
    assert extisolate.Interpreter(id).call(work.add, n) == n + 1


def close_for_sure(made):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        made.close(wait=True)


def test_waiting_for_oneself_is_refused():
    with (
        extisolate.create() as made,
        pytest.raises(extisolate.ExecutionFailed, match="this thread is in"),
    ):
        made.call(close_through_main, made.id)


def close_through_main(id):
    extisolate.get_main().call(close_waiting, id)


def close_waiting(id):
    extisolate.Interpreter(id).close(wait=True)


def mapped_copies():
    with open("/proc/self/maps") as f:
        return sum("/exti-" in line for line in f)


def test_threads_that_have_called_do_not_keep_an_interpreter():
    before = mapped_copies()
    made = extisolate.create()
    go = threading.Event()
    called = threading.Event()

    def stay():
        made.call(work.add, 1)
        called.set()
        go.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    called.wait()
    assert mapped_copies() > before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.close()
    assert mapped_copies() == before
    go.set()
    thread.join()


def test_what_keeps_an_interpreter_mapped_is_told():
    made = extisolate.create()
    made.call(work.start_daemon)
    with pytest.warns(ResourceWarning, match=r"libpython.* thread \d+ .* is still running"):
        made.close()


def test_threads_inside_are_waited_for(nothing_lingers):
    q = extisolate.create_queue()
    for _ in range(2):
        made = extisolate.create()
        assert made.call(work.start_late_put, q, 0.2) is False
        made.close()
        assert q.get_nowait() == "late"


def test_a_daemon_thread_left_running():
    made = extisolate.create()
    made.call(work.leave_thread_running, 1)
    close_for_sure(made)
    assert made not in extisolate.list_all()


def test_releases_do_not_wait_for_the_main_thread():
    """Memory is released while the main thread waits for something else."""
    numpy = pytest.importorskip("numpy")
    released = threading.Event()

    class Owner(numpy.ndarray):
        def __del__(self):
            released.set()

    given = numpy.zeros(10).view(Owner)
    with extisolate.create() as made:
        made.call(work.keep, memoryview(given))
        del given
        gc.collect()
        assert not released.is_set()
        made.call(work.forget)
        assert released.wait(10)


GROWTH = """
import os, extisolate, work, numpy

def files():
    return len(os.listdir("/proc/self/fd"))

def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096

def growth(function, warm_up, times):
    for _ in range(warm_up):
        function()
    before = files(), rss()
    for _ in range(times):
        function()
    return files() - before[0], rss() - before[1]

def cycle():
    with extisolate.create() as made:
        assert made.call(work.add, 1) == 2

interp = extisolate.create()
array = numpy.zeros(1000)

def call():
    interp.call(work.identity, (1, array, [1]))
    interp.call(work.own_memory, 100)
    try:
        interp.call(work.raise_in_chain)
    except extisolate.ExecutionFailed:
        pass

print(*growth(cycle, 10, 30), *growth(call, 1000, 5000))
"""


@pytest.mark.skipif(not os.environ.get("EXTI_ALL"), reason="takes long; EXTI_ALL=1")
def test_nothing_grows_with_interpreters_and_calls():
    pytest.importorskip("numpy")
    done = run(GROWTH, timeout=300)
    assert done.returncode == 0, done.stderr
    files, memory, call_files, call_memory = map(int, done.stdout.split())
    assert files == call_files == 0
    assert memory < 2 << 20
    assert call_memory < 1 << 20


def test_an_interpreter_that_its_code_has_ended_takes_no_calls():
    interp = extisolate.create()
    with pytest.raises(extisolate.InterpreterExitedError, match="status is 5") as raised:
        interp.exec("import os\ntry:\n    os._exit(5)\nfinally:\n    print('finally')")
    assert raised.value.status == 5
    with pytest.raises(extisolate.InterpreterExitedError):
        interp.call(divmod, 7, 2)
    with extisolate.create() as other:
        assert other.call(divmod, 7, 2) == (3, 1)
    with pytest.warns(ResourceWarning, match="has ended"):
        interp.close()
