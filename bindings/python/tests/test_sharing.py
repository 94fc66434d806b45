import array
import gc
import mmap
import time
import weakref

import pytest
import work

import extisolate

numpy = pytest.importorskip("numpy")


def test_arrays_are_shared_both_ways(interp):
    given = numpy.arange(5.0)
    assert interp.call(work.write, given, 1, 42.0) is False
    assert given[1] == 42
    returned = interp.call(work.identity, given)
    returned[2] = 43
    assert given[2] == 43


@pytest.mark.parametrize(
    "wrap", [lambda a: (a, 1), lambda a: [a], lambda a: {"a": a}, lambda a: [({"a": a},)]]
)
def test_arrays_inside_containers_are_shared(interp, wrap):
    given = numpy.zeros(3)

    def first(x):
        while not isinstance(x, numpy.ndarray):
            x = next(iter(x.values() if isinstance(x, dict) else x))
        return x

    returned = first(interp.call(work.identity, wrap(given)))
    returned[0] = 7
    assert given[0] == 7


ARRAYS = [
    numpy.arange(12).reshape(3, 4),
    numpy.asfortranarray(numpy.arange(12.0).reshape(3, 4)),
    numpy.arange(12)[::3],
    numpy.arange(12)[::-1],
    numpy.arange(24).reshape(2, 3, 4).transpose(1, 0, 2),
    numpy.arange(3).astype("datetime64[s]"),
    numpy.arange(6).astype("timedelta64[ms]")[::2],
    numpy.array([1 + 2j]),
    numpy.array([True, False]),
    numpy.zeros(2, "f2"),
    numpy.arange(3, dtype=">i4"),
]


@pytest.mark.parametrize("given", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}{a.strides}")
def test_arrays_of_each_layout_are_shared(interp, given):
    given = given.copy("K") if given.base is None else given
    returned = interp.call(work.identity, given)
    assert returned.dtype == given.dtype and returned.shape == given.shape
    assert (returned == given).all()
    assert numpy.shares_memory(returned, given)


@pytest.mark.parametrize(
    "given",
    [
        numpy.array(["a", None], dtype=object),
        numpy.array(3.0),
        numpy.zeros(0),
        numpy.float64(2),
        numpy.zeros(2, [("a", "i4"), ("b", "f8")]),
        numpy.array(["abc", "d"]),
        numpy.zeros(4, [("a", "i4")])[::2],
    ],
    ids=str,
)
def test_other_arrays_arrive(interp, given):
    returned = interp.call(work.identity, given)
    assert (returned == given).all()
    assert returned.dtype == given.dtype


def test_memoryviews_of_anything_are_shared(interp, tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(100))
    with open(file, "r+b") as f, mmap.mmap(f.fileno(), 100) as mapped:
        sources = [bytearray(10), array.array("d", [0] * 10), mapped]
        for source in sources:
            view = memoryview(source)
            assert interp.call(work.write, view, 3, 5) is False
            assert source[3] == 5
            view.release()  # nobody has it any more once the call is over


SOURCES = {
    "bytearray": lambda: bytearray(8),
    "array": lambda: array.array("d", [0] * 8),
    "mmap": lambda: mmap.mmap(-1, 8),
}
WRAPS = [lambda a: a, lambda a: (a, 1), lambda a: [{"in": (a,)}]]


@pytest.mark.parametrize("wrap", WRAPS, ids=["itself", "in-a-tuple", "deep"])
@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_only_memory_is_shared(interp, kind, wrap):
    """It arrives as a memoryview, which is what can be made of memory."""
    given = SOURCES[kind]()
    returned = interp.call(work.write_inside, wrap(given), 3, 5)
    assert given[3] == 5
    work.write_inside(returned, 4, 6)
    assert given[4] == 6


@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_only_memory_is_shared_as_a_result(fresh, kind):
    returned = fresh.call(work.own_box, kind)
    view = returned[0]["in"][0]
    assert type(view) is memoryview and view.nbytes == 8 * view.itemsize
    view[3] = 7
    assert fresh.call(work.kept_item, 3) == 7


@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_only_memory_is_copied_where_asked(kind):
    """By which a copy would be seen above."""
    with extisolate.create(copy=True) as interp:
        given = SOURCES[kind]()
        returned = interp.call(work.echo, [given])[0][0][0]
        returned[3] = 5
        assert given[3] == 0
        assert type(returned) is (memoryview if kind == "mmap" else type(given))


def test_what_is_only_memory_is_read_only_where_asked():
    with extisolate.create(readonly=True) as interp:
        returned = interp.call(work.identity, [bytearray(8)])[0]
        assert type(returned) is memoryview and returned.readonly


def test_the_same_memory_stays_the_same(interp):
    given = bytearray(8)
    around = [given, (given,)]
    around.append(around)
    returned = interp.call(work.identity, around)
    assert returned[0] is returned[1][0] and returned[2] is returned
    assert around[2] is around and type(around[0]) is bytearray


def test_memory_of_other_objects_is_pickled(interp):
    """They may need it to be what it is."""
    given = Holder(bytearray(b"abc"))
    returned = interp.call(work.identity, given)
    assert type(returned.memory) is bytearray and returned.memory == given.memory


class Holder:
    def __init__(self, memory):
        self.memory = memory


def test_memory_through_queues(interp):
    queue = extisolate.create_queue()
    given = bytearray(8)
    queue.put([given])
    interp.call(work.take_and_write, queue, 3, 9)
    assert given[3] == 9


@pytest.mark.parametrize(
    "given", [bytearray(), array.array("d"), array.array("u", "text")], ids=str
)
def test_other_memory_arrives(interp, given):
    assert interp.call(work.identity, [given])[0] == given


def test_lent_memory_keeps_its_size(interp):
    given = bytearray(8)
    interp.call(work.keep, given)
    with pytest.raises(BufferError):
        given.append(1)
    interp.call(work.forget)
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            given.append(1)
            break
        except BufferError:
            time.sleep(0.01)
    assert len(given) == 9


def test_memoryviews_keep_their_shape(interp):
    view = memoryview(array.array("i", range(12))).cast("B").cast("i", (3, 4))
    returned = interp.call(work.identity, view)
    assert (returned.shape, returned.format, returned.tolist()) == ((3, 4), "i", view.tolist())
    assert interp.call(work.identity, view.cast("B")[::2]).tolist() == view.cast("B")[::2].tolist()


def test_read_only_memory_stays_read_only(interp):
    given = numpy.arange(3)
    given.flags.writeable = False
    assert not interp.call(work.identity, given).flags.writeable
    assert interp.call(work.identity, memoryview(b"abc")).readonly


def test_readonly_interpreters():
    with extisolate.create(readonly=True) as interp:
        given = numpy.arange(3)
        with pytest.raises(extisolate.ExecutionFailed, match="read-only"):
            interp.call(work.write, given, 0, 1)
        assert not interp.call(work.identity, given).flags.writeable
        assert interp.call(work.own_memory, 3).readonly
        given[0] = 9
        assert interp.call(work.identity, given)[0] == 9  # it is shared all the same


def test_copying_interpreters():
    with extisolate.create(copy=True) as interp:
        given = numpy.arange(3)
        interp.call(work.write, given, 0, 7)
        assert given[0] == 0
        returned = interp.call(work.identity, given)
        assert not numpy.shares_memory(given, returned)
        view = memoryview(bytearray(3))
        interp.call(work.write, view, 0, 7)
        assert view[0] == 0
        assert interp.call(work.own_memory, 3).tolist() == [0, 1, 2]


def test_no_more_is_copied_than_needed(interp):
    given = numpy.zeros(100 << 20, "u1")
    interp.call(work.identity, given[:1])
    before = max_rss()
    for _ in range(3):
        returned = interp.call(work.identity, given)
    assert numpy.shares_memory(returned, given)
    assert max_rss() - before < 20 << 20


def max_rss():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def test_memory_goes_on_between_contexts(interp):
    with extisolate.create() as other:
        given = numpy.arange(1000.0)
        assert work.sum_through([interp.id, other.id, interp.id, 0], given) == given.sum()
        returned = other.call(work.call_from, [interp.id], given)[1][1]
        assert numpy.shares_memory(returned, given)
        del returned


def test_shareable():
    for value in (
        None,
        1,
        "a",
        b"b",
        1.5,
        True,
        (1, "a"),
        memoryview(b""),
        extisolate.create_queue(),
    ):
        assert extisolate.is_shareable(value)
    for value in ([], {}, object(), (1, [])):
        assert not extisolate.is_shareable(value)


def test_pickled_memory_is_kept_by_its_reader(interp, nothing_lingers):
    given = numpy.arange(1000.0)
    gone = weakref.ref(given)
    interp.call(work.keep, given)
    total = given.sum()
    del given
    gc.collect()
    assert gone() is not None
    assert interp.call(work.sum_kept) == total
    interp.call(work.forget)
    end = time.monotonic() + 10
    while gone() is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert gone() is None


def test_memory_of_objects_is_refused(interp):
    memory = memoryview(numpy.array(["a", None], dtype=object))
    for given in (memory, [memory]):
        with pytest.raises(extisolate.NotShareableError, match="objects"):
            interp.call(work.identity, given)
    names = numpy.zeros(2, [("Other", "i4")])  # an O in a name is none
    assert interp.call(work.identity, memoryview(names)).format == "T{i:Other:}"
