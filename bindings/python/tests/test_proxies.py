import asyncio
import builtins
import collections
import collections.abc
import copy
import datetime
import decimal
import fractions
import functools
import gc
import inspect
import io
import numbers
import operator
import os
import pathlib
import pickle
import sys
import threading
import time
import traceback
import weakref

import pytest
import work
from test_process import run

import extisolate
from extisolate import Proxy, _extisolate, share


@pytest.fixture(autouse=True)
def nothing_is_left():
    """What interpreters had of each other, they have let go of."""
    before = _extisolate.linked()
    yield
    end = time.monotonic() + 20
    while _extisolate.linked() > before and time.monotonic() < end:
        gc.collect()
        extisolate.collect()
        time.sleep(0.01)
    assert _extisolate.linked() <= before


# ---- what passes by value, and what stays ------------------------------------------------------


VALUES = [
    None,
    True,
    -(1 << 100),
    1.5,
    2 + 3j,
    "tëxt\ud800",
    b"bytes",
    (),
    (1, ("a", (None,))),
    slice(1, None, 2),
    ...,
    NotImplemented,
    int,
    ValueError,
    len,
    datetime.date(2026, 1, 2),
    decimal.Decimal("1.5"),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_these_are_values(interp, value):
    echo = interp.proxy("lambda *args: args[0]")
    got = echo(value)
    assert type(got) is type(value)
    assert got == value


@pytest.mark.parametrize("text", ["[]", "{}", "set()", "object()", "type('C', (), {})", "print"])
def test_these_stay(interp, text):
    got = interp.proxy(text)
    assert isinstance(got, Proxy)
    assert interp.proxy("lambda x: x")(got) is got


def test_subclasses_of_values_stay(interp):
    number = interp.proxy("type('Number', (int,), {'half': lambda self: self // 2})(12)")
    assert isinstance(number, Proxy)
    assert (number.half(), int(number), number + 1, number == 12) == (6, 12, 13, True)
    assert isinstance(number, numbers.Integral) and isinstance(number, numbers.Number)


def test_a_tuple_has_proxies_in_it(interp):
    made = interp.proxy("lambda: (1, [2], ([3],))")()
    assert type(made) is tuple and made[0] == 1
    assert list(made[1]) == [2] and type(made[2]) is tuple and list(made[2][0]) == [3]


def test_deep_tuples(interp):
    deep = ()
    for _ in range(200):
        deep = (deep,)
    got = interp.proxy("lambda x: x")(deep)
    for _ in range(200):
        assert len(got) == 1
        got = got[0]
    assert len(got) == 0


GIVEN = [
    [1, "a", (2, [3])],
    {"a": {1, 2}, "b": frozenset("x")},
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
    decimal.Decimal("1.5"),
    fractions.Fraction(1, 3),
    range(3, 9, 2),
    ValueError("x", 1),
    collections.OrderedDict(a=1),
    pathlib.PurePath("a/b"),
    [datetime.date(2026, 1, 2)],
]


@pytest.mark.parametrize("value", GIVEN, ids=repr)
def test_these_are_given_by_value(interp, value):
    there = interp.proxy("lambda x: (type(x).__qualname__, repr(x))")
    assert there(value) == (type(value).__qualname__, repr(value))


def test_containers_are_given_with_what_is_shared_in_them(interp):
    def function():
        return 5

    class Thing:
        n = 7

    proxy, thing, listed = interp.proxy("[]"), Thing(), [1]
    given = {"f": function, "p": [proxy], "t": thing, "l": share(listed), "c": Thing}
    given["self"] = given
    interp.exec(
        "def look(given, proxy):\n"
        "    assert type(given) is dict and given['self'] is given and given['p'][0] is proxy\n"
        "    given['l'].append(2)\n"
        "    return given['f'](), given['t'].n, given['t'], given['c']().n\n"
    )
    assert interp.proxy("look")(given, proxy) == (5, 7, thing, 7)
    assert listed == [1, 2]
    same = [1]
    assert interp.proxy("lambda x: x[0] is x[1]")([same, same])


class Plain:
    pass


def test_containers_of_other_types_are_given_in_the_same_way(interp):
    thing = Plain()
    given = [
        collections.OrderedDict(a=thing),
        collections.defaultdict(lambda: thing, a=thing),
        collections.Counter({"a": 3}),
        range(3),
        {"a": frozenset([thing])},
    ]
    look = interp.proxy("lambda given: (given[0]['a'], given[1]['b'], given[2]['a'], given[4])")
    assert look(given)[:3] == (thing, thing, 3)
    assert look(given)[3]["a"].__contains__(thing)
    kinds = interp.proxy("lambda given: ' '.join(type(x).__name__ for x in given)")
    assert kinds(given) == "OrderedDict defaultdict Counter range dict"


def test_memory_is_given_as_it_is(interp):
    numpy = pytest.importorskip("numpy")
    x = numpy.zeros(3)
    set_first = interp.proxy("lambda x: (x.__setitem__(0, 9), type(x).__name__)[1]")
    assert set_first(x) == "ndarray" and x[0] == 9
    x[:] = 0
    interp.proxy("lambda x: x['k'][0].__setitem__(1, 8)")({"k": [x]})
    assert x[1] == 8
    view = bytearray(b"abc")
    set_first(memoryview(view)), interp.proxy("lambda x: x.__setitem__(1, 65)")(view)
    assert view == b"\tAc"
    interp.proxy("lambda x: x[0]['k'][0].append(66)")([{"k": (view,)}])
    assert view == b"\tAcB"
    assert interp.proxy("lambda x: x[0] is x[1]")([view, view])
    texts = numpy.array(["a", None], dtype=object)
    assert interp.proxy("lambda x: x[0]")(texts) == "a"


def test_what_cannot_be_copied_is_shared(interp):
    class Failing(Exception):
        def __reduce__(self):
            raise RuntimeError

    e = Failing("x")
    assert interp.proxy("lambda e: e")(e) is e
    assert interp.proxy("lambda x: x[0]")([e]) is e


# ---- identity ----------------------------------------------------------------------------------


def test_one_object_has_one_proxy(interp):
    interp.exec("thing = [[], []]; other = thing")
    a, b = interp.proxy("thing"), interp.proxy("other")
    assert a is b and a[0] is b[0] and a[0] is not a[1]


def test_it_goes_home_as_itself(interp):
    interp.exec("thing = []\ndef is_thing(x): return x is thing")
    assert interp.proxy("is_thing")(interp.proxy("thing"))
    assert interp.call(_is_main_thing, interp.proxy("thing"))


def _is_main_thing(x):
    import __main__

    return x is __main__.thing


def test_ones_own_comes_back_as_itself(interp):
    class Thing:
        pass

    mine, kept = Thing(), interp.proxy("[]")
    kept.append(mine)
    kept.append(print)
    assert kept[0] is mine and kept[1] is print
    assert interp.proxy("lambda x: x")(mine) is mine
    listed = [1]
    kept.append(share(listed))
    assert kept[2] is listed


def test_through_a_third(interp, fresh):
    mine = {"a": 1}
    here, there = interp.proxy("[]"), fresh.proxy("[]")
    here.append(share(mine))
    there.append(share(here[0]))
    there.append(here)
    assert there[0] is mine and there[1] is here
    assert there[1][0] is mine
    fresh.prepare_main(here=here)
    fresh.exec(
        "import extisolate\nown = []\nhere.append('from fresh')\n"
        "here.append(extisolate.share(own))\nassert here[2] is own"
    )
    assert here[1] == "from fresh" and isinstance(here[2], Proxy)
    assert f"in interpreter {fresh.id}" in repr(here[2])
    del here[0:]


def test_a_weak_reference_ends_with_the_proxy(interp):
    proxy = interp.proxy("[]")
    ends = []
    weak = weakref.ref(proxy, ends.append)
    assert weak() is proxy
    del proxy
    assert weak() is None and ends == [weak]


def test_a_callback_gets_a_new_proxy(interp):
    interp.exec("thing = []")
    got = []
    proxy = interp.proxy("thing")
    weak = weakref.ref(proxy, lambda _: got.append(interp.proxy("thing")))
    del proxy
    others = [interp.proxy("[]") for _ in range(50)]
    assert weak() is None and got[0] is interp.proxy("thing")
    assert not any(other is got[0] for other in others)
    got[0].append(1)
    assert list(interp.proxy("thing")) == [1]


def test_a_collection_while_a_proxy_ends(interp):
    for _ in range(50):
        proxy = interp.proxy("[[]]")
        weak = weakref.ref(proxy, lambda _: extisolate.collect())
        del proxy
        assert weak() is None


def test_a_collector_that_makes_proxies(interp):
    interp.exec("thing = [[]]")
    made = []

    def make(phase, info):
        if phase == "start":
            made.append(interp.proxy("thing")[0])

    gc.callbacks.append(make)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(100):
            assert interp.proxy("thing")[0] is interp.proxy("thing")[0]
            made.clear()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(make)


def test_types_are_told_apart_by_what_they_are(interp):
    interp.exec(
        "class Meta(type):\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = None\n"
        "class Callable(metaclass=Meta):\n"
        "    def __call__(self): return 1\n"
        "class Sized(metaclass=Meta):\n"
        "    def __len__(self): return 2\n"
        "class Descriptor:\n"
        "    def __get__(self, obj, cls): return lambda *args: args[0] if obj else 1 / 0\n"
        "class Odd:\n"
        "    __len__ = staticmethod(lambda: 3)\n"
        "    __getitem__ = staticmethod(lambda key: key)\n"
        "    __add__ = classmethod(lambda cls, other: (cls.__name__, other))\n"
        "    __sub__ = Descriptor()\n"
    )
    assert interp.proxy("Callable()")() == 1 and len(interp.proxy("Sized()")) == 2
    odd = interp.proxy("Odd()")
    assert odd["key"] == "key" and odd + 1 == ("Odd", 1) and odd - 5 == 5
    thing = work.LikeAList()
    assert interp.proxy("lambda x: x")(thing) is thing
    assert interp.proxy("lambda x: x[0]")([thing]) is thing


def test_types_end_with_their_objects(interp, fresh):
    """Here, where their objects are, and there, where proxies have classes for them."""

    def use(number):
        class Thing:
            pass

        Thing.__qualname__ = f"Thing{number}"
        there = interp.proxy("lambda x: type(x)")(Thing())
        interp.proxy("lambda x: x")([Thing(), there])
        return weakref.ref(Thing)

    used = [use(number) for number in range(20)]
    extisolate.collect()
    gc.collect()
    assert not any(weak() for weak in used)
    fresh.exec(
        "import extisolate, gc\n"
        "def make(i): return type(f'Thing{i}', (), {'__len__': lambda self: 1})()\n"
        "def count(): return sum(c.__name__.startswith('Thing') for c in object.__subclasses__())"
    )
    make, count = fresh.proxy("make"), fresh.proxy("count")
    before = len(Proxy.__subclasses__())
    for i in range(9000):
        make(i)
    gc.collect()
    fresh.exec("gc.collect()")
    assert len(Proxy.__subclasses__()) <= before + 4096
    assert count() == 0


def test_what_was_done_is_told_beside_a_close():
    a, b = extisolate.create(), extisolate.create()
    kept, there = a.proxy("[]"), a.proxy("[[] for _ in range(10500)]")
    all_of_them = list(there)
    b.exec("import time")
    sleeper = threading.Thread(target=b.exec, args=("time.sleep(0.5)",))
    sleeper.start()
    time.sleep(0.1)
    closer = threading.Thread(target=b.close, kwargs={"wait": True})
    closer.start()
    time.sleep(0.1)
    for n in range(100):
        kept.append(n)
    closer.join()
    sleeper.join()
    assert len(kept) == 100
    del kept, there, all_of_them
    a.close()


def test_the_object_ends_with_its_last_proxy(interp):
    interp.exec(
        "import weakref\n"
        "class Thing: pass\n"
        "ended = []\n"
        "def make():\n"
        "    thing = Thing()\n"
        "    weakref.finalize(thing, ended.append, 1)\n"
        "    return thing\n"
    )
    thing = interp.proxy("make()")
    same = interp.proxy("lambda x: x")(thing)
    ended = interp.proxy("ended")
    del thing
    assert len(ended) == 0
    del same
    end = time.monotonic() + 20
    while not len(ended) and time.monotonic() < end:
        time.sleep(0.001)
    assert list(ended) == [1]


def test_an_idle_interpreter_lets_go_at_once(interp, tmp_path):
    path = tmp_path / "ended"
    interp.exec(f"class T:\n  def __del__(self): open({str(path)!r}, 'w').close()")
    thing = interp.proxy("T()")
    del thing
    end = time.monotonic() + 20
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.001)
    assert path.exists()


def test_this_interpreter_lets_go_at_once(interp):
    class Thing:
        pass

    thing = Thing()
    weak = weakref.ref(thing)
    holder = interp.proxy("[]")
    holder.append(thing)
    del thing
    gc.collect()
    assert weak() is not None
    interp.exec("import threading, time\ndef later(x): time.sleep(0.05); x.clear()")
    interp.proxy("lambda x: threading.Thread(target=later, args=(x,)).start()")(holder)
    end = time.monotonic() + 20
    while weak() is not None and time.monotonic() < end:
        time.sleep(0.001)
    assert weak() is None


# ---- methods -----------------------------------------------------------------------------------


def test_lists(interp):
    x = interp.proxy("[3, 1, 2]")
    assert isinstance(x, list) and isinstance(x, collections.abc.MutableSequence)
    assert not isinstance(x, collections.abc.Mapping)
    x.append(4)
    x[0] = 5
    del x[1]
    x += [6, 7]
    assert isinstance(x, Proxy)
    assert list(x) == [5, 2, 4, 6, 7] and list(reversed(x)) == [7, 6, 4, 2, 5]
    assert sorted(x) == [2, 4, 5, 6, 7] and len(x) == 5 and 4 in x and 1 not in x
    assert x[-1] == 7 and list(x[1:3]) == [2, 4] and x.index(4) == 2
    assert x == interp.proxy("[5, 2, 4, 6, 7]") and x != interp.proxy("[]")
    assert list(x + interp.proxy("[8]"))[-1] == 8 and list(2 * interp.proxy("[1]")) == [1, 1]
    first, *rest = x
    assert (first, rest) == (5, [2, 4, 6, 7])
    assert bool(x) and not interp.proxy("[]")
    assert "".join(interp.proxy("['a', 'b']")) == "ab" and [*interp.proxy("[1]")] == [1]
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_dicts(interp):
    x = interp.proxy("dict(a=1, b=[2])")
    assert isinstance(x, dict) and isinstance(x, collections.abc.MutableMapping)
    x["c"] = 3
    assert sorted(x) == ["a", "b", "c"] and dict(x)["c"] == 3 and {**x}["a"] == 1
    assert sorted(x.keys()) == ["a", "b", "c"] and x.get("z", 9) == 9
    assert sorted((k, type(v) is int) for k, v in x.items()) == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]
    assert list((x | {"d": 4}).keys())[-1] == "d" and x == {"a": 1, "b": [2], "c": 3}
    assert x.pop("a") == 1
    with pytest.raises(KeyError, match="a"):
        x["a"]
    assert (lambda **kw: kw["c"])(**x) == 3


def test_objects(interp):
    interp.exec(
        "class Thing:\n"
        "    kind = 'thing'\n"
        "    def __init__(self, n): self.n = n\n"
        "    def double(self): return 2 * self.n\n"
        "    def __lt__(self, other): return self.n < other.n\n"
        "    def __matmul__(self, other): return ('matmul', self.n, other)\n"
        "    def __rmatmul__(self, other): return ('rmatmul', self.n, other)\n"
        "    def __getitem__(self, key): return key\n"
        "    @property\n"
        "    def square(self): return self.n ** 2\n"
        "    @classmethod\n"
        "    def make(cls): return cls(7)\n"
    )
    Thing = interp.proxy("Thing")
    x = Thing(3)
    assert (x.n, x.kind, x.double(), x.square) == (3, "thing", 6, 9)
    x.n = 4
    assert x.double() == 8
    del x.n
    assert not hasattr(x, "n") and hasattr(x, "double")
    with pytest.raises(AttributeError, match="n"):
        del x.n
    x.n = 5
    assert vars(x)["n"] == 5 and "double" in dir(x)
    assert x < Thing(6) and not x < Thing(1) and max(Thing(1), Thing(9), x).n == 9
    assert x @ 1 == ("matmul", 5, 1) and 1 @ x == ("rmatmul", 5, 1)
    assert x[1:2, ...] == (slice(1, 2), ...)
    assert isinstance(x, Thing) and not isinstance(3, Thing) and not isinstance(Thing, Thing)
    assert issubclass(Thing, interp.proxy("object")) and isinstance(Thing, type)
    assert Thing.make().n == 7 and Thing.__name__ == "Thing" and x.__class__ is type(x)
    assert callable(Thing) and callable(x.double) and not callable(x)
    assert hash(x) == hash(x) and {x: 1}[x] == 1 and x != Thing(5)
    assert not isinstance(x, collections.abc.Iterator)
    with pytest.raises(TypeError):
        len(x)
    with pytest.raises(TypeError):
        x + 1
    assert not hasattr(type(x), "__len__") and not hasattr(type(x), "__add__")


def test_numbers_of_other_types(interp):
    interp.exec("from fractions import Fraction")
    half = interp.proxy("Fraction(1, 2)")
    assert isinstance(half, numbers.Rational) and not isinstance(half, numbers.Integral)
    assert float(half) == 0.5 and str(half + 1) == "3/2" and str(1 - half) == "1/2"
    assert half < 1 and half == 0.5 and round(half, 1) == interp.proxy("Fraction(1, 2)")
    assert [10, 20, 30][interp.proxy("type('I', (), {'__index__': lambda s: 2})()")] == 30


def test_keywords_and_many_arguments(interp):
    f = interp.proxy("lambda *args, **kwargs: (args, tuple(sorted(kwargs.items())))")
    assert f() == ((), ())
    assert f(1, 2, x=3, y=4) == ((1, 2), (("x", 3), ("y", 4)))
    assert f(*range(1000))[0] == tuple(range(1000))
    assert f(x=1) == ((), (("x", 1),))
    for n in range(12):
        assert f(*range(n)) == (tuple(range(n)), ())
        assert f(*range(n), x=n, y=1) == (tuple(range(n)), (("x", n), ("y", 1)))
    assert f.__call__(1, x=2) == ((1,), (("x", 2),))


def test_calls_make_no_tuple(interp):
    """The classes of what is called have Py_TPFLAGS_HAVE_VECTORCALL, also where those that are made
    in Python have not got it.
    """
    vectorcall = 1 << 11
    interp.exec("import functools\nclass Callable:\n    def __call__(self): pass")
    for of in ("lambda: 1", "[].append", "functools.partial(int, '7')", "Callable()"):
        assert type(interp.proxy(of)).__flags__ & vectorcall
    assert not type(interp.proxy("object()")).__flags__ & vectorcall


def test_classes_are_called(interp):
    """They have methods of type, some of which a class that is there cannot be given."""
    interp.exec("import abc\nclass Abstract(abc.ABC): pass\nclass Plain: pass")
    for of in ("Plain", "Abstract"):
        assert repr(interp.proxy(of)()).startswith(f"<proxy of <__main__.{of} object")
    assert interp.proxy("int")("7") == 7


def test_objects_of_a_class_without_a_module(interp):
    interp.exec(
        "class Meta(type):\n    @property\n    def __module__(cls): raise AttributeError\n"
        "class Stray(metaclass=Meta): n = 5"
    )
    assert interp.proxy("Stray()").n == 5


def test_calls_of_what_looks_at_its_caller(interp):
    """It finds the variables of ``__main__``."""
    interp.exec("n = 5\nimport sys, warnings")
    assert interp.proxy("eval")("n + 1") == 6
    assert interp.proxy("eval")("n + m", {"m": 1, "n": 2}) == 3
    interp.proxy("exec")("n = 7")
    for of in ("globals", "locals", "vars"):
        assert interp.proxy(of)()["n"] == 7
    assert "n" in interp.proxy("dir")() and interp.proxy("len")("ab") == 2
    assert interp.proxy("sys._getframe")().f_globals["__name__"] == "__main__"
    assert interp.proxy("type")("Name", (), {}).__module__ == "__main__"
    assert interp.proxy("max")([3, 4], key=abs, default=1) == 4


def test_many_names(interp):
    """More than are remembered, alike but for their beginnings or ends, of any length."""
    thing = interp.proxy("type('Thing', (), {})()")
    ends = "vwxyz€\udc80"
    names = [f"{a}{'x' * n}{b}" for a in "abcdé" for b in ends for n in (0, 1, 7, 30, 100)]
    for i, name in enumerate(names):
        setattr(thing, name, i)
    for _ in range(2):
        assert [getattr(thing, name) for name in names] == list(range(len(names)))
    assert all(getattr(thing, name) == i for i, name in enumerate(names) for _ in range(2))


def test_names_that_are_more_than_text(interp):
    class Name(str):
        pass

    thing = interp.proxy("type('Thing', (), {})()")
    setattr(thing, Name("value"), 1)
    assert getattr(thing, Name("value")) == thing.value == 1
    delattr(thing, Name("value"))
    assert not hasattr(thing, Name("value"))
    named = interp.proxy("lambda *args, **kwargs: (args, tuple(kwargs.items()))")
    assert named(1, **{Name("a"): 2, "b": 3}) == ((1,), (("a", 2), ("b", 3)))
    text = interp.proxy("type('Text', (), {'__enter__': lambda self, **kwargs: tuple(kwargs)})()")
    assert type(text).__enter__(text, **{Name("a"): 2}) == ("a",)


def test_generators(interp):
    interp.exec(
        "def count():\n"
        "    got = []\n"
        "    try:\n"
        "        while len(got) < 3:\n"
        "            got.append((yield len(got)))\n"
        "    finally:\n"
        "        ended.append(1)\n"
        "    return got\n"
        "ended = []"
    )
    g = interp.proxy("count()")
    assert isinstance(g, collections.abc.Generator) and iter(g) is g
    assert next(g) == 0 and g.send("a") == 1 and g.send("b") == 2
    with pytest.raises(StopIteration) as e:
        g.send("c")
    assert list(e.value.value) == ["a", "b", "c"]
    assert list(interp.proxy("count()")) == [0, 1, 2]
    assert list(zip(interp.proxy("iter('ab')"), interp.proxy("[1, 2]"))) == [("a", 1), ("b", 2)]

    def delegate():
        return (yield from interp.proxy("count()"))

    d = delegate()
    assert list(d) == [0, 1, 2]
    g = interp.proxy("count()")
    next(g)
    with pytest.raises(ValueError, match="thrown"):
        g.throw(ValueError("thrown"))
    g.close()
    assert sum(interp.proxy("ended")) == 4


def test_with(interp):
    interp.exec(
        "import contextlib\n"
        "seen = []\n"
        "@contextlib.contextmanager\n"
        "def manage(swallow):\n"
        "    try:\n"
        "        yield seen\n"
        "    except swallow as e:\n"
        "        seen.append(repr(e))\n"
        "    finally:\n"
        "        seen.append('left')\n"
    )
    manage, seen = interp.proxy("manage"), interp.proxy("seen")
    with manage(ValueError) as got:
        assert got is seen
    with manage(ValueError):
        raise ValueError("mine")
    assert list(seen) == ["left", "ValueError('mine')", "left"]
    with pytest.raises(KeyError, match="other"), manage(ValueError):
        raise KeyError("other")
    with interp.proxy("contextlib.suppress(ZeroDivisionError)"):
        1 / 0
    with interp.proxy("__import__('threading').Lock()") as locked:
        assert locked is True


def test_async(interp):
    interp.exec(
        "async def number(): return 42\n"
        "async def count():\n"
        "    for i in range(3): yield i\n"
        "class Manager:\n"
        "    seen = []\n"
        "    async def __aenter__(self): return 'entered'\n"
        "    async def __aexit__(self, cls, e, tb):\n"
        "        self.seen.append(repr(e))\n"
        "        return isinstance(e, ValueError)\n"
    )

    async def main():
        assert await interp.proxy("number()") == 42
        assert [i async for i in interp.proxy("count()")] == [0, 1, 2]
        async with interp.proxy("Manager()") as got:
            assert got == "entered"
        async with interp.proxy("Manager()"):
            raise ValueError("x")
        with pytest.raises(KeyError):
            async with interp.proxy("Manager()"):
                raise KeyError("y")

    asyncio.run(main())
    assert list(interp.proxy("Manager.seen")) == ["None", "ValueError('x')", "KeyError('y')"]
    assert isinstance(interp.proxy("(n for n in ())"), collections.abc.Iterator)


def test_text(interp):
    interp.exec(
        "class Text(str): pass\n"
        "class Thing:\n"
        "    def __repr__(self): return Text('<it>')\n"
        "    def __str__(self): return Text('it')\n"
        "    def __format__(self, spec): return Text('f' + spec)\n"
    )
    x = interp.proxy("Thing()")
    assert repr(x) == f"<proxy of <it> in interpreter {interp.id}>"
    assert (str(x), f"{x:abc}", type(str(x))) == ("it", "fabc", str)
    assert type(x).__name__ == "Proxy[Thing]" and type(x).__module__ == "extisolate"


def test_proxies_are_not_made_by_hand():
    with pytest.raises(TypeError, match=r"Interpreter\.proxy"):
        Proxy()
    with pytest.raises(TypeError):
        _extisolate.Shared()
    with pytest.raises(TypeError, match="no proxy"):
        _extisolate.special([], "__len__")


# ---- calls back --------------------------------------------------------------------------------


def test_functions_are_called_back_where_they_are(interp):
    seen = []

    def callback(n, *, scale=1):
        seen.append((threading.get_ident(), extisolate.get_current().id, n))
        return n * scale

    interp.exec("def apply(f, *args, **kw): return f(*args, **kw)")
    apply = interp.proxy("apply")
    assert apply(callback, 3, scale=5) == 15
    assert seen == [(threading.get_ident(), 0, 3)]
    assert apply(seen.append, "bound") is None and seen[-1] == "bound"
    assert apply(apply, callback, 4) == 4
    assert list(interp.proxy("map")(callback, [1, 2])) == [1, 2]
    assert apply(sorted, interp.proxy("[2, 1]"), key=lambda n: -n) == [2, 1]
    assert interp.proxy("lambda f: [f(i) for i in range(3)]")(lambda n: n * n) == interp.proxy(
        "[0, 1, 4]"
    )


def test_functions_tell_their_signatures(interp):
    interp.exec(
        "import functools\n"
        "def f(a, b: int = 2, /, c=[], *args: 'x', d, e=None, **rest) -> str:\n"
        "    'What f does.'\n"
        "class Thing:\n"
        "    def __init__(self, size: int): pass\n"
        "    def __call__(self, x): pass\n"
        "    def method(self, y=1): pass\n"
        "annotated = Thing(1)\n"
        "annotated.__annotations__ = {'a': int}"
    )
    f = interp.proxy("f")
    signature = inspect.signature(f)
    assert list(signature.parameters) == ["a", "b", "c", "args", "d", "e", "rest"]
    assert str(signature).replace(repr(f.__defaults__[1]), "[]") == (
        "(a, b: int = 2, /, c=[], *args: 'x', d, e=None, **rest) -> str"
    )
    assert signature.bind(1, d=2).arguments == {"a": 1, "d": 2}
    for text, wanted in {
        "Thing": "(size: int)",
        "Thing(1)": "(x)",
        "Thing(1).method": "(y=1)",
        "functools.partial(f, 1, 2, 3)": "(*args: 'x', d, e=None, **rest) -> str",
    }.items():
        assert str(inspect.signature(interp.proxy(text))) == wanted
    for text in ("[]", "type('NoSignature', (Thing,), {'__signature__': 5})"):
        assert not hasattr(interp.proxy(text), "__signature__")

    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return args

    assert (wrapper.__name__, wrapper.__doc__) == ("f", "What f does.")
    assert wrapper.__wrapped__ is f
    assert wrapper.__annotations__ == {"b": int, "args": "x", "return": str}
    assert inspect.signature(wrapper) == signature
    assert interp.proxy("annotated").__annotations__ == {"a": int}
    with pytest.raises(AttributeError):
        interp.proxy("[]").__annotations__


def test_others_run_while_one_is_called(interp):
    """The caller has let go of its GIL: what is called needs a thread of the caller."""
    event = threading.Event()
    interp.exec("import time\ndef wait(is_set):\n    while not is_set(): time.sleep(0.001)")
    threading.Timer(0.05, event.set).start()
    interp.proxy("wait")(event.is_set)
    event.clear()
    setter = threading.Timer(0.05, event.set)
    setter.start()
    interp.exec("import time")
    while not event.is_set():
        interp.proxy("time").sleep(0.001)


def test_threads_and_circles_of_calls(interp, fresh):
    """0 -> a -> b -> 0 -> a and the other way round, on several threads at once."""
    a, b = interp, fresh
    for i in (a, b):
        i.exec("def go(route, n):\n    return route[0](route[1:], n + 1) if route else n")
    go_a, go_b = a.proxy("go"), b.proxy("go")

    def go_0(route, n):
        return route[0](route[1:], n + 1) if route else n

    failed = []

    def work(route):
        for _ in range(100):
            if route[0](route[1:], 0) != len(route) - 1:
                failed.append(route)

    routes = [(go_a, go_b, go_0, go_a) * 3, (go_b, go_a, go_0, go_b) * 3]
    threads = [threading.Thread(target=work, args=(r,)) for r in routes * 3]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


# ---- exceptions --------------------------------------------------------------------------------


def test_exceptions(interp):
    interp.exec(
        "class Own(KeyError): pass\n"
        "class TwoArgs(Exception):\n"
        "    def __init__(self, a, b): super().__init__(a)\n"
        "def throw(e): raise e\n"
        "def deep(): return {}['missing']\n"
    )
    with pytest.raises(KeyError) as e:
        interp.proxy("deep")()
    assert e.value.args == ("missing",)
    assert isinstance(e.value.__cause__, extisolate.ExecutionFailed)
    text = "".join(traceback.format_exception(type(e.value), e.value, e.value.__traceback__))
    assert "in deep" in text and "Uncaught in the interpreter" in text
    for name, base in (("Own('a')", KeyError), ("TwoArgs(1, 2)", Exception)):
        with pytest.raises(base) as e:
            interp.proxy(f"lambda: throw({name})")()
        assert name.partition("(")[0] in str(e.value.__cause__)
    with pytest.raises(FileNotFoundError) as e:
        interp.proxy("lambda: open('/no/such')")()
    assert (e.value.errno, e.value.filename) == (2, "/no/such")
    with pytest.raises(UnicodeDecodeError) as e:
        interp.proxy(r"lambda: b'\xff'.decode()")()
    assert e.value.start == 0
    with pytest.raises(ZeroDivisionError):
        interp.proxy("lambda: 1 / 0")()
    with pytest.raises(SystemExit) as e:
        interp.proxy("lambda: throw(SystemExit(3))")()
    assert e.value.code == 3


def _caught(interp, source):
    try:
        interp.proxy(f"lambda: exec({source!r})")()
    except BaseException as e:
        return e


FIELDS = {
    "import no_such_module": {"name": "no_such_module", "path": None},
    "from os import no_such_name": {"name": "os"},
    "raise ImportError('text', name='a', path='b')": {"name": "a", "path": "b"},
    "no_such_name": {"args": ("name 'no_such_name' is not defined",)},
    "open('/no/such')": {"errno": 2, "strerror": "No such file or directory"},
    "raise OSError(18, 'text', 'a', None, 'b')": {"filename": "a", "filename2": "b"},
    "e = OSError('text'); e.errno = 5; raise e": {"errno": 5, "args": ("text",)},
    "1 +": {"lineno": 1, "filename": "<string>", "text": "1 +\n"},
    "e = SyntaxError('a'); e.msg, e.lineno = 'b', 7; raise e": {"msg": "b", "lineno": 7},
    "{}[1, 'a']": {"args": ((1, "a"),)},
    "raise StopIteration((1, 2))": {"value": (1, 2)},
    "raise SystemExit('text')": {"code": "text"},
    r"b'a\xff'.decode()": {"start": 1, "end": 2, "object": b"a\xff", "encoding": "utf-8"},
    "raise UnicodeTranslateError('text', 1, 2, 'why')": {"object": "text", "reason": "why"},
    "e = ValueError(1); e.code = 7; raise e": {"code": 7, "args": (1,)},
    "e = ValueError(1); e.__notes__ = ['a note']; raise e": {"__notes__": ["a note"]},
    "class Own(OSError): pass\nraise Own(5, 'text')": {"errno": 5, "strerror": "text"},
}


@pytest.mark.parametrize("source", FIELDS)
def test_exceptions_have_their_fields(interp, source):
    e = _caught(interp, source)
    assert isinstance(e.__cause__, extisolate.ExecutionFailed)
    for name, value in FIELDS[source].items():
        assert getattr(e, name) == value


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are none")
def test_groups_of_exceptions(interp):
    group = builtins.ExceptionGroup
    inner = "ExceptionGroup('inner', [TypeError(2)])"
    e = _caught(interp, f"raise ExceptionGroup('outer', [KeyError(1), {inner}])")
    assert (type(e), e.message) == (group, "outer")
    first, second = e.exceptions
    assert (type(first), first.args) == (KeyError, (1,))
    assert (type(second), second.message) == (group, "inner")
    assert (type(second.exceptions[0]), second.exceptions[0].args) == (TypeError, (2,))
    e = _caught(interp, "raise BaseExceptionGroup('base', [SystemExit(object())])")
    assert (type(e), type(e.exceptions[0].code).__name__) == (
        builtins.BaseExceptionGroup,
        "Proxy[object]",
    )

    def fail():
        raise group("ours", [KeyError(1)])

    with pytest.raises(group) as caught:
        interp.proxy("lambda f: f()")(fail)
    assert caught.value.exceptions[0].args == (1,)


def test_what_an_attribute_was_not_found_in(interp):
    thing = interp.proxy("[]")
    with pytest.raises(AttributeError) as e:
        thing.no_such_name
    if sys.version_info >= (3, 10):
        assert e.value.name == "no_such_name"
        assert e.value.obj is thing


def test_exceptions_of_ours_come_back(interp):
    class Mine(Exception):
        pass

    def fail(arg):
        raise ValueError(arg)

    thing = [1]
    interp.exec("def call(f, x):\n  try: return f(x)\n  except ValueError as e: return e.args[0]")
    assert interp.proxy("call")(fail, share(thing)) is thing
    with pytest.raises(ValueError) as e:
        interp.proxy("lambda f, x: f(x)")(fail, share(thing))
    assert e.value.args[0] is thing


def test_bad_exceptions(interp):
    interp.exec(
        "class NoText(Exception):\n"
        "    def __str__(self): raise RuntimeError('no text')\n"
        "class NoReduce(ValueError):\n"
        "    def __reduce__(self): raise RuntimeError('no reduce')\n"
        "def throw(e): raise e\n"
        "def recurse(): return recurse()\n"
    )
    with pytest.raises(Exception):
        interp.proxy("lambda: throw(NoText())")()
    with pytest.raises(ValueError, match="x"):
        interp.proxy("lambda: throw(NoReduce('x'))")()
    with pytest.raises(RecursionError):
        interp.proxy("recurse")()
    assert interp.proxy("lambda: 5")() == 5


def test_recursion_through_both(interp):
    interp.exec("def back(f): return f()")
    back = interp.proxy("back")

    def recurse():
        return back(recurse)

    with pytest.raises(RecursionError):
        recurse()
    assert back(lambda: 1) == 1


def test_recursion_through_many(interp):
    """Each of them is far from its own limit when the thread's stack ends."""
    done = run("""
import extisolate, threading
def go(route): return route[0](route[1:] + route[:1])
interps = [extisolate.create() for _ in range(9)]
for interp in interps: interp.exec("def go(route): return route[0](route[1:] + route[:1])")
route = (*(interp.proxy("go") for interp in interps), go)
def run():
    try:
        go(route)
    except RecursionError:
        print("too deep")
run()
threading.stack_size(1 << 19)
thread = threading.Thread(target=run)
thread.start()
thread.join()
print(route[0](((lambda route: "and on"),)))
""")
    assert done.stdout == "too deep\ntoo deep\nand on\n", (done.returncode, done.stderr)


# ---- memory ------------------------------------------------------------------------------------


def test_memory_is_the_objects(interp):
    x = interp.proxy("bytearray(b'abc')")
    view = memoryview(x)
    view[0] = ord("z")
    assert bytes(x) == b"zbc" and x[0] == ord("z")
    with pytest.raises(BufferError):
        x.append(1)
    view.release()
    del view
    gc.collect()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            x.append(1)
            break
        except BufferError:
            time.sleep(0.001)
    assert len(x) == 4
    assert io.BytesIO(x).read() == b"zbc\x01"


def test_what_has_no_memory_has_no_buffer(interp):
    with pytest.raises(TypeError, match="bytes-like"):
        memoryview(interp.proxy("[]"))
    assert bytes(interp.proxy("[1, 2]")) == b"\x01\x02"
    assert bytes(interp.proxy("memoryview(b'xyz')[::2]")) == b"xz"


def test_arrays(interp):
    numpy = pytest.importorskip("numpy")
    interp.exec("import numpy")
    x = interp.proxy("numpy.arange(6.0).reshape(2, 3)")
    here = numpy.asarray(x)
    assert here.tolist() == [[0, 1, 2], [3, 4, 5]]
    here[0, 0] = 9
    assert x[0, 0] == 9 and x.shape == (2, 3) and str(x.dtype) == "float64"
    assert type(x[0, 0]) is numpy.float64 and type(x.max() > 3) is numpy.bool_
    assert (x + 1).sum() == 30 and x[:, 1].tolist() == interp.proxy("[1.0, 4.0]")
    assert numpy.sum(here * x) == (here**2).sum()
    mine = numpy.ones(3)
    assert x.dot(mine).tolist() == interp.proxy("[12.0, 12.0]")
    x[0] = mine
    assert here[0].tolist() == [1, 1, 1]


def test_arrays_of_objects_and_dates(interp):
    numpy = pytest.importorskip("numpy")
    interp.exec("import numpy")
    things = interp.proxy("numpy.array([['a', [1]], [None, 2]], dtype=object)")
    with pytest.raises(BufferError, match="objects"):
        memoryview(things)
    here = numpy.asarray(things)
    assert here.dtype == object and here.shape == (2, 2)
    assert here[0, 0] == "a" and here[0, 1] is things[0, 1] and here[1].tolist() == [None, 2]
    dates = interp.proxy("numpy.array(['2026-01-02', '2026-01-03'], dtype='M8[D]')")
    assert str(numpy.asarray(dates)[1]) == "2026-01-03"
    assert numpy.asarray(interp.proxy("numpy.float64(2.5)")) == 2.5


def test_what_makes_an_array(interp):
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("pandas")
    interp.exec("import pandas")
    frame = interp.proxy("pandas.DataFrame({'a': [1, 2], 'b': [3.5, 4.5]})")
    assert numpy.asarray(frame).tolist() == [[1, 3.5], [2, 4.5]]
    assert numpy.asarray(frame["a"], dtype="f4").dtype == "f4"
    assert list(frame.columns) == ["a", "b"] and frame["a"].sum() == 3
    assert frame[frame["a"] > 1]["b"].iloc[0] == 4.5
    assert frame.groupby("a").agg({"b": "sum"}).shape == (2, 1)


# ---- copies ------------------------------------------------------------------------------------


def test_pickling_copies(interp):
    x = interp.proxy("{'a': [1, 2]}")
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made == {"a": [1, 2]} and type(made) is dict
    assert extisolate.copied(x) == {"a": [1, 2]}
    with pytest.raises(extisolate.NotShareableError):
        extisolate.copied(interp.proxy("(n for n in ())"))
    with pytest.raises(TypeError, match="no proxy"):
        extisolate.copied([])


def test_copies_can_be_refused(fresh):
    fresh.exec("import extisolate\nthing = {'a': 1}\ns = extisolate.share(thing, copies=False)")
    x = fresh.proxy("thing")
    with pytest.raises(TypeError, match="copies=False"):
        pickle.dumps(x)
    assert x["a"] == 1
    assert fresh.call(_identity, x) == {"a": 1}  # it is the object itself there


def _identity(x):
    return x


# ---- sharing -----------------------------------------------------------------------------------


def test_what_is_shared_is_a_proxy_elsewhere(fresh):
    mine = [1]
    shared = share(mine)
    assert fresh.call(_append, shared, 2) == 2
    assert mine == [1, 2]
    assert fresh.call(_append, [shared][0], 3) == 3
    assert fresh.call(_append_first, {"x": (shared,)}, 4) == 4
    assert mine == [1, 2, 3, 4]
    assert fresh.call(_identity, shared) is mine
    assert fresh.call(_identity, {"x": [shared]})["x"][0] is mine
    proxy = fresh.proxy("[]")
    assert share(proxy) is proxy


def _append(x, value):
    x.append(value)
    return len(x)


def _append_first(x, value):
    return _append(x["x"][0], value)


def test_calls_go_by_value(fresh):
    assert fresh.call(_append, [1], 2) == 2
    assert type(fresh.call(_make_list)) is list
    x = fresh.call(_make_shared)
    assert isinstance(x, Proxy) and list(x) == [1]


def _make_list():
    return [1]


def _make_shared():
    return share([1])


def test_closures_over_proxies(fresh):
    x = fresh.proxy("[1, 2]")
    mine = share([7])
    assert fresh.call(lambda: (len(x), type(x).__name__)) == (2, "list")
    assert fresh.call(lambda: mine[0]) == 7


def test_queues_carry_proxies(fresh):
    queue = extisolate.create_queue()
    mine = [1]
    queue.put(share(mine))
    queue.put([share(mine)])
    queue.put(fresh.proxy("{}"))
    fresh.prepare_main(queue=queue)
    fresh.exec("queue.get().append(2); queue.get()[0].append(3)")
    assert mine == [1, 2, 3]
    fresh.exec("assert type(queue.get()) is dict")
    queue.put(share(mine))
    assert queue.get() is mine


def test_a_queue_loses_nothing_with_what_has_ended():
    queue = extisolate.create_queue()
    with extisolate.create() as interp:
        interp.prepare_main(queue=queue)
        interp.exec("class Unseen: pass\nimport extisolate")
        interp.exec("queue.put(('precious', extisolate.share(Unseen())))")
        number = interp.id
    text, gone = queue.get(timeout=1)
    assert text == "precious"
    assert isinstance(gone, Proxy)
    assert repr(gone) == f"<proxy of an object of interpreter {number}, which is closed>"
    operations = [
        *(len, iter, next, bool, int, str, hash, dir, memoryview, operator.index, operator.neg),
        *(lambda x: x(), lambda x: x.name, lambda x: x[0], lambda x: x + 1, lambda x: 1 - x),
        *(lambda x: x == 1, lambda x: x.__enter__(), lambda x: 1 in x, lambda x: x.__await__()),
        *(lambda x: setattr(x, "name", 1), lambda x: x.__setitem__(0, 1), extisolate.copied),
    ]
    for operation in operations:
        with pytest.raises(extisolate.InterpreterNotFoundError, match="was, is closed"):
            operation(gone)


def test_pools_give_and_take_proxies():
    mine = []
    with extisolate.InterpreterPoolExecutor(2) as pool:
        list(pool.map(_append, [share(mine)] * 10, range(10)))
        assert sorted(mine) == list(range(10))
        assert sum(len(pool.submit(_make_shared).result()) for _ in range(4)) == 4


# ---- circles -----------------------------------------------------------------------------------


class Node:
    def __init__(self):
        self.links = []


def _define_node(i):
    i.exec("class Node:\n    def __init__(self): self.links = []")


def test_a_circle_of_two(fresh):
    _define_node(fresh)
    fresh.exec("import weakref, gc")
    mine, theirs = Node(), fresh.proxy("Node()")
    mine.links.append(theirs)
    theirs.links.append(mine)
    weak, remote_weak = weakref.ref(mine), fresh.proxy("weakref.ref")(theirs)
    extisolate.collect()
    assert weak() is mine and remote_weak() is theirs
    del mine
    extisolate.collect()
    assert weak() is not None and theirs.links[0] is weak()
    del theirs
    gc.collect()
    fresh.exec("gc.collect()")
    assert weak() is not None
    assert extisolate.collect() >= 2
    assert weak() is None and remote_weak() is None


def test_a_circle_that_is_held_there(fresh):
    _define_node(fresh)
    mine = Node()
    fresh.exec("held = Node()")
    fresh.proxy("held").links.append(mine)
    mine.links.append(fresh.proxy("held"))
    weak = weakref.ref(mine)
    del mine
    gc.collect()
    extisolate.collect()
    assert weak() is not None
    fresh.exec("assert held.links[0].links[0] is held; del held")
    extisolate.collect()
    assert weak() is None


def test_a_circle_of_three(interp, fresh):
    _define_node(fresh)
    _define_node(interp)
    mine, a, b = Node(), interp.proxy("Node()"), fresh.proxy("Node()")
    mine.links.append(a)
    a.links.append(b)
    b.links.append(mine)
    weak = weakref.ref(mine)
    del mine, b
    extisolate.collect()
    assert weak() is not None
    del a
    extisolate.collect()
    assert weak() is None


def test_an_object_that_keeps_what_stands_for_it(fresh):
    class Thing:
        pass

    def make():
        thing = Thing()
        thing.itself, thing.others = share(thing), [Thing()]
        thing.others[0].first = [share(thing)]
        assert thing.itself is thing.others[0].first[0]
        return thing

    dead, shared = weakref.ref(make()), share(make())
    there = fresh.proxy("[]")
    there.append(make())
    extisolate.collect()
    assert dead() is None
    for held in (there[0], fresh.proxy("lambda x: x")(shared)):
        assert type(held.itself) is type(shared)
        assert fresh.proxy("lambda x: x")(held.itself) is held
        held = None


def test_what_is_on_its_way_is_kept(fresh):
    _define_node(fresh)
    mine, theirs = Node(), fresh.proxy("Node()")
    mine.links.append(theirs)
    theirs.links.append(mine)
    queue = extisolate.create_queue()
    queue.put(theirs)
    weak = weakref.ref(mine)
    del mine, theirs
    gc.collect()
    extisolate.collect()
    assert weak() is not None
    theirs = queue.get()
    assert theirs.links[0].links[0] is theirs
    del theirs
    extisolate.collect()
    assert weak() is None


def test_many_circles_end_by_themselves():
    done = run("""
import extisolate, gc, weakref
from extisolate import _extisolate
interp = extisolate.create()
class Node: pass
interp.exec("class Node: pass")
make = interp.proxy("Node")
last = []
for i in range(25000):
    mine, theirs = Node(), make()
    mine.other, theirs.other = theirs, mine
    last.append(_extisolate.linked())
print(max(last) < 30000, len(last))
""")
    assert done.stdout == "True 25000\n", done.stdout + done.stderr


def test_a_finaliser_meets_what_has_ended(fresh):
    fresh.exec(
        "class Node:\n"
        "    seen = []\n"
        "    def __del__(self):\n"
        "        try: self.seen.append(self.other.name)\n"
        "        except ReferenceError: self.seen.append('ended')\n"
    )
    mine, theirs = Node(), fresh.proxy("Node()")
    mine.name = "mine"
    mine.other, theirs.other = theirs, mine
    weak = weakref.ref(mine)
    del mine, theirs
    extisolate.collect()
    assert weak() is None
    assert list(fresh.proxy("Node.seen")) in (["ended"], ["mine"])


def test_collections_beside_calls(interp, fresh):
    ends = threading.Event()
    failed = []

    def work(i):
        try:
            while not ends.is_set():
                x = i.proxy("[]")
                x.append([1])
                x.append(x)
                assert x[1] is x and x[0] == [1]
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in (interp, fresh) * 2]
    for t in threads:
        t.start()
    for _ in range(30):
        extisolate.collect()
    ends.set()
    for t in threads:
        t.join()
    assert not failed


# ---- the end of interpreters -------------------------------------------------------------------


def test_a_closed_interpreters_objects_say_so():
    made = extisolate.create()
    x = made.proxy("[]")
    x.append(Node())
    weak = weakref.ref(x)
    made.close()
    number = made.id
    uses = [operator.itemgetter(0), operator.attrgetter("append"), len, extisolate.copied]
    for use in [functools.partial(use, x) for use in uses]:
        with pytest.raises(extisolate.InterpreterNotFoundError, match=f"{number}.*closed"):
            use()
    assert repr(x) == f"<proxy of an object of interpreter {number}, which is closed>"
    assert weak() is x
    del x, uses, use
    assert weak() is None


def test_the_objects_of_others_end_with_the_interpreter():
    class Thing:
        pass

    thing = Thing()
    weak = weakref.ref(thing)
    with extisolate.create() as made:
        made.prepare_main(thing=share(thing))
        del thing
        gc.collect()
        assert weak() is not None
    gc.collect()
    assert weak() is None


def test_finalisers_run_at_the_end(tmp_path):
    path = tmp_path / "ended"
    made = extisolate.create()
    made.exec(f"class T:\n  def __del__(self): open({str(path)!r}, 'w').close()")
    x = made.proxy("T()")
    made.close()
    assert path.exists()
    del x


def test_an_interpreter_that_has_exited():
    done = run("""
import extisolate
a, b = extisolate.create(), extisolate.create()
a.exec("import os")
x, leave = a.proxy("[]"), a.proxy("os._exit")
mine = [1]
x.append(extisolate.share(mine))
b.prepare_main(x=x)
try:
    leave(3)
except extisolate.InterpreterExitedError as e:
    print(e.status)
for use in (lambda: len(x), lambda: b.exec("len(x)")):
    try:
        use()
    except (extisolate.InterpreterError, extisolate.ExecutionFailed) as e:
        print(type(e).__name__)
y = b.proxy("[]")
y.append(extisolate.share(mine))
print(extisolate.collect() >= 0, y[0] is mine)
del x, leave
import warnings
warnings.simplefilter("ignore")
a.close()
print(extisolate.collect() >= 0)
b.close()
""")
    assert done.stdout.splitlines() == [
        "3",
        "InterpreterExitedError",
        "ExecutionFailed",
        "True True",
        "True",
    ], done.stdout + done.stderr


def test_a_collection_while_an_interpreter_exits():
    """It waits for the GIL of one that exits before it gets it."""
    done = run("""
import extisolate, threading, time, warnings
warnings.simplefilter("ignore")
def leave(interp, looping):
    try:
        interp.exec(\'\'\'
looping.append(1)
end = time.monotonic() + 0.2
while time.monotonic() < end: pass
os._exit(3)\'\'\')
    except extisolate.InterpreterError:
        pass
for _ in range(3):
    interp = extisolate.create()
    x = interp.proxy("[]")
    interp.exec("import os, sys, time; sys.setswitchinterval(10)")
    looping = []
    interp.prepare_main(looping=extisolate.share(looping))
    thread = threading.Thread(target=leave, args=(interp, looping))
    thread.start()
    while not looping: time.sleep(0.001)
    extisolate.collect()
    thread.join()
    interp.close()
print("done")
""")
    assert done.stdout == "done\n", done.stderr


def test_closing_while_used_from_threads():
    for _ in range(3):
        made = extisolate.create()
        x, ends = made.proxy("[1]"), []

        def use(x=x, ends=ends):
            try:
                while True:
                    x[0]
                    x.append([])
            except extisolate.InterpreterNotFoundError:
                ends.append(1)

        threads = [threading.Thread(target=use) for _ in range(4)]
        for t in threads:
            t.start()
        time.sleep(0.05)
        made.close(wait=True)
        for t in threads:
            t.join()
        assert len(ends) == 4


def test_the_process_ends_with_proxies_everywhere():
    done = run("""
import extisolate, atexit
interp = extisolate.create()
interp.exec("import atexit\\nkept = []\\natexit.register(lambda: print('there', flush=True))")
x = interp.proxy("kept")
x.append([1])
class Thing:
    def __del__(self): pass
x.append(Thing())
atexit.register(lambda: print('here', len(x), flush=True))
""")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "here 2", "there"]


def test_a_child_has_no_proxies():
    done = run("""
import extisolate, os
interp = extisolate.create()
x = interp.proxy("[]")
mine = [2]
shared = extisolate.share(mine)
x.append([1])
pid = os.fork()
if pid == 0:
    again = extisolate.create()
    for use in (lambda: len(x), lambda: again.proxy("lambda x: x")(shared)):
        try:
            use()
        except ReferenceError as e:
            print(e, flush=True)
    print(repr(x), flush=True)
    print(again.proxy("lambda x: x")(extisolate.share(mine)) is mine, flush=True)
    del x
    print(len(again.proxy("[1]")), flush=True)
    again.close()
    os._exit(0)
os.waitpid(pid, 0)
print("parent", len(x), shared is extisolate.share(mine))
""")
    forked = (
        "interpreter 1, in which the object was, is of the process that this one was forked from"
    )
    assert done.stdout.splitlines() == [
        forked,
        "share() was called before this process was forked: share the object anew",
        f"<proxy of an object of interpreter 1: {forked}>",
        "True",
        "1",
        "parent 1 True",
    ], done.stdout + done.stderr


def test_an_interrupt_while_a_type_is_looked_at_is_not_lost(interp):
    class Meta(type):
        def __getattr__(cls, name):
            raise failure

    same = interp.proxy("lambda x: x")
    for failure in (KeyboardInterrupt(), RuntimeError()):
        cls = Meta("Thing", (), {})
        if isinstance(failure, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                same(cls())
            continue
        thing = cls()
        assert same(thing) is thing


def test_ctrl_c_stops_what_a_proxy_does():
    done = run("""
import extisolate, threading, signal, os
interp = extisolate.create()
interp.exec("import time\\ndef spin():\\n    while True: time.sleep(0.01)")
spin = interp.proxy("spin")
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    spin()
except KeyboardInterrupt:
    print("interrupted", interp.proxy("lambda: 1")())
""")
    assert done.stdout == "interrupted 1\n", done.stdout + done.stderr


def test_memory_does_not_grow(fresh):
    def use():
        for _ in range(2000):
            x = fresh.proxy("[[]]")
            x.append([1])
            x[0].append(x)
            x.clear()

    def pages():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1])

    use()
    extisolate.collect()
    before = pages()
    for _ in range(5):
        use()
    extisolate.collect()
    assert (pages() - before) * 4096 < 3 << 20


def test_objects_are_let_go_of_without_memory():
    """This interpreter cannot let go of any before the limit is set, as a thread has its GIL."""
    done = run(
        """
import ctypes, extisolate, resource, threading
from extisolate import share
limits = resource.getrlimit(resource.RLIMIT_AS)
memory = ctypes.create_string_buffer(3 * 64)
places = [ctypes.addressof(memory) + i * 64 for i in range(3)]
inside, holding, over = map(ctypes.c_void_p, places)
python = ctypes.PyDLL(None)
for semaphore in (inside, holding, over): python.sem_init(semaphore, 0, 0)
interp = extisolate.create()
interp.prepare_main(places=tuple(places), hard=limits[1])
interp.exec(\'\'\'
import ctypes, resource
inside, holding, over = map(ctypes.c_void_p, places)
wait, post = ctypes.CDLL(None).sem_wait, ctypes.CDLL(None).sem_post
kept = []
def clear():
    post(inside)
    wait(holding)
    kept.clear()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, hard))
    post(over)
\'\'\')
class Thing: pass
things = [Thing() for _ in range(200000)]
append, clear, same = map(interp.proxy, ("kept.append", "clear", "lambda x: x"))
for thing in things: append(thing)
def hold_the_gil():
    ctypes.CDLL(None).sem_wait(inside)
    python.sem_post(holding)
    python.sem_wait(over)
thread = threading.Thread(target=hold_the_gil)
thread.start()
clear()
resource.setrlimit(resource.RLIMIT_AS, limits)
others = [share(Thing()) for _ in range(1000)]
again = [share(thing) for thing in things]
print(extisolate._extisolate.linked() < 250000)  # and not 400,000: none was left
print(all(same(shared) is thing for shared, thing in zip(again, things)))
del again, others
extisolate.collect()
print(extisolate._extisolate.linked() < 100)
thread.join()
""",
        env=dict(os.environ, MALLOC_MMAP_THRESHOLD_="65536", MALLOC_ARENA_MAX="1"),
    )
    assert done.stdout == "True\nTrue\nTrue\n", (done.returncode, done.stdout, done.stderr)


def test_inside_of_an_interpreter(fresh):
    fresh.exec(
        "import extisolate\n"
        "inner = extisolate.create()\n"
        "x = inner.proxy('[1, 2]')\n"
        "assert len(x) == 2 and isinstance(x, extisolate.Proxy)\n"
        "me = extisolate.get_current().proxy('inner')\n"
        "assert me is inner\n"
    )
    x = fresh.proxy("x")
    assert list(x) == [1, 2] and f"in interpreter {fresh.id}" not in repr(x)
    fresh.exec("del x, me; inner.close()")
    assert sys.getrefcount(x) > 0
    with pytest.raises(extisolate.InterpreterNotFoundError):
        len(x)
