"""What the tests have interpreters do."""

import sys
import threading
import time


def add(a, b=1):
    return a + b


def identity(x):
    return x


def nothing():
    return None


def echo(*args, **kwargs):
    return args, kwargs


def raise_in_chain():
    try:
        {}["key"]
    except KeyError as e:
        raise ValueError("second") from e


class NeedsTwo(Exception):
    def __init__(self, one, two):
        super().__init__("needs two")


class NoReduce(Exception):
    def __reduce__(self):
        raise RuntimeError("cannot be reduced")


class NoText(Exception):
    def __str__(self):
        raise RuntimeError("has no text")


def raise_named(name):
    raise {
        "two": lambda: NeedsTwo(1, 2),
        "reduce": NoReduce,
        "text": NoText,
        "exit": lambda: SystemExit(3),
        "keyboard": KeyboardInterrupt,
        "memory": MemoryError,
    }[name]()


def recurse():
    return recurse()


def make_lock():
    return threading.Lock()


class BadPickle:
    def __reduce__(self):
        return (int, ("not a number",))


def bad_pickle():
    return BadPickle()


def spin(seconds):
    end = time.time() + seconds
    while time.time() < end:
        pass
    return True


def sleep(seconds):
    time.sleep(seconds)
    return threading.get_ident()


kept = []


def keep(x):
    kept.append(x)


def forget():
    kept.clear()


def sum_kept():
    return sum(kept[0])


def write(memory, index, value):
    memory[index] = value
    return memory.readonly if isinstance(memory, memoryview) else not memory.flags.writeable


def own_memory(n):
    return memoryview(bytearray(range(n)))


def start_late_put(q, seconds):
    def put():
        time.sleep(seconds)
        q.put("late")

    thread = threading.Thread(target=put)
    thread.start()
    return thread.daemon


def leave_thread_running(seconds):
    threading.Thread(target=time.sleep, args=(seconds,), daemon=True).start()


def start_thread(n):
    found = []
    thread = threading.Thread(target=lambda: found.append(n * 2))
    thread.start()
    thread.join()
    return found[0]


def interpreter_id():
    import extisolate

    return extisolate.get_current().id


def names():
    import extisolate

    return extisolate.index, extisolate.count, extisolate.name


def call_from(chain, value):
    """Calls itself through the interpreters of the chain, one inside the other."""
    import extisolate

    if not chain:
        return [extisolate.get_current().id, value]
    return [
        extisolate.get_current().id,
        extisolate.Interpreter(chain[0]).call(call_from, chain[1:], value),
    ]


def call_and_fail(chain):
    import extisolate

    if not chain:
        raise ValueError("at the end of the chain")
    return extisolate.Interpreter(chain[0]).call(call_and_fail, chain[1:])


def sum_through(chain, array):
    import extisolate

    if not chain:
        return float(array.sum())
    return extisolate.Interpreter(chain[0]).call(sum_through, chain[1:], array)


def put_from(queue, item):
    queue.put(item)


def pass_on(source, target, n):
    for _ in range(n):
        target.put(source.get())


def close_other(id):
    import extisolate

    extisolate.Interpreter(id).close()


def create_inside():
    import extisolate

    with extisolate.create() as inner:
        return inner.id, inner.call(add, 2, 3)


def address():
    return id(sys.modules["sys"])


def executed():
    return sys.modules["__main__"].__dict__.get("answer")
