"""How tasks come to a pool's threads, and who waits for them is told of their end."""

import concurrent.futures
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import Future

import pytest
import work

import extisolate
from extisolate._extisolate import Gate, TaskQueue


@pytest.fixture
def one():
    with extisolate.InterpreterPoolExecutor(1) as made:
        yield made


def in_thread(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


# The queue.


def test_items_come_in_their_order():
    tasks = TaskQueue()
    expected = iter(range(10000))
    for i in range(10000):
        tasks.put(i)
        if i % 3 == 0:  # so that the ring grows at any place of its beginning
            assert tasks.get_nowait() == next(expected)
    assert tasks.qsize() == 6666 and not tasks.empty()
    assert [tasks.get_nowait() for _ in range(6666)] == list(expected)
    assert tasks.qsize() == 0 and tasks.empty()
    with pytest.raises(queue.Empty):
        tasks.get_nowait()
    with pytest.raises(queue.Empty):
        tasks.get(block=False)


def test_misuse_of_the_classes():
    for made in (TaskQueue, Gate):
        with pytest.raises(TypeError):
            made(1)
        with pytest.raises(TypeError):
            made(a=1)
    with pytest.raises(TypeError):
        TaskQueue().get(1, 2)
    with pytest.raises(TypeError):
        Gate().wait("soon")


def test_threads_share_a_queue():
    tasks, taken = TaskQueue(), []

    def take():
        while (item := tasks.get()) is not None:
            taken.append(item)

    def give(first):
        for i in range(first, first + 2000):
            tasks.put(i)

    takers = [in_thread(take) for _ in range(4)]
    givers = [in_thread(give, first) for first in range(0, 8000, 2000)]
    for thread in givers:
        thread.join(60)
    for _ in takers:
        tasks.put(None)
    for thread in takers:
        thread.join(60)
    assert not any(t.is_alive() for t in takers) and sorted(taken) == list(range(8000))


def test_a_queue_holds_its_items_and_its_circles_end():
    class Item:
        pass

    tasks = TaskQueue()
    item = Item()
    item.tasks = tasks
    tasks.put(item)
    count = sys.getrefcount(item)
    tasks.put(item)
    assert sys.getrefcount(item) == count + 1
    tasks.get_nowait()
    assert sys.getrefcount(item) == count
    ended = weakref.ref(item)
    del tasks, item
    gc.collect()
    assert ended() is None


# Gates.


def test_a_gate_lets_one_pass():
    gate = Gate()
    assert gate.wait(0.01) is False and gate.wait(-1) is False and gate.wait(0) is False
    gate.open()
    gate.open()
    assert gate.wait(None) is True and gate.wait(0.01) is False
    in_thread(lambda: (time.sleep(0.05), gate.open()))
    assert gate.wait(60) is True


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_takes_no_more_tasks_opens_what_it_has_to():
    """Whatever the way on which it ends, and however many wait."""
    for last in ("returns", "raises", "takes None"):
        tasks, future = TaskQueue(), Future()
        gates = [Gate() for _ in range(6)]
        future._waiters.extend(gates)
        tasks.put("a task")

        def take(tasks=tasks, future=future, last=last):
            tasks.get()
            future.set_result(None)
            if last == "takes None":
                tasks.put(None)
                tasks.get()
                time.sleep(60)
            if last == "raises":
                sys.exit()

        in_thread(take)
        assert all(gate.wait(30) for gate in gates), last


def test_a_gate_is_opened_at_once_unless_its_thread_waits_for_tasks():
    future, gate = Future(), Gate()
    future._waiters.append(gate)
    future.set_result(None)
    assert gate.wait(0)


def test_a_thread_opens_gates_when_it_waits():
    tasks, future, gate = TaskQueue(), Future(), Gate()
    future._waiters.append(gate)
    seen = []

    def take():
        tasks.get()
        future.set_result(None)
        seen.append(gate.wait(0.01))
        tasks.get()

    tasks.put("a task")
    thread = in_thread(take)
    assert gate.wait(30)
    assert seen == [False]
    tasks.put(None)
    thread.join(30)


# Tasks.


def test_many_wait_for_a_task(one):
    task = one.submit(work.sleep, 0.1)
    ended = []
    threads = [in_thread(lambda: ended.append(task.result(60))) for _ in range(10)]
    for thread in threads:
        thread.join(60)
    assert len(ended) == 10
    assert task.result() == task.result(0) == ended[0] and task.exception() is None


def test_waiting_times_out(one):
    task = one.submit(work.sleep, 0.5)
    for wait in (task.result, task.exception):
        for timeout in (0.01, 0, -1):
            with pytest.raises(concurrent.futures.TimeoutError):
                wait(timeout)
    assert task._waiters == []
    assert task.exception(float(threading.TIMEOUT_MAX)) is None
    task = one.submit(work.sleep, 0.2)
    with pytest.raises(OverflowError):
        task.result(threading.TIMEOUT_MAX * 2)


def test_who_waits_is_told_of_a_cancellation(one):
    held = extisolate.create_queue()
    for timeout in (None, 60):
        running = one.submit(held.get, timeout=60)
        while not running.running():
            time.sleep(0.01)
        waiting = one.submit(work.add, 1)
        in_thread(lambda task=waiting: (time.sleep(0.05), task.cancel()))
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result(timeout)
        assert not running.done() and not running.cancel() and waiting.cancel()
        held.put("on")
        assert running.result() == "on"


def test_a_callback_of_a_cancelled_task_may_wait_for_who_waits(one):
    held, told, came = extisolate.create_queue(), threading.Event(), []
    one.submit(held.get, timeout=60)
    waiting = one.submit(work.add, 1)
    waiting.add_done_callback(lambda _: came.append(told.wait(30)))

    def wait():
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result()
        told.set()

    thread = in_thread(wait)
    while not waiting._waiters:
        time.sleep(0.01)
    assert waiting.cancel() and waiting.cancel() and came == [True]
    thread.join(30)
    held.put("on")


def test_a_cancelled_task_whose_callback_ends_the_thread_is_told_of(one):
    held, seen = extisolate.create_queue(), []
    one.submit(held.get, timeout=60)
    waiting = one.submit(work.add, 1)
    waiting.add_done_callback(lambda _: sys.exit())

    def wait():
        with pytest.raises(concurrent.futures.CancelledError):
            waiting.result()
        seen.append("cancelled")

    thread = in_thread(wait)
    while not waiting._waiters:
        time.sleep(0.01)
    with pytest.raises(SystemExit):
        waiting.cancel()
    thread.join(30)
    held.put("on")
    assert seen == ["cancelled"]


CHILD = """
import os, sys, threading, time
import extisolate

def use_stack(n):
    return n if not n else use_stack(n - 1)

with extisolate.InterpreterPoolExecutor(4) as pool:
    list(pool.map(time.sleep, [0.1] * 8))
    child = os.fork()
    if child == 0:
        threads = [threading.Thread(target=use_stack, args=(200,)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.exit(7)
    print(os.waitpid(child, 0)[1], pool.submit(pow, 2, 3).result())
"""


def test_a_forked_child_that_has_threads_ends():
    """The threads that wait for tasks are not in it, and other threads have their stacks."""
    quiet = ["-W", "ignore::DeprecationWarning"]  # of forking with threads
    command = [sys.executable, *quiet, "-c", CHILD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (f"{7 << 8} 8\n", "")


def test_a_callback_may_wait_for_who_waits_for_the_result(one):
    told = threading.Event()
    came = []
    task = one.submit(work.sleep, 0.1)
    task.add_done_callback(lambda _: came.append(told.wait(30)))
    task.result(30)
    told.set()
    assert one.submit(work.add, 1).result(30) == 2
    assert came == [True]


class EndsLate:
    """What waits, when it ends, for who waits for the result.  It arrives as a number."""

    def __init__(self, told, came):
        self.told, self.came = told, came

    def __reduce__(self):
        return int, ()

    def __del__(self):
        self.came.append(self.told.wait(30))


def test_an_argument_that_ends_may_wait_for_who_waits_for_the_result(one):
    told = threading.Event()
    came = []
    task = one.submit(work.add, EndsLate(told, came))
    assert task.result() == 1
    told.set()
    assert one.submit(work.add, 1).result(30) == 2
    assert came == [True]


def test_ctrl_c_ends_the_wait(one):
    task = one.submit(work.sleep, 1)
    in_thread(lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGUSR1)))

    def raise_it(*_):
        raise KeyError("the handler's")

    before = signal.signal(signal.SIGUSR1, raise_it)
    try:
        with pytest.raises(KeyError, match="the handler's"):
            task.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert task._waiters == [] and task.exception(60) is None


def test_a_signal_that_raises_nothing_does_not_end_the_wait(one):
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(1))
    try:
        task = one.submit(work.sleep, 0.3)
        in_thread(lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGUSR1)))
        task.result(60)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handled == [1]


def test_an_exception_keeps_no_task(one):
    task = one.submit(work.raise_in_chain)
    with pytest.raises(ValueError, match="second"):
        task.result()
    assert one.submit(work.add, 1).result() == 2  # the thread has let go of the task
    ended = weakref.ref(task)
    gc.disable()
    try:
        del task
        assert ended() is None
    finally:
        gc.enable()


def test_a_broken_pool_tells_who_waits():
    with extisolate.InterpreterPoolExecutor(1, initializer=os._exit, initargs=(3,)) as pool:
        tasks = []
        with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
            tasks.extend(pool.submit(pow, 2, 3) for _ in range(50))
            tasks[-1].result(60)
        for task in tasks:
            with pytest.raises(concurrent.futures.thread.BrokenThreadPool):
                task.result(60)


def test_tasks_are_futures_of_the_library(one):
    task = one.submit(work.add, 1)
    assert isinstance(task, Future) and concurrent.futures.wait([task], 60).done == {task}
    assert [t.result() for t in concurrent.futures.as_completed([task], 60)] == [2]
    assert one._work_queue.qsize() == 0
