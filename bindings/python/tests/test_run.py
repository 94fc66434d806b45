import os
import subprocess
import sys
import zipfile

import pytest
import test_process

import extisolate

PROGRAM = """
import extisolate, os, sys, threading
print(extisolate.index, extisolate.count, sys.argv[1:], __name__, os.path.basename(__file__),
      sys.path[0] == os.path.dirname(os.path.realpath(__file__)),
      threading.current_thread() is threading.main_thread(), threading.current_thread().name)
"""


@pytest.fixture
def program(tmp_path):
    def write(source, name="app.py"):
        path = tmp_path / name
        path.write_text(source)
        return path

    return write


def test_a_script(program):
    out = []
    done = extisolate.run([program(PROGRAM), "-x", "y"], contexts=3, stdout=out.append)
    assert sorted(out) == [
        f"{i} 3 ['-x', 'y'] __main__ app.py True True MainThread\n" for i in range(3)
    ]
    assert (done.returncodes, done.returncode) == ([0, 0, 0], 0)
    assert done.args[1:] == ["-x", "y"]


def test_as_the_program_does(program):
    """`extisolate run` prints the same."""
    path = program(PROGRAM)
    bare = [sys.executable, "-m", "extisolate", "run", "--python", sys.executable]
    printed = subprocess.run(
        [*bare, "--contexts", "1", str(path), "z"], capture_output=True, text=True, timeout=60
    )
    out = []
    extisolate.run([path, "z"], stdout=out.append)
    assert out == [printed.stdout], printed.stderr


def test_code_and_modules(program, monkeypatch, tmp_path):
    out = []
    extisolate.run(["-c", "import sys; print(sys.argv, __name__)", "a"], stdout=out.append)
    program("import sys; print(sys.argv[1:], __name__, __spec__.name)", "a_module.py")
    monkeypatch.chdir(tmp_path)
    extisolate.run(["-m", "a_module", "b"], stdout=out.append)
    assert out == ["['-c', 'a'] __main__\n", "['b'] __main__ a_module\n"]


def test_folders_and_zip_files(tmp_path):
    source = "import other; print(other.x, __name__)"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(source)
    (tmp_path / "folder" / "other.py").write_text("x = 1")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", source)
        archive.writestr("other.py", "x = 2")
    out = []
    extisolate.run(tmp_path / "folder", stdout=out.append)
    extisolate.run(str(tmp_path / "app.zip"), stdout=out.append)
    assert out == ["1 __main__\n", "2 __main__\n"]


@pytest.mark.parametrize(
    ("source", "status", "printed"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit('a text')", 1, "a text\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt\n"),
        ("x = (", 1, "SyntaxError: '(' was never closed\n"),
        ("import threading, time\nthreading.Thread(target=lambda: 1 / 0).start()", 0, None),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_exit_statuses(program, source, status, printed):
    if "was never closed" in str(printed) and sys.version_info < (3, 10):
        printed = "SyntaxError: unexpected EOF while parsing\n"
    errors = []
    done = extisolate.run(program(source), stderr=errors.append)
    assert done.returncodes == [status]
    if printed is not None:
        assert "".join(errors).endswith(printed)
    assert "_run.py" not in "".join(errors)


def test_the_first_that_failed_counts():
    code = "import extisolate, sys; sys.exit(extisolate.index * 2)"
    done = extisolate.run(["-c", code], contexts=3)
    assert (done.returncodes, done.returncode) == ([0, 2, 4], 2)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        extisolate.run(["-c", code], contexts=3, check=True)
    assert caught.value.returncode == 2


def test_threads_and_atexit_are_waited_for(program):
    out = []
    source = """
import atexit, threading, time
atexit.register(print, "end")
threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
"""
    extisolate.run(program(source), stdout=out.append)
    assert out == ["thread\n", "end\n"]


def test_all_are_closed_in_the_end(program, nothing_lingers):
    before = extisolate.list_all()
    extisolate.run(program("import extisolate; extisolate.create()"), contexts=2)
    assert extisolate.list_all() == before


def test_programs_talk_by_queues():
    queue = extisolate.create_queue()
    code = (
        "import extisolate, sys\n"
        "extisolate.Queue(int(sys.argv[1])).put(memoryview(bytearray(b'from within')))"
    )
    done = extisolate.run(["-c", code, str(queue.id)])
    assert done.returncode == 0
    assert bytes(queue.get()) == b"from within"  # its memory outlives the program


def test_functions_of_the_program_travel(program):
    out = []
    source = """
import extisolate
class Point:
    def __init__(self, x): self.x = x
def moved(p): return Point(p.x + 1)
if __name__ == "__main__":
    with extisolate.create() as inner:
        print(inner.call(moved, Point(1)).x)
"""
    assert extisolate.run(program(source), stdout=out.append).returncode == 0
    assert out == ["2\n"]


@pytest.mark.parametrize(
    ("args", "settings", "error"),
    [
        ([], {}, ValueError),
        ("", {}, ValueError),
        ("-", {}, ValueError),
        (["-m"], {}, ValueError),
        ("app.py", {"contexts": 0}, ValueError),
        ("app.py", {"argv": []}, TypeError),
        ("app.py", {"unknown": 1}, TypeError),
    ],
    ids=str,
)
def test_arguments_are_checked(args, settings, error):
    with pytest.raises(error):
        extisolate.run(args, **settings)


def test_a_script_that_is_not_there():
    errors = []
    assert extisolate.run("/nowhere/app.py", stderr=errors.append).returncode == 1
    assert "FileNotFoundError" in errors[-1]


@pytest.mark.parametrize("seconds", [0.01, 1], ids=["early", "late"])
def test_ctrl_c_ends_all_programs(seconds):
    done = test_process.run(f"""
import extisolate._interpreters, os, signal, threading, time
extisolate._interpreters.prepare()
threading.Timer({seconds}, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    code = "import time\\nwhile True: time.sleep(0.01)"
    extisolate.run(["-c", code], contexts=2, stderr=lambda line: None)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started < 15, len(extisolate.list_all()))
""")
    assert done.stdout == "interrupted True 1\n", done.stderr


def test_an_exit_while_memory_is_kept():
    """Nobody waits for what cannot come."""
    done = test_process.run("""
import extisolate
q = extisolate.create_queue()
code = f"import extisolate; extisolate.Queue({q.id}).put(memoryview(bytearray(3)))"
extisolate.run(["-c", code])
kept = q.get()
print(kept.nbytes)
""")
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_programs_have_directories_of_their_own(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for i in range(4):
        (tmp_path / str(i)).mkdir()
    path = program(
        """
import extisolate, os, subprocess, threading
me = str(extisolate.index)
print(me, os.getcwd())
os.chdir(me)
os.umask(0o11 * (extisolate.index + 1))
def look():
    for _ in range(200):
        assert os.path.basename(os.getcwd()) == me and os.path.samefile(".", f"../{me}")
t = threading.Thread(target=look)
t.start()
look()
t.join()
assert subprocess.run(["pwd"], stdout=subprocess.PIPE).stdout.decode().endswith(f"/{me}\\n")
assert os.umask(0) == 0o11 * (extisolate.index + 1)
"""
    )
    out = []
    mask = os.umask(0o22)
    try:
        assert extisolate.run([path], contexts=4, stdout=out.append).returncode == 0
        assert os.umask(0o22) == 0o22
    finally:
        os.umask(mask)
    assert sorted(out) == [f"{i} {tmp_path}\n" for i in range(4)]
    assert os.getcwd() == str(tmp_path)


def test_a_call_has_the_callers_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with extisolate.create() as interp:
        interp.call(os.chdir, "sub")
        assert os.getcwd() == str(tmp_path / "sub") == interp.call(os.getcwd)


def test_a_program_may_end_by_os_exit(program):
    path = program(
        "import extisolate, os, time\n"
        "if extisolate.index:\n"
        "    os._exit(extisolate.index + 3)\n"
        "time.sleep(0.3)\n"
        "print('lives')\n"
    )
    out = []
    done = extisolate.run([path], contexts=3, stdout=out.append)
    assert (done.returncodes, out) == ([0, 4, 5], ["lives\n"])
