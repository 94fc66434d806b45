"""Interpreters: CPython contexts of this process, with the interface of concurrent.interpreters."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import types
import warnings
import weakref
from typing import Any, Callable, ClassVar

from . import _dispatch, _extisolate, _functions, _pickling
from ._extisolate import InterpreterError, InterpreterNotFoundError
from ._numbered import Numbered

_MAIN = 0


class ExecutionFailed(InterpreterError):
    """An exception that nobody caught in the interpreter where it was raised.

    ``excinfo`` has its ``type`` (``__name__``, ``__qualname__``, ``__module__``), ``msg``,
    ``formatted``, and ``errdisplay``: the traceback as Python prints it.
    """

    def __init__(self, excinfo: types.SimpleNamespace) -> None:
        super().__init__(excinfo.formatted)
        self.excinfo = excinfo

    def __str__(self) -> str:
        return (
            f"{self.excinfo.formatted}\n\nUncaught in the interpreter:\n\n{self.excinfo.errdisplay}"
        )

    def __reduce__(self) -> Any:
        return type(self), (self.excinfo,)


def _run_source(source: str) -> None:
    exec(compile(source, "<string>", "exec"), sys.modules["__main__"].__dict__)


def _run_code(code: bytes) -> None:
    import marshal

    exec(marshal.loads(code), sys.modules["__main__"].__dict__)


def _set_main(names: dict[str, Any]) -> None:
    vars(sys.modules["__main__"]).update(names)


def _plain_function(code: Any) -> types.CodeType | None:
    """Give the code of a function that has nothing but code."""
    if isinstance(code, types.CodeType):
        found = code
    elif isinstance(code, types.FunctionType):
        found = code.__code__
        if code.__closure__ or code.__defaults__ or code.__kwdefaults__:
            raise ValueError(f"{code!r} has more than code: it cannot be given to exec()")
    else:
        return None
    if found.co_argcount or found.co_kwonlyargcount or found.co_freevars:
        raise ValueError(f"{code!r} has arguments, or a closure")
    return found


class Interpreter(Numbered):
    """An interpreter of this process, with a GIL and extension modules of its own.

    It is closed by ``close()``, at the end of a ``with`` statement, or when the last reference to
    what ``create()`` returned is gone, unless that was sent to another interpreter.
    """

    _known: ClassVar[weakref.WeakValueDictionary[int, Interpreter]] = weakref.WeakValueDictionary()
    _policy: int
    _owned: bool

    def __new__(cls, id: int, /) -> Interpreter:
        """Give the object for an interpreter that there is."""
        cls._check(id)
        if id != _MAIN:
            _extisolate.describe(id)  # InterpreterNotFoundError
        found = cls._known.get(id)
        if found is None:
            found = super().__new__(cls)
            found._id, found._policy, found._owned = id, 0, False
            cls._known[id] = found
        return found

    def __reduce__(self) -> Any:
        self._owned = False
        return type(self), (self._id,)

    def __enter__(self) -> Interpreter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(wait=True)

    def __del__(self) -> None:
        if getattr(self, "_owned", False) and not sys.is_finalizing():
            self._owned = False
            with contextlib.suppress(InterpreterError):  # it runs, or the process ends
                self.close()

    @property
    def id(self) -> int:
        """Its number; the main interpreter's is 0."""
        return self._id

    def is_running(self) -> bool:
        """Tell whether any thread runs code in it."""
        return self._id == _MAIN or _extisolate.describe(self._id)[0] > 0

    def close(self, *, wait: bool = False) -> None:
        """End the interpreter; InterpreterError: code runs in it.

        ``wait=True``: lets no call begin any more, and waits for those that run.

        Memory of it that others use, by arrays for instance, stays until they let go of it.
        """
        if self._id == _extisolate.current():
            raise InterpreterError("the current interpreter cannot be closed")
        attached, mapped, _ = _extisolate.close(self._id, wait)
        self._owned = False
        if attached:
            warnings.warn(
                f"interpreter {self._id} stays mapped, with {mapped} files: {attached} "
                "threads that called it have not ended",
                ResourceWarning,
                stacklevel=2,
            )

    def prepare_main(self, ns: Any = None, /, **kwargs: Any) -> None:
        """Set variables of its module ``__main__``, from a dict or from pairs, and by name."""
        names = dict(ns or (), **kwargs)
        if not names:
            raise ValueError("no variables were given")
        if any(not isinstance(name, str) for name in names):
            raise TypeError("names must be str")
        self._call(_set_main, (names,), {})

    def exec(self, code: Any, /) -> None:
        """Run source text, or a function without arguments, in its module ``__main__``.

        ExecutionFailed: it raised.
        """
        plain = _plain_function(code)
        if plain is not None:
            import marshal

            self._call(_run_code, (marshal.dumps(plain),), {})
        elif isinstance(code, str):
            self._call(_run_source, (code,), {})
        else:
            raise TypeError(f"expected str or a function, not {type(code).__name__}")

    def _call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            return _dispatch.call(self._id, function, args, kwargs, self._policy)
        except _dispatch.Remote as e:
            raised = _raised(e)
        raise raised

    def call(self, callable: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call it there, on this thread, and give what it returns.

        ExecutionFailed: it raised.  NotShareableError: an argument or the result cannot travel.
        """
        return self._call(callable, args, kwargs)

    def call_in_thread(
        self, callable: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> threading.Thread:
        """Call it on a new thread, which is returned; what it returns is dropped."""
        thread = threading.Thread(target=self._call, args=(callable, args, kwargs))
        thread.start()
        return thread


def _raised(remote: _dispatch.Remote) -> BaseException:
    excinfo = remote.excinfo
    if (
        excinfo.type.__module__ == _pickling.__name__
        and excinfo.type.__name__ == "NotShareableError"
    ):
        return _pickling.NotShareableError(excinfo.msg)
    return ExecutionFailed(excinfo)


# ---- the beginning and the end of interpreters ----

_START = """\
import sys
sys._extisolate = ({core}, {id})
sys.path[:] = {path!r}
sys.argv[:] = {argv!r}
sys.modules.pop("extisolate", None)  # what contexts have without this package
import extisolate._functions
extisolate._functions.main_path = {main!r}
for _stream in (sys.stdout, sys.stderr):
    if _stream is not None and hasattr(_stream, "reconfigure"):
        _stream.reconfigure(line_buffering=True)
del _stream, sys, extisolate
"""


def _main_file() -> str | None:
    if _functions.main_path is not None:
        return _functions.main_path
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.abspath(path) if path else None


def _find() -> dict[str, Any]:
    if not sys.executable:
        raise InterpreterError(
            "sys.executable is empty: extisolate needs to know the interpreter "
            "that it runs in, to find its shared libpython"
        )
    return _extisolate.find(sys.executable)


def _interrupt_wanted() -> bool:
    """Tell whether SIGINT raises KeyboardInterrupt, or has another meaning in this program."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def create(*, readonly: bool = False, copy: bool = False) -> Interpreter:
    """Start an interpreter.

    Memory of arrays and memoryviews is shared with it: what one side writes the other sees.
    ``readonly=True``: who receives it cannot write.  ``copy=True``: nothing is shared.

    >>> with create() as interp:
    ...     interp.call(divmod, 17, 5)
    (3, 2)
    """
    if _extisolate.current() == _MAIN:
        _find()
        _extisolate.watch_interrupts(_interrupt_wanted)
    id = _extisolate.open()
    path = [p for p in sys.path if isinstance(p, str)]
    source = _START.format(
        core=_extisolate.core(), id=id, path=path, argv=sys.argv, main=_main_file()
    )
    try:
        _extisolate.start(id, source)
    except BaseException:
        _extisolate.close(id, False)
        raise
    interp = Interpreter(id)
    interp._owned = True
    interp._policy = (_pickling.COPY if copy else 0) | (_pickling.READONLY if readonly else 0)
    return interp


def get_current() -> Interpreter:
    """Give the interpreter that this code runs in."""
    return Interpreter(_extisolate.current())


def get_main() -> Interpreter:
    """Give the process's own interpreter."""
    return Interpreter(_MAIN)


def list_all() -> list[Interpreter]:
    """Give all interpreters that there are, the main one among them."""
    found = []
    for id in sorted(_extisolate.interpreters()):
        try:
            found.append(Interpreter(id))
        except InterpreterNotFoundError:  # it was closed meanwhile
            continue
    return found


def _end() -> None:
    """Close what is open, at the end of the main interpreter."""
    for id in _extisolate.interpreters():
        if id != _MAIN:
            try:
                _extisolate.close(id, False)
            except InterpreterError:  # a daemon thread is in it
                continue
    _extisolate.stop()


def _begin() -> None:
    given = sys.__dict__.pop("_extisolate", None)
    if given is not None:
        _extisolate.attach(*given)
        return
    _extisolate.set_dispatch(_dispatch.dispatch)
    atexit.register(_end)
    os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    _extisolate.forked()
    Interpreter._known.clear()


_begin()
