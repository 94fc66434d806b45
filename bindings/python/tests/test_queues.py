import queue
import threading
import time

import pytest
import work

import extisolate


def test_items_come_in_order():
    q = extisolate.create_queue()
    for item in (1, "two", [3], None, b"x" * 100000):
        q.put(item)
    assert q.qsize() == 5 and not q.empty() and not q.full()
    assert [q.get() for _ in range(5)] == [1, "two", [3], None, b"x" * 100000]
    assert q.empty()


def test_limits():
    q = extisolate.create_queue(2)
    assert q.maxsize == 2
    q.put(1)
    q.put_nowait(2)
    assert q.full()
    with pytest.raises(extisolate.QueueFull):
        q.put_nowait(3)
    with pytest.raises(queue.Full):
        q.put(3, timeout=0.05)
    assert (q.get(), q.get_nowait()) == (1, 2)
    with pytest.raises(extisolate.QueueEmpty):
        q.get_nowait()
    started = time.monotonic()
    with pytest.raises(queue.Empty):
        q.get(timeout=0.25)
    assert 0.2 < time.monotonic() - started < 2
    with pytest.raises(ValueError):
        q.get(timeout=-1)


def test_wrong_ids_are_refused():
    with pytest.raises(extisolate.QueueNotFoundError):
        extisolate.Queue(10**9)
    with pytest.raises(TypeError):
        extisolate.Queue("1")
    with pytest.raises(OverflowError):
        extisolate.Queue(2**64)
    with pytest.raises(TypeError):
        extisolate.create_queue("1")


def test_queues_travel(interp):
    q = extisolate.create_queue()
    assert interp.call(work.identity, q) is q
    interp.call(work.put_from, q, {"a": 1})
    assert q.get(timeout=5) == {"a": 1}


def test_unused_queues_go():
    q = extisolate.create_queue()
    id = q.id
    del q
    with pytest.raises(extisolate.QueueNotFoundError):
        extisolate.Queue(id)


def test_what_cannot_travel_is_refused():
    q = extisolate.create_queue()
    with pytest.raises(extisolate.NotShareableError):
        q.put(threading.Lock())
    assert q.empty()


def test_items_pass_through_interpreters(interp):
    with extisolate.create() as other:
        first, second, third = (extisolate.create_queue(3) for _ in range(3))
        threads = [
            interp.call_in_thread(work.pass_on, first, second, 200),
            other.call_in_thread(work.pass_on, second, third, 200),
        ]
        got = []
        reader = threading.Thread(
            target=lambda: got.extend(third.get(timeout=20) for _ in range(200))
        )
        reader.start()
        for i in range(200):
            first.put(i, timeout=20)
        for t in [*threads, reader]:
            t.join()
        assert got == list(range(200))


def test_items_stay_readable_after_their_interpreter():
    q = extisolate.create_queue()
    with extisolate.create() as made:
        made.exec("import work")
        made.call(work.identity, q)
        made.call(put_own_memory, q)
    view = q.get(timeout=5)
    assert bytes(view) == bytes(range(10))


def put_own_memory(q):
    q.put(work.own_memory(10))


def test_many_producers_and_consumers():
    q = extisolate.create_queue(5)
    got = []
    threads = [threading.Thread(target=lambda: [q.put(i) for i in range(300)]) for _ in range(4)]
    threads += [
        threading.Thread(target=lambda: got.extend(q.get() for _ in range(300))) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(got) == sorted(list(range(300)) * 4)


def test_waits_end_when_the_queue_does():
    q = extisolate.create_queue()
    raised = []

    def wait():
        try:
            extisolate._extisolate.queue_get(id, 20.0)
        except extisolate.InterpreterNotFoundError as e:
            raised.append(e)

    id = q.id
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    del q
    thread.join(10)
    assert not thread.is_alive() and len(raised) == 1
