import os
import signal
import subprocess
import sys

import pytest

HERE = os.path.dirname(__file__)


def run(source, *args, timeout=60, **more):
    """Runs a program whose folder is that of the tests."""
    return subprocess.run(
        [sys.executable, *args, "-c", source],
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=HERE,
        **more,
    )


def test_the_end_of_a_program_closes_what_is_open():
    done = run("""
import extisolate, work
kept = [extisolate.create() for _ in range(2)]
kept[0].call(work.add, 1)
kept[0].exec("import atexit; atexit.register(lambda: print('left', flush=True))")
memory = kept[1].call(work.own_memory, 10)
print("end", flush=True)
""")
    assert (done.stdout, done.stderr, done.returncode) == ("end\nleft\n", "", 0)


def test_a_program_ends_with_a_daemon_thread_in_an_interpreter():
    done = run(
        """
import extisolate, work, threading, time
interp = extisolate.create()
threading.Thread(target=interp.call, args=(work.spin, 30), daemon=True).start()
while not interp.is_running(): time.sleep(0.01)
print("end", flush=True)
""",
        timeout=20,
    )
    assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr


def test_a_pool_that_is_not_shut_down():
    done = run("""
import extisolate, work
pool = extisolate.InterpreterPoolExecutor(2)
future = pool.submit(work.add, 1)
print(future.result())
""")
    assert (done.stdout, done.stderr, done.returncode) == ("2\n", "", 0)


INTERRUPT = """
import extisolate, os, signal, threading, time, work
interp = extisolate.create()
{before}
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
started = time.monotonic()
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started < 5)
for _ in range(100):
    assert interp.call(work.add, 1) == 2
{after}
"""


@pytest.mark.parametrize(
    ("before", "call", "after"),
    [
        ("", "interp.call(work.spin, 20)", ""),
        (
            "other = extisolate.create()",
            "work.call_from([interp.id, 0, other.id], interp.call(work.spin, 20))",
            "",
        ),
        (
            "interp.call(work.nothing); signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)",
            "interp.call(work.spin, 20)",
            "",
        ),
        ("q = extisolate.create_queue()", "q.get()", ""),
        (
            "q = extisolate.create_queue()",
            "interp.exec(f'import extisolate; extisolate.Queue({q.id}).get()')",
            "",
        ),
        (
            "threading.excepthook = lambda a: None; thread = interp.call_in_thread(work.spin, 20)",
            "thread.join()",
            "thread.join()",
        ),
        (
            "interp = extisolate.create(stdout=lambda line: time.sleep(0.01))",
            "interp.exec('while True: print(1)')",
            "",
        ),
    ],
    ids=[
        "a-call",
        "a-chain",
        "a-call-once-the-handler-is-back",
        "a-queue",
        "a-queue-inside",
        "a-thread",
        "output",
    ],
)
def test_ctrl_c(before, call, after):
    done = run(INTERRUPT.format(before=before, call=call, after=after))
    assert "interrupted True\n" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_a_call_that_a_close_waits_for():
    done = run("""
import extisolate, os, signal, threading, time, work
interp = extisolate.create()
def close():
    while not interp.is_running():
        time.sleep(0.01)
    interp.close(wait=True)
    print("closed")
interrupt = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
threads = [threading.Thread(target=close), interrupt]
for thread in threads:
    thread.start()
started = time.monotonic()
try:
    interp.call(work.spin, 20)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - started < 5)
for thread in threads:
    thread.join()
""")
    assert sorted(done.stdout.splitlines()) == ["closed", "interrupted True"], done.stderr


def test_interpreters_are_called_interrupted_and_closed_at_once():
    """Some are interrupted while a close waits for them, or too late."""
    done = run("""
import collections, contextlib, extisolate, os, random, signal, threading, time
calls, rounds, began = collections.Counter(), [], time.monotonic()
quiet, masked = threading.Lock(), threading.Event()

def was_enough():
    return calls["made"] > 10 and calls["ExecutionFailed"] and len(rounds) > 2

def goes_on():
    return time.monotonic() - began < (3 if was_enough() else 40)

def create():
    with quiet:  # an import that is interrupted may keep a lock of CPython's for ever
        interp = extisolate.create()
        for statement in ("pass", "raise KeyboardInterrupt"):
            with contextlib.suppress(extisolate.ExecutionFailed):
                interp.exec(statement)
        assert interp.call(divmod, 7, 2) == (3, 1)
        return interp

shared = [create() for _ in range(3)]

def call():
    while goes_on():
        try:
            assert random.choice(shared).call(divmod, 7, 2) == (3, 1)
            random.choice(shared).exec("for _ in range(200000): pass")
            calls["made"] += 1
        except (extisolate.InterpreterNotFoundError, extisolate.ExecutionFailed) as e:
            calls[type(e).__name__] += 1

def close():
    while goes_on():
        place = random.randrange(3)
        try:
            shared[place].close(wait=random.random() < 0.7)
        except extisolate.InterpreterError as e:
            assert str(e) == "the interpreter is running", e
            continue
        shared[place] = create()
        rounds.append(place)
        time.sleep(0.03)

def look():
    while goes_on():
        try:
            random.choice(shared).is_running()
        except extisolate.InterpreterNotFoundError:
            pass
        extisolate.list_all()

def shoot():
    masked.wait()
    while goes_on():
        time.sleep(0.01)
        with quiet:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.005)

threads = [threading.Thread(target=f) for f in (call, call, call, close, look, shoot)]
for thread in threads:
    thread.start()
# So this thread is seldom told of them while it waits.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
masked.set()
def await_threads():
    while any(thread.is_alive() for thread in threads):
        time.sleep(4)

waits = True
while waits:
    try:
        await_threads()
        waits = False
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
assert [interp.call(divmod, 7, 2) for interp in shared] == [(3, 1)] * 3
assert was_enough(), (calls, rounds)
print("done", len(extisolate.list_all()))
""")
    assert (done.stdout, done.returncode) == ("done 4\n", 0), done.stderr


def test_ctrl_c_with_a_handler_of_the_program():
    """It has another meaning there, so calls go on."""
    done = run("""
import extisolate, os, signal, threading, work
interp = extisolate.create()
signal.signal(signal.SIGINT, lambda *_: print("handled"))
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
print(interp.call(work.spin, 0.6))
""")
    assert done.stdout == "handled\nTrue\n", done.stderr


def test_ctrl_c_while_idle():
    done = run("""
import extisolate, os, signal, time
interp = extisolate.create()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
print(interp.call(divmod, 7, 2))
""")
    assert done.stdout == "interrupted\n(3, 1)\n", done.stderr


def test_a_forked_child_has_none_of_the_interpreters():
    done = run("""
import extisolate, os, work, numpy
interp = extisolate.create()
array = numpy.zeros(3)
interp.call(work.keep, array)
pid = os.fork()
if pid == 0:
    try:
        interp.call(work.add, 1)
    except extisolate.InterpreterNotFoundError:
        assert [i.id for i in extisolate.list_all()] == [0]
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), interp.call(work.add, 1))
""")
    assert done.stdout == "7 2\n", done.stderr


def test_a_forked_child_leaves_the_interpreters_of_other_threads():
    # From 3.12 on CPython warns of a fork beside other threads.
    done = run(
        """
import extisolate, os, threading, work
pool = extisolate.InterpreterPoolExecutor(2)
list(pool.map(work.sleep, [0.1] * 4))
own, kept, end = threading.local(), threading.Event(), threading.Event()
def keep():
    own.interp = extisolate.create()
    kept.set()
    end.wait()
thread = threading.Thread(target=keep)
thread.start()
kept.wait()
pid = os.fork()
if pid == 0:
    with extisolate.InterpreterPoolExecutor(2) as others:
        os._exit(others.submit(work.add, 6).result())
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), pool.submit(work.add, 1).result())
print(len(extisolate.list_all()))
end.set()
""",
        "-W",
        "ignore::DeprecationWarning",
    )
    assert (done.stdout, done.stderr) == ("7 2\n4\n", "")


def test_multiprocessing_goes_on():
    done = run("""
import extisolate, multiprocessing, work
interp = extisolate.create()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(work.add, [1, 2]))
print(interp.call(work.add, 1))
""")
    assert done.stdout == "[2, 3]\n2\n", done.stderr


def test_doctor():
    done = subprocess.run(
        [sys.executable, "-m", "extisolate", "doctor"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "libpython" in done.stdout and "contexts     yes" in done.stdout
    # Where this runs in a container that refuses it, both would say the same.
    assert "directory    each program" in done.stdout


def test_doctor_tells_that_directories_are_shared():
    """To the process the system refuses unshare, as Docker's default profile does."""
    done = run(
        """
import ctypes, os, struct, sys
number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
filter = struct.pack("@HP", len(code), ctypes.addressof(program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0          # PR_SET_NO_NEW_PRIVS
assert libc.prctl(22, 2, filter, 0, 0) == 0     # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
from extisolate import _doctor
sys.exit(_doctor.main([]))
"""
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "directory    all programs that run() starts share one: " in done.stdout
    assert "(unshare): Operation not permitted\n" in done.stdout


def test_programs_start_where_threads_have_much_static_storage():
    """glibc takes it from the stack of each thread, those of the loader's helpers too."""
    done = subprocess.run(
        [sys.executable, "-c", "import extisolate; extisolate.run(['-c', 'print(6)'], contexts=1)"],
        env=dict(os.environ, GLIBC_TUNABLES="glibc.rtld.optional_static_tls=400000"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("6\n", "", 0)


def test_a_free_threaded_cpython_is_refused():
    done = run("import sys; sys.abiflags += 't'; import extisolate")
    assert done.returncode == 1 and "ImportError: extisolate gives each" in done.stderr, done.stderr
    assert "use a build with the GIL" in done.stderr


def program(*args):
    return subprocess.run(
        [sys.executable, "-m", "extisolate", *args], capture_output=True, text=True, timeout=60
    )


def test_help_tells_what_the_package_adds():
    for args in (["--help"], ["-h"], ["help"]):
        done = program(*args)
        assert done.returncode == 0 and done.stderr == "", args
        assert done.stdout.startswith("usage: extisolate COMMAND"), args
        assert "\n  copy " in done.stdout and done.stdout.endswith("what it lacks\n"), args
    done = program("help", "copy")
    assert done.stdout.startswith("usage: extisolate copy") and "doctor" not in done.stdout
    assert program("doctor", "--help").stdout == "usage: extisolate doctor\n"
    done = program("doctor", "me")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "usage: extisolate doctor\n")


def test_the_program_comes_along():
    entry = os.path.join(os.path.dirname(sys.executable), "extisolate")
    commands = [[sys.executable, "-m", "extisolate"]]
    if os.path.exists(entry):  # the wheel was installed, and not only unpacked
        commands.append([entry])
    for command in commands:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and done.stdout.startswith("extisolate "), done.stderr


def test_an_interpreter_that_cannot_have_contexts_says_so(tmp_path):
    bad = tmp_path / "python"
    bad.write_text("#!/bin/sh\nexit 1\n")
    bad.chmod(0o755)
    done = run(
        "import sys, extisolate\n"
        f"sys.executable = {str(bad)!r}\n"
        "try: extisolate.create()\n"
        "except extisolate.InterpreterError as e: print(e)\n"
    )
    assert "did not describe itself as a CPython 3 interpreter" in done.stdout, done.stderr
    done = run("import sys, extisolate\nsys.executable = ''\nextisolate.create()")
    assert "sys.executable is empty" in done.stderr


def test_sub_interpreters_of_cpython_are_refused():
    done = run(
        "import _xxsubinterpreters as s\nid = s.create()\ns.run_string(id, 'import extisolate')"
    )
    if "No module named '_xxsub" in done.stderr:
        pytest.skip("this CPython has another interface of sub-interpreters")
    refused = ("sub-interpreters of CPython's own", "does not support loading in subinterpreters")
    assert any(text in done.stderr for text in refused), done.stderr


def test_signals_of_the_program_stay_its_own():
    done = run("""
import extisolate, signal
interp = extisolate.create()
try:
    interp.exec("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)")
except extisolate.ExecutionFailed as e:
    print(e.excinfo.type.__name__, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""")
    assert done.stdout == "ValueError True\n", done.stderr
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_DFL


def test_the_libraries_are_those_of_the_package():
    done = run(
        "import extisolate, os\n"
        "inside = os.path.join(os.path.dirname(extisolate.__file__), 'lib')\n"
        "extisolate.create()\n"
        "maps = {l.split()[-1] for l in open('/proc/self/maps') if '.so' in l}\n"
        "for name in sorted(os.listdir(inside)):\n"
        "    found = sorted(p for p in maps if os.path.basename(p) == name)\n"
        "    print(name, found == [os.path.realpath(os.path.join(inside, name))])\n"
    )
    assert done.stdout.count("True") == 5 and "False" not in done.stdout, done.stdout + done.stderr


def test_interpreters_import_little():
    """What the package imports adds to the time that each interpreter takes to start."""
    done = run("""
import sys
before = set(sys.modules)
import extisolate
print(*sorted(set(sys.modules) - before))
with extisolate.create() as interp:
    interp.exec("import sys; print(*sorted(sys.modules))")
""")
    plain = run("import sys; print(*sys.modules)")
    here, there = (set(line.split()) for line in done.stdout.splitlines())
    costly = {"asyncio", "concurrent", "ctypes", "inspect", "logging", "pickle", "re", "typing"}
    assert "extisolate" in here and "extisolate" in there
    assert here.isdisjoint(costly)
    assert costly.isdisjoint(there - set(plain.stdout.split()))
