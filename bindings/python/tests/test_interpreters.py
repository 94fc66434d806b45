import sys
import threading
import time

import pytest
import work

import extisolate


def test_calls_give_results(interp):
    assert interp.call(work.add, 2, b=3) == 5
    assert interp.call(work.nothing) is None
    assert interp.call(divmod, 17, 5) == (3, 2)
    assert interp.call("{} {}".format, 1, 2) == "1 2"


VALUES = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    2**63,
    -(2**63),
    -(2**63) - 1,
    10**100,
    -(10**100),
    1.5,
    float("inf"),
    "",
    "text",
    "\ud800 alone",
    "\0 and \U0001f600",
    b"",
    b"\0\xff",
    (),
    (1, (2, "3", None)),
    [1, [2]],
    {"a": {1, 2}},
    range(3),
    complex(1, 2),
    Ellipsis,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_arrive_as_they_are(interp, value):
    got = interp.call(work.identity, value)
    assert got == value
    assert type(got) is type(value)


def test_nested_tuples_of_any_depth_arrive(interp):
    value = ()
    for _ in range(300):
        value = (value,)
    assert interp.call(work.identity, value) == value


def test_wide_tuples_arrive(interp):
    assert interp.call(work.identity, tuple(range(1000))) == tuple(range(1000))


def test_sharing_and_cycles_are_kept(interp):
    items = [1]
    items.append(items)
    got = interp.call(work.identity, items)
    assert got[1] is got


@pytest.mark.parametrize("size", [10, 1 << 16, (1 << 16) + 1, 5 << 20])
def test_bytes_of_any_size_arrive(interp, size):
    value = bytes(size - 1) + b"x"
    assert interp.call(work.identity, value) == value
    assert interp.call(work.echo, value, last=value) == ((value,), {"last": value})


def test_interpreters_are_apart(interp):
    with extisolate.create() as other:
        addresses = {work.address(), interp.call(work.address), other.call(work.address)}
        assert len(addresses) == 3
        other.exec("import json; json.mark = 1")
        interp.exec("import json; assert not hasattr(json, 'mark')")


def test_exec_runs_in_main(interp):
    interp.exec("answer = 42")
    assert interp.call(work.executed) == 42
    interp.prepare_main(answer=43)
    assert interp.call(work.executed) == 43
    interp.prepare_main({"answer": 44})
    assert interp.call(work.executed) == 44
    interp.prepare_main((("answer", 45),))
    assert interp.call(work.executed) == 45
    with pytest.raises(ValueError):
        interp.prepare_main()
    with pytest.raises(TypeError):
        interp.prepare_main({1: 2})


def test_what_looks_at_its_caller_is_called_from_main(interp):
    interp.exec("seen = 6")
    assert interp.call(eval, "seen * 7") == 42
    interp.call(exec, "globals()['set'] = seen + 1")
    assert interp.call(eval, "set") == 7
    interp.call(exec, "given = set + 1")
    assert interp.call(eval, "given") == 8 and "given" in interp.call(dir)
    for function in (dir, locals, vars):
        with pytest.raises(extisolate.ExecutionFailed, match="keyword"):
            interp.call(function, given=1)
    assert "_unpack" not in interp.call(eval, "list(globals())")


def script():
    import sys

    sys.modules["__main__"].scripted = True


def test_exec_runs_functions_that_are_code_alone(interp):
    interp.exec(script)
    interp.exec("assert scripted")
    with pytest.raises(ValueError, match="arguments"):
        interp.exec(work.identity)
    with pytest.raises(TypeError, match="int"):
        interp.exec(1)


def test_syntax_errors_are_reported(interp):
    with pytest.raises(extisolate.ExecutionFailed, match="SyntaxError"):
        interp.exec("a b")


def test_listing_and_identity():
    main = extisolate.get_main()
    assert main.id == 0
    assert extisolate.get_current() is main
    assert main.is_running()
    with extisolate.create() as made:
        assert made in extisolate.list_all()
        assert extisolate.Interpreter(made.id) is made
        assert made.call(work.interpreter_id) == made.id
        assert repr(made) == f"Interpreter({made.id})"
    assert made not in extisolate.list_all()


def test_wrong_ids_are_refused():
    with pytest.raises(extisolate.InterpreterNotFoundError):
        extisolate.Interpreter(10**9)
    with pytest.raises(TypeError):
        extisolate.Interpreter("1")
    with pytest.raises(OverflowError):
        extisolate.Interpreter(2**64)
    with pytest.raises(ValueError):
        extisolate.Interpreter(-1)


def test_closed_interpreters_are_refused():
    made = extisolate.create()
    made.close()
    for use in (
        lambda: made.call(work.nothing),
        lambda: made.exec(""),
        made.close,
        made.is_running,
        lambda: extisolate.Interpreter(made.id),
    ):
        with pytest.raises(extisolate.InterpreterNotFoundError):
            use()


def test_the_main_and_the_current_one_stay(interp):
    with pytest.raises(extisolate.InterpreterError, match="current"):
        extisolate.get_main().close()
    with pytest.raises(extisolate.ExecutionFailed, match="main interpreter cannot be closed"):
        interp.call(work.close_other, 0)
    with pytest.raises(extisolate.ExecutionFailed, match="current"):
        interp.call(work.close_other, interp.id)


def test_one_is_found_among_many_numbers():
    """The extension module finds them by the remainder of their number by 64."""
    with extisolate.create() as first:
        second = extisolate.create()
        while (second.id - first.id) % 64:
            second.close()
            second = extisolate.create()
        first.exec("import builtins; builtins.mine = 1")
        second.exec("import builtins; builtins.mine = 2")
        assert [interp.call(eval, "mine") for interp in (first, second, first)] == [1, 2, 1]
        assert {first, second} < set(extisolate.list_all())
        second.close()
        assert first.call(eval, "mine") == 1
        with pytest.raises(extisolate.InterpreterNotFoundError):
            second.call(work.nothing)


def test_a_running_one_is_not_closed(fresh):
    thread = fresh.call_in_thread(work.spin, 0.5)
    while not fresh.is_running():
        time.sleep(0.01)
    with pytest.raises(extisolate.InterpreterError, match="running"):
        fresh.close()
    thread.join()
    assert not fresh.is_running()


def test_call_in_thread_runs_elsewhere(interp):
    found = extisolate.create_queue()
    thread = interp.call_in_thread(work.put_from, found, "there")
    assert isinstance(thread, threading.Thread)
    thread.join()
    assert found.get(timeout=5) == "there"


def test_calls_run_on_the_calling_thread(interp):
    assert interp.call(work.sleep, 0) == threading.get_ident()


def test_context_manager_closes():
    with extisolate.create() as made:
        pass
    with pytest.raises(extisolate.InterpreterNotFoundError):
        made.is_running()


def test_the_last_reference_closes():
    made = extisolate.create()
    id = made.id
    assert id in [i.id for i in extisolate.list_all()]
    del made
    assert id not in [i.id for i in extisolate.list_all()]


def test_one_that_was_sent_stays(interp):
    made = extisolate.create()
    id = made.id
    assert interp.call(work.identity, made) is made
    del made
    assert id in [i.id for i in extisolate.list_all()]
    extisolate.Interpreter(id).close()


def test_names_inside(interp):
    index, count, name = interp.call(work.names)
    assert index == interp.id
    assert count == len(extisolate.list_all())
    assert isinstance(name, str) and name
    assert extisolate.index == 0 and extisolate.name == "main"
    with pytest.raises(AttributeError):
        extisolate.nonsense


def test_paths_and_arguments_are_the_main_ones(interp):
    interp.exec("import sys; paths, argv = sys.path, sys.argv")
    interp.exec("import work")  # beside this file
    assert interp.call(eval, "__import__('sys').argv") == sys.argv


@pytest.mark.parametrize("length", [2, 3, 4])
def test_interpreters_call_each_other_in_circles(length):
    made = [extisolate.create() for _ in range(length)]
    ids = [i.id for i in made]
    chain = ([*ids, 0]) * 3
    expected = [chain[-1], "end"]
    for id in [*reversed(chain[:-1])]:
        expected = [id, expected]
    assert work.call_from(chain, "end") == [0, expected]
    for i in made:
        i.close()


def test_circles_in_both_directions_at_once():
    made = [extisolate.create() for _ in range(3)]
    ids = [i.id for i in made]
    failed = []

    def go(chain, n):
        for k in range(n):
            try:
                found = work.call_from(chain, k)
                while isinstance(found[1], list):
                    found = found[1]
                assert found[1] == k
            except BaseException as e:
                failed.append(e)
                raise

    chains = [[*ids, 0, *ids], [*ids[::-1], 0, *ids[::-1]], [0, ids[1], 0, ids[0]]]
    threads = [threading.Thread(target=go, args=(c, 60)) for c in chains * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        assert not t.is_alive()
    assert not failed
    for i in made:
        i.close()


def test_exceptions_cross_chains(interp):
    with extisolate.create() as other, pytest.raises(extisolate.ExecutionFailed) as caught:
        work.call_and_fail([interp.id, other.id, 0, interp.id])
    assert "at the end of the chain" in str(caught.value)


def test_interpreters_inside_interpreters(interp):
    id, found = interp.call(work.create_inside)
    assert found == 5
    assert id not in [i.id for i in extisolate.list_all()]


def test_source_has_no_features_that_it_does_not_ask_for(interp):
    source = "def f(a: int): pass\nassert f.__annotations__ == {'a': int}"
    interp.exec(source)
    interp.call(exec, source)
    with pytest.raises(extisolate.ExecutionFailed, match="AssertionError"):
        interp.exec(f"from __future__ import annotations\n{source}")


def test_threads_inside(interp):
    assert interp.call(work.start_thread, 21) == 42


def test_two_interpreters_run_at_once():
    made = [extisolate.create() for _ in range(2)]
    started = time.monotonic()
    threads = [i.call_in_thread(work.sleep, 0.5) for i in made]
    for t in threads:
        t.join()
    assert time.monotonic() - started < 0.95
    for i in made:
        i.close()
