"""Calls without pickle: of functions that an import finds, with arguments of plain types.

The first call of a function finds out that it is one; the second takes the short way.
"""

import array
import mmap
import sys
import types

import pytest
import work

import extisolate
from extisolate import _extisolate


def again(interp, function, *args):
    interp.call(function, *args)
    assert function in _extisolate.targets
    return interp.call(function, *args)


VALUES = [
    None,
    True,
    -1,
    2**63 - 1,
    -(2**63),
    2**63,
    -(10**100),
    1.5,
    float("inf"),
    "",
    "text \N{SNOWMAN} \0",
    "\ud800",
    b"",
    b"\0" * 200,
    b"x" * 100_000,
    (),
    (1, (2.0, ("three", b"4" * 70_000), None), False),
    "long " * 50_000,
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:20])
def test_values(interp, value):
    returned = again(interp, work.identity, value)
    assert returned == value and type(returned) is type(value)


def test_other_arguments_go_the_long_way(interp):
    assert again(interp, work.identity, [1, {2}]) == [1, {2}]
    assert again(interp, work.echo, (), {}) == (((), {}), {})
    interp.call(work.echo)
    assert interp.call(work.echo, 1, a=2) == ((1,), {"a": 2})
    deep = ()
    for _ in range(60):
        deep = (deep,)
    assert again(interp, work.identity, deep) == deep


def test_functions_are_found_as_they_are_now(interp):
    assert again(interp, work.add, 1) == 2
    interp.exec("import work; work.add = lambda a: -a")
    assert interp.call(work.add, 1) == -1
    interp.exec(
        "import sys, types; sys.modules['work'] = m = types.ModuleType('work'); m.add = str"
    )
    assert interp.call(work.add, 1) == "1"
    interp.exec("del sys.modules['work']")
    assert interp.call(work.add, 1) == 2


def test_functions_are_found_as_their_module_tells(interp):
    assert again(interp, work.add, 1) == 2
    interp.exec("import work; del work.add; work.__getattr__ = lambda name: str")
    assert interp.call(work.add, 1) == "1"
    interp.exec("work.add = float")
    assert interp.call(work.add, 1) == 1.0
    interp.exec(
        "import types; K = type('K', (types.ModuleType,), {'add': property(lambda m: repr)})"
    )
    interp.exec("work.__class__ = K")
    assert interp.call(work.add, 1) == "1"
    interp.exec("import sys; del sys.modules['work']")
    assert interp.call(work.add, 1) == 2


def test_functions_within_classes(interp):
    assert again(interp, work.Outer.Inner.double, 21) == 42


def test_many_functions(interp, monkeypatch):
    source = "".join(f"def f{i}(): return {i}\n" for i in range(1500))
    module = types.ModuleType("many_functions")
    exec(source, module.__dict__)
    monkeypatch.setitem(sys.modules, "many_functions", module)
    interp.exec(
        "import sys, types; sys.modules['many_functions'] = m = types.ModuleType('many_functions')"
    )
    interp.exec(f"exec({source!r}, m.__dict__)")
    functions = [getattr(module, f"f{i}") for i in range(1500)]
    for _ in range(2):
        assert [interp.call(f) for f in functions] == list(range(1500))
    assert len(_extisolate.targets) <= 1024


def test_what_fails(interp):
    for _ in range(2):
        with pytest.raises(extisolate.ExecutionFailed) as caught:
            interp.call(work.raise_in_chain)
        assert "During handling" in str(caught.value) or "direct cause" in str(caught.value)
        with pytest.raises(extisolate.NotShareableError):
            interp.call(work.module_itself)
        with pytest.raises(extisolate.ExecutionFailed, match="RecursionError"):
            interp.call(work.recurse)
        with pytest.raises(TypeError):
            interp.call()
    assert interp.call(work.nothing) is None


def test_arrays(interp):
    numpy = pytest.importorskip("numpy")
    given = numpy.arange(3)
    assert again(interp, work.are_same, given, given) is True
    assert interp.call(work.are_same, given, given[:]) is False
    number = numpy.array(5.0)
    returned = again(interp, work.identity, number)
    assert returned.shape == () and returned.dtype == number.dtype
    returned[...] = 6
    assert number == 6
    noted = numpy.zeros(2, numpy.dtype("f8", metadata={"unit": "m"}))
    returned = again(interp, work.identity, noted)
    assert returned.dtype.metadata == noted.dtype.metadata
    many = tuple(numpy.full(1, i) for i in range(20))
    assert [int(a[0]) for a in again(interp, work.identity, many)] == list(range(20))


def test_a_thread_keeps_only_callers():
    own = _extisolate.OwnCaller()
    with pytest.raises(RuntimeError, match="no interpreter"):
        own.call(work.nothing)
    with pytest.raises(TypeError):
        own.keep(None)


def mapping():
    made = mmap.mmap(-1, 4096)
    made[:4] = b"mmap"
    return made


HOLDERS = {
    "bytearray": lambda: bytearray(b"abc"),
    "array": lambda: array.array("d", [1, 2]),
    "array_of_text": lambda: array.array("u", "ab"),
    "mmap": mapping,
    "bytes": lambda: bytearray(b"x" * 100_000),
    "memoryview": lambda: memoryview(bytearray(b"abcdef")),
    "memoryview_with_gaps": lambda: memoryview(bytearray(b"abcdef"))[::2],
    "memoryview_of_numbers": lambda: memoryview(array.array("i", [1, 2, 3, 4])),
    "readonly_memoryview": lambda: memoryview(b"abcdef"),
    "text": lambda: "\ud800 text",
    "none": lambda: None,
}
ARRAYS = {
    "array_of_numbers": lambda numpy: numpy.arange(6.0).reshape(2, 3),
    "in_fortran_order": lambda numpy: numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
    "with_gaps": lambda numpy: numpy.arange(6)[::2],
    "backwards": lambda numpy: numpy.arange(3)[::-1],
    "of_no_dimension": lambda numpy: numpy.array(5.0),
    "of_none": lambda numpy: numpy.zeros((0, 3)),
    "of_dates": lambda numpy: numpy.array(["2026-11-23"], "M8[D]"),
    "of_truths": lambda numpy: numpy.array([True, False]),
    "of_complex_numbers": lambda numpy: numpy.array([1j]),
    "of_big_endian_numbers": lambda numpy: numpy.arange(3, dtype=">i4"),
    "of_records": lambda numpy: numpy.zeros(2, [("a", "i4"), ("b", "f8")]),
    "of_text": lambda numpy: numpy.array(["a", "bc"]),
    "of_objects": lambda numpy: numpy.array([None, 1], object),
    "readonly_array": lambda numpy: numpy.frombuffer(b"abcdefgh", "i4"),
}


@pytest.fixture(scope="module", params=[{}, {"readonly": True}, {"copy": True}], ids=str)
def asked(request):
    with extisolate.create(**request.param) as made:
        yield made


def compare_ways(interp, value):
    """Make the one message in C, and the other by pickle, which lists are left to."""
    assert again(interp, work.describe, value) == interp.call(work.describe, [value])[1][0]
    returned = again(interp, work.identity, value)
    pickled = interp.call(work.identity, [value])[0]
    assert work.describe(returned) == work.describe(pickled)


@pytest.mark.parametrize("make", HOLDERS.values(), ids=HOLDERS)
def test_pickle_gives_the_same(asked, make):
    compare_ways(asked, make())
    compare_ways(asked, (make(), 1))


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_pickle_gives_the_same_arrays(asked, make):
    numpy = pytest.importorskip("numpy")
    compare_ways(asked, make(numpy))
    compare_ways(asked, (make(numpy), 1))
