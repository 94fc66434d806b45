import pickle

import pytest
import work

import extisolate


def test_what_was_raised_is_described(interp):
    with pytest.raises(extisolate.ExecutionFailed) as caught:
        interp.call(work.raise_in_chain)
    info = caught.value.excinfo
    assert (info.type.__name__, info.type.__qualname__, info.type.__module__) == (
        "ValueError",
        "ValueError",
        "builtins",
    )
    assert info.msg == "second"
    assert info.formatted == "ValueError: second"
    assert info.errdisplay.startswith("Traceback (most recent call last):")
    assert "KeyError: 'key'" in info.errdisplay
    assert info.errdisplay.endswith("ValueError: second")
    assert "in raise_in_chain" in str(caught.value)
    assert "_dispatch.py" not in str(caught.value)


def test_a_traceback_of_source_begins_with_the_source(interp):
    with pytest.raises(extisolate.ExecutionFailed) as caught:
        interp.exec("1 / 0")
    lines = caught.value.excinfo.errdisplay.splitlines()
    assert lines[1] == '  File "<string>", line 1, in <module>'


def test_it_can_be_pickled(interp):
    with pytest.raises(extisolate.ExecutionFailed) as caught:
        interp.call(work.raise_in_chain)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.excinfo == caught.value.excinfo


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("two", "NeedsTwo"),
        ("reduce", "NoReduce"),
        ("text", "NoText"),
        ("exit", "SystemExit"),
        ("keyboard", "KeyboardInterrupt"),
        ("memory", "MemoryError"),
    ],
)
def test_each_kind_ends_the_call_alone(interp, name, type):
    with pytest.raises(extisolate.ExecutionFailed) as caught:
        interp.call(work.raise_named, name)
    assert caught.value.excinfo.type.__name__ == type
    assert interp.call(work.add, 1, 1) == 2


def test_infinite_recursion(interp):
    with pytest.raises(extisolate.ExecutionFailed, match="RecursionError"):
        interp.call(work.recurse)
    assert interp.call(work.add, 1, 1) == 2


def test_results_that_cannot_travel(interp):
    with pytest.raises(extisolate.NotShareableError, match="lock"):
        interp.call(work.make_lock)


def test_arguments_that_cannot_travel(interp):
    with pytest.raises(extisolate.NotShareableError, match="lock"):
        interp.call(work.identity, work.make_lock())


def test_arguments_that_cannot_be_made_there(interp):
    with pytest.raises(extisolate.NotShareableError, match=r"args not shareable.*not a number"):
        interp.call(work.identity, work.BadPickle())


def test_results_that_cannot_be_made_here(interp):
    with pytest.raises(extisolate.NotShareableError, match=r"result not shareable.*not a number"):
        interp.call(work.bad_pickle)


def test_functions_that_are_not_there(interp):
    interp.exec("import work; del work.spin")
    with pytest.raises(extisolate.ExecutionFailed, match="AttributeError"):
        interp.call(work.spin, 0)


@pytest.fixture(scope="module")
def pool():
    with extisolate.InterpreterPoolExecutor(1) as made:
        yield made


def test_pools_raise_the_exception_itself(pool):
    with pytest.raises(ValueError, match="second") as caught:
        pool.submit(work.raise_in_chain).result()
    assert isinstance(caught.value.__cause__, extisolate.ExecutionFailed)
    assert "KeyError" in str(caught.value.__cause__)


@pytest.mark.parametrize("name", ["two", "reduce", "text"])
def test_pools_raise_what_describes_it_where_it_cannot_travel(pool, name):
    expected = work.NoText if name == "text" else extisolate.ExecutionFailed
    with pytest.raises(expected):
        pool.submit(work.raise_named, name).result()
    assert pool.submit(work.add, 1).result() == 2


@pytest.mark.parametrize(("name", "type"), [("exit", SystemExit), ("keyboard", KeyboardInterrupt)])
def test_pools_survive_what_ends_programs(pool, name, type):
    with pytest.raises(type):
        pool.submit(work.raise_named, name).result()
    assert pool.submit(work.add, 1).result() == 2
