import contextlib
import io
import subprocess
import sys

import pytest
import work

import extisolate


def flags():
    import sys

    names = ("isolated", "ignore_environment", "utf8_mode", "dev_mode", "optimize")
    return {name: int(getattr(sys.flags, name)) for name in names}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"isolated": True}, {"isolated": 1, "ignore_environment": 1}),
        ({"use_environment": False}, {"ignore_environment": 1, "isolated": 0}),
        ({"utf8_mode": True}, {"utf8_mode": 1}),
        ({"utf8_mode": False}, {"utf8_mode": 0}),
        ({"dev_mode": True}, {"dev_mode": 1}),
        ({"optimization_level": 2}, {"optimize": 2}),
    ],
    ids=str,
)
def test_settings_of_the_interpreter(settings, expected):
    with extisolate.create(**settings) as interp:
        found = interp.call(flags)
    assert {name: found[name] for name in expected} == expected


def test_hash_seeds():
    found = []
    for seed in (1, 1, 2):
        with extisolate.create(hash_seed=seed) as interp:
            found.append(interp.call(hash, "text"))
    assert found[0] == found[1] != found[2]


def test_what_the_module_sys_has(tmp_path):
    (tmp_path / "only_there.py").write_text("x = 7")
    path = [str(tmp_path), *sys.path]
    settings = {"argv": ["app", "-x"], "path": path, "executable": "/bin/app"}
    with extisolate.create(**settings) as interp:
        interp.exec("import sys, only_there; found = sys.argv, sys.path, sys.executable")
        assert interp.call(eval, "found") == (["app", "-x"], path, "/bin/app")
        assert interp.call(eval, "only_there.x") == 7
    assert "only_there" not in sys.modules and str(tmp_path) not in sys.path


def test_a_path_without_the_package():
    """What is there already goes on."""
    path = [p for p in sys.path if "python3" in p and "packages" not in p]
    with extisolate.create(path=path) as interp:
        assert interp.call(eval, "__import__('sys').path") == path
        assert interp.call(divmod, 17, 5) == (3, 2)
        assert interp.call(extisolate.get_current).id == interp.id


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"unknown": 1}, TypeError),
        ({"argv": "text"}, TypeError),
        ({"path": [1]}, TypeError),
        ({"executable": 1}, TypeError),
        ({"stdout": 1}, TypeError),
        ({"hash_seed": -1}, ValueError),
        ({"hash_seed": 1 << 32}, ValueError),
        ({"optimization_level": -1}, extisolate.InterpreterError),
    ],
    ids=str,
)
def test_settings_are_checked(settings, error):
    before = len(extisolate.list_all())
    with pytest.raises(error):
        extisolate.create(**settings)
    assert len(extisolate.list_all()) == before


def test_pools_refuse_what_is_no_setting():
    with pytest.raises(TypeError, match="unknown"):
        extisolate.InterpreterPoolExecutor(1, unknown=1)


def test_flags_are_those_of_the_program():
    source = """
import extisolate, sys
print(extisolate.create().call(eval, 'tuple(__import__("sys").flags)') == tuple(sys.flags))
"""
    for options in (["-O"], ["-X", "utf8", "-X", "dev"]):
        done = subprocess.run(
            [sys.executable, *options, "-c", source], capture_output=True, text=True, timeout=60
        )
        assert done.stdout == "True\n", (options, done.stderr)


# ---- output ----


def test_lines_go_to_a_callable():
    out, errors = [], []
    with extisolate.create(stdout=out.append, stderr=errors.append) as interp:
        interp.exec("import sys\nprint('a', 'ü')\nprint('b', end='')\nprint('e', file=sys.stderr)")
        assert out == ["a ü\n"]
        interp.exec("print('c')\nprint('rest', end='')")
        assert out == ["a ü\n", "bc\n"]
    assert (out, errors) == (["a ü\n", "bc\n", "rest"], ["e\n"])


def test_lines_go_to_a_file(tmp_path):
    with open(tmp_path / "log", "w") as log:
        with extisolate.create(stdout=log, stderr=log) as interp:
            interp.exec(
                "import sys\nfor i in range(3): print(i, file=[sys.stdout, sys.stderr][i % 2])"
            )
    assert (tmp_path / "log").read_text() == "0\n1\n2\n"


def test_the_end_of_an_interpreter_is_heard():
    out = []
    with extisolate.create(stdout=out.append) as interp:
        interp.exec("import atexit; atexit.register(print, 'left')")
    assert out == ["left\n"]


def test_tracebacks_of_threads_go_to_stderr():
    errors = []
    with extisolate.create(stderr=errors.append) as interp:
        interp.exec("import threading\nthreading.Thread(target=lambda: 1 / 0).start()")
    assert errors[-1] == "ZeroDivisionError: division by zero\n"


def test_what_the_program_has_put_in_place_of_stdout(capsys):
    """As contexts of a notebook do, whose cells print into such an object."""
    with contextlib.redirect_stdout(io.StringIO()) as first:
        with extisolate.create() as interp:
            interp.call(print, "one")
            with contextlib.redirect_stdout(io.StringIO()) as second:
                interp.call(print, "two")
    assert (first.getvalue(), second.getvalue()) == ("one\n", "two\n")


def test_inner_interpreters_print_where_the_outer_ones_do():
    out = []
    with extisolate.create(stdout=out.append) as interp:
        interp.exec(
            "import extisolate\n"
            "with extisolate.create() as inner: inner.call(print, 'inner')\n"
            "own = []\n"
            "with extisolate.create(stdout=own.append) as inner: inner.call(print, 'caught')\n"
            "print(own)"
        )
    assert out == ["inner\n", "['caught\\n']\n"]


def test_what_takes_lines_may_call_the_interpreter():
    found = []
    with extisolate.create(stdout=lambda line: found.append(interp.call(len, line))) as interp:
        interp.call(print, "four")
    assert found == [5]


def test_lines_that_nobody_can_take(caplog):
    def refuse(line):
        raise ValueError(f"no {line.strip()}")

    with extisolate.create(stdout=refuse) as interp:
        interp.call(print, "thanks")
        assert interp.call(work.add, 1) == 2
    assert "no thanks" in caplog.text


def test_who_took_lines_is_forgotten():
    from extisolate import _output

    before = len(_output._sinks)
    with extisolate.create(stdout=print, stderr=print):
        assert len(_output._sinks) == before + 1
    assert len(_output._sinks) == before


def say_where(_):
    print(extisolate.index, extisolate.count)
    return work.sleep(0.05)


def test_pools_take_settings():
    out = []
    settings = {"argv": ["app"], "stdout": out.append, "optimization_level": 1}
    with extisolate.InterpreterPoolExecutor(2, **settings) as pool:
        list(pool.map(say_where, range(8)))
        assert pool.submit(eval, "__import__('sys').argv").result() == ["app"]
        assert pool.submit(flags).result()["optimize"] == 1
    assert len(out) == 8 and set(out) == {"0 2\n", "1 2\n"}


def test_lines_of_many_threads_are_whole():
    out = []
    with extisolate.InterpreterPoolExecutor(4, stdout=out.append) as pool:
        list(pool.map(print, ["a" * 50] * 400, ["b" * 50] * 400))
    assert out == [f"{'a' * 50} {'b' * 50}\n"] * 400
