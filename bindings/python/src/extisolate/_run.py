"""Programs in several interpreters at once."""

from __future__ import annotations

import io
import os
import pkgutil
import runpy
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Union

from . import _dispatch, _extisolate, _functions, _settings
from ._extisolate import InterpreterExitedError
from ._interpreters import Interpreter, get_main, interrupt_wanted, prepare, start
from ._settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    Word = Union[str, os.PathLike[str]]

_KINDS = ("-c", "-m")


class CompletedRun:
    """What became of a program: ``args``, and ``returncodes``, one for each interpreter."""

    def __init__(self, args: list[str], returncodes: list[int]) -> None:
        self.args = args
        self.returncodes = returncodes

    @property
    def returncode(self) -> int:
        """That of the first interpreter whose program failed, else 0."""
        return next((code for code in self.returncodes if code), 0)

    def check_returncode(self) -> None:
        """Raise subprocess.CalledProcessError if a program failed."""
        if self.returncode:
            raise subprocess.CalledProcessError(self.returncode, self.args)

    def __repr__(self) -> str:
        return f"CompletedRun(args={self.args!r}, returncodes={self.returncodes!r})"


# ---- in the interpreter that the program runs in ----


def _code_of(path: str) -> CodeType:
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)
    if code is None:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    found: CodeType = code
    return found


def _find_first(folder: str) -> None:
    """Put the program's folder where Python puts it, unless an option forbids that."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, folder)


def _run_program(kind: str, what: str) -> None:
    names = vars(sys.modules["__main__"])
    if kind == "-m":
        _find_first(os.getcwd())
        runpy._run_module_as_main(what)  # type: ignore[attr-defined]
    elif kind == "-c":
        _find_first("")
        exec(compile(what, "<string>", "exec", dont_inherit=True), names)
    elif os.path.isdir(what) or zipfile.is_zipfile(what):
        sys.path.insert(0, what)
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]
    else:
        _find_first(os.path.dirname(os.path.realpath(what)))
        names.update(__file__=what, __cached__=None)
        exec(_code_of(what), names)


def _status_of(e: SystemExit) -> int:
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        return e.code & 0xFF
    print(e.code, file=sys.stderr)
    return 1


def _show(e: BaseException) -> None:
    e.__traceback__ = _dispatch.outer_frames_removed(e.__traceback__)
    sys.excepthook(type(e), e, e.__traceback__)


def _see_interrupts(known: int) -> None:
    """Raise KeyboardInterrupt for one that came before there was a call to interrupt."""
    if _extisolate.interrupts() != known and get_main().call(interrupt_wanted):
        raise KeyboardInterrupt


def execute(kind: str, what: str, interrupts: int) -> int:
    """Run a program as this interpreter's, and give its exit status."""
    _functions.main_path = None  # what this one starts imports from this program
    try:
        _see_interrupts(interrupts)
        _run_program(kind, what)
    except SystemExit as e:
        return _status_of(e)
    except BaseException as e:
        _show(e)
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    return 0


# ---- in the interpreter that asks for it ----


def _close(interp: Interpreter, ended: threading.Event) -> None:
    """Close it on the thread that opened it, which nobody else can."""
    pause = 0.01
    while _extisolate.close(interp.id, True) is None:
        ended.set()  # somebody keeps memory of it, maybe whoever waits for the program
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
    interp._owned = False


class _Program(threading.Thread):
    """The main thread of one interpreter."""

    def __init__(
        self, program: tuple[str, str, int], settings: Settings, place: dict[str, int]
    ) -> None:
        super().__init__(name=f"extisolate-{place['index']}", daemon=True)
        self.program = program
        self.settings = settings
        self.place = place
        self.status = 1
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            interp = start(0, self.settings, self.place, on_caller=True)
            try:
                self.status = interp.call(execute, *self.program)
            except InterpreterExitedError as e:  # os._exit
                self.status = 1 if e.status is None else e.status
            finally:
                _close(interp, self.ended)
        except BaseException as e:
            self.error = e
        finally:
            self.ended.set()


def _split(args: Word | Sequence[Word]) -> tuple[list[str], tuple[str, str], list[str]]:
    """Give the words, the program's kind and name, and its ``sys.argv``."""
    given = [args] if isinstance(args, (str, os.PathLike)) else args
    words = [os.fspath(word) for word in given]
    if not words or not words[0] or words[0] == "-" or (words[0] in _KINDS and len(words) == 1):
        raise ValueError("expected a script, '-c' and code, or '-m' and a module")
    if words[0] in _KINDS:
        return words, (words[0], words[1]), [words[0], *words[2:]]
    return words, ("", words[0]), words


def run(
    args: Word | Sequence[Word],
    *,
    contexts: int = 1,
    check: bool = False,
    **settings: Unpack[Settings],
) -> CompletedRun:
    """Run a program in ``contexts`` interpreters at once, as ``extisolate run --contexts`` does.

    ``args`` is what follows ``python3`` in a command line: a script (a file, folder or zip file),
    ``-c`` and code, or ``-m`` and a module, and what the program gets.  Each interpreter has the
    program as its ``__main__``, on its main thread.  There ``extisolate.index`` counts from 0, and
    ``extisolate.count`` is ``contexts``.  Further keywords are those of ``create()``.

    It returns when all programs have ended, their threads and functions of atexit too.
    ``check=True``: CalledProcessError if one failed.  Ctrl-C interrupts all programs, and is raised
    when they have ended.  InterpreterError: an interpreter did not start.

    >>> run(["-c", "import extisolate, sys; sys.exit(extisolate.index)"], contexts=3).returncodes
    [0, 1, 2]
    """
    if contexts < 1:
        raise ValueError(f"contexts must be 1 or more, got {contexts}")
    if "argv" in settings:
        raise TypeError("what the program gets is part of args, there is no argv")
    _settings.check(settings)
    words, program, argv = _split(args)
    prepare()
    known = _extisolate.interrupts()
    settings["argv"] = argv
    programs = [
        _Program((*program, known), settings, {"index": i, "count": contexts})
        for i in range(contexts)
    ]
    for each in programs:
        each.start()
    _await(programs)
    for each in programs:
        if each.error is not None:
            raise each.error
    done = CompletedRun(words, [each.status for each in programs])
    if check:
        done.check_returncode()
    return done


def _await(programs: list[_Program]) -> None:
    interrupted: KeyboardInterrupt | None = None
    for each in programs:
        while not each.ended.is_set():
            try:
                each.ended.wait()
            except KeyboardInterrupt as e:  # they are interrupted, too
                interrupted = e
    if interrupted is not None:
        raise interrupted
