"""Functions that an import does not find, and that others keep.

What they give is what a function that travels by value gives, each time.
"""

import math
import subprocess
import sys
import types

import pytest

import extisolate
from extisolate import _extisolate, _functions, _kept

TIMES = 4


@pytest.fixture
def main(monkeypatch):
    """Give the namespace of a program in which functions are made."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    yield module.__dict__
    _extisolate.kept.clear()


def make(main, source, name="f"):
    exec(source, main)
    return main[name]


def is_kept(function):
    return _extisolate.kept.get(function) is not None


KEPT = {
    "nothing": "def f(): pass",
    "builtin": "def f(): return len('abc')",
    "module": "import math\ndef f(): return math.floor(2.5)",
    "submodule": "import xml.dom.minidom\ndef f(): return xml.dom.minidom.Document.__name__",
    "named": "from math import floor\ndef f(): return floor(2.5)",
    "constant": "n = 'text'\ndef f(): return n * 2",
    "default": "def f(a=2, b=None): return a, b",
    "lambda": "f = lambda: sum(i * i for i in range(5))",
    "recursive": "def f(n=9): return 1 if n < 2 else n * f(n - 1)",
    "helper": "def g(a): return a + 1\ndef f(): return g(1) + h(2)\ndef h(a): return g(a)",
    "annotated": "def f(a: int = 2, b: 'text' = 3) -> None: return a + b",
    "nested": "def f():\n    def g(a):\n        return a + 1\n    return g(3)",
    "attribute": "from types import SimpleNamespace as S\n"
    "def f():\n    s = S()\n    s.a = 1\n    return s.a",
}

OTHERS = {
    "global": "def f():\n    global n\n    n = 1\n    return n",
    "deleted": "def f():\n    global n\n    n = 1\n    del n",
    "looked at": "def f(): return globals().setdefault('n', []).append(1), len(globals()['n'])",
    "default": "def f(a=[]):\n    a.append(1)\n    return len(a)",
    "named default": "def f(*, a=1): return a",
    "list": "n = [1]\ndef f(): return n",
    "class": "class C: pass\ndef f(): return C.__name__",
    "attribute": "def f(): return f.n\nf.n = 1",
    "own attribute": "def f():\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n",
    "own name": "def f(): return f.__name__",
    "annotation": "def f(a: list[int] = 1): return a",
    "helper": "n = []\ndef g(): return n\ndef f(): return g()",
    "closure": "def make():\n    n = []\n    def f():\n        n.append(1)\n        return len(n)\n"
    "    return f\nf = make()",
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(interp, main, name):
    function = make(main, KEPT[name])
    assert [interp.call(function) for _ in range(TIMES)] == [function()] * TIMES
    assert is_kept(function)


@pytest.mark.parametrize("name", OTHERS)
def test_not_kept(interp, main, name):
    function = make(main, OTHERS[name])
    first = interp.call(function)
    assert [interp.call(function) for _ in range(TIMES)] == [first] * TIMES
    assert not is_kept(function)


def change_global(main, f):
    main["n"] = "other"


def change_absent(main, f):
    main["len"] = lambda text: 7


def change_code(main, f):
    f.__code__ = (lambda a=1: ("code", a)).__code__


def change_defaults(main, f):
    f.__defaults__ = (5,)


def change_kwdefaults(main, f):
    f.__code__ = (lambda a=1, *, b=2: (a, b)).__code__
    f.__kwdefaults__ = {"b": 3}


def change_helper(main, f):
    main["g"].__code__ = (lambda: "changed").__code__


CHANGES = (
    change_global,
    change_absent,
    change_code,
    change_defaults,
    change_kwdefaults,
    change_helper,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_what_changes_is_seen(interp, main, change):
    function = make(main, "n = 'n'\ndef g(): return 1\ndef f(a=1): return n, len(n), a, g()")
    for _ in range(TIMES):
        assert interp.call(function) == ("n", 1, 1, 1)
    assert is_kept(function)
    change(main, function)
    for _ in range(TIMES):
        assert interp.call(function) == function() != ("n", 1, 1, 1)


def test_attributes_that_come_later(interp, main):
    function = make(main, "def f(): return getattr(f, 'n', 0)")
    assert [interp.call(function) for _ in range(TIMES)] == [0] * TIMES
    assert is_kept(function)
    function.n = 5
    assert [interp.call(function) for _ in range(TIMES)] == [5] * TIMES


def test_annotations_travel(interp, main):
    import work

    function = make(main, "def f(a: int, b: 'text') -> None: pass")
    assert interp.call(work.annotations, function) == (("a", int), ("b", "text"), ("return", None))


def test_without_parameters(interp, main):
    function = make(main, "def f(): return 1")
    assert [interp.call(function) for _ in range(TIMES)] == [1] * TIMES
    function.__code__ = (lambda: 2).__code__
    assert [interp.call(function) for _ in range(TIMES)] == [2] * TIMES


def test_all_arguments(interp, main):
    function = make(main, "def f(*args, **kwargs): return args, kwargs")
    for _ in range(TIMES):
        assert interp.call(function, 1, "two", [3]) == ((1, "two", [3]), {})
        assert interp.call(function, 1, a={2}) == ((1,), {"a": {2}})


def test_each_interpreter_keeps_its_own(main):
    function = make(main, "import math\ndef f(): return getattr(math, 'mark', None)")
    with extisolate.create() as one, extisolate.create() as two:
        one.exec("import math; math.mark = 'one'")
        for _ in range(TIMES):
            assert one.call(function) == "one"
            assert two.call(function) is None
        (places, *_) = _extisolate.kept[function]
        assert places == {one.id, two.id}
    assert not places
    assert not hasattr(math, "mark")


def test_exceptions_have_the_functions_name(interp, main):
    function = make(main, "def f(): return 1 // 0")
    for _ in range(TIMES):
        with pytest.raises(extisolate.ExecutionFailed, match="ZeroDivisionError") as caught:
            interp.call(function)
        assert "in f" in caught.value.excinfo.errdisplay


def test_what_is_called_once_is_not_kept(interp, main):
    for i in range(3):
        assert interp.call(eval(f"lambda: {i}", main)) == i
    assert not _extisolate.kept


def test_no_more_than_the_limit(interp, main, monkeypatch):
    monkeypatch.setattr(_kept, "_LIMIT", 2)
    functions = [eval(f"lambda: {i}", main) for i in range(4)]
    for _ in range(TIMES):
        assert [interp.call(f) for f in functions] == [0, 1, 2, 3]
    assert len(_extisolate.kept) == 2


def test_an_interpreter_calls_the_main_one(interp):
    source = """
        import extisolate
        def f(): return 'kept'
        def times():
            main = extisolate.get_main()
            return [main.call(f) for _ in range(4)], f in extisolate._extisolate.kept
    """
    interp.exec("\n".join(line[8:] for line in source.splitlines()))
    assert interp.call(eval, "times()") == (["kept"] * 4, True)


def test_program():
    """Of a program its functions are in the module __main__, which others have one of too."""
    source = """
import extisolate
def square(n): return n * n
with extisolate.create() as interp, extisolate.InterpreterPoolExecutor(2) as pool:
    print([interp.call(square, i) for i in range(4)], list(pool.map(square, range(9))))
    print(square in extisolate._extisolate.kept)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (
        "[0, 1, 4, 9] [0, 1, 4, 9, 16, 25, 36, 49, 64]\nTrue\n",
        "",
    )


def test_importable_functions_are_not_kept(interp):
    import work

    for _ in range(TIMES):
        assert interp.call(work.identity, 1) == 1
    assert work.identity not in _extisolate.kept and _functions.importable(work.identity)
