"""What other interpreters call: functions by name or by value, and their outcome as a message."""

from __future__ import annotations

import functools
import pickle
import sys
import threading
import traceback
from types import BuiltinFunctionType, FunctionType, SimpleNamespace, TracebackType
from typing import Any, Callable

from . import _extisolate, _functions, _pickling

DONE, RAISED = range(2)


@functools.lru_cache(maxsize=1024)  # of functions that live as long as their modules
def _target_of(function: FunctionType) -> str:
    if not _functions.importable(function):
        raise LookupError  # which is not cached
    return f"{function.__module__}:{function.__qualname__}"


def target_of(function: Callable[..., Any]) -> str | None:
    """Give the name by which any interpreter finds a function at once, or None."""
    if type(function) is not FunctionType:
        return None
    try:
        return _target_of(function)
    except LookupError:
        return None


@functools.lru_cache(maxsize=1024)
def _path_of(target: str) -> tuple[str, list[str]]:
    module, _, path = target.partition(":")
    return module, path.split(".")


def _resolve(target: str) -> Callable[..., Any]:
    module, path = _path_of(target)
    found: Any = _functions.import_named(module)
    for name in path:
        found = getattr(found, name)
    function: Callable[..., Any] = found
    return function


def _text(make: Callable[[], Any]) -> str:
    """Make a text of an exception, whose own methods may fail."""
    try:
        return str(make())
    except BaseException as e:
        return f"<{type(e).__name__} while this was made>"


def _pickled_exception(exception: BaseException) -> bytes | None:
    try:
        kind, payload, _, _ = _pickling.pack(exception, _pickling.COPY)
        if kind != _pickling.PICKLED:
            return None
        pickle.loads(payload)  # many pickle well, and then cannot be made
    except BaseException:
        return None
    return bytes(payload)


def _outer_frames_removed(found: TracebackType | None) -> TracebackType | None:
    while found is not None and found.tb_frame.f_globals.get("__package__") == __package__:
        found = found.tb_next
    return found


def _failure(e: BaseException) -> tuple[Any, ...]:
    cls = type(e)
    # The traceback of what was called begins after our own frames.
    found = e.__traceback__ = _outer_frames_removed(e.__traceback__)
    formatted = _text(lambda: "".join(traceback.format_exception(cls, e, found)))
    return (
        RAISED,
        cls.__module__,
        cls.__qualname__,
        _text(lambda: e),
        formatted,
        _pickled_exception(e),
    )


def _unpack(what: str, *message: Any) -> Any:
    try:
        return _pickling.unpack(*message)
    except Exception as e:
        text = f"{what} not shareable: could not be unpickled: {type(e).__name__}: {e}"
        raise _pickling.NotShareableError(text) from e


def _in_main(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what looks at its caller's variables, as eval() and globals() do, from ``__main__``."""
    code = (lambda _function, _args, _kwargs: _function(*_args, **_kwargs)).__code__
    return FunctionType(code, sys.modules["__main__"].__dict__)(function, args, kwargs)


_here = threading.local()  # the calling thread, to threading


def _calling_thread() -> Any:
    """Give the thread if threading has not started it, and else something in its place.

    To threading, a thread of another interpreter is a daemon, and passes that on to those that it
    starts.  During a call it is none, so that those are waited for, as those of a program are.
    """
    thread = getattr(_here, "thread", None)
    if thread is None:
        thread = threading.current_thread()
        if not isinstance(thread, threading._DummyThread):
            thread = SimpleNamespace(_daemonic=True)
        _here.thread = thread
    return thread


def _invoke(kind: int, target: str | None, message: tuple[Any, ...]) -> Any:
    if kind == _pickling.PLAIN and target is not None:
        return _resolve(target)(*message[0])
    function, args, kwargs = _unpack("args", kind, *message)
    if type(function) is BuiltinFunctionType:
        return _in_main(function, args, kwargs)
    return (_resolve(target) if target is not None else function)(*args, **kwargs)


def dispatch(policy: int, target: str | None, kind: int, *message: Any) -> tuple[Any, ...]:
    """Call a function for another interpreter; never raises."""
    thread = _calling_thread()
    daemonic, thread._daemonic = thread._daemonic, False
    try:
        result = _invoke(kind, target, message)
        if result is None:
            return (DONE, _pickling.PLAIN, None, (), 0)
        return (DONE, *_pickling.pack(result, policy))
    except BaseException as e:
        try:
            return _failure(e)
        finally:
            e.__traceback__ = None  # its frames would keep what was given
    finally:
        thread._daemonic = daemonic


def interrupt(thread: int) -> None:
    """Raise KeyboardInterrupt in a thread that is in a call."""
    _extisolate.raise_in(thread, KeyboardInterrupt)


def calm(thread: int) -> None:
    """Take back what the call that has ended was not reached by."""
    _extisolate.raise_in(thread, None)


def dispatcher() -> Callable[..., tuple[Any, ...]]:
    """Give what a context's calls are dispatched by."""
    return dispatch


class Remote(Exception):
    """A call that raised in another interpreter."""

    def __init__(self, excinfo: SimpleNamespace, pickled: bytes | None) -> None:
        super().__init__(excinfo, pickled)
        self.excinfo = excinfo
        self.pickled = pickled


def _remote(module: str, qualname: str, text: str, formatted: str, pickled: Any) -> Remote:
    name = qualname.rpartition(".")[2]
    cls = SimpleNamespace(__name__=name, __qualname__=qualname, __module__=module)
    return Remote(
        SimpleNamespace(
            type=cls,
            msg=text,
            formatted=f"{qualname}: {text}" if text else qualname,
            errdisplay=formatted.rstrip(),
        ),
        pickled,
    )


def call(
    id: int,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    policy: int,
) -> Any:
    """Call a function in the interpreter of that number, on this thread."""
    target = target_of(function)
    if target is not None and not kwargs and _extisolate.plain(args):
        answer = _extisolate.call(id, (policy, target, _pickling.PLAIN, args))
    else:
        given = (function if target is None else None, _pickling.light(args), kwargs)
        answer = _extisolate.call(id, (policy, target, *_pickling.pack(given, policy)))
    if answer[0] == DONE:
        return _unpack("result", *answer[1:])
    raise _remote(*answer[1:])
