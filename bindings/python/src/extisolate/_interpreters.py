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
from typing import TYPE_CHECKING, Any, Callable, ClassVar, NamedTuple

from . import _dispatch, _extisolate, _kept, _memory, _output, _pickling, _settings
from ._dispatch import ExecutionFailed
from ._extisolate import InterpreterError, InterpreterNotFoundError
from ._numbered import Numbered
from ._settings import Settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAIN = 0


class Proof(NamedTuple):
    """What ``Interpreter.prove()`` has seen."""

    #: Copies of native modules and libraries that were examined.
    modules: int
    #: References to symbols that were followed.
    references: int
    #: A line for each reference that leaves the interpreter; none where it is isolated.
    leaks: list[str]
    #: A line for each reference that means a library which is shared, but leads to a symbol of that
    #: name in the program, or in a library that is open globally.
    captured: list[str]


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


class Interpreter(_dispatch.Caller, Numbered):
    """An interpreter of this process, with a GIL and extension modules of its own.

    It is closed by ``close()``, at the end of a ``with`` statement, or when the last reference to
    what ``create()`` returned is gone, unless that was sent to another interpreter.
    """

    _known: ClassVar[weakref.WeakValueDictionary[int, Interpreter]] = weakref.WeakValueDictionary()
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
        if getattr(self, "_owned", False) and not sys.is_finalizing() and not is_forked():
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

        ResourceWarning: native code of it cannot be unloaded, and why: a thread that a library has
        started and does not end, above all.
        """
        if self._id == _extisolate.current():
            raise InterpreterError("the current interpreter cannot be closed")
        closed = _extisolate.close(self._id, wait)
        if closed is None:
            raise InterpreterError("memory of the interpreter is in use")
        self._owned = False
        _kept.forget(self._id)
        _, mapped, _, report = closed
        if mapped:
            warnings.warn(
                f"interpreter {self._id} stays mapped, with {mapped} files:\n{report.rstrip()}",
                ResourceWarning,
                stacklevel=2,
            )

    def prove(self) -> Proof:
        """Follow the references of its native modules, and report those that leave it.

        Takes some milliseconds for each hundred modules, in which no thread runs Python code in it.
        InterpreterError: it is the main interpreter, which has the originals.

        >>> with create() as interp:
        ...     interp.exec("import json")
        ...     interp.prove().leaks
        []
        """
        modules, references, leaks, captured = _extisolate.prove(self._id)
        return Proof(modules, references, leaks.splitlines(), captured.splitlines())

    def prepare_main(self, ns: Any = None, /, **kwargs: Any) -> None:
        """Set variables of its module ``__main__``, from a dict or from pairs, and by name."""
        names = dict(ns or (), **kwargs)
        if not names:
            raise ValueError("no variables were given")
        if any(not isinstance(name, str) for name in names):
            raise TypeError("names must be str")
        self.call(_dispatch.set_main, names)

    def exec(self, code: Any, /) -> None:
        """Run source text, or a function without arguments, in its module ``__main__``.

        ExecutionFailed: it raised.
        """
        plain = _plain_function(code)
        if plain is not None:
            import marshal

            self.call(_dispatch.run_code, marshal.dumps(plain))
        elif isinstance(code, str):
            self.call(_dispatch.run_source, code)
        else:
            raise TypeError(f"expected str or a function, not {type(code).__name__}")

    def proxy(self, expression: str, /) -> Any:
        """Evaluate it in its module ``__main__``, and give a proxy of the result.

        The object stays there; attributes, items, calls, operators, iteration and ``with`` of the
        proxy are those of the object, and what they give is a proxy, too, unless it is None, a
        number, str, bytes, a tuple or a slice.  What they are given is a proxy there, in turn.

        >>> with create() as interp:
        ...     words = interp.proxy("['one', 'two']")
        ...     words.append("three")
        ...     print(len(words), words[1:], sorted(words))
        3 ['two', 'three'] ['one', 'three', 'two']
        """
        from . import _proxies

        if self._id == _extisolate.current():
            return eval(expression, sys.modules["__main__"].__dict__)
        return self.call(_proxies.evaluate, expression)

    def _raised(self, remote: _dispatch.Remote) -> BaseException:
        return raised_by(remote)

    def call_in_thread(
        self, callable: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> threading.Thread:
        """Call it on a new thread, which is returned; what it returns is dropped."""
        thread = threading.Thread(target=self.call, args=(callable, *args), kwargs=kwargs)
        thread.start()
        return thread


def raised_by(remote: _dispatch.Remote) -> BaseException:
    """Give the exception for what was raised in another interpreter."""
    excinfo = remote.excinfo
    if (
        excinfo.type.__module__ == _pickling.__name__
        and excinfo.type.__name__ == "NotShareableError"
    ):
        return _pickling.NotShareableError(excinfo.msg)
    return ExecutionFailed(excinfo)


# ---- the beginning and the end of interpreters ----


def _find() -> dict[str, Any]:
    if not sys.executable:
        raise InterpreterError(
            "sys.executable is empty: extisolate needs to know the interpreter "
            "that it runs in, to find its shared libpython"
        )
    return _extisolate.find(sys.executable)


def interrupt_wanted() -> bool:
    """Tell whether SIGINT raises KeyboardInterrupt, or has another meaning in this program."""
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def prepare() -> None:
    """Find what interpreters are made of, and see to Ctrl-C."""
    if _extisolate.current() == _MAIN:
        _find()
        _extisolate.watch_interrupts(interrupt_wanted)


def start(
    policy: int, settings: Settings, place: dict[str, int], on_caller: bool = False
) -> Interpreter:
    """Start an interpreter; ``place``: the ``index`` and ``count`` that it gives, if it has any."""
    _settings.check(settings)
    sinks = _output.sinks_for(settings.get("stdout"), settings.get("stderr"))
    prepare()
    id = _extisolate.open(_settings.numbers(settings), sum(sinks), on_caller)
    _output.begin(id, sinks)
    try:
        _extisolate.start(id, _settings.source(id, settings, place))
    except BaseException:
        _extisolate.close(id, False)
        raise
    interp = Interpreter(id)
    interp._owned = True
    interp._policy = policy
    return interp


def policy_of(readonly: bool, copy: bool) -> int:
    """Give what is asked of memory as one number."""
    return (_memory.COPY if copy else 0) | (_memory.READONLY if readonly else 0)


def create(
    *, readonly: bool = False, copy: bool = False, **settings: Unpack[Settings]
) -> Interpreter:
    """Start an interpreter.

    Memory of arrays and memoryviews is shared with it: what one side writes the other sees.
    ``readonly=True``: who receives it cannot write.  ``copy=True``: nothing is shared.

    Further keywords are those of ``Settings``: ``argv``, ``path``, ``executable``, ``isolated``,
    ``use_environment``, ``utf8_mode``, ``dev_mode``, ``optimization_level``, ``hash_seed``,
    ``stdout`` and ``stderr``.  InterpreterError: CPython refuses one, or does not start.

    >>> with create() as interp:
    ...     interp.call(divmod, 17, 5)
    (3, 2)
    >>> lines = []
    >>> with create(argv=["name", "--flag"], stdout=lines.append) as interp:
    ...     interp.exec("import sys; print(*sys.argv)")
    >>> lines
    ['name --flag\\n']
    """
    return start(policy_of(readonly, copy), settings, {})


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


def collect() -> int:
    """End objects that nothing but circles through several interpreters refers to.

    Such as an object here that has a proxy of an object there, which has a proxy of the former one.
    Gives how many objects with proxies those were.  It stops all interpreters for some
    milliseconds, and happens by itself when the number of objects with proxies has doubled.

    InterpreterError: an interpreter is being closed by another thread.
    """
    from . import _proxies

    ended = _extisolate.collect()
    for interpreter in list_all():
        try:
            interpreter.call(_proxies.settle)
        except InterpreterError:  # it was closed meanwhile
            continue
    return ended


def _end() -> None:
    """Close what is open, at the end of the main interpreter."""
    for id in _extisolate.interpreters():
        if id != _MAIN:
            try:
                _extisolate.close(id, False)
            except InterpreterError:  # a daemon thread is in it
                continue
    _extisolate.stop()


_process = [os.getpid()]


def is_forked() -> bool:
    """Tell whether this is a child that is being forked: CPython ends other threads' data first."""
    return _process[0] != os.getpid()


def _note_process() -> None:
    _process[0] = os.getpid()


def _forked() -> None:
    _extisolate.forked()
    Interpreter._known.clear()


os.register_at_fork(after_in_child=_note_process)
if _extisolate.current() == _MAIN:
    atexit.register(_end)
    os.register_at_fork(after_in_child=_forked)
