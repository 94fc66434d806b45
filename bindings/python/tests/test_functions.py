import subprocess
import sys
import xml.dom.pulldom

import pytest
import work

from extisolate import _pickling

base = 10
MODES = ["code"]
try:
    import cloudpickle  # noqa: F401

    MODES.append("cloudpickle")
except ImportError:
    pass


@pytest.fixture(params=MODES)
def mode(request, monkeypatch):
    if request.param == "code":
        monkeypatch.setattr(_pickling, "_cloud", [None])
    return request.param


def test_lambdas(interp, mode):
    assert interp.call(lambda x, y=2: x * y + base, 3) == 16


def test_closures(interp, mode):
    count = 5

    def outer(x):
        def inner():
            return x + count

        return inner()

    assert interp.call(outer, 1) == 6


def test_recursive_functions(interp, mode):
    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    assert interp.call(factorial, 10) == 3628800


def test_functions_as_arguments_and_results(interp, mode):
    offset = 100
    returned = interp.call(work.identity, lambda x: x + offset)
    assert returned(1) == 101


def test_what_functions_refer_to(interp, mode):
    def function(*, keyword="default"):
        """A text."""
        return sys.version_info[0], work.add(1), keyword

    function.mark = 3
    returned = interp.call(work.identity, function)
    assert interp.call(function) == (3, 2, "default")
    assert (returned.mark, returned.__doc__, returned.__name__) == (3, "A text.", "function")


def test_empty_cells(interp, mode):
    def function():
        return later()

    assert interp.call(work.echo, function)[0][0].__name__ == "function"

    def later():
        return 1


MAIN = """
import extisolate, sys
factor = 3
def times(x):
    return x * factor
class Point:
    def __init__(self, x):
        self.x = x
def moved(p):
    return Point(p.x + 1)
if __name__ == "__main__":
    with extisolate.create() as interp:
        print(interp.call(times, 14), interp.call(moved, Point(1)).x)
    with extisolate.InterpreterPoolExecutor(2) as pool:
        print(list(pool.map(times, [1, 2, 3])))
"""


@pytest.mark.parametrize("hidden", [False, True], ids=["as-it-is", "without-cloudpickle"])
def test_functions_and_classes_of_a_program(tmp_path, hidden):
    (tmp_path / "program.py").write_text(MAIN)
    if hidden:
        (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "42 2\n[3, 6, 9]\n", done.stderr


def test_functions_of_no_file():
    source = "\n".join(
        [
            "import extisolate",
            "def twice(x): return 2 * x",
            "with extisolate.create() as interp: print(interp.call(twice, 21))",
        ]
    )
    done = subprocess.run(
        [sys.executable], input=source, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "42\n", done.stderr


def test_modules(interp, mode):
    count = []  # makes a closure of it, which cloudpickle takes where there is one
    assert interp.call(lambda: (len(count), xml.dom.pulldom.PROCESSING_INSTRUCTION)) == (
        0,
        "PROCESSING_INSTRUCTION",
    )


def test_annotations(interp, mode):
    class Local:
        pass

    def annotated(x: Local, y: int) -> "text":  # noqa: F821
        return x + y

    assert interp.call(annotated, 1, 2) == 3
