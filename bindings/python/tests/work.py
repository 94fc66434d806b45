"""What the tests have interpreters do."""

import os
import sys
import threading
import time


def add(a, b=1):
    return a + b


def call_number(_):
    """Tell calls by the frame that calls: one of a chunk is another than that of the next chunk."""
    caller = sys._getframe(1)
    numbers = caller.f_globals.setdefault("_test_frames", [])
    if not numbers or numbers[-1] is not caller:
        numbers.append(caller)
    return len(numbers)


def identity(x):
    return x


def are_same(a, b):
    return a is b


def describe(value):
    """All of a value by which two that came on different ways might differ."""
    if isinstance(value, (tuple, list)):
        return type(value), [describe(item) for item in value]
    if isinstance(value, memoryview):
        return type(value), value.format, value.shape, value.strides, value.readonly, bytes(value)
    if type(value).__module__ == "numpy":
        layout = value.shape, value.strides, value.flags.writeable, value.flags.aligned
        return type(value), value.dtype, layout, value.tolist()
    return type(value), value


class Outer:
    class Inner:
        @staticmethod
        def double(x):
            return 2 * x


def module_itself():
    return sys


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


def write_inside(box, index, value):
    """Writes into all memory that is inside a tuple, list or dict."""
    if isinstance(box, (tuple, list, dict)):
        for item in box.values() if isinstance(box, dict) else box:
            write_inside(item, index, value)
    elif isinstance(box, memoryview):
        box[index] = value
    return box


def take_and_write(queue, index, value):
    write_inside(queue.get(), index, value)


def own_box(kind):
    """Memory of this interpreter's own, inside containers, which it keeps to look at later."""
    import array
    import mmap

    made = {
        "bytearray": lambda: bytearray(8),
        "array": lambda: array.array("d", [0] * 8),
        "mmap": lambda: mmap.mmap(-1, 8),
    }[kind]()
    kept.append(made)
    return [{"in": (made,)}]


def kept_item(index):
    return kept[-1][index]


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


def interpreter_slowly():
    time.sleep(0.02)
    return interpreter_id()


def parallel_ids():
    """Runs in whichever interpreter, which has others do it."""
    import joblib

    import extisolate.joblib  # noqa: F401

    calls = [joblib.delayed(interpreter_slowly)() for _ in range(20)]
    return set(joblib.Parallel(n_jobs=2, backend="extisolate", batch_size=1)(calls))


def parallel_ids_by_main():
    import extisolate

    return extisolate.get_main().call(parallel_ids)


def parallel_sum(n):
    import joblib

    return sum(joblib.Parallel(n_jobs=2)(joblib.delayed(add)(i) for i in range(n)))


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


def start_daemon():
    import threading

    threading.Thread(target=threading.Event().wait, daemon=True).start()


def prove_current():
    import extisolate

    proof = extisolate.get_current().prove()
    return proof.leaks, proof.modules > 2


def mapped_copy(address):
    """Give the file of the copy whose code is at the address, and where it begins.

    The code itself may be mapped from the original; the data behind it is the copy's own.
    """
    with open("/proc/self/maps") as f:
        lines = [line.split(None, 5) for line in f if "/" in line]
    ranges = [[int(end, 16) for end in line[0].split("-")] for line in lines]
    file = next(line[5] for line, (_, b) in zip(lines, ranges) if address < b and "w" in line[1])
    return file.rstrip(), min(a for line, (a, _) in zip(lines, ranges) if line[5] == file)


def point_slot(symbol, address):
    """Point a reference of the copy of _ctypes elsewhere, and give where it led to."""
    import _ctypes
    import ctypes
    import struct

    inside = ctypes.CDLL(_ctypes.__file__).PyInit__ctypes
    file, base = mapped_copy(ctypes.cast(inside, ctypes.c_void_p).value)
    with open(file, "rb") as f:
        data = f.read()
    (at,) = struct.unpack_from("<Q", data, 0x28)
    size, number = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(number)]
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind != 4:  # SHT_RELA
            continue
        symbols, strings = sections[link][4], sections[sections[link][6]][4]
        for slot, info, _ in struct.iter_unpack("<QQq", data[offset : offset + length]):
            start = strings + struct.unpack_from("<I", data, symbols + 24 * (info >> 32))[0]
            # Copies ask for the API by names that no original has.
            name = data[start : data.index(b"\0", start)].decode()
            if info >> 32 and name.replace("QX", "Py", 1) == symbol:
                return set_word(base + slot, address)
    raise LookupError(symbol)


def set_word(at, value):
    import ctypes

    page = ctypes.c_void_p(at & -4096)
    if ctypes.CDLL(None, use_errno=True).mprotect(page, 4096, 3):
        raise OSError(ctypes.get_errno(), "mprotect")
    word = ctypes.c_uint64.from_address(at)
    before, word.value = word.value, value
    return before


def execute(status):
    os.execv("/bin/sh", ["sh", "-c", f"exit {status}"])


def raise_exited():
    import extisolate

    raise extisolate.InterpreterExitedError("another one")


def place():
    import extisolate

    return extisolate.index, extisolate.count


def annotations(function):
    return tuple(function.__annotations__.items())


class EqualToLists(type):
    def __eq__(cls, other):
        return other is list

    def __hash__(cls):
        return hash(list)


class LikeAList(metaclass=EqualToLists):
    pass
