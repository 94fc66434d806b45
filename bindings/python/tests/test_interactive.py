"""Programs without a file: notebooks, the REPL, -c and standard input."""

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

import extisolate

DEFINITIONS = """\
import abc, dataclasses, enum, extisolate

class Base(abc.ABC):
    "A text."
    @abc.abstractmethod
    def get(self): ...
    @property
    def twice(self): return 2 * self.get()
    @classmethod
    def kind(cls): return cls.__name__

class Derived(Base):
    def __init__(self, x):
        super().__init__()
        self.x = x
    def get(self): return helper(self.x)

class Point:
    count = 3
    def __init__(self, x): self.x = x
    def __eq__(self, other): return type(other) is type(self) and other.x == self.x

class Slotted:
    __slots__ = ("a", "b")

@dataclasses.dataclass
class Data:
    a: int
    b: list = dataclasses.field(default_factory=list)

def helper(x): return x + 1
def moved(p): return Point(p.x + 1), p.__hash__
def described(d): return d.twice, d.kind(), isinstance(d, Base), Base.__doc__

def slotted(s): return s.a + 1

def replaced(d): return dataclasses.replace(d, a=9), Data(1), repr(d), Data.__annotations__
"""

USES = """\
interp = extisolate.create()
found = interp.call(moved, Point(1))
print(found[0] == Point(2), found[1], interp.call(described, Derived(1)))
s = Slotted()
s.a = 1
print(interp.call(slotted, s))
print(interp.call(replaced, Data(1, [2])) == (
    Data(9, [2]), Data(1), "Data(a=1, b=[2])", {"a": int, "b": list}))
print(interp.call(lambda p: [type(p) is Point, Point.count], Point(1)))
with extisolate.InterpreterPoolExecutor(2) as pool: print(list(pool.map(helper, [1, 2])))

interp.close()
"""

PRINTED = """\
True None (4, 'Derived', True, 'A text.')
2
True
[True, 3]
[2, 3]
"""


@pytest.fixture(params=["as-it-is", "without-cloudpickle"])
def environment(request, tmp_path):
    found = dict(os.environ)
    if request.param == "without-cloudpickle":
        (tmp_path / "cloudpickle.py").write_text("raise ImportError")
        found["PYTHONPATH"] = os.pathsep.join(
            [str(tmp_path), *found.get("PYTHONPATH", "").split(os.pathsep)]
        )
    return found


def test_code_of_the_command_line(environment):
    done = subprocess.run(
        [sys.executable, "-c", DEFINITIONS + USES],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout == PRINTED, done.stderr


def test_standard_input(environment):
    done = subprocess.run(
        [sys.executable],
        input=DEFINITIONS + USES,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.stdout == PRINTED, done.stderr


def test_classes_without_cloudpickle(tmp_path):
    (tmp_path / "cloudpickle.py").write_text("raise ImportError")
    source = """
import enum, extisolate
class Color(enum.Enum): RED = 1
class Slotted: __slots__ = ("a", "b")
interp = extisolate.create()
s = Slotted()
s.a = 1
returned = interp.call(lambda x: x, s)
print(type(returned) is Slotted, returned.a)
try: interp.call(repr, Color.RED)
except extisolate.NotShareableError as e: print(e)
"""
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
    )
    assert "True 1\n" in done.stdout, done.stderr
    assert "Color has a metaclass" in done.stdout and "install cloudpickle" in done.stdout


# ---- the REPL ----


class Terminal:
    """A REPL in a terminal."""

    def __init__(self, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            # The plain one, which all versions have.
            os.environ.update(PYTHON_BASIC_REPL="1", TERM="dumb", PYTHONSTARTUP="")
            os.execv(sys.executable, [sys.executable, "-q"])

    def read_until(self, wanted, seconds=15):
        text, end = "", time.monotonic() + seconds
        while wanted not in text:
            ready, _, _ = select.select([self.fd], [], [], max(end - time.monotonic(), 0))
            assert ready, f"{wanted!r} did not come: {text!r}"
            text += os.read(self.fd, 1 << 16).decode().replace("\r", "")
        return text

    def send(self, text):
        os.write(self.fd, text.encode())

    def enter(self, block):
        """Enter a statement, and give what it prints."""
        self.send(block + ("\n\n" if block.startswith(("class", "def")) else "\n"))
        self.send("print('end' + 'ed')\n")
        return self.read_until("ended\n>>> ")

    def close(self, seconds=15):
        self.send("raise SystemExit\n")
        end = time.monotonic() + seconds
        while not (ended := os.waitpid(self.pid, os.WNOHANG)[0]) and time.monotonic() < end:
            time.sleep(0.01)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        assert ended, "the REPL did not end"


@pytest.fixture
def terminal(environment):
    made = Terminal(environment)
    made.read_until(">>> ")
    yield made
    made.close()


def test_the_repl(terminal):
    terminal.enter("import extisolate")
    terminal.enter("interp = extisolate.create()")
    terminal.enter("class Point:\n    def __init__(self, x): self.x = x")
    terminal.enter("def moved(p): return Point(p.x + 41)")
    assert "\n42\n" in terminal.enter("interp.call(moved, Point(1)).x")
    assert "\nTrue\n" in terminal.enter("isinstance(interp.call(moved, Point(1)), Point)")
    assert "\nfrom within\n" in terminal.enter("interp.exec('print(\"from within\")')")
    terminal.send("interp.exec('while True: pass')\n")
    time.sleep(1)
    terminal.send("\x03")
    assert "KeyboardInterrupt" in terminal.read_until("\n>>> ")
    assert "\n(3, 1)\n" in terminal.enter("interp.call(divmod, 7, 2)")


# ---- notebooks ----


class Notebook:
    """A kernel, cell by cell."""

    def __init__(self, environment):
        manager = pytest.importorskip("jupyter_client.manager")
        pytest.importorskip("ipykernel")
        self.kernel = manager.KernelManager()
        self.kernel.kernel_spec.argv[0] = sys.executable
        self.kernel.start_kernel(env=environment)
        self.client = self.kernel.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, cell, interrupt_after=None):
        """Give what the cell prints, and the name of the exception that it raises."""
        printed = {"stdout": "", "stderr": ""}

        def see(message):
            if message["msg_type"] == "stream":
                printed[message["content"]["name"]] += message["content"]["text"]

        if interrupt_after is not None:
            threading.Timer(interrupt_after, self.kernel.interrupt_kernel).start()
        # By default a kernel that has shown an error lets fail what comes in soon after.
        reply = self.client.execute_interactive(
            cell, timeout=60, output_hook=see, stop_on_error=False
        )
        assert reply["content"]["status"] != "aborted"
        return printed["stdout"], printed["stderr"], reply["content"].get("ename")

    def close(self):
        self.client.stop_channels()
        self.kernel.shutdown_kernel(now=True)


@pytest.fixture
def notebook(environment):
    made = Notebook(environment)
    yield made
    made.close()


def test_a_notebook(notebook):
    assert notebook.run(DEFINITIONS) == ("", "", None)
    assert notebook.run(USES) == (PRINTED, "", None)
    notebook.run("interp = extisolate.create()")
    assert notebook.run("class Point:\n    version = 2") == ("", "", None)
    assert notebook.run("print(interp.call(lambda: Point.version))") == ("2\n", "", None)
    # Output comes into the cell that runs when it is printed.
    cell = "import sys; print('out'); print('error', file=sys.stderr)"
    assert notebook.run(f"interp.exec({cell!r})") == ("out\n", "error\n", None)
    # The kernel's interrupt button ends the call, in each cell.
    for _ in range(2):
        assert notebook.run("interp.exec('while True: pass')", 1)[2] == "KeyboardInterrupt"
    assert notebook.run("print(interp.call(divmod, 7, 2))") == ("(3, 1)\n", "", None)


# ---- logging and progress ----


def test_logging_of_an_interpreter_is_its_own(caplog):
    errors = []
    with extisolate.create(stderr=errors.append) as interp:
        interp.exec("import logging; logging.getLogger('inner').warning('from within')")
    assert errors == ["from within\n"] and not caplog.records


def test_logging_by_a_queue():
    import logging.handlers

    queue = extisolate.create_queue()
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    listener = logging.handlers.QueueListener(queue, handler)
    listener.start()
    with extisolate.create() as interp:
        interp.prepare_main(queue=queue)
        interp.exec(
            "import logging, logging.handlers\n"
            "logging.getLogger().addHandler(logging.handlers.QueueHandler(queue))\n"
            "logging.warning('number %d', 7)"
        )
    listener.stop()
    assert [r.getMessage() for r in records] == ["number 7"]
